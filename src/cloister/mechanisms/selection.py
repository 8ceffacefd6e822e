"""Private selection: one of several candidates by its score, or what is above a threshold (sparse vector).

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

`SparseVector` says which of many numbers are above a public threshold, paying only for those that are.

The variant that is right (Lyu, Su and Li 2017, algorithm 1; Dwork and Roth 2014): the threshold gets noise once, every
number gets fresh noise scaled to the number of positives allowed, only above or below is told, and it stops after the
last positive. Variants without threshold noise, with noise not scaled to the positives, or that release the number
itself are not private.

Privacy of `SparseVector`: claim epsilon-DP for all answers together. With epsilon1 for the threshold and epsilon2 for
the positives, shift the threshold noise by s steps and that of each positive by 2s (s for monotone numbers): every
answer for one dataset is then an answer for its neighbor, at a factor of exp(epsilon1 + epsilon2) in probability.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core import exact, random, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, PureDP
from cloister.core.random import RandomSource, RandomState
from cloister.core.result import Result
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.base import PurePromise, Selection, exact_numbers, mechanisms, open_source, private_reals
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


_THRESHOLD_STEPS = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdAnswers(Result):
    """Above or below for each number asked, up to and including the last positive that was paid for."""

    schema: ClassVar[str] = "cloister.threshold_answers/1"

    above: tuple[bool, ...]
    event: Event = field(repr=False)

    def __str__(self) -> str:
        return f"{sum(self.above)} of {len(self.above)} above the threshold, {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {"above": list(self.above), "event": self.event.to_dict()}


@mechanisms.register("sparse_vector")
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(PurePromise):
    """Which numbers are above a public threshold, for at most ``positives`` of them."""

    threshold: Fraction
    sensitivity: Fraction
    epsilon: Fraction
    positives: int = 1
    monotone: bool = False
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"

    def __init__(
        self,
        *,
        threshold: Number,
        sensitivity: Number,
        epsilon: Number,
        positives: int = 1,
        monotone: bool = False,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "row",
    ) -> None:
        construct(
            self,
            threshold=threshold,
            sensitivity=sensitivity,
            epsilon=epsilon,
            positives=positives,
            monotone=monotone,
            adjacency=adjacency,
            unit=unit,
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", exact.number(self.threshold, name="threshold"))
        object.__setattr__(self, "sensitivity", validation.check_positive(self.sensitivity, name="sensitivity"))
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon))
        positives = validation.check_count(self.positives, name="positives", at_least=1)
        object.__setattr__(self, "positives", positives)
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @property
    def lattice(self) -> NoiseLattice:
        """Return the lattice that numbers are rounded to."""
        return NoiseLattice(exact.power_of_two_below(self.sensitivity / _THRESHOLD_STEPS))

    @property
    def scales(self) -> tuple[Fraction, Fraction]:
        """Return the scales of the threshold's and the numbers' noise, in lattice steps; the split minimizes error."""
        factor = (1 if self.monotone else 2) * self.positives
        # Every public split is private; a simple fraction near the best one keeps the scales short.
        share = max(Fraction(1 / (1 + factor ** (2 / 3))).limit_denominator(1024), Fraction(1, 1024))
        apart = exact.ceil_div(self.sensitivity, self.lattice.granularity)
        return apart / (self.epsilon * share), factor * apart / (self.epsilon * (1 - share))

    def start(self, *, random_state: RandomState = None) -> ThresholdSession:
        """Return a session that answers one number after the other; its whole epsilon is spent when it starts."""
        source, guarantee = open_source(random_state, self.guarantee)
        return ThresholdSession(self, source, guarantee)

    def release(self, values: object, *, random_state: RandomState = None) -> ThresholdAnswers:
        """Return above or below for each number, in order, until the positives are used up."""
        session = self.start(random_state=random_state)
        above = session.ask(values)
        return ThresholdAnswers(above=tuple(above.tolist()), guarantee=session.guarantee, event=self.event)


class ThresholdSession:
    """A running sparse vector: keeps its noisy threshold secret and counts the positives left.

    It was paid for once, so it cannot be copied, and it answers one caller at a time in the process that started it.
    """

    def __init__(self, mechanism: SparseVector, source: RandomSource, guarantee: PureDP) -> None:
        self.guarantee = guarantee
        self._left = mechanism.positives
        self._lattice = mechanism.lattice
        self._source = source
        self._lock, self._process = threading.Lock(), os.getpid()
        threshold_scale, self._scale = mechanism.scales
        noise = discrete_laplace(threshold_scale).draw(source, 1)[0]
        # The threshold is public, so that its rounding costs nothing.
        self._threshold = round(mechanism.threshold / self._lattice.granularity) + int(noise)

    @property
    def positives_left(self) -> int:
        """Return how many positives the session may still tell."""
        return self._left

    def ask(self, values: object) -> NDArray[np.bool_]:
        """Return above or below for each number, stopping after the last positive."""
        array = np.atleast_1d(np.asarray(values))
        if array.ndim > 1:
            raise ParameterError("The numbers are a matrix, not a list.", fix="ask with one flat list of numbers.")
        steps = self._lattice.steps(private_reals(array, dimensions=array.size))
        with self._lock:
            # Two callers who checked before they held the lock could both be told the last positive.
            self._check_open()
            above = steps + discrete_laplace(self._scale).draw(self._source, steps.size) >= self._threshold
            positions = np.flatnonzero(above)
            if positions.size >= self._left:
                above = above[: positions[self._left - 1] + 1]
            self._left -= int(above.sum())
        return np.asarray(above, dtype=np.bool_)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise ParameterError(
            "A session cannot be copied or stored: each copy would tell positives that were paid for once.",
            fix="start another session; it costs its epsilon again.",
        )

    def _check_open(self) -> None:
        # A forked process would tell the same positives again, behind the same noisy threshold.
        if self._process != os.getpid():
            raise ParameterError("These answers belong to another process.", fix="start one in this process.")
        if not self._left:
            raise ParameterError("All positives are used up.", fix="start a new session; it costs its epsilon again.")
