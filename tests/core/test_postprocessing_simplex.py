from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.core.postprocessing import clip, norm_sub, project_to_simplex
from cloister.errors import ParameterError

numbers = st.lists(st.floats(-5, 5), min_size=1, max_size=6)
totals = st.floats(0, 10)


@given(numbers, totals)
def test_the_projection_is_the_nearest_point(values: list[float], total: float) -> None:
    nearest = project_to_simplex(values, total=total)
    assert nearest.sum() == pytest.approx(total, abs=1e-9)
    assert (nearest >= 0).all()
    gap = np.array(values) - nearest
    # Optimality: the gap is constant where the projection is positive, and not larger elsewhere.
    level = gap[nearest > 1e-12]
    if level.size:
        assert level == pytest.approx(np.full(len(level), level[0]), abs=1e-9)
        assert (gap <= level[0] + 1e-9).all()


def test_noisier_numbers_give_way_more() -> None:
    assert project_to_simplex([1.0, 1.0], variances=[1.0, 3.0]) == pytest.approx([0.75, 0.25])


def _slow_norm_sub(values: list[float], total: float) -> list[float]:
    """Follow the recipe by hand: negative numbers become 0, then the positive ones share the difference, again."""
    cells = list(values)
    for _ in range(100):
        cells = [max(cell, 0.0) for cell in cells]
        positive = [place for place, cell in enumerate(cells) if cell > 0]
        if not positive:
            return [total / len(cells)] * len(cells)
        share = (sum(cells) - total) / len(positive)
        cells = [cell - share if place in positive else 0.0 for place, cell in enumerate(cells)]
        if min(cells) >= 0:
            break
    return [max(cell, 0.0) for cell in cells]


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.integers(1, 100))
def test_norm_sub_follows_its_recipe(values: list[int], total: int) -> None:
    found = norm_sub(values, total=total)
    assert found.sum() == pytest.approx(total)
    assert (found >= 0).all()
    assert found == pytest.approx(_slow_norm_sub([float(value) for value in values], total), abs=1e-9)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.integers(1, 100))
def test_norm_sub_is_the_projection_where_there_is_too_much(values: list[int], total: int) -> None:
    if clip(values).sum() >= total:
        assert norm_sub(values, total=total) == pytest.approx(project_to_simplex(values, total=total), abs=1e-9)


def test_norm_sub_differs_from_the_projection_where_there_is_too_little() -> None:
    assert norm_sub([0.5, -0.01]).tolist() == [1, 0]
    assert project_to_simplex([0.5, -0.01]) == pytest.approx([0.755, 0.245])


def test_without_anything_positive_all_are_equal() -> None:
    assert norm_sub([-1.0, 0.0]).tolist() == [0.5, 0.5]


def test_a_total_of_zero() -> None:
    assert norm_sub([3.0, 1.0], total=0).tolist() == [0, 0]
    assert project_to_simplex([3.0, 1.0], total=0).tolist() == [0, 0]


@pytest.mark.parametrize("function", [project_to_simplex, norm_sub])
@pytest.mark.parametrize(
    ("values", "total"),
    [([], 1.0), ([[1.0]], 1.0), ([math.nan], 1.0), ([math.inf], 1.0), ([1.0], -1.0), ([1.0], math.nan)],
)
def test_what_cannot_be_projected_is_refused(function: Any, values: Any, total: float) -> None:
    with pytest.raises(ParameterError, match="give"):
        function(values, total=total)


@pytest.mark.parametrize("variances", [[1.0], [1.0, 0.0], [1.0, math.nan]])
def test_variances_are_above_zero(variances: list[float]) -> None:
    with pytest.raises(ParameterError, match="one variance above 0"):
        project_to_simplex([1.0, 2.0], variances=variances)
