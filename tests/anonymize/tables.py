"""Small tables as cells, for tests of models and algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.anonymize._partition import Partition, whole
from cloister.anonymize.attributes import attribute_of
from cloister.anonymize.cells import (
    CodedCells,
    Sensitive,
    _restrict_to_values,
    cells_from_arrays,
    group_lines,
    read_cells,
)
from cloister.anonymize.models import EquivalenceClasses, check_of, classes_of
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
) -> CodedCells:
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
) -> EquivalenceClasses:
    """Return classes with given counts of the values of a sensitive column (0, 1, ... if it has no categories).

    With ``overall`` the table has one more class, the last, that makes it a multiple of these counts.
    """
    column = column or Column(name="s", role="sensitive", kind="ordinal")
    wanted = np.array(counts)
    if overall is not None:
        shares, taken = np.array(overall), wanted.sum(axis=0)
        rest = shares * max(-(-int(take) // int(share)) for take, share in zip(taken, shares, strict=True)) - taken
        wanted = np.vstack([wanted, rest])
    present = np.flatnonzero(wanted.sum(axis=0))
    names = list(column.categories or range(wanted.shape[1]))
    sensitive = sensitive_of(column, [names[code] for code in present])
    number, code = np.nonzero(wanted[:, present])
    place, codes = attribute_of(Column(name="class"), list(range(len(wanted))))
    cells = cells_from_arrays(
        [place],
        codes[number][:, None],
        wanted[:, present][number, code],
        sensitive=[sensitive],
        values=code[:, None].astype(np.int32),
    )
    return classes_of(full_domain(cells, (0,)))


def sensitive_of(column: Column, values: Sequence[Any]) -> Sensitive:
    """Return a sensitive attribute with these values."""
    attribute, leaf_of = attribute_of(column, values)
    return Sensitive(name=column.name, values=tuple(values), attribute=_restrict_to_values(attribute, leaf_of))


def coded(rows: Sequence[Sequence[Any]], columns: Sequence[Column]) -> CodedCells:
    """Return the cells of rows given one by one, without an engine: for tests of many tables.

    Columns with the role "sensitive" are sensitive attributes, the others quasi-identifiers.
    """
    values = [_sorted(items) for items in zip(*rows, strict=True)]
    codes = np.array([[values[place].index(item) for place, item in enumerate(row)] for row in rows], dtype=np.int32)
    quasi = [place for place, column in enumerate(columns) if column.role != "sensitive"]
    held = [place for place, column in enumerate(columns) if column.role == "sensitive"]
    found = [attribute_of(columns[place], values[place]) for place in quasi]
    return cells_from_arrays(
        [attribute for attribute, _ in found],
        np.column_stack([leaf_of[codes[:, place]] for place, (_, leaf_of) in zip(quasi, found, strict=True)]),
        np.ones(len(rows), dtype=np.int64),
        sensitive=[sensitive_of(columns[place], values[place]) for place in held],
        values=codes[:, held],
    )


def _sorted(items: Sequence[Any]) -> list[Any]:
    known = sorted(item for item in set(items) if item is not None)
    return [*known, None] if None in items else known


def attained(model: Any, classes: EquivalenceClasses, count: int | None = None) -> list[float]:
    """Return the number that each class attains (of the first classes, if a count is given)."""
    return check_of(model).measure(classes)[:count].tolist()  # type: ignore[no-any-return]


def full_domain(cells: CodedCells, levels: tuple[int, ...]) -> Partition:
    """Return the classes of a full-domain recoding, none suppressed."""
    chosen = list(zip(cells.attributes, levels, strict=True))
    nodes = [item.ancestors[level][cells.codes[:, place]] for place, (item, level) in enumerate(chosen)]
    _, _, group = group_lines(np.column_stack(nodes), tuple(item.size(level) for item, level in chosen))
    return whole(cells, group, levels=levels)
