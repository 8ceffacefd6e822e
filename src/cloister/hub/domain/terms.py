"""Terms of use that stay with data wherever it goes, and the vocabulary of purposes that they are stated in.

Purposes have dots, and a purpose includes everything below it: ``research`` includes ``research.health``, which
includes ``research.health.cancer``. A `PurposeSet` is what is allowed; ``*`` allows everything, and an empty set
nothing.

What is made from data inherits the strictest terms of every parent. Purposes are intersected, sensitivity is the
highest, retention the shortest, regions are intersected, bans on combination are united, internal data stays internal,
and the policies that applied are remembered by version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from cloister.errors import ParameterError, did_you_mean
from cloister.hub.domain.documents import Document, Listed, Text, Texts, Truth, WrittenAs, one_of, whole

__all__ = [
    "ANYTHING",
    "NEUTRAL",
    "NOTHING",
    "VOCABULARY",
    "ColumnTerms",
    "DataSensitivity",
    "ObjectTerms",
    "PolicyMark",
    "PurposeSet",
    "Purposes",
    "UsageTerms",
    "check_purpose",
    "conflicts",
    "inherit",
    "write_terms",
]


VOCABULARY: dict[str, str] = {
    "research": "research of any kind",
    "research.health": "research on health and disease",
    "research.health.cancer": "research on cancer",
    "research.health.public": "public-health research and surveillance",
    "research.social": "research on society, attitudes and behavior",
    "research.methods": "research on statistical and privacy methods",
    "teaching": "teaching and training of people",
    "care": "the care of the people in the data",
    "statistics": "official statistics",
    "quality": "quality assurance and audit",
    "operations": "planning and running a service",
    "commercial": "commercial use",
    "commercial.product": "development of products",
}
"""Purposes that the hub proposes, with what they mean; others of the same form may be used."""

_FORM = re.compile(r"[a-z][a-z0-9_-]{0,39}(\.[a-z][a-z0-9_-]{0,39}){0,5}")
_EVERYTHING = "*"


def check_purpose(value: object, *, name: str = "purpose") -> str:
    """Return a purpose that is well formed.

    Raises:
        ParameterError: if it is not lower-case words joined by dots.
    """
    if isinstance(value, str) and _FORM.fullmatch(value):
        return value
    hint = did_you_mean(value.lower(), VOCABULARY) if isinstance(value, str) else ""
    raise ParameterError(
        f"{name} is not a purpose.{hint}", fix="write lower-case words joined by dots, such as research.health."
    )


def _includes(wide: str, narrow: str) -> bool:
    return wide in (_EVERYTHING, narrow) or narrow.startswith(f"{wide}.")


@dataclass(frozen=True, slots=True)
class PurposeSet:
    """Allowed purposes, without those that another one includes.

    >>> PurposeSet.of("research", "research.health").names
    ('research',)
    >>> (PurposeSet.of("teaching", "research.health") & PurposeSet.of("research")).names
    ('research.health',)
    """

    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = {name if name == _EVERYTHING else check_purpose(name) for name in self.names}
        kept = (name for name in given if not any(other != name and _includes(other, name) for other in given))
        object.__setattr__(self, "names", tuple(sorted(kept)))

    @classmethod
    def of(cls, *names: str) -> PurposeSet:
        """Return the set of some purposes."""
        return cls(tuple(names))

    def allows(self, purpose: str) -> bool:
        """Return whether a declared purpose lies within the set."""
        return any(_includes(name, purpose) for name in self.names)

    def includes(self, other: PurposeSet) -> bool:
        """Return whether everything that another set allows lies within this one."""
        return all(any(_includes(mine, name) for mine in self.names) for name in other.names)

    def __and__(self, other: PurposeSet) -> PurposeSet:
        # Where one purpose includes the other, the narrower one is what both allow.
        narrower = {name for name in other.names if any(_includes(mine, name) for mine in self.names)}
        narrower |= {name for name in self.names if any(_includes(theirs, name) for theirs in other.names)}
        return PurposeSet(tuple(narrower))

    def __bool__(self) -> bool:
        return bool(self.names)

    def __str__(self) -> str:
        if not self.names:
            return "no purpose"
        return "any purpose" if _EVERYTHING in self.names else ", ".join(self.names)


ANYTHING = PurposeSet((_EVERYTHING,))
"""Allows every purpose."""

NOTHING = PurposeSet()
"""Allows no purpose."""

Purposes: TypeAlias = Annotated[
    PurposeSet, WrittenAs(Listed[Text], lambda names: PurposeSet(tuple(names)), lambda purposes: list(purposes.names))
]

Item = TypeVar("Item")


class DataSensitivity(IntEnum):
    """How much harm disclosure would do; the higher, the more."""

    PUBLIC = 0
    INTERNAL = 1
    CONFIDENTIAL = 2
    RESTRICTED = 3

    @property
    def label(self) -> str:
        """Return the name as files spell it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PolicyMark(Document):
    """The version of a policy that applied to an object when something was made from it."""

    aliases: ClassVar = {"object_id": "object"}

    object_id: Text
    version: Annotated[int, whole(1)]
    digest: Text


_Level: TypeAlias = Annotated[
    DataSensitivity,
    WrittenAs(
        Annotated[Any, AfterValidator(one_of([level.label for level in DataSensitivity]))],
        lambda label: DataSensitivity[label.upper()],
        lambda level: level.label,
    ),
]
_Marks: TypeAlias = Annotated[
    tuple[PolicyMark, ...], WrittenAs(Listed[PolicyMark], lambda marks: tuple(sorted(marks)), list)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTerms(Document):
    """What an owner states about the use of data; a column may have terms of its own, on top of its dataset's.

    Attributes:
        purposes: what the data may be used for; nothing, unless stated.
        sensitivity: how much harm disclosure would do.
        legal_bases: why the data may be processed, such as ``consent``.
        regions: where it may be stored and processed; None: anywhere.
        retention_days: for how long after its making it may be kept; None: without limit.
        not_with: objects that it must not be combined with; ``*`` bans every combination.
        only_with: the only objects that it may be combined with; None: any.
        internal_only: whether only the owner's organisation may use it.
        policies: the policies of the objects that it comes from.
    """

    purposes: Purposes = NOTHING
    sensitivity: _Level = DataSensitivity.RESTRICTED
    legal_bases: Texts = frozenset()
    regions: Texts | None = None
    retention_days: Annotated[int, whole(0)] | None = None
    not_with: Texts = frozenset()
    only_with: Texts | None = None
    internal_only: Truth = False
    policies: _Marks = ()


NEUTRAL = UsageTerms(purposes=ANYTHING, sensitivity=DataSensitivity.PUBLIC)
"""Terms that change no others: a column without terms of its own has these."""


def write_terms(terms: UsageTerms, default: UsageTerms) -> dict[str, Any]:
    """Return terms as plain values, without those that are as in a default."""
    return {name: value for name, value in terms.to_dict().items() if getattr(terms, name) != getattr(default, name)}


def _as_in_a_column(values: Any) -> Any:  # whatever somebody wrote
    """Return the terms of a column with what they leave out, which is as if the column had none."""
    if not isinstance(values, Mapping):
        return values
    plain = write_terms(NEUTRAL, UsageTerms())
    return {**values, **{name: value for name, value in plain.items() if values.get(name) is None}}


ObjectTerms: TypeAlias = Annotated[UsageTerms, PlainSerializer(lambda terms: write_terms(terms, UsageTerms()))]
"""Terms of an object: what is not stated allows nothing."""

ColumnTerms: TypeAlias = Annotated[
    UsageTerms, BeforeValidator(_as_in_a_column), PlainSerializer(lambda terms: write_terms(terms, NEUTRAL))
]
"""Terms of a column: what is not stated changes nothing."""


def inherit(parents: Iterable[UsageTerms]) -> UsageTerms:
    """Return the terms of what is made from some parents; those of nothing allow nothing.

    >>> teaching = UsageTerms(purposes=PurposeSet.of("teaching", "research.health"))
    >>> inherit([teaching, UsageTerms(purposes=PurposeSet.of("research.health"))]).purposes.names
    ('research.health',)
    """
    given = list(parents)
    return reduce(_stricter, given) if given else UsageTerms()


def _stricter(left: UsageTerms, right: UsageTerms) -> UsageTerms:
    return UsageTerms(
        purposes=left.purposes & right.purposes,
        sensitivity=max(left.sensitivity, right.sensitivity),
        legal_bases=left.legal_bases | right.legal_bases,
        regions=_where_given(frozenset.__and__, left.regions, right.regions),
        retention_days=_where_given(min, left.retention_days, right.retention_days),
        not_with=left.not_with | right.not_with,
        only_with=_where_given(frozenset.__and__, left.only_with, right.only_with),
        internal_only=left.internal_only or right.internal_only,
        policies=tuple(sorted({*left.policies, *right.policies})),
    )


def _where_given(combine: Callable[[Item, Item], Item], left: Item | None, right: Item | None) -> Item | None:
    if left is None or right is None:
        return right if left is None else left
    return combine(left, right)


def conflicts(terms: UsageTerms, others: Iterable[str]) -> tuple[str, ...]:
    """Return those of some other objects that data must not be combined with, in alphabetical order."""
    return tuple(sorted(name for name in set(others) if _is_banned(terms, name)))


def _is_banned(terms: UsageTerms, name: str) -> bool:
    banned = "*" in terms.not_with or name in terms.not_with
    return banned or (terms.only_with is not None and name not in terms.only_with)
