"""``cloister query``: one private answer to one SQL question, with its price and its margin of error.

Everything that can be wrong with the question, its price and its files is found before an account is opened or charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.asked import Asked
from cloister.cli.commands import command
from cloister.cli.opening import find_ledger, is_new_account, open_book, open_confirmed
from cloister.cli.output import Output, amount
from cloister.cli.query_text import show_answer, show_preview
from cloister.cli.reading import reading
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.data.table import Table
    from cloister.queries import Frame, Preview, PrivateTable

_EXAMPLE = (
    "cloister query visits.csv --schema visits.schema.yaml --epsilon 0.1 --preview \\\n"
    '      --sql "SELECT diagnosis, COUNT(*) AS visits FROM data GROUP BY diagnosis"'
)


def _option(name: str, metavar: str, text: str, **settings: Any) -> Callable[..., Any]:  # click's own settings
    return click.option(name, metavar=metavar, help=text, **settings)


@command("query", example=_EXAMPLE)
@click.argument("data", metavar="DATA")
@_option("--schema", "FILE", "What the columns are; see cloister schema.", required=True)
@_option("--sql", "TEXT", "The question, about a table called data.", required=True)
@_option("--epsilon", "NUMBER", "What the answer may cost: smaller protects better and errs more.")
@_option("--delta", "NUMBER", "A slack, such as 1e-6, that allows Gaussian noise and groups that are not public.")
@_option("--rho", "NUMBER", "The price in rho (zero-concentrated differential privacy), in place of epsilon.")
@click.option("--preview", is_flag=True, help="Say what it would cost and how far off it would be; spend nothing.")
@_option("--error", "NUMBER", "With --preview: the error that you want, to learn which epsilon it takes.")
@_option("--rows", "NUMBER", "With --preview: a guess of the rows in each group, for means.", type=click.IntRange(1))
@_option("--ledger", "URL", "Where spending is remembered, such as sqlite:///budget.db.")
@_option("--dataset", "NAME", "The account in the ledger.")
@_option("--budget-epsilon", "NUMBER", "For an account's first use: the epsilon that may be spent in all.")
@_option("--budget-delta", "NUMBER", "For an account's first use: the delta that may be spent in all.")
@_option("--budget-rho", "NUMBER", "For an account's first use: the budget in rho, in place of epsilon.")
@_option("--analyst", "NAME", "Who asks; a limit that the ledger has for them applies.")
@_option("--unit", "COLUMN", 'The column that names a person, or "row"; by default the subject of the schema.')
@_option("--limit", "NUMBER", "How many rows a person counts for.", type=click.IntRange(1))
@_option("--data-version", "TEXT", "Which version of the data this is; answers to others are not repeated.", default="")
@click.option("--fresh", is_flag=True, help="Pay for new noise where the ledger has a stored answer.")
@_option("--plot", "FILE", "Draw the answer: .svg, .png, .html or .json.")
@click.option("--force", is_flag=True, help="Replace the file of --plot if it is there.")
@reading
def query(output: Output, **options: Any) -> None:  # click's options
    """Answer one SQL question about a table with privacy, and say how far off the answer may be.

    DATA is a CSV or Parquet file (also compressed, also several with *), or the address of a database table.

    The price is taken from the budget before the table is read. Without --ledger nothing is remembered, and every
    further answer reveals more.
    """
    asked = Asked(**options)
    asked.check()
    with output.progress("Opening the table"):
        table = open_confirmed(asked.data, asked.schema, encoding=asked.encoding, missing=asked.missing)
    forecast = _rehearse(asked, table)
    if asked.preview:
        _preview(output, asked, table, forecast)
    else:
        _answer(output, asked, table, forecast)


def _private(asked: Asked, table: Table, **account: Any) -> PrivateTable:
    from cloister.queries import PrivateTable

    subject = None if table.schema is None else table.schema.subject
    unit = asked.unit or subject or "row"
    return PrivateTable(table, unit=unit, max_rows_per_unit=asked.limit, version=asked.data_version, **account)


def _rehearse(asked: Asked, table: Table) -> Preview:
    """Plan the question with a budget in memory: whatever is wrong with it shows here, at no cost."""
    private = _private(asked, table, budget=asked.pretended_budget)
    return private.preview(asked.sql, rows=asked.rows, **asked.offer)


def _preview(output: Output, asked: Asked, table: Table, forecast: Preview) -> None:
    known = None if asked.ledger is None else _remaining(asked, table)
    if known is not None:
        forecast = replace(forecast, remaining=known, cost=known.cost_of(forecast.guarantee))
    document = {**forecast.to_dict(), "sql": asked.sql, "dataset": asked.dataset}
    output.document(document if known is not None else {**document, "remaining": None, "affordable": None})
    show_preview(output, asked, forecast)


def _remaining(asked: Asked, table: Table) -> Budget:
    """Return what is left, without opening an account that does not exist."""
    book = find_ledger(asked.payer)
    if book is None:
        return asked.stated_budget
    with book:
        if is_new_account(asked.payer, book):
            return asked.stated_budget
        return _private(asked, table, ledger=book, dataset=asked.dataset, analyst=asked.analyst).remaining


def _answer(output: Output, asked: Asked, table: Table, forecast: Preview) -> None:
    if asked.ledger is None:
        private = _private(asked, table, budget=asked.price_budget)
        _report(output, asked, _ask(output, asked, private), None)
        return
    with open_book(asked.payer) as book:
        is_new = is_new_account(asked.payer, book)
        budget = asked.stated_budget if is_new else None
        if budget is not None:
            budget.check_covers(budget.cost_of(forecast.guarantee))
        private = _private(asked, table, ledger=book, dataset=asked.dataset, budget=budget, analyst=asked.analyst)
        if is_new:
            output.say(f'The account "{asked.dataset}" is new. Its budget is {amount(asked.stated_budget)}, ever.')
        _report(output, asked, _ask(output, asked, private), private.remaining)


def _ask(output: Output, asked: Asked, private: PrivateTable) -> Frame:
    with output.progress("Asking"):
        return private.sql(asked.sql, fresh=asked.fresh, **asked.price)


def _report(output: Output, asked: Asked, frame: Frame, remaining: Budget | None) -> None:
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
