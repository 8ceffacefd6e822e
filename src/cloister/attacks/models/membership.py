"""Membership inference: tell from a model's answers whether a person's record was in its training data.

That can be a secret in itself, as with the patients of a clinic, and it is the measure of everything else that a model
remembers of a person: what differential privacy bounds. See `_membership_scores` for the attacks and `_roc_curves` for
the figures. Returning labels only, rounding and regularizing make the simplest attacks weaker and stop none of them for
good; training with differential privacy bounds them all. What was found is told in words for a custodian and as a curve
for everybody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.accounting.conversions import zero_concentrated_to_approx
from cloister.attacks.details import HELD, AttackDetails, Row, fact
from cloister.attacks.models._membership_scores import (
    Shadow,
    Trainer,
    label_only_scores,
    likelihood_ratio_scores,
    loss_scores,
    shadow_scores,
    shadows_of,
    threshold_scores,
    trainer_of,
)
from cloister.attacks.models._roc_curves import Scores, dp_advantage, dp_rate, epsilon_lower_bound
from cloister.attacks.models._victim import Labeled, Victim, read_labeled
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.wordings import format_points, percent
from cloister.errors import ParameterError
from cloister.report import Block, Chart

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["MembershipDetails", "membership"]


_GRID = tuple(10 ** (step / 10 - 4) for step in range(41))


def _write_claim(claim: tuple[float, float] | None) -> dict[str, float] | None:
    return None if claim is None else {"epsilon": claim[0], "delta": claim[1]}


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipDetails(AttackDetails):
    """How well an attacker tells who was in the training data.

    Success is the mean of the shares of members and of others that are called rightly, by thresholds that were chosen
    on one half of the records and used on the other, so that it is not flattered by the choice.

    Attributes:
        kind: how records were scored.
        members: how many records of the training data were tried.
        non_members: how many others.
        auc: the area under the ROC curve, 0.5 for guessing: how often a member scores higher than another record.
        auc_interval: a confidence interval of it.
        rate_at_1_percent: the share of members found when 1 % of the others are accused wrongly.
        rate_at_01_percent: the share of members found when 0.1 % of the others are.
        largest_gap: the largest difference of both shares over all thresholds, in hindsight.
        epsilon_lower: what epsilon is at least at the stated confidence, counting records as independent.
        claim: the (epsilon, delta) that the model promises, if it does.
        curve: points (share of others accused, share of members found).
        scores: the attacker's scores of the members, then of the others; custodian only.
        risks: for each member the share of others who look as much like members: low is exposed. Custodian only.
    """

    schema: ClassVar[str] = "cloister.membership/1"

    kind: str
    members: int
    non_members: int
    auc: float
    auc_interval: tuple[float, float]
    rate_at_1_percent: float
    rate_at_01_percent: float
    largest_gap: float
    epsilon_lower: float
    claim: tuple[float, float] | None = field(default=None, metadata=fact(write=_write_claim))
    curve: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    scores: tuple[float, ...] = field(default=(), repr=False, metadata=HELD)
    risks: tuple[float, ...] = field(default=(), repr=False, metadata=HELD)

    @property
    def keeps_promise(self) -> bool | None:
        """Return whether what was seen is within what the model promises; None if it promises nothing."""
        return None if self.claim is None else self.epsilon_lower <= self.claim[0]

    @property
    def largest_allowed_gap(self) -> float | None:
        """Return the largest difference of both shares that the promise allows; None without one."""
        return None if self.claim is None else dp_advantage(epsilon=self.claim[0], delta=self.claim[1])

    def remark(self, _: AttackResult, /) -> str:
        """Return who is found with few false alarms, and whether the promise is kept."""
        share = percent(self.rate_at_1_percent)
        found = f" Accusing one other person in a hundred wrongly, it finds {share} of the members."
        if self.claim is None:
            return found
        told = f"at least epsilon = {self.epsilon_lower:.2g} was seen"
        if self.keeps_promise:
            return f"{found} The model promises {self._promised()}; {told}, which is within it."
        return f"{found} The model promises {self._promised()}, but {told}: do not release it before this is explained."

    def _promised(self) -> str:
        epsilon, delta = self.claim or (0.0, 0.0)
        return f"epsilon = {epsilon:.4g}" + (f", delta = {delta:.2g}" if delta else "")

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return the figures of the curve, beside what the promise allows."""
        (low, high), most = self.auc_interval, self.largest_allowed_gap
        allowed = "" if most is None else f"; the promise allows {format_points(most)}"
        promised = "" if self.claim is None else f"; promised is {self.claim[0]:.4g}"
        yield "area under the curve", f"{self.auc:.3f}, between {low:.3f} and {high:.3f}; 0.5 is guessing"
        yield "members found at 1% false alarms", percent(self.rate_at_1_percent)
        yield "members found at 0.1% false alarms", percent(self.rate_at_01_percent)
        yield "largest gap", f"{format_points(self.largest_gap)} points{allowed}"
        yield "epsilon is at least", f"{self.epsilon_lower:.3g}{promised}"

    def draw(self, _: AttackResult, /) -> Figure:
        """Return the ROC curve beside guessing and, where the model promises privacy, the most that this allows."""
        from cloister.plotting import lines

        series = {
            "this attack": [(100 * x, 100 * y) for x, y in self.curve if x >= _GRID[0]],
            "guessing": [(100 * x, 100 * x) for x in _GRID],
        }
        if self.claim is not None:
            epsilon, delta = self.claim
            series[f"most that {self._promised()} allows"] = [
                (100 * x, 100 * dp_rate(x, epsilon=epsilon, delta=delta)) for x in _GRID
            ]
        return lines(
            series,
            title="Who was in the training data",
            x="others accused wrongly, %",
            y="members found, %",
            log_x=True,
            subtitle=f"{self.members:,} members, {self.non_members:,} others; area under the curve {self.auc:.3f}",
        )

    def illustrate(self, result: AttackResult, /) -> tuple[Block, ...]:
        return (Chart(self.draw(result), caption="Members found against others accused."),)


KINDS = ("confidence", "loss", "label", "shadow", "lira")
_SHADOWED = ("shadow", "lira")
_WORST = 20
_LEAST_RECORDS = 4
_DELTA = 1e-6
_KNOWS = {
    "confidence": "has a record with its label, asks the model about it, and sees the confidence in that label",
    "loss": "has a record with its label, asks the model about it, and sees the loss",
    "label": "has a record with its label, and sees which label the model gives to it and to slightly changed copies",
    "shadow": "has records with labels, does not know which were trained on, and trains models like this one on parts "
    "of them to learn how such models answer about members",
    "lira": "has records with labels, does not know which were trained on, and trains models like this one with and "
    "without each record to compare their confidence with this model's",
}
_ADVICE = (
    "train with differential privacy (cl.learn): it bounds what any attack of this kind can reach",
    "let the model remember less: shallower trees, larger leaves, stronger regularization, more data",
    "answer with labels or rounded confidences only if need be: it slows attackers down and stops none for good",
)


def membership(
    model: Any,
    members: Any,
    non_members: Any,
    *,
    kind: str = "lira",
    mode: str = "online",
    shadows: int = 40,
    background: Any = None,
    train: Trainer | None = None,
    target: str | None = None,
    copies: int = 10,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[MembershipDetails]:
    """Find out how well an attacker can tell who was in the training data of a model.

    Args:
        model: a fitted model with ``predict_proba`` or ``predict``.
        members: records of the training data: a pair (features, labels), or a table with ``target``.
        non_members: records of similar people that the model was not trained on, likewise.
        kind: "lira" (the strongest), "shadow", "confidence", "loss", or "label" for models that tell labels only.
        mode: "online" trains shadows on candidates; "offline" judges a record by models without it only.
        shadows: how many shadow models are trained, for "lira" and "shadow"; an even number.
        background: further records that the attacker has, likewise; give them if members and non-members are but a
            part of the training data, so that shadows learn from about as many rows as the model did.
        train: how a shadow is trained, ``train(features, labels) -> model``; by default a clone of the model.
        target: the column of labels, where tables are given.
        copies: how many changed copies of each record are asked about, for "label".
        confidence: of the intervals.
        random_state: None; an integer is for tests.

    Returns:
        The result. Its worst records are members, by their position among the given ones.

    Raises:
        ParameterError: if records, labels, model and settings do not belong together.

    >>> class Memory:
    ...     classes_ = [0, 1]
    ...     def predict_proba(self, X: object) -> object:
    ...         known = np.asarray(X)[:, 0] < 100
    ...         return np.where(known[:, None], [[0.0, 1.0]], [[0.5, 0.5]])
    >>> rows, ones = np.arange(200.0)[:, None], np.ones(100, dtype=int)
    >>> membership(Memory(), (rows[:100], ones), (rows[100:], ones), kind="confidence").auc
    1.0
    """
    validation.check_choice(kind, name="kind", allowed=KINDS)
    validation.check_choice(mode, name="mode", allowed=("online", "offline"))
    level = float(validation.check_confidence(confidence))
    changed = validation.check_count(copies, name="copies")
    source = random_source(random_state)
    inside = read_labeled(members, target=target, what="members")
    outside = read_labeled(non_members, target=target, what="non members")
    if min(len(inside), len(outside)) < _LEAST_RECORDS:
        raise ParameterError(
            "There are too few records to say anything.", fix="give some hundred members and as many non-members."
        )
    candidates, victim = inside.beside(outside), Victim(model)
    shadowed: list[Shadow] = []
    if kind in _SHADOWED:
        known = None if background is None else read_labeled(background, target=target, what="background")
        trainer = trainer_of(model, train, source)
        online = mode == "online"
        shadowed = shadows_of(trainer, candidates, count=shadows, background=known, online=online, source=source)
    scores = _scores(victim, shadowed, candidates, kind=kind, mode=mode, copies=changed, source=source)
    found = Scores(scores[: len(inside)], scores[len(inside) :])
    queries = victim.queries + sum(shadow.victim.queries for shadow in shadowed)
    return _result(found, kind=kind, claim=claim_of(model), confidence=level, queries=queries, source=source)


def claim_of(model: Any) -> tuple[float, float] | None:
    """Return the (epsilon, delta) that a model promises; None if it promises nothing of the kind."""
    guarantee = getattr(model, "guarantee_", None)
    if isinstance(guarantee, ZeroConcentratedDP):
        guarantee = zero_concentrated_to_approx(guarantee, delta=max(_DELTA, 2 * float(guarantee.delta)))
    if isinstance(guarantee, ApproxDP):
        return float(guarantee.epsilon), float(guarantee.delta)
    return (float(guarantee.epsilon), 0.0) if isinstance(guarantee, PureDP) else None


def _scores(
    victim: Victim,
    shadows: list[Shadow],
    rows: Labeled,
    *,
    kind: str,
    mode: str,
    copies: int,
    source: RandomSource,
) -> Floats:
    if kind == "lira":
        return likelihood_ratio_scores(victim, shadows, rows, online=mode == "online")
    if kind == "shadow":
        return shadow_scores(victim, shadows, rows, source=source)
    if kind == "label":
        return label_only_scores(victim, rows, copies=copies, source=source)
    return threshold_scores(victim, rows) if kind == "confidence" else loss_scores(victim, rows)


def _result(
    scores: Scores,
    *,
    kind: str,
    claim: tuple[float, float] | None,
    confidence: float,
    queries: int,
    source: RandomSource,
) -> AttackResult[MembershipDetails]:
    curve, halves = scores.curve(), scores.halves(source)
    found, accused = scores.count_held_out(halves)
    members, others = len(scores.members), len(scores.others)
    # Two shares are bounded at once, each with half of the error.
    both = 1 - (1 - confidence) / 2
    found_bounds = binomial_interval(found, members, confidence=both)
    accused_bounds = binomial_interval(accused, others, confidence=both)
    risks = scores.record_risks()
    exposed = np.lexsort((-scores.members, risks))[:_WORST]
    return AttackResult(
        attack=f"membership inference ({kind})",
        assumption=_KNOWS[kind],
        success=(found / members + 1 - accused / others) / 2,
        baseline=0.5,
        interval=((found_bounds[0] + 1 - accused_bounds[1]) / 2, (found_bounds[1] + 1 - accused_bounds[0]) / 2),
        confidence=confidence,
        trials=members + others,
        queries=queries,
        mitigation=_ADVICE,
        worst=tuple((int(place), float(scores.members[place])) for place in exposed),
        details=MembershipDetails(
            kind=kind,
            members=members,
            non_members=others,
            auc=curve.area,
            auc_interval=scores.area_interval(confidence=confidence),
            rate_at_1_percent=curve.rate_at(0.01),
            rate_at_01_percent=curve.rate_at(0.001),
            largest_gap=curve.gap,
            epsilon_lower=epsilon_lower_bound(halves, delta=0.0 if claim is None else claim[1], confidence=confidence),
            claim=claim,
            curve=curve.points(),
            scores=tuple(np.concatenate([scores.members, scores.others]).tolist()),
            risks=tuple(risks.tolist()),
        ),
    )
