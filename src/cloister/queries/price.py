"""What an analyst offers for an answer: epsilon, epsilon with delta, or rho."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.accounting.budget import Budget
from cloister.core import exact, validation
from cloister.core.guarantees import Adjacency, ApproxDP, DifferentialPrivacy, PureDP, ZeroConcentratedDP
from cloister.errors import ParameterError

__all__ = ["Price"]


@dataclass(frozen=True, slots=True)
class Price:
    """One offer, exact: ``epsilon`` (and ``delta``), or ``rho`` (and ``delta``)."""

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction

    @classmethod
    def of(cls, *, epsilon: object = None, rho: object = None, delta: object = 0) -> Price:
        """Return a checked offer."""
        if (epsilon is None) == (rho is None):
            raise ParameterError(
                "An answer is paid in epsilon or in rho, one of them.",
                fix="write epsilon=0.1, or epsilon=0.1 with delta=1e-6, or rho=0.01.",
            )
        slack = validation.check_delta(delta)
        if epsilon is not None:
            return cls(validation.check_epsilon(epsilon), None, slack)
        return cls(None, validation.check_positive(rho, name="rho"), slack)

    @classmethod
    def of_budget(cls, budget: Budget) -> Price:
        """Return the offer that a share of a budget is."""
        return cls.of(epsilon=budget.epsilon, rho=budget.rho, delta=budget.delta)

    def guarantee(self, *, adjacency: Adjacency, unit: str, assumptions: tuple[str, ...]) -> DifferentialPrivacy:
        """Return what an answer at this price promises."""
        common: dict[str, Any] = {"adjacency": adjacency, "unit": unit, "assumptions": assumptions}
        if self.rho is not None:
            return ZeroConcentratedDP(rho=self.rho, delta=self.delta, **common)
        if self.epsilon is not None and self.delta:
            return ApproxDP(epsilon=self.epsilon, delta=self.delta, **common)
        return PureDP(epsilon=self.amount, **common)

    @property
    def amount(self) -> Fraction:
        """Return epsilon or rho."""
        return exact.number(self.epsilon if self.epsilon is not None else self.rho)

    def without_delta(self) -> Price:
        """Return the offer for an answer that needs no delta."""
        return Price(self.epsilon, self.rho, Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        measure = "epsilon" if self.epsilon is not None else "rho"
        return {measure: exact.text(self.amount), "delta": exact.text(self.delta)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Price:
        """Return the offer that `to_dict` wrote."""
        return cls.of(**values)
