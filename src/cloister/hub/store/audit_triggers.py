"""Triggers by which the database itself refuses to change, delete or misplace entries of the audit log.

Versions of policies are refused to be changed or deleted in the same way.
"""

from __future__ import annotations

from typing import Literal

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


def audit_triggers(dialect: Literal["sqlite", "postgresql"]) -> list[str]:
    """Return the statements that make the triggers, which can run again without harm."""
    if dialect == "sqlite":
        return [_SQLITE_UPDATE, _SQLITE_DELETE, _SQLITE_INSERT, *_SQLITE_POLICIES]
    audit = [_POSTGRES_REFUSE, _POSTGRES_CHECK, _POSTGRES_CHANGE, _POSTGRES_TRUNCATE, _POSTGRES_INSERT]
    return [*audit, *_POSTGRES_POLICIES]
