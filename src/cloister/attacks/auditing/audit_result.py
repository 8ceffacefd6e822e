"""What an audit found, in words for a custodian and in numbers for everybody else."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cloister.attacks.auditing.exact_check import Counterexample, ExactReport, Verdict
from cloister.attacks.auditing.sampled import AuditReport
from cloister.attacks.confidence import binomial_bounds
from cloister.attacks.result import AttackResult
from cloister.errors import PrivacyRefutedError

__all__ = ["AuditResult"]

_CURVE_STEPS = 20
_CURVE_END = 10.0
_ADVICE = "correct the sensitivity, the contribution bound or the noise; do not release until an audit is passed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult(AttackResult):
    """Whether a claim of differential privacy is refuted; the attacker tells two neighbors apart by one output.

    Attributes:
        mode: "exact" or "statistical".
        epsilon: the claim.
        delta: the claim.
        outcome: "holds" (exact mode only), "not refuted", "refuted", or "undecided" where bounds are too wide.
        epsilon_lower: epsilon is at least this: exactly, or with the stated confidence.
        tight_epsilon: the smallest true epsilon at this delta, in exact mode.
        counterexample: two neighbors and the outputs that tell them apart, when the claim is refuted.
        limit: the success that the claim allows at most.
        pairs: how many pairs of neighbors were examined.
        evidence: the details, with the datasets: not for other eyes than the custodian's.
    """

    schema: ClassVar[str] = "cloister.audit/1"

    mode: str
    epsilon: Fraction
    delta: Fraction
    outcome: str
    epsilon_lower: float
    limit: float
    pairs: int
    tight_epsilon: float | None = None
    counterexample: Counterexample | None = field(default=None, repr=False)
    evidence: ExactReport | AuditReport = field(repr=False)

    @property
    def refuted(self) -> bool:
        """Return whether the claim is disproven, exactly or at the stated confidence."""
        return self.outcome == Verdict.REFUTED

    @property
    def succeeded(self) -> bool:
        """Return whether the claim is refuted: telling neighbors apart a little is what a claim allows."""
        return self.refuted

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Return points (epsilon, smallest true delta) of the hockey-stick curve; none after a statistical audit."""
        if not isinstance(self.evidence, ExactReport):
            return ()
        end = self.epsilon_lower if math.isfinite(self.epsilon_lower) else _CURVE_END
        grid = [end * step / _CURVE_STEPS for step in range(_CURVE_STEPS + 1)]
        return tuple((epsilon, float(self.evidence.delta_at(epsilon))) for epsilon in grid)

    @property
    def verdict(self) -> str:
        """Return one or two sentences for a custodian."""
        shown = f"epsilon {self.epsilon_lower:.4g}" if math.isfinite(self.epsilon_lower) else "no finite epsilon"
        if self.refuted and self.mode == "exact":
            return f"Not private as claimed: {self._claim} is promised, and the outputs have {shown}."
        if self.refuted:
            return (
                f"Not private as claimed: {self._claim} is promised, and the outputs show at least {shown}, "
                f"with {100 * self.confidence:.10g}% confidence."
            )
        if self.outcome == Verdict.HOLDS:
            return f"Private as claimed on the {self.pairs} pairs of neighbors examined: {self._claim}."
        if self.outcome == Verdict.UNDECIDED:
            return f"Undecided: the probabilities are known too roughly to confirm or refute {self._claim}."
        return (
            f"Not refuted: {self._claim} is promised, and {self.queries:,} outputs show {shown} at least, "
            "which is within it. That is no proof: other data or more samples may show more."
        )

    def __str__(self) -> str:
        how = "by exact probabilities it is" if self.mode == "exact" else "the outputs show at least"
        sure = "" if self.mode == "exact" else f" ({100 * self.confidence:.10g}% confidence)"
        return f"{self._claim} {_IS[self.outcome]}: {how} {self.epsilon_lower:.6g}{sure}"

    @property
    def _claim(self) -> str:
        return f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")

    def comparisons(self) -> dict[str, float]:
        """Return the success, what guessing achieves, and the most that the claim allows."""
        return {
            "this attack": self.success,
            "guessing": self.baseline,
            "most that the claim allows": self.limit,
        }

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person; the counterexample may quote outputs."""
        rows = [*AttackResult.summary(self), ("limit", f"{100 * self.limit:.4g}% success is what the claim allows")]
        if self.counterexample is not None:
            outputs = ", ".join(map(str, self.counterexample.outputs[:3]))
            rows.append(("counterexample", f"outputs with {outputs}"))
        return tuple(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; neither datasets nor outputs are among them."""
        tight = self.tight_epsilon
        return {
            **AttackResult.to_dict(self),
            "mode": self.mode,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "outcome": self.outcome,
            "epsilon_lower": self.epsilon_lower if math.isfinite(self.epsilon_lower) else "inf",
            "tight_epsilon": tight if tight is None or math.isfinite(tight) else "inf",
            "limit": self.limit,
            "pairs": self.pairs,
            "curve": [list(point) for point in self.curve],
        }

    def verify(self) -> None:
        """Raise if the claim is refuted or undecided; after a statistical audit a silent return proves nothing.

        Raises:
            PrivacyRefutedError: with the numbers; the datasets and outputs stay in ``counterexample``.
        """
        if self.refuted:
            raise PrivacyRefutedError(
                self.verdict,
                fix=f"claim epsilon >= {self.epsilon_lower:.4g} at least, or correct the algorithm; "
                "the result's counterexample says where it leaks.",
            )
        if self.outcome == Verdict.UNDECIDED:
            raise PrivacyRefutedError(self.verdict, fix="give rationals, or certified bounds of more digits.")


_IS = {"holds": "holds", "refuted": "is refuted", "undecided": "is undecided", "not refuted": "is not refuted"}


def from_probabilities(report: ExactReport) -> AuditResult:
    """Return the result of an exact audit."""
    success = float((1 + report.delta_at(0)) / 2)
    return AuditResult(
        attack="exact audit",
        assumption="knows everything but which of two neighboring datasets is real, and sees one output",
        success=success,
        baseline=0.5,
        interval=(success, success),
        confidence=1.0,
        trials=report.pairs,
        queries=0,
        mitigation=(_ADVICE,) if report.refuted else (),
        mode="exact",
        epsilon=report.epsilon,
        delta=report.delta,
        outcome=str(report.verdict),
        epsilon_lower=report.tight_epsilon,
        tight_epsilon=report.tight_epsilon,
        counterexample=report.counterexample,
        limit=_limit(report.epsilon, report.delta),
        pairs=report.pairs,
        evidence=report,
    )


def from_samples(report: AuditReport) -> AuditResult:
    """Return the result of a statistical audit."""
    hits, misses = report.hits[0] / report.samples, report.hits[1] / report.samples
    low, high = binomial_bounds(report.hits, report.samples, alpha=(1 - report.confidence) / report.pairs / 2)
    return AuditResult(
        attack="statistical audit",
        assumption="knows everything but which of two neighboring datasets is real, and sees one output",
        success=(1 + hits - misses) / 2,
        baseline=0.5,
        interval=(float(1 + low[0] - high[1]) / 2, float(1 + high[0] - low[1]) / 2),
        confidence=report.confidence,
        trials=2 * report.samples,
        queries=2 * report.samples,
        mitigation=(_ADVICE,) if report.refuted else (),
        mode="statistical",
        epsilon=report.epsilon,
        delta=report.delta,
        outcome="refuted" if report.refuted else "not refuted",
        epsilon_lower=report.epsilon_lower,
        counterexample=_counterexample(report) if report.refuted else None,
        limit=_limit(report.epsilon, report.delta),
        pairs=report.pairs,
        evidence=report,
    )


def _counterexample(report: AuditReport) -> Counterexample:
    low, high = binomial_bounds(report.hits, report.samples, alpha=(1 - report.confidence) / report.pairs)
    return Counterexample(
        dataset=report.dataset,
        neighbor=report.neighbor,
        outputs=(str(report.event),),
        probability=Fraction(float(low[0])),
        neighbor_probability=Fraction(float(high[1])),
    )


def _limit(epsilon: Fraction, delta: Fraction) -> float:
    return min(1.0, 0.5 + math.tanh(float(epsilon) / 2) / 2 + float(delta) / (math.exp(min(float(epsilon), 700)) + 1))
