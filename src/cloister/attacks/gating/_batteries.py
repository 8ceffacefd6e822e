"""Which attacks fit which kind of release, and what follows from the result of each.

A judgment is one sentence that names the figure and its limit.

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
from cloister.attacks.confidence import binomial_interval
from cloister.attacks.gating._gate_subject import GateSubject
from cloister.attacks.gating._released_columns import hidden_rows
from cloister.attacks.gating._row_keys import WRITTEN, read_pair
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.models.membership import membership
from cloister.attacks.models.stored_records import stored_records
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.closest_records import distance_to_closest_record
from cloister.attacks.synthetic.inference import synthetic_inference
from cloister.attacks.synthetic.linkability import synthetic_linkability
from cloister.attacks.synthetic.singling_out import synthetic_singling_out
from cloister.attacks.tables.homogeneity import homogeneity
from cloister.attacks.tables.linkage import linkage
from cloister.core.provenance import ANONYMIZED, SYNTHETIC, TWO_TABLES
from cloister.core.wordings import percent
from cloister.data.table import Table
from cloister.errors import DataError

__all__ = [
    "GateCheck",
    "GateJudgment",
    "battery",
    "in_released_order",
    "judge_advantage",
    "judge_belief",
    "judge_certain",
    "judge_groups",
    "judge_match",
    "judge_membership",
    "judge_nearest",
    "judge_nearness",
    "judge_residual",
    "judge_stored",
]


_UNTOLD = 0.25
"""How far above guessing an attack may be for all that is known, and still count as held."""


@dataclass(frozen=True, slots=True)
class GateJudgment:
    """Whether a limit holds, and the sentence that says so; without ``decides`` the attack could not tell."""

    sentence: str
    holds: bool
    decides: bool = True


def judge_certain(result: Any, *, policy: GatePolicy) -> GateJudgment:
    """Judge how many values follow with certainty."""
    share = result.success - result.baseline
    classes = f"{result.disclosed_classes:,} of {result.classes:,} classes have one value only"
    return GateJudgment(
        f"The {result.column} of {percent(result.success)} of the people ({_between(result)}) follows with certainty "
        f"from their class, {percent(policy.max_certain)} allowed: {classes}.",
        holds=share <= policy.max_certain,
    )


def judge_belief(result: Any, *, policy: GatePolicy) -> GateJudgment:
    """Judge how sure attackers become."""
    return GateJudgment(
        f"For {percent(result.success)} of the people ({_between(result)}) an attacker is at least "
        f"{percent(policy.max_belief)} sure of their {result.column}, for {percent(result.baseline)} by the whole "
        f"table alone; at most {percent(result.largest_posterior)} sure of anybody's.",
        holds=result.success - result.baseline <= policy.max_certain,
    )


def judge_match(result: Any, *, policy: GatePolicy, left_out: int, hidden: int = 0) -> GateJudgment:
    """Judge the largest chance of a match; people who fit no row at all were not tried.

    Whoever fits no other row is in one of those that hide everything, and these are a class like others.
    """
    if result.unlinked > left_out + hidden:
        return GateJudgment(
            f"{result.unlinked:,} of {result.trials:,} people fit no released row, though {left_out:,} rows were left "
            f"out and {hidden:,} show nothing: the labels could not be read, or the release is about other people.",
            holds=False,
            decides=False,
        )
    if result.unlinked and hidden and 1 / hidden > policy.max_match * (1 + 1e-9):
        return GateJudgment(
            f"{result.unlinked:,} people fit no row but the {hidden:,} that show nothing of what is known: the chance "
            f"to match them is {percent(1 / hidden)}, {percent(policy.max_match)} allowed.",
            holds=False,
        )
    return GateJudgment(
        f"The largest chance to match somebody with one released row is {percent(result.largest_risk)}, "
        f"{percent(policy.max_match)} allowed; on average it is {percent(result.success)} ({_between(result)}).",
        holds=result.largest_risk <= policy.max_match * (1 + 1e-9),
    )


def judge_nearest(result: Any, *, policy: GatePolicy) -> GateJudgment:
    """Judge how often the nearest released row is somebody's own."""
    return GateJudgment(
        f"The nearest released row is the person's own in {percent(result.success)} of cases ({_between(result)}), "
        f"{percent(policy.max_match)} allowed, {percent(result.baseline)} by guessing.",
        holds=result.interval[0] <= policy.max_match,
    )


def judge_advantage(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge by how much an attack beats guessing; few cases decide nothing."""
    holds = result.interval[0] <= result.baseline + policy.max_excess
    return GateJudgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), guessing in {percent(result.baseline)}; "
        f"{100 * policy.max_excess:g} points more are allowed.",
        holds=holds,
        decides=not holds or result.interval[1] <= result.baseline + _UNTOLD,
    )


def judge_groups(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge learning over groups: to be wrong much more often than by guessing takes one hint to be right."""
    found = judge_advantage(result, policy=policy)
    if result.interval[1] >= result.baseline - policy.max_excess:
        return found
    swapped = " So few right answers mean that values were swapped: who knows one person's turns them around."
    return GateJudgment(found.sentence + swapped, holds=False)


def judge_residual(result: Any, *, policy: GatePolicy) -> GateJudgment:
    """Judge what an attack finds about the people in the data beyond others."""
    low, high = result.residual_interval or (0.0, 1.0)
    return GateJudgment(
        f"Right in {percent(result.success)} of cases ({_between(result)}), on people outside the data in "
        f"{percent(result.control or 0.0)}: a residual risk between {percent(low)} and {percent(high)}, "
        f"{percent(policy.max_residual)} allowed.",
        holds=low <= policy.max_residual,
        decides=low > policy.max_residual or result.is_telling or _is_tight(result),
    )


def judge_nearness(result: Any, *, policy: GatePolicy) -> GateJudgment:
    """Judge whether synthetic rows come nearer to the data than to others."""
    limit = result.baseline + policy.max_residual
    is_near = result.interval[0] > limit or (result.copies_interval is not None and result.copies_interval[0] > 0.5)
    return GateJudgment(
        f"{percent(result.success)} of the synthetic rows ({_between(result)}) are nearer to the data than to people "
        f"outside it, where {percent(result.baseline)} is chance; {percent(result.to_original.identical)} equal a row "
        f"of the data, {percent(result.to_control.identical if result.to_control else 0.0)} a row outside it.",
        holds=not is_near,
        decides=is_near or result.is_telling,
    )


def judge_stored(result: AttackResult, *, policy: GatePolicy) -> GateJudgment:
    """Judge whether a model carries records along."""
    return GateJudgment(
        f"The model carries {percent(result.success)} of the records along as they are, {percent(policy.max_certain)} "
        "allowed.",
        holds=result.excess <= policy.max_certain,
    )


def judge_membership(result: Any, *, policy: GatePolicy) -> GateJudgment:
    """Judge membership by how often it is right, by whom it finds with few false alarms, and by the promise.

    A promise is no excuse for an attack that works.
    """
    found = judge_advantage(result, policy=policy)
    surely = binomial_interval(
        round(result.rate_at_1_percent * result.members), result.members, confidence=policy.confidence
    )[0]
    told = f" With 1% false alarms it finds {percent(result.rate_at_1_percent)} of the members."
    broken = surely > 0.01 + policy.max_excess
    if result.keeps_promise is False:
        told += f" Epsilon is at least {result.epsilon_lower:.2g}, but {result.claim[0]:g} is promised."
        broken = True
    return GateJudgment(found.sentence + told, holds=found.holds and not broken, decides=broken or found.decides)


def _is_tight(result: Any) -> bool:
    """Return whether the attack is at most a little more often right about people in the data than about others."""
    return result.control_interval is not None and result.interval[1] - result.control_interval[0] <= _UNTOLD


def _between(result: AttackResult) -> str:
    low, high = result.interval
    return f"between {percent(low)} and {percent(high)}"


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
