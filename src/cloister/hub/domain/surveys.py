"""What a survey can be, and how one person is kept to one answer."""

from __future__ import annotations

from enum import StrEnum


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
