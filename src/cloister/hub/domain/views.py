"""A view: the rows and columns of a table that a decision lets a subject use, without a copy.

Rows are selected before anything else is done with them, by a condition on each row alone. So a person who joins or
leaves changes the view by no more than the table, and every sensitivity stays what it was. What is public about the
size of the whole table is not public about a part of it: `View.is_whole` says whether it still applies.

A column that a policy hides is left out before a question is read, so it gives the same error, by the same way through
the code, as a column that does not exist. A column that is shown but may not be used in some way is refused by name.
Column rules shape use, they do not replace privacy: whoever may measure a column can learn much about its values, at
the price of the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from cloister.core.digests import chain_digest
from cloister.data.engines.base import ARROW_TYPES, value
from cloister.data.engines.predicates import resolve_condition
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import CloisterError, ForbiddenError, PolicyError, UnknownColumnError
from cloister.hub.domain._column_uses import query_uses
from cloister.hub.domain._row_predicates import RowPredicate, bind_all
from cloister.hub.domain.decisions import Constraints
from cloister.hub.domain.policy import Policy, Use

__all__ = ["ColumnRights", "View", "check_policy", "check_query", "restrict_schema", "view_of"]


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


def restrict_schema(schema: Schema, rights: ColumnRights) -> Schema:
    """Return a schema with only the columns that exist for a subject.

    Raises:
        ForbiddenError: if there are none.
    """
    hidden = set(schema.names) - set(rights.names)
    if len(hidden) == len(schema.names):
        raise ForbiddenError("The policy shows you no columns.", fix="ask the owner for access to columns.")
    return schema.without(*hidden) if hidden else schema


def check_query(sql: str | exp.Select, rights: Mapping[str, ColumnRights], *, public: Collection[str] = ()) -> None:
    """Return nothing if every column of a query is used as the policies of its tables allow, else raise.

    Run it after the query was compiled on an empty table with the restricted schema, which refuses all else.

    Args:
        sql: the query, as text or parsed.
        rights: what is granted of each private table, by the name that the query uses.
        public: the names of public tables.

    Raises:
        UnknownColumnError: if a column does not exist for the subject.
        ForbiddenError: if one may not be used as the query does.
    """
    tables = {name: granted.names for name, granted in rights.items()}
    for used in sorted(query_uses(sql, tables, public=public)):
        rights[used.table].check(used.column, used.use)


@dataclass(frozen=True, slots=True)
class View:
    """What a subject may use of a table.

    Attributes:
        rights: the columns that exist for the subject, with their uses.
        kept: a column that stays in the table though the subject may not see it: the unit of privacy.
        rows: conditions that the rows fulfill, all of them.
        attributes: the attributes of the subject that the conditions need.
    """

    rights: ColumnRights
    kept: str | None = None
    rows: tuple[RowPredicate, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether all rows are in the view, so that what is public about their number holds."""
        return not self.rows

    @property
    def fingerprint(self) -> str:
        """Return a text that differs between views; it belongs into the key of every stored answer."""
        return chain_digest([self.rights.names, self.kept, [row.text for row in self.rows], self.attributes])

    def apply(self, table: Table) -> Table:
        """Return the rows and columns of a table that are in the view; the rows stay where they are.

        Raises:
            ForbiddenError: if no column is in the view.
            PolicyError: if the condition does not fit the table.
        """
        schema = None if table.schema is None else restrict_schema(table.schema, self.rights)
        shown = [name for name in table.columns if name in self.rights.names or name == self.kept]
        # The table itself is used where nothing is left out, which spares a query around every query.
        if self.is_whole and len(shown) == len(table.columns):
            return table.with_schema(schema)
        engine = table.engine
        positions = {name: engine.names.index(name) for name in shown}
        query = exp.select(
            *(exp.alias_(value(engine, place), name, quoted=True) for name, place in positions.items())
        ).from_(engine.source())
        condition = bind_all(self.rows, dict(self.attributes))
        if condition is not None:
            query = query.where(_resolve(condition, table))
        types = [(name, ARROW_TYPES[engine.types[place]]) for name, place in positions.items()]
        return Table(engine.derive(query, pa.schema(types), {}), schema=schema)


def view_of(constraints: Constraints, schema: Schema, *, unit: str | None = None) -> View:
    """Return the view that a decision grants.

    Args:
        constraints: those of the decision.
        schema: the schema of the whole table.
        unit: the column that names the unit of privacy, if it is not the row.
    """
    return View(
        rights=ColumnRights.of(constraints, schema.names),
        kept=unit,
        rows=constraints.rows,
        attributes=constraints.attributes,
    )


def check_policy(policy: Policy, table: Table) -> None:
    """Return nothing if a policy fits a table, which may be empty, else raise.

    Raises:
        PolicyError: if it names a column that the table does not have, or compares one with something of another type.
    """
    rules = [("columns", policy.columns), *((f'role "{role.name}": columns', role.columns) for role in policy.roles)]
    for place, columns in rules:
        unknown = [name for name, _ in columns.named if name not in table.columns]
        if unknown:
            raise PolicyError(
                f'{place}: the table has no column "{unknown[0]}".', fix=f"use its columns: {', '.join(table.columns)}."
            )
    rows = [("rows", policy.rows), *((f'role "{role.name}": rows', role.rows) for role in policy.roles)]
    for place, predicate in rows:
        if predicate is None:
            continue
        try:
            resolve_condition(predicate.bind(predicate.examples()), table.engine)
        except CloisterError as error:
            raise PolicyError(f"{place}: {error.problem}", fix=error.fix) from None


def _resolve(condition: exp.Expression, table: Table) -> exp.Expression:
    """Return a condition over the table; a failure names no column, which may be hidden from the one who asked."""
    try:
        return resolve_condition(condition, table.engine)
    except CloisterError:
        raise PolicyError(
            "The policy's condition on rows does not fit the table.", fix="ask the owner to correct the policy."
        ) from None
