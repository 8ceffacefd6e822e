"""Which folder a database belongs to: a random text in a file of the folder, recorded in the database at first start.

A machine that shares the database but has another folder would claim work whose files it does not have. It is refused
at its start, and a worker whose folder is gone, such as one that is not mounted any more, claims nothing.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from sqlalchemy.orm import Session

from cloister.core.atomic_files import Draft
from cloister.errors import ConflictError
from cloister.hub.store.database import Store
from cloister.hub.store.models import HubFolder
from cloister.hub.store.models.base import random_text

__all__ = ["IDENTITY_FILE", "bind_folder", "find_recorded_identity", "is_own_folder", "write_identity"]

IDENTITY_FILE = "identity"
_BYTES = 20


def bind_folder(store: Store, folder: Path) -> None:
    """Record a folder in a database that has none yet, or check that it is the recorded one.

    Raises:
        ConflictError: if the database belongs to another folder.
    """
    with store.reading() as session:
        recorded = _find_recorded(session)
    if recorded is None:
        recorded = _record(store, _read(folder) or write_identity(folder, random_text(_BYTES)))
    if _read(folder) != recorded:
        raise ConflictError(
            f"The hub's database belongs to another folder than {folder}.",
            fix="use the folder of the hub's first start, on every machine the same one; if this is a copy of it that "
            f'replaces it, write "{recorded}" into its file {IDENTITY_FILE}.',
        )


def is_own_folder(session: Session, folder: Path) -> bool:
    """Return whether a folder is there and is the one that the database belongs to."""
    return _read(folder) == _find_recorded(session)


def find_recorded_identity(store: Store) -> str | None:
    """Return the identity of the folder that a database belongs to, or None where none is recorded yet."""
    with store.reading() as session:
        return _find_recorded(session)


def write_identity(folder: Path, identity: str) -> str:
    """Give an identity to a folder that has none; return the one that it has then."""
    with Draft(folder / IDENTITY_FILE) as draft, contextlib.suppress(FileExistsError):
        draft.write(f"{identity}\n".encode())
        draft.adopt(replace=False)
    return _read(folder) or ""


def _record(store: Store, identity: str) -> str:
    """Record a folder, unless another process was faster; return what is recorded now."""
    with store.writing() as session:
        found = session.get(HubFolder, 1, with_for_update=True)
        if found is None:
            found = HubFolder(number=1, identity=identity)
            session.add(found)
        return found.identity


def _find_recorded(session: Session) -> str | None:
    found = session.get(HubFolder, 1)
    return None if found is None else found.identity


def _read(folder: Path) -> str | None:
    try:
        return (folder / IDENTITY_FILE).read_text("ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
