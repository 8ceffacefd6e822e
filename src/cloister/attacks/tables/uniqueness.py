"""Uniqueness: which few columns are enough to tell people apart.

Sweeney (2000) found 87% of the people of the United States unique by zip code, sex and date of birth. Here every small
set of columns is tried, and a greedy search finds a small set that identifies nearly as many people as all columns do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.release import Release
from cloister.attacks.details import AttackDetails, Row, fact, keyed
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import CodedColumn, code_column
from cloister.attacks.tables._scores import most_exposed, share_with_interval
from cloister.core.exact import Number
from cloister.core.validation import check_count, check_probability
from cloister.core.wordings import percent
from cloister.data.columns import Role
from cloister.data.sources import ensure_open
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, UnknownColumnError

__all__ = ["UniquenessDetails", "identifying_columns", "uniqueness"]

_MOST_SETS = 20_000
_MOST_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UniquenessDetails(AttackDetails):
    """What a search for identifying columns found; the baseline is the best single column.

    Attributes:
        columns: the columns that the success is about.
        subsets: (columns, share of unique rows), most identifying first within each size.
    """

    columns: tuple[str, ...]
    subsets: tuple[tuple[tuple[str, ...], float], ...] = field(metadata=fact(write=keyed("columns", "unique")))

    def conclude(self, result: AttackResult, /) -> str:
        return (
            f"{percent(result.success)} of the rows are the only ones with their {', '.join(self.columns)}; "
            f"the most telling column alone singles {percent(result.baseline)} out."
        )

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        yield from ((", ".join(names), percent(share)) for names, share in self.subsets[:_MOST_TOLD])


@dataclass(frozen=True, eq=False)
class _Rows:
    """Columns as codes."""

    names: tuple[str, ...]
    columns: tuple[CodedColumn, ...]

    @cached_property
    def codes(self) -> dict[str, tuple[NDArray[np.int64], int]]:
        pairs = zip(self.names, self.columns, strict=True)
        return {name: (column.codes + 1, len(column.values) + 1) for name, column in pairs}

    def groups(self, names: Sequence[str], start: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the group of each row by some columns, beginning with groups that are there already."""
        groups = np.zeros(len(self.columns[0].codes), dtype=np.int64) if start is None else start
        for name in names:
            codes, size = self.codes[name]
            # Numbering the groups anew after each column keeps the products within 64 bits.
            groups = np.unique(groups * size + codes, return_inverse=True)[1].reshape(-1)
        return groups


def _unique(groups: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(np.bincount(groups)[groups] == 1)


def uniqueness(
    table: Any, *, columns: Sequence[str] | None = None, largest: int = 4, confidence: Number = 0.95
) -> AttackResult[UniquenessDetails]:
    """Return the share of rows that are unique by all columns together, and by every small set of them.

    Args:
        table: a table, raw or released, or a `Release`.
        columns: what somebody may know; the quasi-identifiers of the schema by default, otherwise all columns.
        largest: the largest size of a set.
        confidence: the confidence of the interval.
    """
    rows = _read(table, columns)
    most = check_count(largest, name="largest", at_least=1)
    sets = [names for size in range(1, most + 1) for names in itertools.combinations(rows.names, size)]
    if len(sets) > _MOST_SETS:
        raise ParameterError(
            f"There are {len(sets):,} sets of columns to try.", fix="name fewer columns=, or choose a smaller largest=."
        )
    shares: dict[tuple[str, ...], float] = {}
    groups: dict[tuple[str, ...], NDArray[np.int64]] = {}
    for names in sets:
        # Sets come in ascending size, so that the groups of all columns but the last are there already.
        found = rows.groups(names[-1:], groups.get(names[:-1]))
        shares[names] = float(_unique(found).mean())
        if len(names) < most:
            groups[names] = found
        groups = {key: value for key, value in groups.items() if len(key) >= len(names) - 1}
    return _result(rows, rows.names, shares, confidence)


def identifying_columns(
    table: Any, *, columns: Sequence[str] | None = None, share: object = 0.95, confidence: Number = 0.95
) -> AttackResult[UniquenessDetails]:
    """Return a small set of columns by which nearly as many rows are unique as by all of them.

    Columns are added one at a time, always the one that makes most rows unique, and those that turn out not to be
    needed are dropped again. There may be a smaller set: finding the smallest is hard.

    Args:
        table: a table, raw or released, or a `Release`.
        columns: what somebody may know; the quasi-identifiers of the schema by default, otherwise all columns.
        share: stop when this share of the rows that are unique by all columns is unique.
        confidence: the confidence of the interval.
    """
    rows = _read(table, columns)
    enough = float(check_probability(share, name="share"))
    goal = enough * int(_unique(rows.groups(rows.names)).sum())
    chosen: list[str] = []
    groups = rows.groups(())
    shares: dict[tuple[str, ...], float] = {}
    while len(chosen) < len(rows.names) and (not chosen or _unique(groups).sum() < goal):
        left = [name for name in rows.names if name not in chosen]
        tried = {name: rows.groups([name], groups) for name in left}
        best = max(left, key=lambda name: (int(_unique(tried[name]).sum()), int(tried[name].max())))
        chosen, groups = [*chosen, best], tried[best]
        shares[tuple(chosen)] = float(_unique(groups).mean())
    for name in list(chosen):
        others = [item for item in chosen if item != name]
        if others and _unique(rows.groups(others)).sum() >= goal:
            chosen = others
    shares[tuple(chosen)] = float(_unique(rows.groups(chosen)).mean())
    for name in rows.names:
        shares.setdefault((name,), float(_unique(rows.groups([name])).mean()))
    return _result(rows, tuple(chosen), shares, confidence)


def _result(
    rows: _Rows, names: tuple[str, ...], shares: dict[tuple[str, ...], float], confidence: Number
) -> AttackResult[UniquenessDetails]:
    unique = _unique(rows.groups(names))
    ordered = sorted(shares.items(), key=lambda item: (len(item[0]), -item[1]))
    return AttackResult(
        attack="uniqueness",
        assumption=f"knows {', '.join(names)} of a person exactly",
        baseline=max(found for key, found in shares.items() if len(key) == 1),
        queries=len(unique),
        mitigation=("generalize the most telling columns, or leave them out",),
        worst=most_exposed(unique.astype(np.float64)),
        **share_with_interval(float(unique.sum()), len(unique), confidence=confidence),
        details=UniquenessDetails(
            columns=names,
            subsets=tuple(ordered),
        ),
    )


def _read(table: Any, columns: Sequence[str] | None) -> _Rows:
    source: Table = table.table if isinstance(table, Release) else ensure_open(table)
    names = list(columns) if columns is not None else _default(table, source)
    for name in names:
        if name not in source.columns:
            raise UnknownColumnError(name, source.columns)
    if not names:
        raise ParameterError("There are no columns to tell people apart by.", fix='give columns=["age", "zip"].')
    rows = source.to_arrow().select(names)
    if not len(rows):
        raise DataError("The table has no rows.", fix="open a table with data.")
    return _Rows(tuple(names), tuple(code_column(column) for column in rows.columns))


def _default(table: Any, source: Table) -> list[str]:
    if isinstance(table, Release):
        return list(table.roles.quasi)
    stated = [] if source.schema is None else source.schema.with_roles(Role.QUASI)
    return [name for name in stated if name in source.columns] or list(source.columns)
