from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.attacks import Published, census_reconstruction, reconstruction, tracker, value_of_newcomer
from cloister.core.random import SeededRandomSource, bits
from cloister.errors import QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls
from cloister.testing import check_golden, load_golden
from tests.support.asked_tables import salary_table

FOLDER = Path(__file__).parents[2] / "golden" / "attacks"


def _newcomer(*, before: list[float], after: list[float]) -> float:
    return value_of_newcomer(before=(before[0], before[1]), after=(after[0], after[1]))


def _tracked(*, salaries: list[int], women: int, least: int, target: int) -> dict[str, Any]:
    table = ControlledTable(salary_table(salaries, women=women), controls=Controls(min_size=least, audit=False))
    result = tracker(
        lambda where: table.sum("salary", where),
        targets=[f"id = {target}"],
        through="sex = 'F'",
        truth=[salaries[target - 1]],
        refusal=QueryRefusedError,
    )
    try:
        table.sum("salary", f"id = {target}")
        directly = "answered"
    except QueryRefusedError:
        directly = "refused"
    return {"estimate": result.estimates[0], "directly": directly, "queries": result.queries}


def _block(*, people: list[list[Any]], published: list[dict[str, Any]]) -> dict[str, Any]:
    result = census_reconstruction(
        [Published(**item) for item in published],
        truth=[dict(zip(("age", "sex", "race", "status"), row, strict=True)) for row in people],
        number="age",
        bounds=(0, 100),
        categories={"sex": "FM", "race": "BW", "status": "SM"},
        seconds=300,
    )
    return {"solutions": result.solutions, "certain": result.certain, "success": result.success}


def _shares(*, each: int, errors: list[float]) -> list[float]:
    return [float(np.mean([_share(error, each, seed) for seed in range(10)])) for error in errors]


def _share(error: float, each: int, seed: int, people: int = 128) -> float:
    source = SeededRandomSource(seed)
    secret = bits(source, people).astype(int)

    def ask(positions: Any) -> float:
        return float(secret[positions].sum() + error * (2 * int(source.words(1)[0]) / 2**64 - 1))

    return reconstruction(ask, truth=secret, queries=each * people, random_state=source).success


def test_differencing_two_means() -> None:
    check_golden(load_golden(FOLDER / "differencing_two_means.toml"), _newcomer)


def test_tracker_of_ten_salaries() -> None:
    check_golden(load_golden(FOLDER / "tracker_ten_salaries.toml"), _tracked)


@pytest.mark.slow
def test_census_block_of_seven() -> None:
    check_golden(load_golden(FOLDER / "census_block_of_seven.toml"), _block)


@pytest.mark.slow
def test_reconstruction_by_noise() -> None:
    check_golden(load_golden(FOLDER / "reconstruction_by_noise.toml"), _shares)
