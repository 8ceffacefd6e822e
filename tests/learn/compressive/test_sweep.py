from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.core.guarantees import NoGuarantee
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, UnsatisfiableError
from cloister.learn.compressive import utility
from cloister.learn.compressive.sweep import CompressiveSweep, SweepPoint
from cloister.learn.compressive.utility import svm
from tests.learn.compressive import worked


def point(utility: float, minimum: float, **settings: Any) -> SweepPoint:
    figures = {"utility_deviation": 0.01, "minimum_deviation": 0.01, "held_out_utility": 0.8, "held_out_minimum": 0.5}
    return SweepPoint(settings=settings, utility=utility, minimum=minimum, **figures)


def sweep(*points: SweepPoint) -> CompressiveSweep:
    return CompressiveSweep(guarantee=NoGuarantee(reason="a test"), method="odd", points=points)


FIVE = sweep(
    point(0.5, 0.9, k=1), point(0.9, 0.8, k=2), point(0.95, 0.3, k=3), point(0.85, 0.7, k=4), point(0.9, 0.8, k=5)
)


def test_the_front_are_the_points_that_no_other_beats() -> None:
    assert [item.settings["k"] for item in FIVE.pareto] == [1, 2, 5, 3]


def test_the_knee_is_farthest_above_the_line_between_the_ends() -> None:
    assert FIVE.knee.settings == {"k": 2}
    assert sweep(point(0.5, 0.5, k=1)).knee.settings == {"k": 1}


def test_the_first_point_within_both_limits_is_chosen() -> None:
    assert FIVE.choose(utility=0.8, minimum=0.6).settings == {"k": 2}
    assert FIVE.choose(utility=0.93).settings == {"k": 3}
    assert FIVE.choose(minimum=0.85).settings == {"k": 1}
    assert FIVE.choose() == FIVE.knee
    with pytest.raises(UnsatisfiableError, match="sweep over more"):
        FIVE.choose(utility=0.99, minimum=0.9)


def test_a_sweep_is_told_and_drawn() -> None:
    assert "no guarantee" in str(FIVE)
    rows = dict(FIVE.summary())
    assert rows["k=2"].endswith("(moderate), not beaten by another")
    assert rows["k=4"].endswith("(moderate)")
    assert "not a guarantee" in rows["note"]
    assert json.loads(json.dumps(FIVE.to_dict()))["knee"] == {"k": 2}
    assert "k=4" in str(FIVE.plot().to_table())


@pytest.mark.slow
def test_a_sweep_over_digits() -> None:
    X, y = worked.digits()
    model = cl.learn.DiscriminantComponents(rho=10)
    found = cl.learn.compressive_sweep(
        model, {"n_components": [9, 40], "rho_prime": [-1, 1]}, X[:900], y[:900], folds=2, attacks=["ridge"],
        random_state=SeededRandomSource(1),
    )  # fmt: skip
    assert [item.settings for item in found.points] == [
        {"n_components": count, "rho_prime": prime} for count in (9, 40) for prime in (-1, 1)
    ]
    few, many = found.points[1], found.points[2]
    assert few.minimum > 0.6 > 0.3 > many.minimum
    assert many.held_out_minimum == pytest.approx(many.minimum, abs=0.1)
    assert few.utility_deviation < 0.05


def test_a_sweep_against_a_privacy_label() -> None:
    utility, privacy = np.arange(120) % 2, np.arange(120) // 2 % 2
    rows = worked.normal(120, 3) * 0.3 + np.column_stack([2 * utility, 2 * privacy, 0 * utility])
    found = cl.learn.compressive_sweep(
        cl.learn.UtilityCostRatio(), {"privacy_weights": [0, 100]}, rows, utility, privacy=privacy, folds=2
    )
    assert len(found.points) == 2
    assert all(item.utility > 0.9 for item in found.points)


@pytest.mark.parametrize("grid", [{}, {"n_components": []}])
def test_an_empty_grid_is_refused(grid: dict[str, Any]) -> None:
    with pytest.raises(CloisterError, match="n_components"):
        cl.learn.compressive_sweep(cl.learn.PrincipalComponents(), grid, worked.X, worked.UTILITY)


# Utility -------------------------------------------------------------------------------------------------------------


def test_utility_is_scored_on_held_out_rows() -> None:
    codes = np.arange(100) % 2
    rows = worked.normal(100, 4)
    rows[:, 0] += 5 * codes
    scores = cl.learn.utility_scores(
        cl.learn.DiscriminantComponents(), rows, codes, tests=3, folds=5, learner=svm(), full=True
    )
    assert scores.accuracy > 0.9
    assert scores.f1 > 0.9
    assert scores.full > 0.9
    assert (scores.chance, scores.tests) == (0.5, 3)
    assert "chance 0.500" in str(scores)
    hidden = cl.learn.utility_scores(
        cl.learn.MultiDiscriminantRatio(),
        rows,
        codes,
        privacy=codes // 1 ^ (np.arange(100) // 2 % 2),
        tests=1,
        learner=svm(),
    )
    assert np.isnan(hidden.full)


def test_pure_noise_scores_no_better_than_chance() -> None:
    rows, codes = worked.normal(200, 30), np.arange(200) % 2
    scores = cl.learn.utility_scores(cl.learn.DiscriminantComponents(), rows, codes, tests=4, folds=4, learner=svm())
    assert scores.accuracy < 0.75


@pytest.mark.slow
def test_the_default_learner_searches_its_settings() -> None:
    codes = np.arange(60) % 2
    rows = worked.normal(60, 2) + 4 * codes[:, None]
    assert cl.learn.utility_scores(cl.learn.DiscriminantComponents(), rows, codes, tests=1).accuracy > 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count", "expected"),
    [
        ("PCA", 2, 0.659), ("DCA", 2, 0.702), ("PCA", 5, 0.930), ("DCA", 5, 0.929),
        ("PCA", 9, 0.974), ("DCA", 9, 0.964), ("PCA", 20, 0.985), ("DCA", 20, 0.980),
    ],
)  # fmt: skip
def test_accuracy_of_digits(kind: str, count: int, expected: float) -> None:
    X, y = worked.digits()
    model: Any = cl.learn.PrincipalComponents(n_components=count)
    if kind == "DCA":
        model = cl.learn.DiscriminantComponents(n_components=count, rho=10, rho_prime=-0.05)
    scores = cl.learn.utility_scores(model, X, y, tests=3, folds=3, learner=svm(), random_state=SeededRandomSource(5))
    assert scores.accuracy == pytest.approx(expected, abs=0.03)


def test_too_many_folds_are_refused() -> None:
    with pytest.raises(CloisterError, match="fewer folds"):
        cl.learn.utility_scores(cl.learn.DiscriminantComponents(), worked.X, worked.UTILITY)


def test_few_folds_can_be_learned_from_and_every_row_is_either_learned_from_or_scored() -> None:
    codes = np.arange(50) % 2
    splits = list(utility._splits(codes, 7, (5, 2), SeededRandomSource(1)))
    assert len(splits) == 7
    for train, test in splits:
        assert len(train) == 20
        assert sorted([*train, *test]) == list(range(50))
    with pytest.raises(CloisterError, match="smaller than folds"):
        cl.learn.utility_scores(cl.learn.DiscriminantComponents(), worked.X, worked.UTILITY, folds=2, learned_folds=2)
