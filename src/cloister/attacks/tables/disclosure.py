"""What an attack on the sensitive values inside classes reports, and what is known of them without the release.

The prior is how often each value occurs in the original. A release whose rows all show one value tells it of everybody.
Held against itself it would seem to tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import CodedCells, Sensitive, read_cells
from cloister.anonymize.models import Histogram
from cloister.attacks.details import HELD, AttackDetails, Row, fact
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._published_table import PublishedTable
from cloister.attacks.tables._scores import most_exposed
from cloister.core.wordings import percent
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import ensure_open
from cloister.data.table import Table
from cloister.data.values import is_missing, text_of
from cloister.errors import HierarchyError, ParameterError, UnknownColumnError

__all__ = ["DisclosureDetails", "Prior", "prior_of", "rank_exposed_rows", "shows_one_value"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Prior:
    """The values of a column, and in how many rows each of them is."""

    column: Sensitive
    counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Prior({self.column.name})"

    @property
    def largest(self) -> float:
        """Return the share of the most frequent value."""
        return float(self.counts.max() / self.counts.sum())

    @property
    def whole(self) -> Histogram:
        """Return the table as one class."""
        values = np.flatnonzero(self.counts)
        return Histogram(
            classes=np.zeros(len(values), dtype=np.int64),
            values=values,
            counts=self.counts[values],
            sizes=np.array([self.counts.sum()]),
            overall=self.counts,
        )

    def shares_of(self, column: Sensitive) -> NDArray[np.float64]:
        """Return the share of each value of a released column.

        Raises:
            ParameterError: if the original lacks one of them.
        """
        known = {_name(value): int(count) for value, count in zip(self.column.values, self.counts, strict=True)}
        found = np.array([known.get(_name(value), 0) for value in column.values], dtype=np.int64)
        if not found.all():
            raise ParameterError(
                f'"{column.name}" has values in the release that the original lacks.',
                fix="give the original that the release was made from, with values as the release writes them.",
            )
        return np.asarray(found / self.counts.sum())


def prior_of(published: PublishedTable, name: str | None, original: Any) -> Prior:
    """Return what is known about a sensitive column from the original, by default that of a release.

    A released table without an original is its own: what it says as a whole is taken as known.

    Raises:
        UnknownColumnError: if the original lacks the column.
    """
    column = published.sensitive(name)
    if original is None and published.release is None:
        return Prior(column=column, counts=published.histogram(name).overall)
    table = ensure_open(original) if original is not None or published.release is None else published.release.original
    if column.name not in table.columns:
        raise UnknownColumnError(column.name, table.columns)
    cells = _read(table, published.schema[column.name])
    counts = np.bincount(
        cells.record_values[:, 0], weights=cells.record_weights, minlength=len(cells.sensitive[0].values)
    )
    return Prior(column=cells.sensitive[0], counts=counts.astype(np.int64))


def _read(table: Table, column: Column) -> CodedCells:
    try:
        return read_cells(table, Schema([column]), quasi=[column.name], sensitive=[column.name])
    except HierarchyError:
        bare = replace(column, hierarchy=None, hierarchy_file=None)
        return read_cells(table, Schema([bare]), quasi=[column.name], sensitive=[column.name])


def _name(value: Any) -> str | None:
    return None if is_missing(value) else text_of(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosureDetails(AttackDetails):
    """What an attack on a sensitive column knows. Nobody is matched to a row: a person's class is enough.

    Attributes:
        column: the sensitive column.
        largest_posterior: how sure the attacker becomes of a value, at most.
        prior: how sure the attacker was, at most, knowing the whole table only.
        classes: how many classes the release has.
        disclosed_classes: how many of them give their people's value away.
        achieved: what the attacker achieves, in words.
        facts: further (name, number) pairs of this attack.
        certainty: the share of a class that counted as giving a value away.
        shows_one_value: whether all released rows have the same value, so that their classes hardly matter.
    """

    column: str = field(metadata=fact("sensitive column"))
    largest_posterior: float
    prior: float
    classes: int
    disclosed_classes: int
    achieved: str = field(metadata=HELD)
    facts: tuple[tuple[str, float], ...] = field(default=(), metadata=fact(write=dict))
    certainty: float = 1.0
    shows_one_value: bool = False

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether more is disclosed, at the stated confidence, than by the whole table.

        The control is no excuse: what small classes give away by chance is given away.
        """
        return result.interval[0] > result.baseline

    def conclude(self, result: AttackResult, /) -> str:
        """Return what the classes give away beyond the whole table."""
        told = "release" if self.shows_one_value and self.prior < 1 else "classes"
        without = f"{percent(result.baseline)} without the {told}"
        shares = f"{self.achieved} {percent(result.success)} of the people, {without}.{self.remark(result)}"
        if result.succeeded:
            return f"The attack works: it {shares}"
        return f"This attack found no more than the whole table tells: it {shares} Others may find more."

    def remark(self, result: AttackResult, /) -> str:
        """Return how sure the surest class is, and what chance would give away."""
        said = (
            f" All released rows have the same {self.column}: whoever sees them knows it."
            if self.shows_one_value
            else ""
        )
        if self.certainty < 1:
            said += f" Surest class: {percent(self.largest_posterior)}."
        if result.control is None:
            return said
        return f"{said} Values dealt out at random to the same classes would give {percent(result.control)} away."

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return how sure the attacker becomes, by how many classes, and the figures of this attack."""
        yield "largest belief", f"{percent(self.largest_posterior)}, before {percent(self.prior)}"
        yield "classes that give it away", f"{self.disclosed_classes:,} of {self.classes:,}"
        yield from ((name, f"{value:.4g}") for name, value in self.facts)


def shows_one_value(histogram: Histogram) -> bool:
    """Return whether all released rows have the same value."""
    return len(np.unique(histogram.values)) == 1


def rank_exposed_rows(published: PublishedTable, scores: NDArray[np.float64]) -> tuple[tuple[int, float], ...]:
    """Return the rows of the custodian's table whose classes have the highest scores."""
    return most_exposed(np.append(scores, 0.0)[published.row_classes])
