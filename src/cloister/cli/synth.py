"""``cloister synth``: a synthetic table from one line, and more rows of it for nothing.

``cloister synth DATA …`` is short for ``cloister synth fit DATA …``.
"""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.accounts import open_account, open_payer_ledger, remaining_of
from cloister.cli.certificates import is_certified_model, say_certified, signing_key_of
from cloister.cli.commands import CommandOutput, HelpfulGroup, command
from cloister.cli.options import (
    MODELS,
    REPORTS,
    TABLES,
    PaidOptions,
    check_target,
    data_options,
    file_option,
    ledger_options,
    option,
    output_options,
    price_options,
    split_names,
)
from cloister.core.wordings import percent
from cloister.errors import ParameterError, SourceNotFoundError

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.data.table import Table
    from cloister.synth.base import Synthesizer
    from cloister.synth.expectation import SynthesisPreview


_CONSTRAINTS = "- at_most: [admitted, discharged]\n- impossible: {sex: male, diagnosis: pregnancy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthOptions(PaidOptions):
    """The options of a fit."""

    method: str
    settings: tuple[str, ...]
    rows: int | None
    columns: str | None
    bins: tuple[str, ...]
    complete: str | None
    constraints: str | None
    expected_rows: int | None
    output_file: str | None
    report: str | None
    card: str | None
    model: str | None
    signing_key: str | None
    no_certificate: bool

    def check(self) -> None:
        """Refuse options that do not belong together, and files that could not be written."""
        if not self.preview and self.output_file is None:
            raise ParameterError("Nothing says where to write the rows.", fix="add -o made-up.csv.")
        inputs = [*self.inputs, self.constraints]
        check_target(self.output_file, inputs=inputs, force=self.force, endings=TABLES)
        check_target(self.model, inputs=inputs, force=self.force, endings=MODELS)
        for page in (self.report, self.card):
            check_target(page, inputs=inputs, force=self.force)
        written = [Path(path).resolve() for path in (self.output_file, self.model, self.report, self.card) if path]
        if len(set(written)) < len(written):
            raise ParameterError("Two files to write have the same name.", fix="give each a name of its own.")
        self.check_ledger()

    @property
    def name(self) -> str:
        """Return what the data are called on a report."""
        return Path(self.data).name

    def synthesizer(self, table: Table) -> Synthesizer:
        """Return the synthesizer that is asked for; it protects who is asked for, else the schema's person."""
        from cloister.synth.documents import make_synthesizer

        return make_synthesizer(
            self.method,
            settings=self.settings,
            epsilon=self.epsilon,
            delta=self.delta or 0,
            columns=None if self.columns is None else split_names(self.columns),
            bins=_bins(self.bins),
            complete=self.complete == "all" or split_names(self.complete or ""),
            constraints=_constraints(self.constraints),
            expected_rows=self.expected_rows,
            analyst=self.analyst,
            unit=self.unit_of(table),
            max_rows_per_unit=self.limit or 1,
        )


def _bins(given: tuple[str, ...]) -> Any:
    """Return one number for all columns, or numbers and edges by column."""
    if not given:
        return None
    try:
        if len(given) == 1 and "=" not in given[0]:
            return int(given[0])
        pairs = [item.partition("=") for item in given]
        return {name: _edges(text) if "," in text else int(text) for name, _, text in pairs}
    except ValueError:
        raise ParameterError(
            "--bins is not a number.",
            fix="write --bins 32 for all columns, --bins age=10 for some, or --bins age=0,18,65,111 for edges.",
        ) from None


def _edges(text: str) -> list[Any]:
    """Return the edges of bins: numbers, or dates."""
    return [dt.date.fromisoformat(part) if part.count("-") == 2 else float(part) for part in split_names(text)]


def _constraints(path: str | None) -> tuple[Any, ...]:
    if path is None:
        return ()
    from cloister.data.schema_file import load_yaml
    from cloister.synth.constraints import constraint_from_dict

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise SourceNotFoundError(f'"{path}" cannot be read.', fix="check the path of the constraints.") from None
    listed = load_yaml(text, what="list of constraints", example=_CONSTRAINTS)
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise ParameterError(f'"{path}" is not a list of constraints.', fix=f"write for example\n{_CONSTRAINTS}")
    return tuple(constraint_from_dict(item) for item in listed)


_FIT = (
    "cloister synth visits.csv --schema visits.schema.yaml --epsilon 1 --delta 1e-6 \\\n"
    "      -o made-up.csv --report quality.html --model visits.cloister"
)
_SAMPLE = "cloister synth sample visits.cloister -n 10000 --where sex=F -o women.csv"
_HELP = """Make a synthetic table, or more rows of one.

\b
  cloister synth DATA --schema S --epsilon E -o OUT      measure DATA and write made-up rows
  cloister synth sample MODEL -n N -o OUT                more rows of a saved model, for nothing

The first is short for "cloister synth fit DATA".
"""


class _Synth(HelpfulGroup):
    """A group in which what names no command is the data to fit."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command that is meant in front."""
        known = (*self.list_commands(ctx), *self.get_help_option_names(ctx))
        if args and args[0] not in known:
            args = ["fit", *args]
        return super().parse_args(ctx, args)


synth = _Synth(name="synth", help=_HELP)


_CARD = file_option("--card", text="Write what may be handed out with the rows", endings=REPORTS)


@command("fit", example=_FIT, group=synth)
@click.argument("data", metavar="DATA")
@option("--method", metavar="NAME", text="The synthesizer.", default="adaptive", show_default=True)
@option("--set", "settings", metavar="NAME=VALUE", text="A setting of the method; repeat for more.", multiple=True)
@option("--rows", metavar="N", text="How many rows to write; by default about as many as DATA.", type=click.IntRange(1))
@option("--columns", metavar="COLUMNS", text="Which columns, with commas; by default all but identifiers.")
@option(
    "--bins",
    metavar="N",
    text="Bins of numbers and dates: 32, age=10, or edges age=0,18,65; repeat for more.",
    multiple=True,
)
@option("--complete", metavar="COLUMNS", text='Columns that never miss a value, with commas, or "all".')
@option("--constraints", metavar="FILE", text="What is known to hold between columns: .yaml.")
@option("--expected-rows", metavar="N", text="About how many rows DATA has, if public.", type=click.IntRange(1))
@data_options()
@price_options()
@ledger_options()
@output_options(
    "the rows",
    report="Compare the rows with DATA, for your eyes only",
    more=[_CARD, file_option("--model", text="Keep the model, for more rows", endings=MODELS)],
    certificate=True,
)
def fit(output: CommandOutput, **options: Any) -> None:  # click's options
    """Measure a table with noise, and write made-up rows that are drawn from the measurements.

    DATA is a CSV or Parquet file (also several with *), or the address of a database table.

    What is promised, what it costs and how exact the counts will be is said first; the price is taken from the budget
    before the table is read. Rows are free: cloister synth sample draws more from a saved model.
    """
    asked = SynthOptions(**options)
    asked.check()
    with output.progress("Opening the table"):
        table = asked.open_table()
    synthesizer = asked.synthesizer(table)
    forecast = synthesizer.preview(table)
    if forecast.event is None and asked.ledger is not None:
        raise ParameterError(f"{asked.method} takes nothing from a budget.", fix="leave --ledger out.")
    if asked.preview:
        _show_preview(output, asked, forecast)
        return
    certified = [str(path) for path in (asked.output_file, asked.model) if path is not None]
    key = signing_key_of(options, targets=certified, inputs=[asked.data, asked.schema, asked.constraints])
    with nullcontext() if asked.ledger is None else open_payer_ledger(asked.payer) as book:
        left = None if book is None else open_account(output, asked.payer, book, forecast.guarantee)
        _say_price(output, asked, forecast, left)
        with output.progress("Measuring") as tell:
            synthesizer.ledger, synthesizer.dataset, synthesizer.progress = book, asked.dataset, tell
            synthesizer.fit(table)
        remaining = None if book is None else book.remaining(str(asked.dataset), analyst=asked.analyst)
    synthesizer.ledger = synthesizer.progress = None
    with output.progress("Writing"):
        made = synthesizer.sample(asked.rows)
        _write(asked, synthesizer, table, made)
        if key is not None:
            for path in certified:
                synthesizer.certify(path, signing_key=key, overwrite=asked.force)
    _show(output, asked, synthesizer, made, remaining)
    say_certified(output, str(asked.output_file), key)


@command("sample", example=_SAMPLE, group=synth)
@click.argument("model", metavar="MODEL")
@option(
    "-n", "--rows", metavar="N", text="How many rows; by default about as many as the data.", type=click.IntRange(1)
)
@option("--where", metavar="COLUMN=VALUE", text="Only such rows; LOW..HIGH is a range; repeat for more.", multiple=True)
@option("--seed", metavar="N", text="A number that gives the same rows again.", type=click.IntRange(0))
@output_options("the rows", required=True, more=[_CARD], certificate=True)
def sample(output: CommandOutput, **options: Any) -> None:  # click's options
    """Draw rows from a saved model. It costs nothing, as often as wanted.

    MODEL is a file that cloister synth --model wrote. The rows get a certificate if the model has one: what an
    unknown file says of itself is not signed.
    """
    for name, endings in (("output_file", {"endings": TABLES}), ("card", {})):
        check_target(options[name], inputs=[options["model"]], force=options["force"], **endings)
    key = signing_key_of(options, targets=[options["output_file"]], inputs=[options["model"]])
    is_vouched = key is not None and is_certified_model(options["model"], key)
    from cloister.synth.conditions import read_conditions
    from cloister.synth.documents import load

    with output.progress("Drawing rows"):
        model = load(options["model"])
        conditions = read_conditions(options["where"], model.fitted_facts.domain)
        made = model.sample(options["rows"], conditions=conditions, random_state=options["seed"])
        made.write(options["output_file"], overwrite=options["force"])
        if key is not None and is_vouched:
            model.certify(
                options["output_file"], signing_key=key, conditions=options["where"], overwrite=options["force"]
            )
        if options["card"] is not None:
            model.report(options["card"])
    document = {"schema": "cloister.synthetic_rows/1", "model": options["model"], "output": options["output_file"]}
    document |= {"rows": made.count(), "columns": list(made.columns), "guarantee": model.guarantee_.to_dict()}
    output.document(document)
    output.say(f"{made.count():,} made-up rows are in {options['output_file']}. The model: {model.guarantee_.brief()}.")
    if key is not None and not is_vouched:
        output.say(
            f"No certificate was written: nobody whose key you know vouches for {options['model']}. "
            "Keep a model together with the certificate that cloister synth --model writes beside it."
        )
    say_certified(output, options["output_file"], key if is_vouched else None)


def _say_price(output: CommandOutput, asked: SynthOptions, forecast: SynthesisPreview, left: Budget | None) -> None:
    output.say(
        f"This costs {forecast.guarantee.brief()}."
        if forecast.event is not None
        else f"This takes nothing from a budget: {forecast.guarantee.explain()}"
    )
    if left is not None:
        output.say(f"Left before it: {left.words}.")
    elif forecast.event is not None:
        output.say("Nothing remembers what was spent: add --ledger to keep count of several releases.")
    output.say(f"\n{forecast.explain()}")
    if asked.expected_rows is not None and forecast.expectations:
        worst = max(forecast.expectations, key=lambda item: item.error(asked.expected_rows or 1))
        share = worst.error(asked.expected_rows)
        output.say(
            f"With about {asked.expected_rows:,} rows, noise alone misplaces {percent(share)} of them in {worst.what}."
        )
    output.say()


def _show_preview(output: CommandOutput, asked: SynthOptions, forecast: SynthesisPreview) -> None:
    left = None if asked.ledger is None else remaining_of(asked.payer)
    document = {"method": asked.method, "dataset": asked.dataset, "remaining": None if left is None else left.to_dict()}
    output.document({**forecast.to_dict(), **document})
    _say_price(output, asked, forecast, left)
    output.say("Nothing was spent.")


def _write(asked: SynthOptions, synthesizer: Synthesizer, table: Table, made: Table) -> None:
    """Write everything that was paid for; the model first, so that no failure costs it."""
    if asked.model is not None:
        synthesizer.save(asked.model, overwrite=asked.force)
    made.write(str(asked.output_file), overwrite=asked.force)
    title = f"Made-up rows like {asked.name}"
    if asked.card is not None:
        synthesizer.report(asked.card, title=title)
    if asked.report is not None:
        _report(asked.report, synthesizer, table, made, title)


def _report(path: str, synthesizer: Synthesizer, table: Table, made: Table, title: str) -> None:
    """Write the comparison with the rows where there is one, then how they were made; it is not for publication."""
    from cloister.synth.row_comparison import compare_with_rows

    report = synthesizer.report(title=title)
    compared = compare_with_rows(synthesizer, table, made)
    if compared is not None:
        how = [section for section in report.sections if section.title != "What is promised"]
        report = compared.report(title=title).with_sections(*how)
    report.write(path)


def _show(
    output: CommandOutput, asked: SynthOptions, synthesizer: Synthesizer, made: Table, left: Budget | None
) -> None:
    output.document(
        {
            "schema": "cloister.synthesis/1",
            "method": asked.method,
            "output": asked.output_file,
            "rows": made.count(),
            "columns": list(made.columns),
            "guarantee": synthesizer.guarantee_.to_dict(),
            "steps": [step.to_dict() for step in synthesizer.steps_],
            "report": asked.report,
            "card": asked.card,
            "model": asked.model,
            "dataset": asked.dataset,
            "remaining": None if left is None else left.to_dict(),
        }
    )
    output.say(f"{made.count():,} made-up rows are in {asked.output_file}. {synthesizer.guarantee_.explain()}")
    if asked.report is not None:
        output.say(f"The report is in {asked.report}: for your eyes, since it looks at the rows themselves.")
    if asked.card is not None:
        output.say(f"What may be handed out with the rows is in {asked.card}.")
    if asked.model is not None:
        output.say(f"The model is in {asked.model}; cloister synth sample draws more rows from it for nothing.")
    if left is not None:
        output.say(f"Left: {left.words}.")
