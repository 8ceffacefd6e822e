"""Which released classes a person fits: every label must allow the person's value.

Values of an auxiliary table are held against labels once for each distinct pair. A person's candidates are then the
intersection of one bit set of classes for each known column, block by block, so that tens of thousands of people take a
moment. A value that the attacker does not know (missing) fits every label, and a missing released cell fits every
value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.anonymize.attributes import attribute_of
from cloister.anonymize.cells import group_lines
from cloister.anonymize.labels import ReadLabels, read_labels
from cloister.attacks.tables._published_table import PublishedTable
from cloister.data.columns import Column, Kind
from cloister.data.hierarchy import ROOT
from cloister.data.interval_labels import number_in
from cloister.data.sources import ensure_open
from cloister.data.values import is_missing, text_of
from cloister.errors import DataError, SchemaError, UnknownColumnError

__all__ = [
    "BitSets",
    "CodedColumn",
    "Fitting",
    "KnownPeople",
    "bit_sets",
    "code_column",
    "fit_people",
    "known_columns",
    "people_of",
    "read_column",
    "unread_columns",
]


_BLOCK = 1 << 26


@dataclass(frozen=True, eq=False)
class BitSets:
    """For each column and each code in it, the members that fit, as packed bits; the last code fits everybody.

    Attributes:
        columns: one line of bits per code, for each column.
        weights: how much each member counts.
    """

    columns: tuple[NDArray[np.uint8], ...]
    weights: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"BitSets({len(self.columns)} columns)"

    def masks(self, codes: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Give, block by block of lines of codes, which members (columns) fit each line."""
        for block, found in self._blocks(codes):
            yield block, np.unpackbits(found, axis=1, count=len(self.weights)).view(np.bool_)

    def totals(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weight of all that fit each line: set bits, counted once for each binary digit of the weights."""
        digits = range(int(self.weights.max(initial=0)).bit_length())
        chosen = [(digit, np.packbits(self.weights >> digit & 1 == 1)) for digit in digits]
        found = np.zeros(len(codes), dtype=np.int64)
        for block, fitting in self._blocks(codes):
            for digit, members in chosen:
                found[block] += _set_bits(fitting & members) << digit
        return found

    def _blocks(self, codes: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
        step = max(_BLOCK // max(len(self.weights), 1), 1)
        for start in range(0, len(codes), step):
            block = slice(start, min(start + step, len(codes)))
            # Indexing makes a copy, so that the sets themselves are not changed in place.
            found = self.columns[0][codes[block, 0]]
            for place, bits in enumerate(self.columns[1:], start=1):
                found &= bits[codes[block, place]]
            yield block, found


def bit_sets(allowed: Sequence[NDArray[np.bool_]], members: NDArray[np.integer], weights: NDArray[np.int64]) -> BitSets:
    """Return bit sets.

    Args:
        allowed: for each column, whether each code (row) allows what a member shows (column).
        members: what each member (row) shows in each column.
        weights: how much each member counts.
    """
    return BitSets(
        tuple(np.packbits(table[:, members[:, place]], axis=1) for place, table in enumerate(allowed)), weights
    )


def _set_bits(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how many bits of each row are set."""
    if hasattr(np, "bitwise_count"):
        return np.asarray(np.bitwise_count(rows).sum(axis=1, dtype=np.int64))
    return np.asarray(np.unpackbits(rows, axis=1).sum(axis=1, dtype=np.int64))


_LARGEST_MATRIX = 2 * 10**8


@dataclass(frozen=True, eq=False, kw_only=True)
class CodedColumn:
    """A column as codes: -1 is missing, others are places in the values, which are sorted and distinct.

    What the schema of its table says about it, if there is one, is ``described``.
    """

    values: tuple[Any, ...]
    codes: NDArray[np.int64]
    type: pa.DataType
    described: Column | None = None

    def __repr__(self) -> str:
        return f"Coded({self.type})"


def code_column(column: pa.ChunkedArray) -> CodedColumn:
    """Return a column as codes."""
    encoded = column.combine_chunks().dictionary_encode()
    order = pa.compute.sort_indices(encoded.dictionary).to_numpy()
    values = encoded.dictionary.take(pa.array(order)).to_pylist()
    place = np.full(len(order) + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    codes = place[encoded.indices.cast(pa.int64()).fill_null(len(order)).to_numpy(zero_copy_only=False)]
    unknown = np.array([is_missing(value) for value in values] + [True])
    return CodedColumn(values=tuple(values), codes=np.where(unknown[codes], -1, codes), type=encoded.dictionary.type)


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownPeople:
    """The people of an auxiliary table: distinct combinations of what is known about them.

    Attributes:
        names: the columns that are known.
        columns: each of them, person by person.
        codes: the codes of each distinct combination.
        kinds: the combination of each person.
    """

    names: tuple[str, ...]
    columns: tuple[CodedColumn, ...]
    codes: NDArray[np.int64]
    kinds: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"People({list(self.names)})"

    def __len__(self) -> int:
        return len(self.kinds)


def people_of(table: Any, names: Sequence[str], *, positions: NDArray[np.int64] | None = None) -> KnownPeople:
    """Return the people of a table, or of some of its rows.

    Raises:
        UnknownColumnError: if a column is not there.
        DataError: if nobody is.
    """
    people = ensure_open(table)
    for name in names:
        if name not in people.columns:
            raise UnknownColumnError(name, people.columns)
    rows = people.to_arrow().select(list(names))
    rows = rows if positions is None else rows.take(pa.array(positions))
    if not len(rows):
        raise DataError("The auxiliary table has no rows.", fix="give at least one person to look for.")
    told = {} if people.schema is None else people.schema.columns
    columns = tuple(
        replace(code_column(column), described=told.get(name)) for name, column in zip(names, rows.columns, strict=True)
    )
    codes = np.column_stack([column.codes for column in columns]) + 1
    order, starts, kinds = group_lines(codes, tuple(len(column.values) + 1 for column in columns))
    return KnownPeople(names=tuple(names), columns=columns, codes=codes[order[starts]] - 1, kinds=kinds)


def known_columns(published: PublishedTable, table: Any, columns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the quasi-identifiers that an auxiliary table has too, or those that the caller names."""
    there = ensure_open(table).columns
    wanted = [name for name in published.quasi if name in there] if columns is None else list(columns)
    for name in wanted:
        if name not in published.quasi:
            raise UnknownColumnError(name, published.quasi)
    if not wanted:
        raise SchemaError(
            "The auxiliary table shares no quasi-identifier with the release, so nothing can be linked.",
            fix="rename its columns to those of the release, or name quasi_identifiers that both have.",
        )
    return tuple(wanted)


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitting:
    """Which classes people fit.

    Attributes:
        people: who is looked for.
        read: what the labels of each known column allow.
        leaves: the leaf, among those, of each value of the people.
        labels: the code of the label that each class (row) shows in each known column.
        sizes: the number of rows of each class.
    """

    people: KnownPeople
    read: tuple[ReadLabels, ...]
    leaves: tuple[NDArray[np.int64], ...]
    labels: NDArray[np.int32]
    sizes: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Fitting({list(self.people.names)})"

    def allowed(self, place: int) -> NDArray[np.bool_]:
        """Return which labels (columns) of a known column allow each value (row); the last row is an unknown value."""
        member = self.read[place].member[:, self.leaves[place]].T
        return np.vstack([member, np.ones(member.shape[1], dtype=bool)])

    @cached_property
    def _bits(self) -> BitSets:
        return bit_sets([self.allowed(place) for place in range(len(self.people.names))], self.labels, self.sizes)

    def masks(self, kinds: NDArray[np.int64] | None = None) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
        """Give, block by block of the people's combinations, which classes (columns) each fits."""
        return self._bits.masks(self.people.codes if kinds is None else self.people.codes[kinds])

    @cached_property
    def candidates(self) -> NDArray[np.int64]:
        """Return how many released rows each combination fits."""
        return self._bits.totals(self.people.codes)

    def fits_class(self, classes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each person fits one class each; false for the class -1."""
        fits = classes >= 0
        for place in range(len(self.people.names)):
            codes = self.people.codes[self.people.kinds, place]
            fits &= self.allowed(place)[codes, self.labels[np.maximum(classes, 0), place]]
        return fits


def fit_people(published: PublishedTable, people: KnownPeople) -> Fitting:
    """Hold people against the labels of a release."""
    read, leaves = [], []
    for name, column in zip(people.names, people.columns, strict=True):
        found, places = read_column(published, name, column)
        read.append(found)
        leaves.append(places)
    chosen = [published.quasi.index(name) for name in people.names]
    return Fitting(
        people=people,
        read=tuple(read),
        leaves=tuple(leaves),
        labels=published.codes[:, chosen],
        sizes=published.sizes,
    )


def read_column(
    published: PublishedTable, name: str, column: CodedColumn, *, strict: bool = False
) -> tuple[ReadLabels, NDArray[np.int64]]:
    """Return what the labels of a column allow, and the leaf of each of the people's values.

    Args:
        published: the release.
        name: the column.
        column: what is known about the people in it.
        strict: read a number that is no raw value as the nearest one, instead of letting it fit nobody.
    """
    labels = published.labels(name)
    stated = _reading_column(_describe_column(published, name, column), column)
    covered, outside = _split_covered(stated, column.values)
    extra = [] if stated.hierarchy is not None else [*published.universe(name), *_parts(labels)]
    values = _order_values(stated.kind, [*covered, *extra])
    if len(labels) * (len(values) + len(outside)) > _LARGEST_MATRIX:
        raise DataError(
            f'"{name}" has too many different values to hold each of them against each released label.',
            fix="round the column, or link without it.",
        )
    attribute, codes = attribute_of(stated, [*values, None])
    try:
        found = read_labels(attribute, labels, unknown="refuse" if strict else "nobody")
    except SchemaError:
        found = read_labels(attribute, labels, unknown="nobody")
    found.member[[_says_nothing(label) for label in labels]] = True
    if outside:
        found = _with_strangers(found, labels, outside)
    place = {_key(stated.kind, value): int(code) for value, code in zip(values, codes, strict=False)}
    own = {value: place[_key(stated.kind, value)] for value in covered}
    own |= {value: len(attribute.leaves) + number for number, value in enumerate(outside)}
    return found, np.array([own[value] for value in column.values], dtype=np.int64)


def unread_columns(published: PublishedTable, people: KnownPeople, *, strict: bool = False) -> tuple[str, ...]:
    """Return the known columns that show labels, of which none allows a value of anybody."""
    found = []
    for name, column in zip(people.names, people.columns, strict=True):
        telling = np.array([not _says_nothing(label) for label in published.labels(name)], dtype=bool)
        known = np.unique(column.codes[column.codes >= 0])
        if not telling.any() or not len(known):
            continue
        read, leaves = read_column(published, name, column, strict=strict)
        if not read.member[telling][:, leaves[known]].any():
            found.append(name)
    return tuple(found)


def _describe_column(published: PublishedTable, name: str, known: CodedColumn) -> Column:
    """Return what is said about a column by the release, and otherwise by the table of the people.

    Whoever has a hierarchy of the raw values can read a released file that comes without one.
    """
    own, theirs = published.schema[name], known.described
    if theirs is None or own.hierarchy is not None or published.release is not None:
        return own
    return own if name in published.stated and theirs.hierarchy is None else theirs


def _reading_column(column: Column, known: CodedColumn) -> Column:
    """Return how the column's labels are read: by its hierarchy, its categories in order, or the people's values."""
    kind = column.kind
    if column.hierarchy is None and kind not in (Kind.ORDINAL, Kind.NUMERIC, Kind.DATETIME):
        kind = _kind(known.type)
    if kind is Kind.DATETIME and not all(isinstance(value, dt.date) for value in known.values):
        kind = Kind.NOMINAL
    categories = column.categories if kind is Kind.ORDINAL else None
    return replace(column, kind=kind, categories=categories, bounds=None, guessed=frozenset(), evidence="")


def _kind(type_: pa.DataType) -> Kind:
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return Kind.NUMERIC
    return Kind.DATETIME if pa.types.is_date(type_) or pa.types.is_timestamp(type_) else Kind.NOMINAL


def _split_covered(column: Column, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the values that the hierarchy or the categories know, and the others."""
    if column.hierarchy is not None:
        strange = set(column.hierarchy.uncovered(list(values)))
    elif column.categories is not None:
        known = {text_of(category) for category in column.categories}
        strange = {value for value in values if text_of(value) not in known}
    else:
        strange = {value for value in values if _plain(column.kind, value) is None}
    return [value for value in values if value not in strange], [value for value in values if value in strange]


def _with_strangers(read: ReadLabels, labels: Sequence[Any], outside: Sequence[Any]) -> ReadLabels:
    """Return the reading with values that no hierarchy knows: they fit their own name and what says nothing."""
    names = [None if is_missing(label) else text_of(label) for label in labels]
    own = [[name is None or name in (ROOT, text_of(value)) for value in outside] for name in names]
    return replace(read, member=np.hstack([read.member, np.array(own, dtype=bool)]))


def _says_nothing(label: Any) -> bool:
    return is_missing(label) or not text_of(label).strip(ROOT)


def _parts(labels: Sequence[Any]) -> list[Any]:
    """Return the values that sets and ranges are written with."""
    found: list[Any] = []
    for label in labels:
        name = "" if is_missing(label) else text_of(label)
        if name[:1] + name[-1:] in ("{}", "[]"):
            found += name[1:-1].split(", ")
    return found


def _order_values(kind: Kind, values: Sequence[Any]) -> list[Any]:
    """Return distinct values in the type and order that the kind has; what is of another type is left out."""
    found: dict[Any, Any] = {}
    for value in values:
        plain = _plain(kind, value)
        if plain is not None:
            found.setdefault(_key(kind, plain), plain)
    listed = list(found.values())
    if kind is Kind.ORDINAL:
        return listed
    return sorted(listed, key=text_of if kind is Kind.DATETIME else None)


def _plain(kind: Kind, value: Any) -> Any:
    if is_missing(value):
        return None
    if kind is Kind.NUMERIC:
        number = number_in(value) if isinstance(value, str) else value
        return None if number is None else float(number)
    if kind is Kind.DATETIME:
        return _moment(value)
    return text_of(value)


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return dt.date.fromisoformat(value) if len(value) == 10 else dt.datetime.fromisoformat(value)
    except ValueError:
        return None


def _key(kind: Kind, value: Any) -> str:
    return text_of(_plain(kind, value))
