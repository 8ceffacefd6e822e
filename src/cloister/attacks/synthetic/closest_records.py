"""Distance to the closest record: are synthetic rows nearer to the people in the data than to others?

The distance of a synthetic row to its closest original row (DCR), and its ratio to the distance to the second closest
(NNDR), are customary figures. By themselves they say nothing: a good table is near to everybody. What counts is the
share of synthetic rows that are nearer to an original row than to any control row, of which there are as many: one half
unless the table remembers its people. Distances are Gower's (see `cloister.data.mixed_rows`), between 0 and 1.

Rows that are repeated are counted too: a synthetic row that equals an original row but no control row, of as many, is
as likely by chance as one that equals a control row but no original row. A few copies among many show there first.

Keeping a distance is no protection either: a table that leaks can keep one, so that only the comparison is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import Row
from cloister.attacks.release_attacks import offer_attack
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.base import (
    ADVICE,
    LEAST_RULED_OUT,
    AttackedTables,
    SyntheticDetails,
    choose_rows,
    find_interval,
    most_exposed,
    read_attacked,
)
from cloister.core.confidence import binomial_interval
from cloister.core.exact import Number
from cloister.core.provenance import SYNTHETIC
from cloister.core.random import RandomState, random_source
from cloister.core.validation import check_confidence, check_count
from cloister.core.wordings import percent
from cloister.data.mixed_rows import MixedRows, nearest_rows, number_rows

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["ClosestRecords", "DistanceDetails", "distance_to_closest_record"]

Floats = NDArray[np.float64]

_HALF = 0.5
_UNCOMPARED = "no control, so nothing is compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosestRecords:
    """Distances of synthetic rows to the closest rows of a table.

    Attributes:
        smallest: the 5th percentile of the distance to the closest row.
        median: the median.
        mean: the mean.
        identical: the share at distance 0.
        ratio_smallest: the 5th percentile of the ratio to the distance to the second closest row; two at distance 0
            have ratio 1.
        ratio_median: the median.
    """

    smallest: float
    median: float
    mean: float
    identical: float
    ratio_smallest: float
    ratio_median: float

    def describe(self) -> str:
        """Return the distances and their ratios in words."""
        distance = f"closest row: median {self.median:.4g}, 5th percentile {self.smallest:.4g}"
        ratio = f"median {self.ratio_median:.4g}, 5th percentile {self.ratio_smallest:.4g}"
        return f"{distance}; ratio to the second: {ratio}"

    def to_dict(self) -> dict[str, float]:
        """Return JSON-ready values."""
        return {
            "smallest": self.smallest,
            "median": self.median,
            "mean": self.mean,
            "identical": self.identical,
            "ratio_smallest": self.ratio_smallest,
            "ratio_median": self.ratio_median,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceDetails(SyntheticDetails):
    """How near synthetic rows come to original and to control rows.

    The success is the share of synthetic rows that are nearer to an original row than to any control row, ties
    counting half; one half is guessing. Without a control nothing is compared: there are no trials, the success is one
    half and its interval from 0 to 1.

    Attributes:
        to_original: distances to the closest original rows, of as many as control rows.
        to_control: distances to the closest control rows; None without a control.
        copies: the share of all synthetic rows that equal any original row.
        copies_interval: of the different synthetic rows that equal original or control rows, but not both, how many
            equal original ones: a confidence interval of the share. None without a control.
    """

    schema: ClassVar[str] = "cloister.closest_records/1"

    to_original: ClosestRecords
    to_control: ClosestRecords | None = None
    copies: float
    copies_interval: tuple[float, float] | None = None

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether, at the stated confidence, synthetic rows are nearer to the original or repeat more of it.

        Nearer, if more than half of them are; each of the two is wrong half as often as the confidence allows.
        """
        return self._is_nearer(result) or self._is_repeating(result)

    def _is_nearer(self, result: AttackResult) -> bool:
        return self.to_control is not None and result.interval[0] > result.baseline

    def _is_repeating(self, result: AttackResult) -> bool:
        return self.copies_interval is not None and self.copies_interval[0] > result.baseline

    def conclude(self, result: AttackResult, /) -> str:
        return self._compare_distances(result) + self._name_left_out()

    def _compare_distances(self, result: AttackResult) -> str:
        same = f"{percent(self.copies)} of the synthetic rows equal an original row"
        if self.to_control is None:
            return f"{same}. There was {_UNCOMPARED}: it may be as many of any other table."
        if self.copies != self.to_original.identical:
            same += (
                f"; of as many original as control rows, {percent(self.to_original.identical)} equal an original row"
            )
        same += f", {percent(self.to_control.identical)} a control row"
        rates = f"{percent(result.success)} of the synthetic rows are nearer to the original than to the control"
        if self._is_repeating(result) and not self._is_nearer(result):
            return f"The synthetic table repeats rows of its people more often than of others: {same}. {rates}."
        if result.succeeded:
            return f"The synthetic table is nearer to its people than to others: {rates}, where half would be. {same}."
        if not self.is_telling:
            return f"There are too few rows to tell whether the table is nearer to its people: {rates}. {same}."
        return f"The synthetic table is no nearer to its people than to others: {rates}. {same}. Others may find more."

    def explain_gap(self) -> str:
        return _UNCOMPARED if self.to_control is None else ""

    def headline(self, result: AttackResult, /) -> str | None:
        return f"{result.attack}: {_UNCOMPARED}" if self.to_control is None else None

    def tell(self, result: AttackResult, /) -> Iterator[Row]:
        """Return what every attack on a synthetic table tells, and the distances."""
        yield from SyntheticDetails.tell(self, result)
        yield "synthetic rows equal to original rows", percent(self.copies)
        for name, part in (("original", self.to_original), ("control", self.to_control)):
            if part is not None:
                yield f"distance to {name}", part.describe()

    def draw(self, _: AttackResult, /) -> Figure | None:
        """Return the usual chart of the success beside guessing; without a control, one of the distances."""
        if self.to_control is not None:
            return None
        from cloister.plotting import bars_with_errors

        part = self.to_original
        return bars_with_errors(
            ["5th percentile", "median", "mean"],
            [part.smallest, part.median, part.mean],
            title="Distance of synthetic rows to the closest original row",
            x="synthetic rows",
            y="distance",
            subtitle=_UNCOMPARED,
        )


@offer_attack(
    "closest-rows",
    kind=SYNTHETIC,
    takes=("original", "synthetic", "control"),
    summary="Measure how near the rows of the synthetic RELEASE come to real ones.",
    example="fake.csv --original train.csv --control held-back.csv",
)
def distance_to_closest_record(
    original: Any,
    synthetic: Any,
    *,
    control: Any = None,
    columns: Sequence[str] | None = None,
    most_rows: int = 50_000,
    bounds: Mapping[str, Any] | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[DistanceDetails]:
    """Return how near synthetic rows come to the rows that they were made from, beside control rows.

    If the original and the control are of different sizes, the larger one is cut at random to the size of the smaller
    one: among more rows, the closest is closer. Copies are counted among all rows of the original as well.

    Args:
        original: the rows that the synthetic ones were made from: a `cloister.Table`, a data frame or a file.
        synthetic: the synthetic rows, likewise.
        control: rows of the same kind that had no part in the synthetic table; without them the distances are
            described, and nothing is judged.
        columns: which columns; without it, all that the tables share but identifiers.
        most_rows: how many rows of each table are compared at most, chosen at random.
        bounds: public ranges of numeric columns; without them, distances are scaled by the range of all tables.
        confidence: of the interval: exact (Clopper-Pearson), synthetic rows with the same closest row counting as one,
            and no more of them than there are original and control rows.
        random_state: of the choice of rows; an integer is for tests.

    Raises:
        UnknownColumnError: if a table lacks a column.
        DataError: if a table is empty.
    """
    source, most = random_source(random_state), check_count(most_rows, name="most_rows", at_least=2)
    level = float(check_confidence(confidence))
    whole = read_attacked(original, synthetic, control=control, columns=columns, bounds=bounds)
    tables = whole.balance(source)
    synthetic_rows = tables.synthetic.take(choose_rows(len(tables.synthetic), most, source))
    kept = choose_rows(len(tables.original), most, source)
    real, places = tables.original.take(kept), tables.places[kept]
    distances, nearest = nearest_rows(synthetic_rows, real, neighbors=min(2, len(real)))
    found, trials = _summarize(distances), len(synthetic_rows)
    exposed = np.zeros(len(real))
    np.maximum.at(exposed, nearest[:, 0], 1 - distances[:, 0])
    own: dict[str, Any] = {"left_out": tables.left_out, "to_original": found, "copies": _copies(whole)}
    shared: dict[str, Any] = {
        "attack": "distance to the closest record",
        "assumption": "holds the synthetic table and takes whoever is near to one of its rows for somebody in the data",
        "baseline": _HALF,
        "queries": 0,
        "confidence": level,
        "mitigation": ADVICE,
        "worst": most_exposed(places, exposed),
    }
    if tables.control is None:
        details = DistanceDetails(kind="distances only", is_telling=False, **own)
        return AttackResult(**shared, success=_HALF, interval=(0.0, 1.0), trials=0, details=details)
    others = tables.control.take(choose_rows(len(tables.control), most, source))
    apart, place = nearest_rows(synthetic_rows, others, neighbors=min(2, len(others)))
    nearer, tied = distances[:, 0] < apart[:, 0], distances[:, 0] == apart[:, 0]
    closest = np.where(nearer, nearest[:, 0], len(real) + place[:, 0])[~tied]
    hits = float(nearer.sum() + tied.sum() / 2)
    alike = max(_alike(closest, trials), trials / (len(real) + len(others)))
    interval = find_interval(hits, trials, level, alike)
    repeated = _repetition_interval(tables.synthetic, tables.original, tables.control, confidence)
    details = DistanceDetails(
        kind="synthetic rows nearer to the original than to the control",
        is_telling=max(interval[0], repeated[0]) > _HALF or interval[1] - _HALF < LEAST_RULED_OUT,
        to_control=_summarize(apart),
        copies_interval=repeated,
        **own,
    )
    return AttackResult(**shared, success=hits / trials, interval=interval, trials=trials, details=details)


def _summarize(distances: Floats) -> ClosestRecords:
    first = distances[:, 0]
    second = distances[:, -1]
    ratio = np.divide(first, second, out=np.ones(len(first)), where=second > 0)
    return ClosestRecords(
        smallest=float(np.quantile(first, 0.05)),
        median=float(np.median(first)),
        mean=float(first.mean()),
        identical=float((first == 0).mean()),
        ratio_smallest=float(np.quantile(ratio, 0.05)),
        ratio_median=float(np.median(ratio)),
    )


def _copies(tables: AttackedTables) -> float:
    made, real = number_rows([tables.synthetic, tables.original])
    return float(np.isin(made, real).mean())


def _repetition_interval(
    synthetic: MixedRows, original: MixedRows, control: MixedRows, confidence: Number
) -> tuple[float, float]:
    """Return an interval of the share of original rows among those that are repeated of one of two tables only."""
    made, real, others = map(np.unique, number_rows([synthetic, original, control]))
    ours, theirs = (np.isin(made, part) for part in (real, others))
    hits, misses = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    level = float(check_confidence(confidence))
    return binomial_interval(hits, hits + misses, confidence=level) if hits + misses else (0.0, 1.0)


def _alike(closest: NDArray[np.int64], trials: int) -> float:
    """Return how many synthetic rows have the same closest row, on average over synthetic rows."""
    counts = np.bincount(closest)
    return float((counts.astype(np.float64) ** 2).sum() / trials) if counts.size else 1.0
