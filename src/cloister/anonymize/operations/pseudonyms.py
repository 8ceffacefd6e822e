"""Keyed pseudonyms: a token per identifier that nobody can compute or undo without the key.

``token = base32(HMAC-SHA256(key, domain || 0x00 || normalized value))``, cut to a length. Plain hashes are not offered:
identifiers are few (a billion social security numbers), so anyone inverts a hash, salted or not, by trying them all.
What makes a pseudonym is the secret key; use another one for each project, so that two releases do not join.

Pseudonyms are still personal data. Rows of one person stay linked, and nothing is hidden in the other columns.

Reversible tokens are encrypted with AES-SIV (RFC 5297): the same value gives the same token, and `reveal` takes the
holder of the key back. Random tokens follow from nothing and cannot be repeated.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from cloister.anonymize.operations.base import Context, Operation, operations
from cloister.anonymize.operations.cells import coded, column_of, decoded, with_column
from cloister.anonymize.operations.plain import name as column_name
from cloister.anonymize.operations.secret import Secret
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", column_name(self.column))
        object.__setattr__(self, "key", Secret.of(self.key))
        object.__setattr__(self, "normalize", _normalizations(self.normalize))
        check_domain(self.domain)
        _check_length(self.length)

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with tokens."""
        distinct, codes = coded(column_of(rows, self.column))
        texts = [normalized(text_of(value), self.normalize) for value in distinct.to_pylist()]
        wanted = list(dict.fromkeys(texts))
        tokens = dict(zip(wanted, _distinct(self._tokens(wanted)), strict=True))
        return with_column(rows, self.column, decoded((tokens[text] for text in texts), codes, pa.string()))

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
        object.__setattr__(self, "column", column_name(self.column))
        _check_length(self.length)

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:
        """Return the rows with tokens."""
        distinct, codes = coded(column_of(rows, self.column))
        tokens = _distinct(_random_tokens(context.source, len(distinct), self.length))
        return with_column(rows, self.column, decoded(tokens, codes, pa.string()))


def keyed_tokens(texts: Iterable[str], *, key: bytes, domain: str, length: int = 26) -> list[str]:
    """Return the keyed tokens of normalized identifiers."""
    start = domain.encode() + b"\x00"
    digests = [hmac.digest(key, start + text.encode("utf-8", "surrogatepass"), "sha256") for text in texts]
    return _spelled(b"".join(digests), size=32, length=length)


def normalized(text: str, steps: Iterable[str]) -> str:
    """Return a text with differences evened out that do not count."""
    for step in steps:
        text = _NORMALIZATIONS[step](text)
    return text


def encrypt_all(texts: Iterable[str], *, key: bytes, domain: str) -> list[str]:
    """Return reversible tokens; their length tells the identifier's length only to 16 bytes."""
    cipher = AESSIV(_encryption_key(key))
    associated = [domain.encode()]
    return [_encode(cipher.encrypt(_padded(text.encode("utf-8", "surrogatepass")), associated)) for text in texts]


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
    return _spelled(source.random_bytes(size * count), size=size, length=length)


def _spelled(data: bytes, *, size: int, length: int) -> list[str]:
    """Return pieces of some bytes in base 32 (RFC 4648), each cut to a length: many at a time, five bits a letter."""
    pieces = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
    spelled: list[str] = []
    for start in range(0, len(pieces), _CHUNK):
        bits = np.unpackbits(pieces[start : start + _CHUNK], axis=1)
        bits = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 5)))[:, : 5 * length]
        letters = _ALPHABET[np.packbits(bits.reshape(len(bits), length, 5), axis=2)[:, :, 0] >> 3]
        spelled += np.ascontiguousarray(letters).view(f"S{length}").ravel().astype(str).tolist()
    return spelled


def _encryption_key(key: bytes) -> bytes:
    """Return a key for AES-SIV that has nothing visible to do with the one for tokens (HKDF-like, by HMAC-SHA512)."""
    return hmac.digest(key, b"\x00cloister.pseudonymize.reversible/1", hashlib.sha512)


def _padded(data: bytes) -> bytes:
    return data + b"\x80" + b"\x00" * (-(len(data) + 1) % _BLOCK)


def _encode(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=")


def _decrypt(cipher: AESSIV, item: str, associated: list[bytes]) -> str:
    data = base64.b32decode(item + "=" * (-len(item) % 8))
    return cipher.decrypt(data, associated).rstrip(b"\x00")[:-1].decode("utf-8", "surrogatepass")
