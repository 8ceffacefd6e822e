"""Bringing a hub's database to the tables of this version, forwards only and in one transaction each."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect

from cloister.accounting.ledger.joined import create_tables
from cloister.errors import ConflictError
from cloister.hub.store.audit_triggers import audit_triggers
from cloister.hub.store.database import Store
from cloister.hub.store.models import Base, HubFolder

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = "cloister.hub.store.migrations"


def upgrade(store: Store) -> bool:
    """Bring the tables of the hub, and the ledger beside them, to this version; return whether anything was missing.

    Raises:
        ConflictError: if a newer version has used the database.
    """
    known = revisions()
    with store.engine.begin() as connection:
        found = current_revision(connection)
        if found is not None and found not in known:
            raise ConflictError(
                "This database was used by a newer hub.",
                fix="install that version, or restore a backup made before it.",
            )
        is_behind = found != known[-1]
        if is_behind:
            from alembic import command

            command.upgrade(configuration(connection), "head")
        # The folder's row is about where this database lives, not about its contents: it needs no revision of its own.
        Base.metadata.create_all(connection, tables=[Base.metadata.tables[HubFolder.__tablename__]])
        for statement in audit_triggers(store.dialect):
            connection.exec_driver_sql(statement)
        create_tables(connection.connection.driver_connection, dialect=store.dialect)
    return is_behind


def revisions() -> list[str]:
    """Return the revisions that this version knows, the newest last; each is the number in its file's name."""
    folder = importlib.resources.files(_MIGRATIONS).joinpath("versions")
    return sorted(file.name.partition("_")[0] for file in folder.iterdir() if file.name[:1].isdigit())


def current_revision(connection: Any) -> str | None:  # a SQLAlchemy connection
    """Return the revision of a database, or None where there is none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if found is None else str(found)


def configuration(connection: Any = None) -> Config:  # a SQLAlchemy connection
    """Return what Alembic needs to know."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files(_MIGRATIONS)))
    config.attributes["connection"] = connection
    return config
