"""Parties: who takes part in a protocol, and the rounds in which they act.

A party is a state machine. It says which messages it needs next, and once all of them are there it takes a step and
says what to send. `run` takes all parties through their rounds: what is sent in one round arrives in the next. It
stops the protocol if a message comes that nobody asked for: a second one, one from the wrong party, or one of another
round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from cloister.errors import ProtocolError
from cloister.protocols.channels import Channel, InProcessChannel, Message
from cloister.protocols.transcripts import Transcript, TranscriptWriter

__all__ = ["Awaited", "Outgoing", "Party", "run"]

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
            inbox, inboxes[party.name] = inboxes[party.name], {}
            for outgoing in party.step(inbox):
                _send(outgoing, party, inboxes, carrier, writer)
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
