"""Dictionary attack: hash every identifier that there can be, and compare.

A hash hides nothing that can be listed: there are ten million phone numbers behind an area code, and a computer hashes
them in seconds. A salt that is known, or stands beside the hash, only means that the list is hashed once more. What
resists is a secret key: without it the attacker cannot compute a single token.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import string
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

from cloister.attacks.details import AttackDetails, fact, number
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._scores import share_with_interval
from cloister.core.exact import Number
from cloister.core.random import RandomState, random_source
from cloister.core.validation import check_positive
from cloister.data.values import is_missing, text_of
from cloister.errors import DataError, ParameterError, ParameterTypeError

__all__ = ["DictionaryDetails", "dictionary", "digit_pattern"]

_CHUNK = 1 << 15
_SHORTEST = 4
_CONTROLS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryDetails(AttackDetails):
    """What a dictionary attack knows. Its control are made-up tokens: what is found among them is chance.

    Attributes:
        method: the hash that was tried.
        tried: how many identifiers were hashed.
        seconds: how long it took.
        finished: whether the whole list was tried.
        seconds_to_all: how long the whole list takes, where its size is known.
    """

    method: str = field(metadata=fact("hash"))
    tried: int
    seconds: float = field(metadata=fact("seconds", number(".3g")))
    finished: bool
    seconds_to_all: float | None

    def remark(self, _: AttackResult, /) -> str:
        """Return how long it took."""
        took = f" {self.tried:,} identifiers were tried in {self.seconds:.2g} seconds."
        if self.finished or self.seconds_to_all is None:
            return took
        return f"{took} The whole list would take {self.seconds_to_all:,.0f} seconds."


@dataclass(frozen=True, slots=True)
class _Digits:
    """All texts of a pattern in which each ``#`` is a digit."""

    pattern: str

    def __len__(self) -> int:
        return int(10 ** self.pattern.count("#"))

    def __iter__(self) -> Iterator[str]:
        width = self.pattern.count("#")
        if self.pattern.find("#") >= 0 and self.pattern.endswith("#" * width):
            head = self.pattern[: len(self.pattern) - width]
            return (f"{head}{number:0{width}d}" for number in range(len(self)))
        template = self.pattern.replace("{", "{{").replace("}", "}}").replace("#", "{}")
        return (template.format(*f"{number:0{width}d}") if width else template for number in range(len(self)))


def digit_pattern(pattern: str) -> Iterable[str]:
    """Return all texts of a pattern in which each ``#`` stands for a digit.

    >>> " ".join(digit_pattern("0#-")).split().index("07-")
    7
    """
    if pattern.count("#") > 18:
        raise ParameterError("This is no pattern of at most 18 digits.", fix='write for example "+1 555 #######".')
    return _Digits(pattern)


def dictionary(
    tokens: Any,
    candidates: Iterable[str],
    *,
    method: str = "sha256",
    salt: bytes | str = b"",
    salt_after: bool = False,
    truth: Sequence[Any] | None = None,
    limit: object = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[DictionaryDetails]:
    """Return the share of hashed identifiers that are found by hashing all that there can be.

    Args:
        tokens: the released hashes or pseudonyms: hexadecimal, base 64 or base 32 texts (also cut short), or bytes.
        candidates: every identifier that there can be, as `digit_pattern` lists them, or a list that leaked elsewhere.
        method: a hash of `hashlib`, such as ``sha256``, ``sha1`` or ``md5``.
        salt: what is put before the identifier, where it is known.
        salt_after: put the salt after it instead.
        truth: the identifier behind each token, for scoring only: a wrong one is no success.
        limit: stop after so many seconds; the time for the whole list is then estimated.
        confidence: the confidence of the interval.
        random_state: makes tokens up for the control: None for the operating system; an integer is for tests only.

    >>> import hashlib
    >>> tokens = [hashlib.sha256(phone.encode()).hexdigest() for phone in ("555-0123", "555-0199")]
    >>> dictionary(tokens, digit_pattern("555-01##")).success
    1.0
    """
    hash_one = _hash(method, salt, salt_after=salt_after)
    wanted, encode = _read_tokens(tokens, method)
    most = None if limit is None else float(check_positive(limit, name="limit"))
    made_up = _draw_tokens(wanted, len(hash_one(b"")), encode, random_state)
    known, write = _comparable(wanted | made_up, encode)
    start, found, tried, finished = time.perf_counter(), dict[str, str](), 0, True
    for chunk in _chunks(candidates):
        # Hits are rare: hashing those once more costs less than keeping every digest.
        for text in [text for text in chunk if write(hash_one(text.encode())) in known]:
            found.setdefault(known[write(hash_one(text.encode()))], text)
        tried += len(chunk)
        if most is not None and time.perf_counter() - start > most:
            finished = False
            break
    seconds = time.perf_counter() - start
    if not tried:
        raise DataError("There are no identifiers to try.", fix='list them: candidates=digit_pattern("555-####").')
    listed = _texts(tokens)
    count = sum(token is not None for token in listed)
    right = _right(listed, found, truth)
    size = len(candidates) if isinstance(candidates, Sized) else None
    return AttackResult(
        attack="dictionary",
        assumption=f"can list the identifiers and hashes them by {method}{', with the known salt' if salt else ''}",
        baseline=1 / max(size or tried, 1),
        queries=count,
        control=sum(token in found for token in made_up) / len(made_up) if made_up else None,
        mitigation=(
            "make pseudonyms with a secret key: cloister.anonymize.operations.Pseudonymize",
            "keep the key where the data is not, and use another one for each release",
        ),
        worst=tuple((place, 1.0) for place in right[:10]),
        **share_with_interval(float(len(right)), count, confidence=confidence),
        details=DictionaryDetails(
            method=method,
            tried=tried,
            seconds=seconds,
            finished=finished,
            seconds_to_all=None if size is None else seconds * size / tried,
        ),
    )


def _right(listed: Sequence[str | None], found: dict[str, str], truth: Sequence[Any] | None) -> list[int]:
    """Return the places of the tokens whose identifier was found."""
    places = [place for place, token in enumerate(listed) if token is not None and token in found]
    if truth is None:
        return places
    if len(truth) != len(listed):
        raise DataError("truth and the tokens differ in length.", fix="give one identifier per token.")
    return [place for place in places if found[str(listed[place])] == text_of(truth[place])]


def _comparable(tokens: set[str], encode: Callable[[bytes], str]) -> tuple[dict[Any, str], Callable[[bytes], Any]]:
    """Return tokens in the form that is fastest to compare with a digest: bytes, where they are hexadecimal."""
    length = len(next(iter(tokens)))
    if encode in (_lower_hex, _upper_hex) and length % 2 == 0:
        half = length // 2
        return {bytes.fromhex(token): token for token in tokens}, lambda digest: digest[:half]
    return {token: token for token in tokens}, lambda digest: encode(digest)[:length]


def _hash(method: str, salt: bytes | str, *, salt_after: bool) -> Callable[[bytes], bytes]:
    if method not in hashlib.algorithms_available or method.startswith("shake"):
        raise ParameterError("This hash is not known.", fix='use for example method="sha256".')
    if not isinstance(salt, bytes | str):
        raise ParameterTypeError("The salt is neither bytes nor text.", fix='write for example salt=b"2026".')
    known = salt.encode() if isinstance(salt, str) else salt
    if not known:
        make = getattr(hashlib, method, None)
        if make is not None:
            return lambda text: bytes(make(text).digest())
        return lambda text: hashlib.new(method, text).digest()
    if salt_after:
        return lambda text: hashlib.new(method, text + known).digest()
    # The salt is hashed once, and every identifier goes on from there.
    started = hashlib.new(method, known)

    def salted(text: bytes) -> bytes:
        going = started.copy()
        going.update(text)
        return going.digest()

    return salted


def _texts(tokens: Any) -> list[str | None]:
    if isinstance(tokens, str | bytes) or not hasattr(tokens, "__iter__"):
        raise ParameterTypeError("tokens is no list of hashes.", fix="give the released column as a list.")
    values = tokens.to_pylist() if hasattr(tokens, "to_pylist") else list(tokens)
    return [None if is_missing(value) else value.hex() if isinstance(value, bytes) else str(value) for value in values]


def _read_tokens(tokens: Any, method: str) -> tuple[set[str], Callable[[bytes], str]]:
    """Return the different tokens, and how a digest is written like them."""
    wanted = {token for token in _texts(tokens) if token is not None}
    lengths = {len(token) for token in wanted}
    if not wanted:
        raise DataError("There are no tokens.", fix="give at least one.")
    if len(lengths) > 1 or min(lengths) < _SHORTEST:
        raise DataError(
            "The tokens are of different lengths, or too short to be hashes.", fix="give hashes of one kind at a time."
        )
    for write in _ALPHABETS:
        if all(_fits(token, write, method) for token in itertools.islice(wanted, 64)):
            return wanted, write
    raise DataError(
        "The tokens are written in no form that is known.", fix="give hexadecimal, base 32 or base 64 texts."
    )


def _fits(token: str, write: Callable[[bytes], str], method: str) -> bool:
    """Return whether a token could be the start of a digest that is written so."""
    return set(token) <= _ALPHABETS[write] and len(token) <= len(write(hashlib.new(method).digest()))


def _lower_hex(digest: bytes) -> str:
    return digest.hex()


def _upper_hex(digest: bytes) -> str:
    return binascii.hexlify(digest).decode().upper()


def _base32(digest: bytes) -> str:
    return base64.b32encode(digest).decode()


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def _url_base64(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode()


_LETTERS = frozenset(string.ascii_letters + string.digits + "=")
_ALPHABETS: dict[Callable[[bytes], str], frozenset[str]] = {
    _lower_hex: frozenset("0123456789abcdef"),
    _upper_hex: frozenset("0123456789ABCDEF"),
    _base32: frozenset(string.ascii_uppercase + "234567="),
    _base64: _LETTERS | {"+", "/"},
    _url_base64: _LETTERS | {"-", "_"},
}


def _draw_tokens(wanted: set[str], size: int, encode: Callable[[bytes], str], random_state: RandomState) -> set[str]:
    """Return random tokens of the same form, as many as there are, up to a thousand."""
    source = random_source(random_state)
    length = len(next(iter(wanted)))
    drawn = source.random_bytes(size * min(len(wanted), _CONTROLS))
    return {encode(drawn[start : start + size])[:length] for start in range(0, len(drawn), size)} - wanted


def _chunks(candidates: Iterable[Any]) -> Iterator[list[str]]:
    if isinstance(candidates, str) or not hasattr(candidates, "__iter__"):
        raise ParameterTypeError(
            "candidates is no list of identifiers.", fix='write candidates=digit_pattern("555-####").'
        )
    items = iter(candidates)
    while chunk := list(itertools.islice(items, _CHUNK)):
        yield chunk if isinstance(chunk[0], str) else [text_of(item) for item in chunk]
