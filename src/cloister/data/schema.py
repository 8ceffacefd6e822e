"""The schema: what the custodian states about every column of a table, once, for every method.

A schema is immutable; the ``with_...`` methods return a changed copy. Facts may be proposed from data (`Schema.infer`)
but stay guesses until a person confirms them: bounds or categories that were read from the data would tell about the
people in it, so a private release refuses them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from cloister.core.wordings import a_or_an
from cloister.data import schema_file as file
from cloister.data._inference import infer_schema
from cloister.data.columns import BOUNDED, Bounds, Category, Column, Kind, Role
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema_check import SchemaReport, check_schema
from cloister.data.values import ColumnProfile, StorageType
from cloister.errors import (
    DataWarning,
    MissingBoundsError,
    ParameterTypeError,
    SchemaError,
    UnconfirmedSchemaError,
    UnknownColumnError,
)

_DOMAIN = ("bounds", "categories")


class Profiled(Protocol):
    """Something, such as a table, that can describe its columns."""

    def profiles(self) -> list[ColumnProfile]:
        """Return the facts about each column."""
        ...


class Schema(Mapping[str, Column]):
    """The columns of a table in order, by name.

    >>> schema = Schema([Column(name="age", kind="numeric", bounds=(17, 90))])
    >>> schema["age"].role.value, schema.bounds_of("age")
    ('quasi', (Fraction(17, 1), Fraction(90, 1)))
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        found: dict[str, Column] = {}
        for column in columns:
            if column.name in found:
                raise SchemaError(f'Column "{column.name}" is there twice.', fix="give every column its own name.")
            found[column.name] = column
        if not found:
            raise SchemaError("The schema has no columns.", fix="add at least one column.")
        subjects = [name for name, column in found.items() if column.subject]
        if len(subjects) > 1:
            raise SchemaError(
                f'Both "{subjects[0]}" and "{subjects[1]}" are marked as the subject.',
                fix="mark only the column that names the person.",
            )
        self._columns = found

    # Reading and writing ---------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema file (YAML); a hierarchy's file name counts from the folder of the schema file.

        Raises:
            SourceNotFoundError: if there is no such file.
            SchemaError: if the file is not a schema, with what to change.
        """
        return cls(file.read_columns(path))

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write a schema file that `read` gives back equal, guesses included."""
        file.write_columns(path, tuple(self._columns.values()), overwrite=overwrite)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, folder: str | Path | None = ".") -> Schema:
        """Build from the plain values that `to_dict` returns.

        Args:
            data: the plain values.
            folder: where the names of hierarchy files count from; None refuses to open files, for values that a
                stranger sent.
        """
        return cls(file.columns_from_dict(data, folder=None if folder is None else Path(folder)))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; hierarchies are inside, as text."""
        return file.columns_to_dict(tuple(self._columns.values()))

    @classmethod
    def infer(cls, table: Profiled) -> Schema:
        """Propose a schema from a table. Everything in it is a guess until `confirm`.

        Raises:
            ParameterTypeError: if it is not an open table.
        """
        profiles = _check_open(table).profiles()
        if profiles and not profiles[0].rows:
            warnings.warn(
                "The table has no rows, so only the names of its columns are known.", DataWarning, stacklevel=2
            )
        return cls(infer_schema(profiles))

    # Looking ---------------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> Mapping[str, Column]:
        """Return the columns by name, in order."""
        return MappingProxyType(self._columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns, in order."""
        return tuple(self._columns)

    @property
    def subject(self) -> str | None:
        """Return the name of the column that names the person, if one is marked."""
        return next((name for name, column in self._columns.items() if column.subject), None)

    def with_roles(self, role: Role | str) -> tuple[str, ...]:
        """Return the names of the columns that have a role."""
        wanted = Role(role)
        return tuple(name for name, column in self._columns.items() if column.role is wanted)

    def bounds_of(self, name: str, *, allow_guessed: bool = False) -> Bounds:
        """Return the public bounds of a column.

        Raises:
            MissingBoundsError: if it has none.
            UnconfirmedSchemaError: if they are a guess.
        """
        column = self[name]
        if column.bounds is None:
            raise MissingBoundsError(
                f'Column "{name}" has no bounds, and reading them from the data would not be private.',
                fix=_bounds_fix(column),
            )
        if not allow_guessed:
            self.require_confirmed([name], facts=("bounds",))
        return column.bounds

    def categories_of(self, name: str, *, allow_guessed: bool = False) -> tuple[Category, ...]:
        """Return the public categories of a column.

        Raises:
            MissingBoundsError: if it has none.
            UnconfirmedSchemaError: if they are a guess.
        """
        column = self[name]
        if column.categories is None:
            raise MissingBoundsError(
                f'Column "{name}" has no categories, and reading them from the data would not be private.',
                fix=f'state every value that may occur: schema.with_categories("{name}", ["first", "second"]).',
            )
        if not allow_guessed:
            self.require_confirmed([name], facts=("categories",))
        return column.categories

    def require_confirmed(self, names: Iterable[str] | None = None, *, facts: Sequence[str] = _DOMAIN) -> None:
        """Return nothing when no named column has guessed facts, else raise.

        Raises:
            UnconfirmedSchemaError: with the columns and what to type.
        """
        wanted = self.names if names is None else tuple(names)
        open_ = {name: sorted(self[name].guessed & set(facts)) for name in wanted}
        open_ = {name: found for name, found in open_.items() if found}
        if not open_:
            return
        listing = "; ".join(f"{name}: {', '.join(found)}" for name, found in open_.items())
        quoted = ", ".join(f'"{name}"' for name in open_)
        raise UnconfirmedSchemaError(
            f"The schema holds guesses read from the data, which a private release may not use ({listing}).",
            fix=f"replace them by what is known without looking, then call schema.confirm({quoted}).",
        )

    def check(self, table: Profiled | None = None) -> SchemaReport:
        """Explain what is missing for a private release, and compare with a table's frequent values if one is given."""
        return check_schema(self._columns, None if table is None else _check_open(table).profiles())

    # Changing --------------------------------------------------------------------------------------------------------

    def with_role(self, name: str, role: Role | str) -> Schema:
        """Return the schema with a column's role stated."""
        return self._with(name, role=role)

    def with_kind(self, name: str, kind: Kind | str) -> Schema:
        """Return the schema with a column's kind stated; bounds and storage that the kind cannot have are dropped."""
        column = self[name]
        same_scale = (column.kind is Kind.DATETIME) == (kind == Kind.DATETIME)
        bounds = column.bounds if kind in BOUNDED and same_scale else None
        guessed = column.guessed - ({"bounds"} if bounds is None else set())
        bare = replace(column, storage=None, bounds=bounds, guessed=guessed).with_facts(kind=kind)
        if column.storage is None or not bare.fits(column.storage):
            return self._replaced(replace(bare, guessed=bare.guessed - {"storage"}))
        return self._replaced(replace(bare, storage=column.storage))

    def with_storage(self, name: str, storage: StorageType | str | None) -> Schema:
        """Return the schema with the type stated in which a CSV file's column is read, whatever its cells hold."""
        return self._with(name, storage=storage)

    def with_bounds(self, name: str, bounds: Sequence[Any]) -> Schema:
        """Return the schema with a column's smallest and largest value stated, known without looking at the data."""
        return self._with(name, bounds=bounds)

    def with_categories(self, name: str, categories: Iterable[Any]) -> Schema:
        """Return the schema with a column's values stated, known without looking at the data."""
        return self._with(name, categories=categories)

    def with_hierarchy(self, name: str, hierarchy: Hierarchy | None) -> Schema:
        """Return the schema with a column's hierarchy, or without one for None."""
        return self._with(name, hierarchy=hierarchy, hierarchy_file=None)

    def with_subject(self, name: str) -> Schema:
        """Return the schema with one column marked as the one that names the person."""
        self[name]
        return Schema(
            column.with_facts(subject=column.name == name) if column.name == name or column.subject else column
            for column in self._columns.values()
        )

    def with_column(self, column: Column) -> Schema:
        """Return the schema with a column added, or replaced where the name is there."""
        return Schema({**self._columns, column.name: column}.values())

    def without(self, *names: str) -> Schema:
        """Return the schema without some columns."""
        for name in names:
            self[name]
        return Schema(column for name, column in self._columns.items() if name not in names)

    def confirm(self, *names: str) -> Schema:
        """Return the schema with the guesses of all, or of the named, columns taken for facts.

        Confirming says that the bounds, categories and storage would be known without looking at this data.
        """
        for name in names:
            self[name]
        return Schema(
            column.confirm() if not names or name in names else column for name, column in self._columns.items()
        )

    def _with(self, name: str, **facts: Any) -> Schema:
        return self._replaced(self[name].with_facts(**facts))

    def _replaced(self, column: Column) -> Schema:
        return Schema(column if name == column.name else old for name, old in self._columns.items())

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise UnknownColumnError(name, self._columns) from None

    def get(self, name: str, default: Any = None) -> Any:
        """Return a column, or a default where there is none."""
        return self._columns.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return list(self._columns.values()) == list(other._columns.values())

    def __hash__(self) -> int:
        return hash(tuple(self._columns.values()))

    def __repr__(self) -> str:
        described = (f"{name}: {column.role} {column.kind}" for name, column in self._columns.items())
        return f"Schema({', '.join(described)})"


def _check_open(table: Profiled) -> Profiled:
    if not hasattr(table, "profiles"):
        raise ParameterTypeError(
            f"This is not an open table but of type {type(table).__name__}.",
            fix="open it first, for example table = cloister.open_table(...), and give the table.",
        )
    return table


def _bounds_fix(column: Column) -> str:
    if column.kind is Kind.DATETIME:
        return f'state the earliest and latest date: schema.with_bounds("{column.name}", ("2000-01-01", "2030-12-31")).'
    if column.kind is not Kind.NUMERIC:
        return (
            f'{a_or_an(column.kind)} column has categories: use them, or schema.with_kind("{column.name}", "numeric").'
        )
    return f'state the limits that everyone knows, for example schema.with_bounds("{column.name}", (0, 110)).'
