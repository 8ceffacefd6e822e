"""Membership in a table: is somebody, whose quasi-identifiers are known, in it at all?

A class with n released rows that N people of the population fit tells that each of them is in the table with
probability n / N (Nergiz, Atzori and Clifton 2007: delta-presence). Where exact quasi-identifiers are released, as in
an anatomy or a copied row, it is near one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import HELD, AttackDetails
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import Fitting, fit_people, known_columns, people_of
from cloister.attacks.tables._published_table import publish
from cloister.attacks.tables._scores import most_exposed, share_with_interval
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.data.sources import ensure_open
from cloister.errors import DataError, ParameterTypeError

__all__ = ["TableMembershipDetails", "table_membership"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMembershipDetails(AttackDetails):
    """What a membership attack on a table knows.

    Attributes:
        delta: (smallest, largest) probability, over the population, of being in the table.
        surely_in: the share of the population that is in the table for certain.
        surely_out: the share that is not, for certain.
        is_scored: whether it was told who is in the table.
    """

    delta: tuple[float, float]
    surely_in: float
    surely_out: float
    is_scored: bool = field(metadata=HELD)

    def remark(self, _: AttackResult, /) -> str:
        """Return how likely people are in the table, and who is for certain."""
        low, high = map(percent, self.delta)
        return (
            f" The probability of being in the table lies between {low} and {high}; {percent(self.surely_in)} of the "
            f"population are in it for certain, {percent(self.surely_out)} are not."
        )


def table_membership(
    release: Any,
    population: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    truth: Any = None,
    confidence: Number = 0.95,
) -> AttackResult[TableMembershipDetails]:
    """Return how often it is guessed rightly who of a population is in a released table.

    Args:
        release: a `Release`, an `AnatomyRelease`, or a released table.
        population: everybody who could be in it, one a row, with quasi-identifiers; those in the table included.
        quasi_identifiers: the columns of the release that can be known, where neither release nor schema says it.
        columns: which of them this attacker knows; all that both tables have by default.
        truth: for each person of the population, whether they are in the table; for scoring only. Without it the
            success is what the attacker can expect.
        confidence: the confidence of the interval.

    >>> import pyarrow as pa
    >>> released = pa.table({"age": ["[20, 30)"] * 2 + ["[30, 40)"]})
    >>> town = pa.table({"age": [21, 22, 25, 29, 31]})
    >>> table_membership(released, town, quasi_identifiers=["age"]).delta
    (0.5, 1.0)
    """
    published = publish(release, quasi_identifiers=quasi_identifiers)
    everybody = ensure_open(population)
    names = known_columns(published, everybody, columns)
    people = people_of(everybody, names)
    presence = _presence(fit_people(published, people))[people.kinds]
    rate = min(published.total / len(people), 1.0)
    told = None if truth is None else _check_presence(truth, len(people))
    if told is None:
        hits, rate_in = np.maximum(presence, 1 - presence), rate
    else:
        hits, rate_in = np.where(presence == 0.5, 0.5, (presence > 0.5) == told), float(told.mean())
    return AttackResult(
        attack="membership in a table",
        assumption=f"knows {', '.join(names)} of everybody in the population and says who is in the table",
        baseline=max(rate_in, 1 - rate_in),
        queries=published.total,
        mitigation=(
            "ask for delta-presence with a table of the population",
            "generalize until every class is fitted by many people who are not in the table",
        ),
        worst=most_exposed(presence, above=rate),
        **share_with_interval(float(hits.sum()), len(people), confidence=confidence),
        details=TableMembershipDetails(
            delta=(float(presence.min()), float(presence.max())),
            surely_in=float((presence >= 1 - 1e-9).mean()),
            surely_out=float((presence <= 1e-9).mean()),
            is_scored=told is not None,
        ),
    )


def _presence(fitting: Fitting) -> NDArray[np.float64]:
    """Return the probability that each combination's people are in the table."""
    people = np.bincount(fitting.people.kinds, minlength=len(fitting.people.codes)).astype(np.float64)
    fitted = np.zeros(len(fitting.sizes))
    for block, mask in fitting.masks():
        fitted += people[block] @ mask
    # Of N people who fit a class of n rows each is in it with probability n / N.
    share = np.where(fitted > 0, fitting.sizes / np.maximum(fitted, 1), 0.0)
    found = np.zeros(len(people))
    for block, mask in fitting.masks():
        found[block] = mask @ share
    return np.clip(found, 0.0, 1.0)


def _check_presence(truth: Any, people: int) -> NDArray[np.bool_]:
    told = np.asarray(truth)
    if told.ndim != 1 or told.dtype != np.bool_:
        raise ParameterTypeError("truth is no list of truth values.", fix="give True for each person in the table.")
    if len(told) != people:
        raise DataError("truth and the population differ in length.", fix="give one truth value per person.")
    return np.asarray(told)
