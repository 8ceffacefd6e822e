"""A view: the rows and columns of a table that a decision lets a subject use, without a copy.

Rows are selected before anything else is done with them, by a condition on each row alone. So a person who joins or
leaves changes the view by no more than the table, and every sensitivity stays what it was. What is public about the
size of the whole table is not public about a part of it: `View.is_whole` says whether it still applies.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from cloister.core.chain import digest
from cloister.data.engines.base import ARROW_TYPES, value
from cloister.data.engines.predicates import resolve_condition
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import CloisterError, PolicyError
from cloister.hub.domain.columns import ColumnRights, restricted
from cloister.hub.domain.context import Constraints
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.row_predicates import RowPredicate, bind_all

__all__ = ["View", "check_policy", "view_of"]


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
        return digest([self.rights.names, self.kept, [row.text for row in self.rows], self.attributes])

    def applied(self, table: Table) -> Table:
        """Return the rows and columns of a table that are in the view; the rows stay where they are.

        Raises:
            ForbiddenError: if no column is in the view.
            PolicyError: if the condition does not fit the table.
        """
        schema = None if table.schema is None else restricted(table.schema, self.rights)
        shown = [name for name in table.columns if name in self.rights.names or name == self.kept]
        if self.is_whole and len(shown) == len(table.columns):
            return table.with_schema(schema)
        engine = table.engine
        positions = {name: engine.names.index(name) for name in shown}
        query = exp.select(
            *(exp.alias_(value(engine, place), name, quoted=True) for name, place in positions.items())
        ).from_(engine.source())
        condition = bind_all(self.rows, dict(self.attributes))
        if condition is not None:
            query = query.where(_resolved(condition, table))
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


def _resolved(condition: exp.Expression, table: Table) -> exp.Expression:
    """Return a condition over the table; a failure names no column, which may be hidden from the one who asked."""
    try:
        return resolve_condition(condition, table.engine)
    except CloisterError:
        raise PolicyError(
            "The policy's condition on rows does not fit the table.", fix="ask the owner to correct the policy."
        ) from None
