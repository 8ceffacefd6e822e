"""Semantic versions: how they are written and which of two is newer (Semantic Versioning 2.0.0)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from cloister.errors import ManifestError

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_WORD = r"(?:0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_WRITTEN = re.compile(rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_WORD}(?:\.{_WORD})*))?", re.ASCII)
_LONGEST = 60


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A version such as 1.4.0 or 2.0.0-beta.1; build metadata ("+...") is not allowed, since it has no order.

    >>> Version.parse("1.10.0") > Version.parse("1.9.3") > Version.parse("1.9.3-rc.1")
    True
    """

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: object) -> Version:
        """Return the version that a text stands for.

        Raises:
            ManifestError: if it is not a semantic version.
        """
        found = _WRITTEN.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
        if found is None:
            raise ManifestError(
                "version is not a semantic version.", fix='write three numbers in quotes, such as version: "1.0.0".'
            )
        major, minor, patch, before = found.groups()
        return cls(int(major), int(minor), int(patch), tuple(before.split(".")) if before else ())

    def __str__(self) -> str:
        before = f"-{'.'.join(self.prerelease)}" if self.prerelease else ""
        return f"{self.major}.{self.minor}.{self.patch}{before}"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._rank() < other._rank()

    def _rank(self) -> tuple[object, ...]:
        words = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, words
