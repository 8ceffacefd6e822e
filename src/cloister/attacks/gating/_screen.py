"""What can be seen of a release without an attack: columns that should not be there, and what the promise is worth.

It also counts how many persons are behind the rows of each class, where a person may have several rows. A file does not
say whose rows it has. Which persons could be in a class follows from its labels: those of whom some row fits. If every
row fits one class only, they are the ones. If some fit several, the class has at least as many persons as it takes to
fill it with rows of those who have most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.conversions import zero_concentrated_to_epsilon
from cloister.anonymize import AnatomyRelease, Release
from cloister.anonymize.anatomy import GROUP
from cloister.attacks.gating._gate_subject import MODEL, GateSubject
from cloister.attacks.gating._released_columns import look_at_columns, quote_names, row_texts
from cloister.attacks.gating._row_copies import GateCopies, find_copies, find_nearness, is_same
from cloister.attacks.gating._row_keys import WRITTEN
from cloister.attacks.gating.findings import GateFinding, Stand
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.synthetic.base import read_attacked
from cloister.attacks.tables._candidate_classes import fit_people, known_columns, people_of
from cloister.attacks.tables._published_table import publish
from cloister.core.guarantees import Adjacency, ApproxDP, Guarantee, PureDP, ZeroConcentratedDP
from cloister.core.provenance import ANONYMIZED, SYNTHETIC, TWO_TABLES
from cloister.core.wordings import percent
from cloister.data.columns import Role
from cloister.errors import CloisterError

__all__ = ["judge_persons", "screen_release"]


def judge_persons(subject: GateSubject, named: str, policy: GatePolicy) -> GateFinding:
    """Judge the smallest number of persons in a class."""
    published = publish(subject.release, quasi_identifiers=subject.quasi)
    known = known_columns(published, subject.original, None)
    fitting = fit_people(published, people_of(subject.original, known))
    persons = np.unique(row_texts(subject.original, [named]).astype(str), return_inverse=True)[1]
    fits = np.concatenate([mask for _, mask in fitting.masks()])
    fewest, is_exact = _fewest(fits, fitting.people.kinds, persons, fitting.sizes)
    chance = percent(1 / max(1, fewest))
    told = f"By {quote_names([named])} a person may have several rows. Every class has rows of at least {fewest:,} "
    told += f"persons: the largest chance to match a person is {chance}, {percent(policy.max_match)} allowed."
    if fewest and 1 / fewest <= policy.max_match * (1 + 1e-9):
        return GateFinding(attack="rows of one person", stand=Stand.HELD, reason=told)
    if is_exact:
        return GateFinding(attack="rows of one person", stand=Stand.BROKEN, reason=told)
    told += " Classes overlap, so it may be less: give the release itself (cl.attacks.gate(release))."
    return GateFinding(attack="rows of one person", stand=Stand.NOT_RUN, reason=told)


def _fewest(
    fits: NDArray[np.bool_], kinds: NDArray[np.int64], persons: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[int, bool]:
    """Return the smallest number of persons that can fill a class, and whether no row fits two classes."""
    is_exact = bool((fits[kinds].sum(axis=1) <= 1).all())
    fewest = len(np.unique(persons))
    for place, size in enumerate(sizes):
        # As few persons fill the class as can if those with most rows come first.
        counts = np.sort(np.bincount(persons[fits[kinds, place]]))[::-1]
        needed = int(np.searchsorted(np.cumsum(counts), size)) + 1
        fewest = min(fewest, needed if counts.sum() >= size else 0)
    return fewest, is_exact


_ABOUT_PEOPLE = (Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.USER)
_MOST_TOLD, _MOST_NAMED = 3, 6


def screen_release(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Return what speaks for or against a release before anything is tried."""
    if subject.kind != MODEL:
        yield from look_at_columns(subject, policy)
        yield from _persons(subject, policy)
        yield from _groups(subject)
    if subject.kind in (SYNTHETIC, MODEL):
        yield _promise(subject, policy)
    if subject.kind == SYNTHETIC:
        yield from _control(subject)
        yield from _copies(subject, policy)
        yield from _nearest(subject, policy)
    if subject.kind == ANONYMIZED and not subject.sensitive:
        yield GateFinding(
            attack="sensitive columns",
            stand=Stand.TOLD,
            reason="No column is marked as sensitive, so nothing was tried on what classes give away.",
            is_needed=False,
        )


def _persons(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Judge how many persons are behind the rows of a class, where a person may have several."""
    schema = subject.schema
    if schema is None or isinstance(subject.release, Release | AnatomyRelease):
        return
    named = _find_repeating(subject, [schema.subject] if schema.subject else schema.with_roles(Role.IDENTIFIER))
    if not named:
        return
    if subject.kind == SYNTHETIC and subject.is_private and subject.guarantee.unit in named:
        told = f"By {quote_names(named)} a person may have several rows; the promise is about persons, "
        told += "the attacks about rows."
        yield GateFinding(attack="rows of one person", stand=Stand.TOLD, reason=told, is_needed=False)
        return
    if subject.kind == ANONYMIZED and subject.quasi and all(name in subject.original.columns for name in named):
        yield judge_persons(subject, named[0], policy)
        return
    yield GateFinding(
        attack="rows of one person",
        stand=Stand.NOT_RUN,
        reason=f"By {quote_names(named)} a person may have several rows, but these attacks take every row for a "
        "person: give the release itself (cl.attacks.gate(release)), a promise about persons, or a table with one row "
        "each.",
    )


def _find_repeating(subject: GateSubject, names: Sequence[str]) -> list[str]:
    """Return the columns that name people and name somebody twice, or of which nobody can tell."""
    rows = subject.original.count()
    is_there = {name: name in subject.original.columns for name in names}
    return [
        name
        for name in names
        if not is_there[name] or len(np.unique(row_texts(subject.original, [name]).astype(str))) < rows
    ]


def _groups(subject: GateSubject) -> Iterator[GateFinding]:
    """Find groups of two tables that have one sensitive value."""
    if subject.kind != TWO_TABLES or isinstance(subject.release, AnatomyRelease):
        return
    second = subject.release[1].to_arrow()
    if GROUP not in second.column_names:
        return
    groups, counts = np.unique(second[GROUP].to_numpy(zero_copy_only=False), return_counts=True)
    alone = int((counts == 1).sum())
    told = f"{alone:,} of {len(groups):,} groups have one sensitive value only."
    yield GateFinding(attack="homogeneous groups", stand=Stand.BROKEN if alone else Stand.HELD, reason=told)


def _promise(subject: GateSubject, policy: GatePolicy) -> GateFinding:
    """Say what the promise is worth, and whether the decision rests on it alone."""
    said = subject.guarantee.brief()
    if not subject.is_private:
        return _judge_missing_promise(subject)
    if not _counts(subject.guarantee, policy) or not _is_for_people(subject):
        told = f"{said} is promised. What counts is epsilon up to {policy.max_epsilon:g} and delta up to "
        told += f"{policy.max_delta:g} for a row or a person: this does not."
        is_needed = subject.kind == SYNTHETIC
        return GateFinding(
            attack="promise", stand=Stand.BROKEN if is_needed else Stand.TOLD, reason=told, is_needed=is_needed
        )
    rests = " No rows were held back: besides copies and near rows, the decision rests on this promise."
    rests = rests if subject.control is None else ""
    return GateFinding(attack="promise", stand=Stand.HELD, reason=f"{said} is promised.{rests}")


def _judge_missing_promise(subject: GateSubject) -> GateFinding:
    if not subject.is_vouched:
        return _judge_stated_promise(subject)
    if subject.control is not None:
        told = "No differential privacy is promised that holds; only attacks were tried."
        return GateFinding(attack="promise", stand=Stand.TOLD, reason=told, is_needed=False)
    missing = (
        "No differential privacy is promised that holds, and without rows that had no part in it (a control) nobody "
        "can tell what this table copies from what is common."
    )
    return GateFinding(attack="promise", stand=Stand.BROKEN, reason=missing)


def _judge_stated_promise(subject: GateSubject) -> GateFinding:
    """Say that a promise which anybody can have written excuses nothing."""
    told = f"{subject.guarantee.brief()} is stated by somebody whom nobody here knows, which excuses nothing."
    if subject.control is not None:
        return GateFinding(attack="promise", stand=Stand.TOLD, reason=told, is_needed=False)
    told += " Give rows that had no part in the table (a control), add the key to those that you know, or delete "
    told += "the certificate and say the promise yourself if you vouch for it."
    return GateFinding(attack="promise", stand=Stand.NOT_RUN, reason=told)


def _counts(guarantee: Guarantee, policy: GatePolicy) -> bool:
    """Return whether a promise is one of epsilon and delta within the limits; its own delta is a part of the slack."""
    slack = Fraction(policy.max_delta) - Fraction(getattr(guarantee, "delta", 0))
    match guarantee:
        case PureDP() | ApproxDP():
            return guarantee.epsilon <= policy.max_epsilon and slack >= 0
        case ZeroConcentratedDP():
            return slack > 0 and zero_concentrated_to_epsilon(guarantee.rho, delta=slack) <= policy.max_epsilon
        case _:
            return False


def _is_for_people(subject: GateSubject) -> bool:
    """Return whether the promise is about rows or persons: about a row, or what a column that names people names."""
    promise = subject.guarantee
    if getattr(promise, "adjacency", Adjacency.ADD_REMOVE) not in _ABOUT_PEOPLE:
        return False
    if promise.unit == "row" or subject.kind == MODEL:
        return True
    schema = subject.schema
    if schema is None:
        return promise.unit in subject.original.columns
    return promise.unit in {schema.subject, *schema.with_roles(Role.IDENTIFIER)}


def _copies(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Count the people whose row is like nobody else's and is in the synthetic table, beyond chance and promise."""
    original, released = subject.original, subject.release
    found, strange = find_copies(
        original,
        released,
        quasi=subject.quasi or (),
        sensitive=subject.sensitive,
        policy=policy,
        source=subject.source,
    )
    if strange:
        told = (
            f"The values of {quote_names(strange)} are mostly none that the original has: copies cannot be looked for."
        )
        yield GateFinding(attack="values", stand=Stand.NOT_RUN, reason=told)
    if not found:
        return
    whole = found[0]
    told = f"{whole.unique:,} of {whole.people:,} people have a row of their own; {whole.shown:,} of these rows are in "
    told += f"the release, {percent(whole.chance)} may be by chance, {percent(whole.limit)} are allowed."
    worse = [look for look in found if look.exceeds]
    further = [look for look in worse if look is not whole]
    if further:
        told += " " + " ".join(
            _describe_copies(look) for look in sorted(further, key=lambda look: -look.excess)[:_MOST_TOLD]
        )
    if is_same(original, released):
        told += " Nearly every kind of row occurs exactly as often as in the original."
    broken = bool(worse) or is_same(original, released)
    yield GateFinding(attack="copies", stand=Stand.BROKEN if broken else Stand.HELD, reason=told)


def _nearest(subject: GateSubject, policy: GatePolicy) -> Iterator[GateFinding]:
    """Judge whether released rows are nearer to the people than to anybody else, beyond chance and promise."""
    found = find_nearness(subject.original, subject.release, policy=policy, source=subject.source)
    if found is None:
        return
    told = f"Of {found.people:,} people with a row of their own, {percent(found.near / found.people)} have a released "
    told += f"row near their own. By chance it may be {percent(found.chance)}, and {percent(found.limit)} are allowed."
    yield GateFinding(attack="nearest rows", stand=Stand.BROKEN if found.exceeds else Stand.HELD, reason=told)


def _describe_copies(look: GateCopies) -> str:
    counted = f"{look.shown:,} of {look.unique:,} are in the release, where {percent(look.limit)} are allowed."
    if look.times > 1:
        return f"Of the rows that occur {look.times} times, {counted}"
    if len(look.columns) == 1:
        return f"Of the values of {quote_names(look.columns)} that are somebody's own, {counted}"
    what = quote_names(look.columns) if len(look.columns) <= _MOST_NAMED else f"{len(look.columns)} columns"
    return f"By {what}{'' if look.resolution == WRITTEN else f' ({look.resolution})'} {counted}"


def _control(subject: GateSubject) -> Iterator[GateFinding]:
    """Refuse a control that was taken from the release itself: every attack would look harmless."""
    if subject.control is None:
        return
    try:
        read_attacked(subject.release, subject.release, control=subject.control)
    except CloisterError:
        told = "The control holds rows of the release, or cannot be held against it: it cannot show what is common."
        yield GateFinding(attack="control", stand=Stand.BROKEN, reason=told)
