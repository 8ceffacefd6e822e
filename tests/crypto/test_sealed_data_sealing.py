from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cloister.crypto.encryption import join_parts
from cloister.crypto.keys import DataKey
from cloister.crypto.sealed_data import seal, unseal
from cloister.errors import DecryptionError

KEY = DataKey.generate()
PAYLOAD = b'{"answer": 42.5}'
SEALED = seal(PAYLOAD, key=KEY, associated=b"result 7")


@given(payload=st.binary(max_size=300), associated=st.binary(max_size=50))
def test_what_is_sealed_comes_back(payload: bytes, associated: bytes) -> None:
    sealed = seal(payload, key=KEY, associated=associated)
    assert unseal(sealed, key=KEY, associated=associated) == payload
    assert len(sealed) == len(payload) + 45
    assert len(payload) < 4 or payload not in sealed


def test_the_same_payload_looks_different_each_time() -> None:
    again = seal(PAYLOAD, key=KEY, associated=b"result 7")
    assert again[1:] != SEALED[1:]


def test_it_opens_with_its_key_and_for_its_object_only() -> None:
    with pytest.raises(DecryptionError):
        unseal(SEALED, key=DataKey.generate(), associated=b"result 7")
    with pytest.raises(DecryptionError):
        unseal(SEALED, key=KEY, associated=b"result 8")


@given(position=st.integers(0, 8 * len(SEALED) - 1))
def test_any_changed_bit_is_found(position: int) -> None:
    damaged = bytearray(SEALED)
    damaged[position // 8] ^= 1 << position % 8
    with pytest.raises(DecryptionError):
        unseal(bytes(damaged), key=KEY, associated=b"result 7")


@given(kept=st.integers(0, len(SEALED) - 1))
def test_a_shortened_payload_is_refused(kept: int) -> None:
    with pytest.raises(DecryptionError):
        unseal(SEALED[:kept], key=KEY, associated=b"result 7")


def test_a_lengthened_payload_is_refused() -> None:
    with pytest.raises(DecryptionError):
        unseal(SEALED + b"\0", key=KEY, associated=b"result 7")


@given(st.lists(st.binary(max_size=5), max_size=4), st.lists(st.binary(max_size=5), max_size=4))
def test_joined_parts_can_be_told_apart(one: list[bytes], other: list[bytes]) -> None:
    assert (join_parts(*one) == join_parts(*other)) == (one == other)
