"""The gate: tries to break a release with every attack that fits it, and says publish or do not publish.

The custodian runs it on the real rows, so its reports are for the custodian; they hold rates, never rows. A release
passes if no attack achieves more than the policy allows. Where nothing but copies and near rows can be measured (a
synthetic table without rows that were held back), only a promise of differential privacy that holds, at an epsilon
that the policy accepts, lets it pass: the custodian's own, or that of a certificate whose key is known. An attack that
was needed and not run, for lack of time or because it failed, speaks against publishing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cloister.anonymize import AnatomyRelease, Release
from cloister.attacks.gating._batteries import GateCheck, battery
from cloister.attacks.gating._gate_subject import GateSubject, subject_of
from cloister.attacks.gating._screen import screen_release
from cloister.attacks.gating.findings import GateFinding, GateResult, Stand
from cloister.attacks.gating.policy import GatePolicy
from cloister.core.guarantees import Guarantee
from cloister.core.random import RandomState, random_source
from cloister.crypto.certificates import Certificate, find_certificate
from cloister.errors import CloisterError, ParameterError, ParameterTypeError
from cloister.report import Report

__all__ = ["check_certified", "gate"]

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
    certificate: Certificate | None = None,
    policy: GatePolicy | None = None,
    report: Report | None = None,
    progress: Progress | None = None,
    random_state: RandomState = None,
) -> GateResult:
    """Return whether a release may be published, after attacking it.

    Args:
        release: a `Release` or an `AnatomyRelease` of ``cl.anonymize``; its two tables; a table, with its kind; a file
            whose certificate says its kind; or a fitted model.
        original: the rows that the release is about, where the release does not know them; of a model, (X, y).
        control: for synthetic tables, rows of the same kind that had no part in it; for models, (X, y) of such.
        kind: for a table, ``anonymized table`` or ``synthetic table``.
        quasi_identifiers: for an anonymized table, the columns that attackers may know.
        sensitive: the columns that attackers want to know; by default as the release or the schema says.
        guarantee: what is promised about the release, where it does not say so itself, such as ``model.guarantee_``; of
            a certificate whose key nobody knows, say it again if you vouch for it.
        certificate: what the files of the release were certified with; that beside a file by default.
        policy: the limits; those of `GatePolicy` by default.
        report: a report to which the gate's sections are added; the release's own by default.
        progress: is told how far it is, from 0 to 1, and which attack is next.
        random_state: None for the operating system; an integer is for tests only.

    Raises:
        ParameterError: if the kind of the release cannot be told, or its rows are missing.
        DataError: if a file was changed after it was certified.
    """
    limits = GatePolicy() if policy is None else policy
    if not isinstance(limits, GatePolicy):
        raise ParameterTypeError("The policy is not a GatePolicy.", fix="give cl.attacks.GatePolicy(...).")
    begun = time.monotonic()
    if certificate is None and isinstance(release, str | Path) and Path(release).is_file():
        certificate = find_certificate(release)
    is_vouched = certificate is None or certificate.is_vouched or guarantee is not None
    if certificate is not None:
        kind, guarantee = check_certified(certificate, kind=kind, guarantee=guarantee)
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
    subject = replace(subject, is_vouched=is_vouched)
    checks, findings = (
        list(battery(subject, limits)),
        [*_cite_certificate(certificate), *_screen_safely(subject, limits)],
    )
    for place, check in enumerate(checks):
        if progress is not None:
            progress(place / len(checks), check.attack)
        # An attack that has begun is finished; one that has not counts as not run, which speaks against
        # publishing.
        is_late = time.monotonic() - begun > limits.time_limit
        findings.append(_try_attack(check, is_late=is_late))
    return GateResult(
        kind=subject.kind,
        promise=subject.guarantee.explain(),
        findings=tuple(findings),
        policy=limits,
        seconds=round(time.monotonic() - begun, 3),
        base=report if report is not None else _own_report(release),
    )


def check_certified(
    certificate: Certificate, *, kind: str | None, guarantee: Guarantee | None
) -> tuple[str, Guarantee]:
    """Return the kind and the promise of a certificate, with which nothing that is said besides may disagree.

    Raises:
        ParameterError: if the caller says another kind, or a promise beside that of the certificate.
    """
    if kind is not None and kind != certificate.kind:
        raise ParameterError(
            f"The certificate says that this is a release of the kind {certificate.kind}.",
            fix="leave the kind out; or delete the certificate if it is wrong.",
        )
    if guarantee is not None and guarantee != certificate.guarantee:
        raise ParameterError(
            "The certificate says what is promised, and something else was said besides.",
            fix="leave the promise out; or delete the certificate if it is wrong.",
        )
    return certificate.kind, certificate.guarantee


def _cite_certificate(certificate: Certificate | None) -> list[GateFinding]:
    """Return whose word the kind and the promise of the release are."""
    if certificate is None:
        return []
    return [GateFinding(attack="certificate", stand=Stand.TOLD, reason=certificate.explain(), is_needed=False)]


def _screen_safely(subject: GateSubject, policy: GatePolicy) -> list[GateFinding]:
    """Return what can be seen without an attack; what cannot be looked at speaks against publishing."""
    try:
        return list(screen_release(subject, policy))
    except Exception as problem:  # noqa: BLE001  # it may quote data
        told = f"The columns of the release could not be looked at ({type(problem).__name__})."
        return [GateFinding(attack="columns", stand=Stand.NOT_RUN, reason=told)]


def _try_attack(check: GateCheck, *, is_late: bool) -> GateFinding:
    needed = check.judge is not None
    if is_late:
        return _not_run(check, "was not run: the time limit was over.", is_needed=needed)
    try:
        result = check.run()
    except CloisterError as problem:
        return _not_run(check, f"could not be run. {problem.problem} Fix: {problem.fix}", is_needed=needed)
    except Exception as problem:  # noqa: BLE001  # an attack that breaks is no reason to publish, and may quote data
        return _not_run(check, f"broke off with {type(problem).__name__}.", is_needed=needed)
    if check.judge is None:
        reason = f"{result.verdict} Nothing follows from this by itself."
        return GateFinding(attack=check.attack, stand=Stand.TOLD, reason=reason, result=result, is_needed=False)
    judgment = check.judge(result)
    stand = Stand.HELD if judgment.holds else Stand.BROKEN
    sentence = judgment.sentence
    if not judgment.decides:
        stand, sentence = Stand.NOT_RUN, f"{sentence} This attack could not decide."
    return GateFinding(attack=check.attack, stand=stand, reason=sentence, result=result, is_needed=needed)


def _not_run(check: GateCheck, reason: str, *, is_needed: bool) -> GateFinding:
    told = f"The attack {check.attack} {reason}"
    return GateFinding(attack=check.attack, stand=Stand.NOT_RUN, reason=told, is_needed=is_needed)


def _own_report(release: Any) -> Report | None:
    """Return the report of the release itself; one that does not fit its own table has none."""
    if not isinstance(release, Release | AnatomyRelease):
        return None
    try:
        return release.report()
    except Exception:  # noqa: BLE001  # what the gate found is told all the same
        return None
