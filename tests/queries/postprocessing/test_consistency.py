from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray
from scipy import optimize

from cloister.errors import CloisterError
from cloister.mechanisms import DiscreteLaplace
from cloister.queries.postprocessing import consistent_table, with_total

cells = st.floats(-100, 100)
spreads = st.floats(0.1, 100)


@st.composite
def _vectors(draw: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    size = draw(st.integers(1, 6))
    values, variances = (np.array(draw(st.lists(kind, min_size=size, max_size=size))) for kind in (cells, spreads))
    return values, variances, draw(st.floats(0, 200))


def _nearest(values: Any, variances: Any, total: float) -> Any:
    """Solve the quadratic program by brute force: every choice of the cells that stay above zero."""
    best = None
    for kept in range(1, 2 ** len(values)):
        mask = np.array([kept >> index & 1 for index in range(len(values))], dtype=bool)
        point = np.zeros(len(values))
        shift = (values[mask].sum() - total) / variances[mask].sum()
        point[mask] = values[mask] - shift * variances[mask]
        distance = ((point - values) ** 2 / variances).sum()
        if point.min() >= -1e-9 and (best is None or distance < best[0]):
            best = distance, point
    assert best is not None
    return best[1]


@given(_vectors())
def test_cells_with_a_total_are_the_nearest_ones(case: Any) -> None:
    values, variances, total = case
    found = with_total(values, total=total, variances=variances)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, abs=1e-6)
    assert found == pytest.approx(_nearest(values, variances, total), abs=1e-6)


@given(_vectors())
def test_signed_cells_share_the_difference_by_their_variances(case: Any) -> None:
    values, variances, total = case
    found = with_total(values, total=total, variances=variances, signed=True)
    assert found.sum() == pytest.approx(total, abs=1e-6)
    moves = (found - values) / variances
    assert moves == pytest.approx(np.full(len(values), moves[0]), abs=1e-9)


def test_what_is_consistent_stays_as_it_is() -> None:
    assert with_total([1.0, 2.0, 3.0], total=6).tolist() == [1, 2, 3]


def test_a_table_of_cells_keeps_its_shape_and_a_negative_total_counts_as_zero() -> None:
    assert with_total([[1.0, 2.0], [3.0, 4.0]], total=-5).tolist() == [[0, 0], [0, 0]]
    answer = DiscreteLaplace(sensitivity=1, epsilon=1).release(np.array([50, 60]))
    assert with_total(answer, total=110).sum() == pytest.approx(110)


TABLE = np.array([[4.0, 6.0, 1.0], [9.0, -1.0, 2.0]])


def _by_hand(table: Any, variance: Any, margins: list[tuple[Any, float, float]]) -> Any:
    """Minimize the weighted squares by a general solver: each margin is (matrix row over cells, sum, variance)."""
    rows = [np.eye(table.size) / np.sqrt(variance)]
    goals = [table.ravel() / np.sqrt(variance)]
    for pattern, total, spread in margins:
        rows.append(np.ravel(pattern)[None, :] / np.sqrt(spread))
        goals.append(np.array([total / np.sqrt(spread)]))
    return optimize.lsq_linear(np.vstack(rows), np.concatenate(goals), tol=1e-14).x.reshape(table.shape)


def _pattern(row: int | None, column: int | None) -> Any:
    pattern = np.zeros(TABLE.shape)
    pattern[slice(None) if row is None else row, slice(None) if column is None else column] = 1
    return pattern


def test_a_table_is_the_least_squares_solution() -> None:
    found = consistent_table(
        TABLE, variance=2, rows=[12, 12], row_variance=4, columns=[14, 6, 2], column_variance=[1, 2, 3],
        total=23, total_variance=0.5,
    )  # fmt: skip
    margins = [(_pattern(row, None), 12, 4) for row in range(2)]
    margins += [(_pattern(None, 0), 14, 1), (_pattern(None, 1), 6, 2), (_pattern(None, 2), 2, 3)]
    margins += [(_pattern(None, None), 23, 0.5)]
    assert found.cells == pytest.approx(_by_hand(TABLE, 2, margins), abs=1e-8)
    assert found.rows == pytest.approx(found.cells.sum(axis=1))
    assert found.columns == pytest.approx(found.cells.sum(axis=0))
    assert found.total == pytest.approx(found.rows.sum())


def test_public_margins_are_met_exactly_even_when_they_repeat_each_other() -> None:
    found = consistent_table(
        TABLE, variance=2, rows=[12, 8], row_variance=0, columns=[13, 5, 2], column_variance=0,
        total=20, total_variance=0,
    )  # fmt: skip
    assert found.rows == pytest.approx([12, 8])
    assert found.columns == pytest.approx([13, 5, 2])


def test_cells_alone_stay_as_they_are_and_answers_state_their_noise() -> None:
    assert consistent_table(TABLE, variance=1).cells.tolist() == TABLE.tolist()
    noise = DiscreteLaplace(sensitivity=1, epsilon=0.5)
    cells, total = noise.release(TABLE.astype(int)), noise.release(21)
    spread = noise.standard_deviation**2
    stated = consistent_table(cells, total=total)
    given = consistent_table(cells.value, variance=spread, total=total.value, total_variance=spread)
    assert np.array_equal(stated.cells, given.cells)
    gap = total.value - np.sum(cells.value)
    assert stated.total == pytest.approx(np.sum(cells.value) + gap * 6 / 7)


def test_consistency_reduces_the_error_as_much_as_theory_says() -> None:
    """The estimate is linear, so its exact variances follow from what each single noisy number moves.

    With all variances 1, the total is known from cells (20), rows (4) and columns (5): 1 / (1/20 + 1/4 + 1/5) = 2. A
    contrast between rows has 1 / (1/5 + 1) = 5/6, between columns 1 / (1/4 + 1) = 4/5, and the rest of a cell 1.
    """
    height, width = 4, 5
    inputs = np.eye(height * width + height + width)
    moved = [
        consistent_table(
            unit[: height * width].reshape(height, width), variance=1,
            rows=unit[height * width : -width], row_variance=1, columns=unit[-width:], column_variance=1,
        )
        for unit in inputs
    ]  # fmt: skip
    row, column, rest = 3 / 4 * 5 / 6, 4 / 5 * 4 / 5, 3 / 4 * 4 / 5
    assert sum(table.total**2 for table in moved) == pytest.approx(2)
    assert sum(table.rows**2 for table in moved) == pytest.approx([row + 2 / 16] * height)
    assert sum(table.columns**2 for table in moved) == pytest.approx([column + 2 / 25] * width)
    cell = rest + row / 25 + column / 16 + 2 / 400
    assert sum(table.cells**2 for table in moved) == pytest.approx(np.full((height, width), cell))


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"cells": [1.0, 2.0]}, "one list of cells"),
        ({"variance": None}, "variance="),
        ({"variance": -1}, "one number"),
        ({"variance": [1.0, 2.0]}, "shape of what it belongs to"),
        ({"rows": [1.0], "row_variance": 1}, "one sum for each"),
        ({"rows": [1.0, 2.0]}, "row_variance="),
        ({"rows": [9, 9], "row_variance": 0, "total": 20, "total_variance": 0}, "correct the public ones"),
    ],
)
def test_odd_tables_are_refused_with_a_fix(changes: dict[str, Any], fix: str) -> None:
    arguments = {"cells": TABLE, "variance": 1} | changes
    with pytest.raises(CloisterError, match=fix):
        consistent_table(**arguments)


@pytest.mark.parametrize(
    ("changes", "fix"),
    [({"total": [1, 2]}, "total= as a number"), ({"variances": 0}, "above 0"), ({"variances": [1, 2, 3]}, "shape")],
)
def test_odd_totals_are_refused_with_a_fix(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        with_total([1.0, 2.0], **({"total": 3} | changes))
