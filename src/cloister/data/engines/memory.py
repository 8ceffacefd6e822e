"""How much memory a question may use in the embedded engine, and where it puts what does not fit.

A question gets a fixed amount for each thread, beside the tables that its database holds. What does not fit goes to
temporary files, in a folder that this account alone can read and that is gone with the process. Rows must not decide
whether a question is answered: one that cannot be done so, or whose files cannot be written, is run again with all the
memory that there is. Processes that may not write rows to files have no folder, and then no such bound.
"""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import duckdb

__all__ = ["UNFINISHED", "bound_memory", "lift_bound", "spill_folder"]

PER_THREAD = 100_000_000
"""The bytes that a question gets for each thread. With much less, nearly everything goes through files."""

UNFINISHED = (duckdb.OutOfMemoryException, duckdb.IOException)
"""What a question ends in for want of memory, or of space for its temporary files."""

_NUMBERS = itertools.count()
_STATE = """
SELECT current_setting('temp_directory'), current_setting('threads'), sum(memory_usage_bytes) FROM duckdb_memory()
"""


def spill_folder(database: str | None = None) -> str:
    """Return the folder for the temporary files of a database, which makes it when it needs it.

    Every database in memory has one of its own; a database file has one, since DuckDB opens a file once for a process.
    """
    name = f"memory-{next(_NUMBERS)}" if database is None else f"file-{_number_of(database)}"
    return str(_folder_of_process(os.getpid()) / name)


def bound_memory(connection: duckdb.DuckDBPyConnection) -> bool:
    """Bound what questions use beside what the database holds now; False if there is no folder for the rest."""
    folder, threads, held = connection.execute(_STATE).fetchall()[0]
    if not folder:
        return False
    connection.execute(f"SET memory_limit = '{int(held) + int(threads) * PER_THREAD}B'")
    return True


def lift_bound(connection: duckdb.DuckDBPyConnection) -> None:
    """Let questions use what DuckDB uses by itself: most of the memory that there is."""
    connection.execute("RESET memory_limit")


@cache
def _number_of(database: str) -> int:  # noqa: ARG001  # one number for each
    return next(_NUMBERS)


@cache
def _folder_of_process(process: int) -> Path:
    folder = tempfile.mkdtemp(prefix=f"cloister-{process}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
