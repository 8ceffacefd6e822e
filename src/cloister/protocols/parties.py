"""Parties of a protocol: the channels between them, the rounds in which they act, and the transcript of who saw what.

A party is a state machine. It says which messages it needs next, and once all of them are there it takes a step and
says what to send. `run` takes all parties through their rounds: what is sent in one round arrives in the next. It
stops the protocol if a message comes that nobody asked for: a second one, one from the wrong party, or one of another
round.

A message is bytes, so that what a transcript counts is what would travel. `InProcessChannel` keeps messages in memory
and is for parties in one process: simulations, tests, and learning what a protocol costs. A channel between machines
has the same two methods; it must be encrypted and must know who sent what, which protocols rely on.

A transcript says how many rounds and bytes a protocol took, and who saw what. No payload is kept, only its digest.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from cloister.core import digests
from cloister.errors import ProtocolError

__all__ = [
    "Awaited",
    "Channel",
    "InProcessChannel",
    "Message",
    "Outgoing",
    "Party",
    "Transcript",
    "TranscriptEntry",
    "TranscriptWriter",
    "run",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one party tells another."""

    sender: str
    receiver: str
    kind: str
    payload: bytes = field(repr=False)


@runtime_checkable
class Channel(Protocol):
    """Carries messages, each once, to the party that it is for."""

    def send(self, message: Message) -> None:
        """Hand over a message."""
        ...

    def receive(self, receiver: str) -> tuple[Message, ...]:
        """Return the messages for a party that have arrived since it last asked, in the order of their arrival."""
        ...


class InProcessChannel:
    """Messages in memory.

    >>> channel = InProcessChannel()
    >>> channel.send(Message(sender="user", receiver="proxy", kind="greeting", payload=b"hello"))
    >>> [message.payload for message in channel.receive("proxy")], channel.receive("proxy")
    ([b'hello'], ())
    """

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[Message]] = defaultdict(list)

    def send(self, message: Message) -> None:
        """Keep a message for its receiver."""
        self._waiting[message.receiver].append(message)

    def receive(self, receiver: str) -> tuple[Message, ...]:
        """Return the messages for a party since it last asked."""
        return tuple(self._waiting.pop(receiver, ()))


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
        head = digests.GENESIS
        for entry in self.entries:
            head = digests.chain_digest({"before": head, **entry.to_dict()})
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


Awaited: TypeAlias = "tuple[str, str]"
"""The sender and the kind of a message that a party waits for."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What a party wants to have sent."""

    receiver: str
    kind: str
    payload: bytes = field(repr=False)


@runtime_checkable
class Party(Protocol):
    """Somebody who takes part."""

    @property
    def name(self) -> str:
        """Return what the others call this party."""
        ...

    @property
    def learns(self) -> tuple[str, ...]:
        """Return what this party learns from what it sees, in words."""
        ...

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to do."""
        ...

    @property
    def awaits(self) -> frozenset[Awaited]:
        """Return the messages that the next step needs; none before a first step that needs none."""
        ...

    def step(self, inbox: Mapping[Awaited, bytes]) -> Sequence[Outgoing]:
        """Act on exactly the awaited messages, and return what to send."""
        ...


def run(parties: Sequence[Party], *, protocol: str, channel: Channel | None = None) -> Transcript:
    """Take parties through a protocol until all are done.

    Args:
        parties: everybody who takes part, each with another name.
        protocol: what the protocol is called in the transcript.
        channel: what carries the messages; None is memory.

    Raises:
        ProtocolError: if two parties have one name, a message comes that nobody waits for, or nobody can go on.
    """
    carrier: Channel = InProcessChannel() if channel is None else channel
    names = [party.name for party in parties]
    if len(set(names)) != len(names):
        raise ProtocolError("Two parties have one name.", fix="give each party a name of its own.")
    writer = TranscriptWriter(protocol, {party.name: party.learns for party in parties})
    inboxes: dict[str, dict[Awaited, bytes]] = {name: {} for name in names}
    while not all(party.is_done for party in parties):
        for party in parties:
            _take_in(inboxes[party.name], party, carrier.receive(party.name))
        ready = [party for party in parties if not party.is_done and party.awaits <= inboxes[party.name].keys()]
        if not ready:
            raise ProtocolError("Everybody waits for somebody else.", fix="check that every party takes part.")
        writer.next_round()
        for party in ready:
            # The party gets exactly what it waited for; what is sent now arrives in the next round.
            inbox, inboxes[party.name] = inboxes[party.name], {}
            for outgoing in party.step(inbox):
                _send(outgoing, party, inboxes, carrier, writer)
    # What still arrives comes from somebody who does not follow the protocol.
    for party in parties:
        _take_in(inboxes[party.name], party, carrier.receive(party.name))
    return writer.transcript()


def _take_in(inbox: dict[Awaited, bytes], party: Party, arrived: Sequence[Message]) -> None:
    for message in arrived:
        key = (message.sender, message.kind)
        if party.is_done or key not in party.awaits or key in inbox:
            raise ProtocolError(
                f'"{party.name}" got a message of kind "{message.kind}" from "{message.sender}" that it does not wait '
                "for: it came twice, in another round, or from the wrong party.",
                fix="start the protocol again with new keys; if it stays, find out who sends it.",
            )
        inbox[key] = message.payload


def _send(
    outgoing: Outgoing, party: Party, inboxes: Mapping[str, object], carrier: Channel, writer: TranscriptWriter
) -> None:
    if outgoing.receiver not in inboxes:
        raise ProtocolError(
            f'"{party.name}" wants to tell "{outgoing.receiver}" something, who does not take part.',
            fix="give all parties the same list of names.",
        )
    message = Message(sender=party.name, receiver=outgoing.receiver, kind=outgoing.kind, payload=outgoing.payload)
    carrier.send(message)
    writer.record(message)
