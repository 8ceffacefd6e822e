from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import PlainValidator

from cloister.errors import InternalError, ManifestError, ParameterError, PolicyError
from cloister.hub.domain.documents import (
    Document,
    Entries,
    Moment,
    Several,
    Text,
    Texts,
    Truth,
    WrittenAs,
    one_of,
    whole,
)


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number == 0:
        raise ParameterError("That is no size.", fix="write a number.")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf(Document):
    aliases: ClassVar = {"boards": "planks"}
    left_out: ClassVar = ("wide",)

    boards: Annotated[int, whole(1, 9)]
    wide: Truth = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Light(Document):
    lamps: Texts = frozenset()
    on: Truth = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Room(Document):
    schema_marker: ClassVar = "test.room/1"
    called: ClassVar = "The room"
    error: ClassVar = ManifestError
    free_names: ClassVar = ("shelves",)
    unwritten: ClassVar = ("number",)
    inlined: ClassVar = {"light": Light}

    number: int = 0
    name: Text
    shelves: Annotated[
        tuple[tuple[str, Shelf], ...], WrittenAs(Entries[Shelf], lambda found: tuple(found.items()), dict)
    ]
    light: Light = field(default_factory=Light)
    built: Moment | None = None
    sizes: Several[Annotated[int, WrittenAs(Text, _positive, str)]] = ()
    kind: Annotated[str, PlainValidator(one_of(("north", "south")))] = "north"


WHOLE: dict[str, Any] = {
    "schema": "test.room/1",
    "name": "study",
    "shelves": {"left": {"planks": 3}, "shelves": {"planks": 4, "wide": True}},
    "lamps": ["a", "b"],
    "on": False,
    "built": "2027-01-01T00:00:00+00:00",
    "sizes": ["1", "20"],
    "kind": "south",
}


def test_a_document_comes_back_equal_and_in_its_order() -> None:
    room = Room.from_dict(WHOLE)
    assert room.light == Light(lamps=frozenset("ab"), on=False)
    assert dict(room.shelves)["left"] == Shelf(boards=3)
    assert list(room.to_dict().items()) == list(WHOLE.items())
    assert Room.from_dict(room.to_dict()) == room


def test_a_part_that_is_used_in_several_places_is_read_strictly_in_each() -> None:
    for name in WHOLE["shelves"]:
        shelves = WHOLE["shelves"] | {name: {"planks": 3, "surprise": 1}}
        with pytest.raises(ManifestError, match='"surprise" is not known here'):
            Room.from_dict(WHOLE | {"shelves": shelves})


def test_null_is_as_if_nothing_was_stated() -> None:
    room = Room.from_dict(WHOLE | {"lamps": None, "on": None, "built": None, "sizes": None})
    assert (room.light, room.built, room.sizes) == (Light(), None, ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nmae": 1}, 'The room: "nmae" is not known here. Did you mean "name"?'),
        ({"number": 1}, '"number" is not known here'),
        ({"light": {}}, '"light" is not known here'),
        ({"": {}}, '"" is not known here'),
        ({7: 1}, '"7" is not known here'),
        ({"x" * 1000: 1}, f'"{"x" * 100}" is not known here'),
        ({"schema": "test.room/2"}, "schema: this is not known"),
        ({"schema": None}, 'The room: "schema" is missing'),
        ({"name": None}, 'The room: "name" is missing'),
        ({"name": 3}, "name: this is not a text"),
        ({"lamps": [1]}, "lamps[0]: this is not a text"),
        ({"lamps": ("a",)}, "lamps: this is not a list"),
        ({"on": 1}, "on: this is neither true nor false"),
        ({"sizes": {"1"}}, "sizes: this is not a list"),
        ({"sizes": ["1", "0", "0"]}, "sizes[1]: that is no size"),
        ({"kind": "nort"}, 'kind: this is not known. Did you mean "north"?'),
        ({"shelves": []}, "shelves: this is not an object"),
        ({"shelves": {"left": 3}}, 'shelves["left"]: this is not an object'),
        ({"shelves": {"left": {}}}, 'shelves["left"]: "planks" is missing'),
        ({"shelves": {"left": {"boards": 3}}}, '"boards" is not known here'),
        ({"shelves": {"left": {"planks": True}}}, 'shelves["left"].planks: this is not a whole number from 1 to 9'),
        ({"shelves": {"shelves": {"planks": 10}}}, 'shelves["shelves"].planks: this is not a whole number'),
        ({"built": "0001-01-01T00:00:00+23:59"}, "built: this is not a date and time with its offset"),
    ],
)
def test_a_refusal_is_of_the_right_kind_and_names_the_place(change: dict[Any, Any], words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Room.from_dict(WHOLE | change)
    assert words in caught.value.problem
    assert caught.value.fix.endswith(".")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("values", [None, 3, "room", [], Shelf(boards=1)])
def test_what_is_no_object_is_refused(values: object) -> None:
    with pytest.raises(PolicyError, match="write fields in braces: planks, wide"):
        Shelf.from_dict(values)


def test_a_field_without_words_for_its_refusal_is_a_bug() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Careless(Document):
        size: int

    with pytest.raises(InternalError):
        Careless.from_dict({"size": "much"})
