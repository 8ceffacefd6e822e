"""A table as it is, counted once: each combination of released labels is a class.

Rows that show ``*`` in every quasi-identifier are suppressed: they are in no class. A missing value is a value of its
own, so that a row that shows one says something, also where all its other cells are ``*``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import CodedCells, group_lines, read_cells
from cloister.anonymize.labels import read_labels
from cloister.anonymize.models import EquivalenceClasses
from cloister.data.columns import Column, Kind, Role
from cloister.data.hierarchy import ROOT
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import HierarchyError, SchemaError

__all__ = ["apply_roles", "classes_per_cell", "find_kept_cells", "fitting_people", "k_of_all_columns", "read_released"]

_BLOCK = 1 << 24
_NUMBERS = (StorageType.INTEGER, StorageType.REAL)


def apply_roles(
    table: Table, schema: Schema | None, *, quasi: Sequence[str] | None, sensitive: Sequence[str] | None
) -> Schema:
    """Return the schema of a table with the roles that a caller states; columns that the table lacks are left out.

    Raises:
        SchemaError: if there is neither a schema nor a list of quasi-identifiers, or a column is in both lists.
    """
    if schema is None and quasi is None:
        raise SchemaError(
            "The table has no schema that says which columns are quasi-identifiers.",
            fix='open it with a schema, or write assess(table, quasi_identifiers=["age", "zip"]).',
        )
    both = sorted(set(quasi or ()) & set(sensitive or ()))
    if both:
        raise SchemaError(
            f'"{both[0]}" is called a quasi-identifier and sensitive.', fix="put each column into one list."
        )
    known = {} if schema is None else dict(schema.columns)
    columns = [known.get(name) or _plain(table, name) for name in table.columns if schema is None or name in known]
    result = Schema(columns)
    for role, names in ((Role.QUASI, quasi), (Role.SENSITIVE, sensitive)):
        if names is not None:
            result = _with_role(result, role, list(names))
    return result


def _plain(table: Table, name: str) -> Column:
    kind = Kind.NUMERIC if table.types[name] in _NUMBERS else Kind.NOMINAL
    return Column(name=name, kind=kind, role=Role.INSENSITIVE)


def _with_role(schema: Schema, role: Role, names: list[str]) -> Schema:
    """Return the schema in which exactly the named columns have a role; others that had it are insensitive."""
    for name in schema.with_roles(role):
        if name not in names:
            schema = schema.with_role(name, Role.INSENSITIVE)
    for name in names:
        schema = schema.with_role(name, role)
    return schema


def read_released(table: Table, schema: Schema) -> CodedCells:
    """Count a table by what it shows: quasi-identifiers as names, sensitive values with their hierarchies."""
    quasi, sensitive = schema.with_roles(Role.QUASI), schema.with_roles(Role.SENSITIVE)
    shown = Schema(
        _strip_hierarchy(column) if column.role is Role.QUASI else column for column in schema.columns.values()
    )
    try:
        return read_cells(table, shown, quasi=quasi, sensitive=sensitive, subject=schema.subject)
    # Released cells may show labels that a hierarchy does not list among its values.
    except HierarchyError:
        bare = Schema(replace(column, hierarchy=None, hierarchy_file=None) for column in shown.columns.values())
        return read_cells(table, bare, quasi=quasi, sensitive=sensitive, subject=schema.subject)


def _strip_hierarchy(column: Column) -> Column:
    return Column(name=column.name, role=column.role, subject=column.subject)


def find_kept_cells(cells: CodedCells) -> NDArray[np.bool_]:
    """Return which cells say something; all of them in a table that says nothing."""
    silent = np.ones(len(cells), dtype=bool)
    for place, attribute in enumerate(cells.attributes):
        silent &= np.array([leaf == ROOT for leaf in attribute.leaves])[cells.codes[:, place]]
    return np.ones(len(cells), dtype=bool) if silent.all() else ~silent


def classes_per_cell(cells: CodedCells, kept: NDArray[np.bool_]) -> EquivalenceClasses:
    """Return one class per kept cell."""
    number = np.cumsum(kept) - 1
    records = np.flatnonzero(kept[cells.record_cells])
    return EquivalenceClasses(
        cells=cells,
        records=records,
        groups=number[cells.record_cells[records]],
        counts=cells.record_weights[records],
        size=int(kept.sum()),
    )


def k_of_all_columns(table: Table, schema: Schema, *, k: int) -> int:
    """Return k-anonymity over all columns that are neither sensitive nor identifiers."""
    known = [name for name, column in schema.columns.items() if column.role in (Role.QUASI, Role.INSENSITIVE)]
    if len(known) == len(schema.with_roles(Role.QUASI)) or k == 1:
        return k
    return int(table.with_schema(None).frequencies(known).weights.min())


def fitting_people(population: Table, schema: Schema, cells: CodedCells, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many people of a population table fit each kept cell."""
    people = read_cells(population, schema, quasi=cells.names)
    codes = cells.codes[kept]
    members = [
        read_labels(attribute, shown.leaves, unknown="nobody").member
        for attribute, shown in zip(people.attributes, cells.attributes, strict=True)
    ]
    # Where every label is one raw value at most, people are counted by a lookup instead of pair by pair.
    if all((member.sum(axis=1) <= 1).all() for member in members):
        return _matching_exactly(members, codes, people)
    step = max(_BLOCK // max(len(people), 1), 1)
    blocks = [codes[start : start + step] for start in range(0, len(codes), step)]
    return np.concatenate([_matching(members, block, people) for block in blocks])


def _matching(members: list[NDArray[np.bool_]], codes: NDArray[np.int32], people: CodedCells) -> NDArray[np.int64]:
    fits = np.ones((len(codes), len(people)), dtype=bool)
    for place, member in enumerate(members):
        fits &= member[codes[:, place]][:, people.codes[:, place]]
    return np.asarray(fits @ people.weights)


def _matching_exactly(
    members: list[NDArray[np.bool_]], codes: NDArray[np.int32], people: CodedCells
) -> NDArray[np.int64]:
    """Return the people with exactly the values of each class, all of whose labels are raw values."""
    sizes = [member.shape[1] for member in members]
    # A label that fits nobody gets a code of its own, which no person has.
    leaf = [
        np.where(member.any(axis=1), member.argmax(axis=1), size) for member, size in zip(members, sizes, strict=True)
    ]
    wanted = np.column_stack([found[codes[:, place]] for place, found in enumerate(leaf)])
    both = np.vstack([people.codes, wanted.astype(np.int32)])
    _, _, group = group_lines(both, tuple(size + 1 for size in sizes))
    totals = np.bincount(group[: len(people)], weights=people.weights, minlength=int(group.max()) + 1)
    return totals[group[len(people) :]].astype(np.int64)
