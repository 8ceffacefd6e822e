"""Attacks on linked databases: two sources joined by person tell more than both, and a list is hunted in a table.

*Correlation* joins sources that share a key (a user name, a pseudonym) into richer rows. *Identification* looks for the
people of a list, such as the employees of a company, in a table that was never meant to be about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.attacks.details import AttackDetails
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import code_column, fit_people, people_of
from cloister.attacks.tables._published_table import publish
from cloister.attacks.tables._scores import (
    check_truth,
    most_exposed,
    share_of,
    share_with_interval,
)
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.data.sources import ensure_open
from cloister.data.values import text_of
from cloister.errors import DataError, ParameterTypeError, SchemaError, UnknownColumnError

__all__ = ["CorrelationDetails", "IdentificationDetails", "correlation", "identification"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationDetails(AttackDetails):
    """What joining two sources tells: how many people are unique by what both say, beside the better single one.

    Attributes:
        gained: how many attributes the join adds to what the first source says about a person.
        people: how many people are in both sources.
        unique_before: the share of them who are unique by the first source, and by the second.
    """

    gained: int
    people: int
    unique_before: tuple[float, float]

    def conclude(self, result: AttackResult, /) -> str:
        return (
            f"Joining the sources adds {self.gained} {'attribute' if self.gained == 1 else 'attributes'} about "
            f"{self.people:,} people and makes {percent(result.success)} of them unique, "
            f"{percent(result.baseline)} by the better source alone."
        )


def correlation(
    first: Any, second: Any, *, on: str | Sequence[str], confidence: Number = 0.95
) -> AttackResult[CorrelationDetails]:
    """Return how many people become unique when two sources are joined by person.

    Args:
        first: a table with a key of people and attributes; a person may have several rows.
        second: another one with the same key.
        on: the column, or columns, that name people in both.
        confidence: the confidence of the interval.

    >>> import pyarrow as pa
    >>> prescriptions = pa.table({"user": [1, 2, 3, 4], "drug": ["a", "a", "b", "b"]})
    >>> visits = pa.table({"user": [1, 2, 3, 4], "pharmacy": ["north", "south", "north", "south"]})
    >>> result = correlation(prescriptions, visits, on="user")
    >>> result.gained, result.baseline, result.success
    (1, 0.0, 1.0)
    """
    key = [on] if isinstance(on, str) else list(on)
    tables = [ensure_open(first).to_arrow(), ensure_open(second).to_arrow()]
    for table in tables:
        for name in key:
            if name not in table.column_names:
                raise UnknownColumnError(name, tuple(table.column_names))
    others = [[name for name in table.column_names if name not in key] for table in tables]
    if not key or not all(others):
        raise SchemaError("A source says nothing besides the key.", fix="name the key by on=, and keep attributes.")
    people = _people(tables, key)
    shared = np.intersect1d(people[0], people[1])
    if not len(shared):
        raise DataError("Nobody is in both sources.", fix="check that keys are written the same way in both.")
    marks = [_signatures(table, names, who, shared) for table, names, who in zip(tables, others, people, strict=True)]
    alone = [float(_unique(mark).mean()) for mark in marks]
    joint = _unique(np.hstack(marks))
    return AttackResult(
        attack="correlation of databases",
        assumption=f"has both sources and joins them by {', '.join(key)}",
        baseline=max(alone),
        queries=len(tables[0]) + len(tables[1]),
        mitigation=("give people other pseudonyms in each source", "leave the key out"),
        worst=most_exposed(joint.astype(np.float64)),
        **share_with_interval(float(joint.sum()), len(shared), confidence=confidence),
        details=CorrelationDetails(
            gained=len([name for name in others[1] if name not in others[0]]),
            people=len(shared),
            unique_before=(alone[0], alone[1]),
        ),
    )


def _people(tables: Sequence[pa.Table], key: Sequence[str]) -> list[NDArray[np.int64]]:
    """Return the number of each row's person, the same in both tables."""
    groups = [np.zeros(len(table), dtype=np.int64) for table in tables]
    for name in key:
        known: dict[str, int] = {}
        codes = []
        for table in tables:
            coded = code_column(table[name])
            places = np.array([known.setdefault(text_of(value), len(known) + 1) for value in coded.values] + [0])
            codes.append(places[coded.codes])
        both = np.concatenate(groups) * (len(known) + 1) + np.concatenate(codes)
        numbers = np.unique(both, return_inverse=True)[1].reshape(-1)
        groups = [numbers[: len(tables[0])], numbers[len(tables[0]) :]]
    return groups


def _signatures(
    table: pa.Table, names: Sequence[str], who: NDArray[np.int64], shared: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Return 128 bits for each shared person that are the same for those with the same set of rows."""
    codes = np.column_stack([code_column(table[name]).codes for name in names])
    kinds = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
    pairs = np.unique(np.column_stack([who, kinds]), axis=0)
    pairs = pairs[np.isin(pairs[:, 0], shared)]
    place = np.searchsorted(shared, pairs[:, 0])
    marks = np.zeros((len(shared), 2), dtype=np.uint64)
    for half in range(2):
        np.add.at(marks[:, half], place, _mix(pairs[:, 1].astype(np.uint64) * np.uint64(2) + np.uint64(half)))
    return marks


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers whose sums differ for different sets, but for chance: the finalizer of SplitMix64."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _unique(marks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    _, inverse, counts = np.unique(marks, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.reshape(-1)] == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationDetails(AttackDetails):
    """What hunting a list found: the success is the share of the people in the table who are found (recall).

    Attributes:
        hits: how many people of the list the attacker claims to have found, by one fitting row each.
        precision: the share of these claims that are right; None if there are none.
    """

    hits: int
    precision: float | None

    def remark(self, _: AttackResult, /) -> str:
        """Return how many people were claimed to be found, and how many rightly."""
        if self.precision is None:
            return " Nobody was claimed to be found."
        return f" {self.hits:,} people were claimed to be found, {percent(self.precision)} of them rightly."


def identification(
    table: Any, people: Any, *, on: Sequence[str], truth: Any, confidence: Number = 0.95
) -> AttackResult[IdentificationDetails]:
    """Return how many people of a list are found in a table.

    Args:
        table: where they are looked for.
        people: the list, with some columns of the table.
        on: the columns that are compared; labels of the table may be intervals, sets and masked texts.
        truth: for each person of the list the position of their row in the table, -1 for nobody's; for scoring only.
        confidence: the confidence of the interval.
    """
    if isinstance(on, str) or not isinstance(on, Sequence):
        raise ParameterTypeError("on is no list of columns.", fix='write for example on=["name", "city"].')
    published = publish(table, quasi_identifiers=list(on))
    known = people_of(people, list(on))
    where = check_truth(truth, people=len(known), rows=len(published.row_classes))
    fitting = fit_people(published, known)
    claimed = fitting.candidates[known.kinds] == 1
    own = np.where(where >= 0, published.row_classes[np.maximum(where, 0)], -1)
    right = claimed & fitting.fits_class(own)
    inside = int((where >= 0).sum())
    if not inside:
        raise DataError("By the truth given, nobody of the list is in the table.", fix="give some people who are.")
    scores = np.zeros(len(published.row_classes))
    scores[where[right]] = 1.0
    return AttackResult(
        attack="identification",
        assumption=f"hunts {len(known):,} people by {', '.join(on)}",
        baseline=1 / max(published.total, 1),
        queries=published.total,
        mitigation=("generalize or leave out what lists of people contain",),
        worst=most_exposed(scores),
        **share_with_interval(float(right.sum()), inside, confidence=confidence),
        details=IdentificationDetails(
            hits=int(claimed.sum()),
            precision=share_of(float(right.sum()), int(claimed.sum())) if claimed.any() else None,
        ),
    )
