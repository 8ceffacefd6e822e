"""How far apart two tables are, by the total variation between their marginals.

The total variation between two distributions over the same cells is half the sum of absolute differences: the largest
difference between the two answers to any question about these cells. 0 is the same, 1 has nothing in common.

Beside each mean stands what a table of as many rows would have that is drawn from the real rows themselves: no
synthetic table can be expected to be nearer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource, permutation
from cloister.synth.evaluation.tables import CodedRows, Floats, Tables

__all__ = ["ColumnDistance", "MarginalDistances", "column_distances", "marginal_distances", "total_variation"]

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
    chosen = list(_chosen(count, ways, source))
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


def _chosen(count: int, ways: int, source: RandomSource) -> Iterator[tuple[int, ...]]:
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
