"""Sealed files and payloads: encrypted and authenticated, bound to what they belong to.

A payload is a small value, such as the JSON of a result, that a database keeps without knowing it. A sealed file is a
stream in chunks of AES-256-GCM that can be read from any place.

The file begins with a header of 32 bytes: the name of the format, its version, the size of a chunk and a random file
id. The key of the file is derived from the data key, this whole header and what the file belongs to. A chunk is
encrypted with its number and whether it is the last one as its nonce, and is followed by its tag of 16 bytes. The last
chunk, which alone may be shorter, is checked when the file is opened. So changed bits, missing or added ends, chunks
in another order, and chunks or whole files from elsewhere are all found, the length at once and the rest when it is
read (online authenticated encryption with the last chunk marked; Hoang, Reyhanitabar, Rogaway and Vizar 2015).

What can still be seen is how long the file is, and when it is read.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cloister.core.atomic_files import Draft
from cloister.crypto.encryption import TAG_BYTES, decrypt, derive_cipher, encrypt, join_parts, random_bytes
from cloister.crypto.keys import DataKey
from cloister.errors import CryptoError, DecryptionError, ParameterError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["SealedReader", "SealedWriter", "seal", "unseal"]


_MAGIC = b"cloister\x01"
_ID_BYTES = 16
HEADER_BYTES = 32
_PURPOSE = b"cloister sealed file"
_EXPONENTS = range(16, 21)
"""Chunks have 2**16 to 2**20 bytes."""


class SealedWriter:
    """Seals a stream into a new file, which appears whole when it is committed and not at all otherwise.

    Used with ``with``, it commits at the end unless an error passes; `close` alone throws the file away.
    """

    def __init__(self, path: str | Path, *, key: DataKey, associated: bytes = b"", chunk_bytes: int = 2**18) -> None:
        """Begin a file.

        Raises:
            ParameterError: if a chunk is not a power of two from 2**16 to 2**20.
            CryptoError: if the file cannot be made.
        """
        exponent = chunk_bytes.bit_length() - 1
        if chunk_bytes not in (1 << size for size in _EXPONENTS):
            raise ParameterError("A chunk has 2**16 to 2**20 bytes, a power of two.", fix="leave chunk_bytes out.")
        header = (_MAGIC + bytes([exponent])).ljust(HEADER_BYTES - _ID_BYTES, b"\0") + random_bytes(_ID_BYTES)
        self._path = Path(path)
        self._chunk_bytes = chunk_bytes
        self._cipher = _file_cipher(key, header, associated)
        self._pending = bytearray()
        self._number = 0
        self._sealed = hashlib.sha256()
        self.size = 0
        self.closed = False
        self._draft = self._begin()
        self._put(header)

    @property
    def sha256(self) -> str:
        """Return the digest of the sealed bytes so far: nothing can be guessed from it about what is in them."""
        return self._sealed.hexdigest()

    def write(self, content: bytes | bytearray | memoryview) -> int:
        """Seal some bytes at the end."""
        if self.closed:
            raise ValueError("The file is closed.")
        view = memoryview(content).cast("B")
        self._pending += view
        self.size += len(view)
        # At least one byte waits: only at the end is it known which chunk is the last.
        whole = (len(self._pending) - 1) // self._chunk_bytes * self._chunk_bytes
        for start in range(0, whole, self._chunk_bytes):
            self._seal(bytes(self._pending[start : start + self._chunk_bytes]), is_last=False)
        if whole > 0:
            del self._pending[:whole]
        return len(view)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.size

    def flush(self) -> None:
        """Do nothing: bytes wait until their chunk is full."""

    def writable(self) -> bool:
        """Return True."""
        return True

    def commit(self) -> None:
        """Seal what is left, and put the file in its place once it is on the disk.

        Raises:
            CryptoError: if it cannot be written, or another file is in its place.
        """
        self._seal(bytes(self._pending), is_last=True)
        try:
            self._draft.adopt(replace=False)
        except OSError as error:
            raise _unwritable(self._path, error) from None
        finally:
            self.close()

    def close(self) -> None:
        """Throw the file away if it is not committed."""
        self.closed = True
        self._pending.clear()
        self._draft.discard()

    def __enter__(self) -> SealedWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.closed:
            self.commit()
        self.close()

    def _begin(self) -> Draft:
        try:
            return Draft(self._path)
        except OSError as error:
            raise _unwritable(self._path, error) from None

    def _seal(self, chunk: bytes, *, is_last: bool) -> None:
        self._put(self._cipher.encrypt(_nonce(self._number, is_last=is_last), chunk, None))
        self._number += 1

    def _put(self, sealed: bytes) -> None:
        self._sealed.update(sealed)
        try:
            self._draft.write(sealed)
        except OSError as error:
            self.close()
            raise _unwritable(self._path, error) from None


class SealedReader(io.RawIOBase):
    """Reads a sealed file from any place; only bytes that were checked are handed out."""

    def __init__(self, path: str | Path, *, key: DataKey, associated: bytes = b"") -> None:
        """Open a file, and check its length.

        Raises:
            DecryptionError: if the key, what it belongs to, the header or the end is not as it was.
            CryptoError: if there is no such file, or it cannot be read.
        """
        super().__init__()
        self._path = Path(path)
        self._position = 0
        self._recent: tuple[int, bytes] = -1, b""
        # close() runs also where opening fails, and looks at this.
        self._descriptor = -1
        self._descriptor = self._open()
        try:
            self._check(key, associated)
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """Return how many bytes were sealed."""
        return self._size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError("There is nothing before the first byte.")
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next ``size`` bytes, fewer only at the end.

        Raises:
            DecryptionError: if one of their chunks is not as it was.
        """
        rest = max(self._size - self._position, 0)
        content = self.read_at(self._position, rest if size is None or size < 0 else min(size, rest))
        self._position += len(content)
        return content

    def readall(self) -> bytes:
        """Return everything from here to the end."""
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill a buffer as far as there are bytes, and return how many."""
        view = memoryview(buffer).cast("B")
        content = self.read(len(view))
        view[: len(content)] = content
        return len(content)

    def read_at(self, start: int, count: int) -> bytes:
        """Return bytes from a place without going there; several threads may do so.

        Raises:
            DecryptionError: if one of their chunks is not as it was.
        """
        if self.closed:
            raise ValueError("The file is closed.")
        count = min(count, self._size - start)
        if count <= 0:
            return b""
        first, last = start // self._chunk_bytes, (start + count - 1) // self._chunk_bytes
        content = b"".join(self._chunks(first, last))
        skipped = start - first * self._chunk_bytes
        return content if len(content) == count else content[skipped : skipped + count]

    def close(self) -> None:
        """Close the file, and forget what was read last."""
        self._recent = -1, b""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        super().close()

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDONLY)
        except OSError as error:
            reason = error.strerror or "the system refused"
            raise CryptoError(
                f'The sealed file "{self._path.name}" cannot be read: {reason}.', fix="restore it from a backup."
            ) from None

    def _check(self, key: DataKey, associated: bytes) -> None:
        """Decrypt the last chunk, which proves how long the file is."""
        header = self._sealed(0, HEADER_BYTES)
        exponent = header[len(_MAGIC)]
        if not header.startswith(_MAGIC) or exponent not in _EXPONENTS:
            raise DecryptionError
        self._chunk_bytes = 1 << exponent
        self._cipher = _file_cipher(key, header, associated)
        self._count, rest = divmod(os.fstat(self._descriptor).st_size - HEADER_BYTES, self._chunk_bytes + TAG_BYTES)
        self._count += rest > 0
        self._size = (self._count - 1) * self._chunk_bytes + self._chunk_size(rest)
        next(iter(self._chunks(self._count - 1, self._count - 1)))

    def _chunk_size(self, rest: int) -> int:
        """Return how long the last chunk is, of which ``rest`` sealed bytes are beyond the whole chunks."""
        size = rest - TAG_BYTES if rest else self._chunk_bytes
        # Only an empty file ends with an empty chunk; otherwise the same content could have two ends.
        if self._count < 1 or size < 0 or (size == 0 and self._count > 1):
            raise DecryptionError
        return size

    def _chunks(self, first: int, last: int) -> Iterator[bytes]:
        number, recent = self._recent
        if first == last == number:
            yield recent
            return
        width = self._chunk_bytes + TAG_BYTES
        end = HEADER_BYTES + self._size + self._count * TAG_BYTES
        start = HEADER_BYTES + first * width
        sealed = memoryview(self._sealed(start, min(end, start + (last - first + 1) * width) - start))
        for number in range(first, last + 1):
            chunk = self._unseal(number, sealed[(number - first) * width : (number - first + 1) * width])
            if number == last:
                self._recent = number, chunk
            yield chunk

    def _unseal(self, number: int, sealed: memoryview) -> bytes:
        try:
            return self._cipher.decrypt(_nonce(number, is_last=number == self._count - 1), sealed, None)
        except InvalidTag:
            raise DecryptionError from None

    def _sealed(self, start: int, count: int) -> bytes:
        pieces = []
        # A read may return fewer bytes than asked for without being at the end.
        while count and (piece := os.pread(self._descriptor, count, start)):
            pieces.append(piece)
            start, count = start + len(piece), count - len(piece)
        if count:
            raise DecryptionError
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _file_cipher(key: DataKey, header: bytes, associated: bytes) -> AESGCM:
    return derive_cipher(key.reveal(), salt=header[-_ID_BYTES:], purpose=join_parts(_PURPOSE, header, associated))


def _nonce(number: int, *, is_last: bool) -> bytes:
    # The key belongs to this file alone, so that numbers are never used twice under it.
    return number.to_bytes(11, "big") + (b"\x01" if is_last else b"\x00")


def _unwritable(path: Path, error: OSError) -> CryptoError:
    reason = error.strerror or "the system refused"
    return CryptoError(
        f'The sealed file "{path.name}" cannot be written: {reason}.', fix="make room, or ask the operator."
    )


_PAYLOAD_FORMAT = b"\x01"
_PAYLOAD_PURPOSE = b"cloister sealed payload"


def seal(payload: bytes, *, key: DataKey, associated: bytes) -> bytes:
    """Return a payload that only the key opens, and only for what it belongs to (``associated``)."""
    return _PAYLOAD_FORMAT + encrypt(
        key.reveal(), payload, purpose=_PAYLOAD_PURPOSE, associated=_PAYLOAD_FORMAT + associated
    )


def unseal(sealed: bytes, *, key: DataKey, associated: bytes) -> bytes:
    """Return the payload that was sealed.

    Raises:
        DecryptionError: if the key, what it belongs to or any bit is not as it was.
    """
    if not sealed.startswith(_PAYLOAD_FORMAT):
        raise DecryptionError
    return decrypt(key.reveal(), sealed[1:], purpose=_PAYLOAD_PURPOSE, associated=_PAYLOAD_FORMAT + associated)
