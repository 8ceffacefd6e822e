from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.decomposition import PCA

from cloister import learn
from cloister.core.random import SeededRandomSource, random_source
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import BudgetExceededError, ParameterError, PrivacyParameterWarning
from cloister.learn import PrivatePCA
from cloister.learn._encoding import Encoding
from cloister.learn._features import Numeric
from cloister.learn._row_grid import grid_of
from cloister.learn._second_moments import plan_moments
from cloister.learn.decomposition import plan_power, whole_directions
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.testing import distributions
from cloister.testing.statistics import check_independent, check_scale
from tests.learn import audits, data

SOURCE = SeededRandomSource(3)
FLAT = np.clip(
    (SOURCE.words(6000 * 4).reshape(6000, 4) / 2.0**64 - 0.5)
    * [1.6, 0.8, 0.2, 0.05]
    @ np.linalg.qr(np.arange(16).reshape(4, 4) % 5 - 2.0)[0]
    + [0.1, 0, -0.1, 0],
    -1,
    1,
)


def model(**options: Any) -> Any:
    return PrivatePCA(**{"epsilon": 2, "delta": 1e-6, "bounds": (-1, 1), "n_components": 2, **options})


def numbers(width: int, reach: float = 1.0) -> Encoding:
    return Encoding(tuple(Numeric(f"x{place}", -reach, reach) for place in range(width)))


def captured(found: Any, X: Any) -> float:
    scatter = np.cov(X.T)
    return float(np.trace(found.components_ @ scatter @ found.components_.T) / np.trace(scatter))


# Acceptance ----------------------------------------------------------------------------------------------------------


def test_ml_11_sensitivities_by_brute_force() -> None:
    """For rows of norm B = 1: X'X moves by B**2, by sqrt(2) B**2 if one is replaced, the scatter by up to 4 B**2."""
    angles = np.linspace(0, np.pi, 25)
    unit = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    products = unit[:, :, None] * unit[:, None, :]
    norms = np.linalg.norm(products, axis=(1, 2))
    assert norms == pytest.approx(1)
    replaced = np.linalg.norm(products[:, None] - products[None], axis=(2, 3))
    assert replaced.max() == pytest.approx(np.sqrt(2))
    n = 40
    others = np.tile([[-1.0, 0.0]], (n - 1, 1))

    def scatter(row: Any) -> Any:
        rows = np.concatenate([others, [row]])
        return (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))

    moved = np.linalg.norm(scatter([1.0, 0.0]) - scatter([-1.0, 0.0]))
    assert moved == pytest.approx(4 * (n - 1) / n)


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("norm", [None, 1.2])
def test_ml_11_the_released_triangle_moves_by_what_it_is_paid_for(
    pure: bool, centered: bool, norm: float | None
) -> None:
    grid = grid_of(numbers(3), scale="given")
    calibration = NoiseCalibration.of(epsilon=1, delta=0 if pure else 1e-6)
    most = None if norm is None else int(norm * 2**15)
    row = grid.row_bounds if most is None else grid.row_bounds.limited(most, 3)
    planned = plan_moments(grid, row, calibration, centered=centered)
    largest = 0.0
    for corner in itertools.product([-1.0, -0.3, 0.9, 1.0, 7.0], repeat=3):
        steps = grid.steps(np.array([corner]), most=most)[0]
        z = [planned.constant, *map(int, steps)]
        pairs = [(i, j) for i in range(4) for j in range(i, 4) if centered or i > 0 or j == 0]
        moved = sum(abs(z[i] * z[j]) for i, j in pairs) if pure else sum((z[i] * z[j]) ** 2 for i, j in pairs)
        paid = planned.noise.sensitivity if pure else planned.noise.squared_sigma / calibration.squared_multiplier  # type: ignore[union-attr]
        assert moved <= paid
        largest = max(largest, float(Fraction(moved) / paid))
    assert largest > (0.999 if norm is None else 0.9)


@pytest.mark.parametrize("method", ["analyze_gauss", "noisy_power", "laplace"])
def test_ml_11_components_are_orthonormal_and_noise_is_symmetric(method: str) -> None:
    found = model(method=method, delta=0 if method == "laplace" else 1e-6, n_components=3).fit(FLAT)
    assert found.components_ @ found.components_.T == pytest.approx(np.eye(3), abs=1e-9)
    calibration = NoiseCalibration.of(epsilon=1, delta=1e-6)
    planned = plan_moments(
        grid_of(numbers(4), scale="given"), grid_of(numbers(4), scale="given").row_bounds, calibration
    )
    moments = planned.release(np.zeros((0, 4)), np.zeros(0, dtype=np.int64), random_source())
    assert (moments.products == moments.products.T).all()
    assert (moments.products != 0).all()


# Noise ---------------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("pure", [True, False])
def test_noise_of_products_has_its_scale(pure: bool) -> None:
    grid = grid_of(numbers(320), scale="given")
    planned = plan_moments(grid, grid.row_bounds, NoiseCalibration.of(epsilon=1, delta=0 if pure else 1e-6))

    def draw(size: int) -> Any:
        moments = planned.release(np.zeros((0, 320)), np.zeros(0, dtype=np.int64), random_source())
        return (moments.products[np.triu_indices(320)] * moments.count)[:size]

    law = distributions.laplace if pure else distributions.gaussian
    scale = float(planned.noise.scale) if pure else planned.noise.deviation  # type: ignore[union-attr]
    check_scale(draw, law, scale=scale)
    check_independent(draw(50_000).reshape(-1, 5))


@pytest.mark.statistical
def test_noise_of_power_iterations_has_its_scale() -> None:
    row = grid_of(numbers(5), scale="given").row_bounds
    planned = plan_power(row, NoiseCalibration.of(epsilon=1, delta=1e-6), share=Fraction(1), iterations=4)
    check_scale(
        lambda size: planned.noise.add(np.zeros(size, dtype=np.int64), random_source()),
        distributions.gaussian,
        scale=planned.noise.deviation,
    )


def test_power_iterations_move_by_what_they_are_paid_for() -> None:
    grid = grid_of(numbers(4), scale="given")
    calibration = NoiseCalibration.of(epsilon=1, delta=1e-6)
    planned = plan_power(grid.row_bounds, calibration, share=Fraction(1), iterations=1)
    words = SeededRandomSource(8).words(400).reshape(25, 4, 4) / 2.0**64 - 0.5
    for square in words:
        guess, _ = np.linalg.qr(square[:, :2])
        whole = whole_directions(guess)
        assert np.linalg.norm(whole.astype(float), 2) <= 2**12
        assert whole.astype(float) / 2**12 == pytest.approx(guess, abs=0.02)
        x = grid.steps(np.sign(square[:1])).astype(np.int64).astype(object)[0]
        moved = sum(int(item) ** 2 for item in np.outer(x, x @ whole).ravel())
        assert moved * calibration.squared_multiplier <= planned.noise.squared_sigma


# Behavior ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("center", ["private", "public", "none"])
@pytest.mark.parametrize("method", ["analyze_gauss", "noisy_power", "laplace"])
def test_components_are_those_without_noise_when_epsilon_is_large(method: str, center: str) -> None:
    found = model(
        method=method, delta=0 if method == "laplace" else 1e-6, epsilon=1000, center=center, max_iter=12
    ).fit(FLAT)
    middle = FLAT.mean(axis=0) if center == "private" else np.zeros(4)
    values, vectors = np.linalg.eigh((FLAT - middle).T @ (FLAT - middle) / len(FLAT))
    assert np.abs(np.diag(found.components_ @ vectors[:, ::-1][:, :2])) == pytest.approx([1, 1], abs=1e-3)
    assert found.explained_variance_ == pytest.approx(values[::-1][:2], rel=0.02)
    assert found.mean_ == pytest.approx(middle, abs=1e-3)
    assert found.n_rows_ == pytest.approx(len(FLAT), abs=10)
    assert found.explained_variance_ratio_.sum() == pytest.approx(1)


@pytest.mark.parametrize("options", [{}, {"method": "noisy_power"}, {"delta": 0}, {"adjacency": "replace"}])
def test_variance_is_captured(options: Any) -> None:
    found = model(**options).fit(FLAT)
    assert captured(found, FLAT) > captured(PCA(2).fit(FLAT), FLAT) - 0.05


def test_rows_are_transformed_and_brought_back() -> None:
    found = model(n_components=None).fit(FLAT)
    coordinates = found.transform(FLAT[:10])
    assert found.inverse_transform(coordinates) == pytest.approx(FLAT[:10])
    assert found.get_feature_names_out().tolist() == [f"privatepca{place}" for place in range(4)]
    assert found.transform([[9.0, 0, 0, 0]]) == pytest.approx(found.transform([[1.0, 0, 0, 0]]))
    ranged = model(scale="range", n_components=None).fit(FLAT)
    assert ranged.inverse_transform(ranged.transform(FLAT[:10])) == pytest.approx(FLAT[:10])
    assert ranged.explained_variance_[0] == pytest.approx(found.explained_variance_[0] / 4, rel=0.1)


def test_a_row_is_transformed_alike_in_any_company() -> None:
    found = model(n_components=3).fit(FLAT)
    together = found.transform(FLAT[:200])
    for many in (1, 2, 3, 7, 64, 199):
        assert (found.transform(FLAT[:many]) == together[:many]).all()


def test_long_rows_are_shrunk_to_the_norm() -> None:
    free, short = model(epsilon=100).fit(FLAT), model(epsilon=100, data_norm=0.1).fit(FLAT)
    assert short.explained_variance_.sum() < 0.011 < free.explained_variance_.sum()
    around = model(epsilon=100, data_norm=0.1, center="public").fit(FLAT + 0.1 * 0)
    assert around.mean_.tolist() == [0] * 4


def test_a_table_is_learned_from_as_an_array_is() -> None:
    columns = {f"c{place}": FLAT[:500, place] for place in range(4)}
    schema = Schema.from_dict({"columns": {name: {"kind": "numeric", "bounds": [-1, 1]} for name in columns}})
    table = open_table(pa.table(columns), schema=schema)
    for method in ("analyze_gauss", "noisy_power"):
        common = {"method": method, "epsilon": 50}
        made = model(random_state=SeededRandomSource(1), bounds=None, **common).fit(table)
        same = model(random_state=SeededRandomSource(1), **common).fit(FLAT[:500])
        assert (made.components_ == same.components_).all()
        assert (made.explained_variance_ == same.explained_variance_).all()


def test_categories_take_part() -> None:
    table = {"age": [20.0, 60.0] * 3000, "sex": ["f", "m"] * 3000}
    found = PrivatePCA(
        epsilon=2, delta=1e-6, bounds={"age": (0, 100)}, domain={"sex": ["f", "m"]}, scale="range", n_components=1
    ).fit(open_table(pa.table(table)))
    assert np.abs(found.components_[0]) == pytest.approx(np.array([0.4, 1, 1]) / np.sqrt(2.16), abs=0.05)
    assert found.mean_ == pytest.approx([40, 0.5, 0.5], abs=1)


def test_bad_parameters_are_refused_before_anything_is_paid() -> None:
    ledger = data.book(epsilon=10, delta=1e-3)
    common = {"ledger": ledger, "dataset": "patients"}
    for options, fix in (
        ({"bounds": None}, "give bounds"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 5}, "at most 4"),
        ({"method": "laplace"}, "without a delta"),
        ({"method": "noisy_power", "delta": 0}, "delta=1e-6"),
        ({"method": "wishart"}, "analyze_gauss"),
        ({"center": "mean"}, "private"),
        ({"scale": "unit"}, "given"),
        ({"data_norm": -1}, "data_norm"),
        ({"data_norm": 1e-9}, "largest norm"),
        ({"data_norm": 1e7, "scale": "range", "bounds": (1e6, 1e6 + 100)}, "leave data_norm out"),
        ({"center": "none", "scale": "range", "bounds": (1e9, 1e9 + 1e-3)}, "given"),
        ({"max_iter": 0, "method": "noisy_power"}, "max_iter"),
    ):
        with pytest.raises(ParameterError, match=fix):
            model(**{**common, **options}).fit(FLAT)
    assert ledger.remaining("patients").epsilon == 10


@pytest.mark.parametrize("method", ["analyze_gauss", "noisy_power"])
def test_a_hopeless_epsilon_is_said_before_it_is_paid(method: str) -> None:
    ledger = data.book(epsilon=1e-9, delta=1e-9)
    with pytest.warns(PrivacyParameterWarning, match="too small to learn anything"):  # noqa: SIM117  # both
        with pytest.raises(BudgetExceededError):
            model(epsilon=1e-7, delta=1e-9, method=method, ledger=ledger, dataset="patients").fit(FLAT)


@pytest.mark.parametrize("method", ["analyze_gauss", "noisy_power"])
def test_noise_that_hides_everything_is_said(method: str) -> None:
    with pytest.warns(PrivacyParameterWarning, match="too few rows"):
        model(method=method).fit(np.zeros((5, 40)))


def test_models_are_saved_and_drawn(tmp_path: Path) -> None:
    made = model().fit(FLAT)
    made.save(tmp_path / "components.cloister")
    again = learn.load(tmp_path / "components.cloister")
    assert (again.components_ == made.components_).all()
    assert "epsilon = 2" in str(made.plot().to_dict())


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:There are too few rows")
def test_an_audit_does_not_refute_the_claim_but_half_of_the_noise() -> None:
    whole = np.ones((60, 1))
    grid = grid_of(numbers(1), scale="given", origin="zero")
    constant = plan_moments(grid, grid.row_bounds, NoiseCalibration.of(epsilon=1), centered=False).constant

    def noisy_numbers(found: Any) -> float:
        noisy = found.n_rows_ * constant**2, found.explained_variance_[0] * found.n_rows_ * 2**30
        return audits.evidence(noisy, (60 * constant**2, 60 * 2**30), (59 * constant**2, 59 * 2**30))

    audits.check_audit(lambda: PrivatePCA(bounds=(-1, 1), center="none"), noisy_numbers, (whole, whole[:-1]))
