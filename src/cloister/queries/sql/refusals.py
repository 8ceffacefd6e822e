"""Why a part of a query cannot be answered, and the nearest that can."""

from __future__ import annotations

from sqlglot import exp

from cloister.data.engines.predicates import quoted
from cloister.errors import UnsafeQueryError

__all__ = ["in_clause", "in_output", "in_row"]

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


def in_row(node: exp.Expression) -> UnsafeQueryError:
    """Return the error for a part of a row expression."""
    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
        return UnsafeQueryError(
            f"{quoted(node)} is an aggregate, which one row does not have.",
            fix="put conditions on aggregates in HAVING, and do not put one aggregate inside another.",
        )
    return _refused(node, _FUNCTIONS)


def in_output(node: exp.Expression) -> UnsafeQueryError:
    """Return the error for a part of an output column."""
    return _refused(node, _AGGREGATES)


def in_clause(node: exp.Expression, *, fix: str) -> UnsafeQueryError:
    """Return the error for a clause or statement."""
    return _refused(node, fix)


def not_grouped(node: exp.Expression, table: str) -> UnsafeQueryError:
    """Return the error for a column that is neither aggregated nor grouped by."""
    name = node.sql(comments=False, copy=False)
    return UnsafeQueryError(
        f"{quoted(node)} would show single rows.",
        fix=f"count each of its values, {counting(name, table)}, or aggregate it: AVG({name}).",
    )


def counting(names: str, table: str, *, grouped: bool = True) -> str:
    """Return a query that counts the rows of each value, for people to read."""
    grouping = ("GROUP BY", names) if grouped else ()
    return " ".join(("SELECT", f"{names},", "COUNT(*) AS n FROM", table, *grouping))


def _refused(node: exp.Expression, fix: str) -> UnsafeQueryError:
    name = node.name.upper() if isinstance(node, exp.Anonymous) else type(node).__name__
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        name = "Subquery"
    reason, better = _REASONS.get(name, ("is not among what can be answered safely", fix))
    return UnsafeQueryError(f"{quoted(node)} {reason}.", fix=better)
