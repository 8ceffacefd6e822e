"""Guarantees as values: what is promised, to whom, under which assumptions, and what would break it.

A guarantee is frozen, knows its numbers exactly, and explains itself in one sentence. It does not know the object
that produced it: composition and the ledger work on guarantees and events alone.

Definitions follow Dwork and Roth (2014) for pure and approximate differential privacy, Bun and Steinke (2016) for
zero-concentrated, Mironov (2017) for Rényi. The delta of approximate differential privacy is an additive slack on the
probability of any event; it is *not* the probability that the pure guarantee fails.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from cloister.core import exact, validation
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean

__all__ = [
    "DATA_DEPENDENT_BOUNDS",
    "GUESSED_SCHEMA",
    "IDEALIZED_FLOATS",
    "SEEDED_RANDOMNESS",
    "Adjacency",
    "ApproxDP",
    "Caveat",
    "DifferentialPrivacy",
    "Guarantee",
    "KAnonymity",
    "LDiversity",
    "LocalDP",
    "NoGuarantee",
    "PureDP",
    "RenyiDP",
    "TCloseness",
    "ZeroConcentratedDP",
    "guarantee_from_dict",
]


class Adjacency(StrEnum):
    """Which two datasets are neighbors: the pairs that an observer must not be able to tell apart."""

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    USER = "user"
    TRANSACTION = "transaction"
    ITEM = "item"
    EDGE = "edge"
    NODE = "node"
    TREE = "tree"
    VERTEX = "vertex"
    EVENT = "event"

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = [str(relation) for relation in cls]
        raise ParameterError(
            f'There is no neighbor relation "{value}".{did_you_mean(str(value), names)}',
            fix=f"use one of {', '.join(names)}.",
        )

    @property
    def meaning(self) -> str:
        """Return the relation in words, with ``{unit}`` where the protected unit goes."""
        return _MEANING[self]


_MEANING = {
    Adjacency.ADD_REMOVE: "one {unit} is added or removed",
    Adjacency.REPLACE: "one {unit} is changed, the number of them staying the same",
    Adjacency.USER: "all data of one {unit} are added or removed",
    Adjacency.TRANSACTION: "one transaction is added or removed",
    Adjacency.ITEM: "one item inside one transaction is added or removed",
    Adjacency.EDGE: "one connection is added or removed",
    Adjacency.NODE: "one vertex and all its connections are added or removed",
    Adjacency.TREE: "one whole tree of records is added or removed",
    Adjacency.VERTEX: "one vertex of a tree is added or removed",
    Adjacency.EVENT: "one report of a person at one time is added or removed",
}


@dataclass(frozen=True, slots=True)
class Caveat:
    """A circumstance the reader must know; ``breaks`` says that the promise does not hold under it."""

    code: str
    text: str
    breaks: bool = True


SEEDED_RANDOMNESS = Caveat("seeded_randomness", "the random numbers were predictable (a seed was given)")
DATA_DEPENDENT_BOUNDS = Caveat("data_dependent_bounds", "bounds or categories were read from the protected data")
GUESSED_SCHEMA = Caveat("guessed_schema", "bounds, categories or roles were guessed and not confirmed by a person")
IDEALIZED_FLOATS = Caveat("idealized_floats", "the proof is for real numbers, the computation used floating point")

_KNOWN = {
    caveat.code: caveat for caveat in (SEEDED_RANDOMNESS, DATA_DEPENDENT_BOUNDS, GUESSED_SCHEMA, IDEALIZED_FLOATS)
}

_REGISTRY: dict[str, type[Guarantee]] = {}
_G = TypeVar("_G", bound="type[Guarantee]")


def _register(cls: _G) -> _G:
    _REGISTRY[cls.kind] = cls
    return cls


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee(ABC):
    """The base of all guarantees."""

    kind: ClassVar[str] = "abstract"

    unit: str = "row"
    assumptions: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()

    @property
    def holds(self) -> bool:
        """Return whether no caveat breaks the promise."""
        return not any(caveat.breaks for caveat in self.caveats)

    def with_caveat(self, *caveats: Caveat) -> Self:
        """Return the same guarantee with further caveats."""
        new = tuple(caveat for caveat in caveats if caveat not in self.caveats)
        return self._copy(caveats=self.caveats + new)

    def with_assumption(self, *assumptions: str) -> Self:
        """Return the same guarantee with further public assumptions."""
        new = tuple(text for text in assumptions if text not in self.assumptions)
        return self._copy(assumptions=self.assumptions + new)

    def explain(self) -> str:
        """Return one sentence for a data owner, followed by what would break the promise."""
        sentence = self._promise()
        if self.assumptions:
            sentence += f" This assumes: {'; '.join(self.assumptions)}."
        for caveat in self.caveats:
            label = "The promise does NOT hold" if caveat.breaks else "Note"
            sentence += f" {label}: {caveat.text}."
        return sentence

    def brief(self) -> str:
        """Return the numbers and the unit, short enough for the end of a line."""
        if not self._numbers():
            return "no guarantee"
        numbers = ", ".join(f"{name} = {_plain(value)}" for name, value in self._numbers().items())
        broken = "" if self.holds else " [promise broken]"
        return f"{numbers} per {self.unit}{broken}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; rationals are text such as ``"1/10"``."""
        values: dict[str, Any] = {"schema": f"cloister.guarantee.{self.kind}/1", "holds": self.holds}
        for item in fields(self):
            values[item.name] = _encode(getattr(self, item.name))
        return values

    def _numbers(self) -> dict[str, Any]:
        return {}

    def _copy(self, **changes: object) -> Self:
        other = copy.copy(self)
        _set(other, **changes)
        return other

    @abstractmethod
    def _promise(self) -> str: ...


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


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(DifferentialPrivacy):
    """The probability of any output changes by at most a factor exp(epsilon)."""

    kind: ClassVar[str] = "pure_dp"
    epsilon: Fraction

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))

    def _numbers(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _promise(self) -> str:
        return (
            f"Whatever anyone concludes from this output would have been nearly as likely if {self._neighbors()}: "
            f"no probability changes by more than a factor of {_factor(self.epsilon)} "
            f"(epsilon = {_plain(self.epsilon)})."
        )


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxDP(DifferentialPrivacy):
    """The probability of any event changes by at most a factor exp(epsilon) plus a slack delta."""

    kind: ClassVar[str] = "approx_dp"
    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))

    def _numbers(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta}

    def _promise(self) -> str:
        return (
            f"Whatever anyone concludes from this output would have been nearly as likely if {self._neighbors()}: "
            f"no probability changes by more than a factor of {_factor(self.epsilon)} plus {_plain(self.delta)} "
            f"(epsilon = {_plain(self.epsilon)}, delta = {_plain(self.delta)})."
        )


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentratedDP(DifferentialPrivacy):
    """The Rényi divergence of every order alpha is at most rho * alpha, up to a slack delta."""

    kind: ClassVar[str] = "zero_concentrated_dp"
    rho: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        DifferentialPrivacy.__post_init__(self)
        object.__setattr__(self, "rho", validation.check_non_negative(self.rho, name="rho"))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))

    def _numbers(self) -> dict[str, Any]:
        return {"rho": self.rho} | ({"delta": self.delta} if self.delta else {})

    def _promise(self) -> str:
        slack = f" and delta = {_plain(self.delta)}" if self.delta else ""
        return (
            f"The output hardly depends on whether {self._neighbors()}: the privacy loss is at most that of Gaussian "
            f"noise with rho = {_plain(self.rho)}{slack} (zero-concentrated differential privacy)."
        )


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiDP(DifferentialPrivacy):
    """The Rényi divergence of order alpha is at most epsilon."""

    kind: ClassVar[str] = "renyi_dp"
    alpha: Fraction
    epsilon: Fraction

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
            f"{_plain(self.alpha)} is at most {_plain(self.epsilon)}."
        )


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDP(Guarantee):
    """Each person's report alone hides their value: protection needs no trusted collector."""

    kind: ClassVar[str] = "local_dp"
    epsilon: Fraction
    unit: str = "report"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))

    def _numbers(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon}

    def _promise(self) -> str:
        return (
            "Values were changed at random before anyone received them: any two true values give each possible "
            f"{self.unit} with probabilities within a factor of {_factor(self.epsilon)} "
            f"(epsilon = {_plain(self.epsilon)})."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Syntactic(Guarantee):
    """The base of promises about the shape of a released table; none is differential privacy."""

    def _closing(self) -> str:
        return " This is a property of the table, not differential privacy."


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class KAnonymity(_Syntactic):
    """Every combination of quasi-identifiers is shared by at least k units."""

    kind: ClassVar[str] = "k_anonymity"
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", validation.check_count(self.k, name="k", at_least=1))

    def _numbers(self) -> dict[str, Any]:
        return {"k": self.k}

    def _promise(self) -> str:
        return f"Each released {self.unit} looks the same as at least {self.k - 1} others.{self._closing()}"


@_register
@dataclass(frozen=True, slots=True)
class LDiversity(_Syntactic):
    """Every group of look-alike units has at least l well-represented sensitive values."""

    kind: ClassVar[str] = "l_diversity"
    attribute: str
    l: Fraction  # noqa: E741  # the literature's name
    variant: str = "distinct"

    def __init__(
        self,
        attribute: str,
        *,
        l: object,  # noqa: E741
        kind: str = "distinct",
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        allowed = ("distinct", "frequency", "entropy", "recursive")
        validation.check_choice(kind, name="kind", allowed=allowed)
        value = exact.number(l, name="l")
        if value < 1:
            raise ParameterError("l must be at least 1.", fix="use for example l=3.")
        _set(
            self,
            attribute=attribute,
            l=value,
            variant=kind,
            unit=unit,
            assumptions=assumptions,
            caveats=caveats,
        )

    def _numbers(self) -> dict[str, Any]:
        return {"l": self.l}

    def _promise(self) -> str:
        return (
            f"Each group of look-alike units has at least {_plain(self.l)} well-represented values of "
            f'"{self.attribute}" '
            f"({self.variant} l-diversity).{self._closing()}"
        )


@_register
@dataclass(frozen=True, slots=True)
class TCloseness(_Syntactic):
    """In every group of look-alike units the sensitive values are distributed nearly as in the whole table."""

    kind: ClassVar[str] = "t_closeness"
    attribute: str
    t: Fraction
    variant: str = "equal"

    def __init__(
        self,
        attribute: str,
        *,
        t: object,
        kind: str = "equal",
        unit: str = "row",
        assumptions: tuple[str, ...] = (),
        caveats: tuple[Caveat, ...] = (),
    ) -> None:
        allowed = ("equal", "ordered", "hierarchical", "variational", "kl")
        validation.check_choice(kind, name="kind", allowed=allowed)
        value = validation.check_non_negative(t, name="t")
        _set(
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
            f"{_plain(self.t)} ({self.variant}) of the whole table.{self._closing()}"
        )


@_register
@dataclass(frozen=True, slots=True, kw_only=True)
class NoGuarantee(Guarantee):
    """Nothing is promised, said aloud."""

    kind: ClassVar[str] = "none"
    reason: str

    @property
    def holds(self) -> bool:
        """Return False: there is no promise that could hold."""
        return False

    def _promise(self) -> str:
        return f"Nothing is promised: {self.reason}."


def guarantee_from_dict(values: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee that `Guarantee.to_dict` wrote."""
    if not isinstance(values, Mapping):
        raise ParameterTypeError("This is not a dictionary.", fix="use the dictionary as to_dict() wrote it.")
    kind, _, version = str(values.get("schema", "")).removeprefix("cloister.guarantee.").partition("/")
    if kind not in _REGISTRY or version != "1":
        raise ParameterError(
            "This is not a guarantee that this version of cloister can read.",
            fix="use a dictionary written by to_dict(), or a newer cloister.",
        )
    cls = _REGISTRY[kind]
    known = {item.name for item in fields(cls)}
    if values.keys() != known | {"schema", "holds"} or not isinstance(values["unit"], str):
        raise ParameterError("This is not a whole guarantee.", fix="use the dictionary as to_dict() wrote it.")
    arguments: dict[str, Any] = {name: values[name] for name in known}
    arguments["assumptions"] = tuple(_listed(values["assumptions"], of=str))
    arguments["caveats"] = tuple(_caveat(item) for item in _listed(values["caveats"], of=dict))
    if "variant" in arguments:
        arguments["kind"] = arguments.pop("variant")
    guarantee = cls(**arguments)
    if values["holds"] is not guarantee.holds:
        raise ParameterError(
            "This guarantee says otherwise than its caveats whether it holds: it was changed.",
            fix="use the dictionary as to_dict() wrote it.",
        )
    return guarantee


def _listed(values: Any, *, of: type) -> list[Any]:  # from outside, hence anything
    if not isinstance(values, list | tuple) or not all(isinstance(item, of) for item in values):
        raise ParameterTypeError("This is not a guarantee.", fix="use the dictionary as to_dict() wrote it.")
    return list(values)


def _caveat(values: Mapping[str, Any]) -> Caveat:
    """Return a caveat; what is known to break a promise breaks it, whatever the dictionary says."""
    kinds = {name: type(value) for name, value in values.items()}
    if kinds != {"code": str, "text": str, "breaks": bool}:
        raise ParameterTypeError("This is not a caveat.", fix="use the dictionary as to_dict() wrote it.")
    return _KNOWN.get(values["code"]) or Caveat(**values)


def _set(target: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(target, name, value)


def _encode(value: Any) -> Any:  # a field's value of any type
    match value:
        case Fraction():
            return exact.text(value)
        case Adjacency():
            return str(value)
        case tuple():
            return [_encode(item) for item in value]
        case Caveat():
            return {"code": value.code, "text": value.text, "breaks": value.breaks}
        case _:
            return value


def _plain(value: Fraction | int) -> str:
    return f"{float(value):.6g}"


def _factor(epsilon: Fraction) -> str:
    if epsilon > 500:
        return f"exp({_plain(epsilon)})"
    return f"{float(exact.exp_bounds(epsilon)[1]):.3g}"
