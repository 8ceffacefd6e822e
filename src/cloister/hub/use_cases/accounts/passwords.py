"""Passwords: what makes one good enough, and how it is kept (argon2id, RFC 9106).

Verification always does the same work: an unknown name, or an account without a password, is checked against a hash
that nothing fits.

A few hashes are made at a time, in threads of their own, and nobody waits for a free one: whoever comes when all are
taken is told to come back. So many sign-ins together take neither all memory nor the threads that answer
everybody else.
"""

from __future__ import annotations

import base64
import contextlib
import os
import sys
import threading
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import Argon2Error, InvalidHashError

from cloister.errors import HubUnavailableError, ParameterError

Made = TypeVar("Made")

SHORTEST = 12
LONGEST = 256
FEWEST_LETTERS = 5
LEAST_BESIDE_NAME = 8
AT_ONCE = 4
"""How many hashes, of 64 MiB each, are made at a time."""

NICENESS = 5
"""How far hashing, which takes all cores for a moment, steps back behind answering."""

RETRY_SECONDS = 5

_COMMON_WORDS = """
    passwordpassword passwort1234 password1234 password12345 password123456 password123! password2024 password2025
    password2026 p@ssword1234 p@ssw0rd1234 passw0rd1234 mypassword12 mypassword123 changeme1234 changeme12345
    letmein12345 letmein123456 welcome12345 welcome123456 welcome12345! iloveyou1234 iloveyou12345 admin1234567
    admin12345678 administrator administrator1 administrator123 1234567890ab 123456789012 1234567890123 12345678901234
    123456123456 012345678901 987654321098 098765432109 112233445566 123123123123 111122223333 qwertyuiop12
    qwertyuiop123 qwertyuiop1234 qwertyuiopas qwertyuiopasdf qwerty123456 qwerty1234567 qwerty12345678 1q2w3e4r5t6y
    1q2w3e4r5t6y7u 1qaz2wsx3edc 1qaz2wsx3edc4rfv qazwsxedcrfv zaq12wsxcde3 asdfghjkl123 asdfghjkl1234 asdfghjklqwe
    zxcvbnm12345 abcdefghijkl abcdefghijklm abcdefg12345 abcd1234efgh abcdef123456 a1b2c3d4e5f6 aa1234567890
    monkey123456 dragon123456 football1234 baseball1234 superman1234 sunshine1234 princess1234 michael12345
    trustno1trustno1 correcthorsebatterystaple thisismypassword iamapassword1 hospital1234 hospital2026 cloister1234
    summer2026!! winter2026!! spring2026!! autumn2026!!
    """

COMMON = frozenset(_COMMON_WORDS.split())
"""Very common ones that are long enough."""

_hasher = PasswordHasher(type=Type.ID)
_slots = threading.BoundedSemaphore(AT_ONCE)


def _step_back() -> None:
    """Let other threads go first; elsewhere than on Linux, the number of a thread would be taken for a process."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="hashing", initializer=_step_back)


def check_password(password: str, *, name: str) -> str:
    """Return a password that is good enough, in one Unicode form, or raise."""
    clean = _normal(password)
    plain = clean.casefold()
    if not SHORTEST <= len(clean) <= LONGEST:
        raise ParameterError(
            f"The password has to have {SHORTEST} to {LONGEST} characters.", fix="use four or more unrelated words."
        )
    if plain in COMMON or len(set(plain)) < FEWEST_LETTERS:
        raise ParameterError("The password is one that many people use.", fix="use four or more unrelated words.")
    if len(plain.replace(name.casefold(), "").replace("cloister", "")) < LEAST_BESIDE_NAME:
        raise ParameterError(
            "The password is hardly more than the name of the account.", fix="use four or more unrelated words."
        )
    return clean


def hash_password(password: str) -> str:
    """Return what is kept of a password.

    Raises:
        HubUnavailableError: if too many hashes are made already.
    """
    return _in_a_slot(lambda: _hasher.hash(_normal(password)))


def verify_password(kept: str | None, password: str) -> bool:
    """Return whether a password is the one that was kept; with nothing kept, do the same work and return False.

    Raises:
        HubUnavailableError: if too many hashes are made already.
    """
    # An endless text is not hashed, but costs one verification like any other.
    given = _normal(password) if len(password) <= LONGEST else ""
    try:
        _in_a_slot(lambda: _hasher.verify(make_unmatched_hash() if kept is None else kept, given))
    except (Argon2Error, InvalidHashError):
        return False
    return kept is not None


def is_outdated(kept: str) -> bool:
    """Return whether a hash was made with other parameters than today's."""
    return _hasher.check_needs_rehash(kept)


def make_unmatched_hash() -> str:
    """Return a hash with today's parameters that no password fits."""
    numbers = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    salt, digest = (base64.b64encode(bytes(size)).decode().rstrip("=") for size in (_hasher.salt_len, _hasher.hash_len))
    return f"$argon2id$v=19${numbers}${salt}${digest}"


def _in_a_slot(work: Callable[[], Made]) -> Made:
    if not _slots.acquire(blocking=False):
        raise HubUnavailableError(
            "Too many passwords are looked at in this moment.",
            fix="try again in some seconds.",
            wait_seconds=RETRY_SECONDS,
        )
    try:
        return _threads.submit(work).result()
    finally:
        _slots.release()


def _normal(password: str) -> str:
    return unicodedata.normalize("NFC", password)
