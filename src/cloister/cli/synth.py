"""``cloister synth``: a synthetic table from one line, and more rows of it for nothing.

``cloister synth DATA …`` is short for ``cloister synth fit DATA …``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import CommandOutput, HelpfulGroup, amount, command
from cloister.cli.options import (
    Payer,
    certificate_options,
    check_target,
    find_ledger,
    is_certified_model,
    is_new_account,
    open_confirmed,
    open_payer_ledger,
    payer_of,
    reading_options,
    refuse_without_ledger,
    say_certified,
    signing_key_of,
)
from cloister.errors import ParameterError, SourceNotFoundError

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.data.table import Table
    from cloister.synth.base import Synthesizer
    from cloister.synth.expectation import SynthesisPreview


_TABLE_ENDINGS = (".csv", ".parquet", ".pq")
_MODELS = (".cloister", ".json")
_CONSTRAINTS = "- at_most: [admitted, discharged]\n- impossible: {sex: male, diagnosis: pregnancy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthOptions:
    """The options of a fit; numbers are still text, so that they stay exact."""

    data: str
    schema: str
    epsilon: str
    delta: str | None
    method: str
    settings: tuple[str, ...]
    rows: int | None
    columns: str | None
    bins: tuple[str, ...]
    complete: str | None
    constraints: str | None
    expected_rows: int | None
    unit: str | None
    max_rows: int | None
    ledger: str | None
    dataset: str | None
    budget_epsilon: str | None
    budget_delta: str | None
    analyst: str | None
    preview: bool
    target: str | None
    report: str | None
    card: str | None
    model: str | None
    force: bool
    signing_key: str | None
    no_certificate: bool
    encoding: str | None
    missing: tuple[str, ...]

    def check(self) -> None:
        """Refuse options that do not belong together, and files that could not be written."""
        if not self.preview and self.target is None:
            raise ParameterError("Nothing says where to write the rows.", fix="add -o made-up.csv.")
        inputs = [self.data, self.schema, self.constraints]
        check_target(self.target, inputs=inputs, force=self.force, endings=_TABLE_ENDINGS)
        check_target(self.model, inputs=inputs, force=self.force, endings=_MODELS)
        for page in (self.report, self.card):
            check_target(page, inputs=inputs, force=self.force)
        written = [Path(path).resolve() for path in (self.target, self.model, self.report, self.card) if path]
        if len(set(written)) < len(written):
            raise ParameterError("Two files to write have the same name.", fix="give each a name of its own.")
        if self.ledger is None:
            refuse_without_ledger(dataset=self.dataset, analyst=self.analyst, budget_epsilon=self.budget_epsilon)
        self._paying()

    @property
    def payer(self) -> Payer:
        """Return which account pays; there is a ledger."""
        found = self._paying()
        if found is None:  # pragma: no cover  # asked only with a ledger
            raise ParameterError("There is no ledger.", fix="add --ledger.")
        return found

    def _paying(self) -> Payer | None:
        return payer_of(
            ledger=self.ledger,
            dataset=self.dataset,
            budget_epsilon=self.budget_epsilon,
            budget_delta=self.budget_delta,
        )

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
            columns=None if self.columns is None else _split_names(self.columns),
            bins=_bins(self.bins),
            complete=self.complete == "all" or _split_names(self.complete or ""),
            constraints=_constraints(self.constraints),
            expected_rows=self.expected_rows,
            analyst=self.analyst,
            unit=self.unit or table.schema.subject or "row",
            max_rows_per_unit=self.max_rows or 1,
        )


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


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
    return [dt.date.fromisoformat(part) if part.count("-") == 2 else float(part) for part in _split_names(text)]


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
_TABLES = (".csv", ".parquet", ".pq")
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


def _option(*names: str, metavar: str, text: str, **settings: Any) -> Callable[..., Any]:  # click's own settings
    return click.option(*names, metavar=metavar, help=text, **settings)


@command("fit", example=_FIT, group=synth)
@click.argument("data", metavar="DATA")
@_option("--schema", metavar="FILE", text="What the columns are; see cloister schema.", required=True)
@_option("--epsilon", metavar="NUMBER", text="What measuring may cost: smaller protects better.", required=True)
@_option("--delta", metavar="NUMBER", text="A slack, such as 1e-6, that makes the noise smaller.")
@_option("--method", metavar="NAME", text="The synthesizer.", default="adaptive", show_default=True)
@_option("--set", "settings", metavar="NAME=VALUE", text="A setting of the method; repeat for more.", multiple=True)
@_option(
    "--rows", metavar="N", text="How many rows to write; by default about as many as DATA.", type=click.IntRange(1)
)
@_option("--columns", metavar="COLUMNS", text="Which columns, with commas; by default all but identifiers.")
@_option(
    "--bins",
    metavar="N",
    text="Bins of numbers and dates: 32, age=10, or edges age=0,18,65; repeat for more.",
    multiple=True,
)
@_option("--complete", metavar="COLUMNS", text='Columns that never miss a value, with commas, or "all".')
@_option("--constraints", metavar="FILE", text="What is known to hold between columns: .yaml.")
@_option("--expected-rows", metavar="N", text="About how many rows DATA has, if public.", type=click.IntRange(1))
@_option("--unit", metavar="COLUMN", text='The column that names a person, or "row"; by default the schema\'s subject.')
@_option("--max-rows", metavar="N", text="How many rows of a person are used.", type=click.IntRange(1))
@_option("--ledger", metavar="URL", text="Where spending is remembered, such as sqlite:///budget.db.")
@_option("--dataset", metavar="NAME", text="The account in the ledger.")
@_option("--budget-epsilon", metavar="NUMBER", text="For an account's first use: the epsilon to be spent in all.")
@_option("--budget-delta", metavar="NUMBER", text="For an account's first use: the delta to be spent in all.")
@_option("--analyst", metavar="NAME", text="Who asks; a limit that the ledger has for them applies.")
@click.option("--preview", is_flag=True, help="Say what it would cost and how exact it would be; spend nothing.")
@_option("-o", "--output", "target", metavar="FILE", text="Where to write the rows: .csv or .parquet.")
@_option("--report", metavar="FILE", text="Compare the rows with DATA, for your eyes only: .html, .md or .json.")
@_option("--card", metavar="FILE", text="What may be handed out with the rows: .html, .md or .json.")
@_option("--model", metavar="FILE", text="Keep the model, for more rows: .cloister or .json.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@certificate_options
@reading_options
def fit(output: CommandOutput, **options: Any) -> None:  # click's options
    """Measure a table with noise, and write made-up rows that are drawn from the measurements.

    DATA is a CSV or Parquet file (also several with *), or the address of a database table.

    What is promised, what it costs and how exact the counts will be is said first; the price is taken from the budget
    before the table is read. Rows are free: cloister synth sample draws more from a saved model.
    """
    asked = SynthOptions(**options)
    asked.check()
    with output.progress("Opening the table"):
        table = open_confirmed(asked.data, asked.schema, encoding=asked.encoding, missing=asked.missing)
    synthesizer = asked.synthesizer(table)
    forecast = synthesizer.preview(table)
    if forecast.event is None and asked.ledger is not None:
        raise ParameterError(f"{asked.method} takes nothing from a budget.", fix="leave --ledger out.")
    if asked.preview:
        _show_preview(output, asked, forecast)
        return
    certified = [str(path) for path in (asked.target, asked.model) if path is not None]
    key = signing_key_of(options, targets=certified, inputs=[asked.data, asked.schema, asked.constraints])
    with nullcontext() if asked.ledger is None else open_payer_ledger(asked.payer) as book:
        left = None if book is None else _account(output, asked, book, forecast)
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
    say_certified(output, str(asked.target), key)


@command("sample", example=_SAMPLE, group=synth)
@click.argument("model", metavar="MODEL")
@_option(
    "-n", "--rows", metavar="N", text="How many rows; by default about as many as the data.", type=click.IntRange(1)
)
@_option(
    "--where", metavar="COLUMN=VALUE", text="Only such rows; LOW..HIGH is a range; repeat for more.", multiple=True
)
@_option("--seed", metavar="N", text="A number that gives the same rows again.", type=click.IntRange(0))
@_option("-o", "--output", "target", metavar="FILE", text="Where to write: .csv or .parquet.", required=True)
@_option("--card", metavar="FILE", text="What may be handed out with the rows: .html, .md or .json.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@certificate_options
def sample(output: CommandOutput, **options: Any) -> None:  # click's options
    """Draw rows from a saved model. It costs nothing, as often as wanted.

    MODEL is a file that cloister synth --model wrote. The rows get a certificate if the model has one: what an
    unknown file says of itself is not signed.
    """
    for name, endings in (("target", {"endings": _TABLES}), ("card", {})):
        check_target(options[name], inputs=[options["model"]], force=options["force"], **endings)
    key = signing_key_of(options, targets=[options["target"]], inputs=[options["model"]])
    is_vouched = key is not None and is_certified_model(options["model"], key)
    from cloister.synth.conditions import read_conditions
    from cloister.synth.documents import load

    with output.progress("Drawing rows"):
        model = load(options["model"])
        conditions = read_conditions(options["where"], model.fitted_facts.domain)
        made = model.sample(options["rows"], conditions=conditions, random_state=options["seed"])
        made.write(options["target"], overwrite=options["force"])
        if key is not None and is_vouched:
            model.certify(options["target"], signing_key=key, conditions=options["where"], overwrite=options["force"])
        if options["card"] is not None:
            model.report(options["card"])
    document = {"schema": "cloister.synthetic_rows/1", "model": options["model"], "output": options["target"]}
    document |= {"rows": made.count(), "columns": list(made.columns), "guarantee": model.guarantee_.to_dict()}
    output.document(document)
    output.say(f"{made.count():,} made-up rows are in {options['target']}. The model: {model.guarantee_.brief()}.")
    if key is not None and not is_vouched:
        output.say(
            f"No certificate was written: nobody whose key you know vouches for {options['model']}. "
            "Keep a model together with the certificate that cloister synth --model writes beside it."
        )
    say_certified(output, options["target"], key if is_vouched else None)


def _account(output: CommandOutput, asked: SynthOptions, book: Any, forecast: SynthesisPreview) -> Budget:
    """Open an account that is new, and return what is left."""
    if is_new_account(asked.payer, book):
        budget: Any = asked.payer.budget
        promise: Any = forecast.guarantee
        budget.check_covers(budget.cost_of(promise))
        book.open_account(str(asked.dataset), budget=budget, unit=promise.unit, adjacency=promise.adjacency)
        output.say(f'The account "{asked.dataset}" is new. Its budget is {amount(budget)}, ever.')
    left: Budget = book.remaining(str(asked.dataset), analyst=asked.analyst)
    return left


def _say_price(output: CommandOutput, asked: SynthOptions, forecast: SynthesisPreview, left: Budget | None) -> None:
    output.say(
        f"This costs {forecast.guarantee.brief()}."
        if forecast.event is not None
        else f"This takes nothing from a budget: {forecast.guarantee.explain()}"
    )
    if left is not None:
        output.say(f"Left before it: {amount(left)}.")
    elif forecast.event is not None:
        output.say("Nothing remembers what was spent: add --ledger to keep count of several releases.")
    output.say(f"\n{forecast.explain()}")
    if asked.expected_rows is not None and forecast.expectations:
        worst = max(forecast.expectations, key=lambda item: item.error(asked.expected_rows or 1))
        share = worst.error(asked.expected_rows)
        output.say(
            f"With about {asked.expected_rows:,} rows, noise alone misplaces {share:.0%} of them in {worst.what}."
        )
    output.say()


def _show_preview(output: CommandOutput, asked: SynthOptions, forecast: SynthesisPreview) -> None:
    left = None
    if asked.ledger is not None:
        book = find_ledger(asked.payer)
        with book or nullcontext():
            if book is None or is_new_account(asked.payer, book):
                left = asked.payer.budget
            else:
                left = book.remaining(str(asked.dataset), analyst=asked.analyst)
    document = {"method": asked.method, "dataset": asked.dataset, "remaining": None if left is None else left.to_dict()}
    output.document({**forecast.to_dict(), **document})
    _say_price(output, asked, forecast, left)
    output.say("Nothing was spent.")


def _write(asked: SynthOptions, synthesizer: Synthesizer, table: Table, made: Table) -> None:
    """Write everything that was paid for; the model first, so that no failure costs it."""
    if asked.model is not None:
        synthesizer.save(asked.model, overwrite=asked.force)
    made.write(str(asked.target), overwrite=asked.force)
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
            "output": asked.target,
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
    output.say(f"{made.count():,} made-up rows are in {asked.target}. {synthesizer.guarantee_.explain()}")
    if asked.report is not None:
        output.say(f"The report is in {asked.report}: for your eyes, since it looks at the rows themselves.")
    if asked.card is not None:
        output.say(f"What may be handed out with the rows is in {asked.card}.")
    if asked.model is not None:
        output.say(f"The model is in {asked.model}; cloister synth sample draws more rows from it for nothing.")
    if left is not None:
        output.say(f"Left: {amount(left)}.")
