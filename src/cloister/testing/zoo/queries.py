"""Broken queries: no noise at all, a false assumption, bounds from the data, or budget counted wrongly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

from cloister.core import exact
from cloister.core.guarantees import Adjacency, PureDP
from cloister.testing.bounds import Bounds, discrete_laplace_bounds
from cloister.testing.neighbors import all_neighbors, removals
from cloister.testing.zoo.exhibit import Exhibit, Way

__all__ = ["QUERIES", "TABLE", "func1", "func2", "func3", "func4"]

_CLAIM = PureDP(epsilon=Fraction(1))
_REPLACE = PureDP(epsilon=Fraction(1), adjacency=Adjacency.REPLACE)

Row = tuple[str, int, str]
TABLE: tuple[Row, ...] = (("Frank", 42, "Y"), ("Bob", 31, "Y"), ("Mary", 28, "Y"), ("Dave", 43, "N"))
"""The table of the four canonical functions."""


def func1(_table: Any) -> dict[int, int]:
    """Return 999 whatever the table: private, epsilon 0."""
    return {999: 1}


def func2(table: tuple[Row, ...]) -> dict[int, int]:
    """Return the count of "Y" plus 10: not private."""
    return {_count(table) + 10: 1}


def func3(table: tuple[Row, ...]) -> dict[Row | None, int]:
    """Return the first row: not private."""
    return {table[0] if table else None: 1}


def func4(table: tuple[Row, ...]) -> dict[int, Bounds]:
    """Return the count of "Y" plus discrete Laplace noise: 1-private."""
    return discrete_laplace_bounds(_count(table), scale=Fraction(1), window=(-8, 12))


def _count(table: tuple[Row, ...]) -> int:
    return sum(row[2] == "Y" for row in table)


def _two_counts(scale: Fraction) -> Callable[[tuple[str, ...]], dict[tuple[int, int], Bounds]]:
    """Return the law of two noisy counts of disjoint parts, at lattice points, up to a constant."""

    def law(votes: tuple[str, ...]) -> dict[tuple[int, int], Bounds]:
        first, second = votes.count("a"), votes.count("b")
        return {
            (x, y): exact.exp_bounds(-(abs(x - first) + abs(y - second)) / scale)
            for x, y in product(range(-1, 5), repeat=2)
        }

    return law


def _mean(least_rows: int) -> Callable[[tuple[int, ...]], dict[Fraction, Bounds]]:
    """Return the density of a mean of values in [0, 10] with the noise of a promised number of rows."""
    scale = Fraction(10, least_rows)

    def density(values: tuple[int, ...]) -> dict[Fraction, Bounds]:
        mean = Fraction(sum(values), len(values))
        return {point: exact.exp_bounds(-abs(point - mean) / scale) for point in map(Fraction, range(-2, 13))}

    return density


def _histogram(
    edges: Callable[[tuple[int, ...]], tuple[int, int]], scale: Fraction
) -> Callable[[tuple[int, ...]], dict[Any, Bounds]]:
    """Return two noisy counts, with the edges of the histogram and its middle."""

    def law(values: tuple[int, ...]) -> dict[Any, Bounds]:
        low, high = edges(values)
        below = sum(2 * value < low + high for value in values)
        cells = [discrete_laplace_bounds(count, scale=scale, window=(-1, 4)) for count in (below, len(values) - below)]
        return {
            (low, high, x, y): (p[0] * q[0], p[1] * q[1])
            for (x, p), (y, q) in product(cells[0].items(), cells[1].items())
        }

    return law


def _public_edges(_values: tuple[int, ...]) -> tuple[int, int]:
    return 0, 10


def _edges_of_data(values: tuple[int, ...]) -> tuple[int, int]:
    return min(values), max(values)


_VALUES = tuple(all_neighbors((0, 4, 9), min_rows=1, max_rows=3))

QUERIES: tuple[Exhibit, ...] = (
    Exhibit(
        name="count_plus_constant",
        reference="func2",
        flaw="a deterministic function that is not constant is never private, whatever is added to it.",
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=tuple(removals(TABLE)),
        broken=func2,
        corrected=func4,
    ),
    Exhibit(
        name="first_row",
        reference="func3",
        flaw="releasing one row outright exposes whoever it is about.",
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=tuple(removals(TABLE)),
        broken=func3,
        corrected=func1,
    ),
    Exhibit(
        name="parallel_composition_under_replace",
        reference="E29",
        flaw="a changed record may leave one part and enter another, so disjoint parts cost the sum of two epsilons.",
        claimed=_REPLACE,
        way=Way.DENSITIES,
        neighbors=tuple(all_neighbors("ab", max_rows=3, adjacency=Adjacency.REPLACE)),
        broken=_two_counts(Fraction(1)),
        corrected=_two_counts(Fraction(2)),
    ),
    Exhibit(
        name="mean_with_false_size",
        reference="E21",
        flaw="noise for a mean of at least 1000 rows was added to a mean of three.",
        claimed=_REPLACE,
        way=Way.DENSITIES,
        neighbors=tuple(all_neighbors((0, 5, 10), min_rows=3, max_rows=3, adjacency=Adjacency.REPLACE)),
        broken=_mean(1000),
        corrected=_mean(3),
    ),
    Exhibit(
        name="histogram_edges_from_data",
        reference="E24",
        flaw="the edges of the bins are the least and the largest value (Chang, Zhuang and Samaraweera, listing 2.3).",
        claimed=_CLAIM,
        way=Way.EXACT,
        neighbors=_VALUES,
        broken=_histogram(_edges_of_data, Fraction(1)),
        corrected=_histogram(_public_edges, Fraction(1)),
    ),
    Exhibit(
        name="histogram_ignores_epsilon",
        reference="E24",
        flaw="the noise has scale 1 whatever epsilon is asked for (Chang, Zhuang and Samaraweera, listing 2.3).",
        claimed=PureDP(epsilon=Fraction(1, 10)),
        way=Way.EXACT,
        neighbors=_VALUES,
        broken=_histogram(_public_edges, Fraction(1)),
        corrected=_histogram(_public_edges, Fraction(10)),
    ),
)
