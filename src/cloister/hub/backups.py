"""Backups of a hub: its database and its sealed files in one archive, without the key that opens them.

The database is copied while the hub runs, as it was at one moment. The key is never part of a backup: whoever finds the
archive has ciphertexts and the records of the hub, and whoever loses the key has lost the data.
"""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy import inspect, make_url, select

from cloister import _version
from cloister.errors import ConflictError, DataError, HubUnavailableError
from cloister.hub.settings import Settings
from cloister.hub.store.database import Store
from cloister.hub.store.folder_identity import find_recorded_identity, write_identity
from cloister.hub.store.models import AlgorithmVersion, DatasetVersion, HubFolder
from cloister.hub.store.table_upgrade import current_revision, revisions
from cloister.hub.use_cases import audit_log

__all__ = ["Backup", "backup", "restore"]

_SCHEMA = "cloister.backup/1"
_DATABASE, _MANIFEST, _BLOBS = "hub.db", "manifest.json", "blobs/"
_PIECE = 1024**2
_BROKEN = (tarfile.TarError, OSError, EOFError, ValueError, KeyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What an archive holds."""

    path: Path
    files: int
    audit_entries: int
    audit_head: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "schema": _SCHEMA,
            "path": str(self.path),
            "files": self.files,
            "audit": {"number": self.audit_entries, "digest": self.audit_head},
        }


def backup(settings: Settings, path: Path) -> Backup:
    """Write a hub's database and sealed files into an archive that is not there yet; the hub may run.

    Raises:
        ConflictError: if the archive is there, the database is not SQLite, or data were deleted meanwhile.
    """
    source = _sqlite(settings)
    if path.exists():
        raise ConflictError(f"{path} is there already.", fix="choose another name, or move it away.")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".cloister-backup-") as place:
        copy, draft = Path(place) / _DATABASE, Path(place) / "draft"
        # SQLite copies the database as it was at one moment, although others go on writing.
        with closing(_connect(source)) as live, closing(sqlite3.connect(copy)) as target:
            live.backup(target)
        number, digest, blobs = _verify_copy(copy)
        draft.touch(mode=0o600)
        with tarfile.open(draft, "w") as archive:
            digests = {_DATABASE: _add(archive, _DATABASE, copy)}
            for blob in blobs:
                digests[f"{_BLOBS}{blob}"] = _add(archive, f"{_BLOBS}{blob}", settings.folder / "blobs" / blob)
            manifest = {
                "schema": _SCHEMA,
                "software": _version.__version__,
                "audit": {"number": number, "digest": digest},
                "sha256": digests,
            }
            _add_bytes(archive, _MANIFEST, json.dumps(manifest, indent=2).encode())
        # Under its name only when it is whole: a backup that broke off must not look like one.
        draft.rename(path)
    return Backup(path=path, files=len(blobs), audit_entries=number, audit_head=digest)


def restore(settings: Settings, path: Path) -> Backup:
    """Bring a hub back from an archive, into a folder that has none; ledger, audit log and every file are checked.

    Raises:
        ConflictError: if the folder has a hub, or the archive was made by a newer version.
        DataError: if the archive is not whole.
    """
    target = _sqlite(settings)
    if target.exists() or any((settings.folder / "blobs").glob("*")):
        raise ConflictError(f"There is a hub in {settings.folder}.", fix="restore into an empty folder.")
    settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=settings.folder, prefix=".restoring-") as place:
        try:
            manifest = _unpack(path, Path(place))
        except _BROKEN:
            raise DataError(f"{path} is no whole backup of a hub.", fix="take another copy of it.") from None
        number, digest, blobs = _verify_copy(Path(place) / _DATABASE)
        known = {name.removeprefix(_BLOBS) for name in manifest["sha256"] if name.startswith(_BLOBS)}
        # Manifest, chains and files must tell of the same moment, or somebody has put two backups together.
        if manifest["audit"] != {"number": number, "digest": digest} or known != set(blobs):
            raise DataError(f"{path} is no whole backup of a hub.", fix="take another copy of it.")
        (settings.folder / "blobs").mkdir(mode=0o700, exist_ok=True)
        for blob in blobs:
            (Path(place) / "blobs" / blob).rename(settings.folder / "blobs" / blob)
        identity = _identity(Path(place) / _DATABASE)
        if identity is not None:
            write_identity(settings.folder, identity)
        # The database comes last: without it, nothing in this folder is taken for a hub.
        (Path(place) / _DATABASE).rename(target)
    return Backup(path=path, files=len(blobs), audit_entries=number, audit_head=digest)


def _sqlite(settings: Settings) -> Path:
    url = make_url(settings.database_url)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise ConflictError(
            "This command copies hubs on SQLite.",
            fix="use pg_dump and pg_restore for the database, and copy the folder blobs after it; see the how-to.",
        )
    return Path(url.database)


def _connect(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise HubUnavailableError(f"There is no hub in {path.parent}.", fix="check --folder.")
    return sqlite3.connect(path, timeout=60)


def _verify_copy(path: Path) -> tuple[int, str, list[str]]:
    """Return the head of the audit log and the names of the sealed files, once both chains were found whole."""
    store = Store(f"sqlite:///{path}")
    try:
        with store.engine.begin() as connection:
            if current_revision(connection) not in revisions():
                raise ConflictError("This hub was used by another version.", fix="use the version that it was used by.")
        with store.reading() as session:
            head = audit_log.verify(session)
            store.ledger(session).verify()
            kept = select(DatasetVersion.blob_id).where(DatasetVersion.blob_id.is_not(None))
            found = {str(blob) for blob in session.scalars(kept)}
            found |= set(session.scalars(select(AlgorithmVersion.blob_id)))
    finally:
        store.close()
        with closing(sqlite3.connect(path)) as database:
            # Back to one file: what SQLite's log holds would otherwise be missing from the copy.
            database.execute("PRAGMA journal_mode = DELETE")
    return head.number, head.digest, sorted(found)


def _identity(path: Path) -> str | None:
    """Return the identity of the folder that a copy of a database belongs to; older ones belong to none yet."""
    store = Store(f"sqlite:///{path}")
    try:
        with store.engine.begin() as connection:
            is_known = inspect(connection).has_table(HubFolder.__tablename__)
        return find_recorded_identity(store) if is_known else None
    finally:
        store.close()
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = DELETE")


def _add(archive: tarfile.TarFile, name: str, path: Path) -> str:
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
            content.seek(0)
            entry = _entry(name, path.stat().st_size)
            archive.addfile(entry, content)
    except FileNotFoundError:
        raise ConflictError("Data were deleted while the backup was made.", fix="make it again.") from None
    return digest


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o600
    return entry


def _unpack(path: Path, place: Path) -> dict[str, Any]:
    """Write the files of an archive into a folder and return its manifest, if each has the digest that it says."""
    (place / "blobs").mkdir(mode=0o700)
    digests: dict[str, str] = {}
    manifest: dict[str, Any] = {}
    with tarfile.open(path) as archive:
        for entry, content in _files(archive):
            if entry.name == _MANIFEST:
                manifest = json.loads(content.read(64 * _PIECE))
            else:
                digests[entry.name] = _write_file(content, place / _check_name(entry.name))
    if manifest["schema"] != _SCHEMA or manifest["sha256"] != digests or _DATABASE not in digests:
        raise ValueError
    return manifest


def _files(archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, BinaryIO]]:
    for entry in archive:
        content = archive.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise ValueError
        yield entry, content  # type: ignore[misc]  # a buffered reader


def _check_name(name: str) -> str:
    """Return a name, if it is one that a backup has; nothing is ever written elsewhere."""
    blob = name.removeprefix(_BLOBS)
    # A name with a path in it could lead out of the folder.
    if name != _DATABASE and (blob == name or not blob.isalnum()):
        raise ValueError
    return name


def _write_file(content: BinaryIO, path: Path) -> str:
    digest = hashlib.sha256()
    path.touch(mode=0o600)
    with path.open("wb") as file:
        while piece := content.read(_PIECE):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()
