"""Hostile rows, and a check that no row decides what a private computation shows besides its noisy answer.

Whether something fails, warns, or ends in another state is seen by whoever asked, and no noise covers it. So all of
that must be the same for every table that has the same columns:

    columns = [HostileColumn("age", "real", low=0, high=110), HostileColumn("sex", "text", values=("F", "M"))]

    def run(table):
        answer = private_count(open_table(table), epsilon=1e-6)
        return type(answer).__name__  # whatever else than the noisy answer can be seen

    report = check_alike(run, hostile_pairs(columns))
    report.pairs  # how many neighbors were tried

A refusal from public facts is the same for every table, and therefore fine; `HostileReport.refused` says so, since a
run that always refuses has tested nothing. The check is an observation of some tables, not a proof.
Values that only a database can store (dates at infinity, NaN among decimals) are not among them:
``tests/queries/hostile_values.py`` has those, for each engine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cloister.errors import ParameterError
from cloister.testing.laws import law_violation

__all__ = [
    "EXTREME_BOUNDS",
    "EXTREME_EPSILONS",
    "Behavior",
    "HostileColumn",
    "HostileReport",
    "NeighborPair",
    "check_alike",
    "hostile_pairs",
    "observe",
]

EXTREME_EPSILONS = (1e-12, 1e-6, 1.0, 50.0, 1e4)
"""From a price that buys nothing to one at which there is hardly any noise."""

EXTREME_BOUNDS = ((0.0, 1.0), (-1e150, 1e150), (0.0, 1e-150), (1e15, 1e15 + 1), (-5e-5, 1e12))
"""Public bounds at the ends of what floats can tell apart."""

_TYPES = {
    "real": pa.float64(),
    "integer": pa.int64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "decimal": pa.decimal128(38, 9),
}
_TEXTS = (
    "",
    " ",
    "nan",
    "NULL",
    "-0",
    "1e308",
    "'; --",
    "\ufeff",
    "e\u0301",
    "\u00e9",
    "\U0001f600",
    "\u202eabc",
    "a\x00b",
    "\n\t\r",
    "x" * 5000,
)
_ODD: dict[str, tuple[Any, ...]] = {
    "real": (
        *(0.0, -0.0, math.nan, math.inf, -math.inf, None),
        *(1e308, -1e308, 5e-324, -5e-324, 1e-308, 2.0**53 + 2, 1e22, 1 / 3),
    ),
    "integer": (0, -1, None, 2**63 - 1, -(2**63), 2**53 + 1, 2**31, -(2**31) - 1),
    "text": (None, *_TEXTS),
    "boolean": (None, True, False),
    "date": (None, date.min, date.max, date(1970, 1, 1), date(2024, 2, 29)),
    "timestamp": (None, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1)),
    "decimal": (None, Decimal(0), Decimal("-0"), Decimal("0.000000001"), Decimal(10) ** 28, -(Decimal(10) ** 28)),
}
_FEW = 6


@dataclass(frozen=True, slots=True)
class HostileColumn:
    """What is public about a column of hostile tables.

    Attributes:
        name: of the column.
        kind: how it is stored: "real", "integer", "text", "boolean", "date", "timestamp" or "decimal".
        low: its public lower bound, if it has bounds.
        high: its public upper bound.
        values: its public values, if it has declared ones.
        odd: values besides those of its kind that a row may hold.
    """

    name: str
    kind: str
    low: Any = None
    high: Any = None
    values: tuple[Any, ...] = ()
    odd: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in _TYPES:
            raise ParameterError(
                f'"{self.kind}" is not a kind of column.', fix=f"use one of: {', '.join(sorted(_TYPES))}."
            )
        if (self.low is None or self.high is None) and len(self.values) < 2:
            raise ParameterError(
                "Nothing public is known of the column.", fix="give low and high, or two or more values."
            )

    @property
    def usual(self) -> tuple[Any, ...]:
        """Return ordinary values, the two that are furthest apart first."""
        if self.values:
            return (self.values[0], self.values[-1], *self.values[1:-1])
        if self.kind == "real":
            # Shares of the ends, since the width of extreme bounds may be more than a float can hold.
            return tuple(self.low * (1 - share) + self.high * share for share in (0.0, 1.0, 0.25, 0.5, 0.875))
        return (self.low, self.high)

    @property
    def hostile(self) -> tuple[Any, ...]:
        """Return everything that a row may hold although nobody expects it, and the ends of what is expected."""
        ends = () if self.values else (self.low, self.high)
        return (*_ODD[self.kind], *ends, *self.values, *self.odd)


Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, repr=False)
class NeighborPair:
    """Two tables that differ by one row, and what is special about them."""

    name: str
    first: pa.Table
    second: pa.Table

    def __repr__(self) -> str:
        return f"NeighborPair({self.name!r})"


def hostile_pairs(
    columns: Sequence[HostileColumn], *, most: int | None = None, fewest_rows: int = 0
) -> list[NeighborPair]:
    """Return pairs of hostile tables that differ by one row added, removed or replaced.

    Args:
        columns: what the tables have.
        most: how many pairs at most, the most telling first: no rows, every odd row, constants but once.
        fewest_rows: how many rows a table may be publicly known to have at least.

    >>> pairs = hostile_pairs([HostileColumn("age", "real", low=0, high=110)])
    >>> pairs[0].name, pairs[0].first.num_rows, pairs[0].second.num_rows
    ('no rows, and one', 0, 1)
    """
    found = [pair for pair in _pairs(columns) if len(pair[1]) >= fewest_rows and len(pair[2]) >= fewest_rows]
    tables: dict[str, pa.Table] = {}
    return [
        NeighborPair(name, _table(columns, first, tables), _table(columns, second, tables))
        for name, first, second in found[:most]
    ]


def _pairs(columns: Sequence[HostileColumn]) -> Iterator[tuple[str, list[Row], list[Row]]]:
    usual = [column.usual for column in columns]
    # The ordinary rows have another order in every column, so that no column is a copy of another.
    ordinary = [
        tuple(values[(row * (place + 1) + place) % len(values)] for place, values in enumerate(usual))
        for row in range(_FEW)
    ]
    low, high = tuple(values[0] for values in usual), tuple(values[1] for values in usual)
    # The most telling ones come first: a caller who has time for few of them takes these.
    yield "no rows, and one", [], [low]
    odd = list(_odd_rows(columns))
    yield "every odd row, and one less", [*ordinary, *odd], [*ordinary, *odd[1:]]
    for constant, other, end in ((low, high, "low"), (high, low, "high")):
        for place, column in enumerate(columns):
            rows = [(*row[:place], constant[place], *row[place + 1 :]) for row in ordinary]
            changed = (*ordinary[0][:place], other[place], *ordinary[0][place + 1 :])
            yield f'"{column.name}" always {end}, but once', rows, [*rows, changed]
    yield "one row, and two", [high], [high, low]
    yield "one row, and another", [low], [high]
    yield "all low, one high", [low] * _FEW, [low] * _FEW + [high]
    yield "all high, one low", [high] * _FEW, [high] * _FEW + [low]
    yield "all low, one less", [low] * _FEW, [low] * (_FEW - 1)
    yield "many copies, one more", [ordinary[0]] * 40, [ordinary[0]] * 41
    yield "columns that are copies, and a row that is not", [low, high] * 3, [low, high] * 3 + [ordinary[1]]
    yield from _with_odd_rows(odd, ordinary, [low] * _FEW)


def _odd_rows(columns: Sequence[HostileColumn]) -> Iterator[Row]:
    """Yield rows that hold every odd value of every column."""
    odd = [column.hostile for column in columns]
    for turn in range(max(map(len, odd))):
        # Columns start at different places, so that odd values meet others than their like.
        yield tuple(values[(turn + place) % len(values)] for place, values in enumerate(odd))


def _with_odd_rows(
    odd: list[Row], ordinary: list[Row], constant: list[Row]
) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """Yield neighbors of which one has a row of odd values, added, in the place of another, or alone."""
    for turn, row in enumerate(odd):
        match turn % 4:
            case 0:
                yield f"odd row {turn} added to ordinary ones", ordinary, [*ordinary, row]
            case 1:
                yield f"odd row {turn} added to copies", constant, [*constant, row]
            case 2:
                yield f"odd row {turn} instead of an ordinary one", ordinary, [*ordinary[1:], row]
            case _:
                yield f"odd row {turn} alone, and none", [row], []


def _table(columns: Sequence[HostileColumn], rows: list[Row], known: dict[str, pa.Table]) -> pa.Table:
    """Return rows as a table; the same one for the same rows, so that a check runs it once."""
    key = repr(rows)
    if key not in known:
        known[key] = pa.table(
            {
                column.name: pa.array([row[place] for row in rows], type=_TYPES[column.kind], from_pandas=False)
                for place, column in enumerate(columns)
            }
        )
    return known[key]


# Looking -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Behavior:
    """What can be seen of a run besides its noisy answer.

    Attributes:
        state: what the run returned.
        error: the kind and text of the exception that it ended with, if it did.
        warned: the kind and text of each warning, in order and once.
    """

    state: str | None = None
    error: str | None = None
    warned: tuple[str, ...] = ()

    def __str__(self) -> str:
        ended = f"failed with {self.error}" if self.error is not None else f"ended as {self.state}"
        return ended + (f", warning of {'; '.join(self.warned)}" if self.warned else "")


def observe(run: Callable[[pa.Table], Any], table: pa.Table, *, from_noise: Sequence[str] = ()) -> Behavior:
    """Return how a run on a table behaves; what it returns is what shows of its end.

    Args:
        run: as for `check_alike`.
        table: what it runs on.
        from_noise: as for `check_alike`.

    >>> observe(lambda table: table.num_rows // 10, pa.table({"age": [50]}))
    Behavior(state='0', error=None, warned=())
    """
    state = error = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            state = repr(run(table))
        except Exception as problem:  # noqa: BLE001  # whatever it is, it shows
            error = f"{type(problem).__name__}: {problem}"
    texts = [(item.category.__name__, str(item.message)) for item in caught]
    warned = dict.fromkeys(f"{kind}: {text}" for kind, text in texts if not any(part in text for part in from_noise))
    return Behavior(state, error, tuple(warned))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileReport:
    """What was tried, and how every table behaved."""

    pairs: int
    behavior: Behavior

    @property
    def refused(self) -> bool:
        """Return whether every run ended with the same error: nothing but the refusal was tested."""
        return self.behavior.error is not None


def check_alike(
    run: Callable[[pa.Table], Any], pairs: Iterable[NeighborPair], *, from_noise: Sequence[str] = ()
) -> HostileReport:
    """Return how a run behaves on all tables of some pairs, which must be one and the same way.

    All tables are compared with the first one: whoever may replace every row of a table in turn goes from neighbor to
    neighbor, and a behavior that differs between any two tables differs between two neighbors on the way.

    Args:
        run: takes a table, and returns what shows of its end besides noisy numbers, such as a state.
        pairs: what `hostile_pairs` returned.
        from_noise: parts of warnings that follow from released noisy numbers alone, so that they come and go by
            chance and tell nothing more.

    Raises:
        LawViolatedError: if the rows decide whether a run fails, warns or ends in another state.

    >>> columns = [HostileColumn("age", "real", low=0, high=110)]
    >>> check_alike(lambda table: "done", hostile_pairs(columns)).pairs
    27
    """
    known: dict[int, Behavior] = {}
    expected: Behavior | None = None
    tried = list(pairs)
    for pair in tried:
        for table in (pair.first, pair.second):
            if id(table) not in known:
                known[id(table)] = observe(run, table, from_noise=from_noise)
            found = known[id(table)]
            expected = found if expected is None else expected
            if found != expected:
                raise law_violation(
                    f"Rows decide what shows ({pair.name}): one table {expected}; another {found}",
                    "bound settings by public facts, so that no row can make it fail, warn or end otherwise.",
                )
    if expected is None:
        raise ParameterError("There is no pair to try.", fix="pass what hostile_pairs() returned.")
    return HostileReport(pairs=len(tried), behavior=expected)
