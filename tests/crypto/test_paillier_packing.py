from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cloister.crypto.paillier import Packing, PaillierPrivateKey
from cloister.errors import ParameterError

KEY = PaillierPrivateKey.generate(bits=1024, insecure_for_tests=True)
values = st.lists(st.integers(-1000, 1000), max_size=40)


@given(values, st.integers(12, 200))
def test_numbers_come_back(numbers: list[int], bits: int) -> None:
    packing = Packing.for_numbers(largest=1000, bits=bits + 2)
    packed = packing.pack(numbers)
    assert len(packed) == packing.numbers(len(numbers))
    assert all(4 * abs(number) < 2 ** (bits + 1) for number in packed)
    assert packing.unpack(packed, count=len(numbers)) == numbers


@pytest.mark.parametrize("largest", [1, 127, 128, 1000])
def test_the_largest_numbers_of_both_signs_fit(largest: int) -> None:
    packing = Packing.for_numbers(largest=largest, bits=100)
    numbers = [largest, -largest] * packing.slots
    assert packing.unpack(packing.pack(numbers), count=len(numbers)) == numbers


def test_packed_numbers_are_added_under_encryption() -> None:
    packing = Packing.for_numbers(largest=10**6, bits=KEY.public.bits)
    left, right = [5, -7, 10**5, 0] * 30, [-1, -(10**5), 3, 8] * 30
    totals = [
        KEY.decrypt(KEY.public.add(KEY.public.encrypt(one), KEY.public.encrypt(two)))
        for one, two in zip(packing.pack(left), packing.pack(right), strict=True)
    ]
    assert len(totals) == 3
    assert packing.unpack(totals, count=120) == [one + two for one, two in zip(left, right, strict=True)]


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="use a longer key, fewer fraction bits"):
        Packing.for_numbers(largest=2**1022, bits=1024)
