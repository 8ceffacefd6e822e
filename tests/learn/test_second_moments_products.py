from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.learn._encoding import Encoding
from cloister.learn._features import Categorical, Feature, Numeric
from cloister.learn._row_grid import grid_of
from cloister.learn._rows import CompactRows
from cloister.learn._second_moments import products_of, products_of_coded


@st.composite
def tables(draw: st.DrawFn) -> tuple[Encoding, CompactRows]:
    """Return numbers and categories in any order, some rows without a declared value, and how often rows occur."""
    sizes = draw(st.lists(st.sampled_from([0, 1, 2, 3, 9, 30]), min_size=1, max_size=6))
    rows = draw(st.integers(1, 12))
    features: list[Feature] = []
    parts = []
    for place, size in enumerate(sizes):
        if size:
            features.append(Categorical(f"c{place}", tuple(range(size))))
            cells = st.lists(st.integers(0, size), min_size=rows, max_size=rows)
            parts.append(np.array(draw(cells), dtype=np.int64))
        else:
            features.append(Numeric(f"n{place}", -1.5, 4.0))
            numbers = st.lists(st.floats(-1e300, 1e300), min_size=rows, max_size=rows)
            parts.append(np.array(draw(numbers), dtype=np.float64))
    weights = draw(st.lists(st.integers(1, 50), min_size=rows, max_size=rows) | st.just([1] * rows))
    return Encoding(tuple(features)), CompactRows(tuple(parts), np.array(weights, dtype=np.int64))


@settings(max_examples=80, deadline=None)
@given(tables(), st.sampled_from(["range", "given"]), st.sampled_from(["inside", "zero"]))
def test_positions_give_the_same_products_as_columns(
    table: tuple[Encoding, CompactRows], scale: str, origin: str
) -> None:
    encoding, rows = table
    grid = grid_of(encoding, scale=scale, origin=origin)
    found = products_of_coded(grid, rows)
    steps = grid.steps(encoding.matrix_of(rows.parts))
    expected = products_of(steps, rows.weights, most=grid.row_bounds.largest)
    assert found is not None
    assert found.products.tolist() == expected.products.tolist()
    assert found.sums.tolist() == expected.sums.tolist()
    assert found.count == expected.count == rows.weights.sum()


def test_more_rows_than_floats_can_add_up_are_left_to_the_columns() -> None:
    encoding = Encoding((Categorical("sex", ("f", "m")),))
    for weight, is_left in ((2**21, False), (2**22, True)):
        rows = CompactRows((np.array([0]),), np.array([weight], dtype=np.int64))
        assert (products_of_coded(grid_of(encoding, scale="range"), rows) is None) is is_left


@pytest.mark.parametrize(
    "held", [CompactRows((np.array([4711]),), np.array([1])), products_of(np.ones((1, 2)), np.array([4711]), most=1)]
)
def test_what_is_protected_is_not_shown(held: object) -> None:
    assert "4711" not in repr(held)
