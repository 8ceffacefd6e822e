"""From SQL to what inference control judges: conditions apart by who may know them, groups and plain aggregates.

SQL is parsed and resolved as for a `PrivateTable`; this module keeps a small part of what that understands. A column
is known, confidential or hidden. Each condition that WHERE joins with AND is on known columns or on confidential
ones, so that it is public which rows a question could be about. Confidential columns are cut at public cut points
alone. What is refused here depends on the query and on what the owner made public, never on a row.

What is answered are counts, and sums and means of one confidential column as it is stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import compress

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from cloister.data.engines.predicates import quote
from cloister.data.table import Table
from cloister.errors import ParameterError, UnsafeQueryError
from cloister.queries._aggregates import Aggregate, CountNotNull, CountRows, Extreme, Mean, Total
from cloister.queries._cells import check_size
from cloister.queries._question import FixedPointNumber, GroupKey
from cloister.queries.catalog import Catalog, column_number, present_value
from cloister.queries.inference_control._cut_points import Cut, CutPoints
from cloister.queries.inference_control._linear_audit import Mask
from cloister.queries.sql import Compiled, compile_select
from cloister.queries.sql._formulas import KeyColumn, NoisyColumn
from cloister.queries.sql._relations import conjunction
from cloister.queries.sql.grammar import clause

__all__ = ["DATA", "ControlledMeasure", "ControlledQuery", "ControlledQueryReader", "ShownColumn", "read_measure"]


_LOW = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledMeasure:
    """What is computed over the rows of a group.

    Attributes:
        kind: count, present, sum, mean, min or max.
        number: the column that is added up, in whole steps.
        present: a condition that tells which rows have a value, where they are only counted.
    """

    kind: str
    number: FixedPointNumber | None = field(default=None, repr=False)
    present: exp.Expression | None = field(default=None, repr=False)

    def exact(self, rows: Mask, values: NDArray[np.int64]) -> Fraction | None:
        """Return the exact number over some rows that all have a value; None where there is none."""
        size = int(rows.sum())
        if self.number is None:
            return Fraction(size)
        chosen = values[rows]
        match self.kind:
            case "sum":
                return _total(chosen) * self.number.unit
            case _ if not size:
                return None
            case "mean":
                return _total(chosen) * self.number.unit / size
            case "min":
                return int(chosen.min()) * self.number.unit
            case _:
                return int(chosen.max()) * self.number.unit


def _total(values: NDArray[np.int64]) -> int:
    """Return a sum without a limit, from the sums of both halves of each number."""
    return int((values // _LOW).sum()) * _LOW + int((values % _LOW).sum())


def read_measure(aggregate: Aggregate, table: Table, *, confidential: Set[str], extremes: bool) -> ControlledMeasure:
    """Return what an aggregate measures.

    Raises:
        UnsafeQueryError: if it is none of those that are answered.
    """
    match aggregate:
        case CountRows():
            return ControlledMeasure(kind="count")
        case CountNotNull(of=of, label=label) if label in table.schema and present_value(table, label) == of:
            return ControlledMeasure(
                kind="present", present=exp.Not(this=exp.Is(this=of.copy(), expression=exp.Null()))
            )
        case Total(of=number) | Mean(of=number) | Extreme(of=number):
            return _read_number(aggregate, number, table, confidential, extremes=extremes)
    raise UnsafeQueryError(
        "The query asks for more than counts, sums and means.",
        fix="use COUNT(*), COUNT(column), SUM(column) and AVG(column); a PrivateTable answers more, with noise.",
    )


def _read_number(
    aggregate: Total | Mean | Extreme, number: FixedPointNumber, table: Table, confidential: Set[str], *, extremes: bool
) -> ControlledMeasure:
    name = number.label
    if name not in table.schema or column_number(table, name).text != number.text:
        raise UnsafeQueryError(
            f'"{name}" is computed, and could be a value of one row.',
            fix="sum or average a column as it is, such as SUM(salary); put conditions in WHERE.",
        )
    if name not in confidential:
        raise UnsafeQueryError(
            f'"{name}" may be used in any condition, so that its sums could not be guarded.',
            fix=f'call it sensitive, with schema.with_role("{name}", "sensitive") or confidential=("{name}",).',
        )
    if isinstance(aggregate, Extreme):
        word = "MAX" if aggregate.largest else "MIN"
        if not extremes:
            raise UnsafeQueryError(
                f"{word}({name}) is the value of one person, and rounding it would still tell about that person.",
                fix=f"ask for AVG({name}), or for a noisy quantile of a PrivateTable.",
            )
        return ControlledMeasure(kind=word.lower(), number=number)
    return ControlledMeasure(kind="sum" if isinstance(aggregate, Total) else "mean", number=number)


DATA = "data"
"""What SQL calls the table."""

MOST_GROUPS = 1000


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of the answer: which key or which measure it shows."""

    name: str
    index: int
    is_key: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledQuery:
    """What a query asks.

    Attributes:
        known: the condition on columns that the asker may know.
        confidential: the condition on confidential columns.
        keys: the groups, all public.
        confidential_keys: for each key, whether it is a confidential column.
        measures: what is computed in each group.
        shown: the columns of the answer.
    """

    known: exp.Expression | None = field(repr=False)
    confidential: exp.Expression | None = field(repr=False)
    keys: tuple[GroupKey, ...]
    confidential_keys: tuple[bool, ...]
    measures: tuple[ControlledMeasure, ...]
    shown: tuple[ShownColumn, ...]

    @property
    def is_confidential(self) -> bool:
        """Return whether confidential values decide which rows are asked about."""
        return self.confidential is not None or any(self.confidential_keys)

    @property
    def numbers(self) -> int:
        """Return how many numbers are asked for, which is public."""
        return math.prod(len(key.values or ()) for key in self.keys) * len(self.measures)


class ControlledQueryReader:
    """Reads queries about one table."""

    def __init__(
        self,
        table: Table,
        *,
        confidential: Set[str],
        hidden: Set[str],
        extremes: bool,
        cut_points: Mapping[str, Sequence[Cut]],
    ) -> None:
        self._table = table
        self._catalog = Catalog(private={DATA: table})
        self._cuts = CutPoints(cut_points, table.schema, self._catalog, table=DATA)
        self._confidential, self._hidden = confidential, hidden
        self._extremes = extremes

    def read(self, select: exp.Select) -> ControlledQuery:
        """Return what a query asks.

        Raises:
            UnsafeQueryError: if it is not among what is answered, with what is.
            UnknownColumnError: if it names a column that does not exist.
        """
        _check_clauses(select)
        compiled = compile_select(select, self._catalog)
        # Each condition is compiled on its own, to see which columns it is about before they are joined.
        conditions = [self._condition(select, part) for part in _parts(select)]
        secret = [
            self._is_confidential(condition, part) for condition, part in zip(conditions, _parts(select), strict=True)
        ]
        keys = compiled.question.keys
        return ControlledQuery(
            known=reduce(conjunction, compress(conditions, [not flag for flag in secret]), None),
            confidential=reduce(conjunction, compress(conditions, secret), None),
            keys=keys,
            confidential_keys=tuple(self._is_confidential_key(_public(key)) for key in keys),
            measures=self._measures(compiled),
            shown=_read_outputs(compiled),
        )

    def _measures(self, compiled: Compiled) -> tuple[ControlledMeasure, ...]:
        if check_size(compiled.question.keys) > MOST_GROUPS:
            raise ParameterError(
                f"The answer would have more than {MOST_GROUPS:,} groups.", fix="group by fewer columns or values."
            )
        measures = tuple(
            read_measure(item, self._table, confidential=self._confidential, extremes=self._extremes)
            for item in compiled.question.aggregates
        )
        for measure in measures:
            self._check_usable(measure.present if measure.number is None else measure.number.steps)
        return measures

    def _condition(self, select: exp.Select, part: exp.Expression) -> exp.Expression | None:
        alone = select.copy()
        alone.set("where", exp.Where(this=part.copy()))
        return compile_select(alone, self._catalog).question.rows.condition

    def _is_confidential(self, condition: exp.Expression | None, node: exp.Expression) -> bool:
        """Return whether SQL over positional columns is about confidential ones, cut where that is permitted."""
        secret = self._secret(condition, node)
        if secret and not self._cuts.permit(condition):
            raise self._cut_elsewhere(secret, node)
        return bool(secret)

    def _is_confidential_key(self, key: GroupKey) -> bool:
        node = exp.column(key.name)
        secret = self._secret(key.group, node)
        if secret and not self._cuts.permit_key(key):
            raise self._cut_elsewhere(secret, node)
        return bool(secret)

    def _secret(self, condition: exp.Expression | None, node: exp.Expression) -> set[str]:
        """Return the confidential columns that SQL is about; together with others they are refused."""
        names = self._check_usable(condition)
        secret = names & self._confidential
        if secret and names - secret:
            raise UnsafeQueryError(
                f'{quote(node)} mixes "{min(secret)}", which is confidential, with other columns.',
                fix="join conditions on confidential columns with AND, each on its own: sex = 'F' AND salary >= 50000.",
            )
        return secret

    def _cut_elsewhere(self, secret: Set[str], node: exp.Expression) -> UnsafeQueryError:
        """Return the refusal of a condition; it tells what is public about the column that comes first."""
        name = min(secret)
        return UnsafeQueryError(
            f'{quote(node)} cuts "{name}", which is confidential, elsewhere than at public cut points.',
            fix=self._cuts.describe(name),
        )

    def _check_usable(self, condition: exp.Expression | None) -> set[str]:
        """Return the columns that SQL over positional columns is about, none of which may be hidden."""
        found = [] if condition is None else condition.find_all(exp.Column)
        names = {self._table.columns[int(column.name[1:])] for column in found}
        if names & self._hidden:
            raise UnsafeQueryError(
                f'"{min(names & self._hidden)}" names single persons, who cannot be looked up.',
                fix="ask about a group, by columns that many have in common.",
            )
        return names


def _parts(select: exp.Select) -> list[exp.Expression]:
    """Return the conditions that WHERE joins with AND, from left to right."""
    where = select.args.get("where")
    pending = [] if where is None else [where.this]
    found = []
    while pending:
        node = pending.pop()
        if type(node) is exp.Paren:
            pending.append(node.this)
        elif type(node) is exp.And:
            pending += [node.expression, node.this]
        else:
            found.append(node)
    return found


def _check_clauses(select: exp.Select) -> None:
    start = clause(select, "from")
    if clause(select, "with") or select.args.get("joins") or (start is not None and type(start.this) is not exp.Table):
        raise UnsafeQueryError(
            "The query selects from more than one table, or from a subquery.", fix=f"select FROM {DATA} alone."
        )
    for name in ("having", "order", "limit", "offset"):
        if select.args.get(name):
            raise UnsafeQueryError(
                f"{name.upper()} is not answered under inference control.",
                fix="leave it out, and sort or filter the answer.",
            )


def _public(key: GroupKey) -> GroupKey:
    if key.values is None:
        raise UnsafeQueryError(
            f'The groups of "{key.name}" are not public, and showing which there are would tell about single rows.',
            fix="state its categories in the schema, or group by a column that has some.",
        )
    return key


def _read_outputs(compiled: Compiled) -> tuple[ShownColumn, ...]:
    found = []
    for output in compiled.presentation.outputs:
        if not isinstance(output.formula, KeyColumn | NoisyColumn):
            raise UnsafeQueryError(
                f'"{output.name}" is computed from answers.', fix="ask for its parts, and compute it from the answer."
            )
        found.append(ShownColumn(output.name, output.formula.index, isinstance(output.formula, KeyColumn)))
    return tuple(found)
