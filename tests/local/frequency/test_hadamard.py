from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy import linalg

from cloister.errors import ParameterError
from cloister.local.frequency import hadamard
from cloister.local.frequency.hadamard import order_for, parities, signs, support_counts, walsh_transform, with_parities

Integers = NDArray[np.int64]


def _grid(order: int) -> tuple[Integers, Integers]:
    codes, columns = np.meshgrid(np.arange(order - 1), np.arange(order), indexing="ij")
    return codes.reshape(-1), columns.reshape(-1)


@pytest.fixture(params=["counted", "folded"])
def _way_to_parities(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "folded":
        monkeypatch.delattr(np, "bitwise_count", raising=False)


@pytest.mark.usefixtures("_way_to_parities")
@pytest.mark.parametrize("order", [2, 4, 32])
def test_signs_are_the_rows_of_the_matrix_behind_the_first(order: int) -> None:
    codes, columns = _grid(order)
    entries = signs(columns, codes)
    assert entries.dtype == np.int64
    assert entries.reshape(order - 1, order).tolist() == linalg.hadamard(order)[1:].tolist()
    assert parities(columns, codes).tolist() == ((1 - entries) // 2).tolist()


@given(arrays.arrays(np.int64, 10, elements=st.integers(0, 2**32)))
def test_folding_agrees_with_counting(numbers: Integers) -> None:
    expected = [number.bit_count() % 2 for number in numbers.tolist()]
    assert hadamard._fold_parities(numbers).tolist() == expected
    assert hadamard._parities(numbers).tolist() == expected


@pytest.mark.parametrize("order", [2, 8, 64])
@pytest.mark.parametrize("parity", [0, 1])
def test_uniform_columns_become_uniform_on_the_wanted_side(order: int, parity: int) -> None:
    codes, columns = _grid(order)
    moved = with_parities(columns, codes, np.full_like(codes, parity)).reshape(order - 1, order)
    for row, entries in zip(moved, linalg.hadamard(order)[1:], strict=True):
        side = entries == (1, -1)[parity]
        assert np.bincount(row, minlength=order).tolist() == (2 * side).tolist()


def test_moving_columns_leaves_the_arguments_alone() -> None:
    codes, columns = _grid(8)
    before = codes.copy(), columns.copy()
    with_parities(columns, codes, np.ones_like(codes))
    assert np.array_equal(codes, before[0])
    assert np.array_equal(columns, before[1])


@given(st.integers(0, 7), st.data())
def test_the_transform_is_the_product_with_the_matrix(power: int, data: st.DataObject) -> None:
    order = 2**power
    counts = data.draw(arrays.arrays(np.int64, order, elements=st.integers(-(2**40), 2**40)))
    transformed = counts.copy()
    walsh_transform(transformed)
    assert transformed.tolist() == (linalg.hadamard(order) @ counts).tolist()
    walsh_transform(transformed)
    assert transformed.tolist() == (order * counts).tolist()


@given(st.integers(1, 40), st.integers(0, 2), st.data())
def test_counts_agree_with_the_definition(domain_size: int, larger: int, data: st.DataObject) -> None:
    order = order_for(domain_size) << larger
    columns = data.draw(arrays.arrays(np.int64, st.integers(0, 50), elements=st.integers(0, order - 1)))
    matrix = linalg.hadamard(order)
    expected = [int((matrix[value + 1, columns] == 1).sum()) for value in range(domain_size)]
    assert support_counts(columns, order, domain_size).tolist() == expected


def test_orders() -> None:
    assert [order_for(size) for size in (1, 2, 3, 4, 1023, 1024)] == [2, 4, 4, 8, 1024, 2048]
    assert order_for(2**32 - 1) == 2**32
    with pytest.raises(ParameterError, match="smaller domain"):
        order_for(2**32)


@pytest.mark.parametrize(("order", "domain_size"), [(8, 8), (12, 4), (0, 1)])
def test_orders_must_suit_the_domain(order: int, domain_size: int) -> None:
    with pytest.raises(ParameterError, match="order_for"):
        support_counts(np.zeros(1, dtype=np.int64), order, domain_size)


@pytest.mark.parametrize("bad", [-1, 8])
def test_columns_outside_the_matrix_are_refused(bad: int) -> None:
    with pytest.raises(ParameterError, match="validate reports"):
        support_counts(np.array([0, bad]), 8, 4)


@pytest.mark.parametrize("shape", [0, 3, (2, 2)])
def test_transforms_need_a_power_of_two(shape: int | tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match="pad it with zeros"):
        walsh_transform(np.zeros(shape, dtype=np.int64))
