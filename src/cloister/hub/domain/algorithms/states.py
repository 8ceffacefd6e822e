"""The life of one version of an algorithm, and what an owner's allowance is pinned to.

    draft -> checked -> published -> deprecated
      any of them -> revoked;  checked -> draft when a reviewer sends it back

A version is immutable: a change of one byte is another digest, and a new version has to be allowed anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cloister.errors import ParameterError
from cloister.hub.domain.algorithms.versions import Version

__all__ = ["Allowance", "State", "Step", "after", "require_runnable"]


class State(StrEnum):
    """Where a version is in its life."""

    DRAFT = "draft"
    CHECKED = "checked"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    REVOKED = "revoked"


class Step(StrEnum):
    """What can happen to a version."""

    PASS_CHECKS = "pass_checks"  # noqa: S105  # no password
    SEND_BACK = "send_back"
    PUBLISH = "publish"
    DEPRECATE = "deprecate"
    RESTORE = "restore"
    REVOKE = "revoke"


_MOVES: dict[tuple[State, Step], State] = {
    (State.DRAFT, Step.PASS_CHECKS): State.CHECKED,
    (State.CHECKED, Step.SEND_BACK): State.DRAFT,
    (State.CHECKED, Step.PUBLISH): State.PUBLISHED,
    (State.PUBLISHED, Step.DEPRECATE): State.DEPRECATED,
    (State.DEPRECATED, Step.RESTORE): State.PUBLISHED,
    **{(state, Step.REVOKE): State.REVOKED for state in State if state is not State.REVOKED},
}


def after(state: State, step: Step) -> State:
    """Return the state after a step.

    Raises:
        ParameterError: if the step is not possible, with those that are.
    """
    found = _MOVES.get((State(state), Step(step)))
    if found is None:
        possible = [str(next_step) for before, next_step in _MOVES if before is state]
        raise ParameterError(
            f"A version that is {state} cannot {step.replace('_', ' ')}.",
            fix=f"possible now: {', '.join(possible) or 'nothing; register a new version'}.",
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """An owner's permission for exactly one version of an algorithm, pinned to its digest."""

    algorithm: str
    version: Version
    digest: str


def require_runnable(
    *, algorithm: str, version: Version, digest: str, state: State, allowance: Allowance | None
) -> None:
    """Return nothing if this version may run under an owner's allowance, else raise.

    Raises:
        ParameterError: if it is not published, or not exactly what the owner allowed.
    """
    if state not in (State.PUBLISHED, State.DEPRECATED):
        raise ParameterError(
            f"Version {version} of {algorithm} is {state} and does not run.",
            fix="choose a published version of the algorithm.",
        )
    if allowance != Allowance(algorithm=algorithm, version=version, digest=digest):
        raise ParameterError(
            f"The data owner has not allowed version {version} of {algorithm}.",
            fix="ask the data owner to allow this version; allowances do not carry over to new versions.",
        )
