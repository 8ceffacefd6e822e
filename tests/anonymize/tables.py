"""Small tables as cells, for tests of models and algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.anonymize.cells import Cells, read_cells
from cloister.anonymize.models import Classes, check_of, classes_of
from cloister.anonymize.partition import full_domain
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table


def cells_of(
    rows: pa.Table | Mapping[str, Sequence[Any]],
    columns: Sequence[Column] = (),
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    subject: str | None = None,
    population: Mapping[str, Sequence[Any]] | None = None,
) -> Cells:
    """Return the cells of a table given column by column; columns that are not described are nominal."""
    table = rows if isinstance(rows, pa.Table) else pa.table(dict(rows))
    schema = schema_of(table, columns)
    return read_cells(
        open_table(table, schema=schema),
        schema,
        quasi=quasi,
        sensitive=sensitive,
        subject=subject,
        population=None if population is None else _opened(population, columns),
    )


def schema_of(table: pa.Table, columns: Sequence[Column]) -> Schema:
    described = {column.name: column for column in columns}
    return Schema([described.get(name, Column(name=name)) for name in table.column_names])


def _opened(rows: Mapping[str, Sequence[Any]], columns: Sequence[Column]) -> Table:
    table = pa.table(dict(rows))
    return open_table(table, schema=schema_of(table, columns))


def classes_from_counts(
    counts: Sequence[Sequence[int]], *, overall: Sequence[int] | None = None, column: Column | None = None
) -> Classes:
    """Return classes with given counts of the values of a sensitive column (0, 1, ... if it has no categories).

    With ``overall`` the table has one more class, the last, that makes it a multiple of these counts.
    """
    column = column or Column(name="s", role="sensitive", kind="ordinal")
    wanted = np.array(counts)
    if overall is not None:
        shares, taken = np.array(overall), wanted.sum(axis=0)
        rest = shares * max(-(-int(take) // int(share)) for take, share in zip(taken, shares, strict=True)) - taken
        wanted = np.vstack([wanted, rest])
    number, code = np.nonzero(wanted)
    times = wanted[number, code]
    names = list(column.categories or range(wanted.shape[1]))
    rows = {
        "class": np.repeat(number, times).tolist(),
        column.name: [names[place] for place in np.repeat(code, times)],
    }
    return classes_of(full_domain(cells_of(rows, [column], quasi=["class"], sensitive=[column.name]), (0,)))


def attained(model: Any, classes: Classes, count: int | None = None) -> list[float]:
    """Return the number that each class attains (of the first classes, if a count is given)."""
    return check_of(model).attained(classes)[:count].tolist()  # type: ignore[no-any-return]
