from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.naive_bayes import GaussianNB

from cloister.accounting.events import DiscreteLaplaceEvent, GaussianEvent
from cloister.core.random import SystemRandomSource, integers_below
from cloister.learn import PrivateGaussianNB
from cloister.testing import SAMPLES, all_neighbors, check_scale
from cloister.testing.distributions import discrete_laplace, gaussian
from tests.learn.quiet_naive_bayes import exact_vector, without_noise

STEP = 2**15
ADULT = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4500),
    "hours-per-week": (1, 100),
}


def model_of(features: int = 2, **options: Any) -> PrivateGaussianNB:
    return PrivateGaussianNB(bounds=([0] * features, [10] * features), classes=[0, 1], **options)


# Sensitivity and noise -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::cloister.errors.DataWarning")
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_neighbors_differ_by_the_declared_sensitivity_and_no_more(adjacency: str) -> None:
    vectors: dict[Any, NDArray[Any]] = {}

    def vector(rows: tuple[Any, ...]) -> NDArray[Any]:
        if rows not in vectors:
            vectors[rows] = exact_vector(model_of(), [row[:2] for row in rows], [row[2] for row in rows])
        return vectors[rows]

    values = (-3.0, 5.0, 8.3, 10.0)
    domain = [(left, right, label) for left in values[:3] for right in values[1:] for label in (0, 1)]
    least = 1 if adjacency == "add_remove" else 2
    changes = [
        vector(left) - vector(right)
        for left, right in all_neighbors(domain, adjacency=adjacency, min_rows=least, max_rows=2)  # type: ignore[arg-type]
    ]
    rows = 2 if adjacency == "replace" else 1
    furthest = max(int(np.abs(change).sum()) for change in changes)
    squared = max(int((change**2).sum()) for change in changes)
    assert furthest == rows * STEP * 4
    assert squared <= rows**2 * STEP**2 * 3.5
    assert squared == rows * STEP**2 * 3.5
    event = model_of(epsilon="0.5", adjacency=adjacency).fit([[1, 2]], [0]).steps_[0].event
    assert isinstance(event, DiscreteLaplaceEvent)
    assert furthest / event.scale == Fraction(1, 2)


def _noise_of(**options: Any) -> NDArray[Any]:
    """Return the noise on about 50,000 sums of one model; what a row adds is known."""
    classes, features = 250, 100
    bounds = ([0] * features, [10] * features)
    model = PrivateGaussianNB(bounds=bounds, classes=list(range(classes)), **options)
    with pytest.MonkeyPatch.context() as patch:
        seen: list[NDArray[Any]] = []
        patch.setattr(PrivateGaussianNB, "_set_moments", lambda _, noisy, *__: seen.append(noisy))
        model.fit(np.full((classes, features), 5.0), np.arange(classes))
    exactly = np.concatenate([[1.0], np.zeros(features), np.full(features, -0.5)])
    return np.rint((seen[0] - exactly) * STEP).ravel()[:SAMPLES]


@pytest.mark.statistical
def test_laplace_noise_has_its_scale() -> None:
    sample = _noise_of(epsilon=2)
    check_scale(lambda _: sample, discrete_laplace, scale=STEP * 151 / 2)


@pytest.mark.statistical
def test_gaussian_noise_has_its_scale() -> None:
    sample = _noise_of(epsilon=2, delta=1e-5)
    calibration = model_of(epsilon=2, delta=1e-5)._calibration()
    noise = calibration.gaussian(Fraction(1), squared_sensitivity=STEP**2 * 126)
    assert isinstance(noise.event, GaussianEvent)
    assert noise.squared_sigma >= STEP**2 * 126 * calibration.squared_multiplier
    check_scale(lambda _: sample, gaussian, scale=noise.deviation)  # steps are too fine to be seen


def test_m9_the_scale_does_not_depend_on_the_rows() -> None:
    """One budget for all features, sums and squares together, whatever the private size of a class is."""
    few, many = (model_of(3).fit(np.full((rows, 3), 2.0), np.arange(rows) % 2).steps_ for rows in (2, 200))
    assert few == many
    event = few[0].event
    assert isinstance(event, DiscreteLaplaceEvent)
    assert event.sensitivity == STEP + 3 * (STEP + STEP // 2)


def test_m9_squares_move_by_the_square_of_the_range() -> None:
    """From the middle of their range, a square moves by half of h^2, where h is half the range of the feature."""
    vectors = [exact_vector(model_of(1), [[5.0], [value]], [0, 0]) for value in (0.0, 5.0, 10.0)]
    squares = [int(vector[0, 2]) / STEP for vector in vectors]
    assert squares == [0, -1, 0]


# Models --------------------------------------------------------------------------------------------------------------


def test_without_noise_it_is_scikit_learns_model() -> None:
    source = SystemRandomSource()
    y = integers_below(source, 2, 2000)
    X = integers_below(source, 4000, 4000).reshape(2000, 2) / 1000 + 2 * y[:, None]
    with without_noise():
        ours = model_of(variance_floor=1e-9).fit(X, y)
    theirs = GaussianNB(var_smoothing=0).fit(X, y)
    assert ours.theta_ == pytest.approx(theirs.theta_, abs=1e-3)
    assert ours.var_ == pytest.approx(theirs.var_, rel=1e-2)
    assert ours.class_prior_ == pytest.approx(theirs.class_prior_)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-2)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99


def _adult(folder: Path, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    frame = pd.read_csv(folder / "adult" / name)
    return frame[list(ADULT)].to_numpy(dtype=np.float64), frame["salary-class"].to_numpy()


@pytest.mark.slow
def test_ml_05_adult_with_five_numeric_features(shared_data: Path) -> None:
    X, y = _adult(shared_data, "adult.csv")
    others, truth = _adult(shared_data, "adult_test.csv")
    assert 100 * GaussianNB().fit(X, y).score(others, truth) == pytest.approx(79.6388, abs=1e-4)
    bounds = tuple(zip(*ADULT.values(), strict=True))
    for epsilon, least in ((1, 79.0), (0.1, 77.5)):
        model = PrivateGaussianNB(epsilon=epsilon, bounds=bounds, classes=["<=50K", ">50K"])
        runs = [100 * model.fit(X, y).score(others, truth) for _ in range(20)]
        assert np.mean(runs) >= least
