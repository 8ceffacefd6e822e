"""Measuring a table: `cloister.assess` says what it gives away and, beside its original, what it is still good for.

One count of the quasi-identifiers and sensitive columns, made in the engine, is all that the risk needs. Nothing here
protects anything, and nothing here is private: results are for the custodian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cloister.anonymize.assessment import NOT_PROTECTED, Assessment
from cloister.anonymize.cells import Cells, read_cells
from cloister.anonymize.regions import Regions
from cloister.anonymize.release import Release
from cloister.anonymize.risk import reading
from cloister.anonymize.risk.measuring import measure_risk
from cloister.anonymize.utility.comparing import compare_release, compare_tables
from cloister.anonymize.utility.measuring import measure_utility
from cloister.core.validation import check_count, check_probability
from cloister.data.columns import Role
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, SchemaError

__all__ = ["assess"]

_LARGEST_COMPARISON = 5 * 10**8
"""How many pairs of a label and a raw value of one column are held in memory."""

_USUAL_SIZE = 5
"""The class size that is asked about where nobody says one."""


def assess(
    table: Any,  # a Table, or a release, which knows its tables
    *,
    original: Table | None = None,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    population: int | Table | None = None,
    target: str | None = None,
    threshold: float = 0.2,
    k: int | None = None,
    confidence: float = 0.95,
) -> Assessment:
    """Measure what a table, or a release, gives away and what it is still good for.

    Args:
        table: an open table, raw or protected by any tool, or a release of `cloister.anonymize`.
        original: the table before it was protected; its schema says how labels are read.
        quasi_identifiers: what an attacker may know, where the schema does not say it.
        sensitive: what an attacker must not learn, where the schema does not say it.
        population: how many people the table was drawn from, or a table of them all.
        target: a column to be predicted from the quasi-identifiers, after training on the release and on the original;
            needs the original and the extra ``learn``.
        threshold: the risk above which a row counts as at risk.
        k: the class size to ask about; by default that which a release was asked for, else 5.
        confidence: the confidence of the interval of the estimate for the population.

    Raises:
        SchemaError: if nothing says which columns are quasi-identifiers.
        DataError: if the table has no rows.
    """
    opened, release = _opened(table)
    size = _asked_size(release) if k is None else check_count(k, name="k", at_least=1)
    if not isinstance(original, Table | None):
        raise ParameterTypeError(
            f"The original is not an open table but of type {type(original).__name__}.",
            fix="open it first: original=cloister.open_table(..., schema=...).",
        )
    before = release.original if release is not None and original is None else original
    schema = _described(opened, release, before, quasi_identifiers, sensitive)
    cells = reading.read_released(opened, schema)
    kept = reading.kept_cells(cells) if release is None else np.ones(len(cells), dtype=bool)
    classes = reading.released_classes(cells, kept)
    fitting = None
    if isinstance(population, Table):
        fitting = reading.fitting_people(population, schema, cells, kept)
    risk = measure_risk(
        classes,
        codes=cells.codes[kept],
        unit="row" if cells.record_subjects is None else str(schema.subject),
        suppressed=int(cells.weights[~kept].sum()) if release is None else release.suppressed,
        population_size=None if population is None or fitting is not None else _size(population),
        fitting=fitting,
        k_all_columns=reading.k_of_all_columns(opened, schema, k=int(classes.rows.min())),
        threshold=float(check_probability(threshold, name="threshold")),
        k=size,
        confidence=confidence,
    )
    if release is not None and release.partition.cells.record_subjects is not None:
        persons = int(release.classes.persons.min())
        risk = replace(risk, models=replace(risk.models, k_persons=persons))
    utility = None
    if release is not None and original is None and not _is_comparable(release.regions):
        before = None
    if before is not None:
        if release is not None and original is None:
            comparison = compare_release(release.regions, cells, kept)
        else:
            comparison = compare_tables(opened, cells, kept, original=before, schema=schema)
        targets = None if target is None else _counted_targets(before, schema, target)
        utility = measure_utility(comparison, k=risk.models.k, targets=targets)
    elif target is not None:
        raise ParameterError("A target is learned from the original too.", fix="give original=..., or drop the target.")
    return Assessment(risk=risk, utility=utility, guarantee=NOT_PROTECTED if release is None else release.guarantee)


def _is_comparable(regions: Regions) -> bool:
    """Return whether labels and raw values are few enough to be held against each other."""
    sizes = [len(attribute.leaves) for attribute in regions.partition.cells.attributes]
    return max(sizes) * min(max(sizes), regions.partition.size) <= _LARGEST_COMPARISON


def _counted_targets(original: Table, schema: Schema, target: str) -> Cells:
    quasi = schema.with_roles(Role.QUASI)
    if target in quasi:
        raise ParameterError(
            f'"{target}" is a quasi-identifier, from which the target is predicted.',
            fix="choose a column that is not a quasi-identifier.",
        )
    return read_cells(original, schema, quasi=quasi, sensitive=[target])


def _asked_size(release: Release | None) -> int:
    """Return the largest k that a release was asked for, or what is usual."""
    models = () if release is None else [check.model for check in release.checks if not check.needs_population]
    return max((model.k for model in models if hasattr(model, "k")), default=_USUAL_SIZE)


def _opened(table: Any) -> tuple[Table, Release | None]:
    if isinstance(table, Release):
        return table.table, table
    if isinstance(table, Table):
        return table, None
    raise ParameterTypeError(
        f"This is neither an open table nor a release but of type {type(table).__name__}.",
        fix="open it first: assess(cloister.open_table(...)).",
    )


def _described(
    table: Table,
    release: Release | None,
    original: Table | None,
    quasi: Sequence[str] | None,
    sensitive: Sequence[str] | None,
) -> Schema:
    stated = table.schema
    if original is not None and original.schema is not None:
        stated = original.schema
    if release is not None:
        stated = release.roles.schema
    schema = reading.described(table, stated, quasi=quasi, sensitive=sensitive)
    if not schema.with_roles(Role.QUASI):
        raise SchemaError(
            "No column is a quasi-identifier, so nothing is known that could be linked.",
            fix='name what an attacker may know: assess(table, quasi_identifiers=["age", "zip"]).',
        )
    return schema


def _size(population: Any) -> int:
    return check_count(population, name="population", at_least=1)
