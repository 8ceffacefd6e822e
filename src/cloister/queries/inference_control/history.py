"""What an organization asked: the sets of rows, in order, so that the next question can be judged.

Refused questions are there as well: what was refused, and how many numbers were asked for in all.

A row is known by its position in the dataset version. Questions of all members of an organization belong in one
history, since they can put their answers together; several organizations can do so as well, and no history sees that.
A history tells which rows are alike and is protected like the table itself.
"""

from __future__ import annotations

import base64
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from cloister.core import validation
from cloister.errors import CloisterError, ParameterError
from cloister.queries.inference_control._linear_audit import Mask

__all__ = ["ASKED", "COUNTS", "KNOWN", "PRESENCE", "REFUSED", "Answered", "AnsweredSet", "History", "MemoryHistory"]

_SCHEMA = "cloister.inference_history/2"
_EARLIER = "cloister.inference_history/1"

ASKED = "asked"
KNOWN = "known"
REFUSED = "refused"

COUNTS = "counts"
PRESENCE = "presence"


@dataclass(frozen=True, slots=True)
class AnsweredSet:
    """A set of rows, as packed bits, and what it counts for.

    Attributes:
        members: the rows in the set, eight to a byte, without zeros at the end.
        kinds: "asked" for a query set that was answered, "known" for the rows that a question may be about, "refused"
            for a set about which an answer was refused, and the names of values that were told about the set.
    """

    members: bytes = field(repr=False)
    kinds: frozenset[str]

    @classmethod
    def of(cls, members: Mask, kind: str) -> Self:
        """Return a set from a truth value for each row."""
        return cls(np.packbits(members).tobytes().rstrip(b"\0"), frozenset((kind,)))

    def mask(self, rows: int) -> Mask:
        """Return a truth value for each of so many rows; rows that came later are not in the set."""
        packed = np.zeros((rows + 7) // 8, dtype=np.uint8)
        packed[: len(self.members)] = np.frombuffer(self.members, dtype=np.uint8)
        return np.unpackbits(packed, count=rows).astype(np.bool_)


@dataclass(slots=True)
class Answered:
    """Everything that was asked about one version of a table.

    Attributes:
        rows: how many rows the table had; None before the first question.
        fingerprint: a digest of these rows, by which the same rows in the same order are known again.
        sets: the answered and refused sets, oldest first.
        asked: how many numbers were asked for: answered, refused and repeated ones.
    """

    rows: int | None = None
    fingerprint: str = ""
    sets: list[AnsweredSet] = field(default_factory=list)
    asked: int = 0

    def draft(self) -> Self:
        """Return a copy that a question may change."""
        return replace(self, sets=list(self.sets))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; they are protected like the table."""
        sets = [{"members": _encode(item.members), "kinds": sorted(item.kinds)} for item in self.sets]
        return {
            "schema": _SCHEMA,
            "rows": self.rows,
            "fingerprint": self.fingerprint,
            "sets": sets,
            "asked": self.asked,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_dict` was made of.

        Raises:
            ParameterError: if it is something else, or damaged.
        """
        try:
            return cls._read(data)
        except (CloisterError, KeyError, TypeError, ValueError, AttributeError, zlib.error):
            raise _damage_error() from None

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> Self:
        if data["schema"] not in (_SCHEMA, _EARLIER) or not isinstance(data["fingerprint"], str):
            raise _damage_error()
        sets = list(data["sets"])
        # An earlier history did not count; each of its sets was asked for at least once.
        asked = len(sets) if data["schema"] == _EARLIER else validation.check_count(data["asked"], name="asked")
        if data["rows"] is None:
            if sets:
                raise _damage_error()
            return cls(asked=asked)
        rows = validation.check_count(data["rows"], name="rows")
        return cls(rows, data["fingerprint"], [_set_from(item, rows) for item in sets], asked)


class History(Protocol):
    """Where the answers of one organization about one dataset are remembered."""

    def exclusive(self) -> AbstractContextManager[Answered]:
        """Return what was answered, for reading and changing by one question at a time.

        Changes are kept when the block ends without an error, before any answer is shown. Nobody else may be inside:
        two questions that are harmless one by one can be harmful together.
        """
        ...


class MemoryHistory:
    """A history that is forgotten with the process."""

    def __init__(self, answered: Answered | None = None) -> None:
        self._answered = Answered() if answered is None else answered
        self._lock = threading.Lock()

    @contextmanager
    def exclusive(self) -> Iterator[Answered]:
        """Return what was answered, to one question at a time."""
        with self._lock:
            draft = self._answered.draft()
            yield draft
            self._answered = draft

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values; they are protected like the table."""
        with self._lock:
            return self._answered.to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the history that `to_dict` was made of.

        Raises:
            ParameterError: if it is something else, or damaged.
        """
        return cls(Answered.from_dict(data))

    def __repr__(self) -> str:
        return f"MemoryHistory({len(self._answered.sets)} sets)"


def _encode(members: bytes) -> str:
    return base64.b64encode(zlib.compress(members)).decode("ascii")


def _set_from(item: Mapping[str, Any], rows: int) -> AnsweredSet:
    longest = (rows + 7) // 8
    unpacking = zlib.decompressobj()
    # One byte more than can be shows that there is too much, without unpacking the whole of it.
    members = unpacking.decompress(base64.b64decode(item["members"], validate=True), longest + 1)
    beyond = members[-1] & ((1 << (-rows % 8)) - 1) if len(members) == longest and members else 0
    if len(members) > longest or not unpacking.eof or beyond or members.endswith(b"\0"):
        raise _damage_error()
    kinds = item["kinds"]
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise _damage_error()
    return AnsweredSet(members, frozenset(kinds))


def _damage_error() -> ParameterError:
    return ParameterError(
        "This is not a history of answered questions, or it is damaged.",
        fix="pass what to_dict() returned, unchanged; a lost history is a matter for the data owner.",
    )
