from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister.anonymize.operations import AddNoise, reconstruct_distribution
from cloister.anonymize.operations.noise import standard_normals, uniforms
from cloister.core.random import SeededRandomSource, random_source
from cloister.errors import CloisterError, DataError, ParameterError, SeededRandomnessWarning
from cloister.testing import check_distribution, check_independent, check_scale, distributions

N = 50_000


def noisy(operation: AddNoise, **columns: Any) -> np.ndarray:
    found = operation.apply(pa.table(columns)).to_arrow()
    return np.column_stack([found[name].to_numpy() for name in operation.columns])


@pytest.mark.statistical
def test_normal_and_uniform_draws_follow_their_laws() -> None:
    source = random_source(None)
    check_scale(lambda n: standard_normals(source, n), distributions.gaussian, scale=1.0)
    check_distribution(uniforms(source, N), distributions.uniform(0, 1))


@pytest.mark.statistical
def test_additive_noise_has_the_stated_share_of_the_variance() -> None:
    values = np.arange(N, dtype=np.float64) % 97
    operation = AddNoise("v", variance_ratio=0.25)
    check_scale(
        lambda n: noisy(operation, v=values)[:, 0] - values,
        distributions.gaussian,
        scale=0.5 * float(values.std()),
    )


@pytest.mark.statistical
def test_noise_of_a_stated_deviation() -> None:
    values = np.full(N, 7)
    operation = AddNoise("v", deviation=3)
    check_scale(lambda n: noisy(operation, v=values)[:, 0] - 7, distributions.gaussian, scale=3.0)


@pytest.mark.statistical
def test_multiplicative_noise_grows_with_the_value() -> None:
    values = np.linspace(1, 1000, N)
    operation = AddNoise("v", kind="multiplicative", deviation=0.1)
    check_scale(
        lambda n: noisy(operation, v=values)[:, 0] / values - 1,
        distributions.gaussian,
        scale=0.1,
    )


@pytest.mark.statistical
def test_correlated_noise_has_the_covariance_of_the_columns() -> None:
    x = np.arange(N, dtype=np.float64) % 101
    y = 3 * x + np.arange(N, dtype=np.float64) % 53
    operation = AddNoise(["x", "y"], kind="correlated", variance_ratio=0.5)
    noise = noisy(operation, x=x, y=y) - np.column_stack([x, y])
    root = np.linalg.cholesky(0.5 * np.cov(np.column_stack([x, y]), rowvar=False, ddof=0))
    white = np.linalg.solve(root, noise.T).T
    for place in range(2):
        check_scale(lambda n, place=place: white[:, place], distributions.gaussian, scale=1.0)
    check_independent(white)


@pytest.mark.statistical
def test_additive_noise_is_independent_between_columns() -> None:
    x = np.arange(N, dtype=np.float64) % 101
    noise = noisy(AddNoise(["x", "y"], variance_ratio=0.5), x=x, y=x) - np.column_stack([x, x])
    check_independent(noise)


def test_missing_cells_stay_missing_and_whole_numbers_become_real() -> None:
    after = AddNoise(["v", "w"], kind="correlated", variance_ratio=0.1).apply(
        pa.table({"v": [1, None, 3], "w": [2, 4, 5]})
    )
    assert after.to_arrow()["v"].null_count == 1
    assert str(after.types["v"]) == "real"


def test_a_seed_repeats_and_warns() -> None:
    table = pa.table({"v": [1.0, 2.0, 3.0]})
    with pytest.warns(SeededRandomnessWarning):
        first = AddNoise("v", deviation=1).apply(table, random_state=3)
    second = AddNoise("v", deviation=1).apply(table, random_state=SeededRandomSource(3))
    assert first.to_arrow().equals(second.to_arrow())
    assert not AddNoise("v", deviation=1).apply(table).to_arrow().equals(first.to_arrow())


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({}, "variance_ratio=0.1"),
        ({"variance_ratio": 0.1, "deviation": 1}, "variance_ratio=0.1"),
        ({"kind": "multiplicative", "variance_ratio": 1}, "deviation=0.1"),
        ({"kind": "correlated", "deviation": 1}, "variance_ratio=0.1"),
        ({"kind": "addictive", "deviation": 1}, "additive"),
        ({"deviation": -1}, "positive"),
        ({"deviation": float("nan")}, "finite"),
    ],
)
def test_contradictory_settings_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        AddNoise("v", **options)


@pytest.mark.parametrize("values", [["a"], [float("inf")], [5, 5], [None, None]])
def test_columns_without_numbers_or_spread_are_refused(values: list[Any]) -> None:
    with pytest.raises(DataError, match='Column "v"'):
        AddNoise("v", variance_ratio=0.1).apply(pa.table({"v": values}))


def _reference(noisy_: np.ndarray, points: np.ndarray, deviation: float) -> np.ndarray:
    """The iteration as it is printed, one value at a time."""
    shares = np.full(len(points), 1 / len(points))
    while True:
        after = np.zeros(len(points))
        for value in noisy_:
            weights = np.exp(-0.5 * ((value - points) / deviation) ** 2) * shares
            after += weights / weights.sum()
        after /= len(noisy_)
        change, shares = np.abs(after - shares).max(), after
        if change < 1e-4:
            return shares


def test_reconstruction_agrees_with_the_printed_iteration() -> None:
    values = np.array([0.1, 0.3, 1.9, 2.2, 2.1, 4.0, 1.0])
    points = np.linspace(0, 4, 9)
    fast = reconstruct_distribution(values, points=points, deviation=0.5)
    assert fast == pytest.approx(_reference(values, points, 0.5), abs=1e-9)


def test_reconstruction_finds_the_distribution_behind_the_noise() -> None:
    true = np.repeat([0.0, 10.0], [N // 4, 3 * N // 4])
    published = noisy(AddNoise("v", deviation=3), v=true)[:, 0]
    shares = reconstruct_distribution(np.append(published, np.nan), points=[0, 5, 10], deviation=3)
    assert shares.sum() == pytest.approx(1)
    assert shares == pytest.approx([0.25, 0, 0.75], abs=0.05)


def test_reconstruction_stops_in_any_case() -> None:
    one, many = (
        reconstruct_distribution([0.0, 1.0, 1.0], points=[0, 1], deviation=1, most_rounds=rounds) for rounds in (1, 500)
    )
    assert one[1] < many[1]


def test_many_values_are_rounded_first() -> None:
    source = random_source(None)
    values = standard_normals(source, 2**16) * 2 + 5
    points = np.linspace(-5, 15, 201)
    shares = reconstruct_distribution(values, points=points, deviation=1, tolerance=1e-3)
    assert float(shares @ points) == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize(
    "arguments",
    [
        {"noisy": [], "points": [0, 1], "deviation": 1},
        {"noisy": [1], "points": [0], "deviation": 1},
        {"noisy": [1], "points": [1, 0], "deviation": 1},
        {"noisy": [1], "points": [0, 1], "deviation": 0},
        {"noisy": [float("inf")], "points": [0, 1], "deviation": 1},
    ],
)
def test_reconstruction_refuses_odd_input(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        reconstruct_distribution(arguments.pop("noisy"), **arguments)
