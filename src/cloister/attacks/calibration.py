"""Is an attacker right as often as they claim? Brier scores, reliability, coverage, and claims made honest.

A claim is a probability p together with whether it came true. The Brier score is the mean of ``(I - p)**2``. With p
replaced by the center of its bin it is exactly CAL + REF: the miscalibration ``sum n_i (r_i - p_i)**2 / n`` and the
refinement ``sum n_i r_i (1 - r_i) / n``, where r_i is how often claims of bin i came true (Murphy 1973; DeGroot and
Fienberg 1983). Both scores, with and without bins, are kept apart here, since they are not the same number.

An attacker who knows the truth about some people can learn how much to trust the own probabilities, and then apply
that to everybody else. ``platt`` fits a line to the logits of claims (Platt 1999), ``temperature`` its slope only,
``isotonic`` any rising function, by pooling neighbors that contradict each other (Zadrozny and Elkan 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cloister.core import validation
from cloister.core.confidence import Floats, binomial_bounds
from cloister.errors import ParameterError

__all__ = [
    "RECALIBRATIONS",
    "Calibration",
    "Recalibration",
    "ReliabilityBin",
    "calibration_of",
    "check_claims",
    "coverage_of",
    "recalibrate",
]


THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Claims of about the same probability.

    Attributes:
        center: what claims of this bin count as.
        claimed: their mean.
        count: how many there are.
        observed: the share that came true.
        interval: an exact 95% interval of that share, if claims are independent.
    """

    center: float
    claimed: float
    count: int
    observed: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How well claimed probabilities fit what happened.

    Attributes:
        brier: the Brier score of the claims as they are; 0 is perfect.
        brier_quantized: that of claims moved to the centers of their bins: ``calibration + refinement``.
        calibration: CAL, the squared distance of the bins' centers from what happened; 0 is perfectly honest.
        refinement: REF, what is left for claims that say as little.
        expected_error: the mean distance of a bin's mean claim from what happened (ECE).
        bins: the reliability diagram as numbers; only bins that have claims.
    """

    brier: float
    brier_quantized: float
    calibration: float
    refinement: float
    expected_error: float
    bins: tuple[ReliabilityBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "brier": self.brier,
            "brier_quantized": self.brier_quantized,
            "calibration": self.calibration,
            "refinement": self.refinement,
            "expected_error": self.expected_error,
            "bins": [[found.center, found.claimed, found.count, found.observed] for found in self.bins],
        }


def calibration_of(claimed: Any, came_true: Any, *, bins: int = 10) -> Calibration:
    """Return how well claimed probabilities fit what happened, in bins of equal width.

    Args:
        claimed: the probabilities.
        came_true: whether each came true.
        bins: how many bins of equal width there are.

    >>> found = calibration_of([0.9, 0.9, 0.9, 0.2], [1, 1, 0, 0])
    >>> round(found.brier, 4)
    0.2175
    """
    number = validation.check_count(bins, name="bins", at_least=1)
    stated, happened = check_claims(claimed, came_true)
    # A claim of exactly 1 belongs to the last bin.
    bin_of = np.minimum((stated * number).astype(np.int64), number - 1)
    counts = np.bincount(bin_of, minlength=number)
    used = np.flatnonzero(counts)
    counts = counts[used]
    centers = (used + 0.5) / number
    means, observed = (np.bincount(bin_of, item, minlength=number)[used] / counts for item in (stated, happened))
    calibration = float(counts @ (observed - centers) ** 2) / len(stated)
    refinement = float(counts @ (observed * (1 - observed))) / len(stated)
    found = []
    for center, mean, count, share in zip(centers, means, counts.tolist(), observed, strict=True):
        low, high = binomial_bounds(share * count, count, alpha=0.05)
        found.append(
            ReliabilityBin(
                center=float(center),
                claimed=float(mean),
                count=count,
                observed=float(share),
                interval=(float(low), float(high)),
            )
        )
    return Calibration(
        brier=float(((happened - stated) ** 2).mean()),
        brier_quantized=float(((happened - (bin_of + 0.5) / number) ** 2).mean()),
        calibration=calibration,
        refinement=refinement,
        expected_error=float(counts @ np.abs(observed - means)) / len(stated),
        bins=tuple(found),
    )


def coverage_of(
    claimed: Any, came_true: Any, *, thresholds: Sequence[float] = THRESHOLDS
) -> tuple[tuple[float, float, float | None], ...]:
    """Return, for each threshold, the share of claims of at least that much and the share of those that came true.

    >>> coverage_of([0.9, 0.8, 0.2, 0.2], [1, 0, 0, 0], thresholds=[0.5, 0.85, 1])
    ((0.5, 0.5, 0.5), (0.85, 0.25, 1.0), (1.0, 0.0, None))
    """
    stated, happened = check_claims(claimed, came_true)
    found = []
    for threshold in thresholds:
        sure = stated >= threshold
        right = float(happened[sure].mean()) if sure.any() else None
        found.append((float(threshold), float(sure.mean()), right))
    return tuple(found)


def check_claims(claimed: Any, came_true: Any) -> tuple[Floats, Floats]:
    """Return probabilities and what came of them as arrays; what makes no sense is refused."""
    try:
        stated, happened = (np.asarray(item, dtype=np.float64).ravel() for item in (claimed, came_true))
    except (TypeError, ValueError):
        raise ParameterError(
            "Claims are probabilities, and whether each came true.", fix="give two lists of numbers from 0 to 1."
        ) from None
    if not len(stated) or len(stated) != len(happened):
        raise ParameterError(
            f"There are {len(stated)} claims and {len(happened)} outcomes.",
            fix="give one outcome for every claim, at least one.",
        )
    if not ((stated >= 0) & (stated <= 1)).all() or not np.isin(happened, (0, 1)).all():
        raise ParameterError(
            "A claim is no probability, or an outcome is neither true nor false.",
            fix="give probabilities from 0 to 1, and True or False for each.",
        )
    return stated, happened


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
        stated, _ = check_claims(claimed, np.zeros(len(claimed)))
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
    stated, happened = check_claims(claimed, came_true)
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
        # Where claims are extreme a full step of Newton's method can overshoot.
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
