from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from cloister.local._packed_rows import write_bits


@given(st.integers(0, 20), st.integers(1, 30), st.data())
def test_one_bit_of_each_row_is_written(rows: int, columns: int, data: st.DataObject) -> None:
    before = data.draw(arrays.arrays(np.bool_, (rows, columns)))
    codes = data.draw(arrays.arrays(np.int64, rows, elements=st.integers(0, columns - 1)))
    bits = data.draw(arrays.arrays(np.bool_, rows))
    packed = np.packbits(before, axis=1, bitorder="little")
    write_bits(packed, codes, bits)
    before[np.arange(rows), codes] = bits
    assert np.array_equal(packed, np.packbits(before, axis=1, bitorder="little"))
