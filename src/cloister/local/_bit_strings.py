"""Values of a huge public domain as strings of bits: integers, bit strings, and text of bounded length.

The encoding is public and fixed. Integers are written with a declared number of binary digits, the most significant
first. Text is its UTF-8 bytes, filled up with zero bytes to a declared length; longer text is refused rather than cut,
and so is text with a zero byte. Rows of bytes hold the strings, filled up with zero bits to a whole number of 16-bit
words.

`prefix_codes` maps the first bits of values to numbers of a prime field. Up to 30 bits that is the prefix itself.
Longer prefixes are folded: their 16-bit words are the coefficients of a polynomial, evaluated at a public point of the
collection. Two different prefixes of w words get one number for at most ``w - 1`` of the ``2**31 - 2`` points (a
polynomial has no more roots than its degree). Either way the number of a sum of disjoint bits is the sum of their
numbers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.validation import check_choice, check_count
from cloister.errors import OutsideDomainError, ParameterError

__all__ = ["EXACT_BITS", "BitStrings", "fold_point", "prefix_codes"]

EXACT_BITS = 30
"""Longer prefixes are folded."""

_WORD = 16
_MOST = {"integer": 64, "bits": 1024, "text": 128}
_LABEL = "cloister.prefix/1"

Rows = NDArray[np.uint8]


@dataclass(frozen=True)
class BitStrings:
    """A public domain of equally long bit strings.

    Attributes:
        kind: ``"integer"`` (0 .. 2**size - 1), ``"bits"`` (text of 0 and 1) or ``"text"``.
        size: the number of bits, or for text of bytes.
    """

    kind: str
    size: int

    @classmethod
    def of(cls, kind: str, size: object) -> BitStrings:
        """Return the domain of a kind and a size, after checking them."""
        check_choice(kind, name="kind", allowed=_MOST)
        count = check_count(size, name="size", at_least=1)
        if count > _MOST[kind]:
            unit = "bytes" if kind == "text" else "bits"
            raise ParameterError("The values are too long.", fix=f"use at most {_MOST[kind]} {unit} for {kind}.")
        return cls(kind, count)

    @property
    def bits(self) -> int:
        """Return the length of the strings."""
        return 8 * self.size if self.kind == "text" else self.size

    def encode(self, values: Any) -> Rows:  # a list, an array, a Series, an Arrow array
        """Return a row of bytes for each value.

        Raises:
            OutsideDomainError: if a value is missing, of another type, too large or too long; it is not told which.
        """
        match self.kind:
            case "integer":
                return _integers(values, self.size)
            case "bits":
                return _pack_words(_characters(values, self.size, exactly=True) - ord("0"))
            case _:
                return _even(_characters(values, self.size, exactly=False))

    def decode(self, bits: NDArray[np.uint8]) -> list[Any]:
        """Return the value of each row of zeros and ones, or None where no value has these bits."""
        match self.kind:
            case "integer":
                padded = np.zeros((len(bits), 64), dtype=np.uint8)
                padded[:, 64 - self.size :] = bits
                numbers: list[Any] = np.packbits(padded, axis=1).view(">u8")[:, 0].tolist()
                return numbers
            case "bits":
                return [(row + ord("0")).tobytes().decode() for row in bits]
            case _:
                return [_text(row.tobytes()) for row in np.packbits(bits, axis=1)]


def fold_point(prime: int, key: str, length: int) -> int:
    """Return the public point for prefixes of a length in the collection of a key."""
    digest = hashlib.sha256(f"{_LABEL}:{key}:{length}".encode()).digest()
    # At the point zero the polynomial would keep its last word alone.
    return 1 + int.from_bytes(digest, "big") % (prime - 1)


def prefix_codes(rows: Rows, length: int, *, prime: int, point: int) -> NDArray[np.int64]:
    """Return the number of the first ``length`` bits of each row; see the module."""
    words = -(-length // _WORD)
    used = np.ascontiguousarray(rows[:, : 2 * words]).view(">u2").astype(np.int64)
    # Bits behind the prefix are cleared, so that all people who share the prefix get one number.
    used[:, -1] &= -1 << (_WORD * words - length)
    # So short a prefix is a number below the prime itself: no two of them can meet.
    if length <= EXACT_BITS:
        joined = used[:, 0] << _WORD | used[:, 1] if words == 2 else used[:, 0]
        return joined >> (_WORD * words - length)
    folded = np.zeros(len(rows), dtype=np.int64)
    # Horner's rule on residues below 2**31 never leaves 63 bits.
    for word in used.T:
        folded = (folded * point + word) % prime
    return folded


def pack_bits(bits: NDArray[np.uint8]) -> Rows:
    """Return rows of zeros and ones as rows of bytes."""
    return _pack_words(bits)


def _integers(values: Any, size: int) -> Rows:  # whatever holds integers
    problem = f"whole numbers from 0 up to 2**{size} - 1"
    # A masked entry would otherwise be read as whatever number lies under its mask.
    if np.ma.is_masked(values):
        raise _outside(problem)
    try:
        array = np.asarray(values)
    except ValueError:
        raise _outside(problem) from None
    # The sign is looked at before the cast, which would turn -1 into the largest number of all.
    if array.dtype.kind not in "iu" or array.ndim != 1 or (array.dtype.kind == "i" and (array < 0).any()):
        raise _outside(problem)
    numbers = array.astype(np.uint64)
    if size < 64 and (numbers >> np.uint64(size)).any():
        raise _outside(problem)
    # The digits are moved to the left, so that a prefix is a slice of the leading bytes.
    return np.ascontiguousarray((numbers << np.uint64(64 - size)).astype(">u8")).view(np.uint8).reshape(-1, 8)


def _characters(values: Any, size: int, *, exactly: bool) -> NDArray[np.uint8]:  # whatever holds text
    """Return the bytes of texts, one row each, filled up with zeros."""
    problem = f"text of exactly {size} digits 0 and 1" if exactly else f"text of at most {size} bytes"
    array = _strings(values, problem)
    # Arrow keeps all texts in one buffer with offsets: lengths and bytes are read without a loop over people.
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    lengths = np.diff(offsets)
    if lengths.size and (int(lengths.max()) > size or (exactly and int(lengths.min()) < size)):
        raise _outside(problem)
    # A slice shares the buffer of its parent, so that only the bytes between its own offsets may be looked at.
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]] if lengths.size else lengths
    # A zero byte inside of a text could not be told from the filling behind it.
    allowed = ((data == ord("0")) | (data == ord("1"))) if exactly else data > 0
    if not allowed.all():
        raise _outside(problem)
    rows = np.zeros((len(array), size), dtype=np.uint8)
    places = np.arange(len(data)) - np.repeat(offsets[:-1] - offsets[0], lengths)
    rows[np.repeat(np.arange(len(array)), lengths), places] = data
    return rows


def _strings(values: Any, problem: str) -> pa.StringArray:  # whatever holds text
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, from_pandas=True)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
            raise _outside(problem)
        array = array.cast(pa.string())
    except (pa.ArrowException, TypeError, ValueError):
        raise _outside(problem) from None
    if array.null_count:
        raise _outside(problem)
    return array


def _pack_words(bits: NDArray[np.uint8]) -> Rows:
    return _even(np.packbits(bits, axis=1))


def _even(rows: Rows) -> Rows:
    return np.pad(rows, ((0, 0), (0, rows.shape[1] % 2)))


def _text(data: bytes) -> str | None:
    told = data.rstrip(b"\0")
    try:
        # Candidates are made of bits that nobody chose as text, so that many of them are none.
        return None if b"\0" in told else told.decode()
    except UnicodeDecodeError:
        return None


def _outside(problem: str) -> OutsideDomainError:
    return OutsideDomainError(
        "A value is missing or outside of the declared domain.", fix=f"give {problem}, or declare a larger size."
    )
