"""Subqueries that aggregate the rows of each person: they keep the unit of privacy.

``SELECT patient_id, COUNT(*) AS visits FROM data GROUP BY patient_id`` gives one row for each person; with more
columns after GROUP BY, some rows for each person. What is computed inside is exact: it is a value of one person, that
the outer query clamps to public limits before it aggregates over persons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from cloister.data.engines.predicates import quote
from cloister.data.values import StorageType
from cloister.errors import CloisterError, UnsafeQueryError
from cloister.queries._question import FixedPointNumber
from cloister.queries.sql import _fixed_arithmetic as fixed_arithmetic, grammar
from cloister.queries.sql._functions import FullResolver
from cloister.queries.sql._relations import Columns, QueryRelation, conjunction
from cloister.queries.sql._terms import Measured, Term, term_of_stored, term_of_value
from cloister.queries.sql.aggregation import Grouping, is_aggregate
from cloister.queries.sql.grammar import output_name
from cloister.queries.sql.row_expressions import function_name

__all__ = ["is_grouped", "person_relation"]

_ROWS = 33
"""Sums are planned for up to 2**33 rows of one person."""
_LARGEST_SUMMED = fixed_arithmetic.LARGEST >> _ROWS
_FINEST_MEAN = 2**10


def is_grouped(select: exp.Select) -> bool:
    """Return whether a subquery groups or aggregates its rows."""
    if select.args.get("group") or select.args.get("having") or select.args.get("distinct"):
        return True
    return any(is_aggregate(part) for node in select.expressions for part in node.walk())


def person_relation(select: exp.Select, relation: QueryRelation, resolver: FullResolver, *, name: str) -> QueryRelation:
    """Return the rows of a subquery that groups by person.

    Args:
        select: the subquery.
        relation: the rows that it groups.
        resolver: for the names in it.
        name: the alias of the subquery, unique in the query.
    """
    inside = _PersonResolver(select, relation, resolver)
    columns = inside.columns(select.expressions)
    having = select.args.get("having")
    condition = None if having is None else inside.truth(having.this)
    return QueryRelation(
        engine=relation.engine,
        source=inside.source(name),
        physical=inside.physical,
        columns=columns,
        condition=condition,
        person=exp.column(inside.person, quoted=True),
        rows_per_person=1 if inside.is_one_each else None,
    )


class _PersonResolver(FullResolver):
    """Resolves expressions over the keys and the aggregates of a subquery that groups by person."""

    def __init__(self, select: exp.Select, relation: QueryRelation, rows: FullResolver) -> None:
        super().__init__(rows.scope)
        self._rows = rows
        self._relation = relation
        self._nodes, self._keys = self._grouped(select)
        self._selected: list[exp.Expression] = [term.settle_limits().sql for term in self._keys]
        self._aggregates: dict[str, Term] = {}
        position = next((place for place, term in enumerate(self._keys) if term.is_person), None)
        if relation.person is None or position is None:
            raise _mixes(relation)
        self.person = f"a{position}"
        self.is_one_each = all(term.is_person for term in self._keys)
        self._texts = {term.settled_text: place for place, term in enumerate(self._keys)}

    @property
    def physical(self) -> tuple[str, ...]:
        """Return the names of what the subquery selects."""
        return tuple(f"a{place}" for place in range(len(self._selected)))

    def source(self, name: str) -> exp.Expression:
        """Return the subquery; rows without a person are nobody's."""
        known = exp.Not(this=exp.Is(this=self._relation.person, expression=exp.Null()))
        selected = [exp.alias_(sql, name, quoted=True) for sql, name in zip(self._selected, self.physical, strict=True)]
        query = exp.select(*selected).from_(self._relation.source)
        query = query.where(conjunction(self._relation.condition, known))
        keys = [self._selected[place] for place in range(len(self._keys))]
        return query.group_by(*keys).subquery(exp.to_identifier(name, quoted=True))

    def columns(self, nodes: Sequence[exp.Expression]) -> Columns:
        """Return the columns that the outer query may name."""
        columns: dict[str, Callable[[], Term]] = {}
        for node in nodes:
            term = self.term(node.this if isinstance(node, exp.Alias) else node)
            name = output_name(node)
            if name in columns:
                raise UnsafeQueryError(f'A subquery has two columns "{name}".', fix="name one of them with AS.")
            columns[name] = _always(term)
        return columns

    def term(self, node: exp.Expression) -> Term:
        """Return a key, an aggregate, or an expression over them."""
        while type(node) is exp.Paren:
            node = node.this
        if is_aggregate(node):
            return self._aggregate(node)
        key = self._key(node)
        if key is not None:
            return key
        if type(node) is exp.Column:
            self.scope.find(node)
            raise UnsafeQueryError(
                f"{quote(node)} is neither grouped by nor aggregated.",
                fix=f"aggregate it, such as MAX({node.name}), or add it after GROUP BY.",
            )
        return super().term(node)

    def _grouped(self, select: exp.Select) -> tuple[list[exp.Expression], list[Term]]:
        outputs = [node.this if isinstance(node, exp.Alias) else node for node in select.expressions]
        if select.args.get("distinct"):
            if any(select.args["distinct"].args.values()) or select.args.get("group"):
                raise grammar.clause_refusal(select.args["distinct"], fix="use GROUP BY with the person.")
            return outputs, [self._rows.term(node) for node in outputs]
        aliases = {node.alias.lower(): node.this for node in select.expressions if isinstance(node, exp.Alias)}
        grouping = Grouping(self._rows, select.args.get("group"), outputs, aliases, allow_person=True)
        return grouping.nodes, grouping.terms

    def _key(self, node: exp.Expression) -> Term | None:
        if node.find(exp.Column) is None or any(is_aggregate(part) for part in node.walk()):
            return None
        try:
            place = self._texts.get(self._rows.term(node).settled_text)
        except CloisterError:
            return None
        return None if place is None else self._keys[place].settle_limits().export(f"a{place}")

    def _aggregate(self, node: exp.Expression) -> Term:
        text = node.sql(comments=False, copy=False)
        if text not in self._aggregates:
            condition = None
            inner = node
            if isinstance(node, exp.Filter):
                condition = self._rows.truth(node.expression.this)
                inner = node.this
            self._aggregates[text] = self._computed(inner, condition, text)
        return self._aggregates[text]

    def _computed(self, node: exp.Expression, condition: exp.Expression | None, label: str) -> Term:
        name = function_name(node)
        if name == "Count":
            return self._count(node, condition, label)
        argument = node.this
        more = any(part for key, part in node.args.items() if key != "this")
        if name not in ("Sum", "Avg", "Min", "Max") or more or isinstance(argument, exp.Distinct):
            raise UnsafeQueryError(
                f"{quote(node)} is not computed for each person.", fix="use COUNT, SUM, AVG, MIN or MAX in a subquery."
            )
        number = fixed_arithmetic.as_number(self._rows.term(argument).value, label=label)
        steps = number.steps if condition is None else fixed_arithmetic.case([(condition, number.steps)])
        if name in ("Min", "Max"):
            function = exp.Min if name == "Min" else exp.Max
            return term_of_value(replace(number, steps=self._select(function(this=steps))), label)
        _check_summable(number, node)
        return self._sum(number, steps, label) if name == "Sum" else self._mean(number, steps, label)

    def _count(self, node: exp.Expression, condition: exp.Expression | None, label: str) -> Term:
        counted = node.this
        if any(part for key, part in node.args.items() if key not in ("this", "big_int")) or counted is None:
            raise grammar.output_refusal(node)
        low = 0
        if isinstance(counted, exp.Distinct) and len(counted.expressions) == 1:
            sql = self._rows.term(counted.expressions[0]).settle_limits().sql
            sql = sql if condition is None else fixed_arithmetic.case([(condition, sql)])
            made: exp.Expression = exp.Count(this=exp.Distinct(expressions=[sql]))
        elif isinstance(counted, exp.Star | exp.Literal):
            made = exp.Count(
                this=exp.Star()
                if condition is None
                else fixed_arithmetic.case([(condition, fixed_arithmetic.whole(1))])
            )
            # A group is there because of a row in it, so that COUNT(*) is at least 1.
            low = 1 if condition is None else 0
        else:
            sql = self._rows.term(counted).sql
            made = exp.Count(this=sql if condition is None else fixed_arithmetic.case([(condition, sql)]))
        return self._unlimited(fixed_arithmetic.bigint(made), label, Fraction(low))

    def _sum(self, number: FixedPointNumber, steps: exp.Expression, label: str) -> Term:
        """Return a sum, which has no public limits but the sign."""
        column = self._select(fixed_arithmetic.bigint(exp.Sum(this=steps)))
        low = Fraction(0) if number.low >= 0 else None
        high = Fraction(0) if number.high <= 0 else None
        return self._open(column, label, low, high, unit=number.unit)

    def _mean(self, number: FixedPointNumber, steps: exp.Expression, label: str) -> Term:
        """Return a mean within the limits of its numbers, rounded to a small part of a step."""
        # As fine as can be without letting a sum over a person's rows pass the limit.
        finer = _FINEST_MEAN
        while finer > 1 and (number.high - number.low) * finer >= _LARGEST_SUMMED:
            finer //= 2
        # From the lower limit on nothing is negative, so that whole division rounds alike on every engine.
        shifted = exp.Sub(this=fixed_arithmetic.parenthesize(steps), expression=fixed_arithmetic.whole(number.low))
        total = exp.Mul(this=fixed_arithmetic.bigint(exp.Sum(this=shifted)), expression=fixed_arithmetic.whole(finer))
        # A person whose values are all missing divides by one and not by zero; the sum above it is missing
        # anyway.
        count = fixed_arithmetic.case(
            [(exp.GT(this=exp.Count(this=steps), expression=fixed_arithmetic.whole(0)), exp.Count(this=steps))],
            fixed_arithmetic.whole(1),
        )
        quotient = fixed_arithmetic.bigint(exp.IntDiv(this=exp.Paren(this=total), expression=exp.Paren(this=count)))
        column = self._select(exp.Add(this=quotient, expression=fixed_arithmetic.whole(number.low * finer)))
        unit = number.unit / finer
        ends = number.low * finer, number.high * finer
        return term_of_value(FixedPointNumber(steps=column, unit=unit, low=ends[0], high=ends[1], label=label), label)

    def _unlimited(self, sql: exp.Expression, label: str, low: Fraction) -> Term:
        return self._open(self._select(sql), label, low, None)

    def _open(
        self,
        column: exp.Expression,
        label: str,
        low: Fraction | None,
        high: Fraction | None,
        *,
        unit: Fraction = Fraction(1),
    ) -> Term:
        measured = Measured(
            stored=column, storage=StorageType.INTEGER, label=label, limits=lambda: (low, high), unit=unit
        )
        return term_of_stored(measured, sql=column)

    def _select(self, sql: exp.Expression) -> exp.Expression:
        """Return the column of the subquery that holds some SQL."""
        self._selected.append(sql)
        return exp.column(f"a{len(self._selected) - 1}", quoted=True)


def _always(term: Term) -> Callable[[], Term]:
    return lambda: term


def _check_summable(number: FixedPointNumber, node: exp.Expression) -> None:
    if max(abs(number.low), abs(number.high), number.high - number.low) >= _LARGEST_SUMMED:
        raise UnsafeQueryError(
            f"{quote(node)} could become too large a number to be computed exactly.",
            fix="narrow the column, such as LEAST(x, 1000), or round it: ROUND(x, -3).",
        )


def _mixes(relation: QueryRelation) -> UnsafeQueryError:
    if relation.person is None:
        return UnsafeQueryError(
            "A subquery that groups or aggregates mixes the rows of many, and every row is protected by itself.",
            fix="aggregate in the outer query; or have the table protect persons, and group by the person.",
        )
    return UnsafeQueryError(
        "A subquery that groups or aggregates mixes the rows of many persons.",
        fix="group it by the person, or aggregate in the outer query.",
    )
