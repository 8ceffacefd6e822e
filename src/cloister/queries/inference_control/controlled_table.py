"""`ControlledTable`: exact answers about groups, for as long as they do not give single persons away.

This is the inference control of classical statistical databases, for owners who may not publish noisy numbers. It
promises less than a `PrivateTable`: what is refused is what is known to be harmful, and an attacker who knows more,
or several organizations together, can find more. See ``docs/how-to/control-inference.md``.

Answers are exact or treated numbers that promise nothing, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import pyarrow as pa
from sqlglot import exp

from cloister.core.guarantees import NoGuarantee
from cloister.core.result import Result
from cloister.data.bins import BinInterval
from cloister.data.columns import Role
from cloister.data.engines.predicates import parse_condition
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, QueryRefusedError, UnknownColumnError, did_you_mean
from cloister.queries.answers import plain, show_number
from cloister.queries.inference_control._controlled_query import DATA, ControlledQuery, ControlledQueryReader
from cloister.queries.inference_control._cut_points import check_columns
from cloister.queries.inference_control._decisions import Decider, Groups, replay
from cloister.queries.inference_control._linear_audit import Audit
from cloister.queries.inference_control._snapshot import Snapshot
from cloister.queries.inference_control.controls import Controls
from cloister.queries.inference_control.history import Answered, AnsweredSet, History, MemoryHistory
from cloister.queries.sql.grammar import parse_select

__all__ = ["NOT_PRIVATE", "ControlledAnswer", "ControlledFrame", "ControlledTable", "check_question"]


NOT_PRIVATE = NoGuarantee(
    reason="inference control refuses questions that are known to be harmful, and is not differential privacy"
)
"""What every answer under inference control promises."""

MISSING = "suppressed"
"""What is printed for a number that is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledAnswer(Result):
    """One number, or the range that it is in.

    Attributes:
        name: what was asked, such as ``mean of salary``.
        value: the number, the range, or None where there is none.
        notes: what the reader has to know, in words.
    """

    schema: ClassVar[str] = "cloister.controlled_answer/1"

    name: str
    value: Any  # a number, a range or None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{_text(self.value)}, {self.guarantee.brief()}"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            (self.name, str(self)),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self.notes),
        )

    def _fields(self) -> dict[str, Any]:
        return {"name": self.name, "value": plain(self.value), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledFrame(Result):
    """A table of numbers by group; a number that is not shown is None.

    Attributes:
        names: the columns.
        cells: the values of each column.
        keys: which columns are groups.
        notes: what the reader has to know, in words.
    """

    schema: ClassVar[str] = "cloister.controlled_frame/1"

    names: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...] = field(repr=False)
    keys: tuple[bool, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.cells[0]) if self.cells else 0

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        if name not in self.names:
            raise ParameterError(
                f'The answer has no column "{name}".{did_you_mean(str(name), self.names)}',
                fix=f"use one of {', '.join(self.names)}.",
            )
        return self.cells[self.names.index(name)]

    @property
    def suppressed(self) -> int:
        """Return how many numbers are not shown."""
        return sum(
            value is None
            for column, is_key in zip(self.cells, self.keys, strict=True)
            if not is_key
            for value in column
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of plain values."""
        return [dict(zip(self.names, map(plain, row), strict=True)) for row in zip(*self.cells, strict=True)]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; ranges are texts."""
        arrays = [pa.array([_plain_value(value) for value in column]) for column in self.cells]
        return pa.table(arrays, names=list(self.names))

    def __str__(self) -> str:
        columns = [
            [name, *(str(value) if is_key else _text(value) for value in column)]
            for name, column, is_key in zip(self.names, self.cells, self.keys, strict=True)
        ]
        widths = [max(map(len, column)) for column in columns]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in zip(*columns, strict=True)
        )
        return "\n".join([*lines, self.guarantee.brief()])

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            ("answer", f"{len(self)} rows: {', '.join(self.names)}"),
            ("suppressed", f"{self.suppressed:,} numbers"),
            ("promise", self.guarantee.explain()),
            *(("note", note) for note in self.notes),
        )

    def _fields(self) -> dict[str, Any]:
        columns = [
            {"name": name, "is_key": is_key, "values": [plain(value) for value in column]}
            for name, column, is_key in zip(self.names, self.cells, self.keys, strict=True)
        ]
        return {"columns": columns, "notes": list(self.notes)}


def _text(value: Any) -> str:
    return MISSING if value is None else show_number(value, 0.0)


def _plain_value(value: Any) -> Any:
    return str(value) if isinstance(value, BinInterval) else value


_TREATED = "rounded numbers and ranges hide single values, and can be combined with others to narrow them down"
_BESIDE = "noisy answers about the same rows were given, too; what they promise does not cover these numbers"
_REASONS = {
    "size": "The question is about too few rows, or about all but too few.",
    "overlap": "The question shares too many rows with one that was answered.",
    "audit": "Together with earlier answers, this one could give a single person away.",
    "history": "Your organization has asked for as many numbers as it may.",
}


class ControlledTable:
    """Protected rows about which counts, sums and means are answered under inference control.

    Rows are read once, when the table is opened. Whoever asks may know all columns but the confidential ones; these
    are what is guarded.

    Args:
        table: the rows, opened with `cloister.open_table`, with a schema whose roles and domains are confirmed; one
            row for each person. Identifiers cannot be used at all.
        controls: which controls are on; by default a size of 10 and the audit.
        history: what the asker's organization was answered before; by default nothing, remembered in memory.
        confidential: columns that are guarded besides the sensitive ones of the schema.
        beside_private: whether noisy answers about the same rows are given as well; every answer then says so.
    """

    def __init__(
        self,
        table: Table,
        *,
        controls: Controls | None = None,
        history: History | None = None,
        confidential: Iterable[str] = (),
        beside_private: bool = False,
    ) -> None:
        schema = _schema_of(table)
        self.controls = _check_controls(Controls() if controls is None else controls)
        self.history = MemoryHistory() if history is None else history
        self._confidential = _confidential(schema, confidential)
        self._snapshot = Snapshot(table)
        least = 2 * (self.controls.min_size or 0)
        if self._snapshot.size < max(least, 1):
            raise ParameterError(
                "The table has too few rows for any question to be answered.",
                fix="lower min_size, or wait for more rows.",
            )
        self._asker = _asker(self._snapshot.table, schema, self._confidential, self.controls)
        self._notes = (_BESIDE,) if beside_private else ()
        self._fingerprint = self._snapshot.fingerprint(self._snapshot.size)
        self._replayed: tuple[list[AnsweredSet], dict[str, Audit]] = ([], {})

    @property
    def confidential(self) -> frozenset[str]:
        """Return the columns that are guarded."""
        return self._confidential

    def __repr__(self) -> str:
        return f"ControlledTable({', '.join(self._snapshot.table.schema.names)})"

    def count(self, where: str | None = None) -> ControlledAnswer:
        """Return how many rows meet a condition.

        Raises:
            QueryRefusedError: if a control does not permit the answer.
            UnsafeQueryError: if the condition is not among what is answered.
        """
        return self._number(exp.Count(this=exp.Star()), "count", where)

    def sum(self, column: str, where: str | None = None) -> ControlledAnswer:
        """Return the sum of a confidential column; raises as `count` does."""
        return self._number(exp.Sum(this=self._column(column)), f"sum of {column}", where)

    def mean(self, column: str, where: str | None = None) -> ControlledAnswer:
        """Return the mean of a confidential column; raises as `count` does."""
        return self._number(exp.Avg(this=self._column(column)), f"mean of {column}", where)

    def sql(self, query: str) -> ControlledFrame:
        """Answer a SQL query about ``data``: counts, sums and means, by WHERE and GROUP BY.

        Groups whose numbers are not permitted show None; without groups, the query is refused.

        Raises:
            QueryRefusedError: if a control does not permit the answer.
            UnsafeQueryError: if the query is not among what is answered.
        """
        return self._answered(parse_select(query))

    def _number(self, aggregate: exp.Expression, name: str, where: str | None) -> ControlledAnswer:
        select = exp.select(aggregate).from_(DATA)
        if where is not None:
            select.set("where", exp.Where(this=parse_condition(where)))
        frame = self._answered(select)
        return ControlledAnswer(guarantee=NOT_PRIVATE, name=name, value=frame.cells[0][0], notes=frame.notes)

    def _column(self, name: str) -> exp.Column:
        known = self._snapshot.table.schema.names
        if name not in known:
            raise UnknownColumnError(str(name), known)
        return exp.column(name, quoted=True)

    def _answered(self, select: exp.Select) -> ControlledFrame:
        asked = self._asker.read(select)
        groups = Groups(self._snapshot, asked)
        permitted = self._permitted(asked, groups)
        return self._frame(asked, groups, permitted)

    # Deciding --------------------------------------------------------------------------------------------------------

    def _permitted(self, asked: ControlledQuery, groups: Groups) -> list[list[bool]]:
        """Return which numbers may be shown, by group and measure, after all are recorded as asked."""
        with self.history.exclusive() as answered:
            self._recognize(answered)
            # The numbers count as asked before any is judged: also refused ones are paid for in questions.
            answered.asked += asked.numbers
            if answered.asked > self.controls.max_questions:
                raise QueryRefusedError(_REASONS["history"], control="history")
            audits = self._audits_of(answered.sets)
            decider = Decider(self.controls, answered.sets, audits, rows=self._snapshot.size)
            # Groups come in the order of their public keys, and what is permitted in one is held against the
            # next.
            refusals = [[decider.refusal(item) for item in group] for group in groups.candidates()]
            answered.sets = decider.sets
        self._replayed = list(decider.sets), decider.audits
        if not asked.keys:
            _raise_first(refusals[0])
        return [[refusal is None for refusal in group] for group in refusals]

    def _recognize(self, answered: Answered) -> None:
        """Check that a history is about these rows, of which there may be more by now."""
        size, rows = self._snapshot.size, answered.rows
        if rows is not None and (rows > size or self._fingerprint_of(rows) != answered.fingerprint):
            raise ParameterError(
                "The rows are not those that earlier answers were about, or are in another order.",
                fix="open the version that the history belongs to. Rows may be appended; after other changes the data "
                "owner decides on a new history, since answers about both versions can be compared.",
            )
        answered.rows, answered.fingerprint = size, self._fingerprint

    def _fingerprint_of(self, rows: int) -> str:
        return self._fingerprint if rows == self._snapshot.size else self._snapshot.fingerprint(rows)

    def _audits_of(self, sets: list[AnsweredSet]) -> dict[str, Audit]:
        """Return the audits of answered sets, from where the last ones ended if they continue them."""
        if not self.controls.audit:
            return {}
        known, audits = self._replayed
        # Somebody else may have asked in between; audits that do not continue the history are made anew.
        if sets[: len(known)] != known:
            known, audits = [], {}
        return replay(sets[len(known) :], audits, rows=self._snapshot.size)

    # Showing ---------------------------------------------------------------------------------------------------------

    def _frame(self, asked: ControlledQuery, groups: Groups, permitted: list[list[bool]]) -> ControlledFrame:
        numbers = groups.numbers(permitted, self.controls)
        labels = list(product(*(key.shown or () for key in asked.keys)))
        columns = [
            tuple(label[item.index] for label in labels) if item.is_key else tuple(row[item.index] for row in numbers)
            for item in asked.shown
        ]
        treated = any((self.controls.counts, self.controls.sums, self.controls.means))
        return ControlledFrame(
            guarantee=NOT_PRIVATE,
            names=tuple(item.name for item in asked.shown),
            cells=tuple(columns),
            keys=tuple(item.is_key for item in asked.shown),
            notes=(*self._notes, *((_TREATED,) if treated else ())),
        )


def check_question(
    table: Table, query: str, *, controls: Controls | None = None, confidential: Iterable[str] = ()
) -> None:
    """Return nothing if a `ControlledTable` understands a query, whatever its rows are, else raise.

    Args:
        table: a table with the schema of the one to be asked; it may be empty, and no row of it is read.
        query: the query.
        controls: as in `ControlledTable`.
        confidential: as in `ControlledTable`.

    Raises:
        UnsafeQueryError: if the query is not among what is answered.
        UnknownColumnError: if it names a column that does not exist.
    """
    schema = _schema_of(table)
    settings = _check_controls(Controls() if controls is None else controls)
    _asker(table, schema, _confidential(schema, confidential), settings).read(parse_select(query))


def _asker(table: Table, schema: Schema, confidential: frozenset[str], controls: Controls) -> ControlledQueryReader:
    """Return what reads queries; identifiers and the person cannot be asked about."""
    hidden = frozenset(schema.with_roles(Role.IDENTIFIER)) | ({schema.subject} if schema.subject else set())
    check_columns(controls.cut_points, schema, confidential)
    return ControlledQueryReader(
        table,
        confidential=confidential,
        hidden=hidden,
        extremes=controls.extremes,
        cut_points=controls.cut_points,
    )


def _schema_of(table: Table) -> Schema:
    if not isinstance(table, Table):
        raise ParameterTypeError("This is not an open table.", fix='open it: cl.open_table("data.csv", schema=...).')
    if table.schema is None:
        raise ParameterError(
            "The table has no schema, so that it is not known which columns are confidential.",
            fix="open it with schema=, in which confidential columns have the role sensitive.",
        )
    schema: Schema = table.schema
    schema.require_confirmed(facts=("role", "subject"))
    return schema


def _check_controls(controls: Controls) -> Controls:
    if not isinstance(controls, Controls):
        raise ParameterTypeError("controls is not a Controls value.", fix="write for example controls=Controls().")
    return controls


def _confidential(schema: Schema, more: Iterable[str]) -> frozenset[str]:
    if isinstance(more, str) or not isinstance(more, Iterable):
        raise ParameterTypeError(
            "confidential is not a list of names.", fix='write for example confidential=("salary",).'
        )
    names = list(more)
    for name in names:
        if name not in schema.names:
            raise UnknownColumnError(str(name), schema.names)
    return frozenset(names) | frozenset(schema.with_roles(Role.SENSITIVE))


def _raise_first(refusals: list[str | None]) -> None:
    for control in refusals:
        if control is not None:
            raise QueryRefusedError(_REASONS[control], control=control)
