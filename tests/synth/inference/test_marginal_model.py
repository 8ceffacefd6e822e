from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from cloister.core.random import SeededRandomSource, SystemRandomSource
from cloister.errors import ModelError, ParameterError
from cloister.synth.inference._junction_tree import junction_tree
from cloister.synth.inference._marginal_model import MarginalModel, Stage, draw
from tests.synth.inference.exhaustive import joint_of, marginal_of

SOURCE = SystemRandomSource()


def siblings() -> MarginalModel:
    """Return a model of two columns that are independent given a third."""
    given = np.array([[0.3, 0.2], [0.1, 0.4]])
    tree = junction_tree((2, 2, 2), [(0, 1), (1, 2)])
    tables = tuple(given if clique == (0, 1) else given.T / given.T.sum() for clique in tree.cliques)
    shared = tables[0].sum(axis=tuple(axis for axis, column in enumerate(tree.cliques[0]) if column != 1))
    other = tables[1] / tables[1].sum(axis=1 if tree.cliques[1][0] == 1 else 0, keepdims=True)
    other = other * (shared[:, None] if tree.cliques[1][0] == 1 else shared)
    return MarginalModel(tree, (tables[0], other), 1000.0)


def test_marginals_of_a_sample_are_those_of_the_model_but_for_rounding() -> None:
    model = siblings()
    codes = model.sample(1000, SOURCE)
    for clique, table in zip(model.tree.cliques, model.cliques, strict=True):
        counts = np.zeros(table.shape)
        np.add.at(counts, tuple(codes[:, column] for column in clique), 1)
        assert np.abs(counts - 1000 * table).max() <= 2


def dependence(codes: np.ndarray) -> float:
    """Return the p-value of independence of columns 0 and 2 given column 1."""
    statistic, freedom = 0.0, 0
    for value in (0, 1):
        inside = codes[codes[:, 1] == value]
        table = np.zeros((2, 2))
        np.add.at(table, (inside[:, 0], inside[:, 2]), 1)
        found = stats.chi2_contingency(table, correction=False)
        statistic, freedom = statistic + found.statistic, freedom + found.dof
    return float(stats.chi2.sf(statistic, freedom))


@pytest.mark.statistical
def test_siblings_are_independent_given_what_they_share() -> None:
    codes = np.vstack([siblings().sample(500, SOURCE) for _ in range(100)])
    assert dependence(codes) > 1e-9


def test_without_the_permutation_siblings_would_be_dependent(monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.synth.inference import _marginal_model as marginal_model

    plain = marginal_model.uniforms
    monkeypatch.setattr(marginal_model, "uniforms", lambda source, count: plain(source, count) * (count < 500))
    assert dependence(siblings().sample(5000, SOURCE)) < 1e-9


def test_rows_come_in_no_order() -> None:
    codes = siblings().sample(2000, SOURCE)
    first, second = codes[:1000, 1].mean(), codes[1000:, 1].mean()
    assert abs(first - second) < 0.15


def test_cells_without_probability_are_never_drawn() -> None:
    table = np.array([0.0, 0.5, 0.0, 0.5, 0.0])
    codes = draw([Stage((), (0,), table)], (5,), 10_000, SOURCE)
    assert set(codes[:, 0]) == {1, 3}


def test_a_group_that_the_model_does_not_have_is_drawn_evenly() -> None:
    stages = [Stage((), (0,), np.array([1.0, 0.0])), Stage((0,), (1,), np.array([[0.0, 0.0], [1.0, 0.0]]))]
    codes = draw(stages, (2, 2), 100, SOURCE)
    assert np.bincount(codes[:, 1]).tolist() == [50, 50]


def test_no_rows_are_no_rows() -> None:
    assert siblings().sample(0, SOURCE).shape == (0, 3)


def test_a_seed_gives_the_same_rows() -> None:
    first, second = (siblings().sample(50, SeededRandomSource(1)) for _ in range(2))
    assert np.array_equal(first, second)


def test_a_condition_is_bayes_rule() -> None:
    model = siblings()
    joint = joint_of(model)
    wanted = np.array([False, True])
    narrowed = model.given({0: wanted})
    share = joint[1].sum()
    assert narrowed.total == pytest.approx(1000 * share)
    assert narrowed.marginal([2]) == pytest.approx(marginal_of(joint[1] / share, [1]))
    assert set(narrowed.sample(200, SOURCE)[:, 0]) == {1}


def test_impossible_conditions_are_refused() -> None:
    with pytest.raises(ParameterError, match="ask for values that can occur together"):
        siblings().given({0: np.array([False, False])})
    with pytest.raises(ParameterError, match="name a column of the model"):
        siblings().given({7: np.array([True])})


def test_a_model_comes_back_from_its_plain_values() -> None:
    model = siblings()
    again = MarginalModel.from_dict(model.to_dict())
    assert joint_of(again) == pytest.approx(joint_of(model))


@pytest.mark.parametrize(
    "change",
    [
        {"parents": [0, -1]},
        {"parents": [-1, -1]},
        {"groups": [[0, 1], [0, 1]]},
        {"tables": [np.ones((2, 2))]},
        {"tables": [np.ones((2, 2)), np.ones((3, 2))]},
        {"tables": [np.ones((2, 2)), -np.ones((2, 2))]},
        {"sizes": [2, 2, 2, 2]},
    ],
)
def test_plain_values_that_do_not_belong_together_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="use the file as it was saved"):
        MarginalModel.from_dict({**siblings().to_dict(), **change})
