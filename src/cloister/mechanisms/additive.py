"""The common part of mechanisms that add integer noise on a lattice."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core import validation
from cloister.core.guarantees import Adjacency, DifferentialPrivacy
from cloister.core.random import RandomState
from cloister.mechanisms.base import NoisyAnswer, open_source, private_integers, private_reals, unwrap
from cloister.mechanisms.lattice import Lattice, choose_granularity
from cloister.mechanisms.sampling.blocks import Sampler


@dataclass(frozen=True, slots=True, kw_only=True)
class LatticeNoise:
    """Integer noise added to the number of lattice steps of a value.

    ``sensitivity`` is how far neighboring datasets can move the value; it has no default, since only the caller knows.
    """

    sensitivity: Fraction
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"

    def __post_init__(self) -> None:
        sensitivity = validation.check_positive(self.sensitivity, name="sensitivity")
        object.__setattr__(self, "sensitivity", sensitivity)
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    @property
    @abstractmethod
    def guarantee(self) -> DifferentialPrivacy:
        """Return what a release promises."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """Return what a release is for the accountants."""

    @property
    @abstractmethod
    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise on one coordinate."""

    @abstractmethod
    def margin(self, confidence: object = 0.95) -> float:
        """Return the half-width that covers the noise on one coordinate with a probability."""

    @abstractmethod
    def _sampler(self) -> Sampler: ...

    @abstractmethod
    def _to_steps(self, value: object) -> NDArray[Any]: ...

    @abstractmethod
    def _from_steps(self, steps: NDArray[Any]) -> NDArray[Any]: ...

    def release(self, value: object, *, random_state: RandomState = None) -> NoisyAnswer:
        """Return the value with independent noise on every coordinate."""
        source, guarantee = open_source(random_state, self.guarantee)
        steps = self._to_steps(value)
        noisy = steps.ravel() + self._sampler().draw(source, steps.size)
        answer = unwrap(self._from_steps(noisy).reshape(steps.shape))
        return NoisyAnswer(value=answer, guarantee=guarantee, mechanism=self, event=self.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerNoise(LatticeNoise):
    """Noise on whole numbers, such as counts: the lattice is the integers."""

    def _to_steps(self, value: object) -> NDArray[Any]:
        return private_integers(value)

    def _from_steps(self, steps: NDArray[Any]) -> NDArray[Any]:
        return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class RealNoise(LatticeNoise):
    """Noise on real numbers, rounded to a lattice of public granularity."""

    dimensions: int = 1
    granularity: Fraction | None = None

    def __post_init__(self) -> None:
        LatticeNoise.__post_init__(self)
        dimensions = validation.check_count(self.dimensions, name="dimensions", at_least=1)
        object.__setattr__(self, "dimensions", dimensions)

    @property
    def lattice(self) -> Lattice:
        """Return the lattice that values are rounded to."""
        return Lattice(Fraction(self.granularity or 1))

    def _choose_granularity(self, scale: Fraction) -> None:
        """Settle the granularity, given the scale that the noise will have."""
        granularity = choose_granularity(
            self.granularity, scale=scale, sensitivity=self.sensitivity, dimensions=self.dimensions
        )
        object.__setattr__(self, "granularity", granularity)

    def _to_steps(self, value: object) -> NDArray[Any]:
        return self.lattice.steps(private_reals(value, dimensions=self.dimensions))

    def _from_steps(self, steps: NDArray[Any]) -> NDArray[Any]:
        return self.lattice.values(steps)
