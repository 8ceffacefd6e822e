"""Opening a ledger by its URL."""

from __future__ import annotations

from pathlib import Path

from cloister.accounting.ledger.protocol import Ledger
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean

_SCHEMES = ("memory:", "sqlite:", "postgresql:", "postgres:")
_EXAMPLES = '"sqlite:///budget.db", "postgresql://user@host/database" or "memory:"'


def open_ledger(url: str, *, create: bool = True) -> Ledger:
    """Return the ledger at a URL.

    Args:
        url: ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://user@host/database``, or ``memory:``
            for one that ends with this process.
        create: whether to make a ledger where there is none. One that exists is never overwritten.

    >>> open_ledger("memory:").accounts()
    ()
    """
    from cloister.accounting.ledger.sql_ledger import SqlLedger
    from cloister.accounting.ledger.sqlite import MemoryDatabase, SqliteDatabase

    if not isinstance(url, str):
        raise ParameterTypeError("The address of a ledger is not text.", fix=f"write {_EXAMPLES}.")
    scheme, colon, rest = url.partition(":")
    match scheme.lower() + colon:
        case "memory:" if not rest:
            return SqlLedger(MemoryDatabase())
        case "sqlite:":
            return SqlLedger(SqliteDatabase(_path(rest), create=create))
        case "postgresql:" | "postgres:" if rest.startswith("//"):
            from cloister.accounting.ledger.postgres import PostgresDatabase

            return SqlLedger(PostgresDatabase(url, create=create))
    raise ParameterError(
        f"A ledger's address does not start like this.{did_you_mean(scheme.lower() + ':', _SCHEMES)}",
        fix=f"write {_EXAMPLES}.",
    )


def _path(rest: str) -> Path:
    name = rest.removeprefix("///")
    if not rest.startswith("///") or not name or name == ":memory:":
        raise ParameterError(
            "The address of an SQLite ledger needs three slashes and a file name, four slashes for an absolute path.",
            fix='write "sqlite:///budget.db" or "sqlite:////var/lib/budget.db"; "memory:" for one without a file.',
        )
    if "?" in name or "\0" in name:
        raise ParameterError("The address of an SQLite ledger takes no options.", fix='leave out what follows the "?".')
    return Path(name)
