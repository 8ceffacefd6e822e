"""From SQL to a question and its presentation.

Names are resolved against the catalog alone. Everything else of the text is taken apart and built anew; a part that
is not known is refused, and none is passed on to an engine.

A condition on the rows of one private table, as after WHERE, is compiled in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from cloister.data.engines.predicates import BROKEN, parse_condition, quote, shorten
from cloister.data.table import Table
from cloister.errors import CloisterError, ParameterError, UnsafeQueryError
from cloister.queries._question import QueryRows, Question
from cloister.queries.catalog import Catalog
from cloister.queries.sql import grammar
from cloister.queries.sql._formulas import Test
from cloister.queries.sql._from_clause import FromReader
from cloister.queries.sql._functions import FullResolver
from cloister.queries.sql._relations import NameScope, QueryRelation, private_relation
from cloister.queries.sql.aggregation import AggregateReader, Grouping, position
from cloister.queries.sql.grammar import Sizes, clause, output_name, parse_select
from cloister.queries.sql.presentation import OutputColumn, OutputResolver, Presentation, SortKey

__all__ = ["Compiled", "compile_condition", "compile_select", "compile_sql"]


_MOST_ROWS = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What a query asks, and how its answer is shown.

    Attributes:
        question: what is asked of the rows; it has a price.
        presentation: what is computed from the noisy answers; it is free.
        select: the query as it was parsed, for whoever looks at it besides.
        canonical: a text that is the same for queries with the same meaning.
    """

    question: Question
    presentation: Presentation
    select: exp.Select = field(compare=False, repr=False)

    @property
    def canonical(self) -> str:
        """Return a text that is the same for queries that differ in spelling or aliases only."""
        return f"{self.question.canonical()} || {self.presentation.canonical()}"


def compile_sql(text: str, catalog: Catalog) -> Compiled:
    """Return the question that a SQL query asks.

    Args:
        text: one SELECT with aggregates.
        catalog: the tables that it may name.

    Raises:
        UnsafeQueryError: if it cannot be answered safely, with the nearest query that can.
        UnknownColumnError: if it names a column that does not exist.
        MissingBoundsError: if it needs public bounds that are not stated.
        ParameterError: if it is not SQL.
    """
    return compile_select(parse_select(text), catalog)


def compile_select(select: exp.Select, catalog: Catalog) -> Compiled:
    """Return the question that a parsed query asks; raises as `compile_sql` does."""
    try:
        return _compile(select, catalog)
    except CloisterError:
        raise
    except (*BROKEN, ArithmeticError):
        raise ParameterError(
            "The query is an expression that cannot be understood.",
            fix="write a plain query, such as SELECT COUNT(*) AS n FROM data.",
        ) from None


def _compile(select: exp.Select, catalog: Catalog) -> Compiled:
    sources = FromReader(catalog, frozenset(node.name.lower() for node in select.find_all(exp.Identifier)))
    relation, scope = sources.read(select)
    if select.args.get("distinct"):
        raise _distinct(select)
    resolver = FullResolver(scope)
    nodes = [_strip_alias(node) for node in select.expressions]
    aliases = {node.alias.lower(): node.this for node in select.expressions if isinstance(node, exp.Alias)}
    grouping = Grouping(resolver, select.args.get("group"), nodes, aliases)
    outputs = OutputResolver(AggregateReader(resolver, relation), grouping, _table_name(select))
    formulas = [outputs.formula(node) for node in nodes]
    # Aliases become known only now: outputs may not name each other, HAVING and ORDER BY may name them all.
    outputs.with_aliases(aliases)
    presentation = Presentation(
        outputs=tuple(map(OutputColumn, _names(select.expressions), formulas)),
        having=_having(select, outputs),
        order=_order(select, nodes, outputs),
        limit=_count(select, "limit"),
        offset=_count(select, "offset") or 0,
    )
    if not outputs.aggregates:
        raise _no_aggregates(select)
    question = Question(rows=_rows(relation), aggregates=outputs.aggregates, keys=grouping.keys)
    _check_sizes(question, sources.sizes)
    return Compiled(question=question, presentation=presentation, select=select)


def _rows(relation: QueryRelation) -> QueryRows:
    return QueryRows(
        engine=relation.engine,
        source=relation.source,
        condition=relation.condition,
        person=relation.person,
        rows_per_person=relation.rows_per_person,
    )


def _strip_alias(node: exp.Expression) -> exp.Expression:
    inner = node.this if isinstance(node, exp.Alias) else node
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        raise grammar.output_refusal(inner.this if isinstance(inner, exp.Column) else inner)
    return inner


def _names(nodes: list[exp.Expression]) -> list[str]:
    """Return the names of the output columns, each once."""
    names: list[str] = []
    for node in nodes:
        name = output_name(node)
        number = 2
        unique = name
        while unique in names:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    return names


def _having(select: exp.Select, outputs: OutputResolver) -> Test | None:
    having = select.args.get("having")
    return None if having is None else outputs.test(having.this)


def _order(select: exp.Select, nodes: list[exp.Expression], outputs: OutputResolver) -> tuple[SortKey, ...]:
    order = select.args.get("order")
    if order is None:
        return ()
    if any(part for name, part in order.args.items() if name != "expressions"):
        raise grammar.clause_refusal(order, fix="order by columns, such as ORDER BY n DESC.")
    return tuple(_sort_key(node, nodes, outputs) for node in order.expressions)


def _sort_key(node: exp.Expression, nodes: list[exp.Expression], outputs: OutputResolver) -> SortKey:
    if type(node) is not exp.Ordered or any(
        part for name, part in node.args.items() if name not in ("this", "desc", "nulls_first")
    ):
        raise grammar.clause_refusal(node, fix="order by columns, such as ORDER BY n DESC.")
    inner = node.this
    if isinstance(inner, exp.Literal):
        inner = position(inner, nodes, clause="ORDER BY")
    elif isinstance(inner, exp.Column) and inner.args.get("table") is None:
        inner = outputs.aliases.get(inner.name.lower(), inner)
    descending, nulls_first = (bool(node.args.get(name)) for name in ("desc", "nulls_first"))
    return SortKey(outputs.formula(inner), descending, nulls_first)


def _count(select: exp.Select, name: str) -> int | None:
    part = select.args.get(name)
    if part is None:
        return None
    given = part.args.get("expression")
    plain = type(part) in (exp.Limit, exp.Offset) and isinstance(given, exp.Literal) and not given.is_string
    if not plain or not given.this.isdigit() or any(value for key, value in part.args.items() if key != "expression"):
        raise UnsafeQueryError(f"{name.upper()} is not a whole number.", fix=f"write for example {name.upper()} 10.")
    return min(int(given.this), _MOST_ROWS)


def _table_name(select: exp.Select) -> str:
    start = clause(select, "from")
    return shorten(start.this.sql(comments=False, copy=False)) if start is not None else "data"


def _distinct(select: exp.Select) -> UnsafeQueryError:
    names = ", ".join(node.sql(comments=False, copy=False) for node in map(_strip_alias, select.expressions))
    return UnsafeQueryError(
        "SELECT DISTINCT would show which values occur.",
        fix=f"count the rows of each value: {grammar.counting_query(names, _table_name(select))}.",
    )


def _no_aggregates(select: exp.Select) -> UnsafeQueryError:
    names = ", ".join(quote(node)[1:-1] for node in map(_strip_alias, select.expressions))
    grouped = select.args.get("group") is not None
    return UnsafeQueryError(
        "The query has no aggregate: it would show which rows or values there are.",
        fix=f"add one: {grammar.counting_query(names, _table_name(select), grouped=grouped)}.",
    )


def _check_sizes(question: Question, sizes: Sizes) -> None:
    for aggregate in question.aggregates:
        if aggregate.operand is not None:
            sizes.check(aggregate.operand)
    for key in question.keys:
        sizes.check(key.group)
    if question.rows.condition is not None:
        sizes.check(question.rows.condition)


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
        return FullResolver(NameScope({name: private_relation(table, person).columns})).truth(node)
    except CloisterError:
        raise
    except (*BROKEN, ArithmeticError):
        raise ParameterError(
            "where= is an expression that cannot be understood.", fix='write for example where="age > 50".'
        ) from None
