from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import cloister as cl
from cloister.accounting.events import DiscreteLaplaceEvent, GaussianEvent, PureEvent, RepeatedEvent
from cloister.core.random import SeededRandomSource, random_source
from cloister.errors import BudgetExceededError, MissingBoundsError, OutsideDomainError, ParameterError
from cloister.learn import PrivateForest, PrivateTree
from cloister.learn.trees import forest as module
from cloister.learn.trees._splits import Sample
from cloister.testing import check_distribution, check_scale
from cloister.testing.distributions import categorical, discrete_gaussian, discrete_laplace
from tests.learn.trees.models import learned, planned, rows_of, unexpected

BOTH = [PrivateTree, PrivateForest]
COMMON = {"bounds": {"age": (0, 100)}, "domain": {"color": ["red", "blue"]}, "classes": ["no", "yes"]}


def _frame(rows=600):
    place = np.arange(rows)
    frame = pd.DataFrame({"age": place * 37 % 100, "color": np.where(place % 3 == 0, "red", "blue")})
    return frame, np.where((frame["age"] > 50) & (frame["color"] == "blue"), "yes", "no")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(PrivateTree, {"depth": 3}), (PrivateForest, {"depth": 6, "trees": 30})],
    ids=["tree", "forest"],
)
def test_learns_what_is_clear(kind, settings) -> None:
    X, y = _frame(3000)
    model = kind(epsilon=20, **settings, **COMMON).fit(X, y)
    assert model.score(X, y) > (y == "no").mean() + 0.05
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (3000, 2)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert model.guarantee_.epsilon == 20
    assert model.guarantee_.holds


@pytest.mark.parametrize("kind", BOTH)
def test_keeps_nothing_but_choices_and_noisy_leaves(kind) -> None:
    X, y = _frame(60)
    model = kind(epsilon=1, **COMMON).fit(X, y)
    assert set(kind.learned) == {"splits_", "probabilities_"}
    assert unexpected(model) == set()
    assert model.splits_.dtype == np.int64


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
@pytest.mark.parametrize("kind", BOTH)
def test_undeclared_values_go_their_own_way(kind) -> None:
    X, y = _frame(60)
    X.loc[:9, "color"] = "green"
    model = kind(epsilon=1, **COMMON).fit(X, y)
    assert np.isfinite(model.predict_proba(pd.DataFrame({"age": [5], "color": ["mauve"]}))).all()


@pytest.mark.parametrize("kind", BOTH)
def test_a_class_may_be_missing_and_epsilon_tiny(kind) -> None:
    X, _ = _frame(30)
    model = kind(epsilon=1e-6, **COMMON).fit(X, ["no"] * 30)
    assert set(model.predict(X)) <= {"no", "yes"}
    clear = kind(epsilon=50, **COMMON).fit(X, ["no"] * 30)
    assert set(clear.predict(X)) == {"no"}


def test_rules_follow_epsilon() -> None:
    def shape(kind, epsilon):
        _, plan = planned(kind(epsilon=epsilon))
        return plan.settings.trees, plan.settings.growth.depth

    assert [shape(PrivateTree, epsilon) for epsilon in (1e-6, 0.1, 1, 10, 10**6)] == [
        (1, 1), (1, 4), (1, 5), (1, 6), (1, 8)
    ]  # fmt: skip
    assert [shape(PrivateForest, epsilon) for epsilon in (1e-6, 0.1, 1, 10, 10**6)] == [
        (1, 1), (1, 3), (3, 4), (8, 6), (30, 8)
    ]  # fmt: skip


@pytest.mark.parametrize("criterion", ["gini", "majority"])
@pytest.mark.parametrize("rows", ["disjoint", "shared"])
def test_greedy_forests_pay_for_every_choice(criterion: str, rows: str) -> None:
    model = PrivateForest(epsilon=3, delta=1e-6, trees=4, depth=5, rows=rows, criterion=criterion)
    _, plan = planned(model)
    choices, leaves = (step.event for step in plan.steps)
    assert isinstance(choices, RepeatedEvent)
    assert isinstance(choices.event, PureEvent)
    assert isinstance(leaves, DiscreteLaplaceEvent)
    assert choices.count == (5 if rows == "disjoint" else 20)
    assert choices.event.epsilon * choices.count + leaves.epsilon == 3
    assert leaves.sensitivity == (1 if rows == "disjoint" else 4)


def test_random_splits_leave_everything_to_the_leaves() -> None:
    _, pure = planned(PrivateForest(epsilon=2, trees=4, splits="random", rows="shared"))
    assert [step.event for step in pure.steps] == [DiscreteLaplaceEvent(scale=Fraction(2), sensitivity=4)]
    _, apart = planned(PrivateForest(epsilon=2, trees=4, splits="random"))
    assert [step.event for step in apart.steps] == [DiscreteLaplaceEvent(scale=Fraction(1, 2), sensitivity=1)]
    model = PrivateForest(epsilon=2, delta=1e-6, trees=4, splits="random", rows="shared")
    _, approximate = planned(model)
    assert [step.event for step in approximate.steps] == [
        GaussianEvent(squared_multiplier=model._calibration().squared_multiplier)
    ]


def test_replacing_a_row_halves_epsilon() -> None:
    _, plan = planned(PrivateTree(epsilon=2, adjacency="replace", depth=1))
    choices, leaves = (step.event for step in plan.steps)
    assert choices.event.epsilon + leaves.epsilon == 1


# Noise ---------------------------------------------------------------------------------------------------------------


def _noise(monkeypatch, model):
    """Return a function that draws the noise of leaves, as a fit adds it."""
    seen: list[np.ndarray] = []
    monkeypatch.setattr(module, "leaf_probabilities", lambda noisy, **_: seen.append(noisy) or noisy)
    facts, plan = planned(model)

    def draw(size):
        seen.clear()
        while sum(part.size for part in seen) < size:
            learned(model, facts, plan, rows_of([]))
        return np.concatenate([part.ravel() for part in seen])[:size]

    return draw, plan


@pytest.mark.statistical
def test_leaf_noise_has_the_stated_scale(monkeypatch) -> None:
    model = PrivateForest(epsilon=2, trees=8, depth=10, splits="random", rows="shared", bins=4)
    draw, _ = _noise(monkeypatch, model)
    check_scale(lambda size: draw(size).astype(np.int64), discrete_laplace, scale=4.0)


@pytest.mark.statistical
def test_gaussian_leaf_noise_has_the_stated_scale(monkeypatch) -> None:
    model = PrivateForest(epsilon=2, delta=1e-6, trees=8, depth=10, splits="random", rows="shared", bins=4)
    draw, plan = _noise(monkeypatch, model)
    noise = plan.settings.leaf_noise
    assert noise.refinement > 1
    check_scale(
        lambda size: np.rint(draw(size) * noise.refinement).astype(np.int64),
        discrete_gaussian,
        scale=noise.deviation * noise.refinement,
    )


# Disjoint rows -------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_every_row_goes_to_one_tree_by_a_fair_die() -> None:
    weights = np.array([3, 0, 1, 9996])
    dealt = module._deal_rows(weights, 4, random_source())
    assert (dealt.sum(axis=0) == weights).all()
    check_distribution(np.repeat(np.arange(4), dealt.sum(axis=1)), categorical(dict.fromkeys(range(4), 0.25)))


def test_one_more_row_changes_what_one_tree_sees() -> None:
    codes, classes = np.arange(20).reshape(-1, 1) % 4, np.arange(20) % 2
    _, plan = planned(PrivateForest(epsilon=1, trees=3))

    def parts(count, seed):
        sample = Sample(codes[:count], classes[:count], np.ones(count, dtype=np.int64))
        return [part.codes.tolist() for part in module._parts(sample, plan.settings, SeededRandomSource(seed))]

    for seed in range(10):
        pairs = zip(parts(19, seed), parts(20, seed), strict=True)
        changed = [(before, after) for before, after in pairs if before != after]
        assert len(changed) == 1
        assert len(changed[0][1]) == len(changed[0][0]) + 1


def test_trees_split_a_share_of_the_features() -> None:
    facts, plan = planned(PrivateForest(epsilon=1, trees=6, depth=4, max_features=0.5, splits="random"), width=4)
    model = learned(PrivateForest(epsilon=1), facts, plan, rows_of([(1, 2, 3, 0, 1)], width=4))
    assert all(len(np.unique(splits[:, 0])) <= 2 for splits in model.splits_)


# Tables, ledger, refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BOTH)
def test_a_table_is_learned_from_as_its_rows_are(kind) -> None:
    X, y = _frame()
    table = cl.open_table(X.assign(label=y))
    arguments = {**COMMON, "epsilon": 0.5, "depth": 3}
    if kind is PrivateForest:
        arguments |= {"trees": 2, "rows": "shared"}
    models = [
        kind(**arguments, features=["age", "color"], random_state=SeededRandomSource(7)).fit(*data)
        for data in ((X, y), (table, "label"))
    ]
    assert (models[0].splits_ == models[1].splits_).all()
    assert (models[0].probabilities_ == models[1].probabilities_).all()
    assert not models[0].guarantee_.holds


@pytest.mark.parametrize("kind", BOTH)
def test_the_ledger_is_charged_once_per_fit(kind) -> None:
    X, y = _frame(30)
    ledger = cl.open_ledger("memory:")
    ledger.open_account("d", budget=cl.Budget(epsilon=3))
    model = kind(epsilon=2, ledger=ledger, dataset="d", **COMMON).fit(X, y)
    assert ledger.spent("d").epsilon == 2
    with pytest.raises(BudgetExceededError):
        model.fit(X, y)
    assert ledger.spent("d").epsilon == 2


@pytest.mark.parametrize("kind", BOTH)
def test_public_facts_are_required(kind) -> None:
    X, y = _frame(30)
    with pytest.raises(MissingBoundsError, match="bounds="):
        kind(classes=["no", "yes"], domain=COMMON["domain"]).fit(X, y)
    with pytest.raises(MissingBoundsError, match="classes="):
        kind(bounds=COMMON["bounds"], domain=COMMON["domain"]).fit(X, y)
    with pytest.raises(OutsideDomainError):
        kind(**{**COMMON, "classes": ["no", "maybe"]}).fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ({"depth": 15}, "depth=8"),
        ({"depth": 0}, "at least 1"),
        ({"splits": "best"}, "greedy"),
        ({"criterion": "entropy"}, "gini"),
        ({"trees": 0}, "at least 1"),
        ({"trees": 1001}, "fewer trees"),
        ({"rows": "same"}, "disjoint"),
        ({"max_features": 1.5}, "between 0 and 1"),
    ],
)
def test_odd_parameters_are_refused_before_anything_is_paid(wrong, fix: str) -> None:
    X, y = _frame(30)
    ledger = cl.open_ledger("memory:")
    ledger.open_account("d", budget=cl.Budget(epsilon=3))
    with pytest.raises(ParameterError, match=fix):
        PrivateForest(**{**COMMON, **wrong}, ledger=ledger, dataset="d").fit(X, y)
    assert ledger.spent("d").epsilon == 0
