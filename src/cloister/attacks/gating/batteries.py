"""Which attacks fit which kind of release, and who judges what they achieve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from cloister.anonymize import AnatomyRelease, Release
from cloister.anonymize.regions import Values
from cloister.attacks.anatomy.attack import anatomy_em
from cloister.attacks.gating.judging import (
    Judgment,
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
from cloister.attacks.gating.released_columns import hidden_rows
from cloister.attacks.gating.released_order import in_released_order
from cloister.attacks.gating.subjects import Subject
from cloister.attacks.models.membership import membership
from cloister.attacks.models.stored import stored_records
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.closest import distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.homogeneity import homogeneity
from cloister.attacks.tables.linkage import linkage
from cloister.crypto.release_kinds import ANONYMIZED, SYNTHETIC, TWO_TABLES

__all__ = ["Check", "battery"]

_MOST_SECRETS = 3
_ATTACKS = 10_000
_ROWS = 20_000
_NEAREST = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One attack of the gate.

    Attributes:
        attack: its name.
        run: runs it.
        judge: returns what follows from it; None if it is only told, because nothing follows from it by itself.
    """

    attack: str
    run: Callable[[], AttackResult]
    judge: Callable[[Any], Judgment] | None


def battery(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    """Return the attacks that fit a release, the most telling first."""
    match subject.kind:
        case kind if kind == ANONYMIZED:
            yield from _anonymized(subject, policy)
        case kind if kind == TWO_TABLES:
            yield from _two_tables(subject, policy)
        case kind if kind == SYNTHETIC:
            yield from _synthetic(subject, policy)
        case _:
            yield from _model(subject, policy)


def _anonymized(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    release, made = subject.release, isinstance(subject.release, Release)
    known: dict[str, Any] = {"confidence": policy.confidence}
    if not made:
        known["quasi_identifiers"] = subject.quasi
    beside = {} if made else {"original": subject.original}
    for column in subject.sensitive:
        yield Check(
            attack=f"homogeneity of {column}",
            run=partial(homogeneity, release, sensitive=column, **beside, **known),
            judge=partial(judge_certain, policy=policy),
        )
        yield Check(
            attack=f"belief in {column}",
            run=partial(homogeneity, release, sensitive=column, certainty=policy.max_belief, **beside, **known),
            judge=partial(judge_belief, policy=policy),
        )
    if not (made and release.regions.values is Values.CENTERS):
        yield Check(
            attack="linkage",
            run=partial(linkage, release, subject.original, random_state=subject.source, **known),
            judge=partial(judge_match, policy=policy, left_out=_left_out(subject), hidden=hidden_rows(subject)),
        )
    yield Check(
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


def _left_out(subject: Subject) -> int:
    """Return how many rows of the original the release leaves out."""
    if isinstance(subject.release, Release):
        return int(subject.release.suppressed)
    return max(0, int(subject.original.count()) - int(subject.release.count()))


def _two_tables(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    yield Check(
        attack="learning over groups",
        run=partial(_learn_over_groups, subject, policy),
        judge=partial(judge_groups, policy=policy),
    )


def _learn_over_groups(subject: Subject, policy: GatePolicy) -> AttackResult:
    truth = None if isinstance(subject.release, AnatomyRelease) else in_released_order(subject)
    return anatomy_em(subject.release, truth=truth, starts=3, confidence=policy.confidence, random_state=subject.source)


def _synthetic(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    tables = (subject.original, subject.release)
    shared: dict[str, Any] = {
        "control": subject.control,
        "confidence": policy.confidence,
        "random_state": subject.source,
    }
    has_control = subject.control is not None
    residual = partial(judge_residual, policy=policy) if has_control else None
    yield Check(
        attack="singling out", run=partial(synthetic_singling_out, *tables, attacks=_ATTACKS, **shared), judge=residual
    )
    yield Check(
        attack="linkability", run=partial(synthetic_linkability, *tables, attacks=_ATTACKS, **shared), judge=residual
    )
    for column in _secrets(subject):
        yield Check(
            attack=f"inference of {column}",
            run=partial(synthetic_inference, *tables, secret=column, attacks=_ATTACKS, **shared),
            judge=residual,
        )
        others = [name for name in subject.release.columns if name != column]
        few = [name for name in subject.quasi or () if name in others]
        if 0 < len(few) < len(others):
            yield Check(
                attack=f"inference of {column} from quasi-identifiers",
                run=partial(synthetic_inference, *tables, secret=column, known=few, attacks=_ATTACKS, **shared),
                judge=residual,
            )
    yield Check(
        attack="closest rows",
        run=partial(distance_to_closest_record, *tables, most_rows=_ROWS, **shared),
        judge=partial(judge_nearness, policy=policy) if has_control else None,
    )


def _model(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    model, members, others = subject.release, subject.original, subject.control
    yield Check(
        attack="stored records",
        run=partial(stored_records, model, members[0], others=others[0], confidence=policy.confidence),
        judge=partial(judge_stored, policy=policy),
    )
    yield Check(
        attack="membership",
        run=partial(membership, model, members, others, confidence=policy.confidence, random_state=subject.source),
        judge=partial(judge_membership, policy=policy),
    )


def _secrets(subject: Subject) -> tuple[str, ...]:
    """Return the columns to infer: the sensitive ones, or the last ones where nothing says which they are."""
    shared = [name for name in subject.release.columns if name in subject.original.columns]
    named = [name for name in subject.sensitive if name in shared]
    return tuple(named or shared[-_MOST_SECRETS:])
