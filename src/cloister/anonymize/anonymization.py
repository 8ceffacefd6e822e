"""`cloister.anonymize`: from a table and the models it must satisfy to a release.

The table is counted once in its engine; an algorithm finds classes on the counts; every class is checked again against
every model; then the engine recodes the rows. Nothing is promised that was not checked on what is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, overload

import numpy as np

from cloister.anonymize._choice import AlgorithmChoice, choose, run_algorithm
from cloister.anonymize._partition import whole
from cloister.anonymize._recoding import recode_table
from cloister.anonymize._roles import Roles, checks_for, roles_of
from cloister.anonymize.algorithms._base import Progress, Task, check_options, entry_of, no_progress, values_of
from cloister.anonymize.anatomy import AnatomyRelease, release_anatomy
from cloister.anonymize.cells import CodedCells, read_cells
from cloister.anonymize.models import ModelCheck, classes_of
from cloister.anonymize.regions import Regions, Values
from cloister.anonymize.release import Release
from cloister.core.exact import Number
from cloister.core.guarantees import AllOf, Guarantee
from cloister.core.validation import check_choice, check_positive, check_probability
from cloister.data.columns import BOUNDED, Column, Kind
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, SchemaError, UnknownColumnError, UnsatisfiableError

__all__ = ["PlannedRelease", "anonymize", "plan_release"]

AUTOMATIC = "automatic"
"""What a plan says where the algorithm is chosen by looking at the rows."""
_FEW = 4
"""How many values a column may have for all or nothing to be a fair choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """What is known about a release before any row is read.

    Attributes:
        guarantee: what the release will promise, if there is one that can.
        algorithm: how its classes will be found; "automatic" is the one that will lose least.
        roles: which columns are taken for what.
        lacks_hierarchies: whether values of some quasi-identifier can only be listed or left out.
    """

    guarantee: Guarantee
    algorithm: str
    roles: Roles
    lacks_hierarchies: bool


def plan_release(
    table: Table,
    *,
    models: Sequence[Guarantee | Mapping[str, Any]],
    algorithm: str | None = None,
    suppression_limit: Number = 0,
    values: str | None = None,
) -> PlannedRelease:
    """Return what `anonymize` would promise, after refusing all that can be refused without rows.

    Args:
        table: a table with the schema of the one to be released; it may be empty.
        models: as in `anonymize`, as are the others.
        algorithm: one that makes one table; by default the one that loses least inside the hierarchies.
        suppression_limit: the share of rows that may be left out.
        values: how classes are shown.
    """
    roles = roles_of(table)
    checks = checks_for(models, roles)
    shown = _choose_values(algorithm, values, roles)
    usual = AUTOMATIC if shown is Values.HIERARCHY else "mondrian"
    check_probability(suppression_limit, name="suppression_limit")
    needed = next((check for check in checks if check.needs_population), None)
    if needed is not None:
        raise ParameterError(
            f"The model {type(needed.model).__name__} compares with a population.", fix="use another model."
        )
    return PlannedRelease(
        guarantee=_promise(checks, roles.quasi),
        algorithm=algorithm or usual,
        roles=roles,
        lacks_hierarchies=_lacks_hierarchies(roles),
    )


@overload
def anonymize(
    table: Table,
    *,
    models: Sequence[Guarantee | Mapping[str, Any]],
    algorithm: Literal["anatomy"],
    suppression_limit: Number = 0,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    values: str | None = None,
    loss: str = "ncp",
    weights: Mapping[str, object] | None = None,
    population: Table | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> AnatomyRelease: ...


@overload
def anonymize(
    table: Table,
    *,
    models: Sequence[Guarantee | Mapping[str, Any]],
    algorithm: Literal["optimal", "mondrian", "top_down", "clustering", "mdav"] | None = None,
    suppression_limit: Number = 0,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    values: str | None = None,
    loss: str = "ncp",
    weights: Mapping[str, object] | None = None,
    population: Table | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Release: ...


@overload
def anonymize(
    table: Table,
    *,
    models: Sequence[Guarantee | Mapping[str, Any]],
    algorithm: str | None,
    suppression_limit: Number = 0,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    values: str | None = None,
    loss: str = "ncp",
    weights: Mapping[str, object] | None = None,
    population: Table | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Release | AnatomyRelease: ...


def anonymize(
    table: Table,
    *,
    models: Sequence[Guarantee | Mapping[str, Any]],
    algorithm: str | None = None,
    suppression_limit: Number = 0,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    values: str | None = None,
    loss: str = "ncp",
    weights: Mapping[str, object] | None = None,
    population: Table | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Release | AnatomyRelease:
    """Return a release of a table in which every class of look-alike rows satisfies every model.

    Args:
        table: the table, with a schema that gives each column a role.
        models: what the release must satisfy, such as ``[KAnonymity(k=5), LDiversity("disease", l=3)]``; settings such
            as ``{"k": 5}`` do as well.
        algorithm: ``optimal``, ``mondrian``, ``top_down``, ``clustering`` or ``mdav``; ``anatomy`` gives two tables. By
            default the one that loses least inside the hierarchies, which `Release.choice` tells with what others
            would lose; ``mondrian`` with sets of values if some nominal quasi-identifier has no hierarchy.
        suppression_limit: the share of rows that may be left out, from 0 to 1.
        quasi_identifiers: the columns that others may know, instead of those of the schema, which are left out then.
        sensitive: the columns that others want to know, instead of those of the schema, which are left out then.
        values: how classes are shown: ``hierarchy``, ``sets`` or ``centers``; each algorithm has its own default.
        loss: what is minimized, for algorithms that can choose.
        weights: how much the precision of a column matters, instead of the schema's weights.
        population: the table from which the released one is a sample, for `KMap` and `DeltaPresence`.
        progress: called now and then with the share that is done and what is being done.
        options: what else the algorithm understands; see its page.

    Raises:
        UnsatisfiableError: if no release can satisfy the models.
        SchemaError: if roles are missing or contradict each other.
        HierarchyError: if a hierarchy misses a value.
    """
    if not isinstance(table, Table):
        raise ParameterTypeError(
            f"This is not an open table but of type {type(table).__name__}.",
            fix="open it first: table = cloister.open_table(..., schema=...).",
        )
    if progress is not None and not callable(progress):
        raise ParameterTypeError("progress cannot be called.", fix="give a function of two arguments, such as print.")
    roles = roles_of(table, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    checks = checks_for(models, roles)
    if algorithm == "anatomy":
        check_options(algorithm, options, {"random_state"})
        limit = check_probability(suppression_limit, name="suppression_limit") or None
        _refuse_for_anatomy(suppression_limit=limit, values=values, weights=weights, population=population)
        return release_anatomy(table, roles, checks, options.get("random_state"))
    if algorithm is not None:
        check_options(algorithm, options, entry_of(algorithm).options)
    task = Task(
        cells=_count_cells(table, roles, checks, weights, population),
        checks=checks,
        suppression_limit=check_probability(suppression_limit, name="suppression_limit"),
        loss=loss,
        values=_choose_values(algorithm, values, roles),
        options=options,
        progress=progress or no_progress,
    )
    check_satisfiable(task)
    if algorithm is not None:
        choice = run_algorithm(task, algorithm)
    else:
        choice = choose(task)
        if values is None and task.values is Values.SETS:
            choice = replace(choice, sentence=_explain_mondrian(roles))
    return _make_release(table, roles, task, choice, weights=weights)


def _refuse_for_anatomy(**settings: object) -> None:
    """Refuse what anatomy would not heed: it leaves no row out and changes no value."""
    given = next((name for name, value in settings.items() if value is not None), None)
    if given is not None:
        raise ParameterError(f"Anatomy does not use {given}.", fix=f"leave {given} out, or use another algorithm.")


def _choose_values(algorithm: str | None, values: str | None, roles: Roles) -> Values:
    """Return how classes are shown: by names of the hierarchies where nothing is missing, else as sets of values."""
    usual = Values.SETS if _lacks_hierarchies(roles) else Values.HIERARCHY
    if algorithm is None:
        return Values(check_choice(values or usual, name="values", allowed=tuple(map(str, Values))))
    return values_of(algorithm, usual if values is None and algorithm == "clustering" else values)


def _explain_mondrian(roles: Roles) -> str:
    """Return why mondrian is taken where hierarchies are missing."""
    names = ", ".join(f'"{name}"' for name in _without_hierarchy(roles))
    return f"Sets of values and intervals are shown (mondrian), because there is no hierarchy for {names}."


def _lacks_hierarchies(roles: Roles) -> bool:
    return bool(_without_hierarchy(roles))


def _without_hierarchy(roles: Roles) -> list[str]:
    """Return the quasi-identifiers whose values can only be listed: without order or hierarchy, and not just a few."""
    columns = [roles.schema[name] for name in roles.quasi]
    open_ = [column for column in columns if column.hierarchy is None and column.kind not in BOUNDED]
    return [column.name for column in open_ if column.categories is None or len(column.categories) > _FEW]


def _count_cells(
    table: Table,
    roles: Roles,
    checks: Sequence[ModelCheck],
    weights: Mapping[str, object] | None,
    population: Table | None,
) -> CodedCells:
    needed = next((check for check in checks if check.needs_population and population is None), None)
    if needed is not None:
        raise ParameterError(
            f"The model {type(needed.model).__name__} compares with a population.",
            fix="give population=cloister.open_table(...), with the same quasi-identifiers.",
        )
    if population is not None:
        _check_population(population, roles)
    cells = _rows(table, roles, checks, population=population)
    return cells if weights is None else cells.with_weights(_check_weights(weights, roles))


def _check_population(population: object, roles: Roles) -> None:
    if not isinstance(population, Table):
        raise ParameterTypeError(
            "The population is not a table: models count the people in it who fit each class.",
            fix="give population=cloister.open_table(...), or ask for a number of people in cloister.assess.",
        )
    missing = [f'"{name}"' for name in roles.quasi if name not in population.columns]
    if missing:
        raise SchemaError(
            f"The population has no column {', '.join(missing)}.",
            fix="give it the quasi-identifiers of the table, under the same names.",
        )


def _rows(table: Table, roles: Roles, checks: Sequence[ModelCheck], *, population: Table | None = None) -> CodedCells:
    """Count what the models ask about."""
    counts_persons = any(getattr(check.model, "unit", "row") == roles.subject for check in checks)
    return read_cells(
        table,
        roles.schema,
        quasi=roles.quasi,
        sensitive=[name for name in roles.sensitive if any(check.attribute == name for check in checks)],
        subject=roles.subject if counts_persons else None,
        population=population,
    )


def _check_weights(weights: Mapping[str, object], roles: Roles) -> dict[str, float]:
    if not isinstance(weights, Mapping):
        raise ParameterTypeError("weights says no columns.", fix='write for example weights={"age": 2}.')
    for name in weights:
        if name not in roles.quasi:
            raise UnknownColumnError(str(name), roles.quasi)
    return {name: float(check_positive(weight, name="weight")) for name, weight in weights.items()}


def check_satisfiable(task: Task) -> None:
    """Return nothing when the whole table as one class satisfies the models, else raise.

    Where rows may be suppressed, a part of the table may satisfy a model that the whole does not.

    Raises:
        UnsatisfiableError: with the model that fails and what would satisfy it.
    """
    everything = classes_of(whole(task.cells, np.zeros(len(task.cells), dtype=np.int64)))
    for check in task.checks:
        is_decided = check.is_monotone and (check.is_hereditary or not task.allowed)
        if is_decided and not check.holds(everything).all():
            raise UnsatisfiableError(
                f"No release can satisfy {check.model.brief()}: even the whole table as one class does not.",
                fix=f"{check.advice(everything)}, or have more data.",
            )


def _make_release(
    table: Table, roles: Roles, task: Task, choice: AlgorithmChoice, *, weights: Mapping[str, object] | None
) -> Release:
    outcome = choice.outcome
    regions = Regions(partition=outcome.partition, values=outcome.values)
    schema = _describe_columns(table, roles, regions)
    return Release(
        guarantee=_promise(task.checks, task.cells.names),
        table=recode_table(
            table,
            regions,
            drop=roles.identifiers,
            schema=schema,
            count=lambda: _rows(table, roles, task.checks),
        ),
        original=table,
        roles=roles,
        regions=regions,
        checks=task.checks,
        algorithm=choice.algorithm,
        choice=choice.sentence,
        suppression_limit=task.suppression_limit,
        loss_name=task.loss,
        options=dict(choice.options),
        weights={} if weights is None else _check_weights(weights, roles),
        notes=outcome.notes,
        facts=dict(outcome.facts),
    )


def _promise(checks: Sequence[ModelCheck], quasi: Sequence[str]) -> Guarantee:
    known = f"others know at most these columns: {', '.join(quasi)}"
    promised = [check.model.with_assumption(known) for check in checks]
    return promised[0] if len(promised) == 1 else AllOf(parts=tuple(promised))


def _describe_columns(table: Table, roles: Roles, regions: Regions) -> Schema:
    """Return what is known about the released columns: generalized ones are names."""
    levels = regions.partition.levels or ()
    pairs = zip(regions.partition.cells.sources, levels, strict=False)
    exact = {source.name for source, level in pairs if level == 0 and source.is_shown_as_is}
    columns = []
    for name in table.columns:
        column = roles.schema[name]
        if name in roles.identifiers:
            continue
        changed = name in roles.quasi and name not in exact
        columns.append(_as_names(column, regions) if changed else replace(column, subject=False))
    return Schema(columns)


def _as_names(column: Column, regions: Regions) -> Column:
    place = regions.partition.cells.names.index(column.name)
    is_mean = regions.values is Values.CENTERS and regions.partition.cells.attributes[place].is_numeric
    kind = Kind.NUMERIC if is_mean else Kind.NOMINAL
    return Column(name=column.name, role=column.role, kind=kind, weight=Fraction(column.weight))
