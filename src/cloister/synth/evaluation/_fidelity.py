"""How alike two tables are: distances of marginals, associations of columns, and counts of random ranges.

**Marginals.** The total variation between two distributions over the same cells is half the sum of absolute
differences: the largest difference between the two answers to any question about these cells. 0 is the same, 1 has
nothing in common.

Beside each mean stands what a table of as many rows would have that is drawn from the real rows themselves: no
synthetic table can be expected to be nearer.

**Associations**: how strongly columns go together, in both tables. Two amounts: Pearson's correlation of the middles
of their cells. Two names: Cramer's V. A name and an amount: the correlation ratio, the square root of the share of
the amount's variance that lies between the names. Rows that miss an amount are left out of its associations; a
missing name is a name. An association with a column that does not vary is 0.

**Ranges**: random questions of two ranges each, what an analyst who counts rows would get wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource, integers_below, permutation
from cloister.synth.evaluation._coded_tables import CodedRows, Floats, Tables, amounts

__all__ = [
    "Associations",
    "ColumnDistance",
    "MarginalDistances",
    "RangeErrors",
    "column_distances",
    "compare_associations",
    "correlation_ratio",
    "cramers_v",
    "marginal_distances",
    "pearson",
    "range_errors",
    "total_variation",
]


MOST_MARGINALS = 2_000
"""How many marginals of a kind are compared; of more, so many are drawn."""

_LARGEST_DENSE = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalDistances:
    """The total variation over all marginals of so many columns.

    Attributes:
        ways: of how many columns.
        mean: the mean over the marginals.
        worst: the largest.
        worst_columns: where that is.
        resampled: the mean for as many rows drawn from the real ones.
        compared: how many marginals were compared.
        marginals: how many there are.
    """

    ways: int
    mean: float
    worst: float
    worst_columns: tuple[str, ...]
    resampled: float
    compared: int
    marginals: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self) | {"worst_columns": list(self.worst_columns)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDistance:
    """One column in both tables.

    Attributes:
        name: of the column.
        total_variation: between its two distributions.
        kolmogorov_smirnov: the largest difference between the two cumulative shares of an ordered column, of the rows
            where it is not missing; None for other columns.
        labels: its cells.
        real: the share of real rows in each. Protected.
        synthetic: the share of synthetic rows in each.
        is_ordered: whether its cells have an order.
    """

    name: str
    total_variation: float
    kolmogorov_smirnov: float | None
    labels: tuple[str, ...]
    real: tuple[float, ...]
    synthetic: tuple[float, ...]
    is_ordered: bool

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self) | {"labels": list(self.labels), "real": list(self.real), "synthetic": list(self.synthetic)}


def total_variation(first: Floats, second: Floats) -> float:
    """Return half the sum of absolute differences of two distributions.

    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.5, 0.25]))
    0.25
    """
    return float(np.abs(first - second).sum() / 2)


def column_distances(tables: Tables) -> tuple[ColumnDistance, ...]:
    """Return how far apart each column is."""
    found = []
    for place, attribute in enumerate(tables.domain.attributes):
        real, synthetic = tables.real.shares([place]), tables.synthetic.shares([place])
        ordered = tables.numeric[place]
        found.append(
            ColumnDistance(
                name=attribute.name,
                total_variation=total_variation(real, synthetic),
                kolmogorov_smirnov=_largest_gap(real, synthetic, attribute.present) if ordered else None,
                labels=attribute.labels,
                real=tuple(real.tolist()),
                synthetic=tuple(synthetic.tolist()),
                is_ordered=ordered,
            )
        )
    return tuple(found)


def pair_distances(tables: Tables) -> Floats:
    """Return the total variation of every pair of columns, and of every column on the diagonal."""
    count = len(tables.names)
    found = np.zeros((count, count))
    for pair in _combinations(count, 1):
        found[pair[0], pair[0]] = _distance(tables.real, tables.synthetic, pair)
    for first, second in _combinations(count, 2):
        found[first, second] = found[second, first] = _distance(tables.real, tables.synthetic, (first, second))
    return found


def marginal_distances(tables: Tables, ways: int, source: RandomSource) -> MarginalDistances:
    """Return how far apart the marginals of so many columns are."""
    count = len(tables.names)
    chosen = list(_choose_marginals(count, ways, source))
    redrawn = tables.real.resampled(tables.synthetic.total, source)
    distances = [_distance(tables.real, tables.synthetic, item) for item in chosen]
    expected = [_distance(tables.real, redrawn, item) for item in chosen]
    worst = int(np.argmax(distances))
    return MarginalDistances(
        ways=ways,
        mean=float(np.mean(distances)),
        worst=distances[worst],
        worst_columns=tuple(tables.names[column] for column in chosen[worst]),
        resampled=float(np.mean(expected)),
        compared=len(chosen),
        marginals=math.comb(count, ways),
    )


def _choose_marginals(count: int, ways: int, source: RandomSource) -> Iterator[tuple[int, ...]]:
    """Give all combinations of columns, or so many of them at random."""
    there = math.comb(count, ways)
    if there <= MOST_MARGINALS:
        yield from _combinations(count, ways)
        return
    seen: set[tuple[int, ...]] = set()
    while len(seen) < MOST_MARGINALS:
        drawn = tuple(sorted(permutation(source, count)[:ways].tolist()))
        if drawn not in seen:
            seen.add(drawn)
            yield drawn


def _combinations(count: int, ways: int) -> Iterator[tuple[int, ...]]:
    return itertools.combinations(range(count), ways)


def _distance(first: CodedRows, second: CodedRows, columns: Sequence[int]) -> float:
    cells = math.prod(first.domain.sizes[column] for column in columns)
    one, two = first.flat(columns), second.flat(columns)
    # Cells without rows add nothing, so that of too many cells only those in use are laid out.
    if cells > _LARGEST_DENSE:
        _, places = np.unique(np.concatenate([one, two]), return_inverse=True)
        one, two, cells = places[: len(one)], places[len(one) :], int(places.max()) + 1
    return total_variation(_shares(one, first, cells), _shares(two, second, cells))


def _shares(places: NDArray[np.int64], rows: CodedRows, cells: int) -> Floats:
    return np.asarray(np.bincount(places, weights=rows.weights, minlength=cells) / rows.total)


def _largest_gap(real: Floats, synthetic: Floats, present: int) -> float | None:
    first, second = real[:present], synthetic[:present]
    if not first.sum() or not second.sum():
        return None
    gap = np.cumsum(first) / first.sum() - np.cumsum(second) / second.sum()
    return float(np.abs(gap).max())


KINDS = ("pearson", "cramers_v", "correlation_ratio")
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Associations:
    """The association of every pair of columns in both tables.

    Attributes:
        columns: their names.
        real: a square of numbers for the real rows, 1 on the diagonal. Protected.
        synthetic: the same for the synthetic rows.
        differences: the mean absolute difference per kind of association; kinds that do not occur are not there.
    """

    columns: tuple[str, ...]
    real: Floats
    synthetic: Floats
    differences: dict[str, float]

    @property
    def mean(self) -> float | None:
        """Return the mean absolute difference over all pairs; None if there are none."""
        above = np.triu_indices(len(self.columns), 1)
        return float(np.abs(self.real - self.synthetic)[above].mean()) if len(above[0]) else None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "columns": list(self.columns),
            "mean_difference": self.mean,
            "differences": self.differences,
            "real": self.real.tolist(),
            "synthetic": self.synthetic.tolist(),
        }


def compare_associations(tables: Tables) -> Associations:
    """Return the associations of all pairs of columns."""
    count = len(tables.names)
    real, synthetic = np.eye(count), np.eye(count)
    missed: dict[str, list[float]] = {}
    for first, second in itertools.combinations(range(count), 2):
        for rows, found in ((tables.real, real), (tables.synthetic, synthetic)):
            found[first, second] = found[second, first] = _association(tables, rows, first, second)
        kind = _kind(tables, first, second)
        missed.setdefault(kind, []).append(abs(real[first, second] - synthetic[first, second]))
    return Associations(
        columns=tables.names,
        real=real,
        synthetic=synthetic,
        differences={kind: float(np.mean(missed[kind])) for kind in KINDS if kind in missed},
    )


def pearson(table: Floats, rows: Floats, columns: Floats) -> float:
    """Return the correlation of a two-way table whose cells stand for amounts.

    >>> pearson(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    0.3333333333333333
    """
    weight = table.sum()
    if not weight:
        return 0.0
    one, two = table.sum(axis=1) / weight, table.sum(axis=0) / weight
    first, second = rows - one @ rows, columns - two @ columns
    spread = float(np.sqrt((one @ first**2) * (two @ second**2)))
    return float(first @ table @ second / weight / spread) if spread > _ROUNDING else 0.0


def cramers_v(table: Floats) -> float:
    """Return the association of a two-way table of names: 0 if independent, 1 if one name tells the other.

    >>> cramers_v(np.array([[3.0, 0.0], [0.0, 3.0]])), cramers_v(np.array([[2.0, 1.0], [1.0, 2.0]]))
    (1.0, 0.3333333333333333)
    """
    used = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    least = min(used.shape) - 1
    if least < 1:
        return 0.0
    shares = used / used.sum()
    expected = np.outer(shares.sum(axis=1), shares.sum(axis=0))
    return float(np.sqrt(((shares - expected) ** 2 / expected).sum() / least))


def correlation_ratio(table: Floats, columns: Floats) -> float:
    """Return how far names, one per row of a two-way table, tell an amount, one per column.

    >>> correlation_ratio(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
    0.7071067811865476
    """
    weights = table.sum(axis=1)
    used, weights = table[weights > 0], weights[weights > 0]
    if not len(used):
        return 0.0
    shares = weights / weights.sum()
    means = used @ columns / weights
    mean = shares @ means
    spread = float(used.sum(axis=0) @ (columns - mean) ** 2 / weights.sum())
    return float(np.sqrt(min(1.0, shares @ (means - mean) ** 2 / spread))) if spread > _ROUNDING else 0.0


def _kind(tables: Tables, first: int, second: int) -> str:
    amounts_among = tables.numeric[first] + tables.numeric[second]
    return {0: "cramers_v", 1: "correlation_ratio", 2: "pearson"}[amounts_among]


def _association(tables: Tables, rows: CodedRows, first: int, second: int) -> float:
    kind = _kind(tables, first, second)
    if kind == "correlation_ratio" and tables.numeric[first]:
        first, second = second, first
    table = rows.shares([first, second])
    if kind == "cramers_v":
        return cramers_v(table)
    other = tables.domain.attributes[second]
    if kind == "correlation_ratio":
        return correlation_ratio(table[:, : other.present], amounts(other))
    one = tables.domain.attributes[first]
    return pearson(table[: one.present, : other.present], amounts(one), amounts(other))


QUESTIONS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeErrors:
    """How far off the counts of random conjunctions of two ranges are, as shares of all rows.

    Attributes:
        questions: how many were asked.
        mean: the mean absolute error.
        median: the median absolute error.
        worst: the largest.
    """

    questions: int
    mean: float
    median: float
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return asdict(self)


def range_errors(tables: Tables, source: RandomSource, *, questions: int = QUESTIONS) -> RangeErrors:
    """Return the errors of random questions, each a run of neighboring cells in one column and one in another.

    The questions depend on the declared cells and the source only.
    """
    count = len(tables.names)
    sizes = np.array([item.present for item in tables.domain.attributes])
    asked: dict[tuple[int, ...], list[tuple[tuple[int, int], ...]]] = {}
    for _ in range(questions):
        columns = tuple(sorted(permutation(source, count)[:2].tolist()))
        asked.setdefault(columns, []).append(tuple(_run(int(sizes[column]), source) for column in columns))
    errors: list[float] = []
    for columns, runs in asked.items():
        difference = tables.real.shares(columns) - tables.synthetic.shares(columns)
        errors.extend(_miss(difference, run) for run in runs)
    found = np.array(errors)
    return RangeErrors(
        questions=questions, mean=float(found.mean()), median=float(np.median(found)), worst=float(found.max())
    )


def _run(size: int, source: RandomSource) -> tuple[int, int]:
    """Return the ends of a run of cells, all runs being equally likely."""
    place = int(integers_below(source, size * (size + 1) // 2, 1)[0])
    low = 0
    while place >= size - low:
        place -= size - low
        low += 1
    return low, low + place + 1


def _miss(difference: Floats, runs: tuple[tuple[int, int], ...]) -> float:
    return abs(float(difference[tuple(slice(low, high) for low, high in runs)].sum()))
