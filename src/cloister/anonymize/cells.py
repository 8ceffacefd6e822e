"""The frequency table that anonymization works on: distinct quasi-identifier combinations and the records in them.

A cell is one combination of leaf codes with its number of rows. A record is a cell together with one combination of
sensitive values (and one person, where persons are counted): rows of the same record cannot be told apart by any
model, so an algorithm may deal them out by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import CodedAttribute, attribute_of
from cloister.data.columns import Column
from cloister.data.frequency import FrequencyTable
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType, text_of
from cloister.errors import DataError, SchemaError

Codes: TypeAlias = NDArray[np.int32]
Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sensitive:
    """One sensitive attribute: its values in order, and the hierarchy that says which of them are near."""

    name: str
    values: tuple[Any, ...]
    attribute: CodedAttribute
    """The same values as an attribute: ``attribute.leaves`` may hold more than occur."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Source:
    """How a column's stored values became codes, so that the engine can do the same.

    Attributes:
        place: its number among the sources.
        name: the column.
        storage: the type of the stored values.
        values: what occurs.
        codes: the code of each value.
        size: the number of codes.
        is_shown_as_is: whether every value is its own name, so that it may stand where its code's name is meant.
    """

    place: int
    name: str
    storage: StorageType
    values: tuple[Any, ...]
    codes: Codes
    size: int
    is_shown_as_is: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class CodedCells:
    """Quasi-identifiers and sensitive attributes of a table, integer coded and counted.

    Attributes:
        attributes: the quasi-identifiers.
        codes: the leaf codes of each cell, sorted; one column per attribute.
        weights: the number of rows of each cell.
        sensitive: the sensitive attributes that models look at.
        record_cells: the cell of each record.
        record_weights: the number of rows of each record.
        record_values: the value code of each record (row) for each sensitive attribute (column).
        record_subjects: the person of each record, or None when rows are counted.
        population: the cells of the population table, for models that need one.
        sources: where the codes came from: quasi-identifiers, sensitive attributes, then the person.
    """

    attributes: tuple[CodedAttribute, ...]
    codes: Codes
    weights: Counts
    sensitive: tuple[Sensitive, ...] = ()
    record_cells: Counts
    record_weights: Counts
    record_values: Codes
    record_subjects: Counts | None = None
    population: CodedCells | None = None
    sources: tuple[Source, ...] = ()

    def __repr__(self) -> str:
        names = [attribute.name for attribute in self.attributes]
        return f"Cells({names}, sensitive={[item.name for item in self.sensitive]})"

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the quasi-identifiers."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def total(self) -> int:
        """Return the number of rows."""
        return int(self.weights.sum())

    @cached_property
    def weights_of_attributes(self) -> NDArray[np.float64]:
        """Return the weight of each attribute's loss; they sum to one."""
        weights = np.array([attribute.weight for attribute in self.attributes], dtype=np.float64)
        return np.asarray(weights / weights.sum())

    def place_of(self, name: str) -> int:
        """Return the column of a sensitive attribute in ``record_values``."""
        return next(place for place, item in enumerate(self.sensitive) if item.name == name)

    def with_weights(self, weights: Mapping[str, float]) -> CodedCells:
        """Return the same cells with other attribute weights."""
        changed = tuple(item.with_weight(weights.get(item.name, item.weight)) for item in self.attributes)
        return replace(self, attributes=changed)


def cells_from_arrays(
    attributes: Sequence[CodedAttribute],
    codes: Codes,
    weights: Counts,
    *,
    sensitive: Sequence[Sensitive] = (),
    values: Codes | None = None,
    subjects: Counts | None = None,
    population: CodedCells | None = None,
) -> CodedCells:
    """Return cells from one line per combination of codes, sensitive values and person; equal lines are added up."""
    values = np.zeros((len(codes), 0), dtype=np.int32) if values is None else values
    shape = tuple(len(item.leaves) for item in attributes)
    # Cells first, then records in them: a record is a cell with sensitive values and perhaps a person.
    order, starts, cell_of = group_lines(codes, shape)
    fine = np.column_stack([cell_of, values]) if subjects is None else np.column_stack([cell_of, values, subjects])
    sizes = [len(starts), *(len(item.values) for item in sensitive)]
    sizes += [] if subjects is None else [int(subjects.max(initial=0)) + 1]
    record_order, record_starts, _ = group_lines(fine, tuple(sizes))
    first = record_order[record_starts]
    return CodedCells(
        attributes=tuple(attributes),
        codes=np.ascontiguousarray(codes[order[starts]], dtype=np.int32),
        weights=_add_weights(weights, order, starts),
        sensitive=tuple(sensitive),
        record_cells=cell_of[first],
        record_weights=_add_weights(weights, record_order, record_starts),
        record_values=np.ascontiguousarray(values[first], dtype=np.int32),
        record_subjects=None if subjects is None else subjects[first],
        population=population,
    )


def group_lines(codes: NDArray[Any], shape: tuple[int, ...]) -> tuple[Counts, Counts, Counts]:
    """Return the order that sorts lines of codes, where in it each distinct line starts, and each line's group."""
    # In floats, since the product itself may be beyond 64 bits.
    if np.prod([float(size) for size in shape]) < 2.0**62:
        key = np.zeros(len(codes), dtype=np.int64)
        for place, size in enumerate(shape):
            key *= size
            key += codes[:, place]
        order = np.argsort(key, kind="stable")
        changed = np.diff(key[order]) != 0
    else:
        # lexsort sorts by its last key first, hence the columns in reverse.
        order = np.lexsort(codes.T[::-1])
        changed = (np.diff(codes[order], axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(np.concatenate(([len(codes) > 0], changed)))
    group = np.empty(len(codes), dtype=np.int64)
    group[order] = np.cumsum(np.concatenate(([0], changed))) if len(codes) else 0
    return order, starts, group


def _add_weights(weights: Counts, order: Counts, starts: Counts) -> Counts:
    return np.add.reduceat(weights[order], starts) if len(starts) else weights[:0].astype(np.int64)


def read_cells(
    table: Table,
    schema: Schema,
    *,
    quasi: Sequence[str],
    sensitive: Sequence[str] = (),
    subject: str | None = None,
    population: Table | None = None,
) -> CodedCells:
    """Count a table once, in its engine, and return its cells.

    Raises:
        HierarchyError: if a hierarchy misses a value of the table.
        DataError: if the table has no rows.
    """
    wanted = [*quasi, *(name for name in sensitive if name not in quasi)]
    wanted += [subject] if subject is not None and subject not in wanted else []
    counted = table.with_schema(None).frequencies(wanted)
    if not len(counted):
        raise DataError("The table has no rows.", fix="open a table with data.")
    coded = {name: attribute_of(schema[name], counted.decoders[counted.columns.index(name)]) for name in quasi}
    attributes = [attribute for attribute, _ in coded.values()]
    held = [_sensitive(counted, schema[name]) for name in sensitive]
    cells = cells_from_arrays(
        attributes,
        np.column_stack([leaf_of[_column(counted, name)] for name, (_, leaf_of) in coded.items()]),
        counted.weights,
        sensitive=held,
        values=np.column_stack([_column(counted, name) for name in sensitive]) if held else None,
        subjects=None if subject is None else _column(counted, subject).astype(np.int64),
        population=None if population is None else _population(population, schema, attributes),
    )
    coding = [(name, leaf_of, len(item.leaves)) for name, (item, leaf_of) in coded.items()]
    coding += [(name, *_identity(counted, name)) for name in (*sensitive, *([] if subject is None else [subject]))]
    sources = [_source(counted, place, *how) for place, how in enumerate(coding)]
    # Quasi-identifiers come first among the sources; the others have no names of leaves.
    named = [_as_named(source, attribute) for source, attribute in zip(sources, attributes, strict=False)]
    return replace(cells, sources=(*named, *sources[len(named) :]))


def _as_named(source: Source, attribute: CodedAttribute) -> Source:
    """Return the source with whether its values are the names of their leaves: ``37`` is not ``[30, 40)``."""
    names = (attribute.labels[0][code] for code in source.codes)
    pairs = zip(source.values, names, strict=True)
    return replace(source, is_shown_as_is=all(item is None or text_of(item) == name for item, name in pairs))


def _source(counted: FrequencyTable, place: int, name: str, codes: Codes, size: int) -> Source:
    column = counted.columns.index(name)
    values, storage = counted.decoders[column], counted.types[column]
    return Source(place=place, name=name, storage=storage, values=values, codes=codes, size=size)


def _identity(counted: FrequencyTable, name: str) -> tuple[Codes, int]:
    size = len(counted.decoders[counted.columns.index(name)])
    return np.arange(size, dtype=np.int32), size


def _column(counted: FrequencyTable, name: str) -> Codes:
    return counted.codes[:, counted.columns.index(name)]


def _sensitive(counted: FrequencyTable, column: Column) -> Sensitive:
    values = counted.decoders[counted.columns.index(column.name)]
    attribute, leaf_of = attribute_of(column, values)
    return Sensitive(name=column.name, values=tuple(values), attribute=_restrict_to_values(attribute, leaf_of))


def _restrict_to_values(attribute: CodedAttribute, leaf_of: Codes) -> CodedAttribute:
    """Return the attribute with one leaf per value that occurs, in the order of the values' codes."""
    return replace(
        attribute,
        leaves=tuple(attribute.leaves[leaf] for leaf in leaf_of),
        ancestors=(np.arange(len(leaf_of), dtype=np.int32), *(codes[leaf_of] for codes in attribute.ancestors[1:])),
        labels=(tuple(attribute.labels[0][leaf] for leaf in leaf_of), *attribute.labels[1:]),
        positions=None if attribute.positions is None else attribute.positions[leaf_of],
    )


def _population(table: Table, schema: Schema, attributes: Sequence[CodedAttribute]) -> CodedCells:
    """Return the population's cells in the codes of the released attributes."""
    names = [attribute.name for attribute in attributes]
    counted = table.with_schema(None).frequencies(names)
    columns = []
    for attribute in attributes:
        known = {None if leaf is None else text_of(leaf): code for code, leaf in enumerate(attribute.leaves)}
        column = schema[attribute.name]
        own, leaf_of = attribute_of(column, counted.decoders[counted.columns.index(attribute.name)])
        # Compared as text: two tables may store the same values in different types.
        found = [known.get(None if own.leaves[code] is None else text_of(own.leaves[code]), -1) for code in leaf_of]
        columns.append(np.array(found, dtype=np.int32)[_column(counted, attribute.name)])
    codes = np.column_stack(columns)
    if (codes < 0).any():
        raise SchemaError(
            "The population has values of a quasi-identifier that the table does not have.",
            fix="give the column a hierarchy or categories that cover both tables.",
        )
    return cells_from_arrays(attributes, codes, counted.weights)
