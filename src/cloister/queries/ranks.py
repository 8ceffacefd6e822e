"""Quantiles, minimum and maximum by rank: one point of a public grid, chosen by the exponential mechanism.

Adding noise to a quantile itself would need the whole range as sensitivity. Ranks hardly move, so a point of the grid
is scored by how far it is from the wanted rank (Smith 2011, on a grid): with weights on integer positions,
``below(v)`` the weight before ``v``, ``upto(v)`` the weight up to and with ``v``, and ``t`` the target rank,

    score(v) = -max(0, below(v) - t, t - upto(v)),        t = fraction * total + offset.

The median is ``fraction=1/2``; the k-th smallest ``offset=k``; the k-th largest ``fraction=1, offset=-k``. Every point
of the grid is a candidate. Points between two neighboring positions score alike, so they are drawn as one run with its
number of points, and then one of them uniformly: a grid of 2**40 points costs no more than the positions in use.

Privacy: claim epsilon-DP under the stated relation. The exponential mechanism (McSherry and Talwar 2007) takes ``v``
with probability proportional to ``exp(epsilon * score(v) / (2 * sensitivity))``, drawn exactly, and `rank_sensitivity`
proves how far a unit can move a score. The grid, the target and the sensitivity are public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact, random, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomState, random_source
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.base import PurePromise
from cloister.mechanisms.sampling.inversion import deficits, draw_exponential_weights

__all__ = ["RankSelection", "rank_sensitivity"]

Integers: TypeAlias = NDArray[np.int64]

_LARGEST_STEP = 2**61
_MOST_WEIGHT = 2**62
_EXACT_FLOAT = 2**53


def rank_sensitivity(
    fraction: object, *, weight_per_unit: object = 1, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> Fraction:
    """Return how far one unit of a bounded total weight can move the score of any point, whatever the offset.

    Let a unit of weight ``m <= c`` join, ``b`` of it before ``v`` and ``u`` up to ``v``, so ``0 <= b <= u <= m``, and
    let ``q`` be the fraction. The target moves by ``q m``; so ``below - t`` moves by ``b - q m``, which lies in
    ``[-q m, (1 - q) m]``, and ``t - upto`` by ``q m - u``, in ``[-(1 - q) m, q m]``. The largest of them and 0 moves
    by no more than either: at most ``max(q, 1 - q) c``. A unit at the right place attains it. That is c/2 for the
    median and c for the k-th smallest (q = 0) or largest (q = 1).

    Under replace, a unit of weight ``m`` leaves as one of weight ``m'`` joins: the moves add up to at most
    ``q m + (1 - q) m' <= c`` one way and ``(1 - q) m + q m' <= c`` the other: c for every fraction.

    >>> rank_sensitivity(0.5), rank_sensitivity(0.9, weight_per_unit=10)
    (Fraction(1, 2), Fraction(9, 1))
    """
    share = validation.check_probability(fraction, name="fraction")
    most = validation.check_positive(weight_per_unit, name="weight_per_unit")
    return most if Adjacency(adjacency) == Adjacency.REPLACE else max(share, 1 - share) * most


@dataclass(frozen=True, slots=True)
class _Runs:
    """Stretches of the grid that score alike: where each begins, how many points it has, and its scaled score."""

    starts: Integers
    lengths: Integers
    scores: NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSelection(PurePromise):
    """A private choice of a grid point near a wanted rank; positions, weights and answer are integers.

    Attributes:
        low: the first point of the public grid.
        high: its last point.
        fraction: the target rank as a share of the total weight, from 0 to 1.
        offset: what is added to that, in units of weight; negative counts from the top.
        score_sensitivity: how far a unit can move a score; see `rank_sensitivity`.
        epsilon: the privacy loss.

    >>> median = RankSelection(low=0, high=100, fraction=0.5, score_sensitivity=rank_sensitivity(0.5), epsilon=5)
    >>> 30 <= median.release([28, 31, 42, 43], [50, 50, 50, 50]) <= 43
    True
    """

    low: int
    high: int
    fraction: Fraction = Fraction(0)
    offset: Fraction = Fraction(0)
    score_sensitivity: Fraction
    epsilon: Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"

    def __init__(
        self,
        *,
        low: int,
        high: int,
        fraction: Number = 0,
        offset: Number = 0,
        score_sensitivity: Number,
        epsilon: Number,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        construct(
            self,
            low=low,
            high=high,
            fraction=fraction,
            offset=offset,
            score_sensitivity=score_sensitivity,
            epsilon=epsilon,
            adjacency=adjacency,
            unit=unit,
        )

    def __post_init__(self) -> None:
        low, high = _step(self.low, "low"), _step(self.high, "high")
        if low > high:
            raise ParameterError("The grid is empty: low is above high.", fix="give low <= high.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        sensitivity = validation.check_positive(self.score_sensitivity, name="score_sensitivity")
        object.__setattr__(self, "fraction", validation.check_probability(self.fraction, name="fraction"))
        object.__setattr__(self, "offset", exact.number(self.offset, name="offset"))
        object.__setattr__(self, "score_sensitivity", sensitivity)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @property
    def points(self) -> int:
        """Return how many points the grid has."""
        return self.high - self.low + 1

    def rank_margin(self, confidence: Number = 0.95) -> float:
        """Return how far the rank of the answer is from the target at most, with a probability.

        The published bound ``(2 * sensitivity / epsilon) * ln(points / (1 - confidence))``. A target outside of the
        ranks that exist, such as the tenth smallest of three, is met as well as it can be, less that.
        """
        outside = 1 - validation.check_confidence(confidence)
        logarithm = exact.log_bounds(self.points / outside)[1]
        return exact.float_above(2 * self.score_sensitivity / self.epsilon * logarithm)

    def release(self, positions: object, weights: object, *, random_state: RandomState = None) -> int:
        """Return a grid point chosen by private weights on ascending, distinct positions.

        The guarantee is that of the mechanism only if the random source is secure: see `core.random.caveats_of`.
        """
        source = random_source(random_state)
        runs = self._runs(positions, weights)
        chosen = draw_exponential_weights(source, runs.scores, self._rate, multiplicities=runs.lengths)
        place = random.integers_below(source, int(runs.lengths[chosen]), 1)[0]
        return int(runs.starts[chosen]) + int(place)

    def probabilities(self, positions: object, weights: object) -> tuple[Integers, Integers, NDArray[np.float64]]:
        """Return runs of the grid as (first points, numbers of points, probabilities): private, for tests."""
        runs = self._runs(positions, weights)
        masses = runs.lengths * np.exp(-deficits(runs.scores, self._rate))
        return runs.starts, runs.lengths, np.asarray(masses / masses.sum())

    @property
    def _parts(self) -> int:
        """Return into how many parts a unit of weight is cut so that every target is a whole number of them."""
        return math.lcm(self.fraction.denominator, self.offset.denominator)

    @property
    def _rate(self) -> Fraction:
        return self.epsilon / (2 * self.score_sensitivity * self._parts)

    def _runs(self, positions: object, weights: object) -> _Runs:
        """Return gaps and positions in turn, without the empty gaps; scores are in parts of a unit of weight."""
        places, masses = _whole(positions), _whole(weights)
        self._check(places, masses)
        upto = np.concatenate([[0], np.cumsum(masses)])
        starts = np.empty(2 * places.size + 1, dtype=np.int64)
        starts[0], starts[1::2], starts[2::2] = self.low, places, places + 1
        ends = np.append(starts[1:], self.high + 1)
        ranks = np.repeat(upto, 2)  # before and after each gap; before and after a position are gaps
        scores = self._scores(ranks[:-1], ranks[1:], int(upto[-1]))
        # Neighboring positions have an empty gap between them, and a run without points must not be drawn.
        used = ends > starts
        return _Runs(starts[used], (ends - starts)[used], scores[used])

    def _scores(self, below: Integers, upto: Integers, total: int) -> NDArray[Any]:
        # Nothing is cut off here: the parts were chosen so that every target is whole.
        target = int((self.fraction * total + self.offset) * self._parts)
        # Floats hold these whole numbers and their differences exactly; beyond that, Python's own integers do.
        exact_in_floats = max(self._parts * total, abs(target)) <= _EXACT_FLOAT // 2
        parts, kind = self._parts, np.dtype(np.float64 if exact_in_floats else object)
        first, last = below.astype(kind) * parts, upto.astype(kind) * parts
        return np.asarray(-np.maximum(np.maximum(first - target, target - last), 0))

    def _check(self, places: Integers, masses: Integers) -> None:
        """Refuse positions and weights that cannot be; the message never quotes them."""
        if places.shape != masses.shape or (np.diff(places) <= 0).any():
            raise ParameterError(
                "Positions must ascend and be distinct, with one weight each.",
                fix="group by position and sort before the release.",
            )
        if places.size and not self.low <= places[0] <= places[-1] <= self.high:
            raise ParameterError(
                "A position is outside of the grid.", fix=f"clamp positions to {self.low} .. {self.high}."
            )
        # The total is checked in floats, which cannot wrap around.
        if (masses < 1).any() or masses.sum(dtype=np.float64) >= _MOST_WEIGHT:
            raise ParameterError(
                "Weights must be positive whole numbers that add up to less than 2**62.",
                fix="leave positions without weight out, and give weights in coarser units.",
            )


def _step(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterTypeError(f"{name} is not a whole number.", fix=f"give {name} in whole steps of the grid.")
    if abs(int(value)) >= _LARGEST_STEP:
        raise ParameterError(f"{name} is too large for 64 bits.", fix="use larger steps.")
    return int(value)


def _whole(values: object) -> Integers:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise ParameterTypeError(
            "Positions and weights are not rows of whole numbers.", fix="pass one-dimensional integer arrays."
        )
    return array.astype(np.int64)
