"""How near synthetic rows come to real ones, beside a control; and what a nearest row tells about a hidden value.

Distances alone are not evidence of differential privacy: a table can keep its distance and leak, or come near and be
private. Compared with rows that had no part in the synthetic table they can show that something is wrong, never that
everything is right.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.data.columns import Role
from cloister.data.mixed_rows import MixedRows
from cloister.data.nearest_rows import nearest_rows
from cloister.synth.evaluation.copies import standard_scores
from cloister.synth.evaluation.encoding import Features
from cloister.synth.evaluation.tables import Codes, Floats, Tables
from cloister.synth.evaluation.training import area

__all__ = ["Guessing", "Nearness", "measure_guessing", "measure_nearness"]

MOST_ROWS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearness:
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


def measure_nearness(tables: Tables, source: RandomSource, *, most: int = MOST_ROWS) -> Nearness:
    """Return how near the tables are, from at most so many rows of each."""
    features = Features(tables, tuple(range(len(tables.names))))
    others = [rows for rows in (tables.real, tables.holdout) if rows is not None]
    count = min(most, *(rows.total for rows in others))
    synthetic = features.mixed(tables.synthetic.some(most, source))
    shown = [features.mixed(rows.some(count, source)) for rows in others]
    found = [nearest(synthetic, part)[0] for part in shown]
    if len(found) == 1:
        return Nearness(rows=count, median=float(np.median(found[0])), distances=tuple(found[0].tolist()))
    mean = float(found[1].mean())
    back = [nearest(part, synthetic)[0] for part in shown]
    below = area(back[1], back[0])
    return Nearness(
        rows=count,
        median=float(np.median(found[0])),
        control_median=float(np.median(found[1])),
        ratio=float(found[0].mean()) / mean if mean else None,
        nearer=float(np.mean(found[0] < found[1]) + np.mean(found[0] == found[1]) / 2),
        area=below,
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
    return tuple(_guessed(tables, name, real, control, synthetic) for name in sensitive)


def nearest(rows: MixedRows, among: MixedRows) -> tuple[Floats, NDArray[np.int64]]:
    """Return for each row the distance to the nearest one among others, and the place of that, the first of several."""
    distances, places = nearest_rows(rows, among, squared=True)
    return distances[:, 0], places[:, 0]


def _guessed(tables: Tables, name: str, real: Codes, control: Codes, synthetic: Codes) -> Guessing:
    (place,) = tables.domain.positions([name])
    features = Features(tables, tuple(column for column in range(len(tables.names)) if column != place))
    known = features.mixed(synthetic)
    hits = [
        float(np.mean(synthetic[nearest(features.mixed(rows), known)[1], place] == rows[:, place]))
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
