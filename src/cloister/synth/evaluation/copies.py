"""Synthetic rows that equal real ones, beside a control.

A synthetic row may equal a real one by chance, and often does in tables with few columns: the share says nothing by
itself. What counts is whether rows that the synthetic table was made from are met more often than rows of the same
kind that had no part in it. Nothing here is a guarantee, and rows must not be dropped because they are equal: what is
missing would then tell who is in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.data.table import Table
from cloister.synth.evaluation.tables import Floats, Tables

__all__ = ["Copies", "find_copies", "standard_scores"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """How often synthetic rows equal real ones, value by value.

    Attributes:
        share: of the synthetic rows, those that equal a real row.
        matched: the same for as many real rows as the control has, expected over all such choices.
        control: of the synthetic rows, those that equal a holdout row; None without a holdout.
        met: of the real rows, those that equal a synthetic row.
        control_met: of the holdout rows, those that equal a synthetic row; None without a holdout.
        score: by how many standard deviations the former is above the latter, if both were of one population.
    """

    share: float
    matched: float | None = None
    control: float | None = None
    met: float
    control_met: float | None = None
    score: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


def find_copies(tables: Tables) -> Copies:
    """Count synthetic rows that equal real ones, on the values as they are stored."""
    listed = _numbered(
        [tables.sources[name] for name in ("real", "synthetic", "holdout") if name in tables.sources], tables.names
    )
    real, synthetic = listed[0], listed[1]
    total = int(synthetic.sum())
    share = float(synthetic[real > 0].sum() / total)
    met = float(real[synthetic > 0].sum() / real.sum())
    if len(listed) == 2:
        return Copies(share=share, met=met)
    control = listed[2]
    fewer = min(int(real.sum()), int(control.sum()))
    control_met = float(control[synthetic > 0].sum() / control.sum())
    return Copies(
        share=share,
        matched=float(synthetic @ _seen(real, fewer) / total),
        control=float(synthetic @ _seen(control, fewer) / total),
        met=met,
        control_met=control_met,
        score=standard_scores(met, int(real.sum()), control_met, int(control.sum())),
    )


def standard_scores(first: float, trials: int, second: float, others: int) -> float:
    """Return by how many standard deviations one share is above another, if both are of one population.

    >>> round(standard_scores(0.6, 100, 0.4, 100), 3)
    2.828
    """
    pooled = (first * trials + second * others) / (trials + others)
    spread = pooled * (1 - pooled) * (1 / trials + 1 / others)
    return float((first - second) / np.sqrt(spread)) if spread > 0 else 0.0


def _seen(counts: Integers, sample: int) -> Floats:
    """Return the chance of each kind of row to be in a sample without replacement."""
    total = int(counts.sum())
    left = total - counts
    possible = left >= sample
    log = special.gammaln(left + 1.0) - special.gammaln(np.where(possible, left - sample, 0) + 1.0)
    log -= special.gammaln(total + 1.0) - special.gammaln(total - sample + 1.0)
    return np.where(counts == 0, 0.0, np.where(possible, 1 - np.exp(log), 1.0))


def _numbered(tables: Sequence[Table], names: Sequence[str]) -> list[Integers]:
    """Return for each table how often each row occurs that is in any of them."""
    counted = [table.with_schema(None).frequencies(names) for table in tables]
    lengths = [len(item) for item in counted]
    rows = np.zeros(sum(lengths), dtype=np.int64)
    for place in range(len(names)):
        known: dict[Any, int] = {}
        codes = [
            np.array([known.setdefault(value, len(known)) for value in item.decoders[place]], dtype=np.int64)[
                item.codes[:, place]
            ]
            for item in counted
        ]
        _, rows = np.unique(rows * len(known) + np.concatenate(codes), return_inverse=True)
    kinds = int(rows.max()) + 1
    parts = np.split(rows, np.cumsum(lengths)[:-1])
    return [
        np.bincount(part, weights=item.weights, minlength=kinds).astype(np.int64)
        for part, item in zip(parts, counted, strict=True)
    ]
