"""From text to one SELECT whose clauses are all known."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from cloister.data.engines.predicates import LONGEST, check_size, shortened
from cloister.errors import ParameterError, ParameterTypeError, UnsafeQueryError
from cloister.queries.sql import refusals

__all__ = ["check_clauses", "clause", "output_name", "parse_select"]

_DEEPEST = 100
_EXAMPLE = "SELECT COUNT(*) AS n FROM data"
_CLAUSES = {"expressions", "from", "joins", "where", "group", "having", "order", "limit", "offset", "with", "distinct"}
_REASONS = {
    "hint": "leave out the hint.",
    "into": f"leave out INTO, such as {_EXAMPLE}.",
    "locks": "leave out the lock; queries only read.",
    "qualify": "use HAVING on aggregates.",
    "windows": "use GROUP BY in place of windows.",
    "sample": "leave it out; cloister reads all rows.",
    "laterals": "prepare the rows in the source.",
    "kind": "leave out AS STRUCT or AS VALUE.",
}


class _Reading(Dialect):
    """Standard SQL, in which missing values come last however rows are ordered."""

    NULL_ORDERING = "nulls_are_last"


def parse_select(text: str) -> exp.Select:
    """Return one SELECT.

    Raises:
        ParameterTypeError: if it is not a text.
        ParameterError: if it is not SQL, or too long.
        UnsafeQueryError: if it is not one SELECT.
    """
    if not isinstance(text, str):
        raise ParameterTypeError("The query is not a text.", fix=f'write for example "{_EXAMPLE}".')
    if len(text) > LONGEST:
        raise _too_large()
    try:
        statements = sqlglot.parse(text, read=_Reading)
    except (SqlglotError, ValueError):
        raise _not_sql(text) from None
    except RecursionError:
        raise _too_large() from None
    found = [statement for statement in statements if isinstance(statement, exp.Expression)]
    if not found:
        raise _not_sql(text)
    if len(found) > 1:
        raise UnsafeQueryError("The text holds several statements.", fix=f"ask one query at a time: {_EXAMPLE}.")
    _check_size(found[0])
    return _select(found[0])


def clause(select: exp.Expression, name: str) -> exp.Expression | None:
    """Return a clause, whichever way the installed parser spells its name."""
    return select.args.get(name) or select.args.get(f"{name}_")


def output_name(node: exp.Expression) -> str:
    """Return what an output column is called: its alias, its own name, or its text."""
    name = node.alias_or_name if isinstance(node, exp.Alias | exp.Column) else ""
    return name or shortened(node.sql(comments=False, copy=False))


def check_clauses(select: exp.Select) -> None:
    """Refuse clauses that are not known."""
    for name, part in select.args.items():
        if part and name.rstrip("_") not in _CLAUSES:
            raise UnsafeQueryError(
                f"The query has a part ({name.replace('_', ' ').strip().upper()}) that cannot be answered safely.",
                fix=_REASONS.get(name, f"leave it out, such as {_EXAMPLE}."),
            )


def _select(statement: exp.Expression) -> exp.Select:
    while type(statement) is exp.Subquery and not any(part for key, part in statement.args.items() if key != "this"):
        statement = statement.this
    if type(statement) is not exp.Select:
        raise refusals.in_clause(statement, fix=f"ask with SELECT, such as {_EXAMPLE}.")
    return statement


def _check_size(statement: exp.Expression) -> None:
    try:
        check_size(statement, deepest=_DEEPEST)
    except ParameterError:
        raise _too_large() from None


def _too_large() -> ParameterError:
    return ParameterError(
        "The query is too long or too deeply nested.",
        fix=f"nest at most {_DEEPEST} levels, write IN (...) for many values, or prepare a column in the source.",
    )


def _not_sql(text: str) -> ParameterError:
    return ParameterError(f"{shortened(repr(text))} is not a SQL query.", fix=f"write for example {_EXAMPLE}.")
