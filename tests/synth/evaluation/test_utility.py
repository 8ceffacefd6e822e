from __future__ import annotations

import sys

import numpy as np
import pytest

from cloister.core.random import SeededRandomSource
from cloister.errors import DataError, MissingExtraError, ParameterError, UnknownColumnError
from cloister.synth.evaluation._coded_tables import Tables, read_tables
from cloister.synth.evaluation._models import CLASSIFIERS, REGRESSORS
from cloister.synth.evaluation._propensity import measure_propensity
from cloister.synth.evaluation._utility import (
    ModelScores,
    TrainingUtility,
    area,
    measure_clusters,
    measure_training,
    order_kept,
)
from tests.synth.evaluation.small_tables import compared, people

QUICK = ("logistic regression", "tree")


def _source() -> SeededRandomSource:
    return SeededRandomSource(5)


def _people(*, synthetic: int = 2, holdout: int | None = None) -> Tables:
    control = None if holdout is None else people(300, seed=holdout)
    return read_tables(people(400, seed=1), people(400, seed=synthetic), holdout=control)


def test_propensity_by_hand() -> None:
    # Real rows are red in 30 of 40 cases, synthetic ones in 10: a tree says 3/4 and 1/4, each a quarter from one half.
    real = [("x", "red", 0)] * 30 + [("x", "blue", 0)] * 10
    synthetic = [("x", "red", 0)] * 10 + [("x", "blue", 0)] * 30
    logistic, tree = measure_propensity(compared(real, synthetic), _source(), most=1000)
    assert tree.pmse == pytest.approx(1 / 16)
    assert logistic.pmse == pytest.approx(1 / 16, rel=0.02)
    assert tree.ratio is not None
    assert tree.ratio > 3
    assert tree.rows == 40


def test_propensity_of_equal_and_of_different_tables() -> None:
    rows = [("x", "red", 0), ("y", "blue", 1), ("z", "red", 2)] * 30
    same = measure_propensity(compared(rows, rows), _source(), most=1000)
    assert [item.pmse for item in same] == pytest.approx([0, 0], abs=1e-12)
    apart = measure_propensity(compared(rows, [("y", "red", 3)] * 90), _source(), most=1000)
    assert apart[1].pmse == pytest.approx(0.25)


def test_propensity_of_two_samples_is_near_its_null() -> None:
    for item in measure_propensity(_people(), _source(), most=1000):
        assert item.ratio is not None
        assert 0.4 < item.ratio < 2.5


def test_scores_by_hand() -> None:
    # Size tells the color exactly in both tables, and the letter says nothing.
    rows = [("x", "red", 0), ("y", "blue", 3), ("z", "red", 1), ("x", "blue", 2), ("z", "red", 0)] * 20
    found = measure_training(compared(rows, rows, rows), "color", _source(), models=["tree"], most=1000)
    (scores,) = found.scores
    assert (scores.real, scores.synthetic, scores.reverse, scores.real_auc) == (1, 1, 1, 1)
    assert scores.baseline == pytest.approx(0.6)
    assert (found.gap, found.task, found.has_holdout, found.tested) == (0, "classification", True, 100)


def test_a_table_that_turns_everything_around_loses_more_than_everything() -> None:
    rows = [("x", "red", 0), ("y", "blue", 3), ("z", "red", 1)] * 20
    turned = [(letter, "blue" if color == "red" else "red", size) for letter, color, size in rows]
    found = measure_training(compared(rows, turned, rows), "color", _source(), models=["tree"], most=1000)
    (scores,) = found.scores
    assert (scores.real, scores.synthetic, scores.synthetic_auc) == (1, 0, 0)
    assert scores.gap == pytest.approx((1 - 0) / (1 - 2 / 3))


def test_a_table_with_one_class_guesses_it() -> None:
    rows = [("x", "red", 0), ("y", "blue", 3), ("z", "red", 1)] * 20
    found = measure_training(compared(rows, [("x", "red", 0)] * 60, rows), "color", _source(), models=QUICK, most=1000)
    assert [item.synthetic for item in found.scores] == pytest.approx([2 / 3, 2 / 3])
    assert [item.synthetic_auc for item in found.scores] == [0.5, 0.5]
    assert found.order_kept is None


def test_regression_by_hand() -> None:
    # The size is 0 for x and 2 for y; a line through the letters is exact. The mean of the training rows is 1.
    rows = [("x", "red", 0), ("y", "blue", 2)] * 30
    other = [("x", "red", 1), ("y", "blue", 3)] * 30
    found = measure_training(
        compared(rows, other, rows), "size", _source(), task="regression", models=["tree"], most=1000
    )
    (scores,) = found.scores
    assert scores.real == pytest.approx(1)
    assert (scores.real_error, scores.synthetic_error) == (pytest.approx(0), pytest.approx(1))
    assert scores.synthetic == pytest.approx(0)
    assert scores.baseline == pytest.approx(0)
    assert scores.reverse == pytest.approx(0)
    assert scores.gap == pytest.approx(1)


@pytest.mark.parametrize(("target", "models"), [("ill", CLASSIFIERS), ("pay", REGRESSORS)])
def test_every_model_learns_from_another_sample_what_it_learns_from_the_first(
    target: str, models: tuple[str, ...]
) -> None:
    found = measure_training(_people(holdout=3), target, _source(), most=1000)
    assert tuple(item.model for item in found.scores) == models
    for item in found.scores:
        assert item.real > item.baseline + 0.1
        assert item.gap is not None
        assert abs(item.gap) < 0.5
        assert set(item.to_dict()) >= {"model", "real", "synthetic", "reverse", "baseline", "gap"}


def test_without_a_holdout_rows_are_set_aside() -> None:
    found = measure_training(_people(), "ill", _source(), models=["tree"], most=1000)
    assert (found.trained, found.tested, found.has_holdout) == ((280, 280), 120, False)


def test_gap_is_not_defined_where_nothing_is_learned() -> None:
    scores = ModelScores(model="tree", real=0.5, synthetic=0.4, reverse=0.5, baseline=0.5)
    assert scores.gap is None
    whole = TrainingUtility(
        target="a", task="classification", scores=(scores,), trained=(1, 1), tested=1, has_holdout=False
    )
    assert whole.gap is None
    assert whole.baseline == 0.5


def test_order_of_models() -> None:
    assert order_kept([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert order_kept([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Two of three pairs agree, one of the first list ties: (2 - 0) / sqrt(2 * 3).
    assert order_kept([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)
    assert order_kept([1], [1]) is None


def test_area_counts_ties_half() -> None:
    assert area(np.array([1.0, 1.0]), np.array([1.0])) == 0.5
    assert area(np.array([3.0, 0.0]), np.array([1.0, 2.0])) == 0.5
    assert area(np.array([3.0]), np.array([1.0, 3.0])) == 0.75


@pytest.mark.parametrize(
    ("given", "error", "fix"),
    [
        ({"target": "weight"}, UnknownColumnError, "letter"),
        ({"target": "color", "models": ["oracle"]}, ParameterError, "choose among logistic regression"),
        ({"target": "color", "task": "regression"}, ParameterError, 'task="classification"'),
        ({"target": "color", "task": "magic"}, ParameterError, "regression"),
    ],
)
def test_what_cannot_be_trained_is_refused(given: dict[str, object], error: type[Exception], fix: str) -> None:
    rows = [("x", "red", 0), ("y", "blue", 3)] * 30
    target = str(given.pop("target"))
    with pytest.raises(error, match=fix):
        measure_training(compared(rows, rows), target, _source(), most=100, **given)  # type: ignore[arg-type]


def test_too_little_to_learn_from_is_refused() -> None:
    few = [("x", "red", 0), ("y", "blue", 3)] * 3
    with pytest.raises(DataError, match="at least 10 such rows"):
        measure_training(compared(few, few), "color", _source(), most=100)
    same = [("x", "red", 0), ("y", "red", 3)] * 30
    with pytest.raises(DataError, match="choose another"):
        measure_training(compared(same, same), "color", _source(), most=100)
    with pytest.raises(ParameterError, match="at least two columns"):
        measure_training(compared(same, same, columns=["color"]), "color", _source(), most=100)
    flat = [("x", "red", 0), ("y", "blue", 0)] * 30
    with pytest.raises(DataError, match="choose another target"):
        measure_training(compared(flat, flat), "size", _source(), task="regression", models=["tree"], most=100)


def test_clusters_of_the_same_groups_agree() -> None:
    rows = [("x", "red", 0)] * 40 + [("y", "blue", 3)] * 40
    other = [("x", "red", 1)] * 40 + [("z", "blue", 3)] * 10 + [("y", "blue", 2)] * 10
    found = measure_clusters(compared(rows, rows, rows), _source(), clusters=2, most=1000)
    assert (found.adjusted_rand, found.mutual_information, found.tested) == (1, pytest.approx(1), 80)
    assert measure_clusters(compared(rows, other, rows), _source(), clusters=2, most=1000).adjusted_rand == 1
    assert found.control_adjusted_rand == 1


def test_clusters_of_other_groups_do_not_agree() -> None:
    real = [(letter, color, size) for letter in "xy" for color, size in (("red", 0), ("blue", 3))] * 40
    # In the real table color and size go together; in the synthetic one letter and size do, and color is free.
    synthetic = [(letter, color, size) for color in ("red", "blue") for letter, size in (("x", 0), ("y", 3))] * 40
    found = measure_clusters(compared(real, synthetic, real), _source(), clusters=2, most=1000)
    assert found.control_adjusted_rand == 1
    assert found.adjusted_rand < 0.5


def test_too_few_rows_for_clusters_are_refused() -> None:
    with pytest.raises(DataError, match="fewer clusters"):
        measure_clusters(compared([("x", "red", 0)] * 9, [("x", "red", 0)] * 9), _source(), clusters=2, most=100)


def test_models_need_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    tables = compared([("x", "red", 0)] * 9, [("x", "red", 0)] * 9)
    for measure in (
        lambda: measure_propensity(tables, _source(), most=9),
        lambda: measure_training(tables, "color", _source(), most=9),
        lambda: measure_clusters(tables, _source(), clusters=2, most=9),
    ):
        with pytest.raises(MissingExtraError, match=r'pip install "cloister\[learn\]"'):
            measure()
