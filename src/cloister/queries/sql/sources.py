"""FROM: tables of the catalog, and subqueries and CTEs that keep the unit of privacy."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Set

from sqlglot import exp

from cloister.data.engines.predicates import find_name, quoted
from cloister.errors import UnsafeQueryError
from cloister.queries.catalog import Catalog
from cloister.queries.sql.functions import FullResolver
from cloister.queries.sql.joins import Joiner
from cloister.queries.sql.parsing import check_clauses, clause, output_name
from cloister.queries.sql.persons import is_grouped, person_relation
from cloister.queries.sql.public import PublicTable
from cloister.queries.sql.scope import Columns, Relation, Scope, no_table
from cloister.queries.sql.size import Sizes
from cloister.queries.sql.tables import private_relation
from cloister.queries.sql.terms import Term

__all__ = ["Sources"]

_TABLE = {"this", "alias"}


class Sources:
    """Reads FROM clauses. Common table expressions are relations with a name."""

    def __init__(self, catalog: Catalog, mentioned: Set[str]) -> None:
        self._catalog = catalog
        self._mentioned = mentioned
        self.named: dict[str, Relation] = {}
        self.sizes = Sizes()
        self.numbers = itertools.count(1)

    def read(self, select: exp.Select) -> tuple[Relation, Scope]:
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

    def joined(self, select: exp.Select) -> tuple[Relation, Scope]:
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
        scope = Scope({alias: relation.columns})
        for join in select.args.get("joins") or ():
            other, right = self._source(join.this)
            joiner = Joiner(relation, scope, number=next(self.numbers), person=self._catalog.person)
            relation, scope = joiner.join(join, other, right)
        return relation, scope

    def _with_common(self, common: exp.Expression | None) -> Sources:
        if common is None:
            return self
        if common.args.get("recursive"):
            raise UnsafeQueryError("A recursive query has no end that is public.", fix="leave out RECURSIVE.")
        inside = copy.copy(self)
        inside.named = dict(self.named)
        for part in common.expressions:
            _check(part, {"this", "alias"})
            inside.named[_alias(part)] = inside.query(part.this)
        return inside

    def _source(self, node: exp.Expression) -> tuple[str, Relation | PublicTable]:
        """Return a table or subquery, and the name that the query gives it."""
        if type(node) is exp.Subquery:
            _check(node, _TABLE)
            return _alias(node), self.query(node.this)
        if type(node) is not exp.Table or not isinstance(node.this, exp.Identifier):
            raise UnsafeQueryError(f"{quoted(node)} is not a table.", fix=self._fix())
        _check(node, _TABLE)
        name, relation = self._table(node)
        return _alias(node) or name, relation

    def _table(self, node: exp.Table) -> tuple[str, Relation | PublicTable]:
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

    def query(self, node: exp.Expression) -> Relation:
        """Return the rows of a subquery: the same units of privacy, with other columns."""
        if type(node) is not exp.Select:
            raise UnsafeQueryError(f"{quoted(node)} is not a SELECT.", fix="select rows from one table.")
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

    def _projected(self, query: exp.Select, relation: Relation, scope: Scope) -> Relation:
        resolver = FullResolver(scope)
        columns: dict[str, Callable[[], Term]] = {}
        for node in query.expressions:
            for name, make in self._outputs(node, resolver).items():
                if name in columns:
                    raise UnsafeQueryError(f'A subquery has two columns "{name}".', fix="name one of them with AS.")
                columns[name] = make
        return Relation(
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
        raise UnsafeQueryError(f"{quoted(node)} renames columns.", fix="rename them with AS in the SELECT.")
    return alias.name


def _check(node: exp.Expression, known: set[str]) -> None:
    if any(part for name, part in node.args.items() if name not in known):
        raise UnsafeQueryError(
            f"{quoted(node)} is more than a table.", fix="name a table alone, without a schema, sample or pivot."
        )
