"""Which of many numbers are above a public threshold, paying only for those that are (the sparse vector technique).

The variant that is right (Lyu, Su and Li 2017, algorithm 1; Dwork and Roth 2014): the threshold gets noise once, every
number gets fresh noise scaled to the number of positives allowed, only above or below is told, and it stops after the
last positive. Variants without threshold noise, with noise not scaled to the positives, or that release the number
itself are not private.

Privacy: claim epsilon-DP for all answers together. With epsilon1 for the threshold and epsilon2 for the positives,
shift the threshold noise by s steps and that of each positive by 2s (s for monotone numbers): every answer for one
dataset is then an answer for its neighbor, at a factor of exp(epsilon1 + epsilon2) in probability.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, PureDP
from cloister.core.random import RandomSource, RandomState
from cloister.core.result import Result
from cloister.errors import ParameterError
from cloister.mechanisms.base import PurePromise, mechanisms, open_source, private_reals
from cloister.mechanisms.lattice import NoiseLattice
from cloister.mechanisms.sampling.discrete_noise import discrete_laplace

_STEPS_PER_SENSITIVITY = 2**20


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
        return NoiseLattice(exact.power_of_two_below(self.sensitivity / _STEPS_PER_SENSITIVITY))

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
