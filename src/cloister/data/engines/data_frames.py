"""Tables in memory: pandas and polars data frames, and Arrow data, which the embedded engine reads where they are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cloister.data.engines.base import Engine, repair_names
from cloister.data.engines.duckdb import engine_over_arrow
from cloister.data.engines.files import in_stated_type
from cloister.data.engines.openers import SourceOptions, not_a_table, opens_objects
from cloister.errors import DataError

__all__ = ["open_arrow", "open_pandas", "open_polars"]


@opens_objects("pandas")
def open_pandas(frame: Any, options: SourceOptions) -> Engine:
    """Return an engine over a pandas data frame.

    pandas takes the type of a column from all of its cells: one that is missing turns whole numbers into reals. So a
    stated type is what is read, and one that is not stated is an assumption, as in a CSV file.
    """
    if not hasattr(frame, "columns"):
        raise not_a_table(frame)
    names, storage = repair_names(frame.columns), options.storage
    columns = [_from_pandas(frame.iloc[:, position]) for position in range(len(names))]
    columns = [
        in_stated_type(column, storage[name]) if name in storage else column
        for name, column in zip(names, columns, strict=True)
    ]
    is_declared = [hasattr(dtype, "na_value") for dtype in frame.dtypes]  # the types of pandas that have missing values
    sniffed = {name for name, declared in zip(names, is_declared, strict=True) if name not in storage and not declared}
    return _over_arrow(pa.table(columns, names=list(names)), options, sniffed=frozenset(sniffed))


def _from_pandas(series: Any) -> Any:
    """Return a column as Arrow, without copying where it can be; a mixed column is text."""
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        present = series.notna()
        array = pa.array(series.where(~present, series.astype(str)), pa.string(), mask=~present.to_numpy())
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


@opens_objects("polars")
def open_polars(frame: Any, options: SourceOptions) -> Engine:
    """Return an engine over a polars data frame, computed first if it is lazy."""
    from polars.exceptions import PolarsError

    if not hasattr(frame, "collect") and not hasattr(frame, "get_columns"):
        raise not_a_table(frame)
    try:
        rows = frame.collect().to_arrow() if hasattr(frame, "collect") else frame.to_arrow()
    except PolarsError:
        raise DataError(
            "Polars could not compute the data frame.", fix="check that it can be collected; cast objects to text."
        ) from None
    return _over_arrow(rows, options)


@opens_objects("pyarrow")
def open_arrow(source: Any, options: SourceOptions) -> Engine:
    """Return an engine over an Arrow table, dataset, batch or reader."""
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    elif isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    if not hasattr(source, "schema"):
        raise not_a_table(source)
    return _over_arrow(source, options)


def _over_arrow(source: Any, options: SourceOptions, *, sniffed: frozenset[str] = frozenset()) -> Engine:
    if not source.schema.names:
        raise DataError("The table has no columns.", fix="give a table with at least one column.")
    return engine_over_arrow(source, missing=options.missing, sniffed=sniffed)
