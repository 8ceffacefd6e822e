"""Promises about the shape of a released table. None of them is differential privacy, and none says so.

A class is a set of released units with equal quasi-identifiers. Definitions: k-anonymity (Samarati 2001), l-diversity
(Machanavajjhala et al. 2007; the frequency form is that of Xiao and Tao 2006), t-closeness (Li et al. 2007), (alpha,
k)-anonymity (Wong et al. 2006), p-sensitive k-anonymity (Truta and Vinay 2006), beta-likeness (Cao and Karras 2012),
delta-presence (Nergiz et al. 2007), k-map (Sweeney 2002). Unit "row" counts rows; any other unit names the column that
tells persons apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from cloister.core import exact, validation
from cloister.core.construction import construct, set_fields
from cloister.core.exact import Number
from cloister.core.guarantees.base import Caveat, Guarantee, register
from cloister.core.wordings import a_or_an, format_parameter
from cloister.errors import ParameterError

CLOSING = " This is a property of the table, not differential privacy."
"""What every promise of this module says last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Syntactic(Guarantee):
    """The base of promises about the shape of a released table; none is differential privacy."""

    def with_unit(self, unit: str) -> Self:
        """Return the same promise about another unit: "row", or the column that tells persons apart."""
        return self._copy(unit=unit)

    def _alike(self, k: int) -> str:
        """Return who looks the same as how many others."""
        if self.unit == "row":
            return f"Each released row looks the same as at least {k - 1} others"
        return f"Each released row looks the same as rows of at least {k - 1} other persons (told apart by {self.unit})"

    def _about(self) -> str:
        attribute = getattr(self, "attribute", None)
        return "" if attribute is None else f" ({attribute})"

    def _closing(self) -> str:
        return CLOSING


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class KAnonymity(Syntactic):
    """Every combination of quasi-identifiers is shared by at least k units."""

    kind: ClassVar[str] = "k_anonymity"
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validation.check_count(self.k, name="k", at_least=1))

    def _numbers(self) -> dict[str, Any]:
        return {"k": self.k}

    def _promise(self) -> str:
        return f"{self._alike(self.k)}.{self._closing()}"


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class KMap(Syntactic):
    """Every released combination of quasi-identifiers fits at least k units of a population table."""

    kind: ClassVar[str] = "k_map"
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validation.check_count(self.k, name="k", at_least=1))

    def _numbers(self) -> dict[str, Any]:
        return {"k": self.k}

    def _promise(self) -> str:
        return (
            f"What is released about each {self.unit} fits at least {self.k} members of the population that was "
            f"given.{self._closing()}"
        )


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaPresence(Syntactic):
    """Nobody can tell with more (or less) certainty than stated that a member of the population is in the table."""

    kind: ClassVar[str] = "delta_presence"
    delta_min: Fraction = Fraction(0)
    delta_max: Fraction

    def __init__(
        self,
        *,
        delta_max: Number,
        delta_min: Number = 0,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        construct(self, delta_min=delta_min, delta_max=delta_max, unit=unit, assumptions=assumptions, caveats=caveats)

    def __post_init__(self) -> None:
        low = validation.check_probability(self.delta_min, name="delta_min")
        high = validation.check_probability(self.delta_max, name="delta_max")
        if low > high:
            raise ParameterError("delta_min is above delta_max.", fix="give the smaller number as delta_min.")
        set_fields(self, delta_min=low, delta_max=high)

    def _numbers(self) -> dict[str, Any]:
        return {"delta_min": self.delta_min, "delta_max": self.delta_max}

    def _promise(self) -> str:
        return (
            f"Whoever knows the population that was given can say of {a_or_an(self.unit)} that it is in the table "
            f"with a probability from {format_parameter(self.delta_min)} to {format_parameter(self.delta_max)}."
            f"{self._closing()}"
        )


@register
@dataclass(frozen=True, slots=True)
class LDiversity(Syntactic):
    """Every group of look-alike units has at least l well-represented sensitive values."""

    kind: ClassVar[str] = "l_diversity"
    attribute: str
    l: Fraction  # noqa: E741  # the literature's name
    variant: str = "distinct"
    c: Fraction | None = None

    def __init__(
        self,
        attribute: str,
        *,
        l: Number,  # noqa: E741
        kind: str = "distinct",
        c: Number | None = None,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        allowed = ("distinct", "frequency", "entropy", "recursive")
        validation.check_choice(kind, name="kind", allowed=allowed)
        value = exact.number(l, name="l")
        if value < 1:
            raise ParameterError("l must be at least 1.", fix="use for example l=3.")
        if kind in ("distinct", "recursive") and value.denominator != 1:
            raise ParameterError(f"{kind} l-diversity counts values, so l is whole.", fix="use for example l=3.")
        if (kind == "recursive") != (c is not None):
            raise ParameterError(
                "c belongs to recursive l-diversity, which needs it.", fix='write kind="recursive", c=3, or drop c.'
            )
        set_fields(
            self,
            attribute=attribute,
            l=value,
            variant=kind,
            c=None if c is None else validation.check_positive(c, name="c"),
            unit=unit,
            assumptions=assumptions,
            caveats=caveats,
        )

    def _numbers(self) -> dict[str, Any]:
        return {"l": self.l} if self.c is None else {"c": self.c, "l": self.l}

    def _promise(self) -> str:
        factor = "" if self.c is None else f", c = {format_parameter(self.c)}"
        return (
            f"Each group of look-alike units has at least {format_parameter(self.l)} well-represented values of "
            f'"{self.attribute}" '
            f"({self.variant} l-diversity{factor}).{self._closing()}"
        )


@register
@dataclass(frozen=True, slots=True)
class TCloseness(Syntactic):
    """In every group of look-alike units the sensitive values are distributed nearly as in the whole table."""

    kind: ClassVar[str] = "t_closeness"
    attribute: str
    t: Fraction
    variant: str = "equal"

    def __init__(
        self,
        attribute: str,
        *,
        t: Number,
        kind: str = "equal",
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        allowed = ("equal", "ordered", "hierarchical", "variational", "kl")
        validation.check_choice(kind, name="kind", allowed=allowed)
        value = validation.check_non_negative(t, name="t")
        if value > 1 and kind != "kl":
            raise ParameterError(
                f"A t above 1 promises nothing, because {kind} distances are at most 1.", fix="use a t such as 0.2."
            )
        set_fields(
            self,
            attribute=attribute,
            t=value,
            variant=kind,
            unit=unit,
            assumptions=assumptions,
            caveats=caveats,
        )

    def _numbers(self) -> dict[str, Any]:
        return {"t": self.t}

    def _promise(self) -> str:
        return (
            f'In each group of look-alike units "{self.attribute}" is distributed within a distance of '
            f"{format_parameter(self.t)} ({self.variant}) of the whole table.{self._closing()}"
        )


@register
@dataclass(frozen=True, slots=True)
class AlphaKAnonymity(Syntactic):
    """Groups have at least k units, and no sensitive value has more than a share alpha of a group."""

    kind: ClassVar[str] = "alpha_k_anonymity"
    attribute: str
    alpha: Fraction
    k: int

    def __init__(
        self,
        attribute: str,
        *,
        alpha: Number,
        k: int,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        share = validation.check_probability(alpha, name="alpha")
        size = validation.check_count(k, name="k", at_least=1)
        set_fields(self, attribute=attribute, alpha=share, k=size, unit=unit, assumptions=assumptions, caveats=caveats)

    def _numbers(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "k": self.k}

    def _promise(self) -> str:
        return (
            f"{self._alike(self.k)}, and in no such group does a "
            f'value of "{self.attribute}" have a share above {format_parameter(self.alpha)}.{self._closing()}'
        )


@register
@dataclass(frozen=True, slots=True)
class PSensitivity(Syntactic):
    """Groups have at least k units and at least p different sensitive values."""

    kind: ClassVar[str] = "p_sensitivity"
    attribute: str
    p: int
    k: int

    def __init__(
        self,
        attribute: str,
        *,
        p: int,
        k: int,
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        values = validation.check_count(p, name="p", at_least=1)
        size = validation.check_count(k, name="k", at_least=1)
        if values > size:
            raise ParameterError("p is above k.", fix="a group of k units has at most k values: raise k or lower p.")
        set_fields(self, attribute=attribute, p=values, k=size, unit=unit, assumptions=assumptions, caveats=caveats)

    def _numbers(self) -> dict[str, Any]:
        return {"p": self.p, "k": self.k}

    def _promise(self) -> str:
        return (
            f"{self._alike(self.k)}, and each such group has at "
            f'least {self.p} values of "{self.attribute}".{self._closing()}'
        )


@register
@dataclass(frozen=True, slots=True)
class BetaLikeness(Syntactic):
    """No sensitive value is much more frequent in a group than in the whole table."""

    kind: ClassVar[str] = "beta_likeness"
    attribute: str
    beta: Fraction
    variant: str = "enhanced"

    def __init__(
        self,
        attribute: str,
        *,
        beta: Number,
        kind: str = "enhanced",
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        validation.check_choice(kind, name="kind", allowed=("basic", "enhanced"))
        value = validation.check_positive(beta, name="beta")
        set_fields(
            self, attribute=attribute, beta=value, variant=kind, unit=unit, assumptions=assumptions, caveats=caveats
        )

    def _numbers(self) -> dict[str, Any]:
        return {"beta": self.beta}

    def _promise(self) -> str:
        return (
            f'In no group of look-alike units is a value of "{self.attribute}" more frequent than in the whole table '
            f"by more than {format_parameter(self.beta)} times its share ({self.variant} beta-likeness)."
            f"{self._closing()}"
        )
