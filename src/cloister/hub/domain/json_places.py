"""Reading JSON strictly: a value knows its place, so that every error can name it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cloister.errors import CloisterError, PolicyError, did_you_mean

__all__ = ["JsonPlace"]

_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """A value in a document, and how to get there from its top."""

    value: Any
    path: str = ""

    def wrong(self, problem: str, *, fix: str) -> PolicyError:
        """Return an error that names the place."""
        return PolicyError(f"{self.path or 'The policy'}: {problem}", fix=fix)

    def again(self, error: CloisterError) -> PolicyError:
        """Return an error of a value with its place."""
        return self.wrong(f"{error.problem[:1].lower()}{error.problem[1:]}", fix=error.fix)

    def fields(self, *known: str, required: Collection[str] = ()) -> JsonFields:
        """Return the fields of an object, all of which are known."""
        if not isinstance(self.value, dict):
            raise self.wrong("this is not an object.", fix=f"write fields in braces: {', '.join(known)}.")
        for name in self.value:
            if name not in known:
                raise self.wrong(
                    f'"{name}" is not known here.{did_you_mean(str(name), known)}', fix=f"use {', '.join(known)}."
                )
        for name in required:
            if name not in self.value:
                raise self.wrong(f'"{name}" is missing.', fix=f'add "{name}".')
        return JsonFields(self)

    def entries(self) -> Iterator[tuple[str, JsonPlace]]:
        """Yield the names and values of an object with free names."""
        if not isinstance(self.value, dict) or not all(isinstance(name, str) and name for name in self.value):
            raise self.wrong("this is not an object.", fix="write names and values in braces.")
        for name, value in self.value.items():
            yield name, JsonPlace(value, f'{self.path}["{name}"]')

    def items(self) -> list[JsonPlace]:
        """Return the items of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("this is not a list.", fix="write values in square brackets.")
        return [JsonPlace(item, f"{self.path}[{place}]") for place, item in enumerate(self.value)]

    def text(self) -> str:
        """Return a text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip() or len(self.value) > _LONGEST:
            raise self.wrong("this is not a text.", fix="write a text in quotes.")
        return self.value

    def texts(self) -> frozenset[str]:
        """Return a list of texts."""
        return frozenset(item.text() for item in self.items())

    def choice(self, allowed: Collection[str]) -> str:
        """Return one of a few texts."""
        if not isinstance(self.value, str) or self.value not in allowed:
            hint = did_you_mean(self.value, allowed) if isinstance(self.value, str) else ""
            raise self.wrong(f"this is not known.{hint}", fix=f"use one of {', '.join(allowed)}.")
        return self.value

    def truth(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("this is neither true nor false.", fix="write true or false, without quotes.")
        return self.value

    def whole(self, *, at_least: int) -> int:
        """Return a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < at_least:
            raise self.wrong("this is not such a whole number.", fix=f"write a whole number from {at_least} on.")
        return self.value

    def moment(self) -> datetime:
        """Return a date and time with its offset, in UTC."""
        try:
            moment = datetime.fromisoformat(self.text())
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise self.wrong(
                "this is not a date and time with its offset.", fix='write for example "2027-01-31T00:00:00+00:00".'
            )
        return moment.astimezone(UTC)


class JsonFields:
    """The fields of an object, each at its place."""

    def __init__(self, place: JsonPlace) -> None:
        self._place = place

    def __getitem__(self, name: str) -> JsonPlace:
        path = self._place.path
        return JsonPlace(self._place.value[name], f"{path}.{name}" if path else name)

    def get(self, name: str) -> JsonPlace | None:
        """Return a field; None where it is missing or null."""
        return None if self._place.value.get(name) is None else self[name]
