"""The states of a piece of work and of a survey, which may follow which, and how one person is kept to one answer.

Work::

    queued -> running -> done, or waiting for the owner -> done
    queued -> done, where the answer was stored before
    running -> queued, where a worker gives it back
    and before the end -> canceled, denied or, unless it waits, failed

A survey only ever goes forwards: draft, open, closed.
"""

from __future__ import annotations

from enum import StrEnum

from cloister.errors import ConflictError

__all__ = ["MOST_LOSSES", "JobState", "check_change"]


MOST_LOSSES = 3
"""So many workers may be lost with one piece of work before it is done about nobody; one more, and it has failed."""


class JobState(StrEnum):
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

    def may_become(self, later: JobState) -> bool:
        """Return whether another state may follow this one."""
        return later in _NEXT[self]


_BROKEN_OFF = frozenset({JobState.CANCELED, JobState.FAILED, JobState.DENIED})
_NEXT: dict[JobState, frozenset[JobState]] = {
    JobState.QUEUED: _BROKEN_OFF | {JobState.RUNNING, JobState.DONE},
    JobState.RUNNING: _BROKEN_OFF | {JobState.QUEUED, JobState.WAITING, JobState.DONE},
    JobState.WAITING: frozenset({JobState.DONE, JobState.DENIED, JobState.CANCELED}),
    JobState.DONE: frozenset(),
    JobState.FAILED: frozenset(),
    JobState.CANCELED: frozenset(),
    JobState.DENIED: frozenset(),
}


def check_change(state: JobState, later: JobState) -> None:
    """Raise `ConflictError` unless one state may follow another."""
    if not state.may_become(later):
        raise ConflictError(f"Work that is {state} cannot become {later}.", fix="look at it again.")


class SurveyState(StrEnum):
    """Where a survey is: it only ever goes forwards."""

    DRAFT = "draft"
    OPEN = "open"
    CLOSED = "closed"


class Admission(StrEnum):
    """Who may answer, and what the hub could know about who did."""

    EVERYBODY = "everybody"
    LINKS = "links"
    BLIND = "blind"

    @property
    def sentence(self) -> str:
        """Return what this means, for whoever asks and whoever answers."""
        return _SENTENCES[self]


_SENTENCES = {
    Admission.EVERYBODY: (
        "Everybody who has the address can answer. One person can answer often, and nobody can tell."
    ),
    Admission.LINKS: (
        "Everybody who was invited can answer once. The hub keeps invitations apart from reports, but at the moment "
        "when a report arrives it sees both."
    ),
    Admission.BLIND: (
        "Everybody who was invited can answer once. An invitation is exchanged for a blind signature first, so that "
        "not even the hub can tell which invitation a report belongs to."
    ),
}
