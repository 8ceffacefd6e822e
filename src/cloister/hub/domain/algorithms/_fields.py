"""How the parts of a manifest are written: lines of text, finite numbers, pairs of bounds, and things by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, PlainValidator

from cloister.core import exact
from cloister.errors import CloisterError, ManifestError
from cloister.hub.domain.documents import Document, WrittenAs, mistake

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
"""How inputs, parameters and outputs are named."""


class ManifestPart(Document):
    """A part of a manifest; nothing is stated by null."""

    __slots__ = ()
    called: ClassVar = "The manifest"
    error: ClassVar = ManifestError
    null_is_unstated: ClassVar = False


def line(most: int = 200) -> PlainValidator:
    """Return a check that a value is one line of text, without the spaces around it."""

    def check(value: Any) -> str:  # whatever the file holds
        if not isinstance(value, str) or not value.strip() or len(value) > most or not value.isprintable():
            raise mistake("this is not a line of text.", fix=f"write one line of at most {most} characters.")
        return value.strip()

    return PlainValidator(check)


def finite(value: Any) -> Fraction:  # whatever the file holds
    """Return a finite number that a double can hold, exactly.

    Raises:
        ManifestError: if it is none.
    """
    try:
        found = exact.number(value if isinstance(value, int | float | Decimal) else None)
    except CloisterError:
        raise ManifestError("This is not a finite number.", fix="write a number such as 0.5.") from None
    if abs(found) > 10**15:
        raise ManifestError("This is beyond 10**15.", fix="rescale, so that numbers stay smaller.")
    return found


def pair(value: Any) -> tuple[Fraction, Fraction]:  # whatever the file holds
    """Return (lower, upper), the first below the second.

    Raises:
        ManifestError: if it is no such pair.
    """
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ManifestError("This is not a pair.", fix="write for example [0, 1].")
    low, high = map(finite, value)
    if low >= high:
        raise ManifestError("This leaves no room.", fix="write the smaller number first, such as [0, 1].")
    return low, high


Number: TypeAlias = Annotated[Fraction, PlainValidator(finite), PlainSerializer(float)]
Bounds: TypeAlias = Annotated[tuple[Fraction, Fraction], PlainValidator(pair), PlainSerializer(list)]


def named(kind: Any, *, most: int) -> WrittenAs:
    """Return how things of a kind are written by their names, which are also their titles unless stated."""

    def check(found: Any) -> dict[str, Any]:  # whatever the file holds
        if not isinstance(found, Mapping) or len(found) > most:
            raise mistake(f"this is not a mapping of at most {most} names.", fix="write names, each with its parts.")
        for name in found:
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise mistake(
                    f'this has the name "{str(name)[:40]}".',
                    fix="name things with small letters, digits and underscores, beginning with a letter.",
                )
        return dict(found)

    return WrittenAs(
        Annotated[dict[str, kind], BeforeValidator(check)],
        lambda found: tuple(replace(item, name=name, title=item.title or name) for name, item in found.items()),
        lambda items: {item.name: item for item in items},
    )
