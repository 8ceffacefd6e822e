"""JOIN: with a public table whose join columns are unique, or with private rows of the same person.

Neither lets a person change rows that belong to others: a row meets at most one public row, and private rows meet only
where the person is the same. Both sides get names of their own; missing rows of a LEFT JOIN are missing in every
column of the right side, also in those that are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from cloister.data.engines.predicates import Family, balanced, find_name, quoted, unknown_column
from cloister.data.profile import StorageType
from cloister.errors import UnsafeQueryError
from cloister.queries.sql import fixed
from cloister.queries.sql.functions import FullResolver
from cloister.queries.sql.public import PublicTable
from cloister.queries.sql.scope import Columns, Relation, Scope, changed
from cloister.queries.sql.terms import Measured, Term

__all__ = ["Joiner"]

_ARGUMENTS = {"this", "on", "using", "side", "kind"}
_ON_PERSON = "join private tables ON the person, such as ON a.{person} = b.{person}."


@dataclass(frozen=True, slots=True)
class _Side:
    """The right side of a join, with names behind a prefix."""

    alias: str
    source: exp.Expression
    physical: tuple[str, ...]
    columns: Columns


class Joiner:
    """Joins one more table to the rows so far."""

    def __init__(self, relation: Relation, scope: Scope, *, number: int, person: str | None) -> None:
        self._relation = relation
        self._scope = scope
        self._prefix = f"j{number}_"
        self._person = person or "person"

    def join(self, node: exp.Join, alias: str, right: Relation | PublicTable) -> tuple[Relation, Scope]:
        """Return the joined rows, and what may be named then."""
        is_left = _is_left(node)
        if not alias or alias in self._scope.tables:
            raise UnsafeQueryError(f"{quoted(node)} has no name of its own.", fix="name each table with AS.")
        side = self._side(alias, right)
        inside = Scope({**self._scope.tables, alias: side.columns})
        pairs, condition = self._condition(node, inside, side)
        self._check(pairs, right, node)
        columns = self._optional(side.columns) if is_left else side.columns
        shared = self._scope.shared | {name for name, _, is_using in pairs if is_using}
        scope = Scope({**self._scope.tables, alias: columns}, shared=frozenset(shared))
        return self._joined(side, condition, right, is_left=is_left), scope

    def _side(self, alias: str, right: Relation | PublicTable) -> _Side:
        match = exp.alias_(fixed.whole(1), f"{self._prefix}match", quoted=True)
        if isinstance(right, PublicTable):
            query = right.source(self._prefix).select(match, copy=False)
            physical = tuple(f"{self._prefix}c{place}" for place in range(len(right.values)))
            columns: Columns = right.columns()
        else:
            physical = tuple(f"{self._prefix}{name}" for name in right.physical)
            renamed = [
                exp.alias_(exp.column(old, quoted=True), new, quoted=True)
                for old, new in zip(right.physical, physical, strict=True)
            ]
            query = exp.select(*renamed, match).from_(right.source)
            query = query if right.condition is None else query.where(right.condition)
            columns = right.columns
        source = query.subquery(exp.to_identifier(f"{self._prefix}side", quoted=True), copy=False)
        return _Side(alias, source, (*physical, f"{self._prefix}match"), changed(columns, self._renamed))

    def _condition(
        self, node: exp.Join, scope: Scope, side: _Side
    ) -> tuple[list[tuple[str, Term, bool]], exp.Expression]:
        """Return the columns of the right side that equal something of the left, and the whole condition."""
        resolver = FullResolver(scope)
        if node.args.get("using"):
            return self._using(node.args["using"], resolver, side)
        on = node.args["on"]
        members = list(on.flatten()) if isinstance(on, exp.And) else [on]
        pairs = [pair for member in members for pair in self._pair(member, scope, side)]
        return pairs, resolver.truth(on)

    def _using(
        self, names: list[Any], resolver: FullResolver, side: _Side
    ) -> tuple[list[tuple[str, Term, bool]], exp.Expression]:
        pairs, tests = [], []
        for identifier in names:
            column = exp.Column(this=identifier)
            name = find_name(identifier, side.columns)
            if name is None:
                raise unknown_column(column, side.columns)
            left = self._scope.find(column)
            tests.append(resolver.compare(exp.EQ, left, side.columns[name](), column))
            pairs.append((name, left, True))
        return pairs, balanced(exp.And, tests)

    def _pair(self, node: Any, scope: Scope, side: _Side) -> list[tuple[str, Term, bool]]:
        while type(node) is exp.Paren:
            node = node.this
        if type(node) is not exp.EQ:
            return []
        for right, left in ((node.this, node.expression), (node.expression, node.this)):
            place = scope.place(right)
            if place is None or place[0] != side.alias:
                continue
            others = [scope.place(column) for column in left.find_all(exp.Column)]
            if others and all(other is not None and other[0] != side.alias for other in others):
                return [(place[1], FullResolver(scope).term(left), False)]
        return []

    def _check(self, pairs: list[tuple[str, Term, bool]], right: Relation | PublicTable, node: exp.Join) -> None:
        if isinstance(right, PublicTable):
            names = [name for name, left, _ in pairs if _is_injective(left, right.columns()[name]())]
            if not names or not right.is_unique(names):
                raise UnsafeQueryError(
                    f'The public table "{right.name}" may have several rows for one private row.',
                    fix="join it ON equality with columns that have a different value in each of its rows.",
                )
            return
        on_person = any(_is_same_person(left, right.columns[name]()) for name, left, _ in pairs)
        if type(right.engine) is not type(self._relation.engine):
            raise UnsafeQueryError(
                f"{quoted(node)} joins tables of different databases.", fix="open both tables from one database."
            )
        if self._relation.person is None or right.person is None or not on_person:
            raise UnsafeQueryError(
                f"{quoted(node)} does not join the rows of one person alone.",
                fix=_ON_PERSON.format(person=self._person)
                if self._relation.person is not None
                else "join public tables only: every row is protected by itself.",
            )

    def _joined(
        self, side: _Side, condition: exp.Expression, right: Relation | PublicTable, *, is_left: bool
    ) -> Relation:
        relation = self._relation
        physical = (*relation.physical, *side.physical)
        selected = [exp.column(name, quoted=True) for name in physical]
        query = exp.select(*selected, copy=False).from_(relation.source, copy=True)
        query = query.join(side.source, on=condition, join_type="LEFT" if is_left else "INNER", copy=False)
        source = query.subquery(exp.to_identifier(f"{self._prefix}rows", quoted=True), copy=False)
        rows = relation.rows_per_person
        if isinstance(right, Relation) and right.rows_per_person != 1:
            rows = None
        return replace(relation, source=source, physical=physical, rows_per_person=rows)

    def _renamed(self, sql: exp.Expression) -> exp.Expression:
        """Return SQL of the right side over its names behind the prefix."""
        renamed: exp.Expression = sql.transform(self._prefixed)
        return renamed

    def _prefixed(self, node: Any) -> Any:
        if isinstance(node, exp.Column):
            return exp.column(f"{self._prefix}{node.name}", quoted=True)
        return node

    def _optional(self, columns: Columns) -> Columns:
        """Return columns that are missing where there is no match: they name the person of some rows only."""
        matched = changed(columns, self._matched)
        return {name: _without_person(make) for name, make in matched.items()}

    def _matched(self, sql: exp.Expression) -> exp.Expression:
        """Return SQL that is missing where the right side has no row."""
        match = exp.EQ(this=exp.column(f"{self._prefix}match", quoted=True), expression=fixed.whole(1))
        return fixed.case([(match, sql)])


def _without_person(make: Callable[[], Term]) -> Callable[[], Term]:
    return lambda: replace(make(), is_person=False)


def _is_injective(left: Term, right: Term) -> bool:
    """Return whether one value of the left can equal at most one value of the right, without any rounding."""
    if right.family is not Family.NUMBER:
        return left.family is right.family
    if right.storage is StorageType.INTEGER:
        return left.storage is StorageType.INTEGER
    return isinstance(left.numeric, Measured) and left.numeric.is_plain


def _is_same_person(left: Term, right: Term) -> bool:
    return left.is_person and right.is_person and left.storage is right.storage


def _is_left(node: exp.Join) -> bool:
    """Return whether a join keeps rows without a match.

    Raises:
        UnsafeQueryError: if it is neither an inner nor a left join with a condition.
    """
    side, kind = (str(node.args.get(name) or "").upper() for name in ("side", "kind"))
    known = (side, kind) in (("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER"))
    has_condition = bool(node.args.get("on")) != bool(node.args.get("using"))
    if not known or not has_condition or any(part for name, part in node.args.items() if name not in _ARGUMENTS):
        raise UnsafeQueryError(
            f"{quoted(node)} pairs rows in a way that cannot be answered safely.",
            fix="use JOIN or LEFT JOIN with ON and an equality, with a public table, or on the person.",
        )
    return side == "LEFT"
