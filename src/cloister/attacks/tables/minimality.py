"""Minimality: what follows from an algorithm having generalized at all (Wong, Fu, Wang and Pei 2007).

An algorithm that generalizes no more than its model needs tells, by generalizing, that finer classes failed the model.
Somebody who knows everybody's raw quasi-identifiers knows the sizes of the finer groups inside a class. All ways to
deal the class's sensitive values out to them are equally likely, except those in which every group would have satisfied
the model: then there was no need to generalize. What is left can exceed the probability that the model promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.attacks.details import AttackDetails
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import fit_people, known_columns, people_of
from cloister.attacks.tables._published_table import PublishedTable, publish
from cloister.attacks.tables._scores import most_exposed, share_of, share_with_interval
from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.data.sources import ensure_open
from cloister.data.values import is_missing, text_of
from cloister.errors import DataError, ParameterError

__all__ = ["MinimalityDetails", "minimality", "posterior_of_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalityDetails(AttackDetails):
    """What a minimality attack found: the share of people of whom the value is believed more than is promised.

    Attributes:
        promised: the largest belief that the model promises: one over l.
        largest_posterior: the largest belief by this attack.
        classes_with_groups: how many classes hold several finer groups, so that there was something to reverse.
    """

    promised: float
    largest_posterior: float
    classes_with_groups: int

    def conclude(self, result: AttackResult, /) -> str:
        """Return how much likelier values become than is promised."""
        found = (
            f"that the algorithm had to generalize makes the value likelier than the promised {percent(self.promised)} "
            f"for {percent(result.success)} of the people, up to {percent(self.largest_posterior)}"
        )
        if result.succeeded:
            return f"The attack works: {found}."
        return f"This attack found no more than the classes tell: {found}. Others may find more."


def posterior_of_groups(sizes: Sequence[int], hits: int, *, l: object) -> tuple[float, ...]:  # noqa: E741
    """Return how likely a member of each finer group has a value, given that they had to be merged.

    Args:
        sizes: the size of each group that the class was merged from.
        hits: how many members of the class have the value.
        l: a group satisfies the model if at most one in l of its members has the value.

    >>> posterior_of_groups([2, 5], 2, l=2)
    (1.0, 0.0)
    """
    most = exact.number(l, name="l")
    if most < 1:
        raise ParameterError("l must be at least 1.", fix="give the l of the model, such as l=2.")
    ways = [_ways(size, hits) for size in sizes]
    fine = [np.where(np.arange(hits + 1) <= size // most, row, 0.0) for size, row in zip(sizes, ways, strict=True)]
    total = _product(ways)[hits] - _product(fine)[hits]
    # Where hardly any way of dealing the values out breaks the model, having merged tells nothing.
    if total <= 1e-12 * _product(ways)[hits]:
        return tuple([share_of(hits, sum(sizes))] * len(sizes))
    count = np.arange(hits + 1, dtype=np.float64)
    found = []
    for place, size in enumerate(sizes):
        # Weighing the ways of one group by how many of its members have the value makes an expectation of the
        # count, less the cases in which nothing had to be merged.
        own = [row * count if number == place else row for number, row in enumerate(ways)]
        own_fine = [row * count if number == place else row for number, row in enumerate(fine)]
        expected = (_product(own)[hits] - _product(own_fine)[hits]) / total
        found.append(float(min(max(expected / size, 0.0), 1.0)))
    return tuple(found)


def _ways(size: int, hits: int) -> NDArray[np.float64]:
    """Return in how many ways 0, 1, ... members of a group have the value."""
    return np.asarray(special.binom(size, np.arange(hits + 1)))


def _product(rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the ways of all groups together, by how many members have the value in all."""
    total = np.zeros(len(rows[0]))
    total[0] = 1.0
    for row in rows:
        total = np.convolve(total, row)[: len(row)]
    return total


def minimality(
    release: Any,
    people: Any = None,
    *,
    value: Any,
    l: object,  # noqa: E741  # the literature's name
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    largest_class: int = 200,
    confidence: Number = 0.95,
) -> AttackResult[MinimalityDetails]:
    """Return the share of people of whom a value is believed more than the model promises.

    Args:
        release: a `Release` or a released table whose algorithm generalizes no more than it must.
        people: everybody in the release, with raw quasi-identifiers; the original of a release by default.
        value: the sensitive value that must stay unlikely.
        l: what the algorithm was asked for: in each class at most one in l has the value.
        quasi_identifiers: what the attacker knows, where neither release nor schema says it.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        largest_class: classes of more rows are taken as they are; reversing them would be slow and tell little.
        confidence: the confidence of the interval.
    """
    published = publish(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    promised = 1 / float(exact.number(l, name="l"))
    hits = _hits(published, sensitive, value)
    groups = _groups(published, people)
    belief: list[float] = []
    plain, sizes, known = list[float](), list[int](), 0
    for number, (found, size) in enumerate(zip(hits, published.sizes, strict=True)):
        members = groups.get(number, [int(size)])
        is_known = sum(members) == size and len(members) > 1 and size <= largest_class and found > 0
        known += is_known
        belief += posterior_of_groups(members, int(found), l=l) if is_known else [share_of(int(found), int(size))]
        sizes += members if is_known else [int(size)]
        plain += [share_of(int(found), int(size))] * (len(members) if is_known else 1)
    rows, above = np.array(sizes), np.array(belief) > promised + 1e-9
    return AttackResult(
        attack="minimality",
        assumption="knows everybody's quasi-identifiers, and that the algorithm generalized no more than needed",
        baseline=share_of(float(rows[np.array(plain) > promised + 1e-9].sum()), int(rows.sum())),
        queries=published.total,
        mitigation=("use an algorithm that does not look at sensitive values, or one that merges at random",),
        worst=_rank_exposed(published, belief, sizes, promised),
        **share_with_interval(float(rows[above].sum()), int(rows.sum()), confidence=confidence),
        details=MinimalityDetails(
            promised=promised,
            largest_posterior=float(max(belief)),
            classes_with_groups=known,
        ),
    )


def _rank_exposed(
    published: PublishedTable, belief: Sequence[float], sizes: Sequence[int], promised: float
) -> tuple[tuple[int, float], ...]:
    """Return the rows in the classes with the strongest beliefs; groups are not told apart."""
    ends = np.cumsum(sizes)
    owner = np.searchsorted(np.cumsum(published.sizes), ends)
    strongest = np.zeros(len(published.sizes))
    np.maximum.at(strongest, owner, np.array(belief))
    return most_exposed(np.append(strongest, 0.0)[published.row_classes], above=promised)


def _hits(published: PublishedTable, sensitive: str | None, value: Any) -> NDArray[np.int64]:
    column, histogram = published.sensitive(sensitive), published.histogram(sensitive)
    names = [None if is_missing(item) else text_of(item) for item in column.values]
    if text_of(value) not in names:
        raise ParameterError(f'The value does not occur in "{column.name}".', fix="write it as the table does.")
    chosen = histogram.values == names.index(text_of(value))
    return np.bincount(
        histogram.classes[chosen], weights=histogram.counts[chosen], minlength=len(histogram.sizes)
    ).astype(np.int64)


def _groups(published: PublishedTable, people: Any) -> dict[int, list[int]]:
    """Return the sizes of the finer groups in each class: people with the same quasi-identifiers who fit it alone."""
    if people is None:
        if published.release is None:
            raise ParameterError("Nothing says who is in the release.", fix="give a table of people.")
        people = published.release.original_with_roles
    table = ensure_open(people)
    known = people_of(table, known_columns(published, table, None))
    fitting = fit_people(published, known)
    rows = np.bincount(known.kinds, minlength=len(known.codes))
    groups: dict[int, list[int]] = {}
    for block, mask in fitting.masks():
        alone = mask.sum(axis=1) == 1
        for kind, number in zip(np.flatnonzero(alone) + block.start, mask[alone].argmax(axis=1), strict=True):
            groups.setdefault(int(number), []).append(int(rows[kind]))
    if not groups:
        raise DataError("Nobody fits exactly one class of the release.", fix="give people with their raw values.")
    return groups
