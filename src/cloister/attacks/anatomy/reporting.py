"""What a report says about an attack on a release in two tables, beyond what every attack has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.attacks.calibration import Calibration
from cloister.attacks.result import percent
from cloister.report import Block, Chart, TableBlock, Text

if TYPE_CHECKING:
    from cloister.attacks.anatomy.result import AnatomyAttackResult

__all__ = ["blocks_of"]

_EXPLAINED = {
    "posterior": "posterior of the model",
    "product": "product of single probabilities",
    "calibrated": "mean of single probabilities",
}


def blocks_of(result: AnatomyAttackResult) -> tuple[Block, ...]:
    """Return the reliability of the attacker's claims, their scores, and what happens if it speaks only when sure."""
    return (
        Text("**Does the attacker know when it is right?** Claims on the diagonal come true as often as they say."),
        Chart(result.reliability(), caption="Claimed probabilities beside how often they were right."),
        _scores(result),
        _coverage(result),
    )


def _scores(result: AnatomyAttackResult) -> TableBlock:
    rows = [
        [_EXPLAINED[kind] + (" (claimed)" if kind == result.claim else ""), *_numbers(found)]
        for kind, found in result.scores.items()
    ]
    rows += [[f"a whole group: {_EXPLAINED[kind]}", *_numbers(found)] for kind, found in result.group_scores.items()]
    return TableBlock(
        ["probabilities", "Brier", "Brier, in 10 bins", "CAL", "REF"],
        rows,
        align=["left", "right", "right", "right", "right"],
        caption="Brier scores, 0 is perfect. In bins, the score is CAL (dishonesty) plus REF (vagueness).",
    )


def _numbers(found: Calibration) -> list[str]:
    parts = (found.brier, found.brier_quantized, found.calibration, found.refinement)
    return [f"{part:.4f}" for part in parts]


def _coverage(result: AnatomyAttackResult) -> TableBlock:
    rows = [
        [percent(threshold), percent(share), "" if right is None else percent(right)]
        for threshold, share, right in result.coverage
    ]
    return TableBlock(
        ["at least this sure", "of people", "right about them"],
        rows,
        align=["right", "right", "right"],
        caption="An attacker who speaks only when sure.",
    )
