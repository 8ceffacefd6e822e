"""Synthetic rows that equal real ones or come near them, beside a control; and what a nearest row tells.

**Copies.** A synthetic row may equal a real one by chance, and often does in tables with few columns: the share says
nothing by itself. What counts is whether rows that the synthetic table was made from are met more often than rows of
the same kind that had no part in it. Nothing here is a guarantee, and rows must not be dropped because they are
equal: what is missing would then tell who is in the data.

**Distances.** Distances alone are not evidence of differential privacy: a table can keep its distance and leak, or
come near and be private. Compared with rows that had no part in the synthetic table they can show that something is
wrong, never that everything is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core.random import RandomSource
from cloister.data.columns import Role
from cloister.data.mixed_rows import MixedRows, nearest_rows
from cloister.data.table import Table
from cloister.synth.evaluation._coded_tables import Codes, Features, Floats, Tables
from cloister.synth.evaluation._utility import area

__all__ = [
    "Guessing",
    "RowCopies",
    "RowNearness",
    "find_copies",
    "measure_guessing",
    "measure_nearness",
    "standard_scores",
]


Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCopies:
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


def find_copies(tables: Tables) -> RowCopies:
    """Count synthetic rows that equal real ones, on the values as they are stored."""
    listed = _count_rows(
        [tables.sources[name] for name in ("real", "synthetic", "holdout") if name in tables.sources], tables.names
    )
    real, synthetic = listed[0], listed[1]
    total = int(synthetic.sum())
    share = float(synthetic[real > 0].sum() / total)
    met = float(real[synthetic > 0].sum() / real.sum())
    if len(listed) == 2:
        return RowCopies(share=share, met=met)
    control = listed[2]
    fewer = min(int(real.sum()), int(control.sum()))
    control_met = float(control[synthetic > 0].sum() / control.sum())
    return RowCopies(
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


def _count_rows(tables: Sequence[Table], names: Sequence[str]) -> list[Integers]:
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
        # Numbering the rows anew after each column keeps the products within 64 bits.
        _, rows = np.unique(rows * len(known) + np.concatenate(codes), return_inverse=True)
    kinds = int(rows.max()) + 1
    parts = np.split(rows, np.cumsum(lengths)[:-1])
    return [
        np.bincount(part, weights=item.weights, minlength=kinds).astype(np.int64)
        for part, item in zip(parts, counted, strict=True)
    ]


MOST_ROWS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNearness:
    """Distances from synthetic rows to the nearest real row, between 0 for equal cells and 1.

    Attributes:
        rows: how many rows of each table were compared.
        median: the median distance to the nearest real row.
        control_median: the median distance to the nearest holdout row; None without a holdout.
        ratio: the mean distance to the nearest real row over that to the nearest holdout row.
        nearer: of the synthetic rows, those that are nearer to a real row than to any holdout row, ties counting half.
        area: how often a real row is nearer to the synthetic rows than a holdout row is, ties counting half: 0.5 if
            the synthetic table does not tell who was in the data.
        score: by how many standard deviations that is above one half.
        distances: to the nearest real row, one per synthetic row. Protected.
        control_distances: to the nearest holdout row. Protected.
    """

    rows: int
    median: float
    control_median: float | None = None
    ratio: float | None = None
    nearer: float | None = None
    area: float | None = None
    score: float | None = None
    distances: tuple[float, ...] = ()
    control_distances: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values, without the single distances."""
        return {name: value for name, value in asdict(self).items() if not name.endswith("distances")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Guessing:
    """How often the nearest synthetic row, by all other columns, has a person's hidden value.

    Attributes:
        column: the hidden one.
        accuracy: for real rows.
        control: for holdout rows.
        baseline: of the most frequent value among synthetic rows, for real rows.
        score: by how many standard deviations the first is above the second.
    """

    column: str
    accuracy: float
    control: float
    baseline: float
    score: float

    @property
    def uplift(self) -> float:
        """Return how much more often a guess is right for those who are in the data."""
        return self.accuracy - self.control

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self) | {"uplift": self.uplift}


def measure_nearness(tables: Tables, source: RandomSource, *, most: int = MOST_ROWS) -> RowNearness:
    """Return how near the tables are, from at most so many rows of each."""
    features = Features(tables, tuple(range(len(tables.names))))
    others = [rows for rows in (tables.real, tables.holdout) if rows is not None]
    count = min(most, *(rows.total for rows in others))
    synthetic = features.mix(tables.synthetic.some(most, source))
    shown = [features.mix(rows.some(count, source)) for rows in others]
    found = [nearest(synthetic, part)[0] for part in shown]
    if len(found) == 1:
        return RowNearness(rows=count, median=float(np.median(found[0])), distances=tuple(found[0].tolist()))
    mean = float(found[1].mean())
    back = [nearest(part, synthetic)[0] for part in shown]
    below = area(back[1], back[0])
    return RowNearness(
        rows=count,
        median=float(np.median(found[0])),
        control_median=float(np.median(found[1])),
        ratio=float(found[0].mean()) / mean if mean else None,
        nearer=float(np.mean(found[0] < found[1]) + np.mean(found[0] == found[1]) / 2),
        area=below,
        # For two samples of one population this is the variance of the area (Mann and Whitney).
        score=(below - 0.5) / np.sqrt((2 * count + 1) / (12 * count * count)),
        distances=tuple(found[0].tolist()),
        control_distances=tuple(found[1].tolist()),
    )


def measure_guessing(
    tables: Tables, source: RandomSource, *, target: str | None = None, most: int = MOST_ROWS
) -> tuple[Guessing, ...]:
    """Return what the nearest synthetic row tells about each sensitive column, and the target; needs a holdout."""
    if tables.holdout is None or len(tables.names) < 2:
        return ()
    sensitive = [name for name in tables.names if tables.schema[name].role is Role.SENSITIVE or name == target]
    synthetic = tables.synthetic.some(most, source)
    real, control = tables.real.some(most, source), tables.holdout.some(most, source)
    return tuple(_measure_guess(tables, name, real, control, synthetic) for name in sensitive)


def nearest(rows: MixedRows, among: MixedRows) -> tuple[Floats, NDArray[np.int64]]:
    """Return for each row the distance to the nearest one among others, and the place of that, the first of several."""
    distances, places = nearest_rows(rows, among, squared=True)
    return distances[:, 0], places[:, 0]


def _measure_guess(tables: Tables, name: str, real: Codes, control: Codes, synthetic: Codes) -> Guessing:
    (place,) = tables.domain.positions([name])
    features = Features(tables, tuple(column for column in range(len(tables.names)) if column != place))
    known = features.mix(synthetic)
    hits = [
        float(np.mean(synthetic[nearest(features.mix(rows), known)[1], place] == rows[:, place]))
        for rows in (real, control)
    ]
    usual = int(np.bincount(synthetic[:, place]).argmax())
    return Guessing(
        column=name,
        accuracy=hits[0],
        control=hits[1],
        baseline=float(np.mean(real[:, place] == usual)),
        score=standard_scores(hits[0], len(real), hits[1], len(control)),
    )
