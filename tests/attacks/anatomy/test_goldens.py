from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.attacks import calibration_of
from cloister.attacks.anatomy._expectation_maximization import fit, posterior, uniform_start
from cloister.testing import check_golden, load_goldens
from tests.attacks.anatomy.puzzles import puzzle_of

FOLDER = Path(__file__).parents[2] / "golden" / "attacks" / "anatomy"


def _smokers(*, smoker: list[str], illness: list[list[str]], method: str, smoothing: float, steps: int) -> Any:
    names = ["Cancer", "Flu", "None"]
    values = [[names.index(name) for name in group] for group in illness]
    puzzle = puzzle_of(np.array([[int(answer == "y")] for answer in smoker]), values)
    settings: dict[str, Any] = {"alpha": smoothing, "beta": smoothing, "tolerance": 1e-300, "iterations": steps}
    found = fit(puzzle, uniform_start(puzzle), method=method, **settings)
    (block,) = puzzle.blocks
    kind = block.kind[next(i for i, people in enumerate(block.people) if set(people) == {4, 5})]
    chances = posterior(block, found.parameters.scores(puzzle), method=method)[1][kind]
    fifth, sixth = (int(np.flatnonzero(block.cells[kind] == cell)[0]) for cell in (1, 0))
    result = {"cancer_of_fifth": float(chances[fifth, 0]), "none_of_sixth": float(chances[sixth, 1])}
    if method == "exact":
        result["frequency"] = np.exp(found.parameters.prior).tolist()
        result["smoker"] = np.exp(found.parameters.conditional[1]).tolist()
    return result


def _even_claims(*, bins: int) -> dict[str, float]:
    centers = (np.arange(bins) + 0.5) / bins
    claimed = np.repeat(centers, 100)
    came_true = np.concatenate([np.arange(100) < round(100 * center) for center in centers])
    found = calibration_of(claimed, came_true, bins=bins)
    return {name: getattr(found, name) for name in ("refinement", "calibration", "brier_quantized", "brier")}


FUNCTIONS: dict[str, Any] = {"even_claims": _even_claims, "smokers": _smokers}


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, FUNCTIONS[golden.name])
