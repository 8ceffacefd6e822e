"""Which columns exist for a subject, and what each may be used for.

A column that a policy hides is left out before a question is read, so it gives the same error, by the same way through
the code, as a column that does not exist. A column that is shown but may not be used in some way is refused by name.
Column rules shape use, they do not replace privacy: whoever may measure a column can learn much about its values, at
the price of the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from cloister.data.schema import Schema
from cloister.errors import ForbiddenError, UnknownColumnError
from cloister.hub.domain.column_rules import Use
from cloister.hub.domain.column_uses import ColumnUse, condition_uses, query_uses
from cloister.hub.domain.context import Constraints

__all__ = ["ColumnRights", "check_condition", "check_query", "restricted"]

_WORDS = {
    Use.VISIBLE: "see it",
    Use.FILTER: "select rows by it",
    Use.GROUP_BY: "group by it",
    Use.MEASURE: "measure it",
}


@dataclass(frozen=True, slots=True)
class ColumnRights:
    """The columns that exist for a subject, in the order of the table, with their uses."""

    uses: tuple[tuple[str, frozenset[Use]], ...]

    @classmethod
    def of(cls, constraints: Constraints, columns: Iterable[str]) -> ColumnRights:
        """Return what a decision grants of the columns of a table."""
        rules = constraints.columns
        visible = rules.visible(columns, purpose=constraints.purpose)
        return cls(tuple((name, rules.of(name).uses) for name in visible))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that exist for the subject."""
        return tuple(name for name, _ in self.uses)

    def check(self, column: str, use: Use) -> None:
        """Return nothing if a column may be used in some way, else raise.

        Raises:
            UnknownColumnError: if the column does not exist for the subject.
            ForbiddenError: if it may not be used in this way.
        """
        uses = dict(self.uses).get(column)
        if uses is None:
            raise UnknownColumnError(column, self.names)
        if use not in uses:
            allowed = " or ".join(_WORDS[item] for item in Use if item in uses)
            raise ForbiddenError(
                f'The policy does not let you use "{column}" in this way: you may not {_WORDS[use]}.',
                fix=f"only {allowed}, or ask the owner for more.",
            )


def restricted(schema: Schema, rights: ColumnRights) -> Schema:
    """Return a schema with only the columns that exist for a subject.

    Raises:
        ForbiddenError: if there are none.
    """
    hidden = set(schema.names) - set(rights.names)
    if len(hidden) == len(schema.names):
        raise ForbiddenError("The policy shows you no columns.", fix="ask the owner for access to columns.")
    return schema.without(*hidden) if hidden else schema


def check_query(sql: str, rights: Mapping[str, ColumnRights], *, public: Collection[str] = ()) -> None:
    """Return nothing if every column of a query is used as the policies of its tables allow, else raise.

    Run it after the query was compiled on an empty table with the restricted schema, which refuses all else.

    Args:
        sql: the query.
        rights: what is granted of each private table, by the name that the query uses.
        public: the names of public tables.

    Raises:
        UnknownColumnError: if a column does not exist for the subject.
        ForbiddenError: if one may not be used as the query does.
    """
    tables = {name: granted.names for name, granted in rights.items()}
    _check(query_uses(sql, tables, public=public), rights)


def check_condition(condition: str, rights: ColumnRights) -> None:
    """Return nothing if the columns of a condition on rows may be used to select rows, else raise.

    Raises:
        UnknownColumnError: if a column does not exist for the subject.
        ForbiddenError: if one may not be used in this way.
    """
    _check(condition_uses(condition, rights.names), {"": rights})


def _check(uses: Iterable[ColumnUse], rights: Mapping[str, ColumnRights]) -> None:
    for used in sorted(uses):
        rights[used.table].check(used.column, used.use)
