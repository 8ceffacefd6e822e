"""Which attacks fit which kind of release, on which columns each is tried, and by which limits it is judged.

What decides about most releases is listed here, the most telling first; attacks that were offered with a judge
(`cloister.attacks.release_attacks`) come after them.

Anatomy shows exact quasi-identifiers in random order, so a release in two tables that was read from files does not say
whose row is whose. People whose quasi-identifiers are nobody else's are found again by them; for others the order stays
open, and where these are many the attack cannot be scored from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.anonymize import AnatomyRelease, Release
from cloister.anonymize.anatomy import COUNT, GROUP
from cloister.anonymize.regions import Values
from cloister.attacks.anatomy.attack import anatomy_em
from cloister.attacks.gating._gate_subject import GateSubject
from cloister.attacks.gating._released_columns import hidden_rows
from cloister.attacks.gating._row_keys import WRITTEN, read_pair
from cloister.attacks.gating.judgments import (
    GateJudgment,
    judge_belief,
    judge_certain,
    judge_groups,
    judge_match,
    judge_membership,
    judge_nearest,
    judge_nearness,
    judge_residual,
    judge_stored,
)
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.models.membership import membership
from cloister.attacks.models.stored_records import stored_records
from cloister.attacks.release_attacks import Given, ReleaseAttack, release_attacks
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.closest_records import distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.homogeneity import homogeneity
from cloister.attacks.tables.linkage import linkage
from cloister.core.provenance import ANONYMIZED, SYNTHETIC, TWO_TABLES
from cloister.data.table import Table
from cloister.errors import DataError

__all__ = ["GateCheck", "battery", "in_released_order"]


_MOST_OPEN = 0.05


def in_released_order(subject: GateSubject) -> Table | pa.Table:
    """Return the rows of the original in the order of the released quasi-identifiers.

    Raises:
        DataError: if too many people look alike, so that nobody can tell whose row is whose.
    """
    original, quasi = subject.original, subject.release[0]
    names = [name for name in quasi.columns if name in original.columns and name not in (GROUP, COUNT)]
    pair = read_pair(original, quasi, names, resolution=WRITTEN)
    ours, theirs = (part.sum(axis=1, dtype=np.uint64) for part in pair.hash_cells())
    if np.array_equal(ours, theirs) or not np.array_equal(np.sort(ours), np.sort(theirs)):
        return original  # in order already, or other rows, which the attack refuses
    counts = np.unique(ours, return_counts=True)[1]
    if counts[counts > 1].sum() > _MOST_OPEN * len(ours):
        raise DataError(
            "Too many people look alike to tell whose row is whose in the two files.",
            fix="give the release itself, cl.attacks.gate(release), or the original in the order of the file.",
        )
    order = np.empty(len(ours), dtype=np.int64)
    # Sorted by the same keys, both tables have a person in the same place.
    order[np.argsort(theirs, kind="stable")] = np.argsort(ours, kind="stable")
    return original.to_arrow().take(pa.array(order))


_MOST_SECRETS = 3
_ATTACKS = 10_000
_ROWS = 20_000
_NEAREST = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """One attack of the gate.

    Attributes:
        attack: its name.
        run: runs it.
        judge: returns what follows from it; None if it is only told, because nothing follows from it by itself.
    """

    attack: str
    run: Callable[[], AttackResult]
    judge: Callable[[Any], GateJudgment] | None


def battery(subject: GateSubject, policy: GatePolicy) -> Iterator[GateCheck]:
    """Return the attacks that fit a release, the most telling first."""
    match subject.kind:
        case kind if kind == ANONYMIZED:
            yield from _one_table(subject, policy)
        case kind if kind == TWO_TABLES:
            yield from _two_tables(subject, policy)
        case kind if kind == SYNTHETIC:
            yield from _synthetic(subject, policy)
        case _:
            yield from _model(subject, policy)
    for name in release_attacks:
        attack = release_attacks.get(name)
        if attack.judge is not None and attack.kind == subject.kind:
            yield from _offered(attack, subject, policy)


def _offered(attack: ReleaseAttack, subject: GateSubject, policy: GatePolicy) -> Iterator[GateCheck]:
    """Return the checks of an attack that was offered with a judge: one for each column that it wants to learn."""
    given: dict[str, Any] = {Given.RELEASE: subject.release, Given.CONTROL: subject.control}
    # A release that was made here knows its original and its quasi-identifiers itself.
    if not isinstance(subject.release, Release | AnatomyRelease):
        given |= {Given.ORIGINAL: subject.original, Given.QUASI: subject.quasi}
    wanted = Given.SENSITIVE if attack.takes_given(Given.SENSITIVE) else Given.SECRET
    columns = subject.sensitive if wanted is Given.SENSITIVE else _secrets(subject)
    shared = {"confidence": policy.confidence, "random_state": subject.source}
    is_told = subject.kind == SYNTHETIC and subject.control is None
    judge = None if attack.judge is None or is_told else partial(attack.judge, policy=policy)
    for column in columns if attack.takes_given(wanted) else (None,):
        yield GateCheck(
            attack=attack.words if column is None else f"{attack.words} of {column}",
            run=partial(attack.run_on, {**given, wanted: column}, **attack.keep_accepted(shared)),
            judge=judge,
        )


def _one_table(subject: GateSubject, policy: GatePolicy) -> Iterator[GateCheck]:
    release, made = subject.release, isinstance(subject.release, Release)
    known: dict[str, Any] = {"confidence": policy.confidence}
    if not made:
        known["quasi_identifiers"] = subject.quasi
    beside = {} if made else {"original": subject.original}
    for column in subject.sensitive:
        yield GateCheck(
            attack=f"homogeneity of {column}",
            run=partial(homogeneity, release, sensitive=column, **beside, **known),
            judge=partial(judge_certain, policy=policy),
        )
        yield GateCheck(
            attack=f"belief in {column}",
            run=partial(homogeneity, release, sensitive=column, certainty=policy.max_belief, **beside, **known),
            judge=partial(judge_belief, policy=policy),
        )
    if not (made and release.regions.values is Values.CENTERS):
        yield GateCheck(
            attack="linkage",
            run=partial(linkage, release, subject.original, random_state=subject.source, **known),
            judge=partial(judge_match, policy=policy, left_out=_count_left_out(subject), hidden=hidden_rows(subject)),
        )
    yield GateCheck(
        attack="linkage by distance",
        run=partial(
            linkage,
            release,
            subject.original,
            kind="distance",
            sample=_NEAREST,
            random_state=subject.source,
            **known,
        ),
        judge=partial(judge_nearest, policy=policy),
    )


def _count_left_out(subject: GateSubject) -> int:
    """Return how many rows of the original the release leaves out."""
    if isinstance(subject.release, Release):
        return int(subject.release.suppressed)
    return max(0, int(subject.original.count()) - int(subject.release.count()))


def _two_tables(subject: GateSubject, policy: GatePolicy) -> Iterator[GateCheck]:
    yield GateCheck(
        attack="learning over groups",
        run=partial(_learn_over_groups, subject, policy),
        judge=partial(judge_groups, policy=policy),
    )


def _learn_over_groups(subject: GateSubject, policy: GatePolicy) -> AttackResult:
    truth = None if isinstance(subject.release, AnatomyRelease) else in_released_order(subject)
    return anatomy_em(subject.release, truth=truth, starts=3, confidence=policy.confidence, random_state=subject.source)


def _synthetic(subject: GateSubject, policy: GatePolicy) -> Iterator[GateCheck]:
    tables = (subject.original, subject.release)
    shared: dict[str, Any] = {
        "control": subject.control,
        "confidence": policy.confidence,
        "random_state": subject.source,
    }
    has_control = subject.control is not None
    residual = partial(judge_residual, policy=policy) if has_control else None
    yield GateCheck(
        attack="singling out", run=partial(synthetic_singling_out, *tables, attacks=_ATTACKS, **shared), judge=residual
    )
    yield GateCheck(
        attack="linkability", run=partial(synthetic_linkability, *tables, attacks=_ATTACKS, **shared), judge=residual
    )
    for column in _secrets(subject):
        yield GateCheck(
            attack=f"inference of {column}",
            run=partial(synthetic_inference, *tables, secret=column, attacks=_ATTACKS, **shared),
            judge=residual,
        )
        others = [name for name in subject.release.columns if name != column]
        few = [name for name in subject.quasi or () if name in others]
        if 0 < len(few) < len(others):
            yield GateCheck(
                attack=f"inference of {column} from quasi-identifiers",
                run=partial(synthetic_inference, *tables, secret=column, known=few, attacks=_ATTACKS, **shared),
                judge=residual,
            )
    yield GateCheck(
        attack="closest rows",
        run=partial(distance_to_closest_record, *tables, most_rows=_ROWS, **shared),
        judge=partial(judge_nearness, policy=policy) if has_control else None,
    )


def _model(subject: GateSubject, policy: GatePolicy) -> Iterator[GateCheck]:
    model, members, others = subject.release, subject.original, subject.control
    yield GateCheck(
        attack="stored records",
        run=partial(stored_records, model, members[0], others=others[0], confidence=policy.confidence),
        judge=partial(judge_stored, policy=policy),
    )
    yield GateCheck(
        attack="membership",
        run=partial(membership, model, members, others, confidence=policy.confidence, random_state=subject.source),
        judge=partial(judge_membership, policy=policy),
    )


def _secrets(subject: GateSubject) -> tuple[str, ...]:
    """Return the columns to infer: the sensitive ones, or the last ones where nothing says which they are."""
    shared = [name for name in subject.release.columns if name in subject.original.columns]
    named = [name for name in subject.sensitive if name in shared]
    return tuple(named or shared[-_MOST_SECRETS:])
