"""The calibration of a fit's noise: what shares of its budget buy, for whoever is protected.

Estimators count what one row may change when it is added or removed. Whoever is protected may change more: a person
with at most m rows changes m of them, and a replaced row is one removed and one added. By group privacy, a mechanism
that is (epsilon/r, delta/(1 + e + ... + e^(r-1)))-private for one row, e being exp(epsilon/r), is
(epsilon, delta)-private for r rows; `NoiseCalibration.epsilon` and `NoiseCalibration.delta` are those for one row.

Without delta every part is paid in epsilon, and shares add up. With delta, Gaussian parts are accounted together: noise
with multipliers m_i is as private as one release with 1/m**2 = sum 1/m_i**2, so a share w has multiplier m / sqrt(w).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from cloister.accounting.budget import Budget
from cloister.accounting.conversions import gaussian_multiplier, zero_concentrated_to_epsilon
from cloister.accounting.events import ApproxEvent, Event, GaussianEvent, PureEvent, SequenceEvent
from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP
from cloister.errors import ParameterError
from cloister.mechanisms.step_noise import GaussianSteps, LaplaceSteps

__all__ = ["FitStep", "NoiseCalibration", "StepNoise"]

StepNoise = LaplaceSteps | GaussianSteps

_SLACK = Fraction(1, 10**15)
_SMALLEST = Fraction(1, 10**9)
_FINE = 2**40
_HALVINGS = 80


@dataclass(frozen=True, slots=True)
class FitStep:
    """One part of a fit: what it is for, and what it is for the accountants."""

    label: str
    event: Event

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"label": self.label, "event": self.event.to_dict()}


@dataclass(frozen=True, kw_only=True)
class NoiseCalibration:
    """The noise that shares of a budget buy: the budget is for the protected unit, the noise for one row more or less.

    Where the unit is a person, all of their rows are added or removed, which is the relation "user".

    >>> calibration = NoiseCalibration.of(epsilon=1, adjacency="replace")
    >>> calibration.epsilon, calibration.guarantee().brief()
    (Fraction(1, 2), 'epsilon = 1 per row')
    """

    budget: Budget
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"
    max_rows_per_unit: int = 1

    @classmethod
    def of(cls, *, epsilon: Number, delta: Number = 0, **protected: Any) -> Self:  # whatever a user gave
        """Return the calibration to a price as it was given, and to whom it protects.

        Raises:
            ParameterError: if epsilon is not positive, or delta is not a probability.
        """
        price = Budget(epsilon=validation.check_epsilon(epsilon), delta=validation.check_delta(delta))
        return cls(budget=price, **protected)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        validation.check_epsilon(self.budget.epsilon)
        set_(self, "adjacency", Adjacency(self.adjacency))
        if self.unit != "row" and self.adjacency is Adjacency.ADD_REMOVE:
            set_(self, "adjacency", Adjacency.USER)
        known = (Adjacency.ADD_REMOVE, Adjacency.REPLACE) if self.unit == "row" else (Adjacency.USER,)
        if self.adjacency not in known:
            raise _unknown(self.adjacency, is_person=self.unit != "row")
        most = validation.check_count(self.max_rows_per_unit, name="max_rows_per_unit", at_least=1)
        set_(self, "max_rows_per_unit", most)

    @property
    def rows(self) -> int:
        """Return how many rows neighbors differ in, each added or removed."""
        return self.max_rows_per_unit * (2 if self.adjacency is Adjacency.REPLACE else 1)

    @property
    def epsilon(self) -> Fraction:
        """Return the epsilon for one row."""
        return self.budget.amount / self.rows

    @cached_property
    def delta(self) -> Fraction:
        """Return the delta for one row, rounded down."""
        if self.rows == 1 or not self.budget.delta:
            return self.budget.delta
        # The factor rounds up, since delta is divided by it.
        factor = sum(exact.exp_bounds(place * self.epsilon)[1] for place in range(self.rows))
        return self.budget.delta / factor

    @property
    def is_pure(self) -> bool:
        """Return whether there is no delta."""
        return self.budget.delta == 0

    @cached_property
    def squared_multiplier(self) -> Fraction:
        """Return the square of sigma over sensitivity of one Gaussian release that takes everything, rounded up."""
        if self.epsilon < _SMALLEST:
            raise ParameterError("epsilon is too small for Gaussian noise.", fix="use epsilon of at least 1e-9.")
        # The slack pays for the step from continuous noise to the lattice, see the Gaussian mechanism.
        squared = gaussian_multiplier(self.epsilon - _SLACK, self.delta) ** 2
        return Fraction(math.ceil(squared * _FINE), _FINE)

    @cached_property
    def rho(self) -> Fraction:
        """Return the largest rho that implies (epsilon, delta) for the protected unit, rounded down."""
        if self.is_pure:
            raise ParameterError("Without a delta there is no rho.", fix="give a delta, such as delta=1e-6.")
        # The epsilon of rho is always above rho, so that the largest rho lies between these.
        low, high = Fraction(0), self.budget.amount
        for _ in range(_HALVINGS):
            # A short denominator keeps halvings quick; it rounds down, towards less budget.
            middle = Fraction(math.floor((low + high) / 2 * _FINE * _FINE), _FINE * _FINE)
            holds = zero_concentrated_to_epsilon(middle, delta=self.budget.delta) <= self.budget.amount
            low, high = (middle, high) if holds else (low, middle)
        if not low:
            raise ParameterError("epsilon is too small for Gaussian noise.", fix="use epsilon of at least 1e-9.")
        return low

    # What shares buy -------------------------------------------------------------------------------------------------

    def laplace(self, share: Fraction, *, sensitivity: int) -> LaplaceSteps:
        """Return the noise that a share of epsilon buys for whole numbers of which a row moves so much in L1."""
        return LaplaceSteps(sensitivity, self.epsilon * share)

    def gaussian(self, share: Fraction, *, squared_sensitivity: int) -> GaussianSteps:
        """Return the noise that a share buys for whole numbers of which a row moves so much in squared L2."""
        return GaussianSteps.dominating(squared_sensitivity, self.squared_multiplier / share)

    def noise(self, share: Fraction, *, sensitivity: int, squared_sensitivity: int) -> StepNoise:
        """Return Laplace noise without a delta, Gaussian with one."""
        if self.is_pure:
            return self.laplace(share, sensitivity=sensitivity)
        return self.gaussian(share, squared_sensitivity=squared_sensitivity)

    def share_event(self, share: Fraction) -> Event:
        """Return what a share is for the accountants of rows, however it is spent."""
        if self.is_pure:
            return PureEvent(epsilon=self.epsilon * share)
        return GaussianEvent(squared_multiplier=self.squared_multiplier / share)

    # What it amounts to ----------------------------------------------------------------------------------------------

    def event(self, steps: tuple[FitStep, ...]) -> Event:
        """Return what the steps together are for the accountants of the protected unit."""
        if self.rows == 1:
            return SequenceEvent(events=tuple(step.event for step in steps))
        # Steps are events of one row. Group privacy made them a promise to the unit, and only that may be composed.
        if self.is_pure:
            return PureEvent(epsilon=self.budget.amount)
        return ApproxEvent(epsilon=self.budget.amount, delta=self.budget.delta)

    def guarantee(self, *, assumptions: tuple[str, ...] = (), free: bool = False) -> PureDP | ApproxDP:
        """Return what a model promises; one that is ``free`` does not look at the rows."""
        common: dict[str, Any] = {"adjacency": self.adjacency, "unit": self.unit, "assumptions": assumptions}
        if free:
            return PureDP(epsilon=Fraction(0), **common)
        if self.is_pure:
            return PureDP(epsilon=self.budget.amount, **common)
        return ApproxDP(epsilon=self.budget.amount, delta=self.budget.delta, **common)


def _unknown(adjacency: Adjacency, *, is_person: bool) -> ParameterError:
    if is_person:
        return ParameterError(
            "Persons come and go with all their rows; they are not replaced.", fix='use adjacency="add_remove".'
        )
    return ParameterError(f'The neighbor relation "{adjacency}" is not known here.', fix="use add_remove or replace.")
