"""Claims made honest with the help of people whose value is known: Platt, temperature and isotonic.

An attacker who knows the truth about some people can learn how much to trust the own probabilities, and then apply
that to everybody else. ``platt`` fits a line to the logits of claims (Platt 1999), ``temperature`` its slope only,
``isotonic`` any rising function, by pooling neighbors that contradict each other (Zadrozny and Elkan 2002).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cloister.attacks.calibration import checked_claims
from cloister.attacks.confidence import Floats
from cloister.core import validation

__all__ = ["RECALIBRATIONS", "Recalibration", "recalibrate"]

RECALIBRATIONS = ("platt", "temperature", "isotonic")
_CLOSE, _STEPS = 1e-10, 100


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Recalibration:
    """How claims are turned into better ones.

    Attributes:
        kind: how it was learned.
        slope: what logits are multiplied with; for lines.
        offset: what is added to them then; for lines.
        claims: where the steps of a rising function are; for isotonic ones.
        values: its values there.
    """

    schema: ClassVar[str] = "cloister.recalibration/1"

    kind: str
    slope: float = 1.0
    offset: float = 0.0
    claims: Floats | None = None
    values: Floats | None = None

    def apply(self, claimed: Any) -> Floats:
        """Return better claims in the place of others."""
        stated, _ = checked_claims(claimed, np.zeros(len(claimed)))
        if self.claims is not None and self.values is not None:
            return np.asarray(np.interp(stated, self.claims, self.values))
        return _chance(self.slope * _logit(stated) + self.offset)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {
            "schema": self.schema,
            "kind": self.kind,
            "slope": self.slope,
            "offset": self.offset,
            "claims": None if self.claims is None else self.claims.tolist(),
            "values": None if self.values is None else self.values.tolist(),
        }


def recalibrate(claimed: Any, came_true: Any, *, kind: str = "isotonic") -> Recalibration:
    """Return how to turn claims into honest ones, learned from claims whose outcome is known.

    Args:
        claimed: the probabilities.
        came_true: whether each came true.
        kind: ``platt``, ``temperature`` or ``isotonic``.

    >>> boasts = recalibrate([0.99] * 4, [True, True, True, False], kind="isotonic")
    >>> boasts.apply([0.99]).tolist()
    [0.75]
    """
    validation.check_choice(kind, name="kind", allowed=RECALIBRATIONS)
    stated, happened = checked_claims(claimed, came_true)
    if kind == "isotonic":
        claims, values = _rising(stated, happened)
        return Recalibration(kind=kind, claims=claims, values=values)
    slope, offset = _line(_logit(stated), happened, with_offset=kind == "platt")
    return Recalibration(kind=kind, slope=slope, offset=offset)


def _line(logits: Floats, happened: Floats, *, with_offset: bool) -> tuple[float, float]:
    """Return the slope and offset of the most probable line, by Newton steps.

    Outcomes are drawn a little towards even odds, as Platt does, so that perfect claims do not make the slope endless.
    """
    right, wrong = happened.sum(), len(happened) - happened.sum()
    aims = np.where(happened == 1, (right + 1) / (right + 2), 1 / (wrong + 2))
    columns = np.column_stack([logits, np.ones(len(logits))]) if with_offset else logits[:, None]
    found = np.zeros(columns.shape[1])
    for _ in range(_STEPS):
        chances = _chance(columns @ found)
        curve = (columns * (chances * (1 - chances))[:, None]).T @ columns + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(curve, columns.T @ (aims - chances))
        found = found + np.clip(step, -2, 2)
        if np.abs(step).max() < _CLOSE:
            break
    return float(found[0]), float(found[1]) if with_offset else 0.0


def _rising(stated: Floats, happened: Floats) -> tuple[Floats, Floats]:
    """Return the best rising function: the ends of its steps and their values."""
    claims, which, counts = np.unique(stated, return_inverse=True, return_counts=True)
    means = np.bincount(which.ravel(), happened) / counts
    pools: list[list[float]] = []
    for place, (mean, count) in enumerate(zip(means.tolist(), counts.tolist(), strict=True)):
        pools.append([mean, count, place, place])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (left, many, first, _), (right, more, _, last) = pools[-2:]
            pools[-2:] = [[(left * many + right * more) / (many + more), many + more, first, last]]
    places = np.array([[pool[2], pool[3]] for pool in pools], dtype=np.int64).ravel()
    return claims[places], np.repeat([pool[0] for pool in pools], 2)


def _logit(chances: Floats) -> Floats:
    kept = np.clip(chances, 1e-12, 1 - 1e-12)
    return np.asarray(np.log(kept) - np.log1p(-kept))


def _chance(logits: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -700, 700))))
