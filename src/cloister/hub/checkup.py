"""Whether a hub is in order: its key, its database, its chains, its files, and what its machine can confine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import make_url, select

from cloister.crypto.keys import MasterKey
from cloister.errors import CloisterError, ConflictError, HubUnavailableError
from cloister.hub.settings import Settings
from cloister.hub.store.blobs import Blob, BlobStore
from cloister.hub.store.database import Store
from cloister.hub.store.models import DatasetVersion
from cloister.hub.store.table_upgrade import current_revision, revisions
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.algorithms.sandbox_checks import require_isolation

__all__ = ["CheckupFinding", "check_hub"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckupFinding:
    """One thing that was looked at: in order, or what is wrong and what to do."""

    what: str
    problem: str = ""
    fix: str = ""
    is_needed: bool = True

    @property
    def is_fine(self) -> bool:
        """Return whether it is in order."""
        return not self.problem

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "what": self.what,
            "is_fine": self.is_fine,
            "is_needed": self.is_needed,
            "problem": self.problem,
            "fix": self.fix,
        }


def check_hub(settings: Settings) -> list[CheckupFinding]:
    """Look at a hub without changing it, and return what was found; it may run meanwhile."""
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise HubUnavailableError(f"There is no hub in {settings.folder}.", fix="check --folder.")
    store = Store(settings.database_url)
    try:
        return [
            _try_check("the key is there, and for nobody else", lambda: MasterKey.from_file(settings.key_path)),
            _try_check("the tables are those of this version", lambda: _tables(store)),
            _try_check("the chain of the ledger is whole", lambda: _ledger(store)),
            _try_check("the chain of the audit log is whole", lambda: _audit(store)),
            _try_check("every sealed file is whole and opens with the key", lambda: _blobs(settings, store)),
            _try_check("foreign algorithms can be confined", require_isolation, is_needed=False),
        ]
    finally:
        store.close()


def _try_check(what: str, look: Callable[[], object], *, is_needed: bool = True) -> CheckupFinding:
    try:
        look()
    except CloisterError as error:
        return CheckupFinding(what=what, problem=error.problem, fix=error.fix, is_needed=is_needed)
    return CheckupFinding(what=what, is_needed=is_needed)


def _tables(store: Store) -> None:
    with store.engine.begin() as connection:
        found = current_revision(connection)
    if found != revisions()[-1]:
        raise ConflictError(
            f"The tables have the revision {found or 'none'}, this version has {revisions()[-1]}.",
            fix="cloister hub upgrade, after a backup.",
        )


def _ledger(store: Store) -> None:
    _tables(store)
    with store.reading() as session:
        store.ledger(session).verify()


def _audit(store: Store) -> None:
    _tables(store)
    with store.reading() as session:
        audit_log.verify(session)


def _blobs(settings: Settings, store: Store) -> None:
    _tables(store)
    blobs = BlobStore(settings.folder / "blobs", MasterKey.from_file(settings.key_path))
    with store.reading() as session:
        kept = list(session.scalars(select(DatasetVersion).where(DatasetVersion.blob_id.is_not(None))))
        for version in kept:
            blob = Blob(
                str(version.blob_id), version.wrapped_key or b"", version.size or 0, version.source_digest or ""
            )
            blobs.verify(blob)
