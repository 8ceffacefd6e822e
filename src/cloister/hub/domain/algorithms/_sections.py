"""Strict reading of a manifest's plain values: unknown, missing and ill-typed parts are errors with a fix."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cloister.core import exact
from cloister.errors import CloisterError, ManifestError, did_you_mean

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
"""How inputs, parameters and outputs are named."""

_MISSING = object()


class ManifestSection:
    """One mapping of a manifest, whose parts are taken one by one."""

    def __init__(self, values: object, *, where: str, known: Collection[str]) -> None:
        if not isinstance(values, Mapping):
            raise ManifestError(f"{where} is not a mapping.", fix=f"write {where} with the parts {', '.join(known)}.")
        for key in values:
            if key not in known:
                hint = did_you_mean(str(key), known)
                raise ManifestError(
                    f'{where} has an unknown part "{_short(key)}".{hint}', fix=f"use only {', '.join(known)}."
                )
        self._values, self.where = values, where

    def path(self, name: str) -> str:
        """Return where a part is, for messages."""
        return f"{self.where}.{name}" if self.where != "The manifest" else name

    def has(self, name: str) -> bool:
        """Return whether a part is there."""
        return name in self._values

    def any(self, name: str, default: object = _MISSING) -> Any:  # whatever the file holds
        """Return a part as it is."""
        found = self._values.get(name, default)
        if found is _MISSING:
            raise ManifestError(f"{self.path(name)} is missing.", fix=f"add {name}: to {self.where.lower()}.")
        return found

    def text(self, name: str, default: object = _MISSING, *, most: int = 200) -> str:
        """Return a part that is one line of text."""
        found = self.any(name, default)
        if not isinstance(found, str) or not found.strip() or len(found) > most or not found.isprintable():
            raise ManifestError(
                f"{self.path(name)} is not a line of text.", fix=f"write one line of at most {most} characters."
            )
        return found.strip()

    def choice(self, name: str, allowed: Collection[str], default: object = _MISSING) -> str:
        """Return a part that is one of a few words."""
        found = self.any(name, default)
        if not isinstance(found, str) or found not in allowed:
            raise ManifestError(
                f"{self.path(name)} is not known.{did_you_mean(str(found)[:40], allowed)}",
                fix=f"write one of {', '.join(allowed)}.",
            )
        return found

    def whole(self, name: str, default: object = _MISSING, *, low: int, high: int) -> int:
        """Return a part that is a whole number within limits."""
        found = self.any(name, default)
        if type(found) is not int or not low <= found <= high:
            raise ManifestError(
                f"{self.path(name)} is not a whole number from {low:,} to {high:,}.",
                fix=f"write for example {name}: {low}.",
            )
        return found

    def number(self, name: str, default: object = _MISSING) -> Fraction:
        """Return a part that is a finite number."""
        return finite(self.any(name, default), self.path(name))

    def named(self, name: str, *, most: int, default: object = _MISSING) -> dict[str, Any]:
        """Return a part that is a mapping from names to anything, in order."""
        found = self.any(name, default)
        if not isinstance(found, Mapping) or len(found) > most:
            raise ManifestError(
                f"{self.path(name)} is not a mapping of at most {most} names.", fix=f"write names below {name}:."
            )
        for key in found:
            if not isinstance(key, str) or not NAME.fullmatch(key):
                raise ManifestError(
                    f'{self.path(name)} has the name "{_short(key)}".',
                    fix="name things with small letters, digits and underscores, beginning with a letter.",
                )
        return dict(found)


def finite(value: object, where: str) -> Fraction:
    """Return a finite number that a double can hold."""
    try:
        found = exact.number(value if isinstance(value, int | float | Decimal) else None, name=where)
    except CloisterError:
        raise ManifestError(f"{where} is not a finite number.", fix="write a number such as 0.5.") from None
    if abs(found) > 10**15:
        raise ManifestError(f"{where} is beyond 10**15.", fix="rescale, so that numbers stay smaller.")
    return found


def pair(value: object, where: str) -> tuple[Fraction, Fraction]:
    """Return (lower, upper), the first below the second."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ManifestError(f"{where} is not a pair.", fix="write for example [0, 1].")
    low, high = (finite(end, where) for end in value)
    if low >= high:
        raise ManifestError(f"{where} leaves no room.", fix="write the smaller number first, such as [0, 1].")
    return low, high


def _short(key: object) -> str:
    return str(key)[:40]
