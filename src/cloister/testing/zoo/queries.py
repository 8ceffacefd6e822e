"""Broken queries and selections.

Queries: no noise at all, a false assumption, bounds from the data, or budget counted wrongly. Selections: the
exponential mechanism and the sparse vector technique (Lyu, Su and Li 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from cloister.attacks.auditing.exact_check import Bounds, discrete_laplace_bounds, normalize
from cloister.core import exact
from cloister.core.guarantees import Adjacency, PureDP
from cloister.testing import samplers
from cloister.testing.distributions import Floats
from cloister.testing.neighbors import all_neighbors, removals
from cloister.testing.statistics import Integers
from cloister.testing.zoo.exhibit import Exhibit, Way

__all__ = ["QUERIES", "SELECTION", "TABLE", "func1", "func2", "func3", "func4", "sparse_vector"]


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


_DOMAIN = ("a", "b", "c")
_REPLACE_VOTE = PureDP(epsilon=Fraction(1), adjacency=Adjacency.REPLACE)
_ADD_REMOVE = PureDP(epsilon=Fraction(1))
_UNANSWERED = -1000.0

Votes = tuple[str, ...]


def _exponential(candidates: Callable[[Votes], Sequence[str]], divisor: int) -> Callable[[Votes], dict[str, Bounds]]:
    """Return the exponential mechanism on counts: weights exp(epsilon * count / divisor) at epsilon 1."""

    def law(votes: Votes) -> dict[str, Bounds]:
        return normalize({name: exact.exp_bounds(Fraction(votes.count(name), divisor)) for name in candidates(votes)})

    return law


def _list_domain(_votes: Votes) -> Sequence[str]:
    return _DOMAIN


def _list_votes(votes: Votes) -> Sequence[str]:
    return sorted(set(votes))


def sparse_vector(
    *, threshold_scale: float, query_scale: float, cutoff: int | None, releases_values: bool = False
) -> Callable[[tuple[float, ...], int], Floats]:
    """Return the sparse vector technique with threshold 0: one answer per query, 1 for above, 0 for below.

    Args:
        threshold_scale: the scale of the noise on the threshold; 0 for none.
        query_scale: the scale of the noise on each query; 0 for none.
        cutoff: stop after so many answers above; None for never.
        releases_values: give the noisy query itself in place of 1.
    """

    def run(queries: tuple[float, ...], size: int) -> Floats:
        threshold = _noise(threshold_scale, (size, 1))
        noisy = np.array(queries) + _noise(query_scale, (size, len(queries)))
        above = noisy >= threshold
        answers = np.where(above, noisy if releases_values else 1.0, 0.0)
        if cutoff is not None:
            before: Integers = np.cumsum(above, axis=1) - above
            answers[before >= cutoff] = _UNANSWERED
        return answers

    return run


def _noise(scale: float, shape: tuple[int, int]) -> Floats:
    return samplers.laplace(scale, shape) if scale else np.zeros(shape)


def _pattern(outputs: Floats) -> Floats:
    """Return which answers were above, as digits; the noisy values do not show."""
    digits = np.where(outputs == _UNANSWERED, 2, (outputs != 0).astype(np.int64))
    return np.asarray(digits @ 3.0 ** np.arange(outputs.shape[1]))


def _low_value_after_silence(outputs: Floats) -> Floats:
    """Return 1 where all but the last query were below and the last one, released, is not above 0."""
    silent = (outputs[:, :-1] == 0).all(axis=1)
    return np.asarray(silent & (outputs[:, -1] < 0), dtype=np.float64)


_SAMPLES = 200_000
_EPSILON = 2.0
_SPARSE = PureDP(epsilon=Fraction(2))
_RIGHT = sparse_vector(threshold_scale=2 / _EPSILON, query_scale=4 / _EPSILON, cutoff=1)

SELECTION: tuple[Exhibit, ...] = (
    Exhibit(
        name="exponential_without_factor_two",
        reference="E15",
        flaw="weights exp(epsilon * score / sensitivity) lose up to twice epsilon when scores move both ways.",
        claimed=_REPLACE_VOTE,
        way=Way.EXACT,
        neighbors=tuple(all_neighbors(_DOMAIN, max_rows=3, adjacency=Adjacency.REPLACE)),
        broken=_exponential(_list_domain, 1),
        corrected=_exponential(_list_domain, 2),
    ),
    Exhibit(
        name="candidates_from_data",
        reference="E16",
        flaw="the candidates are the values that occur, so a rare one betrays the only person who has it.",
        claimed=_ADD_REMOVE,
        way=Way.EXACT,
        neighbors=tuple(all_neighbors(_DOMAIN, min_rows=1, max_rows=3)),
        broken=_exponential(_list_votes, 2),
        corrected=_exponential(_list_domain, 2),
    ),
    Exhibit(
        name="sparse_vector_without_query_noise",
        reference="Lyu, Su and Li (2017), algorithm 5",
        flaw="only the threshold is noisy, so one query above and a larger one below is impossible.",
        claimed=_SPARSE,
        way=Way.STATISTICAL,
        neighbors=(((0.0, 1.0), (1.0, 0.0)),),
        broken=sparse_vector(threshold_scale=2 / _EPSILON, query_scale=0, cutoff=None),
        corrected=_RIGHT,
        features={"pattern": _pattern},
    ),
    Exhibit(
        name="sparse_vector_without_threshold_noise",
        reference="after Lyu, Su and Li (2017)",
        flaw="without noise on the threshold every answer below costs budget, and they are not counted.",
        claimed=_SPARSE,
        way=Way.STATISTICAL,
        neighbors=(((-1.0,) * 12, (0.0,) * 12),),
        broken=sparse_vector(threshold_scale=0, query_scale=4 / _EPSILON, cutoff=1),
        corrected=_RIGHT,
        features={"pattern": _pattern},
        samples=_SAMPLES,
    ),
    Exhibit(
        name="sparse_vector_without_cutoff",
        reference="Lyu, Su and Li (2017), algorithm 6",
        flaw="the budget is not split over the answers above, which never end.",
        claimed=_SPARSE,
        way=Way.STATISTICAL,
        neighbors=(((0.0,) * 6, (-1.0,) * 3 + (1.0,) * 3),),
        broken=sparse_vector(threshold_scale=2 / _EPSILON, query_scale=2 / _EPSILON, cutoff=None),
        corrected=_RIGHT,
        features={"pattern": _pattern},
        samples=_SAMPLES,
    ),
    Exhibit(
        name="sparse_vector_budget_not_split",
        reference="Lyu, Su and Li (2017), algorithm 4",
        flaw="the noise on queries does not grow with the number of answers above that are allowed.",
        claimed=_SPARSE,
        way=Way.STATISTICAL,
        neighbors=(((0.0,) * 6, (-1.0,) * 3 + (1.0,) * 3),),
        broken=sparse_vector(threshold_scale=4 / _EPSILON, query_scale=4 / (3 * _EPSILON), cutoff=3),
        corrected=sparse_vector(threshold_scale=2 / _EPSILON, query_scale=12 / _EPSILON, cutoff=3),
        features={"pattern": _pattern},
        samples=_SAMPLES,
    ),
    Exhibit(
        name="sparse_vector_releases_values",
        reference="Lyu, Su and Li (2017), algorithm 3",
        flaw="the noisy query that beat the threshold is released with its noise, and so bounds the threshold.",
        claimed=_SPARSE,
        way=Way.STATISTICAL,
        neighbors=(((0.0,) * 5 + (1.0,), (1.0,) * 5 + (0.0,)),),
        broken=sparse_vector(threshold_scale=2 / _EPSILON, query_scale=2 / _EPSILON, cutoff=1, releases_values=True),
        corrected=_RIGHT,
        features={"pattern": _pattern, "low value after silence": _low_value_after_silence},
        samples=_SAMPLES,
    ),
)
