"""Levels: how much of an answer a respondent gives away, chosen question by question.

A level has a name and an epsilon; "off" has none and means that the question is not answered. The level of a report is
visible to the collector. It must not depend on the answer, or it tells about it: show the levels before the question,
or preselect one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.errors import CloisterError, ParameterError, ParameterTypeError, a_or_an
from cloister.local.collection.levels import LEVELS
from cloister.local.protocol import LARGEST_EPSILON, SMALLEST_EPSILON, check_local_epsilon

__all__ = ["DEFAULT_LEVELS", "OFF", "Level", "check_name", "middle_level", "read_levels"]

OFF = "off"
"""The level of those who do not answer."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MOST_LEVELS = 8


@dataclass(frozen=True, slots=True)
class Level:
    """A choice of the respondent.

    Attributes:
        name: small letters, digits, hyphens and underscores.
        epsilon: what an answer costs at this level; None for "off".
    """

    name: str
    epsilon: Fraction | None

    def __post_init__(self) -> None:
        check_name(self.name, what="level")
        if (self.name == OFF) != (self.epsilon is None):
            raise ParameterError(
                f'The level "{OFF}" alone has no epsilon: it means that the question is not answered.',
                fix=f"write for example {OFF}: null, medium: 1.",
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", _epsilon(self.name, self.epsilon))

    @property
    def loss(self) -> Fraction:
        """Return what an answer costs: 0 where none is given."""
        return Fraction(0) if self.epsilon is None else self.epsilon


def _epsilon(name: str, value: object) -> Fraction:
    try:
        return check_local_epsilon(value)
    except CloisterError:
        least = format(float(SMALLEST_EPSILON), "f")
        raise ParameterError(
            f'The epsilon of level "{name}" is not a number from {least} to {LARGEST_EPSILON}.',
            fix=f"write for example {name}: 1; smaller protects more, above 10 a report is practically the truth.",
        ) from None


def read_levels(values: Any) -> tuple[Level, ...]:  # a mapping from a file, or levels
    """Return levels from a mapping of names to epsilons, or as they are.

    >>> print(*(level.name for level in read_levels({"off": None, "strict": "1/2"})))
    off strict
    """
    if isinstance(values, Mapping):
        values = tuple(Level(name, epsilon) for name, epsilon in values.items())
    if not isinstance(values, tuple) or not all(isinstance(level, Level) for level in values):
        raise ParameterTypeError("levels are not a mapping.", fix="write for example levels: {off: null, medium: 1}.")
    names = [level.name for level in values]
    if len(set(names)) != len(names) or not any(level.epsilon for level in values) or len(values) > _MOST_LEVELS:
        raise ParameterError(
            "levels repeat, or none lets anybody answer, or there are too many to choose from.",
            fix=f"write up to {_MOST_LEVELS}, for example levels: {{off: null, medium: 1}}.",
        )
    return values


def middle_level(levels: tuple[Level, ...]) -> Level:
    """Return the level to preselect where none is named: the middle one, the more private of two."""
    answering = sorted((level for level in levels if level.epsilon is not None), key=lambda level: level.loss)
    return answering[(len(answering) - 1) // 2]


def check_name(name: object, *, what: str, where: str = "") -> str:
    """Return a name for machines: small letters, digits, hyphens and underscores."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParameterError(
            f'{where}"{str(name)[:40]}" cannot be the name of {a_or_an(what)}.',
            fix='write up to 64 small letters, digits, hyphens and underscores, for example "age" or "spring-2026".',
        )
    return name


DEFAULT_LEVELS = tuple(Level(name, epsilon) for name, epsilon in LEVELS.epsilons.items())
"""Not answering, and three levels of protection: low, medium and high."""
