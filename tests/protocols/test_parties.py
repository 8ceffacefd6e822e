from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cloister.errors import ProtocolError
from cloister.protocols import Channel, InProcessChannel, Message, Outgoing, Party, Transcript, run


class Talker:
    """Waits for some messages, sends others, and is done."""

    def __init__(self, name: str, *, awaits: Sequence[tuple[str, str]] = (), sends: Sequence[Outgoing] = ()) -> None:
        self.name, self.learns, self.is_done = name, (f"what {name} hears",), False
        self.awaits, self._sends = frozenset(awaits), sends
        self.heard: Mapping[Any, bytes] = {}

    def step(self, inbox: Mapping[Any, bytes]) -> Sequence[Outgoing]:
        self.heard, self.is_done = inbox, True
        return self._sends


class Doubling(InProcessChannel):
    def send(self, message: Message) -> None:
        super().send(message)
        super().send(message)


def pair() -> tuple[Talker, Talker]:
    first = Talker("ann", sends=[Outgoing("bob", "question", b"how?"), Outgoing("bob", "sign", b"!")])
    second = Talker("bob", awaits=[("ann", "question"), ("ann", "sign")])
    return first, second


def test_messages_arrive_in_the_next_round() -> None:
    ann, bob = pair()
    transcript = run([bob, ann], protocol="talk")
    assert bob.heard == {("ann", "question"): b"how?", ("ann", "sign"): b"!"}
    assert (transcript.rounds, transcript.bytes, len(transcript.entries)) == (2, 5, 2)
    assert [entry.round for entry in transcript.entries] == [1, 1]
    assert isinstance(ann, Party)
    assert isinstance(InProcessChannel(), Channel)


def test_a_transcript_says_who_saw_what_but_not_what_was_said() -> None:
    transcript = run(pair(), protocol="talk")
    assert [entry.kind for entry in transcript.seen_by("bob")] == ["question", "sign"]
    assert transcript.seen_by("ann") == ()
    assert transcript.summary() == (("ann", "what ann hears"), ("bob", "what bob hears"))
    assert str(transcript) == "talk: 2 rounds, 2 messages, 5 bytes"
    told = transcript.to_dict()
    assert next(iter(told)) == "schema"
    assert told["head"] == transcript.head
    assert "how?" not in str(told)
    assert "how?" not in repr(Message(sender="ann", receiver="bob", kind="question", payload=b"how?"))


def test_the_head_changes_with_every_message() -> None:
    ann, bob = pair()
    heads = {run(pair(), protocol="talk").head, run([ann, bob], protocol="talk").head}
    assert len(heads) == 1
    other = Talker("ann", sends=[Outgoing("bob", "question", b"why?"), Outgoing("bob", "sign", b"!")])
    heads.add(run([other, pair()[1]], protocol="talk").head)
    heads.add(Transcript(protocol="talk", rounds=0, entries=(), learned={}).head)
    assert len(heads) == 3


def test_a_message_that_comes_twice_stops_the_protocol() -> None:
    with pytest.raises(ProtocolError, match="came twice.*\n\nFix: start the protocol again"):
        run(pair(), protocol="talk", channel=Doubling())


def test_a_message_that_nobody_waits_for_stops_the_protocol() -> None:
    ann = Talker("ann", sends=[Outgoing("bob", "insult", b"")])
    with pytest.raises(ProtocolError, match='"bob" got a message of kind "insult" from "ann"'):
        run([ann, pair()[1]], protocol="talk")


def test_a_message_after_the_end_stops_the_protocol() -> None:
    bob = Talker("bob")
    with pytest.raises(ProtocolError, match="another round"):
        run([Talker("ann", sends=[Outgoing("bob", "late", b"")]), bob], protocol="talk")


def test_waiting_forever_is_found() -> None:
    with pytest.raises(ProtocolError, match="waits for somebody else.*\n\nFix: check that every party"):
        run([pair()[1]], protocol="talk")


def test_a_stranger_cannot_be_told_anything() -> None:
    with pytest.raises(ProtocolError, match="does not take part.*\n\nFix: give all parties the same list"):
        run([Talker("ann", sends=[Outgoing("eve", "secret", b"")])], protocol="talk")


def test_names_are_different() -> None:
    with pytest.raises(ProtocolError, match="a name of its own"):
        run([Talker("ann"), Talker("ann")], protocol="talk")
