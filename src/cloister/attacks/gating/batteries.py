"""Which attacks fit which kind of release, and what each of them may achieve.

A check is an attack with a judge. An attack runs on the release and the custodian's own rows; the judge reads its
result and returns what is wrong, or nothing. Checks that cannot apply, such as one of a sensitive column where there is
none, return None in place of a result and are told, not held against the release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from cloister.anonymize import AnatomyRelease, Release
from cloister.attacks.anatomy.attack import anatomy_em
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.gating.subjects import KINDS, Subject
from cloister.attacks.models.membership import membership
from cloister.attacks.models.stored import stored_records
from cloister.attacks.result import AttackResult, percent
from cloister.attacks.synthetic.closest import distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.homogeneity import homogeneity
from cloister.attacks.tables.linkage import linkage

__all__ = ["Check", "battery"]

_MOST_SECRETS = 3
_ATTACKS = 10_000
_ROWS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One attack of the gate.

    Attributes:
        attack: its name.
        run: runs it.
        judge: returns what is wrong, or "".
        is_needed: whether the release may not be published where this was not run.
        is_told: whether the outcome is only told, because nothing follows from it by itself.
    """

    attack: str
    run: Callable[[], AttackResult]
    judge: Callable[[Any], str]
    is_needed: bool = True
    is_told: bool = False


def battery(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    """Return the attacks that fit a release, the most telling first."""
    match subject.kind:
        case kind if kind == KINDS[0]:
            yield from _anonymized(subject, policy)
        case kind if kind == KINDS[1]:
            yield from _two_tables(subject, policy)
        case kind if kind == KINDS[2]:
            yield from _synthetic(subject, policy)
        case _:
            yield from _model(subject, policy)


def _anonymized(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    known: dict[str, Any] = {"confidence": policy.confidence}
    if not isinstance(subject.release, Release):
        known["quasi_identifiers"] = subject.quasi
    for column in subject.sensitive:
        yield Check(
            attack=f"homogeneity of {column}",
            run=partial(homogeneity, subject.release, sensitive=column, **known),
            judge=partial(_judge_certain, policy=policy),
        )
        yield Check(
            attack=f"belief in {column}",
            run=partial(homogeneity, subject.release, sensitive=column, certainty=policy.max_belief, **known),
            judge=partial(_judge_belief, policy=policy),
        )
    yield Check(
        attack="linkage",
        run=partial(linkage, subject.release, subject.original, random_state=subject.source, **known),
        judge=partial(_judge_match, policy=policy),
    )


def _two_tables(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    truth = None if isinstance(subject.release, AnatomyRelease) else subject.original
    yield Check(
        attack="learning over groups",
        run=partial(
            anatomy_em,
            subject.release,
            truth=truth,
            starts=3,
            confidence=policy.confidence,
            random_state=subject.source,
        ),
        judge=partial(_judge_advantage, policy=policy),
    )


def _synthetic(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    tables = (subject.original, subject.release)
    shared: dict[str, Any] = {
        "control": subject.control,
        "confidence": policy.confidence,
        "random_state": subject.source,
    }
    told = {"is_needed": False, "is_told": True} if subject.control is None else {}
    judge = partial(_judge_residual, policy=policy)
    yield Check(
        attack="singling out",
        run=partial(synthetic_singling_out, *tables, attacks=_ATTACKS, **shared),
        judge=judge,
        **told,
    )
    yield Check(
        attack="linkability",
        run=partial(synthetic_linkability, *tables, attacks=_ATTACKS, **shared),
        judge=judge,
        **told,
    )
    for column in _secrets(subject):
        yield Check(
            attack=f"inference of {column}",
            run=partial(synthetic_inference, *tables, secret=column, attacks=_ATTACKS, **shared),
            judge=judge,
            **told,
        )
    yield Check(
        attack="closest rows",
        run=partial(distance_to_closest_record, *tables, most_rows=_ROWS, **shared),
        judge=partial(_judge_nearness, policy=policy),
        **told,
    )


def _model(subject: Subject, policy: GatePolicy) -> Iterator[Check]:
    model, members, others = subject.release, subject.original, subject.control
    yield Check(
        attack="stored records",
        run=partial(stored_records, model, members[0], others=others[0], confidence=policy.confidence),
        judge=_judge_stored,
    )
    yield Check(
        attack="membership",
        run=partial(membership, model, members, others, confidence=policy.confidence, random_state=subject.source),
        judge=partial(_judge_membership, policy=policy),
    )


def _secrets(subject: Subject) -> tuple[str, ...]:
    """Return the columns to infer: the sensitive ones, or the last ones where nothing says which they are."""
    shared = [name for name in subject.release.columns if name in subject.original.columns]
    named = [name for name in subject.sensitive if name in shared]
    return tuple(named or shared[-_MOST_SECRETS:])[:_MOST_SECRETS]


def _judge_certain(result: Any, *, policy: GatePolicy) -> str:
    if result.success - result.baseline <= policy.max_certain:
        return ""
    return (
        f"The {result.column} of {percent(result.success)} of the people follows with certainty from their class "
        f"({result.disclosed_classes:,} of {result.classes:,} classes have one value only)."
    )


def _judge_belief(result: Any, *, policy: GatePolicy) -> str:
    if result.success - result.baseline <= policy.max_certain:
        return ""
    return (
        f"For {percent(result.success)} of the people an attacker is at least {percent(policy.max_belief)} sure of "
        f"their {result.column}, where the whole table makes nobody that sure."
    )


def _judge_match(result: Any, *, policy: GatePolicy) -> str:
    if result.largest_risk <= policy.max_match * (1 + 1e-9):
        return ""
    return (
        f"Somebody can be matched with one released row with a probability of {percent(result.largest_risk)}; at most "
        f"{percent(policy.max_match)} is allowed."
    )


def _judge_advantage(result: AttackResult, *, policy: GatePolicy) -> str:
    return result.verdict if result.interval[0] > result.baseline + policy.max_excess else ""


def _judge_stored(result: AttackResult) -> str:
    return result.verdict if result.excess > 0 else ""


def _judge_membership(result: Any, *, policy: GatePolicy) -> str:
    """Judge by the promise where there is one that counts, else by what the attack achieves."""
    if result.claim is not None and result.claim[0] <= policy.max_epsilon:
        return "" if result.keeps_promise else str(result.verdict)
    return _judge_advantage(result, policy=policy)


def _judge_nearness(result: AttackResult, *, policy: GatePolicy) -> str:
    return result.verdict if result.interval[0] > result.baseline + policy.max_residual else ""


def _judge_residual(result: Any, *, policy: GatePolicy) -> str:
    if result.residual_interval is None or result.residual_interval[0] <= policy.max_residual:
        return ""
    return str(result.verdict)
