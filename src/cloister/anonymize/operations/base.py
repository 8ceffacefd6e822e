"""The base of the sanitization primitives: a frozen value that turns a table into another one, and says what it did.

An operation alone promises nothing: it is one step of preparing a release. Operations that make cells untrue (noise,
swaps, randomization, models) say so in ``truthful``, and the label of the release repeats it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa

from cloister.anonymize.operations.log import StepLog, compare
from cloister.anonymize.operations.plain import from_plain, to_plain
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.registry import Registry
from cloister.data.columns import Column, Kind
from cloister.data.engines.base import ARROW_TYPES
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean

_STORAGE = {arrow: storage for storage, arrow in ARROW_TYPES.items()}
_LOST = ("bounds", "categories", "storage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an operation may need beside the rows: the schema, and where random bits come from."""

    schema: Schema | None
    source: RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A table after one operation, and what the operation did."""

    table: Table
    log: StepLog


class Operation(ABC):
    """One step of preparing a table."""

    __slots__ = ()

    name: ClassVar[str]
    truthful: ClassVar[bool] = True
    is_random: ClassVar[bool] = False
    caution: ClassVar[str] = ""

    @property
    def affected(self) -> tuple[str, ...]:
        """Return the columns that the operation changes."""
        column = getattr(self, "column", None)
        return (column,) if column is not None else tuple(getattr(self, "columns", ()))

    @abstractmethod
    def transform(self, rows: pa.Table, context: Context) -> pa.Table:
        """Return the rows after the operation; the columns are of the types that `Table.to_arrow` gives."""

    def restate(self, column: Column) -> Column:
        """Return what is still known of a changed column: its old domain is not."""
        kept = column.guessed - set(_LOST)
        bare = replace(column, bounds=None, categories=None, storage=None, hierarchy=None, hierarchy_file=None)
        return replace(bare, guessed=kept)

    def run(self, table: Any, *, random_state: RandomState = None) -> Outcome:  # what open_table takes
        """Return the table after the operation, and what was done.

        Args:
            table: a `Table`, or anything that `cloister.open_table` opens. Its rows are brought into memory.
            random_state: None for the operating system's randomness; an integer in tests only.
        """
        opened = opened_table(table)
        source = random_source(random_state) if self.is_random else random_source(None)
        before = opened.to_arrow()
        after = self.transform(before, Context(schema=opened.schema, source=source))
        schema = restated(opened.schema, self, after)
        return Outcome(table=open_table(after, schema=schema), log=self.describe(before, after))

    def apply(self, table: Any, *, random_state: RandomState = None) -> Table:  # what open_table takes
        """Return the table after the operation; `run` also says what was done."""
        return self.run(table, random_state=random_state).table

    def describe(self, before: pa.Table, after: pa.Table) -> StepLog:
        """Return what happened between two tables."""
        return compare(before, after, operation=self.name, truthful=self.truthful, caution=self.caution)

    def to_dict(self, *, folder: Path | None = None) -> dict[str, Any]:
        """Return the operation as plain values for a recipe; settings that are as usual are left out."""
        settings = {}
        for item in fields(self):  # type: ignore[arg-type]  # every operation is a dataclass
            value = getattr(self, item.name)
            if item.default is MISSING or value != item.default:
                settings[item.name] = to_plain(value, folder=folder)
        return {"operation": self.name, **settings}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, folder: Path | None = None) -> Self:
        """Return the operation that plain values describe.

        Args:
            data: the plain values, without or with ``operation``.
            folder: where the names of files count from; None refuses to open files.

        Raises:
            ParameterError: if a setting is unknown or missing.
        """
        settings = {str(key): value for key, value in data.items() if key != "operation"}
        known = {item.name: item.default is MISSING for item in fields(cls)}  # type: ignore[arg-type]  # a dataclass
        for key in settings:
            if key not in known:
                raise ParameterError(
                    f'{cls.name} has no setting "{key}".{did_you_mean(key, known)}', fix=f"use {', '.join(known)}."
                )
        lacking = next((key for key, needed in known.items() if needed and key not in settings), None)
        if lacking is not None:
            raise ParameterError(f'{cls.name} needs the setting "{lacking}".', fix=f"add {lacking}: ... to it.")
        return cls(**{key: from_plain(key, value, folder=folder) for key, value in settings.items()})


operations: Registry[type[Operation]] = Registry("operation")
"""Every operation by the name that it has in a recipe."""


def opened_table(table: Any) -> Table:  # what open_table takes
    """Return a table, opened if it is not yet."""
    return table if isinstance(table, Table) else open_table(table)


def restated(schema: Schema | None, operation: Operation, after: pa.Table) -> Schema | None:
    """Return the schema of the rows after an operation."""
    if schema is None:
        return None
    left = [column for name, column in schema.columns.items() if name in after.column_names]
    columns = [
        _fitting(operation.restate(column), after) if column.name in operation.affected else column for column in left
    ]
    return Schema(columns) if columns else None


def _fitting(column: Column, after: pa.Table) -> Column:
    """Return a column whose kind can be what is stored: names are nominal."""
    if column.fits(_STORAGE[after.schema.field(column.name).type]):
        return column
    return replace(column, kind=Kind.NOMINAL, bounds=None, guessed=column.guessed - {"kind", *_LOST})


def hierarchy_for(context: Context, column: str, what: str) -> Any:  # a Hierarchy
    """Return the hierarchy that the schema states for a column.

    Raises:
        ParameterError: if there is none.
    """
    described = None if context.schema is None else context.schema.get(column)
    if described is None or described.hierarchy is None:
        raise ParameterError(
            f'{what} of "{column}" needs a hierarchy, and the schema states none.',
            fix="give hierarchy=, or open the table with a schema that has one.",
        )
    return described.hierarchy


def need_text(value: object, *, name: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ParameterTypeError(f"{name} is not a text, or is empty.", fix=f"write {name} as a text.")
    return value
