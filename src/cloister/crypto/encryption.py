"""The one recipe for secrecy: AES-256-GCM under a key that is derived anew for every message or file.

HKDF with SHA-256 derives the message key from the secret, 16 random bytes and what the message is for. So a secret may
seal any number of messages: two of them share a key and a nonce with a probability far below 2**-100. What a message
belongs to (``associated``) is not stored with it; it has to be known again to open it.

`SecretKey` is what all keys have in common.
"""

from __future__ import annotations

from typing import NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cloister.core.random import SystemRandomSource
from cloister.errors import CryptoError, DecryptionError

__all__ = [
    "KEY_BYTES",
    "OVERHEAD",
    "TAG_BYTES",
    "SecretKey",
    "decrypt",
    "derive_cipher",
    "encrypt",
    "join_parts",
    "random_bytes",
]


class SecretKey:
    """What is neither shown, nor compared by accident, nor copied into a queue."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def __reduce__(self) -> NoReturn:
        raise CryptoError(
            "A key may not be copied to another process or to a file.", fix="read it there from the key file."
        )


KEY_BYTES = 32
SALT_BYTES = 16
NONCE_BYTES = 12
TAG_BYTES = 16
OVERHEAD = SALT_BYTES + NONCE_BYTES + TAG_BYTES
"""How many bytes a sealed message is longer than the message."""

_SYSTEM = SystemRandomSource()


def random_bytes(count: int) -> bytes:
    """Return bytes that nobody can predict."""
    return _SYSTEM.random_bytes(count)


def join_parts(*parts: bytes) -> bytes:
    """Return several byte strings as one from which they can be told apart: each after its length."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def derive_cipher(secret: bytes, *, salt: bytes, purpose: bytes) -> AESGCM:
    """Return the cipher for one message or file."""
    return AESGCM(HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=purpose).derive(secret))


def encrypt(secret: bytes, message: bytes, *, purpose: bytes, associated: bytes) -> bytes:
    """Return a sealed message: salt, nonce, ciphertext and tag."""
    salt, nonce = random_bytes(SALT_BYTES), random_bytes(NONCE_BYTES)
    return salt + nonce + derive_cipher(secret, salt=salt, purpose=purpose).encrypt(nonce, message, associated)


def decrypt(secret: bytes, sealed: bytes, *, purpose: bytes, associated: bytes) -> bytes:
    """Return the message that was sealed.

    Raises:
        DecryptionError: if the secret, the purpose, what it belongs to or any bit is not as it was.
    """
    salt, nonce, rest = sealed[:SALT_BYTES], sealed[SALT_BYTES : OVERHEAD - TAG_BYTES], sealed[OVERHEAD - TAG_BYTES :]
    if len(rest) < TAG_BYTES:
        raise DecryptionError
    try:
        return derive_cipher(secret, salt=salt, purpose=purpose).decrypt(nonce, rest, associated)
    except InvalidTag:
        raise DecryptionError from None
