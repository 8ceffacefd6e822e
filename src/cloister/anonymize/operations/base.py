"""The base of the sanitization primitives: a frozen value that turns a table into another one, and says what it did.

An operation alone promises nothing: it is one step of preparing a release. Operations that make cells untrue (noise,
swaps, randomization, models) say so in ``truthful``, and the label of the release repeats it.

What an operation did is told to the custodian: rows removed, cells changed, cells suppressed. The counts are protected.

The settings of operations are written as plain values for a recipe, and read back. Numbers stay exact: a fraction that
no decimal expresses is written as text such as ``1/3``. Hierarchies are written whole, as text; secrets are written as
the place where they are kept, never as what they are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc

from cloister.anonymize.operations._arrow_columns import column_of, is_number
from cloister.anonymize.operations.secret import Secret
from cloister.core.exact import to_plain_number
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.registry import Registry
from cloister.data.columns import Column, Kind
from cloister.data.engines.base import ARROW_TYPES
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.data.schema_file import YamlBlock, read_hierarchy
from cloister.data.sources import ensure_open, open_table
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, did_you_mean


def to_plain(value: Any, *, folder: Path | None) -> Any:  # a setting of any type
    """Return a setting as JSON-ready values; the paths of secrets count from a folder, if one is given."""
    match value:
        case Fraction():
            return to_plain_number(value)
        case tuple():
            return [to_plain(item, folder=folder) for item in value]
        case Secret():
            return value.to_dict(folder=folder)
        case Hierarchy():
            return YamlBlock(value.to_csv_text())
        case date():
            return value.isoformat()
        case _:
            return value


def from_plain(name: str, value: Any, *, folder: Path | None) -> Any:  # a setting of any type
    """Return a setting as the operation takes it: files are found from a folder, and not opened without one."""
    if name == "hierarchy":
        return read_hierarchy(value, name, folder)[0]
    if name == "key":
        return Secret.of(value, folder=folder)
    return value


def need_names(value: object, *, what: str = "columns") -> tuple[str, ...]:
    """Return one name or several as a tuple.

    Raises:
        ParameterTypeError: if they are no names.
        ParameterError: if there are none, or one is there twice.
    """
    listed = (value,) if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(item, str) for item in listed):
        raise ParameterTypeError(f"{what} is not a list of names.", fix=f'write for example {what}=["age", "zip"].')
    if len(set(listed)) != len(listed):
        raise ParameterError(f"{what} names a column twice.", fix="name each column once.")
    if not listed:
        raise ParameterError(f"{what} names no column.", fix="name at least one column.")
    return tuple(listed)


def need_column_name(value: object) -> str:
    """Return one name of a column."""
    if not isinstance(value, str) or not value:
        raise ParameterTypeError("column is not the name of a column.", fix='write for example column="age".')
    return value


SUPPRESSED = "*"
"""What stands for a suppressed cell in a column of text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLog:
    """What one operation did to a table.

    Attributes:
        operation: the operation's name.
        truthful: whether every released cell is still true, if less precise.
        rows: how many rows there were.
        rows_removed: how many rows were dropped.
        columns_dropped: which columns were dropped.
        cells_changed: per column, in how many cells another value stands than before; equal ones do not count.
        cells_suppressed: per column, how many of these say nothing any more.
        caution: what a reader of the release must know about the operation.
    """

    operation: str
    truthful: bool
    rows: int
    rows_removed: int
    columns_dropped: tuple[str, ...]
    cells_changed: Mapping[str, int]
    cells_suppressed: Mapping[str, int]
    caution: str = ""

    def share_changed(self, column: str) -> float:
        """Return the share of rows in which a column changed: for swaps, the swap rate."""
        return self.cells_changed.get(column, 0) / self.rows if self.rows else 0.0

    @property
    def suppression_rate(self) -> float:
        """Return the share of rows that were dropped."""
        return self.rows_removed / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        parts = [f'column "{name}" dropped' for name in self.columns_dropped]
        if self.rows_removed:
            parts.append(f"{self.rows_removed} of {self.rows} rows removed")
        parts += [f'{self._cells(name, count)} in "{name}"' for name, count in self.cells_changed.items() if count]
        truth = "" if self.truthful else " [not truthful]"
        return f"{self.operation}{truth}: {'; '.join(parts) or 'nothing changed'}"

    def _cells(self, name: str, count: int) -> str:
        suppressed = self.cells_suppressed.get(name, 0)
        return f"{count} of {self.rows} cells {'suppressed' if suppressed == count else 'changed'}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "operation": self.operation,
            "truthful": self.truthful,
            "rows": self.rows,
            "rows_removed": self.rows_removed,
            "columns_dropped": list(self.columns_dropped),
            "cells_changed": dict(self.cells_changed),
            "cells_suppressed": dict(self.cells_suppressed),
            "caution": self.caution,
        }


def compare(before: pa.Table, after: pa.Table, *, operation: str, truthful: bool, caution: str) -> StepLog:
    """Return what happened between two tables: rows were dropped, or cells changed in their places."""
    removed = before.num_rows - after.num_rows
    # Where rows were dropped cells cannot be compared by their places.
    shared = [] if removed else [name for name in after.column_names if name in before.column_names]
    changed, suppressed = {}, {}
    for name in shared:
        old, new = column_of(before, name), column_of(after, name)
        if old is new or old.equals(new):
            continue
        differs = _differs(old, new)
        changed[name] = _count(differs)
        suppressed[name] = _count(pc.and_(differs, _says_nothing(new)))
    return StepLog(
        operation=operation,
        truthful=truthful,
        rows=before.num_rows,
        rows_removed=removed,
        columns_dropped=tuple(name for name in before.column_names if name not in after.column_names),
        cells_changed=changed,
        cells_suppressed=suppressed,
        caution=caution,
    )


def _differs(old: pa.Array, new: pa.Array) -> pa.Array:
    if old.type != new.type:
        common = pa.float64() if is_number(old) and is_number(new) else pa.string()
        old, new = old.cast(common, safe=False), new.cast(common, safe=False)
    # A comparison with a missing cell is missing itself, and is decided in the next line.
    unequal = pc.fill_null(pc.not_equal(old, new), False)  # noqa: FBT003  # Arrow's signature
    return pc.or_(unequal, pc.xor(old.is_null(), new.is_null()))


def _says_nothing(column: pa.Array) -> pa.Array:
    empty = column.is_null()
    if pa.types.is_string(column.type):
        return pc.or_(empty, pc.fill_null(pc.equal(column, SUPPRESSED), False))  # noqa: FBT003  # Arrow's signature
    return empty


def _count(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


_STORAGE = {arrow: storage for storage, arrow in ARROW_TYPES.items()}
_LOST = ("bounds", "categories", "storage")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationContext:
    """What an operation may need beside the rows: the schema, and where random bits come from."""

    schema: Schema | None
    source: RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationOutcome:
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
    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows after the operation; the columns are of the types that `Table.to_arrow` gives."""

    def restate(self, column: Column) -> Column:
        """Return what is still known of a changed column: its old domain is not."""
        # A bound or category of before would be a false statement about the new values.
        kept = column.guessed - set(_LOST)
        bare = replace(column, bounds=None, categories=None, storage=None, hierarchy=None, hierarchy_file=None)
        return replace(bare, guessed=kept)

    def run(self, table: Any, *, random_state: RandomState = None) -> OperationOutcome:  # what open_table takes
        """Return the table after the operation, and what was done.

        Args:
            table: a `Table`, or anything that `cloister.open_table` opens. Its rows are brought into memory.
            random_state: None for the operating system's randomness; an integer in tests only.
        """
        opened = ensure_open(table)
        source = random_source(random_state) if self.is_random else random_source(None)
        before = opened.to_arrow()
        after = self.transform(before, OperationContext(schema=opened.schema, source=source))
        schema = restate_schema(opened.schema, self, after)
        return OperationOutcome(table=open_table(after, schema=schema), log=self.describe(before, after))

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
            # Only what differs is written, so that a recipe says what somebody decided.
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


def restate_schema(schema: Schema | None, operation: Operation, after: pa.Table) -> Schema | None:
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


def hierarchy_for(context: OperationContext, column: str, what: str) -> Any:  # a Hierarchy
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
