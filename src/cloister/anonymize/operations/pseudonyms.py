"""Keyed pseudonyms and keyed shifts of dates: what nobody can compute or undo without the key.

``token = base32(HMAC-SHA256(key, domain || 0x00 || normalized value))``, cut to a length. Plain hashes are not offered:
identifiers are few (a billion social security numbers), so anyone inverts a hash, salted or not, by trying them all.
What makes a pseudonym is the secret key; use another one for each project, so that two releases do not join.

Pseudonyms are still personal data. Rows of one person stay linked, and nothing is hidden in the other columns.

Reversible tokens are encrypted with AES-SIV (RFC 5297): the same value gives the same token, and `reveal` takes the
holder of the key back. Random tokens follow from nothing and cannot be repeated.

All dates of one person are shifted by the same secret number of days, so intervals within a person stay exact; between
persons, and to the calendar, they are lost. The shift follows from the person's identifier by a secret key, so that
several tables of a project agree. Whoever learns one true date of a person learns all of them, and rare sequences of
intervals identify.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from cloister.anonymize.operations._arrow_columns import (
    Integers,
    column_of,
    decode_column,
    encode_column,
    is_moment,
    present,
    with_column,
)
from cloister.anonymize.operations.base import (
    Operation,
    OperationContext,
    need_column_name,
    need_names,
    operations,
)
from cloister.anonymize.operations.secret import Secret
from cloister.core.construction import construct
from cloister.core.random import RandomSource
from cloister.core.validation import check_choice, check_count
from cloister.data.values import text_of
from cloister.errors import DataError, ParameterError, ParameterTypeError

_NORMALIZATIONS: dict[str, Callable[[str], str]] = {
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "strip": str.strip,
    "casefold": lambda text: unicodedata.normalize("NFC", text.casefold()),
}
_SHORTEST, _LONGEST = 10, 52
_BLOCK = 16
_CHUNK = 2**15
_ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", dtype=np.uint8)


@operations.register("pseudonymize")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudonymize(Operation):
    """Replace identifiers by tokens that follow from a secret key.

    Attributes:
        column: the column; missing cells stay missing.
        key: the secret: a `Secret`, its bytes, ``{"env": name}`` or ``{"file": path}``.
        domain: the attribute and the purpose, such as ``"patient/heart-study"``: tokens of two domains do not join.
        reversible: whether the holder of the key can take tokens back with `reveal`.
        length: how many characters of base 32 a token has that cannot be taken back.
        normalize: what is evened out first, in this order: ``nfc``, ``strip``, ``casefold``.
    """

    name = "pseudonymize"
    caution = "identifiers are pseudonyms: rows of one person stay linked, and the data stay personal data"

    column: str = field(kw_only=False)
    key: Secret
    domain: str
    reversible: bool = False
    length: int = 26
    normalize: tuple[str, ...] = ("nfc",)

    def __init__(
        self,
        column: str,
        *,
        key: Secret | bytes | Mapping[str, Any] | str,
        domain: str,
        reversible: bool = False,
        length: int = 26,
        normalize: Sequence[str] = ("nfc",),
    ) -> None:
        construct(
            self, column=column, key=key, domain=domain, reversible=reversible, length=length, normalize=normalize
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
        object.__setattr__(self, "key", Secret.of(self.key))
        object.__setattr__(self, "normalize", _normalizations(self.normalize))
        check_domain(self.domain)
        _check_length(self.length)

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with tokens."""
        distinct, codes = encode_column(column_of(rows, self.column))
        texts = [normalize(text_of(value), self.normalize) for value in distinct.to_pylist()]
        # Spellings that normalization makes equal share one token; others must not.
        wanted = list(dict.fromkeys(texts))
        tokens = dict(zip(wanted, _distinct(self._tokens(wanted)), strict=True))
        return with_column(rows, self.column, decode_column((tokens[text] for text in texts), codes, pa.string()))

    def _tokens(self, texts: Sequence[str]) -> list[str]:
        key = self.key.read()
        if self.reversible:
            return encrypt_all(texts, key=key, domain=self.domain)
        return keyed_tokens(texts, key=key, domain=self.domain, length=self.length)


@operations.register("random_tokens")
@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTokens(Operation):
    """Replace identifiers by random tokens, equal ones by equal ones; nobody can repeat or undo it.

    Attributes:
        column: the column; missing cells stay missing.
        length: how many characters of base 32 a token has.
    """

    name = "random_tokens"
    is_random = True
    caution = "identifiers are random tokens: rows of one person stay linked"

    column: str = field(kw_only=False)
    length: int = 26

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
        _check_length(self.length)

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows with tokens."""
        distinct, codes = encode_column(column_of(rows, self.column))
        tokens = _distinct(_random_tokens(context.source, len(distinct), self.length))
        return with_column(rows, self.column, decode_column(tokens, codes, pa.string()))


def keyed_tokens(texts: Iterable[str], *, key: bytes, domain: str, length: int = 26) -> list[str]:
    """Return the keyed tokens of normalized identifiers."""
    # No domain holds a zero byte, so that domain and value cannot be cut in two ways.
    start = domain.encode() + b"\x00"
    digests = [hmac.digest(key, start + text.encode("utf-8", "surrogatepass"), "sha256") for text in texts]
    return _spell_base32(b"".join(digests), size=32, length=length)


def normalize(text: str, steps: Iterable[str]) -> str:
    """Return a text with differences evened out that do not count."""
    for step in steps:
        text = _NORMALIZATIONS[step](text)
    return text


def encrypt_all(texts: Iterable[str], *, key: bytes, domain: str) -> list[str]:
    """Return reversible tokens; their length tells the identifier's length only to 16 bytes."""
    cipher = AESSIV(_encryption_key(key))
    associated = [domain.encode()]
    return [_encode(cipher.encrypt(_pad(text.encode("utf-8", "surrogatepass")), associated)) for text in texts]


def reveal(tokens: Iterable[str | None], *, key: object, domain: str) -> list[str | None]:
    """Return the identifiers behind reversible tokens, as texts; None stays None.

    Args:
        tokens: the tokens, in any order.
        key: the secret with which they were made.
        domain: the domain for which they were made.

    Raises:
        DataError: if a token was not made with this key and domain, or was changed.
    """
    cipher = AESSIV(_encryption_key(Secret.of(key).read()))
    associated = [check_domain(domain).encode()]
    try:
        return [None if item is None else _decrypt(cipher, item, associated) for item in tokens]
    except (InvalidTag, ValueError):
        raise DataError("A token could not be revealed.", fix="check the key, the domain and the tokens.") from None


def check_domain(domain: object) -> str:
    """Return a domain: a text without the separator."""
    if not isinstance(domain, str) or not domain or "\x00" in domain:
        raise ParameterError(
            "Pseudonyms need a domain: what is named, and for what purpose.",
            fix='write for example domain="patient/heart-study"; joined tables must use the same one.',
        )
    return domain


def _normalizations(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParameterTypeError("normalize is not a list.", fix='write for example normalize=["nfc", "strip"].')
    chosen = [check_choice(item, name="normalize", allowed=tuple(_NORMALIZATIONS)) for item in value]
    return tuple(step for step in _NORMALIZATIONS if step in chosen)


def _check_length(length: object) -> None:
    if check_count(length, name="length", at_least=_SHORTEST) > _LONGEST:
        raise ParameterError(f"A token has at most {_LONGEST} characters.", fix="use for example length=26.")


def _distinct(tokens: list[str]) -> list[str]:
    if len(set(tokens)) < len(tokens):
        raise DataError("Two identifiers got the same token.", fix="use longer tokens, such as length=26.")
    return tokens


def _random_tokens(source: RandomSource, count: int, length: int) -> list[str]:
    """Return tokens that follow from nothing."""
    size = -(-length * 5 // 8)
    return _spell_base32(source.random_bytes(size * count), size=size, length=length)


def _spell_base32(data: bytes, *, size: int, length: int) -> list[str]:
    """Return pieces of some bytes in base 32 (RFC 4648), each cut to a length: many at a time, five bits a letter."""
    pieces = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
    spelled: list[str] = []
    for start in range(0, len(pieces), _CHUNK):
        bits = np.unpackbits(pieces[start : start + _CHUNK], axis=1)
        bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 5)))[:, : 5 * length]
        # Packed bits stand at the high end of their byte.
        letters = _ALPHABET[np.packbits(bits.reshape(len(bits), length, 5), axis=2)[:, :, 0] >> 3]
        spelled += np.ascontiguousarray(letters).view(f"S{length}").ravel().astype(str).tolist()
    return spelled


def _encryption_key(key: bytes) -> bytes:
    """Return a key for AES-SIV that has nothing visible to do with the one for tokens (HKDF-like, by HMAC-SHA512)."""
    return hmac.digest(key, b"\x00cloister.pseudonymize.reversible/1", hashlib.sha512)


def _pad(data: bytes) -> bytes:
    return data + b"\x80" + b"\x00" * (-(len(data) + 1) % _BLOCK)


def _encode(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=")


def _decrypt(cipher: AESSIV, item: str, associated: list[bytes]) -> str:
    data = base64.b32decode(item + "=" * (-len(item) % 8))
    # The mark 0x80 ends the text, so that its own zeros at the end are kept.
    return cipher.decrypt(data, associated).rstrip(b"\x00")[:-1].decode("utf-8", "surrogatepass")


_DAY = 86_400 * 1_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MOST_DAYS = 36_500


@operations.register("shift_dates")
@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftDates(Operation):
    """Move all dates of a person by one secret number of days, between ``-most_days`` and ``most_days`` and not 0.

    Attributes:
        columns: columns of dates or times.
        subject: the column that names the person; it must not be missing.
        key: the secret: a `Secret`, its bytes, ``{"env": name}`` or ``{"file": path}``.
        domain: the purpose, such as ``"heart-study"``: shifts of two domains have nothing to do with each other.
        most_days: how far dates move at most.
    """

    name = "shift_dates"
    truthful = False
    caution = "dates were shifted per person: intervals within a person are true, calendar dates are not"

    columns: tuple[str, ...] = field(kw_only=False)
    subject: str
    key: Secret
    domain: str
    most_days: int = 182

    def __init__(
        self,
        columns: str | Sequence[str],
        *,
        subject: str,
        key: Secret | bytes | Mapping[str, Any] | str,
        domain: str,
        most_days: int = 182,
    ) -> None:
        construct(self, columns=columns, subject=subject, key=key, domain=domain, most_days=most_days)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", need_names(self.columns))
        object.__setattr__(self, "subject", need_column_name(self.subject))
        object.__setattr__(self, "key", Secret.of(self.key))
        check_domain(self.domain)
        check_count(self.most_days, name="most_days", at_least=1)
        if self.most_days > _MOST_DAYS:
            raise ParameterError("most_days is more than a century.", fix="use for example most_days=182.")

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with dates shifted."""
        shifts = self._shifts(column_of(rows, self.subject))
        for name in self.columns:
            rows = with_column(rows, name, _shift_column(column_of(rows, name), shifts, name))
        return rows

    def _shifts(self, subjects: pa.Array) -> Integers:
        if subjects.null_count:
            raise DataError(
                f'Some rows have no "{self.subject}", so that nobody is known whose dates they are.',
                fix=f"suppress them first: SuppressRecords(where='\"{self.subject}\" IS NULL').",
            )
        distinct, codes = encode_column(subjects)
        key = self.key.read()
        days = [_days(text_of(value), key, self.domain, self.most_days) for value in distinct.to_pylist()]
        return np.array(days, dtype=np.int64)[codes]


def _days(subject: str, key: bytes, domain: str, most: int) -> int:
    """Return the shift of one person: never 0; the excess of one shift over another is below 2**-200."""
    message = b"\x00cloister.shift_dates/1\x00" + domain.encode() + b"\x00" + subject.encode("utf-8", "surrogatepass")
    number = int.from_bytes(hmac.digest(key, message, hashlib.sha256)) % (2 * most)
    # Zero is skipped: every person's dates move.
    return number - most if number < most else number - most + 1


def _shift_column(column: pa.Array, shifts: Integers, name: str) -> pa.Array:
    if not is_moment(column):
        raise DataError(
            f'Column "{name}" does not hold dates.', fix="convert it to dates before opening, or state its storage."
        )
    is_date = pa.types.is_date(column.type)
    there = present(column)
    moments = np.asarray(column.cast(pa.int32() if is_date else pa.int64()).fill_null(0), dtype=np.int64)
    moved = moments + shifts * (1 if is_date else _DAY)
    days = (moved if is_date else moved // _DAY)[there]
    if days.size and not (days.min() >= _FIRST_DAY and days.max() <= _LAST_DAY):
        raise DataError(f'A date of "{name}" would leave the years 1 to 9999.', fix="mend the data.")
    whole = pa.array(moved, mask=~there)
    return whole.cast(pa.int32()).cast(column.type) if is_date else whole.cast(column.type)
