"""A condition on the rows of one private table, as after WHERE."""

from __future__ import annotations

from sqlglot import exp

from cloister.data.engines.predicates import BROKEN, parse_condition
from cloister.data.table import Table
from cloister.errors import CloisterError, ParameterError
from cloister.queries.sql.functions import FullResolver
from cloister.queries.sql.scope import Scope
from cloister.queries.sql.tables import private_relation

__all__ = ["compile_condition"]


def compile_condition(text: str, table: Table, *, name: str, person: str | None) -> exp.Expression:
    """Return a condition over a table's own columns.

    Args:
        text: the condition.
        table: the table; only the columns of its schema have names.
        name: what the query calls the table.
        person: the column that names the unit of privacy.

    Raises:
        UnknownColumnError: if it names a column that does not exist.
        ParameterError: if it is not a condition, or cannot be answered safely.
    """
    node = parse_condition(text)
    try:
        return FullResolver(Scope({name: private_relation(table, person).columns})).truth(node)
    except CloisterError:
        raise
    except (*BROKEN, ArithmeticError):
        raise ParameterError(
            "where= is an expression that cannot be understood.", fix='write for example where="age > 50".'
        ) from None
