"""A released table as an attacker reads it, and, for scoring only, which row of the custodian is in which class.

A class is a combination of released labels. Rows that show ``*`` in every quasi-identifier are suppressed: they are in
no class. The attacker sees `PublishedTable.classes`; `PublishedTable.row_classes` is the custodian's, and says nothing
but which positions are exposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.anonymize.anatomy import COUNT, GROUP, AnatomyRelease
from cloister.anonymize.cells import CodedCells, Sensitive, group_lines
from cloister.anonymize.comparison import places_among, region_numbers, row_codes
from cloister.anonymize.models import EquivalenceClasses, Histogram
from cloister.anonymize.release import Release
from cloister.anonymize.risk import table_classes
from cloister.data.columns import Role
from cloister.data.schema import Schema
from cloister.data.sources import ensure_open, open_table
from cloister.data.table import Table
from cloister.errors import ParameterTypeError, SchemaError, UnknownColumnError

__all__ = ["PublishedTable", "publish", "publish_groups"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PublishedTable:
    """A released table: its classes, and behind them what the custodian knows.

    Attributes:
        table: the released rows.
        schema: what is known about the columns, with their roles.
        cells: the released rows, counted by what they show.
        kept: which cells are classes; the others are suppressed.
        release: the release that the table comes from, where there is one.
        groups: the class of each row, where it is known already.
        stated: the columns that a person described, rather than the labels themselves.
    """

    table: Table
    schema: Schema
    cells: CodedCells
    kept: NDArray[np.bool_]
    release: Release | None = None
    groups: NDArray[np.int64] | None = None
    stated: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        return f"Published({list(self.quasi)})"

    @property
    def quasi(self) -> tuple[str, ...]:
        """Return the quasi-identifiers."""
        return self.cells.names

    @cached_property
    def classes(self) -> EquivalenceClasses:
        return table_classes.classes_per_cell(self.cells, self.kept)

    @property
    def codes(self) -> NDArray[np.int32]:
        """Return the code of the label that each class (row) shows in each quasi-identifier (column)."""
        return self.cells.codes[self.kept]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of rows of each class."""
        return self.classes.rows

    @property
    def total(self) -> int:
        """Return the number of rows in classes."""
        return int(self.sizes.sum())

    def labels(self, name: str) -> tuple[Any, ...]:
        """Return the labels of a quasi-identifier, in the order of their codes."""
        return self.cells.attributes[self.quasi.index(name)].leaves

    def universe(self, name: str) -> tuple[Any, ...]:
        """Return the raw values of a quasi-identifier that labels are written with, where they are known."""
        if self.release is None or name not in self.release.partition.cells.names:
            return ()
        cells = self.release.partition.cells
        return cells.attributes[cells.names.index(name)].leaves

    def sensitive(self, name: str | None) -> Sensitive:
        """Return a sensitive column; the only one, if no name is given."""
        known = {item.name: item for item in self.cells.sensitive}
        if name is None and len(known) == 1:
            return next(iter(known.values()))
        if name is None:
            raise SchemaError(
                "Nothing says which column the attacker wants to learn."
                if not known
                else "Several columns are sensitive.",
                fix='name it: sensitive="diagnosis".',
            )
        if name not in known:
            raise UnknownColumnError(name, tuple(known))
        return known[name]

    def histogram(self, name: str | None) -> Histogram:
        """Return how often each value of a sensitive column occurs in each class."""
        return self.classes.histogram(self.sensitive(name).name)

    @cached_property
    def row_classes(self) -> NDArray[np.int64]:
        """Return the class of each row of the custodian's table, -1 for a suppressed one.

        The custodian's table is the original of a release, and otherwise the released table itself.
        """
        if self.groups is not None:
            return self.groups
        if self.release is not None:
            return _classes_of_original(self.release, self.cells, self.kept)
        codes = row_codes(self.table, self.cells.sources[: len(self.quasi)])
        return places_among(codes, self.cells, self.kept)


def publish(
    release: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
) -> PublishedTable:
    """Return a release, or a released table, as attackers see it.

    Args:
        release: a `Release`, an `AnatomyRelease` (its table of quasi-identifiers), or a table.
        quasi_identifiers: what attackers know, where neither release nor schema says it.
        sensitive: what they want to learn, likewise.

    Raises:
        SchemaError: if nothing says which columns attackers know.
        DataError: if the table has no rows.
    """
    quasi = _check_names(quasi_identifiers, "quasi_identifiers")
    wanted = [sensitive] if isinstance(sensitive, str) else _check_names(sensitive, "sensitive")
    if isinstance(release, AnatomyRelease):
        return _publish_table(open_table(release.tables.quasi), release.roles.schema, quasi or release.roles.quasi, [])
    made = release if isinstance(release, Release) else None
    table = ensure_open(release) if made is None else made.table
    stated = table.schema if made is None else made.roles.schema
    if quasi is None and (stated is None or not stated.with_roles(Role.QUASI)):
        raise SchemaError(
            "Nothing says which columns an attacker may know.",
            fix='name them: quasi_identifiers=["age", "zip"], or open the table with a schema.',
        )
    return _publish_table(table, stated, quasi, wanted, release=made)


def publish_groups(
    release: Any, *, quasi_identifiers: Sequence[str] | None = None, sensitive: str | None = None
) -> PublishedTable:
    """Return a release for attacks that need a person's class only; groups are the classes of an anatomy."""
    if not isinstance(release, AnatomyRelease):
        return publish(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    told = release.tables.sensitive
    rows = told.take(pa.array(np.repeat(np.arange(len(told)), told[COUNT].to_numpy()))).drop_columns([COUNT])
    schema = Schema([release.roles.schema[release.tables.attribute]])
    found = _publish_table(open_table(rows), schema, [GROUP], [release.tables.attribute])
    numbers = np.array([int(leaf) for leaf in found.labels(GROUP)])[found.codes[:, 0]]
    place = np.zeros(int(numbers.max()) + 1, dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    groups = place[release.tables.quasi[GROUP].to_numpy()]
    return PublishedTable(table=found.table, schema=found.schema, cells=found.cells, kept=found.kept, groups=groups)


def _publish_table(
    table: Table,
    stated: Schema | None,
    quasi: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    *,
    release: Release | None = None,
) -> PublishedTable:
    for name in (*(quasi or ()), *(sensitive or ())):
        if name not in table.columns:
            raise UnknownColumnError(str(name), table.columns)
    described = frozenset(() if stated is None else stated.columns)
    if stated is not None and quasi is not None:
        stated = _complete_schema(table, stated)
    schema = table_classes.apply_roles(table, stated, quasi=quasi, sensitive=sensitive)
    cells = table_classes.read_released(table, schema)
    kept = np.ones(len(cells), dtype=bool) if release is not None else table_classes.find_kept_cells(cells)
    return PublishedTable(table=table, schema=schema, cells=cells, kept=kept, release=release, stated=described)


def _complete_schema(table: Table, stated: Schema) -> Schema:
    """Return a schema that also describes the columns that only the caller's lists name."""
    plain = table_classes.apply_roles(table, None, quasi=[], sensitive=None)
    return Schema([*stated.columns.values(), *(item for name, item in plain.columns.items() if name not in stated)])


def _check_names(names: Any, option: str) -> list[str] | None:  # whatever a caller gave
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ParameterTypeError(f"{option} is no list of names.", fix=f'write for example {option}=["age", "zip"].')
    if not names and option == "quasi_identifiers":
        raise SchemaError("An attacker who knows no column links nothing.", fix=f'give {option}=["age", "zip"].')
    return list(names)


def _classes_of_original(release: Release, released: CodedCells, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the released class of each original row; equal rows are dealt out as the release dealt them."""
    partition, cells = release.partition, release.partition.cells
    numbers = region_numbers(release.regions, released, kept)
    if released.names != cells.names:
        raise SchemaError(
            "The attacker is said to know other columns than those that the release protects.",
            fix="leave quasi_identifiers out, or attack release.table.",
        )
    records = _records_of_rows(row_codes(release.original_with_roles, cells.sources), cells)
    # Rows and lines both go in the order of their records, within which rows are equal and interchangeable.
    order = np.argsort(records, kind="stable")
    lines = np.argsort(partition.records, kind="stable")
    groups = np.repeat(partition.groups[lines], partition.counts[lines])
    classes = np.empty(len(records), dtype=np.int64)
    classes[order] = np.where(groups >= 0, numbers[groups], -1)
    return classes


def _records_of_rows(codes: NDArray[np.int32], cells: CodedCells) -> NDArray[np.int64]:
    """Return the record of each row of codes."""
    width = len(cells.names)
    places = places_among(codes[:, :width], cells, np.ones(len(cells), dtype=bool))
    known = [cells.record_cells, *cells.record_values.T]
    known += [] if cells.record_subjects is None else [cells.record_subjects]
    both = np.vstack([np.column_stack(known), np.column_stack([places, codes[:, width:]])])
    _, _, group = group_lines(both, tuple(int(column.max()) + 1 for column in both.T))
    record_of = np.full(int(group.max()) + 1, -1, dtype=np.int64)
    record_of[group[: len(cells.record_cells)]] = np.arange(len(cells.record_cells))
    return record_of[group[len(cells.record_cells) :]]
