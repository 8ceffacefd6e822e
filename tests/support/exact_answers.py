"""The answer of a question without noise: one query in its engine, for tests only."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from cloister.data.engines.base import ARROW_TYPES
from cloister.queries._aggregates import (
    Aggregate,
    CountDistinct,
    CountNotNull,
    CountRows,
    CountUnits,
    Extreme,
    Mean,
    StandardDeviation,
    Total,
    Variance,
)
from cloister.queries._question import FixedPointNumber, Question
from cloister.queries._uncertainty import Exactly
from cloister.queries.answers import Estimate
from cloister.queries.sql import Compiled

_WIDE = pa.decimal128(38, 0)


def rows_of(compiled: Compiled) -> list[dict[str, Any]]:
    """Return the result of a query, without noise, as rows."""
    columns = compiled.presentation.present(*exact(compiled.question))
    length = len(columns[0].values)
    return [{column.name: column.values[row] for column in columns} for row in range(length)]


def exact(question: Question) -> tuple[list[Estimate], list[Estimate]]:
    """Return the columns of keys and of exact aggregates."""
    found = _grouped(question)
    groups = list(itertools.product(*(key.values or _seen(found, place) for place, key in enumerate(question.keys))))
    keys = []
    for place, key in enumerate(question.keys):
        shown = dict(zip(key.values, key.shown or (), strict=True)) if key.values is not None else {}
        keys.append(Estimate.key(key.name, [shown.get(group[place], group[place]) for group in groups]))
    aggregates = []
    for number, aggregate in enumerate(question.aggregates):
        cells = [_finished(aggregate, found[group][number] if group in found else None) for group in groups]
        column = np.array(cells, dtype=float)
        aggregates.append(Estimate(name=str(number), values=column, error=Exactly(len(groups))))
    return keys, aggregates


def evaluate(question_rows: Any, expressions: list[exp.Expression]) -> list[tuple[Any, ...]]:
    """Return whole numbers (or NULL) that expressions give on each row, in the order of the first one."""
    columns = [exp.alias_(exp.cast(sql, "BIGINT"), f"e{place}") for place, sql in enumerate(expressions)]
    query = exp.select(*columns).from_(question_rows.source)
    if question_rows.condition is not None:
        query = query.where(question_rows.condition)
    result = question_rows.engine.execute(
        query, pa.schema([(f"e{place}", pa.int64()) for place in range(len(columns))])
    )
    rows = list(zip(*(column.to_pylist() for column in result.columns), strict=True))
    return sorted(rows, key=lambda row: row[0])


def _seen(found: dict[tuple[Any, ...], Any], place: int) -> list[Any]:
    return sorted({group[place] for group in found if group[place] is not None})


def _grouped(question: Question) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    keys = [(f"k{place}", key.group, ARROW_TYPES[key.type]) for place, key in enumerate(question.keys)]
    parts = [_parts(aggregate, question.rows.person) for aggregate in question.aggregates]
    totals = [
        (f"m{number}_{place}", exp.cast(sql, "DECIMAL(38, 0)"), _WIDE)
        for number, sqls in enumerate(parts)
        for place, sql in enumerate(sqls)
    ]
    selected = [exp.alias_(sql, name, quoted=True) for name, sql, _ in (*keys, *totals)]
    query = exp.select(*selected).from_(question.rows.source)
    if question.rows.condition is not None:
        query = query.where(question.rows.condition)
    if keys:
        query = query.group_by(*(key.group for key in question.keys))
    schema = pa.schema([(name, kind) for name, _, kind in (*keys, *totals)])
    found = {}
    for row in question.rows.engine.execute(query, schema).to_pylist():
        cells = [tuple(row[f"m{number}_{place}"] for place in range(len(sqls))) for number, sqls in enumerate(parts)]
        found[tuple(row[name] for name, _, _ in keys)] = cells
    return found


def _parts(aggregate: Aggregate, person: exp.Expression | None) -> list[exp.Expression]:
    match aggregate:
        case CountRows():
            return [exp.Count(this=exp.Star())]
        case CountUnits():
            return [exp.Count(this=exp.Distinct(expressions=[person]))]
        case CountNotNull(of=of):
            return [exp.Count(this=of)]
        case CountDistinct(of=of):
            return [exp.Count(this=exp.Distinct(expressions=[of]))]
        case Extreme(of=number, largest=largest):
            return [(exp.Max if largest else exp.Min)(this=_steps(number))]
        case Total(of=number) | Mean(of=number):
            return [exp.Sum(this=_steps(number)), exp.Count(this=_steps(number))]
        case Variance(of=number) | StandardDeviation(of=number):
            square = exp.Mul(this=_steps(number), expression=_steps(number))
            return [exp.Sum(this=_steps(number)), exp.Count(this=_steps(number)), exp.Sum(this=square)]
    raise NotImplementedError(type(aggregate).__name__)


def _steps(number: FixedPointNumber) -> exp.Expression:
    return exp.cast(number.steps, "DECIMAL(38, 0)")


def _finished(aggregate: Aggregate, cells: tuple[Any, ...] | None) -> float:
    if cells is None:
        return 0.0 if isinstance(aggregate, CountRows | CountUnits | CountNotNull | CountDistinct | Total) else math.nan
    exactly = [Fraction(0 if cell is None else int(cell)) for cell in cells]
    match aggregate:
        case Total(of=number):
            return float(exactly[0] * number.unit)
        case Mean(of=number):
            return float(exactly[0] / exactly[1] * number.unit) if exactly[1] else math.nan
        case Extreme(of=number):
            return float(exactly[0] * number.unit) if cells[0] is not None else math.nan
        case Variance(of=number, sample=sample) | StandardDeviation(of=number, sample=sample):
            total, count, squares = exactly
            if count <= sample:
                return math.nan
            variance = (squares - total * total / count) / (count - sample) * number.unit**2
            return float(variance) if isinstance(aggregate, Variance) else math.sqrt(variance)
    return float(exactly[0])
