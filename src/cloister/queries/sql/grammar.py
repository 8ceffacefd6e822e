"""The SQL that is understood: one SELECT whose clauses are all known, and the refusal of everything else.

A refusal says why a part of a query cannot be answered, and the nearest that can. The size of a query is limited as
text, and again as the SQL that it stands for: names stand for expressions, so that it can grow fast.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from cloister.data.engines.predicates import LONGEST, check_size, quote, shorten
from cloister.errors import ParameterError, ParameterTypeError, UnsafeQueryError

__all__ = [
    "Sizes",
    "check_clauses",
    "check_parts",
    "clause",
    "clause_refusal",
    "output_name",
    "output_refusal",
    "parse_select",
    "row_refusal",
]


_FUNCTIONS = (
    "use columns, literals, + - * /, comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL, LIKE, CASE, COALESCE, ABS, "
    "FLOOR, CEIL, ROUND, LEAST, GREATEST, MOD, LENGTH, SUBSTRING, YEAR, MONTH and DAY."
)
_AGGREGATES = (
    "use COUNT, SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, QUANTILE(x, 0.9), formulas over them, and GROUP BY."
)
_SUBQUERY = (
    "filters by other people's rows, so that one person could change many rows",
    "filter by columns, JOIN a public table, or JOIN a private table on the person.",
)
_REASONS: dict[str, tuple[str, str]] = {
    "Window": ("computes over the rows of others", "use the aggregate without OVER, with GROUP BY."),
    "Subquery": _SUBQUERY,
    "Select": _SUBQUERY,
    "Exists": _SUBQUERY,
    "Placeholder": ("is a parameter without a value", "write the value itself."),
    "Parameter": ("is a parameter without a value", "write the value itself."),
    "IntDiv": ("rounds differently on different databases", "write FLOOR(x / 10)."),
    "TryCast": ("depends on the database", "cast with CAST, or use ROUND, FLOOR or CEIL."),
    "Lower": ("folds letters differently on different databases", "list the spellings: x IN ('Yes', 'YES', 'yes')."),
    "Upper": ("folds letters differently on different databases", "list the spellings: x IN ('Yes', 'YES', 'yes')."),
    "ILike": ("folds letters differently on different databases", "use LIKE, or list the spellings with IN."),
    "Star": ("stands for all columns, which would show rows", "name columns in aggregates, or write COUNT(*)."),
    "Rand": ("is random", "cloister adds the noise; leave it out."),
}
_TIMES = ("CurrentDate", "CurrentTimestamp", "CurrentTime", "CurrentDatetime", "NOW", "TODAY")
_REASONS |= dict.fromkeys(
    _TIMES,
    ("means another thing tomorrow, so that the answer could not be told again", "write the date: '2026-01-31'."),
)
_IRRATIONAL = ("Sqrt", "Ln", "Log", "Exp", "Sin", "Cos", "Tan", "Cbrt")
_REASONS |= dict.fromkeys(
    _IRRATIONAL,
    (
        "is rounded differently on different databases",
        "bound the rows with CASE, or use + - * / and whole powers; SQRT and LN of an aggregate are fine.",
    ),
)
_REASONS |= {
    "Union": ("puts rows of several queries together", "ask each query on its own, or write one with CASE."),
    "Except": ("compares the rows of queries", "use a condition in WHERE."),
    "Intersect": ("compares the rows of queries", "use a condition in WHERE."),
}


def row_refusal(node: exp.Expression) -> UnsafeQueryError:
    """Return the error for a part of a row expression."""
    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
        return UnsafeQueryError(
            f"{quote(node)} is an aggregate, which one row does not have.",
            fix="put conditions on aggregates in HAVING, and do not put one aggregate inside another.",
        )
    return _refuse(node, _FUNCTIONS)


def check_parts(node: exp.Expression, known: set[str]) -> None:
    """Refuse a part of an output column that has more parts than those known."""
    if any(part for name, part in node.args.items() if name not in known):
        raise output_refusal(node)


def output_refusal(node: exp.Expression) -> UnsafeQueryError:
    """Return the error for a part of an output column."""
    return _refuse(node, _AGGREGATES)


def clause_refusal(node: exp.Expression, *, fix: str) -> UnsafeQueryError:
    """Return the error for a clause or statement."""
    return _refuse(node, fix)


def ungrouped_refusal(node: exp.Expression, table: str) -> UnsafeQueryError:
    """Return the error for a column that is neither aggregated nor grouped by."""
    name = node.sql(comments=False, copy=False)
    return UnsafeQueryError(
        f"{quote(node)} would show single rows.",
        fix=f"count each of its values, {counting_query(name, table)}, or aggregate it: AVG({name}).",
    )


def counting_query(names: str, table: str, *, grouped: bool = True) -> str:
    """Return a query that counts the rows of each value, for people to read."""
    grouping = ("GROUP BY", names) if grouped else ()
    return " ".join(("SELECT", f"{names},", "COUNT(*) AS n FROM", table, *grouping))


def _refuse(node: exp.Expression, fix: str) -> UnsafeQueryError:
    name = node.name.upper() if isinstance(node, exp.Anonymous) else type(node).__name__
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        name = "Subquery"
    reason, better = _REASONS.get(name, ("is not among what can be answered safely", fix))
    return UnsafeQueryError(f"{quote(node)} {reason}.", fix=better)


_DEEPEST_TEXT = 100
_EXAMPLE = "SELECT COUNT(*) AS n FROM data"
_CLAUSES = {"expressions", "from", "joins", "where", "group", "having", "order", "limit", "offset", "with", "distinct"}
_CLAUSE_FIXES = {
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
    return name or shorten(node.sql(comments=False, copy=False))


def check_clauses(select: exp.Select) -> None:
    """Refuse clauses that are not known."""
    for name, part in select.args.items():
        if part and name.rstrip("_") not in _CLAUSES:
            raise UnsafeQueryError(
                f"The query has a part ({name.replace('_', ' ').strip().upper()}) that cannot be answered safely.",
                fix=_CLAUSE_FIXES.get(name, f"leave it out, such as {_EXAMPLE}."),
            )


def _select(statement: exp.Expression) -> exp.Select:
    while type(statement) is exp.Subquery and not any(part for key, part in statement.args.items() if key != "this"):
        statement = statement.this
    if type(statement) is not exp.Select:
        raise clause_refusal(statement, fix=f"ask with SELECT, such as {_EXAMPLE}.")
    return statement


def _check_size(statement: exp.Expression) -> None:
    try:
        check_size(statement, deepest=_DEEPEST_TEXT)
    except ParameterError:
        raise _too_large() from None


def _too_large() -> ParameterError:
    return ParameterError(
        "The query is too long or too deeply nested.",
        fix=f"nest at most {_DEEPEST_TEXT} levels, write IN (...) for many values, or prepare a column in the source.",
    )


def _not_sql(text: str) -> ParameterError:
    return ParameterError(f"{shorten(repr(text))} is not a SQL query.", fix=f"write for example {_EXAMPLE}.")


_LARGEST, _DEEPEST = 200_000, 150


class Sizes:
    """Counts nodes, each shared part once for every place where it will be written."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[exp.Expression, int, int]] = {}

    def check(self, node: exp.Expression) -> None:
        """Refuse what is too large to be written out.

        Raises:
            UnsafeQueryError: if it is too large or too deep.
        """
        size, depth = self._measured(node)
        if size > _LARGEST or depth > _DEEPEST:
            raise UnsafeQueryError(
                "The expressions that names stand for make the query too large.",
                fix="use fewer nested expressions or values, or prepare a column in the source.",
            )

    def _measured(self, node: exp.Expression) -> tuple[int, int]:
        known = self._known.get(id(node))
        if known is not None:
            return known[1], known[2]
        parts = [self._measured(part) for part in node.iter_expressions()]
        size, depth = 1 + sum(size for size, _ in parts), 1 + max((depth for _, depth in parts), default=0)
        # The node itself is kept as well, so that its id cannot be given to another one.
        self._known[id(node)] = node, size, depth
        return size, depth
