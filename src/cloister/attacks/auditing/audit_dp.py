"""Is this release as private as it says? An audit by exact probabilities, or by many sampled outputs.

The exact way needs the probability of every output and decides the question for the neighbors that it is given:
``epsilon`` is true exactly if the hockey-stick divergence is at most delta for each pair, both ways. The statistical
way needs outputs only, and can refute a claim but never prove one. As an attack the audit is a game: the attacker sees
one output and says which of two neighbors it came from; a guess is right half of the time, and (epsilon, delta)
lets nobody be right more often than ``1/2 + (exp(epsilon) - 1 + 2 delta) / (2 exp(epsilon) + 2)`` (Kairouz, Oh and
Viswanath 2015). What an audit found is told in words for a custodian and in numbers for everybody else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cloister.attacks.auditing.exact_check import Counterexample, ExactReport, ExactVerdict, check_exactly
from cloister.attacks.auditing.features import Feature, reader
from cloister.attacks.auditing.statistical_check import AuditReport, Outputs, audit_samples, neighbor_pairs, takes_size
from cloister.attacks.details import HELD, AttackDetails, Row, fact
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import binomial_bounds
from cloister.core.exact import Number
from cloister.errors import ParameterError, ParameterTypeError, PrivacyRefutedError

__all__ = ["AuditDetails", "audit_dp"]


_CURVE_STEPS = 20
_CURVE_END = 10.0
_ADVICE = "correct the sensitivity, the contribution bound or the noise; do not release until an audit is passed"


def _write_epsilon(epsilon: float | None) -> float | str | None:
    return epsilon if epsilon is None or math.isfinite(epsilon) else "inf"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditDetails(AttackDetails):
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

    schema: ClassVar[str] = "cloister.dp_audit/1"
    further: ClassVar[tuple[str, ...]] = ("curve",)

    mode: str
    epsilon: Fraction
    delta: Fraction
    outcome: str
    epsilon_lower: float = field(metadata=fact(write=_write_epsilon))
    tight_epsilon: float | None = field(default=None, metadata=fact(write=_write_epsilon))
    limit: float = field(metadata=fact("limit", lambda limit: f"{100 * limit:.4g}% success is what the claim allows"))
    pairs: int
    counterexample: Counterexample | None = field(default=None, repr=False, metadata=HELD)
    evidence: ExactReport | AuditReport = field(repr=False, metadata=HELD)

    @property
    def refuted(self) -> bool:
        """Return whether the claim is disproven, exactly or at the stated confidence."""
        return self.outcome == ExactVerdict.REFUTED

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Return points (epsilon, smallest true delta) of the hockey-stick curve; none after a statistical audit."""
        if not isinstance(self.evidence, ExactReport):
            return ()
        end = self.epsilon_lower if math.isfinite(self.epsilon_lower) else _CURVE_END
        grid = [end * step / _CURVE_STEPS for step in range(_CURVE_STEPS + 1)]
        return tuple((epsilon, float(self.evidence.delta_at(epsilon))) for epsilon in grid)

    def judge(self, _: AttackResult, /) -> bool:
        # To tell neighbors apart a little is what a claim allows.
        return self.refuted

    def conclude(self, result: AttackResult, /) -> str:
        """Return the verdict on the claim."""
        shown = f"epsilon {self.epsilon_lower:.4g}" if math.isfinite(self.epsilon_lower) else "no finite epsilon"
        if self.refuted and self.mode == "exact":
            return f"Not private as claimed: {self._claim} is promised, and the outputs have {shown}."
        if self.refuted:
            return (
                f"Not private as claimed: {self._claim} is promised, and the outputs show at least {shown}, "
                f"with {100 * result.confidence:.10g}% confidence."
            )
        if self.outcome == ExactVerdict.HOLDS:
            return f"Private as claimed on the {self.pairs} pairs of neighbors examined: {self._claim}."
        if self.outcome == ExactVerdict.UNDECIDED:
            return f"Undecided: the probabilities are known too roughly to confirm or refute {self._claim}."
        return (
            f"Not refuted: {self._claim} is promised, and {result.queries:,} outputs show {shown} at least, "
            "which is within it. That is no proof: other data or more samples may show more."
        )

    def headline(self, result: AttackResult, /) -> str:
        """Return whether the claim stands, and the epsilon that was seen."""
        how = "by exact probabilities it is" if self.mode == "exact" else "the outputs show at least"
        sure = "" if self.mode == "exact" else f" ({100 * result.confidence:.10g}% confidence)"
        return f"{self._claim} {_IS[self.outcome]}: {how} {self.epsilon_lower:.6g}{sure}"

    @property
    def _claim(self) -> str:
        return f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")

    def compare(self, result: AttackResult, /) -> dict[str, float]:
        return {
            "this attack": result.success,
            "guessing": result.baseline,
            "most that the claim allows": self.limit,
        }

    def confide(self, _: AttackResult, /) -> Iterator[Row]:
        """Return the outputs of the counterexample, which may say something about the data."""
        if self.counterexample is not None:
            yield "counterexample", f"outputs with {', '.join(map(str, self.counterexample.outputs[:3]))}"

    def refute(self, result: AttackResult, /) -> PrivacyRefutedError | None:
        """Return the error of a refuted or undecided claim; datasets and outputs stay in ``counterexample``."""
        if self.refuted:
            return PrivacyRefutedError(
                result.verdict,
                fix=f"claim epsilon >= {self.epsilon_lower:.4g} at least, or correct the algorithm; "
                "the result's counterexample says where it leaks.",
            )
        if self.outcome == ExactVerdict.UNDECIDED:
            return PrivacyRefutedError(result.verdict, fix="give rationals, or certified bounds of more digits.")
        return None


_IS = {"holds": "holds", "refuted": "is refuted", "undecided": "is undecided", "not refuted": "is not refuted"}


def from_probabilities(report: ExactReport) -> AttackResult[AuditDetails]:
    """Return the result of an exact audit."""
    success = float((1 + report.delta_at(0)) / 2)
    return AttackResult(
        attack="exact audit",
        assumption="knows everything but which of two neighboring datasets is real, and sees one output",
        success=success,
        baseline=0.5,
        interval=(success, success),
        confidence=1.0,
        trials=report.pairs,
        queries=0,
        mitigation=(_ADVICE,) if report.refuted else (),
        details=AuditDetails(
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
        ),
    )


def from_samples(report: AuditReport) -> AttackResult[AuditDetails]:
    """Return the result of a statistical audit."""
    hits, misses = report.hits[0] / report.samples, report.hits[1] / report.samples
    low, high = binomial_bounds(report.hits, report.samples, alpha=(1 - report.confidence) / report.pairs / 2)
    return AttackResult(
        attack="statistical audit",
        assumption="knows everything but which of two neighboring datasets is real, and sees one output",
        success=(1 + hits - misses) / 2,
        baseline=0.5,
        interval=(float(1 + low[0] - high[1]) / 2, float(1 + high[0] - low[1]) / 2),
        confidence=report.confidence,
        trials=2 * report.samples,
        queries=2 * report.samples,
        mitigation=(_ADVICE,) if report.refuted else (),
        details=AuditDetails(
            mode="statistical",
            epsilon=report.epsilon,
            delta=report.delta,
            outcome="refuted" if report.refuted else "not refuted",
            epsilon_lower=report.epsilon_lower,
            counterexample=_counterexample(report) if report.refuted else None,
            limit=_limit(report.epsilon, report.delta),
            pairs=report.pairs,
            evidence=report,
        ),
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


_MODES = ("auto", "exact", "statistical")
_LOOKS = 10
_SAMPLES_AT_ONCE = 50_000
_SAMPLES_ONE_BY_ONE = 5_000


def audit_dp(
    mechanism: Any,
    neighbors: Iterable[Any],
    *,
    epsilon: Number,
    delta: Number = 0,
    mode: str = "auto",
    samples: int | None = None,
    confidence: float = 0.999,
    keys: Collection[str] = (),
    features: Mapping[str, Feature] | None = None,
    vectorized: bool | None = None,
) -> AttackResult[AuditDetails]:
    """Return whether a claim of (epsilon, delta)-differential privacy is refuted.

    Args:
        mechanism: what is audited. One of: a function ``mechanism(dataset)`` that returns one output; a function
            ``mechanism(dataset, size)`` that returns so many; an object with ``release(dataset)``; or, for the exact
            mode, an object with ``distribution(dataset)`` or a function that returns ``{output: probability}``.
            An output is a number, a word, None, a vector, a tuple, a dictionary, rows, a table or a result of cloister.
            Each output must be drawn afresh: a cache of answers makes the audit meaningless.
        neighbors: a pair (dataset, neighbor), or a list of pairs; each is looked at both ways.
        epsilon: the claim.
        delta: the claim.
        mode: "exact", "statistical" or "auto": exact where the mechanism gives rational probabilities or bounds.
        samples: how many outputs to draw on each neighbor; by default 5,000, or 50,000 where a function takes a size.
        confidence: the probability that a true claim is not refuted (statistical mode), over all pairs together.
        keys: columns of a grouped answer that name its groups, besides those that hold words.
        features: functions from all outputs to one value per output, by name, in place of the built-in ones.
        vectorized: whether a function takes a size; by default decided by its signature.

    >>> from fractions import Fraction
    >>> def two_coins(answer: bool) -> dict[bool, Fraction]:
    ...     return {answer: Fraction(3, 4), not answer: Fraction(1, 4)}
    >>> print(audit_dp(two_coins, (True, False), epsilon=1))
    epsilon = 1 is refuted: by exact probabilities it is 1.09861
    """
    validation.check_choice(mode, name="mode", allowed=_MODES)
    pairs = neighbor_pairs(neighbors)
    law = None if mode == "statistical" else _law(mechanism, pairs, sure=mode == "exact")
    if law is not None:
        return from_probabilities(check_exactly(law, pairs, epsilon=epsilon, delta=delta))
    draw, many = _drawer(mechanism, vectorized=vectorized)
    size = (_SAMPLES_AT_ONCE if many else _SAMPLES_ONE_BY_ONE) if samples is None else samples
    report = audit_samples(
        draw,
        pairs,
        epsilon=epsilon,
        delta=delta,
        samples=size,
        confidence=confidence,
        read=reader(features, keys=keys),
    )
    return from_samples(report)


def _law(mechanism: Any, pairs: list[tuple[Any, Any]], *, sure: bool) -> Callable[[Any], Any] | None:
    """Return the function that gives probabilities, None if the mechanism gives outputs; a doubt is an error."""
    given = getattr(mechanism, "distribution", None)
    if sure or given is not None:
        return _check_law(given or mechanism)
    if not callable(mechanism) or hasattr(mechanism, "release") or takes_size(mechanism):
        return None
    laws = [mechanism(dataset) for dataset in pairs[0]]
    if not all(map(_adds_up_to_one, laws)):
        return None
    if any(isinstance(value, Fraction | tuple) for law in laws for value in law.values()):
        return _check_law(mechanism)
    # Whatever gives other numbers the next time is no law of outputs but an output.
    if any(mechanism(dataset) != law for _ in range(_LOOKS) for dataset, law in zip(pairs[0], laws, strict=True)):
        return None
    raise ParameterError(
        "The mechanism returns numbers that add up to 1: probabilities of outputs, or an output of shares?",
        fix='say mode="exact" if they are probabilities, mode="statistical" if they are what is released.',
    )


def _check_law(law: Any) -> Callable[[Any], Any]:
    def checked(dataset: Any) -> Any:
        found = law(dataset) if callable(law) else None
        if not isinstance(found, Mapping):
            raise ParameterTypeError(
                "An exact audit needs the probability of every output.",
                fix='return {output: probability, ...} for a dataset, or use mode="statistical".',
            )
        return found

    return checked


def _adds_up_to_one(output: Any) -> bool:
    if not isinstance(output, Mapping) or not output:
        return False
    ends = [value if isinstance(value, tuple) else (value, value) for value in output.values()]
    if any(len(pair) != 2 or not all(isinstance(end, int | float | Fraction) for end in pair) for pair in ends):
        return False
    low, high = (math.fsum(float(pair[side]) for pair in ends) for side in (0, 1))
    return low <= 1 + 1e-9 and high >= 1 - 1e-9 and all(pair[0] >= 0 for pair in ends)


def _drawer(mechanism: Any, *, vectorized: bool | None) -> tuple[Callable[[Any, int], Outputs], bool]:
    """Return a function that draws so many outputs, and whether it draws them all at once."""
    one = getattr(mechanism, "release", None) or mechanism
    if not callable(one):
        raise ParameterTypeError(
            "The mechanism is neither a function nor an object with release().",
            fix="pass a function of a dataset that returns one output.",
        )
    many = (one is mechanism and takes_size(one)) if vectorized is None else vectorized

    def draw(dataset: Any, size: int) -> Outputs:
        outputs = one(dataset, size) if many else [one(dataset) for _ in range(size)]
        if not hasattr(outputs, "__len__") or len(outputs) != size:
            raise ParameterError(
                f"The mechanism did not return {size} outputs.",
                fix="return a list or an array with one item per output.",
            )
        return outputs

    return draw, many
