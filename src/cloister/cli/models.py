"""``cloister train``, ``predict`` and ``evaluate``: a private model from one line, and what it says about rows.

The price of training is said before it is paid; predicting, and saying how often a model is right, costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import CommandOutput, amount, command
from cloister.cli.options import (
    Payer,
    check_column,
    check_target,
    find_ledger,
    is_new_account,
    open_confirmed,
    open_payer_ledger,
    payer_of,
    reading_options,
    refuse_without_ledger,
)
from cloister.errors import MissingExtraError, ParameterError, UnknownColumnError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from cloister.accounting.budget import Budget
    from cloister.data.table import Table
    from cloister.learn.base import FitPreview


_EXAMPLE = (
    "cloister train gaussian_nb visits.csv --schema visits.schema.yaml --target sick --epsilon 1 \\\n"
    "      -o sick.cloister"
)
_ENDINGS = (".cloister", ".json")
_OWN = ("epsilon", "delta", "schema", "features", "ledger", "dataset", "analyst", "unit", "max_rows_per_unit")


def _option(*names: str, metavar: str, text: str, **settings: Any) -> Callable[..., Any]:  # click's own settings
    return click.option(*names, metavar=metavar, help=text, **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrainOptions:
    """The options of the command; numbers are still text, so that they stay exact."""

    model: str
    data: str
    schema: str
    target: str | None
    epsilon: str
    delta: str | None
    features: str | None
    settings: tuple[str, ...]
    ledger: str | None
    dataset: str | None
    budget_epsilon: str | None
    budget_delta: str | None
    analyst: str | None
    unit: str | None
    limit: int | None
    preview: bool
    output_file: str | None
    force: bool
    encoding: str | None
    missing: tuple[str, ...]

    def check(self) -> None:
        """Refuse options that do not belong together, and a model that could not be written."""
        if not self.preview and self.output_file is None:
            raise ParameterError("The model has no file.", fix="say where to write it, such as -o model.cloister.")
        check_target(self.output_file, inputs=[self.data, self.schema], force=self.force, endings=_ENDINGS)
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


@command("train", example=_EXAMPLE)
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@_option("--schema", metavar="FILE", text="What the columns are; see cloister schema.", required=True)
@_option("--target", metavar="COLUMN", text="What to predict; none for models that predict nothing.")
@_option("--epsilon", metavar="NUMBER", text="What training may cost: smaller protects better.", required=True)
@_option("--delta", metavar="NUMBER", text="A slack, such as 1e-6, that allows Gaussian noise.")
@_option("--features", metavar="COLUMNS", text="Which columns to learn from, with commas; all others by default.")
@_option("--set", "settings", metavar="NAME=VALUE", text="A setting of the model; repeat for more.", multiple=True)
@_option("--ledger", metavar="URL", text="Where spending is remembered, such as sqlite:///budget.db.")
@_option("--dataset", metavar="NAME", text="The account in the ledger.")
@_option("--budget-epsilon", metavar="NUMBER", text="For an account's first use: the epsilon to be spent in all.")
@_option("--budget-delta", metavar="NUMBER", text="For an account's first use: the delta to be spent in all.")
@_option("--analyst", metavar="NAME", text="Who trains; a limit that the ledger has for them applies.")
@_option("--unit", metavar="COLUMN", text='The column that names a person, or "row"; by default the schema\'s subject.')
@_option("--limit", metavar="NUMBER", text="How many rows of a person are used.", type=click.IntRange(1))
@click.option("--preview", is_flag=True, help="Say what it would cost and do; spend nothing.")
@_option("-o", "--output", "output_file", metavar="FILE", text="Where to write the model: .cloister or .json.")
@click.option("--force", is_flag=True, help="Replace the model's file if it is there.")
@reading_options
def train(output: CommandOutput, **options: Any) -> None:  # click's options
    """Train a private model on a table, and write it to a file with what it promises.

    MODEL is the name of an estimator, such as gaussian_nb; DATA is a CSV or Parquet file (also several with *), or the
    address of a database table.

    The price is said first, and taken from the budget before the table is read. Without --ledger nothing is
    remembered, and every further model reveals more.
    """
    asked = _TrainOptions(**options)
    asked.check()
    estimator = _estimator(asked)
    with output.progress("Opening the table"):
        table = open_confirmed(asked.data, asked.schema, encoding=asked.encoding, missing=asked.missing)
    check_column(table, asked.target)
    _protect(estimator, asked, table)
    forecast = estimator.preview(table, asked.target)
    if asked.preview:
        _show_preview(output, asked, forecast)
        return
    with nullcontext() if asked.ledger is None else open_payer_ledger(asked.payer) as book:
        left = None if book is None else _account(output, asked, book, forecast)
        _say_price(output, forecast, left)
        with output.progress("Training"):
            estimator.set_params(ledger=book, dataset=asked.dataset).fit(table, asked.target)
        _write(output, asked, estimator, None if book is None else book.remaining(str(asked.dataset)))


def _estimator(asked: _TrainOptions) -> Any:
    try:
        from cloister.learn.catalog import load_all

        known = load_all()
    except ImportError:
        raise MissingExtraError(what="Private models", package="scikit-learn", extra="learn") from None
    kind = known.get(asked.model.replace("-", "_"))
    made = kind(epsilon=asked.epsilon, delta=asked.delta or 0, analyst=asked.analyst)
    made.set_params(**_settings(made, asked.settings))
    if asked.features is not None:
        made.set_params(features=[name.strip() for name in asked.features.split(",") if name.strip()])
    if made.target == "none" and asked.target is not None:
        raise ParameterError(f"{asked.model} predicts no target.", fix="leave --target out.")
    if made.target != "none" and asked.target is None:
        raise ParameterError(f"{asked.model} predicts a target.", fix="name its column with --target.")
    return made


def _settings(made: Any, given: tuple[str, ...]) -> dict[str, Any]:
    """Return settings as the estimator takes them: numbers, lists and texts as in JSON, else as a text."""
    known = [name for name in made.get_params(deep=False) if name not in (*_OWN, "random_state")]
    found: dict[str, Any] = {}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals or name not in known:
            raise ParameterError(
                f'"{item}" is not a setting of the model.{did_you_mean(name, known)}',
                fix=f"write --set NAME=VALUE with one of {', '.join(known)}.",
            )
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def _protect(estimator: Any, asked: _TrainOptions, table: Table) -> None:
    """Set what is protected: what is asked for, else the person that the schema names, else the row."""
    unit = asked.unit or table.schema.subject or "row"
    estimator.set_params(unit=unit, max_rows_per_unit=asked.limit or 1)


def _account(output: CommandOutput, asked: _TrainOptions, book: Any, forecast: FitPreview) -> Budget:
    """Open an account that is new, and return what is left."""
    if is_new_account(asked.payer, book):
        budget = asked.payer.budget
        if budget is None:  # pragma: no cover  # is_new_account has refused it
            raise ParameterError("The account has no budget.", fix="add --budget-epsilon.")
        budget.check_covers(budget.cost_of(forecast.guarantee))
        promise = forecast.guarantee
        book.open_account(str(asked.dataset), budget=budget, unit=promise.unit, adjacency=promise.adjacency)
        output.say(f'The account "{asked.dataset}" is new. Its budget is {amount(budget)}, ever.')
    left: Budget = book.remaining(str(asked.dataset), analyst=asked.analyst)
    return left


def _say_price(output: CommandOutput, forecast: FitPreview, left: Budget | None) -> None:
    output.say(f"This costs {forecast.guarantee.brief()}.")
    if forecast.steps:
        output.say(f"Noise is added to: {', '.join(step.label for step in forecast.steps)}.")
    if forecast.outlook is not None:
        output.say(
            f"What to expect: {forecast.outlook.explain()}. With that few rows or fewer, expect no more than a guess."
        )
    if left is None:
        output.say("Nothing remembers what was spent: add --ledger to keep count of several releases.")
    else:
        output.say(f"Left before it: {amount(left)}.")


def _show_preview(output: CommandOutput, asked: _TrainOptions, forecast: FitPreview) -> None:
    left = None
    if asked.ledger is not None:
        book = find_ledger(asked.payer)
        with book or nullcontext():
            if book is None or is_new_account(asked.payer, book):
                left = asked.payer.budget
            else:
                left = book.remaining(str(asked.dataset), analyst=asked.analyst)
    document = {"model": asked.model, "dataset": asked.dataset, "remaining": None if left is None else left.to_dict()}
    output.document({**forecast.to_dict(), **document})
    _say_price(output, forecast, left)
    if forecast.problem is not None:
        output.say(forecast.problem)
    output.say("Nothing was spent.")


def _write(output: CommandOutput, asked: _TrainOptions, estimator: Any, left: Budget | None) -> None:
    estimator.set_params(ledger=None)
    estimator.save(str(asked.output_file), overwrite=asked.force)
    output.document(
        {
            "schema": "cloister.training/1",
            "model": asked.model,
            "file": asked.output_file,
            "target": asked.target,
            "features": list(estimator.encoding_.columns),
            "guarantee": estimator.guarantee_.to_dict(),
            "steps": [step.to_dict() for step in estimator.steps_],
            "dataset": asked.dataset,
            "remaining": None if left is None else left.to_dict(),
        }
    )
    output.say(f"\nThe model is in {asked.output_file}. {estimator.guarantee_.explain()}")
    if left is not None:
        output.say(f"Left: {amount(left)}.")


_TABLES = (".csv", ".parquet", ".pq")


def _predict_option(
    *names: str, metavar: str, text: str, **settings: Any
) -> Callable[..., Any]:  # click's own settings
    return click.option(*names, metavar=metavar, help=text, **settings)


@command("predict", example="cloister predict sick.cloister new.csv --keep patient_id -o predicted.csv")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@_predict_option(
    "--schema", metavar="FILE", text="What the columns are, where their types are not clear from the file."
)
@_predict_option("--keep", metavar="COLUMNS", text="Columns to copy beside the predictions, with commas.")
@click.option("--probabilities", is_flag=True, help="Add the probability of each class.")
@_predict_option("-o", "--output", "target", metavar="FILE", text="Where to write: .csv or .parquet.", required=True)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@reading_options
def predict(output: CommandOutput, **options: Any) -> None:  # click's options
    """Predict with a saved model, one line for each row of a table; this costs nothing.

    MODEL is a file that cloister train wrote. The model keeps its promise to the people that it was trained on; what
    it says about the people in DATA is about them.
    """
    inputs = [options["model"], options["data"], options["schema"]]
    check_target(options["target"], inputs=inputs, force=options["force"], endings=_TABLES)
    model = _load(options["model"])
    table = _open(options)
    with output.progress("Predicting"):
        listing = _predict_rows(model, table, options)
    _write_predictions(listing, options)
    document = {"schema": "cloister.predictions/1", "file": options["target"], "rows": listing.num_rows}
    output.document({**document, "columns": listing.column_names, "guarantee": model.guarantee_.to_dict()})
    output.say(f"{listing.num_rows} predictions are in {options['target']}. The model: {model.guarantee_.brief()}.")


@command("evaluate", example="cloister evaluate sick.cloister later.csv --target sick")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@_predict_option("--target", metavar="COLUMN", text="The column with the truth.", required=True)
@_predict_option(
    "--schema", metavar="FILE", text="What the columns are, where their types are not clear from the file."
)
@reading_options
def evaluate(output: CommandOutput, **options: Any) -> None:  # click's options
    """Say how often a saved model is right, beside the simplest guess.

    The figure is exact and for whoever holds the rows of DATA. Where they are protected, passing it on is a release of
    its own that promises nothing; in Python, cloister.learn.evaluate_privately pays for one that may be passed on.
    """
    model = _load(options["model"])
    table = _open(options)
    from cloister.learn.evaluation import evaluate as measure

    with output.progress("Evaluating"):
        check_column(table, options["target"])
        found = measure(model, table, options["target"])
    output.document({**found.to_dict(), "model": options["model"], "target": options["target"]})
    output.say(f"{str(found).capitalize()}.")
    output.say("This figure is exact. If the rows are protected, it is for you who hold them, and not for release.")


def _load(path: str) -> Any:
    try:
        from cloister.learn.persistence import load
    except ImportError:
        raise MissingExtraError(what="Private models", package="scikit-learn", extra="learn") from None
    return load(path)


def _open(options: dict[str, Any]) -> Table:
    from cloister.data.schema import Schema
    from cloister.data.sources import open_table

    schema = None if options["schema"] is None else Schema.read(options["schema"])
    return open_table(options["data"], schema=schema, encoding=options["encoding"], missing=options["missing"])


def _predict_rows(model: Any, table: Table, options: dict[str, Any]) -> pa.Table:
    """Return the predictions beside the columns to keep, in the order of the rows."""
    from cloister.data.sources import open_table

    kept = [name.strip() for name in (options["keep"] or "").split(",") if name.strip()]
    unknown = next((name for name in kept if name not in table.columns), None)
    if unknown is not None:
        raise UnknownColumnError(unknown, table.columns)
    # Two readings of a table may come in two orders, so there is one only.
    rows = table.to_arrow()
    listing = rows.select(kept)
    for name, column in _columns(model, open_table(rows), probabilities=options["probabilities"]).items():
        if name in kept:
            raise ParameterError(f'There is a column "{name}" already.', fix="leave it out of --keep.")
        listing = listing.append_column(name, [column])
    return listing


def _columns(model: Any, table: Table, *, probabilities: bool) -> dict[str, Any]:
    if probabilities and not hasattr(model, "predict_proba"):
        raise ParameterError("This model has no probabilities.", fix="leave --probabilities out.")
    if not hasattr(model, "predict"):
        made = model.transform(table)
        return {f"output_{place + 1}": made[:, place] for place in range(made.shape[1])}
    found = {"prediction": model.predict(table)}
    if probabilities:
        shares = model.predict_proba(table)
        found |= {f"probability_{label}": shares[:, place] for place, label in enumerate(model.classes_)}
    return found


def _write_predictions(listing: pa.Table, options: dict[str, Any]) -> None:
    from cloister.data.table import write_rows

    write_rows(options["target"], listing.schema, listing.to_batches(), overwrite=options["force"])
