from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from cloister import learn
from cloister.core.random import SeededRandomSource, random_source
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import (
    BudgetExceededError,
    MissingBoundsError,
    ParameterError,
    PrivacyParameterWarning,
    UnsafeMechanismError,
)
from cloister.learn import PrivateKMeans
from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical, Numeric
from cloister.learn._row_grid import grid_of
from cloister.learn.clustering.kmeans import SPLITS, LloydRound, nearest_centers, plan_round
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.testing import check_golden, distributions, load_goldens
from cloister.testing.statistics import check_independent, check_scale
from tests.learn import audits, data

GOLDENS = Path(__file__).parents[2] / "golden" / "learn"
BLOBS = np.repeat([[0.1, 0.1], [0.9, 0.1], [0.5, 0.9]], 700, axis=0) + np.tile(
    np.linspace(-0.05, 0.05, 7)[:, None], (300, 2)
)
TRUE = [[0.1, 0.1], [0.5, 0.9], [0.9, 0.1]]


def model(**options: Any) -> Any:
    return PrivateKMeans(**{"n_clusters": 3, "epsilon": 2, "bounds": (0, 1), **options})


def numbers(width: int, reach: float = 1.0) -> Encoding:
    return Encoding(tuple(Numeric(f"x{place}", -reach, reach) for place in range(width)))


def round_of(encoding: Encoding, split: str, *, epsilon: Any = 1, delta: Any = 0, scale: str = "given") -> LloydRound:
    calibration = NoiseCalibration.of(epsilon=epsilon, delta=delta)
    return plan_round(grid_of(encoding, scale=scale), calibration, split=split, share=Fraction(1))


# Acceptance ----------------------------------------------------------------------------------------------------------


def _scales(*, split: str, width: int, rounds: int, epsilon: float, reach: float) -> list[float]:
    calibration = NoiseCalibration.of(epsilon=epsilon)
    grid = grid_of(numbers(width, reach), scale="given")
    planned = plan_round(grid, calibration, split=split, share=Fraction(1, rounds))
    size, total = planned.parts[0][1], planned.parts[-1][1]
    return [float(size.scale) / planned.constant, float(total.scale) * grid.sizes[0]]  # type: ignore[union-attr]


def test_ml_10_noise_has_the_published_scales() -> None:
    (golden,) = [golden for golden in load_goldens(GOLDENS) if golden.name == "kmeans_scales"]
    check_golden(golden, _scales)


@pytest.mark.parametrize("init", ["k-means++", "random", np.zeros((3, 2)), None, lambda X: X[:3]])
def test_ml_10_centers_from_the_data_are_refused(init: Any) -> None:
    with pytest.raises(ParameterError, match='init="sketch", "box" or "packing"'):
        model(init=init).fit(BLOBS)


@pytest.mark.parametrize("init", ["sketch", "box", "packing"])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_ml_10_empty_clusters_survive(init: str, delta: float) -> None:
    found = model(n_clusters=6, init=init, delta=delta, epsilon=5).fit(np.full((3000, 2), 0.5))
    assert found.cluster_centers_.shape == (6, 2)
    assert np.isfinite(found.cluster_centers_).all()
    assert ((found.cluster_centers_ >= 0) & (found.cluster_centers_ <= 1)).all()
    assert (abs(found.cluster_sizes_) < 300).sum() >= 4


# Sensitivity ---------------------------------------------------------------------------------------------------------


def _exactly(planned: LloydRound, steps: Any, centers: Any) -> Any:
    """What a round releases before noise, one row at a time: the slow and obvious version."""
    found = np.zeros((len(centers), steps.shape[1] + 1), dtype=object)
    for row in steps:
        distances = [sum(int(a - b) ** 2 for a, b in zip(row, center, strict=True)) for center in centers]
        place = distances.index(min(distances))
        found[place] += np.array([planned.constant, *map(int, row)], dtype=object)
    return found


MIXED = Encoding((Numeric("age", 0, 100), Categorical("sex", ("f", "m")), Numeric("hours", -1, 1)))


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("scale", ["range", "given"])
def test_a_row_moves_a_round_by_what_it_is_paid_for(split: str, scale: str) -> None:
    planned = round_of(MIXED, split, scale=scale)
    grid = planned.grid
    rows = np.array(list(itertools.product([0, 50, 100, 999], [[1, 0], [0, 1], [0, 0]], [-1, 1])), dtype=object)
    table = np.array([[a, *c, h] for a, c, h in rows], dtype=float)
    steps = grid.steps(table)
    centers = np.rint(grid.inside(steps[[0, 7, 20]] / 2))
    largest = 0.0
    for row in range(len(steps)):
        moved = np.abs(_exactly(planned, steps[[row, 3]], centers) - _exactly(planned, steps[[3]], centers))
        loss = sum(
            Fraction(int(moved[:, part].sum())) / noise.scale  # type: ignore[union-attr]
            for part, noise, _ in planned.parts
        )
        assert loss <= 1
        largest = max(largest, float(loss))
    assert largest == pytest.approx(1, abs=0.01)


def test_a_row_moves_a_gaussian_round_by_its_norm() -> None:
    planned = round_of(MIXED, "balanced", delta=1e-6, scale="range")
    corner = planned.grid.steps(np.array([[100.0, 1.0, 0.0, 1.0]]))
    moved = int((corner**2).sum()) + planned.constant**2
    assert moved == planned.grid.row_bounds.squares + planned.constant**2
    noise = planned.parts[0][1]
    multiplier = NoiseCalibration.of(epsilon=1, delta=1e-6).squared_multiplier
    assert moved * multiplier <= noise.squared_sigma <= moved * multiplier + 5  # type: ignore[union-attr]


def test_rounds_agree_with_the_obvious_version() -> None:
    source = SeededRandomSource(5)
    steps = grid_of(numbers(3), scale="given").steps(source.words(300).reshape(100, 3) / 2.0**63 - 1)
    planned = round_of(numbers(3), "dplloyd", epsilon=10**9)
    centers = steps[:4]
    weights = np.arange(100, dtype=np.int64)
    moved, sizes = planned.move(centers, steps, weights, random_source())
    exactly = _exactly(planned, np.repeat(steps, weights, axis=0), centers).astype(float)
    assert sizes == pytest.approx(exactly[:, 0] / planned.constant, abs=1e-3)
    assert moved == pytest.approx(exactly[:, 1:] / (exactly[:, :1] / planned.constant), abs=1)


def test_ties_go_to_the_first_center() -> None:
    assert nearest_centers(np.array([[0.0]]), np.array([[-3.0], [3.0]])).tolist() == [0]


# Noise ---------------------------------------------------------------------------------------------------------------


def _noise(planned: LloydRound, size: int) -> Any:
    width = len(planned.grid.origins)
    return (
        planned.parts[-1][1]
        .add(np.zeros((size // width + 1, width), dtype=np.int64), random_source())[:, :width]
        .ravel()[:size]
    )


@pytest.mark.statistical
@pytest.mark.parametrize("split", SPLITS)
def test_laplace_noise_has_its_scale(split: str) -> None:
    planned = round_of(numbers(5), split)
    scale = float(planned.parts[-1][1].scale)  # type: ignore[union-attr]
    check_scale(lambda size: _noise(planned, size), distributions.laplace, scale=scale)


@pytest.mark.statistical
def test_gaussian_noise_has_its_scale_and_is_drawn_for_each_number() -> None:
    planned = round_of(numbers(5), "balanced", delta=1e-6)
    sigma = planned.parts[0][1].deviation
    assert planned.sum_deviations() == pytest.approx(sigma)
    check_scale(lambda size: _noise(planned, size), distributions.gaussian, scale=sigma)
    check_independent(_noise(planned, 50_000).reshape(-1, 5))


# Behavior ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delta": 1e-6, "epsilon": 1},
        {"init": "packing", "epsilon": 10, "max_iter": 4},
        {"scale": "given"},
        {"split": "su", "epsilon": 4},
        {"split": "lecture", "epsilon": 6},
        {"split": "dplloyd", "epsilon": 6},
        {"adjacency": "replace", "epsilon": 5},
    ],
)
def test_clusters_are_found(options: Any) -> None:
    found = model(**options).fit(BLOBS)
    if options.get("init") != "packing":  # which may lead elsewhere
        assert np.array(sorted(found.cluster_centers_.tolist())) == pytest.approx(np.array(TRUE), abs=0.07)
        assert found.cluster_sizes_ == pytest.approx([700] * 3, abs=150)
    assert found.predict(TRUE).shape == (3,)
    assert found.unsafe_inertia(BLOBS) == pytest.approx(-found.score(BLOBS))
    assert found.transform(TRUE).shape == (3, 3)
    assert found.get_feature_names_out().tolist() == ["privatekmeans0", "privatekmeans1", "privatekmeans2"]
    assert not {"labels_", "inertia_"} & set(vars(found))


def test_distances_are_measured_in_the_chosen_scale() -> None:
    X = BLOBS * [100, 1]
    bounds = ([0, 0], [100, 1])
    for scale, across in (("range", 0.8), ("given", 80.0)):
        found = PrivateKMeans(n_clusters=3, epsilon=20, bounds=bounds, scale=scale).fit(X)
        distances = found.transform(found.cluster_centers_)
        assert distances == pytest.approx(distances.T, abs=1e-3 * across)
        assert distances.max() == pytest.approx(across, rel=0.2)
        assert found.predict(found.cluster_centers_).tolist() == [0, 1, 2]
        assert np.sqrt(found.unsafe_inertia(X) / len(X)) < 0.7 * across


@pytest.mark.filterwarnings("ignore:There are too few rows")
def test_centers_stay_where_means_can_lie() -> None:
    table = {"age": [20, 60] * 30, "sex": ["f", "m"] * 30}
    made = PrivateKMeans(
        n_clusters=4, epsilon=0.3, bounds={"age": (0, 100)}, domain={"sex": ["f", "m", "x"]}, init="packing", max_iter=9
    )
    made.fit(open_table(pa.table(table)))
    parts = made.cluster_centers_[:, 1:]
    assert (parts >= 0).all()
    assert (parts.sum(axis=1) <= 1 + 1e-4).all()


def test_too_few_rows_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LloydRound, "enough", lambda self, sizes: np.zeros(len(sizes), dtype=bool))
    with pytest.warns(PrivacyParameterWarning, match="too few rows"):
        model().fit(BLOBS)


def test_a_size_is_enough_if_it_stands_out_of_the_noise() -> None:
    planned = round_of(numbers(2), "balanced")
    least = 3 * planned.size_deviation
    assert planned.enough(np.array([-9 * least, 0, 0.99 * least, 1.01 * least])).tolist() == [False] * 3 + [True]


def test_default_rounds_follow_a_public_rule() -> None:
    assert model(epsilon=2).fit(BLOBS).n_iter_ == 1
    assert model(epsilon=2, delta=1e-6).fit(BLOBS).n_iter_ == 2
    assert model(init="box", epsilon=2).fit(BLOBS).n_iter_ == 7
    assert model(init="box", epsilon=0.4).fit(np.repeat(BLOBS, 5, axis=0)).n_iter_ == 3
    assert model(init="box", epsilon=2, max_iter=2).fit(BLOBS).n_iter_ == 2


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("init", ["sketch", "box"])
def test_steps_add_up_to_epsilon(split: str, init: str) -> None:
    found = model(epsilon=Fraction(3, 2), split=split, init=init, max_iter=3).fit(np.repeat(BLOBS, 5, axis=0))
    spent = sum(Fraction(step.event.sensitivity) / step.event.scale for step in found.steps_)
    assert spent == Fraction(3, 2)


def test_gaussian_steps_add_up() -> None:
    found = model(epsilon=1, delta=1e-6, max_iter=5).fit(BLOBS)
    whole = NoiseCalibration.of(epsilon=1, delta=1e-6).squared_multiplier
    assert sum(1 / step.event.squared_multiplier for step in found.steps_) == 1 / whole


def test_a_table_is_learned_from_as_an_array_is() -> None:
    schema = Schema.from_dict({"columns": {name: {"kind": "numeric", "bounds": [0, 1]} for name in ("x", "y")}})
    table = open_table(pa.table({"x": BLOBS[:, 0], "y": BLOBS[:, 1]}), schema=schema)
    made = model(random_state=SeededRandomSource(1), bounds=None).fit(table)
    same = model(random_state=SeededRandomSource(1)).fit(BLOBS)
    assert (made.cluster_centers_ == same.cluster_centers_).all()
    assert (made.cluster_sizes_ == same.cluster_sizes_).all()
    assert not made.guarantee_.holds


@pytest.mark.filterwarnings("ignore:There are too few rows")
def test_an_empty_table_is_learned_from_too() -> None:
    table = open_table(pa.table({"x": pa.array([], pa.float64())}))
    for delta in (0, 1e-6):
        found = PrivateKMeans(n_clusters=2, epsilon=1, delta=delta, bounds={"x": (0, 1)}, max_iter=1).fit(table)
        assert abs(found.cluster_sizes_).max() < 200


def test_bad_parameters_are_refused_before_anything_is_paid() -> None:
    ledger = data.book(epsilon=10)
    common = {"ledger": ledger, "dataset": "patients"}
    for options, fix in (
        ({"bounds": None}, "give bounds"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"max_iter": 0}, "max_iter"),
        ({"split": "half"}, "balanced"),
        ({"scale": "big"}, "range"),
        ({"split": "su", "delta": 1e-6}, "leave delta out"),
    ):
        with pytest.raises((ParameterError, MissingBoundsError), match=fix):
            model(**{**common, **options}).fit(BLOBS)
    assert ledger.remaining("patients").epsilon == 10
    model(**common).fit(BLOBS)
    assert ledger.remaining("patients").epsilon == 8


def test_labels_of_training_rows_are_refused() -> None:
    with pytest.raises(UnsafeMechanismError, match="predict"):
        model().fit_predict(BLOBS)


def test_a_hopeless_epsilon_is_said_before_it_is_paid() -> None:
    ledger = data.book(epsilon=1e-9)
    with pytest.warns(PrivacyParameterWarning, match="too small to learn anything"):  # noqa: SIM117  # both
        with pytest.raises(BudgetExceededError):
            model(epsilon=1e-7, init="box", ledger=ledger, dataset="patients").fit(BLOBS)


def test_models_are_copied_saved_and_drawn(tmp_path: Path) -> None:
    made = model()
    assert clone(made).get_params() == made.get_params()
    made.fit(BLOBS)
    made.save(tmp_path / "clusters.cloister")
    again = learn.load(tmp_path / "clusters.cloister")
    assert (again.cluster_centers_ == made.cluster_centers_).all()
    assert again.n_iter_ == made.n_iter_
    assert "epsilon = 2" in str(made.plot().to_dict())


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:There are too few rows")
def test_an_audit_does_not_refute_the_claim_but_half_of_the_noise() -> None:
    whole = np.array([[0.0]] * 20 + [[1.0]] * 20)
    constant = round_of(Encoding((Numeric("x0", 0, 1),)), "balanced", scale="range").constant

    def noisy_numbers(found: Any) -> float:
        size = found.cluster_sizes_[0]
        noisy = size * constant, (found.cluster_centers_[0, 0] - 0.5) * 2**15 * max(1.0, size)
        return audits.evidence(noisy, (40 * constant, 0), (39 * constant, -(2**14)))

    audits.check_audit(
        lambda: PrivateKMeans(n_clusters=1, init="box", max_iter=1, bounds=(0, 1)), noisy_numbers, (whole, whole[:-1])
    )
