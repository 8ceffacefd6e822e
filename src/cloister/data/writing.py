"""Writing rows to CSV and Parquet files, batch by batch, so that a table larger than memory can be written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from cloister.core.files import write_with
from cloister.errors import DataError

__all__ = ["check_ending", "write_rows"]

_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def check_ending(path: str | Path) -> str:
    """Return whether a path is for a CSV or a Parquet file.

    Raises:
        DataError: if its ending is neither.
    """
    kind = _ENDINGS.get(Path(path).suffix.lower())
    if kind is None:
        raise DataError(
            f'"{Path(path).name}" has an ending that says no kind of file.',
            fix="use a name that ends in .csv or .parquet.",
        )
    return kind


def write_rows(path: str | Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, overwrite: bool) -> None:
    """Write batches of rows to a file, which appears whole or not at all."""
    kind = check_ending(path)

    def write(file: IO[bytes]) -> None:
        with _writer(kind, file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)

    write_with(path, write, overwrite=overwrite)


def _writer(kind: str, file: IO[bytes], schema: pa.Schema) -> Any:  # a writer of pyarrow
    if kind == "csv":
        from pyarrow import csv

        return csv.CSVWriter(file, schema)
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema, compression="zstd")
