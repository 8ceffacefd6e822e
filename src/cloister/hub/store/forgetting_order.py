"""Making the database forget in which order answers to surveys came, and which rows came together.

SQLite writes each change into its log (``hub.db-wal``) before the file; the log is emptied here. PostgreSQL keeps rows
in the order of their arrival and marks each with its transaction, so that all rows about answers are written anew, by
one transaction, in the order of their random keys.

Not promised: between two such steps, whoever copies the database's files, and for ever whoever keeps PostgreSQL's log
(archives, replicas, backups of files), can see which rows came together and when. Disks and snapshots below the
database may keep what it has overwritten.
"""

from __future__ import annotations

from sqlalchemy import text

from cloister.hub.store.database import Store
from cloister.hub.store.models import SurveyInvitation, SurveyReport, SurveySignature, SurveyUsedId

TABLES = {
    model.__tablename__: ", ".join(column.name for column in model.__table__.primary_key)
    for model in (SurveyUsedId, SurveyInvitation, SurveySignature, SurveyReport)
}
"""The tables about answers, each with the columns of its key, in the order in which everybody takes their locks."""


def forget_order(store: Store) -> None:
    """Remove the traces of order as far as the database allows; what is in use by others waits for the next time."""
    if store.dialect == "sqlite":
        _empty_log(store)
    else:
        _write_anew(store)


def _empty_log(store: Store) -> None:
    connection = store.engine.raw_connection()
    try:
        cursor = connection.cursor()
        patience = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        cursor.execute("PRAGMA busy_timeout = 0")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute(f"PRAGMA busy_timeout = {int(patience)}")
        cursor.close()
    finally:
        connection.close()


def _write_anew(store: Store) -> None:
    with store.writing() as session:
        session.execute(text(f"LOCK TABLE {', '.join(TABLES)} IN ACCESS EXCLUSIVE MODE"))
        for name, key in TABLES.items():
            session.execute(text(f"CREATE TEMPORARY TABLE anew ON COMMIT DROP AS SELECT * FROM {name}"))  # noqa: S608
            session.execute(text(f"TRUNCATE {name}"))
            session.execute(text(f"INSERT INTO {name} SELECT * FROM anew ORDER BY {key}"))  # noqa: S608
            session.execute(text("DROP TABLE anew"))
