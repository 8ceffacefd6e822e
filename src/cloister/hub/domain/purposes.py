"""What data may be used for: a vocabulary with dots, in which a purpose includes everything below it.

``research`` includes ``research.health``, which includes ``research.health.cancer``. A `PurposeSet` is what is allowed;
``*`` allows everything, and an empty set nothing. Sets are intersected when data is combined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cloister.errors import ParameterError, did_you_mean

__all__ = ["ANYTHING", "NOTHING", "VOCABULARY", "PurposeSet", "check_purpose"]

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
