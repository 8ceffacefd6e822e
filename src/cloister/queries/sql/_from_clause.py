"""FROM: tables of the catalog, and subqueries and CTEs that keep the unit of privacy.

A JOIN is with a public table whose join columns are unique, or with private rows of the same person. Neither lets a
person change rows that belong to others: a row meets at most one public row, and private rows meet only where the
person is the same. Both sides get names of their own; missing rows of a LEFT JOIN are missing in every column of the
right side, also in those that are computed.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from cloister.data.engines.predicates import OperandFamily, balance, find_name, quote, unknown_column
from cloister.data.values import StorageType
from cloister.errors import UnsafeQueryError
from cloister.queries.catalog import Catalog
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic
from cloister.queries.sql._functions import FullResolver
from cloister.queries.sql._person_subqueries import is_grouped, person_relation
from cloister.queries.sql._relations import (
    Columns,
    NameScope,
    PublicTable,
    QueryRelation,
    change_columns,
    no_table,
    private_relation,
)
from cloister.queries.sql._terms import Measured, Term
from cloister.queries.sql.grammar import Sizes, check_clauses, clause, output_name

__all__ = ["FromReader", "Joiner"]


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

    def __init__(self, relation: QueryRelation, scope: NameScope, *, number: int, person: str | None) -> None:
        self._relation = relation
        self._scope = scope
        self._prefix = f"j{number}_"
        self._person = person or "person"

    def join(self, node: exp.Join, alias: str, right: QueryRelation | PublicTable) -> tuple[QueryRelation, NameScope]:
        """Return the joined rows, and what may be named then."""
        is_left = _is_left(node)
        if not alias or alias in self._scope.tables:
            raise UnsafeQueryError(f"{quote(node)} has no name of its own.", fix="name each table with AS.")
        side = self._side(alias, right)
        inside = NameScope({**self._scope.tables, alias: side.columns})
        pairs, condition = self._condition(node, inside, side)
        self._check(pairs, right, node)
        columns = self._optional(side.columns) if is_left else side.columns
        shared = self._scope.shared | {name for name, _, is_using in pairs if is_using}
        scope = NameScope({**self._scope.tables, alias: columns}, shared=frozenset(shared))
        return self._joined(side, condition, right, is_left=is_left), scope

    def _side(self, alias: str, right: QueryRelation | PublicTable) -> _Side:
        # A constant beside the columns tells a row without a match from one whose values are missing.
        match = exp.alias_(fixed_arithmetic.whole(1), f"{self._prefix}match", quoted=True)
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
        return _Side(alias, source, (*physical, f"{self._prefix}match"), change_columns(columns, self._renamed))

    def _condition(
        self, node: exp.Join, scope: NameScope, side: _Side
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
        return pairs, balance(exp.And, tests)

    def _pair(self, node: Any, scope: NameScope, side: _Side) -> list[tuple[str, Term, bool]]:
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

    def _check(self, pairs: list[tuple[str, Term, bool]], right: QueryRelation | PublicTable, node: exp.Join) -> None:
        if isinstance(right, PublicTable):
            # Only an equality that no rounding can blur keeps a private row to a single public one.
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
                f"{quote(node)} joins tables of different databases.", fix="open both tables from one database."
            )
        if self._relation.person is None or right.person is None or not on_person:
            raise UnsafeQueryError(
                f"{quote(node)} does not join the rows of one person alone.",
                fix=_ON_PERSON.format(person=self._person)
                if self._relation.person is not None
                else "join public tables only: every row is protected by itself.",
            )

    def _joined(
        self, side: _Side, condition: exp.Expression, right: QueryRelation | PublicTable, *, is_left: bool
    ) -> QueryRelation:
        relation = self._relation
        physical = (*relation.physical, *side.physical)
        selected = [exp.column(name, quoted=True) for name in physical]
        query = exp.select(*selected, copy=False).from_(relation.source, copy=True)
        query = query.join(side.source, on=condition, join_type="LEFT" if is_left else "INNER", copy=False)
        source = query.subquery(exp.to_identifier(f"{self._prefix}rows", quoted=True), copy=False)
        rows = relation.rows_per_person
        # Several rows on the right multiply a person's rows, of which nothing is known from then on.
        if isinstance(right, QueryRelation) and right.rows_per_person != 1:
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
        matched = change_columns(columns, self._matched)
        return {name: _without_person(make) for name, make in matched.items()}

    def _matched(self, sql: exp.Expression) -> exp.Expression:
        """Return SQL that is missing where the right side has no row."""
        match = exp.EQ(this=exp.column(f"{self._prefix}match", quoted=True), expression=fixed_arithmetic.whole(1))
        return fixed_arithmetic.case([(match, sql)])


def _without_person(make: Callable[[], Term]) -> Callable[[], Term]:
    return lambda: replace(make(), is_person=False)


def _is_injective(left: Term, right: Term) -> bool:
    """Return whether one value of the left can equal at most one value of the right, without any rounding."""
    if right.family is not OperandFamily.NUMBER:
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
            f"{quote(node)} pairs rows in a way that cannot be answered safely.",
            fix="use JOIN or LEFT JOIN with ON and an equality, with a public table, or on the person.",
        )
    return side == "LEFT"


_TABLE = {"this", "alias"}


class FromReader:
    """Reads FROM clauses. Common table expressions are relations with a name."""

    def __init__(self, catalog: Catalog, mentioned: Set[str]) -> None:
        self._catalog = catalog
        self._mentioned = mentioned
        self.named: dict[str, QueryRelation] = {}
        self.sizes = Sizes()
        self.numbers = itertools.count(1)

    def read(self, select: exp.Select) -> tuple[QueryRelation, NameScope]:
        """Return the rows that a SELECT aggregates or projects, its WHERE applied, and what it may name."""
        check_clauses(select)
        inside = self._with_common(clause(select, "with"))
        relation, scope = inside.joined(select)
        where = select.args.get("where")
        if where is not None:
            condition = FullResolver(scope).truth(where.this)
            self.sizes.check(condition)
            relation = relation.where(condition)
        return relation, scope

    def joined(self, select: exp.Select) -> tuple[QueryRelation, NameScope]:
        """Return the tables of a FROM clause, joined."""
        start = clause(select, "from")
        if start is None:
            raise UnsafeQueryError("The query selects from no table.", fix="write for example FROM data.")
        alias, relation = self._source(start.this)
        if isinstance(relation, PublicTable):
            raise UnsafeQueryError(
                f'"{relation.name}" is public: it needs no protection, and has no rows to protect.',
                fix="read it directly; to join it, begin with the private table.",
            )
        scope = NameScope({alias: relation.columns})
        for join in select.args.get("joins") or ():
            other, right = self._source(join.this)
            joiner = Joiner(relation, scope, number=next(self.numbers), person=self._catalog.person)
            relation, scope = joiner.join(join, other, right)
        return relation, scope

    def _with_common(self, common: exp.Expression | None) -> FromReader:
        if common is None:
            return self
        if common.args.get("recursive"):
            raise UnsafeQueryError("A recursive query has no end that is public.", fix="leave out RECURSIVE.")
        # Common table expressions have names inside this query alone.
        inside = copy.copy(self)
        inside.named = dict(self.named)
        for part in common.expressions:
            _check(part, {"this", "alias"})
            inside.named[_alias(part)] = inside.query(part.this)
        return inside

    def _source(self, node: exp.Expression) -> tuple[str, QueryRelation | PublicTable]:
        """Return a table or subquery, and the name that the query gives it."""
        if type(node) is exp.Subquery:
            _check(node, _TABLE)
            return _alias(node), self.query(node.this)
        if type(node) is not exp.Table or not isinstance(node.this, exp.Identifier):
            raise UnsafeQueryError(f"{quote(node)} is not a table.", fix=self._fix())
        _check(node, _TABLE)
        name, relation = self._table(node)
        return _alias(node) or name, relation

    def _table(self, node: exp.Table) -> tuple[str, QueryRelation | PublicTable]:
        common = find_name(node.this, self.named)
        if common is not None:
            return common, self.named[common]
        name = find_name(node.this, self._catalog.private)
        if name is not None:
            return name, private_relation(self._catalog.private[name], self._catalog.person)
        name = find_name(node.this, self._catalog.public)
        if name is not None:
            return name, PublicTable.of(name, self._catalog.public[name], self._mentioned)
        raise no_table(node.name, [*self.named, *self._catalog.private, *self._catalog.public])

    def query(self, node: exp.Expression) -> QueryRelation:
        """Return the rows of a subquery: the same units of privacy, with other columns."""
        if type(node) is not exp.Select:
            raise UnsafeQueryError(f"{quote(node)} is not a SELECT.", fix="select rows from one table.")
        for name in ("order", "limit", "offset"):
            if node.args.get(name):
                raise UnsafeQueryError(
                    f"A subquery with {name.upper()} keeps rows that depend on the rows of others.",
                    fix=f"leave out {name.upper()}, or put it at the end of the whole query.",
                )
        relation, scope = self.read(node)
        if is_grouped(node):
            name = f"p{next(self.numbers)}_rows"
            return person_relation(node, relation, FullResolver(scope), name=name)
        return self._projected(node, relation, scope)

    def _projected(self, query: exp.Select, relation: QueryRelation, scope: NameScope) -> QueryRelation:
        resolver = FullResolver(scope)
        columns: dict[str, Callable[[], Term]] = {}
        for node in query.expressions:
            for name, make in self._outputs(node, resolver).items():
                if name in columns:
                    raise UnsafeQueryError(f'A subquery has two columns "{name}".', fix="name one of them with AS.")
                columns[name] = make
        return QueryRelation(
            engine=relation.engine,
            source=relation.source,
            physical=relation.physical,
            columns=columns,
            condition=relation.condition,
            person=relation.person,
            rows_per_person=relation.rows_per_person,
        )

    def _outputs(self, node: exp.Expression, resolver: FullResolver) -> Columns:
        if isinstance(node, exp.Star) and not any(node.args.values()):
            return {name: make for columns in resolver.scope.tables.values() for name, make in columns.items()}
        term = resolver.term(node.this if isinstance(node, exp.Alias) else node)
        self.sizes.check(term.sql)
        return {output_name(node): lambda: term}

    def _fix(self) -> str:
        return f"name a table ({', '.join(self._catalog.private)}), or put a subquery in parentheses."


def _alias(node: exp.Expression) -> str:
    """Return the name that a query gives a table."""
    alias = node.args.get("alias")
    if alias is None:
        return ""
    if not isinstance(alias, exp.TableAlias) or alias.args.get("columns"):
        raise UnsafeQueryError(f"{quote(node)} renames columns.", fix="rename them with AS in the SELECT.")
    return alias.name


def _check(node: exp.Expression, known: set[str]) -> None:
    if any(part for name, part in node.args.items() if name not in known):
        raise UnsafeQueryError(
            f"{quote(node)} is more than a table.", fix="name a table alone, without a schema, sample or pivot."
        )
