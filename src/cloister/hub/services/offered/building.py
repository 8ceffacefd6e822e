"""Questions put together from parts, as SQL. Names and values are written by sqlglot, never pasted."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator
from sqlglot import exp

from cloister.hub.services.registry import Parameters

_FUNCTIONS = {
    "sum": exp.Sum,
    "mean": exp.Avg,
    "variance": exp.Variance,
    "deviation": exp.Stddev,
    "minimum": exp.Min,
    "maximum": exp.Max,
    "median": exp.Median,
}
_COMPARISONS = {"=": exp.EQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}


class Measure(Parameters):
    """One number to find."""

    kind: Literal["count", "sum", "mean", "median", "minimum", "maximum", "variance", "deviation"] = Field(
        default="count", title="What"
    )
    column: str | None = Field(default=None, max_length=200, title="Of which column")

    @model_validator(mode="after")
    def _has_column(self) -> Measure:
        if (self.kind == "count") != (self.column is None):
            raise ValueError("a count takes no column, everything else takes one")
        return self


class Condition(Parameters):
    """Which rows."""

    column: str = Field(max_length=200, title="Column")
    comparison: Literal["=", "!=", "<", "<=", ">", ">="] = Field(default="=", title="Comparison")
    value: bool | int | float | str = Field(title="Value")


class Built(Parameters):
    """What to find, in which groups, of which rows."""

    measures: tuple[Measure, ...] = Field(min_length=1, max_length=10, title="What to find")
    groups: tuple[str, ...] = Field(default=(), max_length=5, title="In groups of")
    conditions: tuple[Condition, ...] = Field(default=(), max_length=10, title="Only rows where")


def sql_of(question: Built) -> str:
    """Return the SQL of a question."""
    groups = [exp.column(name, quoted=True) for name in question.groups]
    measures = [_measured(measure) for measure in question.measures]
    query = exp.select(*(group.copy() for group in groups), *measures).from_(exp.to_table("data"))
    for condition in question.conditions:
        query = query.where(_compared(condition))
    if groups:
        query = query.group_by(*groups)
    return query.sql()


def _measured(measure: Measure) -> Any:  # an expression of sqlglot
    if measure.column is None:
        return exp.alias_(exp.Count(this=exp.Star()), "count", quoted=True)
    found = _FUNCTIONS[measure.kind](this=exp.column(measure.column, quoted=True))
    return exp.alias_(found, f"{measure.kind} of {measure.column}", quoted=True)


def _compared(condition: Condition) -> Any:  # an expression of sqlglot
    value = exp.convert(condition.value)
    return _COMPARISONS[condition.comparison](this=exp.column(condition.column, quoted=True), expression=value)
