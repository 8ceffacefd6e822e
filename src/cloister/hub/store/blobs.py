"""Sealed files of the hub: each under a random name, with a data key of its own that the database keeps wrapped.

The folder alone is unreadable, and so is the folder with the database: the master key is in neither. A blob is deleted
for good when its row is: without the wrapped key no copy of the file can be read.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Protocol

from cloister.core.atomic_files import DRAFT_ENDING, move_whole
from cloister.crypto.encryption import random_bytes
from cloister.crypto.keys import DataKey, MasterKey
from cloister.crypto.sealed_data import SealedReader, SealedWriter, seal, unseal
from cloister.errors import DataError, DecryptionError, InternalError, SourceNotFoundError, TooLargeError

__all__ = ["Blob", "BlobStore", "BlobWriter"]

_PURPOSE = "blob"
_ID = re.compile("[0-9a-f]{32}")
_PIECE = 2**20
_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Blob:
    """A sealed file, as the database remembers it.

    Attributes:
        id: its random name.
        wrapped_key: its data key under the master key; deleting this deletes the blob.
        size: how many bytes were sealed.
        sha256: the digest of the sealed file, which tells nothing about what is in it.
    """

    id: str
    wrapped_key: bytes = field(repr=False)
    size: int
    sha256: str


class ByteStream(Protocol):
    """Bytes to be read from the front."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` more bytes, none at the end."""
        ...


class BlobWriter:
    """Takes a blob piece by piece; used with ``with``, which keeps it unless an error passes."""

    def __init__(self, store: BlobStore, *, limit_bytes: int) -> None:
        self._id = random_bytes(16).hex()
        self._key = DataKey.generate()
        self._store = store
        self._limit = limit_bytes
        self._file = SealedWriter(store.path(self._id), key=self._key, associated=_associated_data(self._id))
        self._blob: Blob | None = None

    @property
    def blob(self) -> Blob:
        """Return what was kept."""
        if self._blob is None:
            raise InternalError("a blob was asked for before it was kept.")
        return self._blob

    @property
    def closed(self) -> bool:
        """Return whether nothing more can be written."""
        return self._file.closed

    def write(self, content: bytes | bytearray | memoryview) -> int:
        """Seal some more bytes.

        Raises:
            TooLargeError: if they are more than the limit; nothing is kept then.
        """
        if self._file.size + memoryview(content).nbytes > self._limit:
            self._file.close()
            raise TooLargeError(
                f"This is larger than the {_readable(self._limit)} that are taken.",
                fix="send less, or ask the operator for a higher limit.",
            )
        return self._file.write(content)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._file.size

    def flush(self) -> None:
        """Do nothing: bytes wait until their chunk is full."""

    def writable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Throw everything away that is not kept yet."""
        self._file.close()

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.closed:
            self._file.commit()
            wrapped = self._store.master_key.wrap(self._key, purpose=_PURPOSE, object_id=self._id)
            self._blob = Blob(id=self._id, wrapped_key=wrapped, size=self._file.size, sha256=self._file.sha256)
        self.close()


class BlobStore:
    """A folder of sealed files."""

    def __init__(self, folder: str | Path, master_key: MasterKey) -> None:
        self._folder = Path(folder)
        self.master_key = master_key
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def folder(self) -> Path:
        """Return where the files are."""
        return self._folder

    def path(self, blob_id: str) -> Path:
        """Return where a blob is; ids that this store did not make have no place.

        Raises:
            DataError: if it is no id of a blob.
        """
        if not _ID.fullmatch(blob_id):
            raise DataError("This is no id of a stored file.", fix="use the id that the database has.")
        return self._folder / blob_id

    def writer(self, *, limit_bytes: int) -> BlobWriter:
        """Return a writer for a new blob, for bytes that come piece by piece."""
        return BlobWriter(self, limit_bytes=limit_bytes)

    def write(self, stream: ByteStream, *, limit_bytes: int) -> Blob:
        """Seal a stream of at most ``limit_bytes``, whole or not at all, and return what the database has to keep.

        Raises:
            TooLargeError: if it is longer.
        """
        with self.writer(limit_bytes=limit_bytes) as writer:
            while piece := stream.read(_PIECE):
                writer.write(piece)
        return writer.blob

    def open(self, blob: Blob) -> SealedReader:
        """Open a blob for reading from any place.

        Raises:
            SourceNotFoundError: if its file is gone.
            DecryptionError: if the key or the file is not as it was.
        """
        path = self._present(blob)
        reader = SealedReader(path, key=self._key(blob), associated=_associated_data(blob.id))
        if reader.size != blob.size:
            reader.close()
            raise DecryptionError
        return reader

    def check_present(self, blob_id: str) -> None:
        """Raise unless the file of a blob is here.

        Raises:
            SourceNotFoundError: if it is gone, or in another folder.
        """
        if not self.path(blob_id).is_file():
            raise SourceNotFoundError("A stored file is missing.", fix="restore it from a backup.")

    def seal_note(self, blob: Blob, note: str) -> bytes:
        """Return a short text about a blob, sealed by its key: deleting the wrapped key deletes both."""
        return seal(note.encode(), key=self._key(blob), associated=_associated_data(blob.id))

    def open_note(self, blob: Blob, sealed: bytes) -> str:
        """Return a text that was sealed beside a blob.

        Raises:
            DecryptionError: if the key or the text is not as it was.
        """
        return unseal(sealed, key=self._key(blob), associated=_associated_data(blob.id)).decode()

    def verify(self, blob: Blob) -> None:
        """Compare the sealed file with its digest, without opening it: for backups and restores.

        Raises:
            SourceNotFoundError: if the file is gone.
            DataError: if it is not the file that was kept.
        """
        with self._present(blob).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != blob.sha256:
            raise DataError("A stored file is not the one that was kept.", fix="restore it from a backup.")

    def delete(self, blob: Blob) -> None:
        """Remove the file of a blob; the caller deletes its wrapped key, without which no copy can be read."""
        self.path(blob.id).unlink(missing_ok=True)

    def rewrap(self, blob: Blob) -> Blob:
        """Return a blob whose key is wrapped by the newest version of the master key; its file stays as it is."""
        wrapped = self.master_key.rewrap(blob.wrapped_key, purpose=_PURPOSE, object_id=blob.id)
        return replace(blob, wrapped_key=wrapped)

    def hand_over(self, blob: Blob, key: MasterKey) -> Blob:
        """Return a blob whose key is wrapped by another master key, for a store that has only that one."""
        return replace(blob, wrapped_key=key.wrap(self._key(blob), purpose=_PURPOSE, object_id=blob.id))

    @contextlib.contextmanager
    def drafting(self) -> Iterator[BlobStore]:
        """Yield a store in a folder of its own, which is removed with all that is in it but what was adopted."""
        with tempfile.TemporaryDirectory(
            dir=self._folder, prefix=".", suffix=DRAFT_ENDING, ignore_cleanup_errors=True
        ) as place:
            yield BlobStore(place, self.master_key)

    def lend(self, blob: Blob, drafts: BlobStore) -> None:
        """Show the file of a blob in a folder of drafts, too, without a copy of its bytes."""
        drafts.path(blob.id).hardlink_to(self._present(blob))

    def adopt(self, blob: Blob, drafts: BlobStore) -> None:
        """Move the file of a blob here from a folder of drafts; it never takes the place of another one."""
        move_whole(drafts._present(blob), self.path(blob.id))

    def sweep(self, *, older_than: float = _DAY) -> int:
        """Remove what nobody will finish, such as the drafts of killed writers, and return how many there were.

        What changed less than ``older_than`` seconds ago stays: somebody may be writing it. Finished files stay in any
        case: a database that does not know them may be an older copy, or the wrong one.
        """
        oldest = time.time() - older_than
        strays = [path for path in self._folder.glob(f"*{DRAFT_ENDING}") if _last_change(path) <= oldest]
        for path in strays:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return len(strays)

    def _key(self, blob: Blob) -> DataKey:
        return self.master_key.unwrap(blob.wrapped_key, purpose=_PURPOSE, object_id=blob.id)

    def _present(self, blob: Blob) -> Path:
        self.check_present(blob.id)
        return self.path(blob.id)


def _last_change(path: Path) -> float:
    """Return when a draft, or anything in a folder of them, was changed; another worker may remove it meanwhile."""
    moments = [0.0]
    for item in (path, *path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            moments.append(item.stat().st_mtime)
    return max(moments)


def _associated_data(blob_id: str) -> bytes:
    return f"cloister blob {blob_id}".encode()


def _readable(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
