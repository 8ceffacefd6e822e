"""Transcripts: how many rounds and bytes a protocol took, and who saw what. No payload is kept, only its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cloister.core import chain
from cloister.protocols.channels import Message

__all__ = ["Transcript", "TranscriptEntry", "TranscriptWriter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptEntry:
    """That a message was sent: when, by whom, to whom, of which kind and size, and its digest."""

    round: int
    sender: str
    receiver: str
    kind: str
    size: int
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {name: getattr(self, name) for name in ("round", "sender", "receiver", "kind", "size", "digest")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What happened in a protocol, without what was said.

    Attributes:
        protocol: what it is called.
        rounds: how many rounds it took; in the last one nothing may have been sent.
        entries: one for each message.
        learned: what each party learns from what it saw, in words.
    """

    protocol: str
    rounds: int
    entries: tuple[TranscriptEntry, ...]
    learned: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        return f"{self.protocol}: {self.rounds} rounds, {len(self.entries)} messages, {self.bytes:,} bytes"

    @property
    def bytes(self) -> int:
        """Return how many bytes all messages have."""
        return sum(entry.size for entry in self.entries)

    @property
    def head(self) -> str:
        """Return a digest of everything: parties who note it can later show that they saw the same run."""
        head = chain.GENESIS
        for entry in self.entries:
            head = chain.digest({"before": head, **entry.to_dict()})
        return head

    def seen_by(self, party: str) -> tuple[TranscriptEntry, ...]:
        """Return the messages that a party received."""
        return tuple(entry for entry in self.entries if entry.receiver == party)

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (party, what it learned) rows for a person."""
        return tuple((party, "; ".join(texts)) for party, texts in self.learned.items())

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {
            "schema": "cloister.transcript/1",
            "protocol": self.protocol,
            "rounds": self.rounds,
            "bytes": self.bytes,
            "messages": [entry.to_dict() for entry in self.entries],
            "learned": {party: list(texts) for party, texts in self.learned.items()},
            "head": self.head,
        }


class TranscriptWriter:
    """Writes a transcript while a protocol runs."""

    def __init__(self, protocol: str, learned: Mapping[str, tuple[str, ...]]) -> None:
        self._protocol, self._learned = protocol, dict(learned)
        self._entries: list[TranscriptEntry] = []
        self._round = 0

    def next_round(self) -> None:
        """Begin a round."""
        self._round += 1

    def record(self, message: Message) -> None:
        """Note that a message was sent in this round."""
        self._entries.append(
            TranscriptEntry(
                round=self._round,
                sender=message.sender,
                receiver=message.receiver,
                kind=message.kind,
                size=len(message.payload),
                digest=hashlib.sha256(message.payload).hexdigest(),
            )
        )

    def transcript(self) -> Transcript:
        """Return what was written."""
        return Transcript(
            protocol=self._protocol, rounds=self._round, entries=tuple(self._entries), learned=self._learned
        )
