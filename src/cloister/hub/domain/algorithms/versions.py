"""Versions of an algorithm: their numbers, their life, and what an owner's allowance is pinned to.

Numbers are semantic versions: how they are written and which of two is newer (Semantic Versioning 2.0.0).

    draft -> checked -> published -> deprecated
      any of them -> revoked;  checked -> draft when a reviewer sends it back

A version is immutable: a change of one byte is another digest, and a new version has to be allowed anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import total_ordering

from cloister.errors import ManifestError, ParameterError

__all__ = ["VersionAllowance", "VersionState", "VersionStep", "next_state", "require_runnable"]


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
                "This is not a semantic version.", fix='write three numbers in quotes, such as version: "1.0.0".'
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
        # A release comes after its own prereleases, which is why having none ranks higher.
        return self.major, self.minor, self.patch, not self.prerelease, words


class VersionState(StrEnum):
    """Where a version is in its life."""

    DRAFT = "draft"
    CHECKED = "checked"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    REVOKED = "revoked"


class VersionStep(StrEnum):
    """What can happen to a version."""

    PASS_CHECKS = "pass_checks"  # noqa: S105  # no password
    SEND_BACK = "send_back"
    PUBLISH = "publish"
    DEPRECATE = "deprecate"
    RESTORE = "restore"
    REVOKE = "revoke"


_MOVES: dict[tuple[VersionState, VersionStep], VersionState] = {
    (VersionState.DRAFT, VersionStep.PASS_CHECKS): VersionState.CHECKED,
    (VersionState.CHECKED, VersionStep.SEND_BACK): VersionState.DRAFT,
    (VersionState.CHECKED, VersionStep.PUBLISH): VersionState.PUBLISHED,
    (VersionState.PUBLISHED, VersionStep.DEPRECATE): VersionState.DEPRECATED,
    (VersionState.DEPRECATED, VersionStep.RESTORE): VersionState.PUBLISHED,
    **{
        (state, VersionStep.REVOKE): VersionState.REVOKED for state in VersionState if state is not VersionState.REVOKED
    },
}


def next_state(state: VersionState, step: VersionStep) -> VersionState:
    """Return the state after a step.

    Raises:
        ParameterError: if the step is not possible, with those that are.
    """
    found = _MOVES.get((VersionState(state), VersionStep(step)))
    if found is None:
        possible = [str(next_step) for before, next_step in _MOVES if before is state]
        raise ParameterError(
            f"A version that is {state} cannot {step.replace('_', ' ')}.",
            fix=f"possible now: {', '.join(possible) or 'nothing; register a new version'}.",
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAllowance:
    """An owner's permission for exactly one version of an algorithm, pinned to its digest."""

    algorithm: str
    version: Version
    digest: str


def require_runnable(
    *, algorithm: str, version: Version, digest: str, state: VersionState, allowance: VersionAllowance | None
) -> None:
    """Return nothing if this version may run under an owner's allowance, else raise.

    Raises:
        ParameterError: if it is not published, or not exactly what the owner allowed.
    """
    if state not in (VersionState.PUBLISHED, VersionState.DEPRECATED):
        raise ParameterError(
            f"Version {version} of {algorithm} is {state} and does not run.",
            fix="choose a published version of the algorithm.",
        )
    if allowance != VersionAllowance(algorithm=algorithm, version=version, digest=digest):
        raise ParameterError(
            f"The data owner has not allowed version {version} of {algorithm}.",
            fix="ask the data owner to allow this version; allowances do not carry over to new versions.",
        )
