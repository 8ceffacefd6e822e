"""What is missing in a schema before anything may be released, in sentences for the custodian."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from cloister.core import exact
from cloister.data._identifiers import find_identifier
from cloister.data.columns import FROM_DATA, Column, Kind, Missing, Role, clean_moment
from cloister.data.values import ColumnProfile, StorageType, text_of
from cloister.errors import CloisterError, did_you_mean

_DOMAIN_LINES = {"bounds": 'write "bounds: [lowest, highest]"', "categories": 'write "categories: [first, second]"'}


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class SchemaFinding:
    """One thing to know about a schema, and what to do about it: in Python, or in the schema file."""

    severity: Severity
    column: str | None
    sentence: str
    fix: str
    in_file: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence} Fix: {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON-ready values."""
        return {
            "severity": str(self.severity),
            "column": self.column,
            "sentence": self.sentence,
            "fix": self.fix,
            "in_file": self.in_file,
        }


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """Everything found, the gravest first. It quotes names of columns, never values."""

    findings: tuple[SchemaFinding, ...]

    @property
    def ok(self) -> bool:
        """Return whether nothing stands in the way of a release."""
        return not any(finding.severity is Severity.ERROR for finding in self.findings)

    def about(self, column: str) -> tuple[SchemaFinding, ...]:
        """Return the findings about one column."""
        return tuple(finding for finding in self.findings if finding.column == column)

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "The schema is complete."

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values that start with a version marker."""
        return {
            "schema": "cloister.schema-report/1",
            "ok": self.ok,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def check_schema(columns: Mapping[str, Column], profiles: Iterable[ColumnProfile] | None) -> SchemaReport:
    """Return what is missing for a private release, also compared with a table's profiles."""
    found = [finding for column in columns.values() for finding in _about_column(column)]
    if profiles is not None:
        found.extend(_compare_with_table(columns, list(profiles)))
    order = list(Severity)
    return SchemaReport(tuple(sorted(found, key=lambda finding: order.index(finding.severity))))


def _about_column(column: Column) -> Iterator[SchemaFinding]:
    yield from _guesses(column)
    if column.role is Role.IDENTIFIER:
        return
    yield from _domain(column)
    yield from _treatment(column)


def _guesses(column: Column) -> Iterator[SchemaFinding]:
    name = column.name
    domain = sorted(column.guessed & {"bounds", "categories"})
    other = sorted(column.guessed - {"bounds", "categories"})
    if domain:
        yield SchemaFinding(
            Severity.ERROR,
            name,
            f'The {" and ".join(domain)} of "{name}" were read from the data, so using them would tell about people.',
            f'replace them by what is known without looking, then schema.confirm("{name}").',
            f"{_DOMAIN_LINES[domain[0]]} from what is known without looking, then delete {_quote_facts(domain)} from "
            'the "guessed" line of the column.',
        )
    if other:
        because = f" ({column.evidence})" if column.evidence else ""
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'The {" and ".join(other)} of "{name}" are guesses{because}.',
            f'correct them, then schema.confirm("{name}").',
            f'correct them, then delete {_quote_facts(other)} from the "guessed" line of the column.',
        )
    for fact, words in FROM_DATA.items():
        if fact not in column.guessed and getattr(column, fact) is not None and words in column.evidence:
            yield SchemaFinding(
                Severity.WARNING,
                name,
                f'The {fact} of "{name}" are not marked as guessed, but the evidence names the data as their source.',
                f'replace them by what is known without looking: schema.with_{fact}("{name}", ...).',
                'if they are known without looking, delete the "evidence" line of the column, else replace them.',
            )


def _domain(column: Column) -> Iterator[SchemaFinding]:
    name = column.name
    if column.kind in (Kind.NUMERIC, Kind.DATETIME) and column.bounds is None and column.categories is None:
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'"{name}" has no bounds, so it cannot be summed, averaged or binned privately.',
            f'schema.with_bounds("{name}", (lowest, highest)), from public knowledge.',
            f"{_DOMAIN_LINES['bounds']} from public knowledge.",
        )
    if column.kind in (Kind.NOMINAL, Kind.ORDINAL, Kind.SET) and column.categories is None and column.bounds is None:
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'"{name}" has no categories, so groups cannot be listed without looking at the data.',
            f'schema.with_categories("{name}", [...]), from public knowledge.',
            f"{_DOMAIN_LINES['categories']} from public knowledge.",
        )


def _treatment(column: Column) -> Iterator[SchemaFinding]:
    name = column.name
    if column.role is Role.INSENSITIVE:
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'"{name}" is called insensitive: it would be published untouched and could single people out.',
            f'keep it so only if nobody can know it from outside, else schema.with_role("{name}", "quasi").',
            'keep it so only if nobody can know it from outside, else write "role: quasi".',
        )
    if column.role is Role.QUASI and column.hierarchy is None:
        numeric = column.kind in (Kind.NUMERIC, Kind.DATETIME) and column.bounds is not None
        yield SchemaFinding(
            Severity.NOTE if numeric else Severity.WARNING,
            name,
            f'"{name}" has no hierarchy, so it can only be kept, cut into ranges or suppressed.',
            f'schema.with_hierarchy("{name}", Hierarchy.read_csv("{name}.csv")), or another builder of Hierarchy.',
            'write "hierarchy: FILE", with a file such as "39;30-39;*" beside the schema, if it is to be generalized.',
        )
    if column.missing is Missing.MATCHES_ANY:
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'In "{name}" a missing value counts as equal to anything, which is weaker than a value of its own.',
            "set missing: own_value unless the weaker promise is meant.",
            'delete its "missing" line unless the weaker promise is meant.',
        )


def _compare_with_table(columns: Mapping[str, Column], profiles: list[ColumnProfile]) -> Iterator[SchemaFinding]:
    present = [profile.name for profile in profiles]
    for name in columns:
        if name not in present:
            yield SchemaFinding(
                Severity.ERROR,
                name,
                f'"{name}" is in the schema but not in the table.{did_you_mean(name, present)}',
                f'rename it, or schema.without("{name}").',
                "rename the column in the file, or delete it there.",
            )
    for profile in profiles:
        if profile.name in columns:
            yield from _about_data(columns[profile.name], profile)
        else:
            yield SchemaFinding(
                Severity.ERROR,
                profile.name,
                f'"{profile.name}" is in the table but not in the schema.{did_you_mean(profile.name, columns)}',
                "add it with its role, so that nothing is published by accident.",
                'add it with its role, such as "{role: quasi, kind: nominal}".',
            )


def _about_data(column: Column, profile: ColumnProfile) -> Iterator[SchemaFinding]:
    name = column.name
    identifier = find_identifier(profile)
    if identifier is not None and column.role is not Role.IDENTIFIER:
        grave = identifier.by_value and column.role is not Role.SENSITIVE
        yield SchemaFinding(
            Severity.ERROR if grave else Severity.WARNING,
            name,
            f'"{name}" looks like an identifier ({identifier.evidence}) but is called {column.role}.',
            f'schema.with_role("{name}", "identifier") unless it is none.',
            'write "role: identifier" unless it is none.',
        )
    if _loses_cells(column, profile):
        yield _other_storage(column, profile)
        return
    if column.role is Role.IDENTIFIER:
        return
    if not column.fits(profile.type) and profile.missing < profile.rows:
        yield _contradiction(column, profile)
        return
    if _exceeds(column, profile):
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'Some values of "{name}" lie outside its bounds and will be moved to the nearest bound.',
            "widen the bounds if such values are possible in general; do not fit them to this data.",
            'widen "bounds" if such values are possible in general; do not fit them to this data.',
        )
    if not _are_values_declared(column, profile):
        yield SchemaFinding(
            Severity.WARNING,
            name,
            f'Some values of "{name}" are not among its categories.',
            "add what is possible in general, or mend the data.",
            'add to "categories" what is possible in general, or mend the data.',
        )
    if column.hierarchy is not None and not column.hierarchy.covers(list(profile.common)):
        yield SchemaFinding(
            Severity.ERROR,
            name,
            f'The hierarchy of "{name}" does not cover every value.',
            "add the missing values as leaves; hierarchy.uncovered(values) lists them.",
            "add the missing values to the hierarchy, one row for each.",
        )


def _contradiction(column: Column, profile: ColumnProfile) -> SchemaFinding:
    right = "datetime" if profile.type in (StorageType.DATE, StorageType.TIMESTAMP) else "nominal"
    right = "numeric" if profile.type in (StorageType.INTEGER, StorageType.REAL) else right
    return SchemaFinding(
        Severity.ERROR,
        column.name,
        f'"{column.name}" is called {column.kind}, but the table holds it as {profile.type}.',
        f'schema.with_kind("{column.name}", "{right}"), or mend the data; name texts that stand for missing values: '
        'open_table(..., missing=("?",)).',
        f'write "kind: {right}", without bounds that do not suit it, or mend the data; name texts that stand for '
        "missing values with --missing.",
    )


def _loses_cells(column: Column, profile: ColumnProfile) -> bool:
    """Return whether values of the type that the table has may not fit the storage that is stated."""
    widened = {StorageType.TEXT: set(StorageType), StorageType.REAL: {StorageType.INTEGER}}
    stated = column.stated_storage
    if stated is None or profile.missing == profile.rows:
        return False
    return profile.type is not stated and profile.type not in widened.get(stated, ())


def _other_storage(column: Column, profile: ColumnProfile) -> SchemaFinding:
    name, found = column.name, profile.type
    meant, line = "", ""
    if column.fits(found):
        meant = f'; if {found} is meant, schema.with_storage("{name}", "{found}")'
        line = f'; if {found} is meant, write "storage: {found}"'
    return SchemaFinding(
        Severity.WARNING,
        name,
        f'"{name}" is stated to be stored as {column.storage}, but the table holds it as {found}: '
        "cells of a CSV file that do not fit will be missing.",
        f'mend the data, or name texts that stand for missing values: open_table(..., missing=("?",)){meant}.',
        f"mend the data, or name texts that stand for missing values with --missing{line}.",
    )


def _quote_facts(facts: list[str]) -> str:
    return " and ".join(f'"{fact}"' for fact in facts)


def _exceeds(column: Column, profile: ColumnProfile) -> bool:
    if column.bounds is None or profile.minimum is None or profile.maximum is None:
        return False
    read = clean_moment if column.kind is Kind.DATETIME else exact.number
    try:
        low, high = (read(end) for end in (profile.minimum, profile.maximum))
        if isinstance(low, datetime) and not isinstance(column.bounds[0], datetime):
            low, high = low.date(), high.date()  # type: ignore[union-attr]  # both are of the column's type
        return bool(low < column.bounds[0] or high > column.bounds[1])  # type: ignore[operator]  # same scale by kind
    except (CloisterError, TypeError):
        return False


def _are_values_declared(column: Column, profile: ColumnProfile) -> bool:
    if column.categories is None or column.kind is Kind.SET:
        return True
    known = {text_of(category) for category in column.categories}
    return all(value is None or text_of(value) in known for value in profile.common)
