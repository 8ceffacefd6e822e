"""Recoding in the engine: the rows stay where they are, and small lookup tables are joined to them.

Every quasi-identifier is joined with its codes; the codes of a row make one number, which is joined with the number of
its class, and the class with what it shows. A full-domain recoding needs no classes: each column is joined with its own
names. Where rows of one record go to different classes they are numbered by a digest of their other columns, so that
the choice depends on nothing that an observer of the order could use, and equal input gives equal output. Released rows
are sorted by what is released: their order tells nothing.

Rows are recoded when they are asked for. A file or a database table may have changed since its classes were found and
checked: a class may have lost rows, and new rows were in no class. So a released table checks, whenever its rows are
read, that the original is still the one that was counted: after the rows were read, and before they are handed out or
a file gets its name, the original is counted again; any difference is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sqlglot import exp

from cloister.anonymize._partition import SUPPRESSED, Partition
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells, Source
from cloister.anonymize.regions import Regions, Values
from cloister.data.engines.base import ARROW_TYPES, Engine, value
from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import CloisterError, DataError

__all__ = ["ReleasedTable"]


class ReleasedTable(Table):
    """The rows of a release; reading them checks that the promise was made about the same rows."""

    def __init__(self, engine: Engine, *, schema: Any, promised: CodedCells, count: Callable[[], CodedCells]) -> None:
        super().__init__(engine, schema=schema)
        self._promised = promised
        self._count = count

    def with_schema(self, schema: Any) -> ReleasedTable:  # a Schema or None
        """Return the same rows under another schema."""
        return ReleasedTable(self._engine, schema=schema, promised=self._promised, count=self._count)

    def _verify_read(self) -> None:
        try:
            is_same = _are_equal(self._promised, self._count())
        except CloisterError:
            is_same = False
        if not is_same:
            raise DataError(
                "The original has changed since the release was made, so that its promise would not hold.",
                fix="anonymize it again, or copy it first to a place where nobody changes it.",
            )


def _are_equal(before: CodedCells, after: CodedCells) -> bool:
    """Return whether two counts of a table, one after the other, found the same rows."""
    return _coding(before) == _coding(after) and all(
        np.array_equal(first, second) for first, second in zip(_counts(before), _counts(after), strict=True)
    )


def _coding(cells: CodedCells) -> list[Any]:
    return [(source.name, source.storage, source.values) for source in cells.sources]


def _counts(cells: CodedCells) -> list[Any]:
    subjects = np.zeros(0) if cells.record_subjects is None else cells.record_subjects
    coding = [source.codes for source in cells.sources]
    return [
        *coding,
        cells.codes,
        cells.weights,
        cells.record_cells,
        cells.record_weights,
        cells.record_values,
        subjects,
    ]


_LARGEST_KEY = 2**62
_RAW, _CODED, _CLASSES, _SHOWN = "raw_rows", "coded_rows", "class_of_key", "shown_by_class"


def recode_table(
    table: Table,
    regions: Regions,
    *,
    drop: Sequence[str],
    schema: Schema | None,
    count: Callable[[], CodedCells] | None = None,
) -> Table:
    """Return the table with the quasi-identifiers of every row replaced by what its class shows.

    Args:
        table: the rows.
        regions: the classes and how they are written down.
        drop: columns that are not released.
        schema: what is known about the released columns.
        count: counts the table again, as it was counted for the classes; by default nothing is compared.
    """
    engine = table.engine
    plan = _full_domain(regions) if regions.partition.levels is not None else _by_class(regions)
    kept = [name for name in engine.names if name not in drop]
    types = {name: ARROW_TYPES[engine.types[engine.names.index(name)]] for name in kept}
    fields = [(name, plan.types.get(name, types[name])) for name in kept]
    query = plan.query(engine, kept)
    derived = engine.derive(query, pa.schema(fields), plan.lookups)
    if count is None:
        return Table(derived, schema=schema)
    return ReleasedTable(derived, schema=schema, promised=regions.partition.cells, count=count)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Plan:
    """Lookups and how a query uses them.

    Attributes:
        lookups: the tables to join.
        columns: the columns that are joined with their codes.
        keyed: the columns whose codes make the key of a row, in pieces that fit 64 bits.
        shown: what stands for a column, in place of its own values.
        types: the types of these.
        labels: what full-domain recoding computes beside the keys.
        is_numbered: whether rows of one key are told apart by a number.
        lists_suppressed: whether the keys listed are the suppressed ones rather than the kept ones.
    """

    lookups: dict[str, pa.Table]
    columns: tuple[Source, ...]
    keyed: tuple[tuple[Source, ...], ...]
    shown: Mapping[str, exp.Expression]
    types: dict[str, pa.DataType]
    labels: Mapping[str, exp.Expression] = field(default_factory=dict)
    is_numbered: bool = False
    lists_suppressed: bool = False

    def query(self, engine: Engine, kept: Sequence[str]) -> exp.Select:
        """Return the query for the released rows."""
        result = exp.select(
            *(exp.alias_(self._release_column(name, engine), name, quoted=True) for name in kept)
        ).from_(self._coded(engine))
        result = self._join_classes(result)
        return result.order_by(*self._order(kept), copy=False)

    def _order(self, kept: Sequence[str]) -> list[exp.Expression]:
        """Return what rows are sorted by: classes are numbered by what they show, and a number is sorted fastest."""
        if _SHOWN not in self.lookups:
            return [exp.column(name, quoted=True) for name in kept]
        others = [exp.column(name, quoted=True) for name in kept if name not in self.shown]
        return [_of(_SHOWN, "class"), *others]

    def _release_column(self, name: str, engine: Engine) -> exp.Expression:
        if name in self.shown:
            return self.shown[name].copy()
        return _of(_CODED, f"c{engine.names.index(name)}")

    def _coded(self, engine: Engine) -> exp.Subquery:
        """Return the rows with their keys and with what full-domain recoding shows."""
        places = {name: place for place, name in enumerate(engine.names)}
        raw = exp.select(
            *(exp.alias_(value(engine, place), f"c{place}", quoted=True) for place in places.values())
        ).from_(engine.source())
        keys = [exp.alias_(_key(piece), f"key{number}", quoted=True) for number, piece in enumerate(self.keyed)]
        names = [exp.alias_(label, name, quoted=True) for name, label in self.labels.items()]
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier(_RAW, quoted=True))
        query = exp.select(everything, *keys, *names).from_(raw.subquery(_quote(_RAW)))
        for source in self.columns:
            same = exp.EQ(this=_of(_RAW, f"c{places[source.name]}"), expression=_of(_lookup(source), "value"))
            # A missing value equals nothing, finds no line, and must not cost its row: its code is filled in later.
            query = query.join(_table(_lookup(source)), on=same, join_type="left", copy=False)
        if self.is_numbered:
            query = self._number_rows(query, places)
        return query.subquery(_quote(_CODED), copy=False)

    def _number_rows(self, query: exp.Select, places: dict[str, int]) -> exp.Select:
        """Return the rows with a number among those of the same key, in the order of a digest of all columns.

        Different rows may have the same text, so that the columns themselves decide between equal digests.
        """
        whole: list[exp.Expression] = [_of("keyed", f"c{place}") for place in places.values()]
        bar = exp.Literal.string("|")
        text = reduce(
            lambda left, right: exp.DPipe(this=exp.DPipe(this=left, expression=bar), expression=right),
            map(_text, whole),
        )
        number = exp.Window(
            this=exp.RowNumber(),
            partition_by=[_of("keyed", f"key{piece}") for piece in range(len(self.keyed))],
            order=exp.Order(expressions=[exp.Ordered(this=column) for column in (exp.MD5(this=text), *whole)]),
        )
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier("keyed", quoted=True))
        return exp.select(everything, exp.alias_(number, "number", quoted=True)).from_(query.subquery(_quote("keyed")))

    def _join_classes(self, query: exp.Select) -> exp.Select:
        if not self.keyed:
            return query
        same: list[exp.Expression] = [
            exp.EQ(this=_of(_CODED, f"key{piece}"), expression=_of(_CLASSES, f"key{piece}"))
            for piece in range(len(self.keyed))
        ]
        if self.is_numbered:
            same.append(exp.GT(this=_of(_CODED, "number"), expression=_of(_CLASSES, "low")))
            same.append(exp.LTE(this=_of(_CODED, "number"), expression=_of(_CLASSES, "high")))
        # Few keys are suppressed, so that those are listed, and rows without a match are kept.
        if self.lists_suppressed:
            joined = query.join(_table(_CLASSES), on=exp.and_(*same), join_type="left")
            return joined.where(exp.Is(this=_of(_CLASSES, "key0"), expression=exp.Null()))
        chosen = exp.EQ(this=_of(_CLASSES, "class"), expression=_of(_SHOWN, "class"))
        kept = query.join(_table(_CLASSES), on=exp.and_(*same, copy=False), copy=False)
        return kept.join(_table(_SHOWN), on=chosen, copy=False)


def _full_domain(regions: Regions) -> _Plan:
    """Return a plan in which each column is joined with its names, and suppressed keys are left out."""
    partition = regions.partition
    cells = partition.cells
    sources = cells.sources[: len(cells.attributes)]
    chosen = zip(cells.attributes, sources, partition.levels or (), strict=True)
    shown_names = {source: _names(attribute, level, source) for attribute, source, level in chosen}
    # Full-domain classes are whole cells, so that a cell is suppressed with all its rows.
    suppressed = np.unique(partition.line_cells[partition.groups == SUPPRESSED])
    keyed = _pieces(sources) if len(suppressed) else ()
    changed = {source: names for source, names in shown_names.items() if names is not None}
    columns = tuple(source for source in sources if keyed or source in changed)
    lookups = {_lookup(source): _codes_table(source, changed.get(source)) for source in columns}
    if keyed:
        lookups[_CLASSES] = pa.table(_keys(keyed, cells.codes[suppressed]))
    shown = {source.name: _of(_CODED, _label_column(source)) for source in changed}
    return _Plan(
        lookups=lookups,
        columns=columns,
        keyed=keyed,
        shown=shown,
        types=dict.fromkeys(shown, pa.string()),
        labels={_label_column(source): _label(source, names) for source, names in changed.items()},
        lists_suppressed=True,
    )


def _by_class(regions: Regions) -> _Plan:
    """Return a plan in which each row is joined with its class, and the class with what it shows."""
    partition = regions.partition
    cells = partition.cells
    by_cell = _is_by_cell(partition)
    sources = cells.sources[: len(cells.attributes)] if by_cell else cells.sources
    codes, classes = _lines(partition, by_cell=by_cell)
    keyed = _pieces(sources)
    labels = {source.name: regions.labels(place) for place, source in enumerate(cells.sources[: len(cells.attributes)])}
    types = {
        name: pa.float64() if regions.values is Values.CENTERS and cells.attributes[place].is_numeric else pa.string()
        for place, name in enumerate(labels)
    }
    lookups = {_lookup(source): _codes_table(source, None) for source in sources}
    shown = pa.table(
        {f"label{place}": pa.array(column, types[name]) for place, (name, column) in enumerate(labels.items())}
    )
    # Classes are numbered by what they show: sorting rows by the number tells nothing more.
    order = pc.sort_indices(shown, sort_keys=[(name, "ascending") for name in shown.column_names]).to_numpy()
    rank = np.argsort(order)
    lookups[_CLASSES] = pa.table(
        _keys(keyed, codes) | {**classes, "class": pa.array(rank[classes["class"].to_numpy()])}
    )
    lookups[_SHOWN] = shown.take(order).append_column("class", pa.array(np.arange(partition.size), pa.int64()))
    return _Plan(
        lookups=lookups,
        columns=tuple(sources),
        keyed=keyed,
        shown={name: _of(_SHOWN, f"label{place}") for place, name in enumerate(labels)},
        types=types,
        is_numbered="low" in classes,
    )


def _is_by_cell(partition: Partition) -> bool:
    """Return whether all rows of a cell are in one class."""
    lines = np.unique(np.column_stack([partition.line_cells, partition.groups]), axis=0)
    return len(lines) == len(partition.cells)


def _lines(partition: Partition, *, by_cell: bool) -> tuple[NDArray[Any], dict[str, pa.Array]]:
    """Return the codes of every kept line, and its class; numbered where a record has several lines."""
    cells = partition.cells
    if by_cell:
        of_cell = np.full(len(cells), SUPPRESSED, dtype=np.int64)
        of_cell[partition.line_cells] = partition.groups
        kept = np.flatnonzero(of_cell != SUPPRESSED)
        return cells.codes[kept], {"class": pa.array(of_cell[kept])}
    order = np.argsort(partition.records, kind="stable")
    records, groups, counts = partition.records[order], partition.groups[order], partition.counts[order]
    high = np.cumsum(counts)
    first = np.searchsorted(records, records)
    # Rows are numbered from 1 within each record: what lies before its first line is taken off.
    high -= np.concatenate(([0], high))[first]
    kept = np.flatnonzero(groups != SUPPRESSED)
    classes = {"class": pa.array(groups[kept])}
    if partition.is_split:
        classes |= {"low": pa.array((high - counts)[kept]), "high": pa.array(high[kept])}
    return _record_codes(cells)[records[kept]], classes


def _record_codes(cells: CodedCells) -> NDArray[Any]:
    parts: list[NDArray[Any]] = [cells.codes[cells.record_cells], cells.record_values]
    if cells.record_subjects is not None:
        parts.append(cells.record_subjects[:, None])
    return np.column_stack(parts)


def _pieces(sources: Sequence[Source]) -> tuple[tuple[Source, ...], ...]:
    """Return the columns in runs whose codes fit one 64-bit number."""
    pieces: list[list[Source]] = []
    size = _LARGEST_KEY + 1
    for source in sources:
        # The next column would make the key too large for 64 bits, and begins a new one.
        if size * source.size > _LARGEST_KEY:
            pieces.append([])
            size = 1
        pieces[-1].append(source)
        size *= source.size
    return tuple(map(tuple, pieces))


def _keys(pieces: Iterable[Sequence[Source]], codes: NDArray[Any]) -> dict[str, pa.Array]:
    """Return the keys of lines of codes, one column per source; the person may be a quasi-identifier as well."""
    keys = {}
    for number, piece in enumerate(pieces):
        key = np.zeros(len(codes), dtype=np.int64)
        for source in piece:
            key = key * source.size + codes[:, source.place]
        keys[f"key{number}"] = pa.array(key)
    return keys


def _key(piece: Sequence[Source]) -> exp.Expression:
    """Return the number that the codes of a row make."""
    terms = [_code(source) for source in piece]
    for term, source in zip(terms[1:], piece[1:], strict=True):
        # Engines may take a bare literal for 32 bits, in which the product would overflow.
        scaled = exp.Mul(this=exp.paren(terms[0]), expression=exp.cast(exp.Literal.number(source.size), "BIGINT"))
        terms[0] = exp.Add(this=scaled, expression=term)
    return terms[0]


def _code(source: Source) -> exp.Expression:
    found = _of(_lookup(source), "code")
    if None not in source.values:
        return found
    missing = int(source.codes[source.values.index(None)])
    return exp.Coalesce(this=found, expressions=[exp.cast(exp.Literal.number(missing), "BIGINT")])


def _codes_table(source: Source, names: Sequence[str | None] | None) -> pa.Table:
    present = [place for place, item in enumerate(source.values) if item is not None]
    columns = {
        "value": pa.array([source.values[place] for place in present], ARROW_TYPES[source.storage]),
        "code": pa.array([int(source.codes[place]) for place in present], pa.int64()),
    }
    if names is not None:
        columns["label"] = pa.array([names[source.codes[place]] for place in present], pa.string())
    return pa.table(columns)


def _names(attribute: CodedAttribute, level: int, source: Source) -> list[str | None] | None:
    """Return the name of each leaf at a level; None where stored values are released as they are."""
    if level == 0 and source.is_shown_as_is:
        return None
    return [attribute.labels[level][node] for node in attribute.ancestors[level]]


def _text(column: exp.Expression) -> exp.Expression:
    return exp.Coalesce(this=exp.cast(column, "TEXT"), expressions=[exp.Literal.string("")])


def _label(source: Source, names: Sequence[str | None]) -> exp.Expression:
    """Return the name that a row's value has, also where the value is missing."""
    found = _of(_lookup(source), "label")
    missing = names[source.codes[source.values.index(None)]] if None in source.values else None
    return found if missing is None else exp.Coalesce(this=found, expressions=[exp.Literal.string(missing)])


def _lookup(source: Source) -> str:
    return f"codes{source.place}"


def _label_column(source: Source) -> str:
    return f"label{source.place}"


def _of(table: str, column: str) -> exp.Column:
    return exp.column(column, table=table, quoted=True)


def _table(name: str) -> exp.Table:
    return exp.Table(this=_quote(name), alias=exp.TableAlias(this=_quote(name)))


def _quote(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
