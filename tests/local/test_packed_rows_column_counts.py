from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from cloister.core.random import SeededRandomSource
from cloister.errors import ParameterError
from cloister.local import _packed_rows as module
from cloister.local._packed_rows import column_counts


def _rows(rows: int, width: int, seed: int) -> NDArray[np.uint8]:
    drawn = SeededRandomSource(seed).random_bytes(rows * width)
    return np.frombuffer(drawn, dtype=np.uint8).reshape(rows, width)


def _reference(packed: NDArray[np.uint8], columns: int) -> list[int]:
    counts: list[int] = np.unpackbits(packed, axis=1, count=columns, bitorder="little").astype(int).sum(axis=0).tolist()
    return counts


@given(st.integers(0, 300), st.integers(1, 80), st.integers(0, 2**32), st.sampled_from([1, 64, 2**15]))
def test_counts_agree_with_unpacked_bits(rows: int, columns: int, seed: int, line: int) -> None:
    packed = _rows(rows, -(-columns // 8), seed)
    with mock.patch.object(module, "_LINE", line):
        counts = column_counts(packed, columns)
    assert counts.dtype == np.int64
    assert counts.tolist() == _reference(packed, columns)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7, 8, 15, 16, 17, 63, 64, 1000])
def test_full_counters_do_not_overflow(rows: int) -> None:
    with mock.patch.object(module, "_LINE", 1):
        assert column_counts(np.full((rows * 8, 8), 255, dtype=np.uint8), 64).tolist() == [rows * 8] * 64


def test_many_rows_in_lines_of_the_real_size() -> None:
    packed = _rows(50_021, 17, 3)
    assert column_counts(packed, 131).tolist() == _reference(packed, 131)


def test_rows_need_not_lie_side_by_side_nor_start_at_a_word() -> None:
    packed = _rows(2001, 10, 4)
    for view in (packed[::2], packed[1:, 1:], packed[:, ::-1]):
        assert column_counts(view, 8 * view.shape[1]).tolist() == _reference(view, 8 * view.shape[1])


def test_the_rows_are_left_as_they_are() -> None:
    packed = _rows(500, 8, 5).copy()
    before = packed.copy()
    column_counts(packed, 64)
    assert np.array_equal(packed, before)


def test_the_published_unary_example() -> None:
    reports = np.array([list(map(int, row)) for row in ("011100", "100110", "111010", "101010")], dtype=np.uint8)
    packed = np.packbits(reports, axis=1, bitorder="little")
    assert column_counts(packed, 6).tolist() == [3, 2, 3, 2, 3, 0]


@pytest.mark.parametrize(
    ("packed", "columns"),
    [
        (np.zeros((2, 2), dtype=np.uint8), 17),
        (np.zeros((2, 2), dtype=np.uint8), 8),
        (np.zeros(2, dtype=np.uint8), 16),
        (np.zeros((2, 2), dtype=np.int64), 16),
    ],
)
def test_other_shapes_are_refused(packed: NDArray[np.uint8], columns: int) -> None:
    with pytest.raises(ParameterError, match="bytes in a row"):
        column_counts(packed, columns)
