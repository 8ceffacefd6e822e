"""Sealed payloads: small values, such as the JSON of a result, that a database keeps without knowing them."""

from __future__ import annotations

from cloister.crypto.keys import DataKey
from cloister.crypto.recipe import decrypt, encrypt
from cloister.errors import DecryptionError

__all__ = ["seal", "unseal"]

_FORMAT = b"\x01"
_PURPOSE = b"cloister sealed payload"


def seal(payload: bytes, *, key: DataKey, associated: bytes) -> bytes:
    """Return a payload that only the key opens, and only for what it belongs to (``associated``)."""
    return _FORMAT + encrypt(key.reveal(), payload, purpose=_PURPOSE, associated=_FORMAT + associated)


def unseal(sealed: bytes, *, key: DataKey, associated: bytes) -> bytes:
    """Return the payload that was sealed.

    Raises:
        DecryptionError: if the key, what it belongs to or any bit is not as it was.
    """
    if not sealed.startswith(_FORMAT):
        raise DecryptionError
    return decrypt(key.reveal(), sealed[1:], purpose=_PURPOSE, associated=_FORMAT + associated)
