"""What ``cloister query`` says: question, price, answer with its margins, promise and notes, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cloister.cli.asked import Asked
from cloister.cli.output import Output, amount

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.core.guarantees import Guarantee
    from cloister.queries import Estimate, Frame, Preview
    from cloister.queries.preview import Forecast

_NO_LEDGER = (
    "Nothing remembers what was spent, because no ledger was given. Asking again gives other noise, spends again, and\n"
    "reveals more each time. To keep count, add: --ledger sqlite:///budget.db --dataset NAME --budget-epsilon NUMBER"
)


def show_answer(output: Output, asked: Asked, frame: Frame, remaining: Budget | None) -> None:
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


def show_preview(output: Output, asked: Asked, preview: Preview) -> None:
    """Print what an answer would cost and miss."""
    output.heading("Question")
    output.say(asked.sql)
    output.heading("Price")
    if asked.error is not None:
        output.say(f"An error of {asked.error} needs {amount(preview.cost)}.")
    output.say(_offer(asked, preview))
    output.heading("Expected error")
    places = "in every group, chosen privately" if preview.groups is None else f"in each of {preview.groups:,} groups"
    where = "" if preview.groups == 1 else f", {places}"
    output.say(f"19 times out of 20{where}, the error would be:")
    _show_forecasts(output, preview.forecasts)
    output.heading("What would be promised")
    _show_promise(output, asked, preview.guarantee)
    output.say("\nThis was a preview. The table was opened, not counted; nothing was spent and nothing was written.")


def _price(asked: Asked, frame: Frame, remaining: Budget | None) -> str:
    if remaining is None:
        return f"{_capitalized(amount(frame.cost))}.\n{_NO_LEDGER}"
    left = f"{_capitalized(amount(remaining))} is left{_whose(asked)}."
    if not frame.cost.amount:
        return f"Nothing: this was asked before, and the stored answer is repeated. {left}"
    return f"{_capitalized(amount(frame.cost))}, taken before the table was read. {left}"


def _offer(asked: Asked, preview: Preview) -> str:
    if asked.ledger is None:
        return f"{_capitalized(amount(preview.cost))}. No ledger was given, so what is left of a budget is not known."
    verdict = "enough" if preview.is_affordable else "not enough"
    left = f"{_capitalized(amount(preview.remaining))} is left{_whose(asked)}: {verdict}."
    return f"{_capitalized(amount(preview.cost))}. {left}"


def _whose(asked: Asked) -> str:
    return f' of "{asked.dataset}"' if asked.analyst is None else f' of "{asked.dataset}" for {asked.analyst}'


def _show_frame(output: Output, frame: Frame) -> None:
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


def _show_promise(output: Output, asked: Asked, guarantee: Guarantee) -> None:
    output.say(guarantee.explain())
    if guarantee.unit == "row" and asked.unit is None:
        output.say("Rows are protected one by one. Where a person may have several, add: --unit COLUMN --limit NUMBER")


def _show_forecasts(output: Output, forecasts: Sequence[Forecast]) -> None:
    rows = [[item.name, _off_by(item), "" if item.rows is None else f"{item.rows:,}"] for item in forecasts]
    columns = ["number", "off by at most", "if so many rows are counted"]
    shown = 3 if any(item.rows is not None for item in forecasts) else 2
    output.table(columns[:shown], [row[:shown] for row in rows])


def _off_by(item: Forecast) -> str:
    return item.note if math.isnan(item.margin) else _width(item.margin)


def _show_notes(output: Output, frame: Frame) -> None:
    if frame.notes:
        output.heading("Notes")
    for note in frame.notes:
        output.say(f"- {note}")


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
