"""Envelope keys: every object has a data key of its own, and the master key wraps the data keys.

A wrapped key says which version of the master key wrapped it, so that a new version can be added while the old ones
still open what they wrapped. Deleting a wrapped key deletes what its data key sealed, in every copy and backup of it.
A wrap is bound to its purpose and to the name of its object: it opens nothing when it is moved to another one.

Python does not let memory be wiped: whoever can read the memory of a running process can read its keys.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from cloister.crypto.encryption import KEY_BYTES, OVERHEAD, SecretKey, decrypt, encrypt, join_parts, random_bytes
from cloister.crypto.private_files import KeyFileExistsError, create_private, read_private, replace_private
from cloister.errors import CryptoError, DecryptionError

__all__ = ["DataKey", "MasterKey", "wrapping_version"]

_FORMAT = b"\x01"
_VERSION_BYTES = 4
_WRAPPED_BYTES = len(_FORMAT) + _VERSION_BYTES + KEY_BYTES + OVERHEAD
_PURPOSE = b"cloister wrapped key"
_ENTRY = re.compile(r"([1-9][0-9]{0,8}):([A-Za-z0-9+/]{43}=)")
_HEADING = "# The master key of cloister: one line per version. Who has it can read everything that is stored.\n"


class DataKey(SecretKey):
    """The 256-bit key of one object: seals its file and its payloads."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise CryptoError("A data key has 32 bytes.", fix="make one with DataKey.generate().")
        self._secret = secret

    @classmethod
    def generate(cls) -> DataKey:
        """Return a new key from the randomness of the operating system."""
        return cls(random_bytes(KEY_BYTES))

    def reveal(self) -> bytes:
        """Return the bytes of the key, for a cipher only."""
        return self._secret


class MasterKey(SecretKey):
    """The 256-bit key that wraps data keys, in one or several versions; the newest one wraps."""

    __slots__ = ("_versions",)

    def __init__(self, versions: Mapping[int, bytes]) -> None:
        sound = all(0 < number < 10**9 and len(secret) == KEY_BYTES for number, secret in versions.items())
        if not versions or not sound:
            raise CryptoError("A master key has versions of 32 bytes each.", fix="make one with MasterKey.generate().")
        self._versions = dict(sorted(versions.items()))

    @classmethod
    def generate(cls) -> MasterKey:
        """Return a new key with one version."""
        return cls({1: random_bytes(KEY_BYTES)})

    @classmethod
    def from_text(cls, text: str) -> MasterKey:
        """Return the key that `to_text` wrote: ``version:base64``, several of them apart by commas or line ends.

        Raises:
            CryptoError: if it is anything else; the text is not quoted.
        """
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        entries = [_ENTRY.fullmatch(entry) for entry in re.split(r"[,\s]+", "\n".join(lines)) if entry]
        parsed = [(int(entry[1]), base64.b64decode(entry[2])) for entry in entries if entry]
        # This refuses entries that were not understood, and versions that occur twice.
        if not parsed or len(dict(parsed)) != len(entries):
            raise CryptoError(
                "This is no master key.", fix="give the whole text of a key file: one line version:base64 per version."
            )
        return cls(dict(parsed))

    @classmethod
    def from_environment(cls, variable: str) -> MasterKey:
        """Return the key in an environment variable.

        Raises:
            CryptoError: if it is not set or holds no key.
        """
        text = os.environ.get(variable)
        if not text:
            raise CryptoError(f"{variable} is not set.", fix=f"set {variable} to the text of a master key.")
        return cls.from_text(text)

    @classmethod
    def create(cls, path: str | Path) -> MasterKey:
        """Make a new key and its file, readable by this account only.

        Raises:
            CryptoError: if the file is there already or cannot be made.
        """
        key = cls.generate()
        create_private(Path(path), _HEADING + key.to_text())
        return key

    @classmethod
    def from_file(cls, path: str | Path, *, create: bool = False) -> MasterKey:
        """Return the key in a file; ``create`` makes a new one, in a folder for this account only, if there is none.

        Raises:
            CryptoError: if there is none, or if other accounts may read or write it.
        """
        place = Path(path)
        if create and not place.exists():
            with contextlib.suppress(OSError):
                place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Of two processes that make the file at the same time, one reads what the other wrote.
            with contextlib.suppress(KeyFileExistsError):
                return cls.create(place)
        return cls.from_text(read_private(place))

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the numbers of the versions, the newest last."""
        return tuple(self._versions)

    @property
    def newest(self) -> int:
        """Return the number of the version that wraps."""
        return self.versions[-1]

    def to_text(self) -> str:
        """Return the secret itself, one line per version, for a file or an environment of your own."""
        entries = self._versions.items()
        return "".join(f"{number}:{base64.b64encode(secret).decode()}\n" for number, secret in entries)

    def rotate(self) -> MasterKey:
        """Return the key with a new version, which wraps from now on; the older ones still unwrap."""
        return MasterKey(self._versions | {self.newest + 1: random_bytes(KEY_BYTES)})

    def without(self, version: int) -> MasterKey:
        """Return the key without a version that wraps nothing any more: what it still wraps is lost for good.

        Raises:
            CryptoError: if there is no such version, or it is the newest.
        """
        if version not in self._versions or version == self.newest:
            raise CryptoError(
                f"Version {version} cannot be removed.", fix="remove an older version than the newest; rotate first."
            )
        return MasterKey({number: secret for number, secret in self._versions.items() if number != version})

    def write(self, path: str | Path) -> None:
        """Replace a key file, whole or not at all; only this account may read it.

        Raises:
            CryptoError: if it cannot be written.
        """
        replace_private(Path(path), _HEADING + self.to_text())

    def wrap(self, key: DataKey, *, purpose: str, object_id: str) -> bytes:
        """Return a data key under the newest version of this key, bound to what it is for."""
        head = _FORMAT + self.newest.to_bytes(_VERSION_BYTES, "big")
        bound = join_parts(head, purpose.encode(), object_id.encode())
        secret = self._versions[self.newest]
        return head + encrypt(secret, key.reveal(), purpose=_PURPOSE, associated=bound)

    def unwrap(self, wrapped: bytes, *, purpose: str, object_id: str) -> DataKey:
        """Return the data key in a wrap.

        Raises:
            DecryptionError: if the master key, the purpose, the object or any bit is not as it was.
        """
        secret = self._versions.get(wrapping_version(wrapped))
        if secret is None:
            raise DecryptionError
        head = wrapped[: len(_FORMAT) + _VERSION_BYTES]
        bound = join_parts(head, purpose.encode(), object_id.encode())
        return DataKey(decrypt(secret, wrapped[len(head) :], purpose=_PURPOSE, associated=bound))

    def rewrap(self, wrapped: bytes, *, purpose: str, object_id: str) -> bytes:
        """Return a wrap under the newest version: the object itself stays as it is."""
        return self.wrap(
            self.unwrap(wrapped, purpose=purpose, object_id=object_id), purpose=purpose, object_id=object_id
        )


def wrapping_version(wrapped: bytes) -> int:
    """Return the version of the master key that a wrap names.

    Raises:
        DecryptionError: if these bytes are no wrapped key.
    """
    if len(wrapped) != _WRAPPED_BYTES or not wrapped.startswith(_FORMAT):
        raise DecryptionError
    return int.from_bytes(wrapped[len(_FORMAT) : len(_FORMAT) + _VERSION_BYTES], "big")
