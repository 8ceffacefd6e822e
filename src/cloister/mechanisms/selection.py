"""Private selection: one of several candidates by its score.

`Select` chooses one candidate. Four methods behind one call, all epsilon-private, for scores that a neighbor moves by
at most ``score_sensitivity``:

- ``permute_and_flip`` (McKenna and Sheldon 2020), the default: never worse than the exponential mechanism;
- ``exponential`` (McSherry and Talwar 2007): ``Pr[r]`` proportional to exp(epsilon * score / (2 * sensitivity));
- ``gumbel``: the largest score with Gumbel noise, in law the exponential mechanism and drawn as such;
- ``laplace_max``: the largest score with discrete Laplace noise, ties going to the first.

The factor 2 is dropped for *monotone* scores, which one change moves all in the same direction, such as counts
under add/remove. Candidates must be known without looking at the data: taking them from the data reveals rare ones.
Only the chosen candidate is released; its score would cost extra.

Privacy of `Select`: the first three have the published proofs and are drawn exactly from the scores as given.
``laplace_max``: fix the noise of the others; a neighbor moves the lead that the winner needs by at most 2s steps (s if
monotone), and the discrete Laplace tail falls by at most exp(epsilon) over that many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact, random, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomSource, RandomState
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.base import PurePromise, Selection, exact_numbers, mechanisms, open_source
from cloister.mechanisms.lattice import NoiseLattice
from cloister.mechanisms.sampling.coins import toss_exponentials
from cloister.mechanisms.sampling.discrete_noise import discrete_laplace
from cloister.mechanisms.sampling.inversion import (
    FixedPointInterval,
    deficits,
    draw_exponential_weights,
    exact_deficits,
)

METHODS = ("permute_and_flip", "exponential", "gumbel", "laplace_max")
_STEPS_PER_SENSITIVITY = 2**20
_EXACT_FLOAT = 2**53


@mechanisms.register("select")
@dataclass(frozen=True, slots=True, kw_only=True)
class Select(PurePromise):
    """A private choice of one of several public candidates.

    >>> sports = Select(candidates=["football", "tennis"], score_sensitivity=1, epsilon=1, monotone=True)
    >>> sports.release([49, 2]).choice
    'football'
    """

    candidates: tuple[Any, ...]
    score_sensitivity: Fraction
    epsilon: Fraction
    monotone: bool = False
    method: str = "permute_and_flip"
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"

    def __init__(
        self,
        *,
        candidates: Sequence[Any],
        score_sensitivity: Number,
        epsilon: Number,
        monotone: bool = False,
        method: str = "permute_and_flip",
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        construct(
            self,
            candidates=candidates,
            score_sensitivity=score_sensitivity,
            epsilon=epsilon,
            monotone=monotone,
            method=method,
            adjacency=adjacency,
            unit=unit,
        )

    def __post_init__(self) -> None:
        _check_candidates(self.candidates)
        object.__setattr__(self, "candidates", tuple(self.candidates))
        sensitivity = validation.check_positive(self.score_sensitivity, name="score_sensitivity")
        object.__setattr__(self, "score_sensitivity", sensitivity)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        validation.check_choice(self.method, name="method", allowed=METHODS)

    @property
    def rate(self) -> Fraction:
        """Return by how much the exponent grows per point of score."""
        return self.epsilon / ((1 if self.monotone else 2) * self.score_sensitivity)

    def probabilities(self, scores: object) -> NDArray[np.float64]:
        """Return the probability of each candidate under the exponential mechanism: private, for tests and teaching."""
        # The best candidate has a deficit of 0, so that the sum is at least 1.
        weights = np.exp(-deficits(self._scores(scores), self.rate))
        return np.asarray(weights / weights.sum())

    def shortfall(self, probability: Number = 0.05) -> float:
        """Return how far below the best score the choice can be, except with a probability: ln(count/p) / rate."""
        beyond = validation.check_confidence(probability)
        return math.log(len(self.candidates) / float(beyond)) / float(self.rate)

    def release(self, scores: object, *, random_state: RandomState = None) -> Selection:
        """Return one candidate, chosen by private scores given in the order of the candidates."""
        source, guarantee = open_source(random_state, self.guarantee)
        values = self._scores(scores)
        match self.method:
            case "permute_and_flip":
                index = self._permute_and_flip(source, values)
            case "laplace_max":
                index = self._laplace_max(source, values)
            case _:
                index = draw_exponential_weights(source, values, self.rate)
        return Selection(index=index, choice=self.candidates[index], guarantee=guarantee, event=self.event)

    def _scores(self, scores: object) -> NDArray[Any]:
        values = exact_numbers(scores)
        if values.shape != (len(self.candidates),):
            raise ParameterError(
                f"There are {len(self.candidates)} candidates, but the scores have another shape.",
                fix="pass one score for each candidate, in the same order.",
            )
        if values.dtype == np.int64:
            # Beyond 2**53 a double would round scores, which could take neighbors further apart than declared.
            return values.astype(np.float64 if (np.abs(values) <= _EXACT_FLOAT).all() else object)
        return values

    def _permute_and_flip(self, source: RandomSource, scores: NDArray[Any]) -> int:
        """Visit candidates in random order, taking one with probability exp(rate * (score - best)), 1 for the best."""
        order = random.permutation(source, scores.size)
        shuffled = scores[order]

        def exactly(index: int, bits: int) -> FixedPointInterval:
            return FixedPointInterval.exp_of_minus(exact_deficits(shuffled, self.rate)[index], bits)

        # All coins are tossed at once: that of the best falls heads for certain, and what follows the first head is
        # ignored.
        heads = toss_exponentials(source, deficits(shuffled, self.rate), exactly)
        return int(order[np.argmax(heads)])

    def _laplace_max(self, source: RandomSource, scores: NDArray[Any]) -> int:
        granularity = exact.power_of_two_below(self.score_sensitivity / _STEPS_PER_SENSITIVITY)
        # Rounding to the lattice moves neighbors apart by whole steps, rounded up.
        apart = exact.ceil_div(self.score_sensitivity, granularity)
        scale = (1 if self.monotone else 2) * apart / self.epsilon
        noisy = NoiseLattice(granularity).steps(scores) + discrete_laplace(scale).draw(source, scores.size)
        return int(np.argmax(noisy))


def select(
    scores: object,
    *,
    candidates: Sequence[Any],
    score_sensitivity: object,
    epsilon: Number,
    monotone: bool = False,
    method: str = "permute_and_flip",
    random_state: RandomState = None,
) -> Selection:
    """Return one of the public candidates, chosen by private scores; see the module for the methods."""
    mechanism = Select(
        candidates=tuple(candidates),
        score_sensitivity=exact.number(score_sensitivity, name="score_sensitivity"),
        epsilon=exact.number(epsilon, name="epsilon"),
        monotone=monotone,
        method=method,
    )
    return mechanism.release(scores, random_state=random_state)


def _check_candidates(candidates: object) -> None:
    if isinstance(candidates, str) or not isinstance(candidates, Sequence):
        raise ParameterTypeError("The candidates are not a list.", fix='write candidates=["a", "b"].')
    if not candidates:
        raise ParameterError("There are no candidates.", fix="declare the public list of what may be chosen.")
