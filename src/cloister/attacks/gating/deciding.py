"""The gate: tries to break a release with every attack that fits it, and says publish or do not publish.

The custodian runs it on the real rows, so its reports are for the custodian; they hold rates, never rows. A release
passes if no attack achieves more than the policy allows. Where nothing can be measured (a synthetic table without rows
that were held back), only a promise of differential privacy that holds, at an epsilon that the policy accepts, lets it
pass. An attack that was needed and not run, for lack of time or because it failed, speaks against publishing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from cloister.anonymize import AnatomyRelease, Release
from cloister.attacks.gating.batteries import Check, battery
from cloister.attacks.gating.findings import Finding, GateResult, Stand
from cloister.attacks.gating.policy import GatePolicy
from cloister.attacks.gating.subjects import KINDS, Subject, subject_of
from cloister.core.guarantees import Guarantee
from cloister.core.random import RandomState, random_source
from cloister.errors import CloisterError, ParameterTypeError
from cloister.report import Report

__all__ = ["gate"]

Progress = Callable[[float, str], None]


def gate(
    release: Any,
    *,
    original: Any = None,
    control: Any = None,
    kind: str | None = None,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    guarantee: Guarantee | None = None,
    policy: GatePolicy | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
    random_state: RandomState = None,
) -> GateResult:
    """Return whether a release may be published, after attacking it.

    Args:
        release: a `Release` or an `AnatomyRelease` of ``cl.anonymize``; its two tables; a table, with its kind; or a
            fitted model.
        original: the rows that the release is about, where the release does not know them; of a model, (X, y).
        control: for synthetic tables, rows of the same kind that had no part in it; for models, (X, y) of such.
        kind: for a table, ``anonymized table`` or ``synthetic table``.
        quasi_identifiers: for an anonymized table, the columns that attackers may know.
        sensitive: the columns that attackers want to know; by default as the release or the schema says.
        guarantee: what is promised about the release, where it does not say so itself, such as ``model.guarantee_``.
        policy: the limits; those of `GatePolicy` by default.
        report: a report to which the gate's sections are added; the release's own by default.
        progress: is told how far it is, from 0 to 1, and which attack is next.
        random_state: None for the operating system; an integer is for tests only.

    Raises:
        ParameterError: if the kind of the release cannot be told, or its rows are missing.
    """
    limits = GatePolicy() if policy is None else policy
    if not isinstance(limits, GatePolicy):
        raise ParameterTypeError("The policy is not a GatePolicy.", fix="give cl.attacks.GatePolicy(...).")
    begun = time.monotonic()
    subject = subject_of(
        release,
        kind=kind,
        original=original,
        control=control,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        guarantee=guarantee,
        source=random_source(random_state),
    )
    checks = list(battery(subject, limits))
    findings = []
    for place, check in enumerate(checks):
        if progress is not None:
            progress(place / len(checks), check.attack)
        findings.append(_tried(check, is_late=time.monotonic() - begun > limits.time_limit))
    return GateResult(
        kind=subject.kind,
        promise=subject.guarantee.explain(),
        findings=(*_promised(subject, limits), *findings),
        policy=limits,
        seconds=round(time.monotonic() - begun, 3),
        base=report if report is not None else _own_report(release),
    )


def _tried(check: Check, *, is_late: bool) -> Finding:
    if is_late:
        return _not_run(check, "was not run: the time limit was over.")
    try:
        result = check.run()
    except CloisterError as problem:
        return _not_run(check, f"could not be run: {problem.problem}")
    wrong = "" if check.is_told else check.judge(result)
    if wrong:
        return Finding(attack=check.attack, stand=Stand.BROKEN, reason=wrong, result=result)
    stand = Stand.TOLD if check.is_told else Stand.HELD
    return Finding(attack=check.attack, stand=stand, reason=result.verdict, result=result, is_needed=check.is_needed)


def _not_run(check: Check, reason: str) -> Finding:
    return Finding(
        attack=check.attack,
        stand=Stand.NOT_RUN,
        reason=f"The attack {check.attack} {reason}",
        is_needed=check.is_needed,
    )


def _promised(subject: Subject, policy: GatePolicy) -> list[Finding]:
    """Return how the promise stands, where it is what the decision rests on."""
    if subject.kind != KINDS[2]:
        return []
    if subject.is_private:
        is_small = _is_small(subject.guarantee, policy)
        counts = f"epsilon up to {policy.max_epsilon:g} and delta up to {policy.max_delta:g} count"
        told = f"This is promised: {subject.guarantee.brief()}; {counts}."
        return [Finding(attack="promise", stand=Stand.HELD if is_small else Stand.BROKEN, reason=told)]
    if subject.control is not None:
        return [Finding(attack="promise", stand=Stand.TOLD, reason="Nothing is promised; only attacks were tried.")]
    missing = (
        "Nothing is promised about this table, and without rows that had no part in it nobody can tell what it copies "
        "from what is common: give control=."
    )
    return [Finding(attack="promise", stand=Stand.BROKEN, reason=missing)]


def _is_small(guarantee: Guarantee, policy: GatePolicy) -> bool:
    epsilon, delta = getattr(guarantee, "epsilon", math.inf), getattr(guarantee, "delta", 0)
    return float(epsilon) <= policy.max_epsilon and float(delta) <= policy.max_delta


def _own_report(release: Any) -> Report | None:
    make = getattr(release, "report", None) if isinstance(release, Release | AnatomyRelease) else None
    return make() if callable(make) else None
