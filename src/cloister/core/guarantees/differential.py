"""Differential privacy in its forms, central and local.

Definitions follow Dwork and Roth (2014) for pure and approximate differential privacy, Bun and Steinke (2016) for
zero-concentrated, Mironov (2017) for Rényi. The delta of approximate differential privacy is an additive slack on the
probability of any event; it is *not* the probability that the pure guarantee fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees.base import Adjacency, Caveat, Guarantee, register
from cloister.core.wordings import format_factor, format_parameter
from cloister.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentialPrivacy(Guarantee):
    """The base of the guarantees that bound what any observer learns about one unit."""

    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        if not str(self.unit).strip():
            raise ParameterError("The protected unit has no name.", fix='write for example unit="patient".')

    def _neighbors(self) -> str:
        return self.adjacency.meaning.format(unit=self.unit)


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(DifferentialPrivacy):
    """The probability of any output changes by at most a factor exp(epsilon)."""

    kind: ClassVar[str] = "pure_dp"
    epsilon: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        construct(self, unit=unit, assumptions=assumptions, caveats=caveats, adjacency=adjacency, epsilon=epsilon)

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))

    def _numbers(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _promise(self) -> str:
        return (
            f"Whatever anyone concludes from this output would have been nearly as likely if {self._neighbors()}: "
            f"no probability changes by more than a factor of {_factor(self.epsilon)} "
            f"(epsilon = {format_parameter(self.epsilon)})."
        )


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxDP(DifferentialPrivacy):
    """The probability of any event changes by at most a factor exp(epsilon) plus a slack delta."""

    kind: ClassVar[str] = "approx_dp"
    epsilon: Fraction
    delta: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        construct(
            self, unit=unit, assumptions=assumptions, caveats=caveats, adjacency=adjacency, epsilon=epsilon, delta=delta
        )

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))

    def _numbers(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta}

    def _promise(self) -> str:
        slack = format_parameter(self.delta)
        return (
            f"Whatever anyone concludes from this output would have been nearly as likely if {self._neighbors()}: "
            f"no probability changes by more than a factor of {_factor(self.epsilon)} plus {slack} "
            f"(epsilon = {format_parameter(self.epsilon)}, delta = {slack})."
        )


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentratedDP(DifferentialPrivacy):
    """The Rényi divergence of every order alpha is at most rho * alpha, up to a slack delta."""

    kind: ClassVar[str] = "zero_concentrated_dp"
    rho: Fraction
    delta: Fraction = Fraction(0)

    def __init__(
        self,
        *,
        rho: Number,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        delta: Number = 0,
    ) -> None:
        construct(self, unit=unit, assumptions=assumptions, caveats=caveats, adjacency=adjacency, rho=rho, delta=delta)

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        object.__setattr__(self, "rho", validation.check_non_negative(self.rho, name="rho"))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))

    def _numbers(self) -> dict[str, Any]:
        return {"rho": self.rho} | ({"delta": self.delta} if self.delta else {})

    def _promise(self) -> str:
        slack = f" and delta = {format_parameter(self.delta)}" if self.delta else ""
        return (
            f"The output hardly depends on whether {self._neighbors()}: the privacy loss is at most that of Gaussian "
            f"noise with rho = {format_parameter(self.rho)}{slack} (zero-concentrated differential privacy)."
        )


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiDP(DifferentialPrivacy):
    """The Rényi divergence of order alpha is at most epsilon."""

    kind: ClassVar[str] = "renyi_dp"
    alpha: Fraction
    epsilon: Fraction

    def __init__(
        self,
        *,
        alpha: Number,
        epsilon: Number,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    ) -> None:
        construct(
            self, unit=unit, assumptions=assumptions, caveats=caveats, adjacency=adjacency, alpha=alpha, epsilon=epsilon
        )

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        alpha = exact.number(self.alpha, name="alpha")
        if alpha <= 1:
            raise ParameterError("The Rényi order alpha must be above 1.", fix="use for example alpha=2.")
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))

    def _numbers(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "epsilon": self.epsilon}

    def _promise(self) -> str:
        return (
            f"The output hardly depends on whether {self._neighbors()}: the Rényi divergence of order "
            f"{format_parameter(self.alpha)} is at most {format_parameter(self.epsilon)}."
        )


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDP(Guarantee):
    """Each person's report alone hides their value: protection needs no trusted collector."""

    kind: ClassVar[str] = "local_dp"
    epsilon: Fraction
    unit: str = "report"

    def __init__(
        self,
        *,
        epsilon: Number,
        unit: str = "report",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        construct(self, unit=unit, assumptions=assumptions, caveats=caveats, epsilon=epsilon)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))

    def _numbers(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _promise(self) -> str:
        sent = self.unit if self.unit == "report" else f"set of reports of one {self.unit}"
        return (
            "Values were changed at random before anyone received them: any two true values give each possible "
            f"{sent} with probabilities within a factor of {_factor(self.epsilon)} "
            f"(epsilon = {format_parameter(self.epsilon)})."
        )


def _factor(epsilon: Fraction) -> str:
    if epsilon > 500:
        return f"exp({format_parameter(epsilon)})"
    return format_factor(exact.exp_bounds(epsilon)[1])
