"""Broken selection: the exponential mechanism and the sparse vector technique (Lyu, Su and Li 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from cloister.core import exact
from cloister.core.guarantees import Adjacency, PureDP
from cloister.testing import samplers
from cloister.testing.bounds import Bounds, normalized
from cloister.testing.distributions import Floats
from cloister.testing.neighbors import all_neighbors
from cloister.testing.statistics import Integers
from cloister.testing.zoo.exhibit import Exhibit, Way

__all__ = ["SELECTION", "sparse_vector"]

_DOMAIN = ("a", "b", "c")
_REPLACE = PureDP(epsilon=Fraction(1), adjacency=Adjacency.REPLACE)
_ADD_REMOVE = PureDP(epsilon=Fraction(1))
_UNANSWERED = -1000.0

Votes = tuple[str, ...]


def _exponential(candidates: Callable[[Votes], Sequence[str]], divisor: int) -> Callable[[Votes], dict[str, Bounds]]:
    """Return the exponential mechanism on counts: weights exp(epsilon * count / divisor) at epsilon 1."""

    def law(votes: Votes) -> dict[str, Bounds]:
        return normalized({name: exact.exp_bounds(Fraction(votes.count(name), divisor)) for name in candidates(votes)})

    return law


def _declared(_votes: Votes) -> Sequence[str]:
    return _DOMAIN


def _seen(votes: Votes) -> Sequence[str]:
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
        claimed=_REPLACE,
        way=Way.EXACT,
        neighbors=tuple(all_neighbors(_DOMAIN, max_rows=3, adjacency=Adjacency.REPLACE)),
        broken=_exponential(_declared, 1),
        corrected=_exponential(_declared, 2),
    ),
    Exhibit(
        name="candidates_from_data",
        reference="E16",
        flaw="the candidates are the values that occur, so a rare one betrays the only person who has it.",
        claimed=_ADD_REMOVE,
        way=Way.EXACT,
        neighbors=tuple(all_neighbors(_DOMAIN, min_rows=1, max_rows=3)),
        broken=_exponential(_seen, 2),
        corrected=_exponential(_declared, 2),
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
