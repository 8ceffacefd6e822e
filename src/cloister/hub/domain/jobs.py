"""The states of a piece of work, and which may follow which.

::

    queued -> running -> done, or waiting for the owner -> done
    queued -> done, where the answer was stored before
    running -> queued, where a worker gives it back
    and before the end -> canceled, denied or, unless it waits, failed
"""

from __future__ import annotations

from enum import StrEnum

from cloister.errors import ConflictError

__all__ = ["MOST_LOSSES", "State", "check_change"]

MOST_LOSSES = 3
"""So many workers may be lost with one piece of work before it is done about nobody; one more, and it has failed."""


class State(StrEnum):
    """How far a piece of work is."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"
    DENIED = "denied"

    @property
    def is_final(self) -> bool:
        """Return whether nothing follows."""
        return not _NEXT[self]

    def may_become(self, later: State) -> bool:
        """Return whether another state may follow this one."""
        return later in _NEXT[self]


_BROKEN_OFF = frozenset({State.CANCELED, State.FAILED, State.DENIED})
_NEXT: dict[State, frozenset[State]] = {
    State.QUEUED: _BROKEN_OFF | {State.RUNNING, State.DONE},
    State.RUNNING: _BROKEN_OFF | {State.QUEUED, State.WAITING, State.DONE},
    State.WAITING: frozenset({State.DONE, State.DENIED, State.CANCELED}),
    State.DONE: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELED: frozenset(),
    State.DENIED: frozenset(),
}


def check_change(state: State, later: State) -> None:
    """Raise `ConflictError` unless one state may follow another."""
    if not state.may_become(later):
        raise ConflictError(f"Work that is {state} cannot become {later}.", fix="look at it again.")
