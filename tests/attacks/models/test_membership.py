from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import special
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import cloister as cl
from cloister import learn
from cloister.attacks import AttackResult, MembershipDetails, membership
from cloister.attacks.models._roc_curves import Scores, dp_advantage, dp_rate, epsilon_lower_bound
from cloister.attacks.models.membership import claim_of
from cloister.core.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, ParameterError, ParameterTypeError, UnknownColumnError
from tests.support.model_rows import noisy_halves, normals

ROWS, LABELS = noisy_halves(600, 6, seed=7)
INSIDE = ROWS[:300], LABELS[:300]
OUTSIDE = ROWS[300:], LABELS[300:]


def seeded(seed: int = 1) -> SeededRandomSource:
    return SeededRandomSource(seed)


def forest(trees: int = 20) -> Any:
    return RandomForestClassifier(n_estimators=trees, random_state=0).fit(*INSIDE)


def attack(model: Any, **options: Any) -> AttackResult[MembershipDetails]:
    return membership(model, INSIDE, OUTSIDE, random_state=seeded(), **options)


# What it finds --------------------------------------------------------------------------------------------------------


def test_a_likelihood_ratio_finds_members_of_a_forest_better_than_a_threshold() -> None:
    model = forest()
    simple, strong = attack(model, kind="confidence"), attack(model, shadows=16)
    assert 0.6 < simple.auc < strong.auc
    assert strong.auc > 0.85
    assert strong.succeeded
    assert strong.interval[0] <= strong.success <= strong.interval[1]
    assert strong.rate_at_01_percent <= strong.rate_at_1_percent
    assert strong.epsilon_lower > 1


@pytest.mark.parametrize("options", [{"mode": "offline"}, {"kind": "shadow"}], ids=["offline", "shadow"])
def test_other_shadow_attacks_find_members_too(options: dict[str, Any]) -> None:
    assert attack(forest(), shadows=8, **options).auc > 0.75


def test_background_takes_the_place_of_candidates_offline() -> None:
    background = noisy_halves(600, 6, seed=11)
    offline = attack(forest(), shadows=8, mode="offline", background=background)
    online = attack(forest(), shadows=8, background=background)
    assert offline.auc > 0.7
    assert online.auc > 0.7
    with pytest.raises(ParameterError, match='use kind="lira"'):
        attack(forest(), shadows=4, kind="shadow", mode="offline", background=background)


def test_labels_alone_give_members_away_by_the_gap_of_accuracies() -> None:
    tree = DecisionTreeClassifier(random_state=0).fit(*INSIDE)
    result = attack(tree, kind="label", copies=0)
    assert result.largest_gap == pytest.approx(tree.score(*INSIDE) - tree.score(*OUTSIDE))
    assert attack(LinearSVC().fit(*INSIDE), kind="label").queries == 600 * 11


def test_a_model_that_learns_two_numbers_gives_nobody_away() -> None:
    labels = np.tile([0, 1], 300)
    model = LogisticRegression(C=1e-9).fit(ROWS, labels)
    result = membership(model, (ROWS[:300], labels[:300]), (ROWS[300:], labels[300:]), shadows=8, random_state=seeded())
    assert 0.4 < result.auc < 0.6
    assert not result.succeeded
    assert "found no more than guessing" in result.verdict


def test_models_of_numbers_are_attacked_by_their_errors() -> None:
    numbers = ROWS[:, 0] + normals(600, seed=12)
    inside, outside = (ROWS[:300], numbers[:300]), (ROWS[300:], numbers[300:])
    tree = DecisionTreeRegressor(random_state=0, min_samples_leaf=2).fit(*inside)
    line = LinearRegression().fit(*inside)
    for kind in ("confidence", "loss"):
        assert membership(tree, inside, outside, kind=kind, random_state=seeded()).auc > 0.8
    assert membership(tree, inside, outside, shadows=8, random_state=seeded()).auc > 0.8
    assert membership(line, inside, outside, shadows=8, random_state=seeded()).auc < 0.65


def test_loss_and_confidence_rank_a_classifier_alike() -> None:
    model = forest()
    assert attack(model, kind="loss").auc == pytest.approx(attack(model, kind="confidence").auc)


def private_forest(rows: Any, labels: Any, **options: Any) -> Any:
    return learn.PrivateForest(epsilon=1, bounds=(-4, 4), classes=[0, 1], **options).fit(rows, labels)


def test_a_private_forest_keeps_its_promise() -> None:
    source = seeded(5)
    result = attack(
        private_forest(*INSIDE, random_state=source),
        shadows=8,
        train=lambda rows, labels: private_forest(rows, labels, random_state=source),
    )
    assert result.claim == (1.0, 0.0)
    assert result.keeps_promise
    assert not result.succeeded
    assert "promises epsilon = 1" in result.verdict
    assert result.largest_allowed_gap == pytest.approx(math.tanh(0.5))
    assert "most that epsilon = 1 allows" in str(result.plot().to_dict())


def test_shadows_of_a_private_model_pay_nothing() -> None:
    ledger = cl.open_ledger("memory:")
    ledger.open_account("people", budget=cl.Budget(epsilon=1))
    model = private_forest(*INSIDE, ledger=ledger, dataset="people")
    assert attack(model, shadows=2).claim == (1.0, 0.0)


def test_a_false_promise_is_seen() -> None:
    model = forest()
    model.guarantee_ = PureDP(epsilon=0.1)
    result = attack(model, shadows=16)
    assert result.keeps_promise is False
    assert "do not release it" in result.verdict


def test_tables_and_frames_are_read_by_the_name_of_the_label() -> None:
    frame = pd.DataFrame(ROWS, columns=list("abcdef")).assign(y=LABELS)
    model = RandomForestClassifier(20, random_state=0).fit(frame[:300].drop(columns="y"), frame["y"][:300])
    result = membership(model, frame[:300], frame[300:], target="y", shadows=4, random_state=seeded())
    opened = membership(
        model, cl.open_table(frame[:300]), cl.open_table(frame[300:]), target="y", shadows=4, random_state=seeded()
    )
    assert result.auc == opened.auc > 0.75
    with pytest.raises(UnknownColumnError, match="There is no column"):
        membership(model, frame[:300], frame[300:], target="z")


def test_worst_records_are_positions_of_members_and_stay_with_the_custodian() -> None:
    result = attack(forest(), shadows=8)
    assert all(0 <= place < 300 for place, _ in result.worst)
    best = max(result.scores[:300])
    assert result.worst[0][1] == best
    assert len(result.risks) == 300
    shown = json.dumps(result.to_dict()) + repr(result) + result.report().to_markdown() + str(result.summary())
    assert repr(best) not in shown
    assert '"schema": "cloister.membership/1"' in shown
    assert "members found at 1% false alarms" in shown


def test_a_trainer_stands_for_a_clone() -> None:
    class Mine:
        def __init__(self, rows: Any, labels: Any) -> None:
            self.inner = DecisionTreeClassifier(random_state=0).fit(rows, labels)

        def predict_proba(self, rows: Any) -> Any:
            return self.inner.predict_proba(rows)

    model = Mine(*INSIDE)
    assert attack(model, shadows=4, train=Mine).auc > 0.6
    with pytest.raises(ParameterError, match="give train="):
        attack(model, shadows=4)


def test_shadows_may_miss_a_rare_class() -> None:
    labels = LABELS.copy()
    labels[5] = 2
    model = RandomForestClassifier(10, random_state=0).fit(ROWS[:300], labels[:300])
    result = membership(model, (ROWS[:300], labels[:300]), (ROWS[300:], labels[300:]), shadows=4, random_state=seeded())
    assert result.auc > 0.7


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "fix"),
    [
        ({"members": ROWS}, r"write members=\(X, y\)"),
        ({"members": (ROWS[:0], LABELS[:0])}, "at least a few rows"),
        ({"members": (ROWS[:3], LABELS[:3])}, "some hundred members"),
        ({"members": (ROWS, LABELS[:5])}, "as many labels as rows"),
        ({"members": (np.where(ROWS > 2, np.nan, ROWS), LABELS)}, "fill them in"),
        ({"members": (ROWS, np.where(LABELS, np.nan, 1.0))}, "name their class"),
        ({"members": (ROWS[:, :3], LABELS)}, "same columns"),
        ({"members": ([[1], [2, 3]], [0, 1])}, "two-dimensional"),
        ({"members": (ROWS, LABELS + 7)}, "as the model was trained on"),
        ({"members": (ROWS, np.full(600, "x"))}, "as the model was trained on"),
        ({"kind": "guess"}, "use one of"),
        ({"mode": "sometimes"}, "use one of"),
        ({"kind": "lira", "shadows": 3}, "shadows=4"),
        ({"kind": "lira", "shadows": 4, "train": 3}, "give train="),
        ({"kind": "lira", "shadows": 4, "train": lambda *_: 1 / 0}, "give more members"),
        ({"model": object()}, "predict_proba or predict"),
        ({"model": RandomForestClassifier()}, "fit the model first"),
        ({"model": LinearSVC().fit(ROWS, np.where(LABELS, "a", "b"))}, 'use kind="label"'),
        ({"target": "y"}, "a data frame, or a table"),
        ({"confidence": 2}, "confidence=0.95"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_fix(change: dict[str, Any], fix: str) -> None:
    given = {"model": forest(2), "members": INSIDE, "non_members": OUTSIDE, "kind": "confidence", **change}
    with pytest.raises(CloisterError, match=fix):
        membership(given.pop("model"), given.pop("members"), given.pop("non_members"), **given)


def test_a_probability_that_is_none_is_refused() -> None:
    class Broken:
        def predict_proba(self, rows: Any) -> Any:
            return np.full((len(rows), 2), np.nan)

    with pytest.raises(ParameterError, match="shape"):
        attack(Broken(), kind="confidence")
    assert issubclass(ParameterTypeError, CloisterError)


# Curves ---------------------------------------------------------------------------------------------------------------

SCORES = st.lists(st.integers(0, 5).map(float), min_size=2, max_size=12)


@given(members=SCORES, others=SCORES)
def test_the_area_is_how_often_a_member_scores_higher(members: list[float], others: list[float]) -> None:
    scores = Scores(np.array(members), np.array(others))
    wins = [(a > b) + (a == b) / 2 for a in members for b in others]
    curve = scores.curve()
    assert curve.area == pytest.approx(sum(wins) / len(wins))
    low, high = scores.area_interval(confidence=0.95)
    assert low <= curve.area + 1e-12
    assert high >= curve.area - 1e-12
    assert curve.points()[0] == (0, 0)
    assert curve.points()[-1] == (1, 1)


@given(members=SCORES, others=SCORES, most=st.floats(0, 1))
def test_the_rate_is_the_best_of_all_thresholds(members: list[float], others: list[float], most: float) -> None:
    scores = Scores(np.array(members), np.array(others))
    best = 0.0
    for threshold in [*range(7)]:
        found, accused = scores.rates_above(threshold)
        if accused / len(others) <= most + 1e-12:
            best = max(best, found / len(members))
    assert scores.curve().rate_at(most) == pytest.approx(best)


@given(epsilon=st.floats(0, 20), delta=st.floats(0, 0.5), rate=st.floats(0, 1))
def test_the_bound_of_privacy_is_symmetric_and_gives_the_largest_gap(epsilon: float, delta: float, rate: float) -> None:
    most = dp_rate(rate, epsilon=epsilon, delta=delta)
    assert rate - 1e-9 <= most <= math.exp(epsilon) * rate + delta + 1e-9
    assert most - rate <= dp_advantage(epsilon=epsilon, delta=delta) + 1e-9


def test_epsilon_is_not_found_where_there_is_none_and_found_where_there_is() -> None:
    alike = Scores(normals(4000, seed=1), normals(4000, seed=2))
    laplace = [
        np.sign(draw) * -np.log1p(-special.erf(np.abs(draw) / 2**0.5))
        for draw in (normals(20_000, seed=3), normals(20_000, seed=4))
    ]
    apart = Scores(laplace[0] + 1, laplace[1])
    nothing = epsilon_lower_bound(alike.halves(seeded()), delta=0, confidence=0.999)
    something = epsilon_lower_bound(apart.halves(seeded()), delta=0, confidence=0.999)
    assert nothing < 0.05
    assert 0.8 < something < 1.0


def test_every_promise_is_read() -> None:
    class Model:
        guarantee_: Any = PureDP(epsilon=2)

    model = Model()
    assert claim_of(model) == (2.0, 0.0)
    model.guarantee_ = ApproxDP(epsilon=1, delta=1e-5)
    assert claim_of(model) == (1.0, 1e-5)
    model.guarantee_ = ZeroConcentratedDP(rho=0.1)
    epsilon, delta = claim_of(model) or (0, 0)
    assert 1 < epsilon < 4
    assert delta == pytest.approx(1e-6)
    assert claim_of(object()) is None
