"""Membership inference: tell from a model's answers whether a person's record was in its training data.

That can be a secret in itself, as with the patients of a clinic, and it is the measure of everything else that a model
remembers of a person: what differential privacy bounds. See `scoring` for the attacks and `curves` for the figures.
Returning labels only, rounding and regularizing make the simplest attacks weaker and stop none of them for good;
training with differential privacy bounds them all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.accounting.conversions import zero_concentrated_to_approx
from cloister.attacks.confidence import Floats, binomial_interval
from cloister.attacks.models.curves import Scores, epsilon_lower_bound
from cloister.attacks.models.membership_result import MembershipResult
from cloister.attacks.models.reading import Labeled, Victim, read_labeled
from cloister.attacks.models.scoring import (
    label_only_scores,
    likelihood_ratio_scores,
    loss_scores,
    shadow_scores,
    threshold_scores,
)
from cloister.attacks.models.shadows import Shadow, Trainer, shadows_of, trainer_of
from cloister.core import validation
from cloister.core.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.errors import ParameterError

__all__ = ["membership"]

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
    confidence: object = 0.95,
    random_state: RandomState = None,
) -> MembershipResult:
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
    ...     def predict_proba(self, X):
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
) -> MembershipResult:
    curve, halves = scores.curve(), scores.halves(source)
    found, accused = scores.held_out(halves)
    members, others = len(scores.members), len(scores.others)
    both = 1 - (1 - confidence) / 2
    found_bounds = binomial_interval(found, members, confidence=both)
    accused_bounds = binomial_interval(accused, others, confidence=both)
    risks = scores.record_risks()
    exposed = np.lexsort((-scores.members, risks))[:_WORST]
    return MembershipResult(
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
    )
