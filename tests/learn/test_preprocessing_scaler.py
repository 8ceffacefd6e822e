from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from cloister import learn
from cloister.core.guarantees import PureDP
from cloister.core.random import SeededRandomSource, random_source
from cloister.data.sources import open_table
from cloister.errors import BudgetExceededError, ParameterError, PrivacyParameterWarning
from cloister.learn import PrivateScaler
from cloister.learn._inputs import read
from cloister.learn.base import PUBLIC_FACTS
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.testing import distributions
from cloister.testing.statistics import check_scale
from tests.learn import audits, data

X = np.stack([np.linspace(20, 60, 5001), np.linspace(100, 0, 5001) ** 2], axis=1)
BOUNDS = ([0, 0], [100, 10_000])


def scaler(**options: Any) -> Any:
    return PrivateScaler(**{"method": "standard", "epsilon": 1, "bounds": BOUNDS, **options})


def test_public_bounds_cost_nothing() -> None:
    ledger = data.book(epsilon=1e-9)
    made = PrivateScaler(bounds=BOUNDS, ledger=ledger, dataset="patients", epsilon=5).fit(X)
    assert made.guarantee_ == PureDP(epsilon=0, assumptions=(PUBLIC_FACTS,))
    assert made.steps_ == ()
    assert ledger.remaining("patients").epsilon == Fraction(1, 10**9)
    assert made.transform([[50, 10_000], [-9, 0]]).tolist() == [[0.5, 1], [0, 0]]
    assert made.inverse_transform(made.transform(X)) == pytest.approx(X)
    assert made.n_rows_ is None


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_noisy_moments_are_near_the_true_ones(delta: float) -> None:
    made = scaler(delta=delta).fit(X)
    assert made.mean_ == pytest.approx(X.mean(axis=0), rel=0.05)
    assert made.scale_ == pytest.approx(X.std(axis=0), rel=0.1)
    assert made.n_rows_ == pytest.approx(5001, abs=100)
    scaled = made.transform(X)
    assert scaled.mean(axis=0) == pytest.approx([0, 0], abs=0.1)
    assert made.inverse_transform(scaled) == pytest.approx(X)
    assert scaler(limit=0.5, epsilon=3).fit(X).transform(X).max() == 0.5


def test_categories_stay_as_they_are() -> None:
    frame = pd.DataFrame({"age": [20.0, 60.0] * 1000, "sex": ["f", "m"] * 1000})
    made = PrivateScaler(method="standard", bounds={"age": (0, 100)}, domain={"sex": ["f", "m"]}, epsilon=5).fit(frame)
    assert made.get_feature_names_out().tolist() == ["age", "sex=f", "sex=m"]
    assert made.transform(frame)[:2, 1:].tolist() == [[1, 0], [0, 1]]
    assert made.mean_[1:].tolist() == [0, 0]


def test_a_table_is_learned_from_as_an_array_is() -> None:
    table = open_table(pa.table({"a": X[:, 0], "b": X[:, 1]}))
    made = scaler(bounds={"a": (0, 100), "b": (0, 10_000)}, random_state=SeededRandomSource(2)).fit(table)
    same = scaler(random_state=SeededRandomSource(2)).fit(X)
    assert (made.mean_ == same.mean_).all()
    assert (made.scale_ == same.scale_).all()


def test_a_row_moves_the_moments_by_what_it_is_paid_for() -> None:
    noise = scaler()._plan(read(scaler(), X, None).facts, NoiseCalibration.of(epsilon=1)).settings
    step = 2**15
    for value in np.linspace(-step, step, 101).round():
        moved = step + 2 * (abs(value) + abs(round(value * value / step) - step // 2))
        assert moved <= noise.sensitivity
    assert noise.sensitivity == step * 4


@pytest.mark.statistical
def test_noise_has_its_scale() -> None:
    noise = scaler()._plan(read(scaler(), X, None).facts, NoiseCalibration.of(epsilon=1)).settings
    check_scale(
        lambda size: noise.add(np.zeros(size, dtype=np.int64), random_source()),
        distributions.laplace,
        scale=float(noise.scale),
    )


def test_bad_parameters_are_refused() -> None:
    for options, fix in (
        ({"method": "minmax"}, "public"),
        ({"limit": 0}, "limit"),
        ({"bounds": None}, "give bounds"),
        ({"bounds": None, "domain": [2, 2]}, "leave the scaler out"),
    ):
        with pytest.raises(ParameterError, match=fix):
            scaler(**options).fit([[0, 1], [1, 0]])


def test_a_hopeless_epsilon_is_said_before_it_is_paid() -> None:
    with pytest.warns(PrivacyParameterWarning, match="too small to learn anything"):  # noqa: SIM117  # both
        with pytest.raises(BudgetExceededError):
            scaler(epsilon=1e-7, ledger=data.book(epsilon=1e-9), dataset="patients").fit(X)


def test_models_are_saved(tmp_path: Path) -> None:
    made = scaler().fit(X)
    made.save(tmp_path / "scaler.cloister")
    assert (learn.load(tmp_path / "scaler.cloister").mean_ == made.mean_).all()


@pytest.mark.slow
@pytest.mark.statistical
def test_an_audit_does_not_refute_the_claim_but_half_of_the_noise() -> None:
    whole = np.array([[0.0]] * 40 + [[1.0]] * 40)

    def noisy_numbers(found: Any) -> float:
        count = max(1.0, found.n_rows_)
        mean, deviation = (found.mean_[0] - 0.5) * 2, found.scale_[0] * 2
        noisy = found.n_rows_, mean * count, (deviation**2 + mean**2 - 0.5) * count
        return audits.evidence(noisy, (80, 0, 40), (79, -1, 39.5))

    audits.check_audit(
        lambda: PrivateScaler(method="standard", bounds=(0, 1)), noisy_numbers, (whole, whole[:-1]), samples=5000
    )
