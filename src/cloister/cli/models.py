"""``cloister train``, ``predict`` and ``evaluate``: a private model from one line, and what it says about rows.

The price of training is said before it is paid; predicting, and saying how often a model is right, costs nothing.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.accounts import open_account, open_payer_ledger, remaining_of
from cloister.cli.commands import CommandOutput, command
from cloister.cli.options import (
    MODELS,
    TABLES,
    PaidOptions,
    check_column,
    check_target,
    data_options,
    ledger_options,
    open_given_data,
    option,
    output_options,
    price_options,
    split_names,
)
from cloister.errors import MissingExtraError, ParameterError, UnknownColumnError
from cloister.mechanisms.paid_fit import read_settings

if TYPE_CHECKING:
    import pyarrow as pa

    from cloister.accounting.budget import Budget
    from cloister.data.table import Table
    from cloister.learn.base import FitPreview


_EXAMPLE = (
    "cloister train gaussian_nb visits.csv --schema visits.schema.yaml --target sick --epsilon 1 \\\n"
    "      -o sick.cloister"
)
_OWN = ("epsilon", "delta", "schema", "features", "ledger", "dataset", "analyst", "unit", "max_rows_per_unit")


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrainOptions(PaidOptions):
    """The options of the command."""

    model: str
    target: str | None
    features: str | None
    settings: tuple[str, ...]
    output_file: str | None

    def check(self) -> None:
        """Refuse options that do not belong together, and a model that could not be written."""
        if not self.preview and self.output_file is None:
            raise ParameterError("Nothing says where to write the model.", fix="add -o model.cloister.")
        check_target(self.output_file, inputs=self.inputs, force=self.force, endings=MODELS)
        self.check_ledger()


@command("train", example=_EXAMPLE)
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@option("--target", metavar="COLUMN", text="What to predict; none for models that predict nothing.")
@option("--features", metavar="COLUMNS", text="Which columns to learn from, with commas; all others by default.")
@option("--set", "settings", metavar="NAME=VALUE", text="A setting of the model; repeat for more.", multiple=True)
@data_options()
@price_options()
@ledger_options()
@output_options("the model", endings=MODELS)
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
        table = asked.open_table()
    check_column(table, asked.target)
    estimator.set_params(unit=asked.unit_of(table), max_rows_per_unit=asked.limit or 1)
    forecast = estimator.preview(table, asked.target)
    if asked.preview:
        _show_preview(output, asked, forecast)
        return
    with nullcontext() if asked.ledger is None else open_payer_ledger(asked.payer) as book:
        left = None if book is None else open_account(output, asked.payer, book, forecast.guarantee)
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
        made.set_params(features=split_names(asked.features))
    if made.target == "none" and asked.target is not None:
        raise ParameterError(f"{asked.model} predicts no target.", fix="leave --target out.")
    if made.target != "none" and asked.target is None:
        raise ParameterError(f"{asked.model} predicts a target.", fix="name its column with --target.")
    return made


def _settings(made: Any, given: tuple[str, ...]) -> dict[str, Any]:
    """Return settings as the estimator takes them: numbers, lists and texts as in JSON, else as a text."""
    known = [name for name in made.get_params(deep=False) if name not in (*_OWN, "random_state")]
    return read_settings(given, known, form="--set NAME=VALUE")


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
        output.say(f"Left before it: {left.words}.")


def _show_preview(output: CommandOutput, asked: _TrainOptions, forecast: FitPreview) -> None:
    left = None if asked.ledger is None else remaining_of(asked.payer)
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
        output.say(f"Left: {left.words}.")


@command("predict", example="cloister predict sick.cloister new.csv --keep patient_id -o predicted.csv")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@option("--keep", metavar="COLUMNS", text="Columns to copy beside the predictions, with commas.")
@option("--probabilities", text="Add the probability of each class.")
@data_options(schema=False)
@output_options("the predictions", required=True)
def predict(output: CommandOutput, **options: Any) -> None:  # click's options
    """Predict with a saved model, one line for each row of a table; this costs nothing.

    MODEL is a file that cloister train wrote. The model keeps its promise to the people that it was trained on; what
    it says about the people in DATA is about them.
    """
    inputs = [options["model"], options["data"], options["schema"]]
    check_target(options["output_file"], inputs=inputs, force=options["force"], endings=TABLES)
    model = _load(options["model"])
    table = open_given_data(options)
    with output.progress("Predicting"):
        listing = _predict_rows(model, table, options)
    _write_predictions(listing, options)
    document = {"schema": "cloister.predictions/1", "file": options["output_file"], "rows": listing.num_rows}
    output.document({**document, "columns": listing.column_names, "guarantee": model.guarantee_.to_dict()})
    output.say(
        f"{listing.num_rows} predictions are in {options['output_file']}. The model: {model.guarantee_.brief()}."
    )


@command("evaluate", example="cloister evaluate sick.cloister later.csv --target sick")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@option("--target", metavar="COLUMN", text="The column with the truth.", required=True)
@data_options(schema=False)
def evaluate(output: CommandOutput, **options: Any) -> None:  # click's options
    """Say how often a saved model is right, beside the simplest guess.

    The figure is exact and for whoever holds the rows of DATA. Where they are protected, passing it on is a release of
    its own that promises nothing; in Python, cloister.learn.evaluate_privately pays for one that may be passed on.
    """
    model = _load(options["model"])
    table = open_given_data(options)
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


def _predict_rows(model: Any, table: Table, options: dict[str, Any]) -> pa.Table:
    """Return the predictions beside the columns to keep, in the order of the rows."""
    from cloister.data.sources import open_table

    kept = split_names(options["keep"] or "")
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

    write_rows(options["output_file"], listing.schema, listing.to_batches(), overwrite=options["force"])
