"""Terms that stay with data wherever it goes: what is made from data inherits the strictest of every parent.

Purposes are intersected, sensitivity is the highest, retention the shortest, regions are intersected, bans on
combination are united, internal data stays internal, and the policies that applied are remembered by version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from typing import TypeVar

from cloister.hub.domain.purposes import ANYTHING, NOTHING, PurposeSet

__all__ = ["NEUTRAL", "PolicyMark", "Sensitivity", "Terms", "conflicts", "inherit"]

Item = TypeVar("Item")


class Sensitivity(IntEnum):
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
class PolicyMark:
    """The version of a policy that applied to an object when something was made from it."""

    object_id: str
    version: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
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

    purposes: PurposeSet = NOTHING
    sensitivity: Sensitivity = Sensitivity.RESTRICTED
    legal_bases: frozenset[str] = frozenset()
    regions: frozenset[str] | None = None
    retention_days: int | None = None
    not_with: frozenset[str] = frozenset()
    only_with: frozenset[str] | None = None
    internal_only: bool = False
    policies: tuple[PolicyMark, ...] = ()


NEUTRAL = Terms(purposes=ANYTHING, sensitivity=Sensitivity.PUBLIC)
"""Terms that change no others: a column without terms of its own has these."""


def inherit(parents: Iterable[Terms]) -> Terms:
    """Return the terms of what is made from some parents; those of nothing allow nothing.

    >>> teaching = Terms(purposes=PurposeSet.of("teaching", "research.health"))
    >>> inherit([teaching, Terms(purposes=PurposeSet.of("research.health"))]).purposes.names
    ('research.health',)
    """
    given = list(parents)
    return reduce(_stricter, given) if given else Terms()


def _stricter(left: Terms, right: Terms) -> Terms:
    return Terms(
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


def conflicts(terms: Terms, others: Iterable[str]) -> tuple[str, ...]:
    """Return those of some other objects that data must not be combined with, in alphabetical order."""
    return tuple(sorted(name for name in set(others) if _is_banned(terms, name)))


def _is_banned(terms: Terms, name: str) -> bool:
    banned = "*" in terms.not_with or name in terms.not_with
    return banned or (terms.only_with is not None and name not in terms.only_with)
