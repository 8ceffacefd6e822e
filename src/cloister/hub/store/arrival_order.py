"""Making the database forget in which order answers to surveys came, and which rows came together.

Sorting by random keys is not enough: SQLite sorts the pointers of a page, while its cells lie in the order of their
insertion; PostgreSQL keeps rows in the order of their arrival and marks each with its transaction. So all rows about
answers are written anew in the order of their keys. On SQLite this is done part by part, in short transactions; what is
deleted is overwritten with zeros, and the log (``hub.db-wal``) is emptied afterwards. On PostgreSQL one transaction
writes all four tables into new files.

Not promised: between two such steps, whoever copies the database's files, and for ever whoever keeps PostgreSQL's log
(archives, replicas, backups of files), can see which rows came together and when. Disks and snapshots below the
database may keep what it has overwritten.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, delete, insert, select, text

from cloister.hub.store.database import Store
from cloister.hub.store.models import HubSurvey, SurveyInvitation, SurveyReport, SurveySignature, SurveyUsedId

_MODELS = (SurveyUsedId, SurveyInvitation, SurveySignature, SurveyReport)
TABLES = {model.__tablename__: ", ".join(column.name for column in model.__table__.primary_key) for model in _MODELS}
"""The tables about answers, each with the columns of its key, in the order in which everybody takes their locks."""

AT_ONCE = 2_000
"""How many rows SQLite writes anew in one transaction: nobody else writes for some milliseconds."""


def forget_order(store: Store, *, survey_id: str | None = None) -> None:
    """Remove the traces of order as far as the database allows; what is in use by others waits for the next time.

    Args:
        store: the database.
        survey_id: the survey whose rows have changed; None for all. PostgreSQL writes all anew in every case.
    """
    if store.dialect == "sqlite":
        for one in _surveys(store) if survey_id is None else [survey_id]:
            for model in _MODELS:
                _write_parts_anew(store, model, one)
        empty_log(store)
    else:
        _write_tables_anew(store)


def empty_log(store: Store) -> None:
    """Empty the log of SQLite, which shows what changed together; PostgreSQL's own log is not in our hands."""
    if store.dialect != "sqlite":
        return
    connection = store.engine.raw_connection()
    try:
        cursor = connection.cursor()
        patience = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        # Nobody is waited for: a log that is in use is emptied the next time, and nobody is held up now.
        cursor.execute("PRAGMA busy_timeout = 0")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute(f"PRAGMA busy_timeout = {int(patience)}")
        cursor.close()
    finally:
        connection.close()


def _surveys(store: Store) -> list[str]:
    with store.reading() as session:
        return list(session.scalars(select(HubSurvey.id)))


def _write_parts_anew(store: Store, model: Any, survey_id: str) -> None:  # one of the models above
    """Take the rows of a survey out and put them back in the order of their keys, one run of keys after the other."""
    table = model.__table__
    key = table.primary_key.columns.values()[-1]
    is_of_survey, last = table.c.survey_id == survey_id, ""
    while True:
        with store.writing() as session:
            part = select(table).where(is_of_survey, key > last).order_by(key).limit(AT_ONCE)
            rows = [dict(row) for row in session.execute(part).mappings()]
            if not rows:
                return
            first, last = rows[0][key.name], rows[-1][key.name]
            session.execute(delete(table).where(and_(is_of_survey, key.between(first, last))))
            session.execute(insert(table), rows)


def _write_tables_anew(store: Store) -> None:
    with store.writing() as session:
        session.execute(text(f"LOCK TABLE {', '.join(TABLES)} IN ACCESS EXCLUSIVE MODE"))
        for name, key in TABLES.items():
            session.execute(text(f"CREATE TEMPORARY TABLE anew ON COMMIT DROP AS SELECT * FROM {name}"))  # noqa: S608
            session.execute(text(f"TRUNCATE {name}"))
            session.execute(text(f"INSERT INTO {name} SELECT * FROM anew ORDER BY {key}"))  # noqa: S608
            session.execute(text("DROP TABLE anew"))
