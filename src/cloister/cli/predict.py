"""``cloister predict`` and ``cloister evaluate``: what a saved model says about rows, and how often it is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import command
from cloister.cli.opening import check_column
from cloister.cli.output import Output
from cloister.cli.reading import reading
from cloister.cli.targets import check_target
from cloister.errors import MissingExtraError, ParameterError, UnknownColumnError

if TYPE_CHECKING:
    import pyarrow as pa

    from cloister.data.table import Table

_TABLES = (".csv", ".parquet", ".pq")


def _option(*names: str, metavar: str, text: str, **settings: Any) -> Callable[..., Any]:  # click's own settings
    return click.option(*names, metavar=metavar, help=text, **settings)


@command("predict", example="cloister predict sick.cloister new.csv --keep patient_id -o predicted.csv")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@_option("--schema", metavar="FILE", text="What the columns are, where their types are not clear from the file.")
@_option("--keep", metavar="COLUMNS", text="Columns to copy beside the predictions, with commas.")
@click.option("--probabilities", is_flag=True, help="Add the probability of each class.")
@_option("-o", "--output", "target", metavar="FILE", text="Where to write: .csv or .parquet.", required=True)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@reading
def predict(output: Output, **options: Any) -> None:  # click's options
    """Predict with a saved model, one line for each row of a table; this costs nothing.

    MODEL is a file that cloister train wrote. The model keeps its promise to the people that it was trained on; what
    it says about the people in DATA is about them.
    """
    inputs = [options["model"], options["data"], options["schema"]]
    check_target(options["target"], inputs=inputs, force=options["force"], endings=_TABLES)
    model = _load(options["model"])
    table = _open(options)
    with output.progress("Predicting"):
        listing = _predicted(model, table, options)
    _write(listing, options)
    document = {"schema": "cloister.predictions/1", "file": options["target"], "rows": listing.num_rows}
    output.document({**document, "columns": listing.column_names, "guarantee": model.guarantee_.to_dict()})
    output.say(f"{listing.num_rows} predictions are in {options['target']}. The model: {model.guarantee_.brief()}.")


@command("evaluate", example="cloister evaluate sick.cloister later.csv --target sick")
@click.argument("model", metavar="MODEL")
@click.argument("data", metavar="DATA")
@_option("--target", metavar="COLUMN", text="The column with the truth.", required=True)
@_option("--schema", metavar="FILE", text="What the columns are, where their types are not clear from the file.")
@reading
def evaluate(output: Output, **options: Any) -> None:  # click's options
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
        from cloister.learn.saving import load
    except ImportError:
        raise MissingExtraError(what="Private models", package="scikit-learn", extra="learn") from None
    return load(path)


def _open(options: dict[str, Any]) -> Table:
    from cloister.data.schema import Schema
    from cloister.data.sources import open_table

    schema = None if options["schema"] is None else Schema.read(options["schema"])
    return open_table(options["data"], schema=schema, encoding=options["encoding"], missing=options["missing"])


def _predicted(model: Any, table: Table, options: dict[str, Any]) -> pa.Table:
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


def _write(listing: pa.Table, options: dict[str, Any]) -> None:
    from cloister.data.writing import write_rows

    write_rows(options["target"], listing.schema, listing.to_batches(), overwrite=options["force"])
