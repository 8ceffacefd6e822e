"""How a query uses the columns of its tables: to select rows, to form groups, or to be measured.

Names are followed through subqueries, common table expressions and aliases to the columns that they are computed from,
so that renaming a column does not free it. A column in a condition, wherever the condition stands, selects rows; also
inside of an aggregate, CASE or FILTER. In a group, a condition needs both. What is done to answers after the noise
(HAVING and ORDER BY of the whole query) uses columns only through the aggregates in it.

The query is expected to have been compiled before, by `cloister.queries.sql`, which refuses what is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from sqlglot import exp

from cloister.core.wordings import a_or_an
from cloister.data.engines.predicates import find_name
from cloister.errors import UnknownColumnError, UnsafeQueryError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Use
from cloister.queries.sql.aggregation import is_aggregate
from cloister.queries.sql.grammar import clause, output_name, parse_select
from cloister.queries.sql.row_expressions import function_name

__all__ = ["ColumnUse", "query_operation", "query_uses"]


class ColumnUse(NamedTuple):
    """A column of a table, and one way in which a query uses it."""

    table: str
    column: str
    use: Use


Bases: TypeAlias = frozenset[tuple[str, str]]
RelationColumns: TypeAlias = Mapping[str, Bases]
Scope: TypeAlias = Mapping[str, RelationColumns | None]
"""What stands in a FROM clause, by alias. The columns of public tables are not known: None."""
_NOTHING: Bases = frozenset()
_FILTER = frozenset({Use.FILTER})
_GROUP = frozenset({Use.GROUP_BY})
CONDITIONS = (exp.Predicate, exp.Connector, exp.Not)
"""What is true or false of a row: a column inside of it selects rows. A test compares it with what queries accept."""
_COUNTS = {"Count", "CountIf", "COUNT_IF"}


def query_uses(
    sql: str | exp.Select, tables: Mapping[str, Iterable[str]], *, public: Collection[str] = ()
) -> frozenset[ColumnUse]:
    """Return every use of the columns of private tables in a query.

    Args:
        sql: one SELECT, as text or parsed.
        tables: the columns of each private table.
        public: the names of public tables, whose columns anybody may use.

    Raises:
        UnknownColumnError: if a name stands for no column.
        UnsafeQueryError: if a part of the query cannot be followed.
    """
    private = {name: {column: frozenset({(name, column)}) for column in columns} for name, columns in tables.items()}
    reading = _UseCollector(private, frozenset(public), set())
    reading.select(parse_select(sql) if isinstance(sql, str) else sql, {}, is_whole=True)
    return frozenset(reading.uses)


def query_operation(sql: str) -> PolicyOperation:
    """Return whether a query only counts rows, or aggregates values too."""
    select = parse_select(sql)
    aggregates: list[Any] = [node for node in select.walk() if is_aggregate(node) and not isinstance(node, exp.Filter)]
    # Counting different values looks at the values, and not at rows alone.
    plain = all(function_name(node) in _COUNTS and node.find(exp.Distinct) is None for node in aggregates)
    return PolicyOperation.QUERY_COUNT if plain else PolicyOperation.QUERY_AGGREGATE


@dataclass(slots=True)
class _UseCollector:
    """Walks through one query and notes the uses."""

    private: Mapping[str, RelationColumns]
    public: frozenset[str]
    uses: set[ColumnUse]

    # Clauses ---------------------------------------------------------------------------------------------------------

    def select(self, node: Any, named: Mapping[str, RelationColumns], *, is_whole: bool = False) -> RelationColumns:
        """Note the uses of a SELECT and return what its output columns are computed from."""
        if type(node) is not exp.Select:
            raise _unknown(node)
        common = dict(named)
        for part in getattr(clause(node, "with"), "expressions", ()):
            common[part.alias] = self.select(part.this, common)
        scope = self._scope(node, common)
        self._rows(node, scope)
        self._groups(node, scope)
        if is_whole:
            self._note_answers(node, scope)
            return {}
        having = node.args.get("having")
        if having is not None:
            self.value(having.this, scope, _FILTER)
        return self._outputs(node, scope, _GROUP if node.args.get("distinct") else frozenset())

    def _scope(self, node: exp.Select, common: Mapping[str, RelationColumns]) -> Scope:
        scope: dict[str, RelationColumns | None] = {}
        start = clause(node, "from")
        sources = [] if start is None else [start.this]
        for source in (*sources, *(join.this for join in node.args.get("joins") or ())):
            if isinstance(source, exp.Subquery):
                scope[source.alias] = self.select(source.this, common)
            elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                scope[source.alias or source.name] = self._table(source.this, common)
            else:
                raise _unknown(source)
        return scope

    def _table(self, name: exp.Identifier, common: Mapping[str, RelationColumns]) -> RelationColumns | None:
        for tables in (common, self.private):
            found = find_name(name, tables)
            if found is not None:
                return tables[found]
        if find_name(name, self.public) is not None:
            return None
        raise UnsafeQueryError(
            f'There is no table "{name.name}".', fix=f"select from one of {', '.join((*common, *self.private))}."
        )

    def _rows(self, node: exp.Select, scope: Scope) -> None:
        if node.args.get("where") is not None:
            self.value(node.args["where"].this, scope, _FILTER)
        for join in node.args.get("joins") or ():
            if join.args.get("on") is not None:
                self.value(join.args["on"], scope, _FILTER)
            for identifier in join.args.get("using") or ():
                self.value(exp.Column(this=identifier.copy()), scope, _FILTER)

    def _groups(self, node: exp.Select, scope: Scope) -> None:
        """Note what groups are formed by; a position or the alias of an output column stands for its expression."""
        outputs = [item.this if isinstance(item, exp.Alias) else item for item in node.expressions]
        aliases = {item.alias.lower(): item.this for item in node.expressions if isinstance(item, exp.Alias)}
        for item in getattr(node.args.get("group"), "expressions", ()):
            key = item.unnest()
            if isinstance(key, exp.Literal) and key.this.isdigit() and 1 <= int(key.this) <= len(outputs):
                key = outputs[int(key.this) - 1]
            # A column goes before an alias of the same name: what is noted must be what the database groups by.
            elif isinstance(key, exp.Column) and not key.table and self._bases(key, scope) is None:
                key = aliases.get(key.name.lower(), key)
            self.value(key, scope, _GROUP)

    def _outputs(self, node: exp.Select, scope: Scope, uses: frozenset[Use]) -> RelationColumns:
        relation: dict[str, Bases] = {}
        for item in node.expressions:
            if isinstance(item, exp.Star):
                for columns in scope.values():
                    relation.update(columns or {})
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            relation[output_name(item)] = self.value(inner, scope, uses)
        return relation

    def _note_answers(self, node: exp.Select, scope: Scope) -> None:
        """Note what the answers use: columns in aggregates; the others are keys of groups, noted there."""
        for part in (*node.expressions, node.args.get("having"), node.args.get("order")):
            if part is not None:
                for inner in part.walk(prune=is_aggregate):
                    if is_aggregate(inner):
                        self.value(inner, scope, frozenset())

    # Expressions -----------------------------------------------------------------------------------------------------

    def value(self, node: Any, scope: Scope, uses: frozenset[Use]) -> Bases:
        """Note the uses of an expression that is itself used in some ways; return what it is computed from."""
        if isinstance(node, exp.Column):
            return self._column(node, scope, uses)
        if isinstance(node, exp.Query | exp.Subquery | exp.Window):
            raise _unknown(node)
        if isinstance(node, exp.Filter):
            self.value(node.expression.this, scope, _FILTER)
            return self.value(node.this, scope, uses)
        if is_aggregate(node):
            inside = _FILTER if function_name(node) in ("CountIf", "COUNT_IF") else frozenset({Use.MEASURE})
            return self._parts(node, scope, inside | uses)
        if isinstance(node, exp.Case | exp.If):
            return self._branches(node, scope, uses)
        if isinstance(node, exp.And | exp.Or):
            # Long chains are taken flat, as recursion would end at about a thousand conditions.
            return _NOTHING.union(
                *(self.value(part, scope, _turn_measure_into_filter(uses)) for part in node.flatten())
            )
        return self._parts(node, scope, _turn_measure_into_filter(uses) if isinstance(node, CONDITIONS) else uses)

    def _parts(self, node: Any, scope: Scope, uses: frozenset[Use]) -> Bases:
        return _NOTHING.union(*(self.value(part, scope, uses) for part in node.iter_expressions()))

    def _branches(self, node: exp.Case | exp.If, scope: Scope, uses: frozenset[Use]) -> Bases:
        """Note what a choice uses: what is tested selects rows, what is chosen is used as the choice is."""
        found = _NOTHING if node.this is None else self.value(node.this, scope, _turn_measure_into_filter(uses))
        for name in ("ifs", "true", "false", "default"):
            parts = node.args.get(name) or ()
            for part in parts if isinstance(parts, list | tuple) else (parts,):
                found |= self.value(part, scope, uses)
        return found

    def _column(self, node: exp.Column, scope: Scope, uses: frozenset[Use]) -> Bases:
        found = self._bases(node, scope)
        if found is None:
            names = [name for columns in scope.values() for name in columns or ()]
            raise UnknownColumnError(node.name, names)
        self.uses |= {ColumnUse(table, column, use) for table, column in found for use in uses}
        return found

    def _bases(self, node: exp.Column, scope: Scope) -> Bases | None:
        """Return what a name is computed from; None if it is no name here."""
        if not isinstance(node.this, exp.Identifier):
            raise _unknown(node)
        qualifier = node.args.get("table")
        aliases = list(scope) if qualifier is None else [find_name(qualifier, scope)]
        relations = [scope[alias] for alias in aliases if alias is not None]
        private = [columns for columns in relations if columns is not None]
        exactly = [columns[node.name] for columns in private if node.name in columns]
        near = [columns[name] for columns in private if (name := find_name(node.this, columns)) is not None]
        found = exactly or near
        if found:
            return _NOTHING.union(*found)
        # A name that no private table has may be one of a public table, whose columns are not known here.
        return _NOTHING if len(private) < len(relations) else None


def _turn_measure_into_filter(uses: frozenset[Use]) -> frozenset[Use]:
    """Return the uses of what a condition tests inside of an expression: to select rows, in place of being measured."""
    return (uses - {Use.MEASURE}) | _FILTER


def _unknown(node: Any) -> UnsafeQueryError:
    return UnsafeQueryError(
        f"The use of columns in {a_or_an(type(node).__name__.lower())} cannot be followed.",
        fix="write a plain query, such as SELECT COUNT(*) AS n FROM data.",
    )
