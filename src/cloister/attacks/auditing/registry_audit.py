"""Audit everything that is registered: mechanisms, estimators and synthesizers, each on small neighbors.

Each is run as often as its share of the time allows, and `cloister.attacks.audit_dp` looks for an event that refutes
what it promises. The confidence is for all of them together. An audit that refutes nothing proves nothing; the largest
epsilon that so many runs could have shown is told beside each outcome.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from cloister.attacks.auditing._audit_subjects import FAMILIES, AuditSubject, claim_of, subjects
from cloister.attacks.auditing.audit_dp import audit_dp
from cloister.attacks.auditing.statistical_check import largest_detectable_epsilon
from cloister.core import validation
from cloister.core.exact import Number
from cloister.errors import CloisterError, CloisterWarning, ParameterError, PrivacyRefutedError

if TYPE_CHECKING:
    from pathlib import Path

    from cloister.report import Report

__all__ = ["AuditedAlgorithm", "AuditsOfEverything", "audit_everything"]

Progress = Callable[[float, str], None]

_FEWEST = 200
_MOST = 20_000
_DRAWING = 0.75
"""The share of the time that may be spent on runs; the rest is for reading and comparing what came out."""
_TIMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedAlgorithm:
    """What came out for one algorithm.

    Attributes:
        family: "mechanism", "estimator" or "synthesizer".
        name: under which it is registered.
        outcome: "refuted", "not refuted" or "not audited".
        claim: what it promises, in words.
        epsilon_lower: epsilon is at least this, at the stated confidence; None if it was not audited.
        detectable: the largest epsilon that so many runs could have shown.
        samples: how often it was run on each neighbor.
        seconds: how long that took.
        reason: why it was not audited, or by which event it is refuted.
        is_weak: whether so few runs could not have refuted the claim, however wrong.
    """

    family: str
    name: str
    outcome: str
    claim: str = ""
    epsilon_lower: float | None = None
    detectable: float | None = None
    samples: int = 0
    seconds: float = 0.0
    reason: str = ""
    is_weak: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "family": self.family,
            "name": self.name,
            "outcome": self.outcome,
            "claim": self.claim,
            "epsilon_lower": self.epsilon_lower,
            "detectable": self.detectable,
            "samples": self.samples,
            "seconds": round(self.seconds, 3),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditsOfEverything:
    """The outcomes for everything that is registered.

    Attributes:
        subjects: one outcome per algorithm.
        confidence: the probability that no true claim is refuted, over all of them together.
    """

    schema: ClassVar[str] = "cloister.audits/1"

    subjects: tuple[AuditedAlgorithm, ...]
    confidence: float

    def of(self, outcome: str) -> tuple[AuditedAlgorithm, ...]:
        """Return those with an outcome: "refuted", "not refuted" or "not audited"."""
        return tuple(item for item in self.subjects if item.outcome == outcome)

    @property
    def refuted(self) -> bool:
        """Return whether any claim is refuted."""
        return bool(self.of("refuted"))

    @property
    def verdict(self) -> str:
        """Return a few sentences for a custodian."""
        refuted, stand, apart = (self.of(name) for name in ("refuted", "not refuted", "not audited"))
        if refuted:
            listing = ", ".join(item.name for item in refuted)
            found = f"{len(refuted)} of {len(refuted) + len(stand)} claims are refuted: {listing}."
        else:
            weak = sum(item.is_weak for item in stand)
            few = f" {weak} could not have been in so few runs." if weak else ""
            found = f"None of {len(stand)} claims is refuted, which is no proof that they are true.{few}"
        return found + (f" {len(apart)} were not audited." if apart else "")

    def __str__(self) -> str:
        return self.verdict

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            ("verdict", self.verdict),
            *((f"{item.family} {item.name}", _describe_outcome(item)) for item in self.subjects),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker."""
        return {
            "schema": self.schema,
            "verdict": self.verdict,
            "confidence": self.confidence,
            "subjects": [item.to_dict() for item in self.subjects],
        }

    def report(self, path: str | Path | None = None, *, title: str = "Audit of everything") -> Report:
        """Return a report; with a path that ends in .html, .md or .json it is written there as well."""
        from cloister.report import Report, Section, Status, TableBlock, Verdict

        rows = [[item.family, item.name, _describe_outcome(item)] for item in self.subjects]
        report = Report(
            title,
            verdict=Verdict(self.verdict, Status.BAD if self.refuted else Status.ATTENTION),
            summary="A claim that is not refuted is not proved: so many runs found nothing against it.",
            sections=(Section("What was audited", [TableBlock(["family", "name", "outcome"], rows)]),),
        )
        if path is not None:
            report.write(path)
        return report

    def verify(self) -> None:
        """Raise if any claim is refuted; a silent return proves nothing.

        Raises:
            PrivacyRefutedError: with the names.
        """
        if self.refuted:
            raise PrivacyRefutedError(self.verdict, fix="correct these algorithms, and release nothing of theirs.")


def audit_everything(
    *,
    epsilon: Number = 1,
    seconds: object = 300,
    families: Iterable[str] = FAMILIES,
    names: Iterable[str] | None = None,
    confidence: Number = 0.999,
    progress: Progress | None = None,
) -> AuditsOfEverything:
    """Audit every registered mechanism, estimator and synthesizer on small neighbors.

    Args:
        epsilon: at which epsilon each is made.
        seconds: about how long all audits together may take. What has not enough time for 200 runs is not audited.
        families: which of "mechanism", "estimator" and "synthesizer".
        names: which algorithms, by the names under which they are registered; without it, all.
        confidence: the probability that no true claim is refuted, over all audits together.
        progress: called before each audit with the share that is done and the name of what is audited.

    Raises:
        ParameterError: if a family or a name is not known.
    """
    price = validation.check_epsilon(epsilon)
    limit = float(validation.check_positive(seconds, name="seconds"))
    level = float(validation.check_confidence(confidence))
    listed = [validation.check_choice(family, name="families", allowed=FAMILIES) for family in families]
    chosen = [item for item in subjects(price) if item.family in listed]
    if names is not None:
        wanted = list(names)
        for name in wanted:
            validation.check_choice(name, name="names", allowed=[item.name for item in chosen])
        chosen = [item for item in chosen if item.name in wanted]
    if not chosen:
        raise ParameterError("There is nothing to audit.", fix=f"name some of {', '.join(FAMILIES)}.")
    # All audits share the error that is allowed, so that the confidence is for all of them together.
    each, end = 1 - (1 - level) / len(chosen), time.monotonic() + limit
    found = []
    for place, subject in enumerate(chosen):
        if progress is not None:
            progress(place / len(chosen), f"{subject.family} {subject.name}")
        share = max(0.0, end - time.monotonic()) / (len(chosen) - place)
        found.append(_audit_subject(subject, share, each))
    if progress is not None:
        progress(1.0, "done")
    return AuditsOfEverything(subjects=tuple(found), confidence=level)


def _audit_subject(subject: AuditSubject, seconds: float, confidence: float) -> AuditedAlgorithm:
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CloisterWarning)
        try:
            draw, pair, guarantee = subject.prepare()
            claim, delta = claim_of(guarantee)
            outputs = _outputs(draw, pair, start + _DRAWING * seconds)
            samples = len(outputs[0])
            if samples < _FEWEST:
                return _apart(subject, start, f"{_FEWEST} runs take longer than there is time for")
            result = audit_dp(
                lambda which, _: outputs[which],
                (0, 1),
                epsilon=claim,
                delta=delta,
                mode="statistical",
                samples=samples,
                confidence=confidence,
            )
        except CloisterError as error:
            return _apart(subject, start, str(error).splitlines()[0])
    detectable = largest_detectable_epsilon(samples, confidence=confidence)
    outcome = AuditedAlgorithm(
        family=subject.family,
        name=subject.name,
        outcome=result.outcome,
        claim=guarantee.brief(),
        epsilon_lower=result.epsilon_lower,
        detectable=detectable,
        is_weak=detectable < float(claim),
        samples=samples,
        seconds=time.monotonic() - start,
    )
    if result.counterexample is None:
        return outcome
    return replace(outcome, reason=f"outputs with {result.counterexample.outputs[0]}")


def _outputs(draw: Callable[[Any], Any], pair: tuple[Any, Any], end: float) -> tuple[list[Any], list[Any]]:
    """Return outputs on both neighbors, as many as there is time for; few where there is not time for enough."""
    found: tuple[list[Any], list[Any]] = ([], [])
    began = time.monotonic()
    while len(found[0]) < _MOST and (now := time.monotonic()) < end:
        runs = len(found[0])
        # The first run of anything is slower than those that follow.
        if runs == 1:
            began = now
        elif runs == _TIMED and (now - began) / (_TIMED - 1) * (_FEWEST - runs) > end - now:
            break
        for outputs, dataset in zip(found, pair, strict=True):
            outputs.append(draw(dataset))
    return found


def _apart(subject: AuditSubject, start: float, reason: str) -> AuditedAlgorithm:
    return AuditedAlgorithm(
        family=subject.family,
        name=subject.name,
        outcome="not audited",
        seconds=time.monotonic() - start,
        reason=reason,
    )


def _describe_outcome(item: AuditedAlgorithm) -> str:
    if item.epsilon_lower is None:
        return f"not audited: {item.reason}"
    told = f"{item.outcome}: {item.claim} is promised, {item.samples:,} runs show at least {item.epsilon_lower:.3g}"
    return f"{told} (could have shown {item.detectable:.3g})"
