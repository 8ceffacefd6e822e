"""How many persons are behind the rows of each class, where a person may have several rows.

A file does not say whose rows it has. Which persons could be in a class follows from its labels: those of whom some row
fits. If every row fits one class only, they are the ones. If some fit several, the class has at least as many persons
as it takes to fill it with rows of those who have most.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.gating.findings import Finding, Stand
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.gating.released_columns import listed, row_texts
from cloister.attacks.gating.subjects import Subject
from cloister.attacks.result import percent
from cloister.attacks.tables.fitting import fit_people, known_columns, people_of
from cloister.attacks.tables.reading import publish

__all__ = ["judge_persons"]


def judge_persons(subject: Subject, named: str, policy: GatePolicy) -> Finding:
    """Judge the smallest number of persons in a class."""
    published = publish(subject.release, quasi_identifiers=subject.quasi)
    known = known_columns(published, subject.original, None)
    fitting = fit_people(published, people_of(subject.original, known))
    persons = np.unique(row_texts(subject.original, [named]).astype(str), return_inverse=True)[1]
    fits = np.concatenate([mask for _, mask in fitting.masks()])
    fewest, is_exact = _fewest(fits, fitting.people.kinds, persons, fitting.sizes)
    chance = percent(1 / max(1, fewest))
    told = f"By {listed([named])} a person may have several rows. Every class has rows of at least {fewest:,} persons: "
    told += f"the largest chance to match a person is {chance}, {percent(policy.max_match)} allowed."
    if fewest and 1 / fewest <= policy.max_match * (1 + 1e-9):
        return Finding(attack="rows of one person", stand=Stand.HELD, reason=told)
    if is_exact:
        return Finding(attack="rows of one person", stand=Stand.BROKEN, reason=told)
    told += " Classes overlap, so it may be less: give the release itself (cl.attacks.gate(release))."
    return Finding(attack="rows of one person", stand=Stand.NOT_RUN, reason=told)


def _fewest(
    fits: NDArray[np.bool_], kinds: NDArray[np.int64], persons: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[int, bool]:
    """Return the smallest number of persons that can fill a class, and whether no row fits two classes."""
    is_exact = bool((fits[kinds].sum(axis=1) <= 1).all())
    fewest = len(np.unique(persons))
    for place, size in enumerate(sizes):
        counts = np.sort(np.bincount(persons[fits[kinds, place]]))[::-1]
        needed = int(np.searchsorted(np.cumsum(counts), size)) + 1
        fewest = min(fewest, needed if counts.sum() >= size else 0)
    return fewest, is_exact
