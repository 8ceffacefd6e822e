"""Private questions: in SQL, or put together from parts by people who do not write it.

A question is planned by asking it of an empty table with the same schema, from the budget that a plan is given: its
price, its guarantee and every refusal are then those of the real question, and cannot depend on anybody's rows.

Questions put together from parts become SQL; names and values are written by sqlglot, never pasted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from sqlglot import exp

from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.views import check_query
from cloister.hub.services.protected_tables import csv_file, private_table
from cloister.hub.services.registry import ServiceOutcome, ServiceParameters, ServicePlan, ServiceWork, service_registry
from cloister.queries.answers import Frame
from cloister.queries.payment import check_price

_COMPARISONS = {"=": exp.EQ, "!=": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE}


class MeasureKind(StrEnum):
    """What can be found: as a question stores it, as the page says it before a column, and as SQL writes it."""

    words: str
    function: type[exp.Func]

    def __new__(cls, name: str, words: str, function: type[exp.Func]) -> Self:
        """Return a kind that equals its name."""
        made = str.__new__(cls, name)
        made._value_, made.words, made.function = name, words, function
        return made

    COUNT = "count", "how many rows", exp.Count
    MEAN = "mean", "the mean of", exp.Avg
    MEDIAN = "median", "the median of", exp.Median
    SUM = "sum", "the sum of", exp.Sum
    MINIMUM = "minimum", "the smallest", exp.Min
    MAXIMUM = "maximum", "the largest", exp.Max
    DEVIATION = "deviation", "the spread (standard deviation) of", exp.Stddev
    VARIANCE = "variance", "the spread (variance) of", exp.Variance


class QuestionMeasure(ServiceParameters):
    """One number to find."""

    kind: MeasureKind = Field(default=MeasureKind.COUNT, title="What")
    column: str | None = Field(default=None, max_length=200, title="Of which column")

    @model_validator(mode="after")
    def _has_column(self) -> QuestionMeasure:
        if (self.kind is MeasureKind.COUNT) != (self.column is None):
            raise ValueError("a count takes no column, everything else takes one")
        return self


class Condition(ServiceParameters):
    """Which rows."""

    column: str = Field(max_length=200, title="Column")
    comparison: Literal["=", "!=", "<", "<=", ">", ">="] = Field(default="=", title="Comparison")
    value: bool | int | float | str = Field(title="Value")


class Built(ServiceParameters):
    """What to find, in which groups, of which rows."""

    measures: tuple[QuestionMeasure, ...] = Field(min_length=1, max_length=10, title="What to find")
    groups: tuple[str, ...] = Field(default=(), max_length=5, title="In groups of")
    conditions: tuple[Condition, ...] = Field(default=(), max_length=10, title="Only rows where")


def sql_of(question: Built) -> str:
    """Return the SQL of a question."""
    groups = [exp.column(name, quoted=True) for name in question.groups]
    measures = [_write_measure(measure) for measure in question.measures]
    query = exp.select(*(group.copy() for group in groups), *measures).from_(exp.to_table("data"))
    for condition in question.conditions:
        query = query.where(_write_condition(condition))
    if groups:
        query = query.group_by(*groups)
    return query.sql()


def _write_measure(measure: QuestionMeasure) -> Any:  # an expression of sqlglot
    if measure.column is None:
        return exp.alias_(measure.kind.function(this=exp.Star()), "count", quoted=True)
    found = measure.kind.function(this=exp.column(measure.column, quoted=True))
    return exp.alias_(found, f"{measure.kind} of {measure.column}", quoted=True)


def _write_condition(condition: Condition) -> Any:  # an expression of sqlglot
    value = exp.convert(condition.value)
    return _COMPARISONS[condition.comparison](this=exp.column(condition.column, quoted=True), expression=value)


_MOST_MARKS = 60
_PREVIEWED = frozenset({"schema", "price", "groups", "confidence", "forecasts"})
"""What a preview says about the question itself; what is left is known from the dataset's own account."""


class PrivateQuestion(ServiceParameters):
    """What every private question takes: its price, in epsilon or in rho."""

    epsilon: str | float | None = Field(default=None, title="Price (epsilon)", description="Smaller is more private.")
    delta: str | float = Field(
        default="0", title="Slack (delta)", description="Above zero, groups that are not public can be found."
    )
    rho: str | float | None = Field(default=None, title="Price (rho)", description="In place of epsilon.")
    fresh: bool = Field(
        default=False, title="Pay for new noise", description="Also where somebody paid for the same answer before."
    )

    def price(self) -> dict[str, Any]:
        """Return the price as questions take it."""
        check_price(epsilon=self.epsilon, rho=self.rho, delta=self.delta)
        return {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}


class SqlQuestion(PrivateQuestion):
    """A question in SQL."""

    sql: str = Field(
        title="SQL",
        max_length=20_000,
        description='The table is called "data".',
        examples=["SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY sex"],
    )


class BuiltQuestion(PrivateQuestion):
    """A question put together from parts."""

    question: Built


class _Asking:
    """What both kinds of questions share."""

    version: ClassVar[str] = "1"
    operation: ClassVar[PolicyOperation] = PolicyOperation.QUERY_AGGREGATE
    modes: ClassVar[frozenset[str]] = frozenset({"dp"})
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = False

    def plan(self, work: ServiceWork, parameters: Any) -> ServicePlan:  # SqlQuestion or BuiltQuestion
        """Ask an empty table, for nothing, and return what the answer would cost and promise."""
        sql, price = self._sql(parameters), parameters.price()
        private = private_table(work)
        # Parsed here, once: what follows is given the query as it was parsed, or finds it under its text.
        select = private.compile_query(sql).select
        frame = private.sql(sql, **price)
        expected = private.preview(sql, **price)
        # The second entry is the question, after the account: with the name under which noise is found again.
        key = work.ledger.entries(work.account)[1].details["key"]
        # After it was compiled: only then is it known that every use of a column can be followed.
        check_query(select, {"data": work.rights})
        return ServicePlan(
            guarantee=expected.guarantee,
            event=frame.event,
            key=None if parameters.fresh else _same(key, select),
            preview={name: value for name, value in expected.to_dict().items() if name in _PREVIEWED} | {"sql": sql},
            warnings=frame.notes,
        )

    def run(self, work: ServiceWork, parameters: Any) -> ServiceOutcome:  # SqlQuestion or BuiltQuestion
        """Ask the rows, from the reserved budget."""
        work.progress(0.1, "reading the rows")
        # Parsed again: a job keeps the text, and the worker is another process than the one that planned.
        frame = private_table(work).sql(self._sql(parameters), **parameters.price())
        work.progress(0.9, "writing the answer")
        return ServiceOutcome(
            document=frame.to_dict(),
            summary=tuple((str(name), str(text)) for name, text in frame.summary()),
            guarantee=frame.guarantee.to_dict(),
            figure=_figure(frame),
            files=(csv_file("answer.csv", frame.to_arrow(margins=True)),),
        )

    def _sql(self, parameters: Any) -> str:  # SqlQuestion or BuiltQuestion
        raise NotImplementedError


class AskInSql(_Asking):
    """Private questions in SQL."""

    name: ClassVar[str] = "query.sql"
    title: ClassVar[str] = "Ask in SQL"
    summary: ClassVar[str] = "Counts, sums, means, quantiles and groups, with noise and a margin of error."
    parameters: ClassVar[type[ServiceParameters]] = SqlQuestion
    page: ClassVar[str] = "ask_sql.html"

    def _sql(self, parameters: SqlQuestion) -> str:
        return parameters.sql


class AskByParts(_Asking):
    """Private questions for people who do not write SQL."""

    name: ClassVar[str] = "query.build"
    title: ClassVar[str] = "Ask without SQL"
    summary: ClassVar[str] = "Choose what to count or average, of whom, and in which groups."
    parameters: ClassVar[type[ServiceParameters]] = BuiltQuestion
    page: ClassVar[str] = "ask_parts.html"

    def _sql(self, parameters: BuiltQuestion) -> str:
        return sql_of(parameters.question)


service_registry.register(AskInSql.name)(AskInSql())
service_registry.register(AskByParts.name)(AskByParts())


def _same(noise: str, select: exp.Select) -> str:
    """Return what two questions that share an answer have in common: what is asked of the rows, and how it is shown.

    The library finds noise again under what is asked of the rows alone. The hub keeps whole answers, so that names,
    order, limits and what is computed after the noise tell questions apart; spaces and comments do not.
    """
    return f"{noise} || shown as {select.sql(comments=False)}"


def _figure(frame: Frame) -> str:
    """Return a chart where there is one to draw."""
    if not 1 < len(frame) <= _MOST_MARKS or len(frame.columns) < 2:
        return ""
    return frame.plot().to_svg()
