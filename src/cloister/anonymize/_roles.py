"""Roles of columns in a release: which identify, which are quasi-identifiers, which are sensitive, what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cloister.anonymize.models import ModelCheck, check_of, model_from
from cloister.core.guarantees import Guarantee, KMap, Syntactic, TCloseness
from cloister.data.columns import BOUNDED, Column, Kind, Role
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import ParameterError, ParameterTypeError, SchemaError, UnknownColumnError


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The columns of a table by what they give away; ``alphabetical`` ones have no order but that of letters."""

    schema: Schema
    quasi: tuple[str, ...]
    sensitive: tuple[str, ...]
    identifiers: tuple[str, ...]
    insensitive: tuple[str, ...]
    subject: str | None = None
    alphabetical: tuple[str, ...] = ()


def roles_of(
    table: Table, *, quasi_identifiers: Sequence[str] | None = None, sensitive: Sequence[str] | None = None
) -> Roles:
    """Return the roles that the schema states, with those that the caller overrides.

    Raises:
        SchemaError: if there is no schema, a column has no role, or a column is both sensitive and a quasi-identifier.
    """
    schema = _complete(table, quasi_identifiers, sensitive)
    columns = [_without_person(schema[name]) for name in table.columns]
    quasi = _select_names(columns, Role.QUASI)
    if not quasi:
        raise SchemaError(
            "No column is a quasi-identifier, so there is nothing to protect against.",
            fix='state which columns others may know: schema.with_role("age", "quasi").',
        )
    for name in quasi:
        _check_quasi(schema[name], table.types[name])
    return Roles(
        schema=schema,
        quasi=quasi,
        sensitive=_select_names(columns, Role.SENSITIVE),
        identifiers=_select_names(columns, Role.IDENTIFIER),
        insensitive=_select_names(columns, Role.INSENSITIVE),
        subject=next((column.name for column in columns if column.subject), None),
        alphabetical=tuple(column.name for column in columns if _is_alphabetical(column, table.types[column.name])),
    )


def _check_quasi(column: Column, storage: StorageType) -> None:
    """Refuse a quasi-identifier that cannot be generalized as it is."""
    if column.hierarchy is not None:
        return
    if column.kind in (Kind.TEXT, Kind.SET):
        what = "free text" if column.kind is Kind.TEXT else "sets"
        raise SchemaError(
            f'"{column.name}" holds {what}, which cannot be generalized.',
            fix=f'leave it out of the table, give it a hierarchy, or schema.with_role("{column.name}", "identifier").',
        )
    if column.kind is not Kind.ORDINAL and _is_alphabetical(column, storage):
        wanted = "date" if column.kind is Kind.DATETIME else "integer"
        raise SchemaError(
            f'"{column.name}" is called {column.kind} and stored as text, so that its order would be that of letters.',
            fix=f'read it in its type: schema.with_storage("{column.name}", "{wanted}"), or give it a hierarchy.',
        )


def _is_alphabetical(column: Column, storage: StorageType) -> bool:
    """Return whether a column that should have an order is text whose order nobody stated."""
    stated = column.hierarchy is not None or (column.kind is Kind.ORDINAL and column.categories is not None)
    return column.kind in BOUNDED and storage is StorageType.TEXT and not stated


def _without_person(column: Column) -> Column:
    """Return a released column that names the person as an identifier: rows must not be linked by it."""
    is_released = column.role in (Role.INSENSITIVE, Role.SENSITIVE)
    return replace(column, role=Role.IDENTIFIER) if column.subject and is_released else column


def _select_names(columns: Sequence[Column], role: Role) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.role is role)


def _complete(table: Table, quasi: Sequence[str] | None, sensitive: Sequence[str] | None) -> Schema:
    """Return a schema that describes every column, with overridden roles."""
    given = _names(quasi, table, "quasi_identifiers"), _names(sensitive, table, "sensitive")
    both = next((name for name in given[0] or () if name in (given[1] or ())), None)
    if both is not None:
        raise SchemaError(
            f'"{both}" is said to be a quasi-identifier and sensitive.',
            fix="a column that others may know is a quasi-identifier; one that they want to know is sensitive.",
        )
    known = dict(table.schema.columns) if table.schema is not None else {}
    if not known and quasi is None:
        raise SchemaError(
            "The table has no schema, so nobody has said which columns identify people.",
            fix="open it with schema=..., or name quasi_identifiers=[...] and sensitive=[...].",
        )
    undescribed = [name for name in table.columns if name not in known]
    if undescribed and quasi is None:
        listing = ", ".join(f'"{name}"' for name in undescribed)
        raise SchemaError(
            f"The schema does not describe {listing}, so nobody has said what they give away.",
            fix="add them to the schema with a role, or leave them out of the table.",
        )
    columns = [known.get(name) or _assume_column(name, table.types[name]) for name in table.columns]
    return Schema(_overridden(column, *given) for column in columns)


def _assume_column(name: str, storage: StorageType) -> Column:
    """Return a column that nobody described: it might name people, so it is left out unless it is given a role."""
    kinds = {
        StorageType.INTEGER: Kind.NUMERIC,
        StorageType.REAL: Kind.NUMERIC,
        StorageType.DATE: Kind.DATETIME,
        StorageType.TIMESTAMP: Kind.DATETIME,
    }
    return Column(name=name, role=Role.IDENTIFIER, kind=kinds.get(storage, Kind.NOMINAL))


def _overridden(column: Column, quasi: Sequence[str] | None, sensitive: Sequence[str] | None) -> Column:
    """Return a column in the role that the caller's lists give it; one that they drop is not released."""
    if quasi is not None and column.name in quasi:
        return replace(column, role=Role.QUASI)
    if sensitive is not None and column.name in sensitive:
        return replace(column, role=Role.SENSITIVE)
    # A column that loses its role might still identify somebody, so that it is not released by default.
    dropped = (quasi is not None and column.role is Role.QUASI) or (
        sensitive is not None and column.role is Role.SENSITIVE
    )
    return replace(column, role=Role.IDENTIFIER) if dropped else column


def _names(names: Sequence[str] | None, table: Table, option: str) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise ParameterTypeError(f"{option} is one text, not a list of names.", fix=f'write {option}=["{names}"].')
    if not isinstance(names, Iterable):
        raise ParameterTypeError(f"{option} is no list of names.", fix=f'write for example {option}=["age", "zip"].')
    for name in names:
        if name not in table.columns:
            raise UnknownColumnError(str(name), table.columns)
    return tuple(names)


def checks_for(models: object, roles: Roles) -> tuple[ModelCheck, ...]:
    """Return the checks behind the models; k counts persons where the schema names the person.

    Raises:
        ParameterError: if there is no model.
        SchemaError: if a model is about a column that is not sensitive.
    """
    if isinstance(models, Guarantee | Mapping):
        models = [models]
    if not isinstance(models, Iterable) or isinstance(models, str):
        raise ParameterTypeError("models is no list of models.", fix="give models=[cl.KAnonymity(k=5)].")
    if not models:
        raise ParameterError("No model says what the release must satisfy.", fix="give models=[cl.KAnonymity(k=5)].")
    checks = tuple(check_of(_set_unit(model_from(model), roles)) for model in models)
    for check in checks:
        _check_attribute(check.attribute, roles)
        _check_scale(check.model, roles)
    return checks


def _check_scale(model: object, roles: Roles) -> None:
    """Refuse a distance between sensitive values that the schema does not define."""
    if not isinstance(model, TCloseness) or model.variant not in ("ordered", "hierarchical"):
        return
    column = roles.schema[model.attribute]
    if model.variant == "ordered" and (column.kind not in BOUNDED or column.name in roles.alphabetical):
        raise SchemaError(
            f'"{column.name}" is {column.kind}, and nobody has stated the order of its values.',
            fix=f'use kind="equal", or state the order: schema.with_kind("{column.name}", "ordinal") and '
            f'.with_categories("{column.name}", [...]).',
        )
    if model.variant == "hierarchical" and column.hierarchy is None:
        raise SchemaError(
            f'"{column.name}" has no hierarchy that says which of its values are near.',
            fix=f'give one: schema.with_hierarchy("{column.name}", ...), or use kind="equal".',
        )


def _set_unit(model: Guarantee, roles: Roles) -> Guarantee:
    unit = getattr(model, "unit", "row")
    if isinstance(model, KMap):
        return _check_population_unit(model)
    if unit not in ("row", roles.subject) and hasattr(model, "k"):
        raise SchemaError(
            f'The model counts "{unit}", which the schema does not mark as the person.',
            fix=f'mark it: schema.with_subject("{unit}"), or leave unit out.',
        )
    if roles.subject is None or unit != "row" or not isinstance(model, Syntactic) or not hasattr(model, "k"):
        return model
    return model.with_unit(roles.subject)


def _check_population_unit(model: KMap) -> KMap:
    if model.unit != "row":
        raise SchemaError(
            "KMap counts the rows of the population, which are not told apart by person.",
            fix="leave unit out, and give a population with one row per person.",
        )
    return model


def _check_attribute(name: str | None, roles: Roles) -> None:
    if name is None:
        return
    if name not in roles.schema:
        raise UnknownColumnError(name, roles.schema)
    if name in roles.quasi:
        raise SchemaError(
            f'"{name}" is a quasi-identifier, so it cannot be the sensitive column of a model.',
            fix=f'give "{name}" the role sensitive in the schema, or leave the model out.',
        )
    if name not in roles.sensitive:
        raise SchemaError(
            f'A model is about "{name}", which the schema does not call sensitive.',
            fix=f'write schema.with_role("{name}", "sensitive").',
        )
