from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cloister.anonymize.operations import ReplaceByModel, fit_marginal
from cloister.anonymize.operations.noise import standard_normals, uniforms
from cloister.core.random import random_source
from cloister.errors import DataError, PrivacyParameterWarning
from cloister.testing import check_distribution, check_scale, distributions

N = 50_000
SOURCE = random_source(None)


def replaced(**columns: object) -> pa.Table:
    with pytest.warns(PrivacyParameterWarning, match="all relations between them are lost"):
        return ReplaceByModel(list(columns)).apply(pa.table(columns)).to_arrow()


SAMPLES = {
    "normal": lambda: 5 + 2 * standard_normals(SOURCE, N),
    "uniform": lambda: 5 + 2 * uniforms(SOURCE, N),
    "exponential": lambda: 3 - 2 * np.log(uniforms(SOURCE, N)),
    "lognormal": lambda: np.exp(1 + 0.9 * standard_normals(SOURCE, N)),
    "laplace": lambda: np.log(uniforms(SOURCE, N) / uniforms(SOURCE, N)),
    "gamma": lambda: -np.log(uniforms(SOURCE, 5 * N)).reshape(5, N).sum(axis=0),
}


@pytest.mark.parametrize("family", SAMPLES)
def test_the_family_behind_a_sample_is_found(family: str) -> None:
    assert fit_marginal(SAMPLES[family]()).family == family


@pytest.mark.parametrize("family", SAMPLES)
def test_densities_and_quantiles_belong_together(family: str) -> None:
    law = fit_marginal(SAMPLES[family]())
    levels = np.linspace(0.05, 0.95, 19)
    points = law.quantile(levels)
    step = 1e-6
    slope = (law.quantile(levels + step) - law.quantile(levels - step)) / (2 * step)
    inner = np.abs(levels - 0.5) > 1e-9
    assert law.density(points)[inner] == pytest.approx(1 / slope[inner], rel=1e-4)


@pytest.mark.statistical
def test_fresh_numbers_follow_the_fitted_law() -> None:
    values = SAMPLES["normal"]()
    check_scale(
        lambda n: np.asarray(replaced(v=values)["v"]) - values.mean(),
        distributions.gaussian,
        scale=float(values.std()),
    )


@pytest.mark.statistical
def test_fresh_categories_follow_their_frequencies() -> None:
    found = replaced(v=["a"] * (N // 5) + ["b"] * (4 * N // 5))["v"].to_numpy(zero_copy_only=False).astype(str)
    check_distribution(found, distributions.categorical({"a": 0.2, "b": 0.8}))


def test_relations_are_destroyed() -> None:
    values = SAMPLES["normal"]()
    found = replaced(x=values, y=values)
    assert abs(np.corrcoef(np.asarray(found["x"]), np.asarray(found["y"]))[0, 1]) < 0.05


def test_missing_cells_stay_and_whole_numbers_stay_whole() -> None:
    found = replaced(
        n=[1, None, 5, 9], t=pa.array([None, None, None, None], pa.string()), e=pa.array([None] * 4, pa.int64())
    )
    assert found["n"].null_count == 1
    assert pa.types.is_integer(found["n"].type)
    assert found["t"].null_count == found["e"].null_count == 4


def test_a_constant_has_no_law() -> None:
    with pytest.raises(DataError, match="leave it out"), pytest.warns(PrivacyParameterWarning):
        ReplaceByModel("v").apply(pa.table({"v": [3, 3]}))
