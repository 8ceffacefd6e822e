"""``cloister query``: one private answer to one SQL question, with its price and its margin of error.

Everything that can be wrong with the question, its price and its files is found before an account is opened or charged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.accounts import find_ledger, is_new_account, open_payer_ledger, say_new_account
from cloister.cli.commands import CommandOutput, command
from cloister.cli.options import (
    CHARTS,
    NumberText,
    PaidOptions,
    check_chart,
    data_options,
    file_option,
    ledger_options,
    option,
    output_options,
    price_options,
)
from cloister.core.wordings import join_words
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.core.guarantees import Guarantee
    from cloister.data.table import Table
    from cloister.queries import Estimate, Frame, Preview, PrivateTable
    from cloister.queries.preview import Forecast


_NO_LEDGER = (
    "Nothing remembers what was spent, because no ledger was given. Asking again gives other noise, spends again, and\n"
    "reveals more each time. To keep count, add: --ledger sqlite:///budget.db --dataset NAME --budget-epsilon NUMBER"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions(PaidOptions):
    """The options of the command."""

    sql: str
    error: str | None
    rows: int | None
    data_version: str
    fresh: bool
    plot: str | None

    def check(self) -> None:
        """Refuse options that do not belong together, and a chart that could not be written."""
        self._check_price()
        self.check_ledger(fresh=self.fresh)
        if self.preview and self.plot is not None:
            raise ParameterError("A preview has nothing to draw.", fix="leave --plot or --preview out.")
        check_chart(self.plot, inputs=self.inputs, force=self.force)

    @property
    def price(self) -> dict[str, Any]:
        """Return the price as the library takes it."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def offer(self) -> dict[str, Any]:
        """Return the price, or the wanted error."""
        return self.price if self.error is None else {**self.price, "error": self.error}

    def _check_price(self) -> None:
        if self.error is not None and not self.preview:
            raise ParameterError(
                "--error asks for a price; an answer has to name one.",
                fix="add --preview to learn the epsilon, then ask with --epsilon.",
            )
        if self.rows is not None and not self.preview:
            raise ParameterError("--rows is a guess for --preview.", fix="add --preview, or leave --rows out.")
        wanted = {"--epsilon": self.epsilon, "--rho": self.rho, "--error": self.error}
        given = [name for name, value in wanted.items() if value is not None]
        if len(given) != 1:
            problem = f"{join_words(given)} exclude each other." if given else "The answer has no price."
            raise ParameterError(
                problem, fix="say what it may cost, such as --epsilon 0.1; add --preview to see the error first."
            )


def show_answer(output: CommandOutput, asked: QueryOptions, frame: Frame, remaining: Budget | None) -> None:
    """Print an answer."""
    output.heading("Question")
    output.say(asked.sql)
    output.heading("Price")
    output.say(_price(asked, frame, remaining))
    output.heading("Answer")
    _show_frame(output, frame)
    output.heading("What is promised")
    _show_promise(output, asked, frame.guarantee)
    _show_notes(output, frame)


def show_preview(output: CommandOutput, asked: QueryOptions, preview: Preview) -> None:
    """Print what an answer would cost and miss."""
    output.heading("Question")
    output.say(asked.sql)
    output.heading("Price")
    if asked.error is not None:
        output.say(f"An error of {asked.error} needs {preview.cost.words}.")
    output.say(_offer(asked, preview))
    output.heading("Expected error")
    places = "in every group, chosen privately" if preview.groups is None else f"in each of {preview.groups:,} groups"
    where = "" if preview.groups == 1 else f", {places}"
    output.say(f"19 times out of 20{where}, the error would be:")
    _show_forecasts(output, preview.forecasts)
    output.heading("What would be promised")
    _show_promise(output, asked, preview.guarantee)
    output.say("\nThis was a preview. The table was opened, not counted; nothing was spent and nothing was written.")


def _price(asked: QueryOptions, frame: Frame, remaining: Budget | None) -> str:
    if remaining is None:
        return f"{_capitalize(frame.cost.words)}.\n{_NO_LEDGER}"
    left = f"{_capitalize(remaining.words)} is left{_whose(asked)}."
    if not frame.cost.amount:
        return f"Nothing: this was asked before, and the stored answer is repeated. {left}"
    return f"{_capitalize(frame.cost.words)}, taken before the table was read. {left}"


def _offer(asked: QueryOptions, preview: Preview) -> str:
    if asked.ledger is None:
        return f"{_capitalize(preview.cost.words)}. No ledger was given, so what is left of a budget is not known."
    verdict = "enough" if preview.is_affordable else "not enough"
    left = f"{_capitalize(preview.remaining.words)} is left{_whose(asked)}: {verdict}."
    return f"{_capitalize(preview.cost.words)}. {left}"


def _whose(asked: QueryOptions) -> str:
    return f' of "{asked.dataset}"' if asked.analyst is None else f' of "{asked.dataset}" for {asked.analyst}'


def _show_frame(output: CommandOutput, frame: Frame) -> None:
    if not len(frame):
        output.say("No rows: no group is large enough to be shown, or none meets HAVING.")
        return
    if len(frame) == 1 and not any(column.is_key for column in frame.columns):
        for column in frame.columns:
            output.say(f"{column.name}: {_cells(column)[0][0]}{_give_or_take(column)}")
    else:
        columns = [_cells(column) for column in frame.columns]
        names = [name for column in frame.columns for name in ([column.name] if column.is_key else [column.name, "±"])]
        output.table(names, [[cell for column in columns for cell in column[row]] for row in range(len(frame))])
    if any(math.isfinite(margin) for margins in frame.margin().values() for margin in margins):
        output.say("± is how far off a number may be: at most that far, 19 times out of 20.")


def _cells(column: Estimate) -> list[list[str]]:
    from cloister.queries.answers import show_number

    if column.is_key:
        return [[str(value)] for value in column.values]
    return [
        [show_number(value, float(margin)), _width(float(margin))]
        for value, margin in zip(column.values, column.margins(), strict=True)
    ]


def _width(margin: float) -> str:
    from cloister.queries.answers import show_number

    if math.isnan(margin):
        return "see notes"
    return show_number(margin, margin) if math.isfinite(margin) else "unknown"


def _give_or_take(column: Estimate) -> str:
    margin = float(column.margins()[0])
    if math.isnan(margin):
        return " (how far off: see notes)"
    return f" ± {_width(margin)}"


def _show_promise(output: CommandOutput, asked: QueryOptions, guarantee: Guarantee) -> None:
    output.say(guarantee.explain())
    if guarantee.unit == "row" and asked.unit is None:
        output.say("Rows are protected one by one. Where a person may have several, add: --unit COLUMN --limit NUMBER")


def _show_forecasts(output: CommandOutput, forecasts: Sequence[Forecast]) -> None:
    rows = [[item.name, _off_by(item), "" if item.rows is None else f"{item.rows:,}"] for item in forecasts]
    columns = ["number", "off by at most", "if so many rows are counted"]
    shown = 3 if any(item.rows is not None for item in forecasts) else 2
    output.table(columns[:shown], [row[:shown] for row in rows])


def _off_by(item: Forecast) -> str:
    return item.note if math.isnan(item.margin) else _width(item.margin)


def _show_notes(output: CommandOutput, frame: Frame) -> None:
    if frame.notes:
        output.heading("Notes")
    for note in frame.notes:
        output.say(f"- {note}")


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


_EXAMPLE = (
    "cloister query visits.csv --schema visits.schema.yaml --epsilon 0.1 --preview \\\n"
    '      --sql "SELECT diagnosis, COUNT(*) AS visits FROM data GROUP BY diagnosis"'
)


@command("query", example=_EXAMPLE)
@click.argument("data", metavar="DATA")
@option("--sql", metavar="TEXT", text="The question, about a table called data.", required=True)
@option(
    "--error",
    metavar="NUMBER",
    text="With --preview: the error that you want, to learn which epsilon it takes.",
    type=NumberText(),
)
@option(
    "--rows",
    metavar="NUMBER",
    text="With --preview: a guess of the rows in each group, for means.",
    type=click.IntRange(1),
)
@option(
    "--data-version",
    metavar="TEXT",
    text="Which version of the data this is; answers to others are not repeated.",
    default="",
)
@option("--fresh", text="Pay for new noise where the ledger has a stored answer.")
@data_options()
@price_options(rho=True)
@ledger_options(rho=True)
@output_options(more=[file_option("--plot", text="Draw the answer", endings=CHARTS)])
def query(output: CommandOutput, **options: Any) -> None:  # click's options
    """Answer one SQL question about a table with privacy, and say how far off the answer may be.

    DATA is a CSV or Parquet file (also compressed, also several with *), or the address of a database table.

    The price is taken from the budget before the table is read. Without --ledger nothing is remembered, and every
    further answer reveals more.
    """
    asked = QueryOptions(**options)
    asked.check()
    with output.progress("Opening the table"):
        table = asked.open_table()
    forecast = _rehearse(asked, table)
    if asked.preview:
        _preview(output, asked, table, forecast)
    else:
        _answer(output, asked, table, forecast)


def _private(asked: QueryOptions, table: Table, **account: Any) -> PrivateTable:
    from cloister.queries import PrivateTable

    unit = asked.unit_of(table)
    return PrivateTable(table, unit=unit, max_rows_per_unit=asked.limit, version=asked.data_version, **account)


def _rehearse(asked: QueryOptions, table: Table) -> Preview:
    """Plan the question with a budget in memory: whatever is wrong with it shows here, at no cost."""
    from cloister.accounting.budget import Budget

    pretended = Budget(epsilon=1) if asked.rho is None else Budget(rho=1)
    private = _private(asked, table, budget=pretended)
    return private.preview(asked.sql, rows=asked.rows, **asked.offer)


def _preview(output: CommandOutput, asked: QueryOptions, table: Table, forecast: Preview) -> None:
    known = None if asked.ledger is None else _remaining(asked, table)
    if known is not None:
        forecast = replace(forecast, remaining=known, cost=known.cost_of(forecast.guarantee))
    document = {**forecast.to_dict(), "sql": asked.sql, "dataset": asked.dataset}
    output.document(document if known is not None else {**document, "remaining": None, "affordable": None})
    show_preview(output, asked, forecast)


def _remaining(asked: QueryOptions, table: Table) -> Budget | None:
    """Return what is left, without opening an account that does not exist."""
    book = find_ledger(asked.payer)
    if book is None:
        return asked.stated_budget
    with book:
        if is_new_account(asked.payer, book):
            return asked.stated_budget
        return _private(asked, table, ledger=book, dataset=asked.dataset, analyst=asked.analyst).remaining


def _answer(output: CommandOutput, asked: QueryOptions, table: Table, forecast: Preview) -> None:
    if asked.ledger is None:
        from cloister.accounting.budget import Budget

        private = _private(asked, table, budget=Budget(**asked.price))
        _report(output, asked, _ask(output, asked, private), None)
        return
    with open_payer_ledger(asked.payer) as book:
        budget = asked.stated_budget if is_new_account(asked.payer, book) else None
        if budget is not None:
            budget.check_covers(budget.cost_of(forecast.guarantee))
        private = _private(asked, table, ledger=book, dataset=asked.dataset, budget=budget, analyst=asked.analyst)
        if budget is not None:
            say_new_account(output, str(asked.dataset), budget)
        _report(output, asked, _ask(output, asked, private), private.remaining)


def _ask(output: CommandOutput, asked: QueryOptions, private: PrivateTable) -> Frame:
    with output.progress("Asking"):
        return private.sql(asked.sql, fresh=asked.fresh, **asked.price)


def _report(output: CommandOutput, asked: QueryOptions, frame: Frame, remaining: Budget | None) -> None:
    left = None if remaining is None else remaining.to_dict()
    output.document(
        {**frame.to_dict(), "sql": asked.sql, "dataset": asked.dataset, "remaining": left, "plot": asked.plot}
    )
    show_answer(output, asked, frame, remaining)
    if asked.plot is not None:
        _draw(frame, asked.plot)
        output.say(f"\nThe chart is in {asked.plot}.")


def _draw(frame: Frame, target: str) -> None:
    try:
        frame.plot().save(target)
    except ParameterError as error:
        raise ParameterError(f"The answer is complete, but not its chart. {error.problem}", fix=error.fix) from None
