"""A budget, and what a release takes from it (its price), in exact arithmetic.

A budget is counted either in (epsilon, delta), where losses add up by basic composition, or in (rho, delta), where they
add up as zero-concentrated differential privacy (Bun and Steinke 2016), tighter for many small releases. Both sums
stay valid when every release is chosen after seeing the answers before it, so either may be used as a filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import (
    Adjacency,
    ApproxDP,
    DifferentialPrivacy,
    Guarantee,
    PureDP,
    ZeroConcentratedDP,
)
from cloister.core.wordings import format_parameter, format_price
from cloister.errors import AccountingError, BudgetExceededError, ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An amount of privacy loss: ``Budget(epsilon=3, delta=1e-6)`` or ``Budget(rho=0.5, delta=1e-6)``.

    What is left of a budget and the price of a release are such amounts too.

    >>> Budget(epsilon=1) - Budget(epsilon=0.1)
    Budget(epsilon=0.9)
    """

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number = 0,
    ) -> None:
        construct(self, epsilon=epsilon, rho=rho, delta=delta)

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError(
                "A budget is counted in epsilon or in rho, one of them.",
                fix="write Budget(epsilon=3, delta=1e-6) or Budget(rho=0.5, delta=1e-6).",
            )
        amount = validation.check_non_negative(self.amount_given, name=self.measure)
        object.__setattr__(self, self.measure, amount)
        object.__setattr__(self, "delta", validation.check_delta(self.delta))

    @property
    def measure(self) -> str:
        """Return "epsilon" or "rho"."""
        return "epsilon" if self.epsilon is not None else "rho"

    @property
    def amount_given(self) -> object:
        """Return the number in its own measure, as it was given."""
        return self.epsilon if self.epsilon is not None else self.rho

    @property
    def amount(self) -> Fraction:
        """Return the number in its own measure."""
        return exact.number(self.amount_given)

    @property
    def words(self) -> str:
        """Return the amount as people write it.

        >>> Budget(epsilon=0.5, delta=1e-6).words
        'epsilon 0.5, delta 1e-06'
        """
        return format_price(self.measure, self.amount, self.delta)

    def __repr__(self) -> str:
        slack = f", delta={format_parameter(self.delta)}" if self.delta else ""
        return f"Budget({self.measure}={format_parameter(self.amount)}{slack})"

    def __add__(self, other: Budget) -> Budget:
        return self._combine(other, self.amount + other.amount, self.delta + other.delta)

    def __sub__(self, other: Budget) -> Budget:
        self.check_covers(other)
        return self._combine(other, self.amount - other.amount, self.delta - other.delta)

    def covers(self, other: Budget) -> bool:
        """Return whether this much is enough for another amount of the same measure."""
        self._check_same_measure(other)
        return other.amount <= self.amount and other.delta <= self.delta

    def check_covers(self, other: Budget, *, whose: str = "") -> None:
        """Raise `BudgetExceededError` unless this much is enough for another amount of the same measure."""
        self._check_same_measure(other)
        for name, needed, left in ((self.measure, other.amount, self.amount), ("delta", other.delta, self.delta)):
            if needed > left:
                raise BudgetExceededError(requested=needed, remaining=left, measure=name, whose=whose)

    def spent_nothing(self) -> Budget:
        """Return zero in the same measure."""
        return self._of(Fraction(0), Fraction(0))

    def cost_of(self, guarantee: Guarantee) -> Budget:
        """Return what a release with a guarantee takes from a budget of this measure.

        In rho, pure epsilon costs epsilon**2 / 2 and (epsilon, delta) costs epsilon**2 / 2 with slack delta
        (Bun and Steinke 2016, proposition 1.4 and lemma 8.8).
        """
        match guarantee, self.measure:
            case (PureDP(epsilon=epsilon), "epsilon"):
                return self._of(epsilon, Fraction(0))
            case (ApproxDP(epsilon=epsilon, delta=delta), "epsilon"):
                return self._of(epsilon, delta)
            case (PureDP(epsilon=epsilon), "rho"):
                return self._of(epsilon**2 / 2, Fraction(0))
            case (ApproxDP(epsilon=epsilon, delta=delta), "rho"):
                return self._of(epsilon**2 / 2, delta)
            case (ZeroConcentratedDP(rho=rho, delta=delta), "rho"):
                return self._of(rho, delta)
        raise AccountingError(
            f"A release with a guarantee of kind {guarantee.kind} cannot be charged to a budget in {self.measure}.",
            fix="open the account with Budget(rho=..., delta=...), or release under epsilon (and delta).",
        )

    def guarantee(self, *, adjacency: Adjacency, unit: str, assumptions: tuple[str, ...]) -> DifferentialPrivacy:
        """Return what a release at this price promises."""
        common: dict[str, Any] = {"adjacency": adjacency, "unit": unit, "assumptions": assumptions}
        if self.measure == "rho":
            return ZeroConcentratedDP(rho=self.amount, delta=self.delta, **common)
        if self.delta:
            return ApproxDP(epsilon=self.amount, delta=self.delta, **common)
        return PureDP(epsilon=self.amount, **common)

    def without_delta(self) -> Budget:
        """Return the same amount without slack, for a release that needs none."""
        return self._of(self.amount, Fraction(0)) if self.delta else self

    def amounts(self) -> dict[str, str]:
        """Return the numbers alone, rationals as text such as ``"1/10"``; ``Budget(**amounts)`` is the same again."""
        return {self.measure: exact.text(self.amount), "delta": exact.text(self.delta)}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; rationals are text such as ``"1/10"``."""
        return {"schema": "cloister.budget/1", **self.amounts()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Budget:
        """Return the budget that `to_dict` wrote."""
        if values.get("schema") != "cloister.budget/1":
            raise ParameterError("This is not a budget.", fix="use a dictionary written by Budget.to_dict().")
        return cls(**{name: value for name, value in values.items() if name != "schema"})

    def _of(self, amount: Fraction, delta: Fraction) -> Budget:
        return Budget(**{self.measure: amount, "delta": delta})

    def _combine(self, other: Budget, amount: Fraction, delta: Fraction) -> Budget:
        self._check_same_measure(other)
        return self._of(amount, delta)

    def _check_same_measure(self, other: Budget) -> None:
        if self.measure != other.measure:
            raise ParameterError(
                f"A budget in {self.measure} and one in {other.measure} cannot be combined.",
                fix=f"express both in {self.measure}.",
            )
