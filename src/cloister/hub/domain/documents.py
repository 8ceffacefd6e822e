"""Documents: values that are written as JSON, and read strictly, so that every error names its place and has a fix.

A document is a frozen dataclass over `Document`. Its fields are the fields of the JSON object, in this order, and their
types say how each is written; there is no other definition of the format. Pydantic walks through it. A value that is
made in Python is not checked against these types: they are for what comes from outside.

The types of fields are here as well: texts, truth values, choices, whole numbers, moments. `WrittenAs` makes more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    PlainValidator,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from cloister.errors import CloisterError, InternalError, PolicyError, did_you_mean

__all__ = [
    "Document",
    "Entries",
    "Listed",
    "Moment",
    "Several",
    "Text",
    "Texts",
    "Truth",
    "WrittenAs",
    "choice",
    "mistake",
    "one_of",
    "require",
    "whole",
]

_LONGEST = 10_000
_INLINED = ""
"""Stands for a part whose fields are written among those of the whole: the only name that no place shows."""


def mistake(problem: str, *, fix: str, at: tuple[str, ...] = ()) -> PydanticCustomError:
    """Return what a check of a part of a document raises; reading adds the place.

    Args:
        problem: what is wrong there, in lower case.
        fix: what to write instead.
        at: where it is, from the part that is checked.
    """
    # Half of a character, which JSON can say, is shown by its number: it could not be written.
    said = problem.encode("utf-8", "backslashreplace").decode("utf-8")
    return PydanticCustomError("mistake", "refused", {"problem": said, "fix": fix, "at": at})


# Reading and writing -------------------------------------------------------------------------------------------------


class Document:
    """A value that is written as a JSON object; what is unknown, missing or ill-typed there is refused."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict]

    schema_marker: ClassVar[str] = ""
    """What the first field, ``schema``, says; documents that are parts of others have none."""
    called: ClassVar[str] = "The policy"
    """What the whole is called in errors."""
    error: ClassVar[type[CloisterError]] = PolicyError
    """The error that reading raises."""
    free_names: ClassVar[Collection[str]] = ()
    """Fields below which somebody else chooses the names; places show these in brackets."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """Names in the JSON object, for fields that have another one in Python."""
    unwritten: ClassVar[Collection[str]] = ()
    """Fields that are not in the object, since whatever holds it knows them."""
    left_out: ClassVar[Collection[str]] = ()
    """Fields that are not written when they are as by default."""
    inlined: ClassVar[Mapping[str, type[Any]]] = {}
    """Fields that are documents whose fields stand among those of this one."""
    null_is_unstated: ClassVar[bool] = True
    """Whether null is the same as leaving a field out; otherwise it is refused."""
    _read_fields: ClassVar[Any]
    _write_fields: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        # Pydantic looks for these in the class itself, not in its bases.
        names = {**dict.fromkeys(cls.inlined, _INLINED), **cls.aliases}
        cls.__pydantic_config__ = ConfigDict(extra="forbid", alias_generator=lambda name: names.get(name, name))
        decorate: Any = model_validator(mode="before")
        cls._read_fields = decorate(classmethod(_read_fields))
        cls._write_fields = model_serializer(mode="wrap")(_write_fields)

    @classmethod
    def from_dict(cls, values: object) -> Self:
        """Return the value that plain values describe.

        Raises:
            CloisterError: of the kind ``error``, with the first place that is wrong.
        """
        kind: Any = cls
        try:
            read: Self = _adapter(kind).validate_python(dict(values) if isinstance(values, Mapping) else [])
        except ValidationError as refusal:
            raise _explain(refusal, cls) from None
        return read

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that `from_dict` gives back equal."""
        kind: Any = type(self)
        written: dict[str, Any] = _adapter(kind).dump_python(self, by_alias=True)
        return written

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields to read from those that are stated, all of which are known."""
        return values

    def finish(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields to write."""
        return values


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of all fields of the JSON object, in their order."""
    found = ["schema"] if kind.schema_marker else []
    for field in fields(kind):
        if field.name in kind.inlined:
            found += _names(kind.inlined[field.name])
        elif field.name not in kind.unwritten:
            found.append(kind.aliases.get(field.name, field.name))
    return tuple(found)


def _read_fields(cls: Any, values: Any) -> dict[str, Any]:  # whatever somebody wrote
    known = _names(cls)
    if not isinstance(values, Mapping):
        raise mistake("this is not an object.", fix=f"write fields in braces: {', '.join(known)}.")
    for name in values:
        if name not in known:
            written = str(name)[:100]
            raise mistake(
                f'"{written}" is not known here.{did_you_mean(written, known)}', fix=f"use {', '.join(known)}."
            )
    stated = {name: value for name, value in values.items() if value is not None or not cls.null_is_unstated}
    if cls.schema_marker:
        require(stated, "schema")
        one_of((cls.schema_marker,), at=("schema",))(stated.pop("schema"))
    for part in cls.inlined.values():
        given = {name: stated.pop(name) for name in _names(part) if name in stated}
        if given:
            stated[_INLINED] = given
    prepared: dict[str, Any] = cls.prepare(stated)
    for name, value in prepared.items():
        if value is None:
            raise mistake("there is nothing here.", fix="write a value.", at=(name,))
    return prepared


def _write_fields(self: Document, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
    values: dict[str, Any] = {"schema": self.schema_marker} if self.schema_marker else {}
    given = write(self)
    for field in fields(self):  # type: ignore[arg-type]  # documents are dataclasses
        if field.name in self.unwritten or (field.name in self.left_out and getattr(self, field.name) == _plain(field)):
            continue
        if field.name in self.inlined:
            values |= given[_INLINED]
        else:
            name = self.aliases.get(field.name, field.name)
            values[name] = given[name]
    return self.finish(values)


def _plain(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def require(values: Mapping[str, Any], name: str) -> None:
    """Refuse an object without a field that has a default in Python only."""
    if name not in values:
        raise mistake(f'"{name}" is missing.', fix=f'add "{name}".')


# Errors --------------------------------------------------------------------------------------------------------------


def _explain(refusal: ValidationError, kind: type[Document]) -> CloisterError:
    """Return the first thing that pydantic refused as an error of ours: in words, with its place and a fix.

    Nothing is quoted here. What a problem quotes is a name that the check found in the document itself.
    """
    first = refusal.errors(include_url=False, include_input=False)[0]
    place, context = first["loc"], first.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, CloisterError):
        if not place:
            return kind.error(cause.problem, fix=cause.fix)
        problem, fix = f"{cause.problem[:1].lower()}{cause.problem[1:]}", cause.fix
    elif first["type"] == "mistake":
        problem, fix, place = context["problem"], context["fix"], (*place, *context["at"])
    elif first["type"] == "missing":
        problem, fix, place = f'"{place[-1]}" is missing.', f'add "{place[-1]}".', place[:-1]
    else:
        raise InternalError(f"Reading a document met {first['type']}, which no check of it raises.")
    return kind.error(f"{_path(place, kind.free_names) or kind.called}: {problem}", fix=fix)


def _path(place: tuple[str | int, ...], free: Collection[str]) -> str:
    path, is_free = "", False
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != _INLINED:
            path += f'["{part}"]' if is_free else f".{part}" if path else part
            is_free = not is_free and part in free
    return path


# Types of fields -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenAs:
    """Says of a type of field that it is written in another form.

    Attributes:
        form: the type of the form.
        read: makes a value of the form.
        write: makes the form of a value.
    """

    form: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        form = handler.generate_schema(self.form)
        write = core_schema.plain_serializer_function_ser_schema(self.write, return_schema=form)
        return core_schema.no_info_after_validator_function(self.read, form, serialization=write)


def _check_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        raise mistake("this is not a text.", fix="write a text in quotes.")
    return value


def _check_truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise mistake("this is neither true nor false.", fix="write true or false, without quotes.")
    return value


@dataclass(frozen=True, slots=True)
class _List:
    """Takes a list and nothing like it; the first item that is wrong is enough, so that a long list is no work."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        items: Any = {**handler(source), "fail_fast": True}
        write = core_schema.wrap_serializer_function_ser_schema(lambda value, write: list(write(value)), schema=items)
        return core_schema.no_info_before_validator_function(self._check, items, serialization=write)

    @staticmethod
    def _check(value: object) -> object:
        if not isinstance(value, list):
            raise mistake("this is not a list.", fix="write values in square brackets.")
        return value


def _check_entries(values: object) -> object:
    if not isinstance(values, Mapping) or not all(isinstance(name, str) and name for name in values):
        raise mistake("this is not an object.", fix="write names and values in braces.")
    return dict(values)


def _read_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise mistake("this is not a date and time with its offset.", fix='write for example "2027-01-31T00:00:00+00:00".')


def one_of(allowed: Collection[str], *, at: tuple[str, ...] = ()) -> Callable[[Any], str]:
    """Return a check that a value is one of a few texts."""

    def check(value: Any) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        hint = did_you_mean(value[:100], allowed) if isinstance(value, str) else ""
        raise mistake(f"this is not known.{hint}", fix=f"use one of {', '.join(allowed)}.", at=at)

    return check


def choice(kind: type[StrEnum]) -> WrittenAs:
    """Return how a member of an enumeration is written: as its text."""
    return WrittenAs(Annotated[Any, AfterValidator(one_of([str(item) for item in kind]))], kind, str)


def whole(at_least: int, at_most: int | None = None) -> PlainValidator:
    """Return a check that a value is a whole number within limits; a truth value is none."""
    limits = f"from {at_least:,} on" if at_most is None else f"from {at_least:,} to {at_most:,}"

    def check(value: Any) -> int:
        if type(value) is not int or value < at_least or (at_most is not None and value > at_most):
            raise mistake(f"this is not a whole number {limits}.", fix=f"write a whole number {limits}.")
        return value

    return PlainValidator(check)


Item = TypeVar("Item")
Listed: TypeAlias = Annotated[list[Item], _List()]
Several: TypeAlias = Annotated[tuple[Item, ...], _List()]
Entries: TypeAlias = Annotated[dict[Any, Item], BeforeValidator(_check_entries)]
Text: TypeAlias = Annotated[str, PlainValidator(_check_text)]
Texts: TypeAlias = Annotated[frozenset[str], WrittenAs(Listed[Text], frozenset, sorted)]
Truth: TypeAlias = Annotated[bool, PlainValidator(_check_truth)]
Moment: TypeAlias = Annotated[datetime, WrittenAs(Text, _read_moment, datetime.isoformat)]
