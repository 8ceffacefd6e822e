"""The triggers that keep the hub's records from changing, and upgrades of a database to the tables of this version.

By its triggers the database itself refuses to change, delete or misplace entries of the audit log. Versions of policies
are refused to be changed or deleted in the same way. Upgrades go forwards only, in one transaction each.
"""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import inspect

from cloister.accounting.ledger.host_database import create_tables
from cloister.errors import ConflictError
from cloister.hub.store.database import Store
from cloister.hub.store.models import Base, HubFolder

if TYPE_CHECKING:
    from alembic.config import Config


_SQLITE_UPDATE = """
CREATE TRIGGER IF NOT EXISTS audit_entries_no_update BEFORE UPDATE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""

_SQLITE_DELETE = """
CREATE TRIGGER IF NOT EXISTS audit_entries_no_delete BEFORE DELETE ON audit_entries
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""

_SQLITE_INSERT = """
CREATE TRIGGER IF NOT EXISTS audit_entries_in_order BEFORE INSERT ON audit_entries
WHEN NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM audit_entries)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""

_POSTGRES_REFUSE = """
CREATE OR REPLACE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit log is append-only'; END $$
"""

_POSTGRES_CHECK = """
CREATE OR REPLACE FUNCTION check_audit_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM audit_entries) THEN
        RAISE EXCEPTION 'the audit log is append-only';
    END IF;
    RETURN NEW;
END $$
"""

_POSTGRES_CHANGE = """
CREATE OR REPLACE TRIGGER audit_entries_no_change BEFORE UPDATE OR DELETE ON audit_entries
FOR EACH ROW EXECUTE FUNCTION refuse_audit_change()
"""

_POSTGRES_TRUNCATE = """
CREATE OR REPLACE TRIGGER audit_entries_no_truncate BEFORE TRUNCATE ON audit_entries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()
"""

_POSTGRES_INSERT = """
CREATE OR REPLACE TRIGGER audit_entries_in_order BEFORE INSERT ON audit_entries
FOR EACH ROW EXECUTE FUNCTION check_audit_order()
"""

_SQLITE_POLICIES = [
    f"""
CREATE TRIGGER IF NOT EXISTS policy_versions_no_{what} BEFORE {what} ON policy_versions
BEGIN SELECT RAISE(ABORT, 'versions of policies are never changed'); END
"""
    for what in ("update", "delete")
]

_POSTGRES_POLICIES = [
    """
CREATE OR REPLACE FUNCTION refuse_policy_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'versions of policies are never changed'; END $$
""",
    """
CREATE OR REPLACE TRIGGER policy_versions_no_change BEFORE UPDATE OR DELETE ON policy_versions
FOR EACH ROW EXECUTE FUNCTION refuse_policy_change()
""",
]


def trigger_statements(dialect: Literal["sqlite", "postgresql"]) -> list[str]:
    """Return the statements that make the triggers, which can run again without harm."""
    if dialect == "sqlite":
        return [_SQLITE_UPDATE, _SQLITE_DELETE, _SQLITE_INSERT, *_SQLITE_POLICIES]
    audit = [_POSTGRES_REFUSE, _POSTGRES_CHECK, _POSTGRES_CHANGE, _POSTGRES_TRUNCATE, _POSTGRES_INSERT]
    return [*audit, *_POSTGRES_POLICIES]


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
        for statement in trigger_statements(store.dialect):
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
