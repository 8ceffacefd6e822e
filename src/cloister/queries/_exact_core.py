"""The exact core: whole numbers per group, computed inside the engine. Protected, never released without noise.

Three plans, from cheap to general, give the same numbers where they overlap:

- rows: one grouped query over the rows, when a unit is a row or has a known number of rows;
- weighted: each row weighted by its person's number of rows, joined from a grouped count;
- nested: first per person and group, then over persons, when a limit per group, a count of persons or privately chosen
  groups need to know in how many groups a person is.

Weights and sums are integers; see `cloister.queries._contribution` for what they add up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES, literal
from cloister.data.persons import digest
from cloister.data.values import StorageType
from cloister.queries._cells import (
    Component,
    ExactCells,
    Ranked,
    center_cells,
    check_size,
    is_private,
    occurring_cells,
    public_cells,
    rank_cells,
)
from cloister.queries._contribution import Contribution, Reach, limit_rows
from cloister.queries._question import FixedPointNumber, GroupKey, QueryRows, Question

__all__ = ["ExactCore"]

_WIDE = "DECIMAL(38, 0)"
_ROW_BITS = 33
"""Sums are planned for up to 2**33 rows."""
_IN_DOUBLE = 2**20


class ExactCore:
    """Computes what a question needs, exactly."""

    def __init__(self, question: Question, contribution: Contribution, reach: Reach) -> None:
        self._question = question
        self._contribution = contribution
        self._reach = reach
        self._engine = question.rows.engine

    def cells(self, components: Sequence[Component]) -> ExactCells:
        """Return the numbers of all public groups, or of the groups that occur where keys are chosen privately."""
        # A person's limit on different values is a limit on (group, value) pairs, which no weight of rows can
        # keep, so each such count is a query of its own.
        plain = [part for part in components if part.kind != "distinct" or not self._contribution.is_person]
        apart = [part for part in components if part not in plain]
        keys = self._question.keys
        cells = ExactCells((), {}, check_size(keys))
        if plain:
            # Two parts may be summed from the same raw number; it is asked for once.
            summed = list(dict.fromkeys(raw for part in plain for raw in part.as_summed()))
            result = self._run(summed)
            read = occurring_cells if is_private(keys) else public_cells
            cells = center_cells(read(result, keys, summed), plain)
        for part in apart:
            found = public_cells(self._run_distinct(part), keys, [part])
            cells.numbers[part] = found.numbers[part]
        return cells

    def units(self) -> NDArray[np.int64]:
        """Return how many units there are in each public group, a person counting once in each, without a limit."""
        rows, keys = self._question.rows, self._question.keys
        part = Component("rows") if rows.person is None else Component.of_value("distinct", rows.person)
        return public_cells(self._plain(rows, [part], keys), keys, [part]).numbers[part]

    def ranks(self, number: FixedPointNumber) -> list[Ranked]:
        """Return, for each public group, the weight at each position of a number.

        Ranks are kept to the limit of a person, not to one per group, which would not make them move less.
        """
        position = GroupKey(name="position", group=number.steps, type=StorageType.INTEGER, values=None)
        keys = (*self._question.keys, position)
        rows = self._rows([key.group for key in keys])
        plan = self._weighted if self._reach.is_weighted else self._plain
        return rank_cells(plan(rows, [Component("rows")], keys), self._question.keys)

    @property
    def _caps_groups(self) -> bool:
        return self._reach.per_group < self._reach.rows

    @property
    def _drops_rows(self) -> bool:
        known = self._question.rows.rows_per_person
        # Where grouping by person already keeps everybody within the limit, nothing is left to drop.
        return self._contribution.bounding != "weight" and (known is None or known > self._reach.rows)

    def _rows(self, looked_at: Sequence[exp.Expression]) -> QueryRows:
        """Return the rows, of which a person has no more than the limit if the others are dropped."""
        rows = self._question.rows
        if rows.person is None or not self._drops_rows:
            return rows
        # Rows are ordered by what the question looks at and nothing else: rows that tie are then the same row
        # to it, and which of them stays cannot matter.
        return limit_rows(
            rows,
            limit=self._reach.rows,
            looked_at=list(dict.fromkeys(looked_at)),
            first_by=self._contribution.order if rows.source == self._contribution.ordered else None,
            sample=self._contribution.bounding == "sample",
        )

    # Plans -----------------------------------------------------------------------------------------------------------

    def _run(self, components: Sequence[Component]) -> pa.Table:
        keys = self._question.keys
        rows = self._rows([key.group for key in keys] + [part.of for part in components if part.of is not None])
        # These three depend on the groups that a person is in, which a sum over rows alone cannot tell.
        nested = is_private(keys) or self._caps_groups
        nested = nested or any(part.kind == "units" for part in components)
        if rows.person is not None and nested:
            return self._nested(rows, components, keys)
        if self._reach.is_weighted:
            return self._weighted(rows, components, keys)
        return self._plain(rows, components, keys)

    def _plain(self, rows: QueryRows, components: Sequence[Component], keys: tuple[GroupKey, ...]) -> pa.Table:
        """Run one grouped query over the rows."""
        sums = [self._sum(part, _contribution_of(part)) for part in components]
        query = exp.select(*_name_columns("k", [key.group for key in keys]), *_name_columns("m", sums)).from_(
            rows.source.copy(), copy=False
        )
        query = _of_persons(_where(query, rows), rows)
        if keys:
            query = query.group_by(*(key.group.copy() for key in keys), copy=False)
        return self._engine.execute(query, self._schema(keys, components))

    def _weighted(self, rows: QueryRows, components: Sequence[Component], keys: tuple[GroupKey, ...]) -> pa.Table:
        """Join the rows with the weights of those persons who have more rows than the limit."""
        values = [part.of for part in components if part.of is not None]
        count = exp.Count(this=exp.Star())
        # Whole division rounds down, so that a person's r rows together weigh at most the limit: r * (limit *
        # scale // r) <= limit * scale.
        weight = _whole_division(literal(self._reach.rows * self._reach.scale, StorageType.INTEGER), count)
        many = exp.GT(this=count.copy(), expression=literal(self._reach.rows, StorageType.INTEGER))
        heavy = exp.select(_as(rows.person, "person"), _as(weight, "w")).from_(rows.source.copy(), copy=False)
        # The condition of the question stands on both sides of the join: weights from other rows would not add
        # up to the limit over these.
        heavy = _where(heavy, rows).group_by(_copy(rows.person), copy=False).having(many, copy=False)
        joined = exp.EQ(this=_column("rows", "person"), expression=_column("heavy", "person"))
        full = literal(self._reach.scale, StorageType.INTEGER)
        # Who is not above the limit has no partner in the join and counts in full, which keeps the joined side
        # small.
        effective = exp.Coalesce(this=_column("heavy", "w"), expressions=[full])
        names = iter(range(len(values)))
        sums = [self._sum(part, _weigh_value(part, effective, _value(part, names))) for part in components]
        groups = [_column("rows", f"k{number}") for number in range(len(keys))]
        query = exp.select(*_name_columns("k", groups), *_name_columns("m", sums)).from_(
            _inner(rows, keys, values).subquery("rows", copy=False), copy=False
        )
        query = query.join(heavy.subquery("heavy", copy=False), on=joined, join_type="left", copy=False)
        if keys:
            query = query.group_by(*(group.copy() for group in groups), copy=False)
        return self._engine.execute(query, self._schema(keys, components))

    def _nested(self, rows: QueryRows, components: Sequence[Component], keys: tuple[GroupKey, ...]) -> pa.Table:
        """Sum per person and group first, keep a person to some groups, then sum over persons by weight."""
        per_group = self._per_person_and_group(rows, components, keys)
        kept = self._kept_groups(per_group, keys)
        # The totals are over the groups that a person keeps, so that rows in dropped groups do not thin out the
        # others.
        totals = self._per_person(kept.copy())
        weight, unit_weight = self._nested_weights()
        sums = []
        for number, part in enumerate(components):
            if part.kind == "units":
                sums.append(self._sum(part, unit_weight))
            else:
                value = exp.Mul(this=weight.copy(), expression=_column("parts", f"m{number}"))
                sums.append(self._sum(part, value))
        groups = [_column("parts", f"k{number}") for number in range(len(keys))]
        joined = exp.EQ(this=_column("parts", "person"), expression=_column("persons", "person"))
        query = exp.select(*_name_columns("k", groups), *_name_columns("m", sums)).from_(
            kept.subquery("parts", copy=False), copy=False
        )
        query = query.join(totals.subquery("persons", copy=False), on=joined, join_type="inner", copy=False)
        if keys:
            query = query.group_by(*(group.copy() for group in groups), copy=False)
        return self._engine.execute(query, self._schema(keys, components))

    def _per_person_and_group(
        self, rows: QueryRows, components: Sequence[Component], keys: tuple[GroupKey, ...]
    ) -> exp.Select:
        sums: list[exp.Expression] = []
        for part in components:
            value = _contribution_of(part)
            if part.kind == "units":
                sums.append(literal(1, StorageType.INTEGER))
            elif part.kind in ("rows", "present"):
                sums.append(value)
            else:
                wide = exp.cast(value, _WIDE) if self._engine.sums_overflow else exp.cast(value, "BIGINT")
                sums.append(exp.Coalesce(this=exp.Sum(this=wide), expressions=[literal(0, StorageType.INTEGER)]))
        query = exp.select(
            _as(rows.person, "person"),
            *_name_columns("k", [key.group for key in keys]),
            _as(exp.Count(this=exp.Star()), "n"),
            *_name_columns("m", sums),
        ).from_(rows.source.copy(), copy=False)
        query = _of_persons(_where(query, rows), rows)
        return query.group_by(_copy(rows.person), *(key.group.copy() for key in keys), copy=False)

    def _kept_groups(self, per_group: exp.Select, keys: tuple[GroupKey, ...]) -> exp.Select:
        """Keep a person to the first groups in the order of a digest, where groups are chosen privately."""
        if not is_private(self._question.keys):
            return per_group
        columns = [_column("parts", f"k{number}") for number in range(len(keys))]
        # A digest of person and group depends on nobody else; the columns behind it settle equal digests, so
        # that the order never depends on how the engine reads its rows.
        shuffled = digest([_column("parts", "person"), *columns])
        order = exp.Order(expressions=[exp.Ordered(this=item) for item in (shuffled, *(c.copy() for c in columns))])
        rank = exp.Window(this=exp.RowNumber(), partition_by=[_column("parts", "person")], order=order)
        ranked = exp.select(exp.Column(this=exp.Star(), table=_quote("parts")), _as(rank, "place"))
        ranked = ranked.from_(per_group.subquery("parts", copy=False), copy=False)
        limit = exp.LTE(this=_column("ranked", "place"), expression=literal(self._reach.groups, StorageType.INTEGER))
        return exp.select("*").from_(ranked.subquery("ranked", copy=False), copy=False).where(limit, copy=False)

    def _per_person(self, kept: exp.Select) -> exp.Select:
        number = _column("kept", "n")
        # Each group is capped before the sum, so that what is cut in one group leaves room in another.
        capped = exp.Sum(this=_least(number, self._reach.per_group) if self._caps_groups else number)
        query = exp.select(
            _as(_column("kept", "person"), "person"),
            _as(exp.cast(capped, "BIGINT"), "r"),
            _as(exp.Count(this=exp.Star()), "g"),
        ).from_(kept.subquery("kept", copy=False), copy=False)
        return query.group_by(_column("kept", "person"), copy=False)

    def _nested_weights(self) -> tuple[exp.Expression, exp.Expression]:
        """Return the weight of one row of a person in a group, and the weight of a person in a group."""
        reach = self._reach
        n, r, g = _column("parts", "n"), _column("persons", "r"), _column("persons", "g")
        scale, groups = (literal(item, StorageType.INTEGER) for item in (reach.scale, reach.groups))
        # One division for both limits, so that rounding down happens once.
        kept = exp.Mul(this=scale.copy(), expression=_least(r, reach.rows))
        among: exp.Expression = r
        if self._caps_groups:
            # A group's n rows then weigh at most min(n, per_group), and a person's groups together at most
            # min(r, rows), because r adds up the capped numbers.
            kept = exp.Mul(this=kept, expression=_least(n, reach.per_group))
            among = exp.Mul(this=r.copy(), expression=n.copy())
        weight = _whole_division(kept, among)
        # Whoever is in more groups than allowed counts as a fraction in each of them: all fractions together
        # stay within the limit.
        few = exp.LTE(this=g.copy(), expression=groups.copy())
        fewer = _whole_division(exp.Mul(this=scale.copy(), expression=groups.copy()), g.copy())
        return weight, exp.Case().when(few, scale.copy()).else_(fewer)

    def _run_distinct(self, part: Component) -> pa.Table:
        """Count different values, each person bringing at most its limit of different (group, value) pairs."""
        rows, keys = self._question.rows, self._question.keys
        pair = [key.group for key in keys] + [part.of]
        distinct = exp.select(_as(rows.person, "person"), *_name_columns("k", pair)).from_(
            rows.source.copy(), copy=False
        )
        distinct = _of_persons(_where(distinct, rows), rows).where(_present(part.of), copy=False).distinct(copy=False)
        columns = [_column("pairs", f"k{number}") for number in range(len(pair))]
        # The first pairs in their own order stay, which is a function of this person's pairs alone.
        order = exp.Order(expressions=[exp.Ordered(this=column) for column in columns])
        rank = exp.Window(this=exp.RowNumber(), partition_by=[_column("pairs", "person")], order=order)
        ranked = exp.select(*_name_columns("k", [column.copy() for column in columns]), _as(rank, "place"))
        ranked = ranked.from_(distinct.subquery("pairs", copy=False), copy=False)
        limit = exp.LTE(this=_column("ranked", "place"), expression=literal(self._reach.rows, StorageType.INTEGER))
        groups = [_column("ranked", f"k{number}") for number in range(len(keys))]
        # Persons may bring the same pair, which counts once: one person more adds at most what that person
        # keeps.
        value = exp.Count(this=exp.Distinct(expressions=[_column("ranked", f"k{len(keys)}")]))
        query = (
            exp.select(*_name_columns("k", groups), _as(value, "m0"))
            .from_(ranked.subquery("ranked", copy=False), copy=False)
            .where(limit, copy=False)
        )
        if keys:
            query = query.group_by(*(group.copy() for group in groups), copy=False)
        return self._engine.execute(query, self._schema(keys, [part]))

    # Parts of SQL ----------------------------------------------------------------------------------------------------

    def _sum(self, part: Component, value: exp.Expression) -> exp.Expression:
        if isinstance(value, exp.Count):
            return value
        if self._is_wide(part):
            # Such an engine adds up in the type of the operand, where a sum could overflow and fail because of
            # a row.
            wide = exp.cast(value, _WIDE) if self._engine.sums_overflow else value
            return exp.cast(exp.Sum(this=wide), _WIDE)
        return exp.cast(exp.Sum(this=value), "BIGINT")

    def _is_wide(self, part: Component) -> bool:
        if part.kind in ("units", "rows", "present", "distinct"):
            # The width follows from what could be, never from what is: neither the type of the answer nor an
            # overflow may tell about rows.
            return self._reach.scale << _ROW_BITS >= 2**63
        return part.largest * self._reach.scale << _ROW_BITS >= 2**63

    def _schema(self, keys: Sequence[GroupKey], components: Sequence[Component]) -> pa.Schema:
        groups = [(f"k{number}", ARROW_TYPES[key.type]) for number, key in enumerate(keys)]
        sums = [
            (f"m{number}", pa.decimal128(38, 0) if self._is_wide(part) else pa.int64())
            for number, part in enumerate(components)
        ]
        return pa.schema([*groups, *sums])


def _contribution_of(part: Component) -> exp.Expression:
    """Return what one row adds, or the count that the engine has for it."""
    match part.kind:
        case "rows" | "units":
            return exp.Count(this=exp.Star())
        case "present":
            return exp.Count(this=_copy(part.of))
        case "distinct":
            return exp.Count(this=exp.Distinct(expressions=[_copy(part.of)]))
        case _:
            return _center(part, _copy(part.of))


def _center(part: Component, steps: exp.Expression) -> exp.Expression:
    # Small steps may stay doubles: 2**33 rows of at most 2**20 add up to 2**53, which a double still holds
    # exactly.
    whole = steps if part.kind == "total" and part.largest <= _IN_DOUBLE else exp.cast(steps, "BIGINT")
    if part.center:
        whole = exp.paren(exp.Sub(this=whole, expression=literal(part.center, StorageType.INTEGER)))
    if part.kind == "square":
        return exp.Mul(this=whole, expression=whole.copy())
    return whole


def _weigh_value(part: Component, weight: exp.Expression, value: exp.Expression | None) -> exp.Expression:
    if value is None:
        return weight.copy()
    if part.kind == "present":
        return exp.Case().when(_present(value), weight.copy())
    return exp.Mul(this=weight.copy(), expression=exp.cast(_center(part, value), "BIGINT"))


def _value(part: Component, names: Any) -> exp.Expression | None:  # an iterator over the inner columns
    return None if part.of is None else _column("rows", f"x{next(names)}")


def _inner(rows: QueryRows, keys: Sequence[GroupKey], values: Sequence[exp.Expression]) -> exp.Select:
    query = exp.select(
        _as(rows.person, "person"), *_name_columns("k", [key.group for key in keys]), *_name_columns("x", list(values))
    ).from_(rows.source.copy(), copy=False)
    return _of_persons(_where(query, rows), rows)


def _whole_division(numerator: exp.Expression, denominator: exp.Expression) -> exp.Expression:
    """Return the whole part of a quotient of numbers that are not negative."""
    return exp.cast(exp.IntDiv(this=exp.paren(numerator), expression=exp.paren(denominator)), "BIGINT")


def _least(column: exp.Expression, most: int) -> exp.Expression:
    bound = literal(most, StorageType.INTEGER)
    return exp.Case().when(exp.LTE(this=column.copy(), expression=bound), column.copy()).else_(bound.copy())


def _where(query: exp.Select, rows: QueryRows) -> exp.Select:
    return query if rows.condition is None else query.where(rows.condition.copy(), copy=False)


def _of_persons(query: exp.Select, rows: QueryRows) -> exp.Select:
    """Leave out rows that are about nobody, where persons are the unit."""
    return query if rows.person is None else query.where(_present(rows.person), copy=False)


def _present(column: exp.Expression | None) -> exp.Expression:
    return exp.Not(this=exp.Is(this=_copy(column), expression=exp.Null()))


def _copy(expression: exp.Expression | None) -> exp.Expression:
    return exp.Null() if expression is None else expression.copy()


def _as(expression: exp.Expression | None, name: str) -> exp.Expression:
    return exp.Alias(this=_copy(expression), alias=_quote(name))


def _name_columns(prefix: str, columns: Sequence[exp.Expression | None]) -> list[exp.Expression]:
    return [_as(column, f"{prefix}{number}") for number, column in enumerate(columns)]


def _quote(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _column(table: str, name: str) -> exp.Column:
    return exp.Column(this=_quote(name), table=_quote(table))
