from __future__ import annotations

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.random import ListedRandomSource, SeededRandomSource
from cloister.crypto.paillier import DEFAULT_KEY_BITS, LEAST_KEY_BITS, PaillierPrivateKey, PaillierPublicKey
from cloister.errors import CryptoError, ParameterError
from cloister.testing import check_golden, load_goldens

KEY = PaillierPrivateKey.generate(bits=1024, insecure_for_tests=True)
LONG = PaillierPrivateKey.generate(bits=2048)
TOY = PaillierPrivateKey(7, 11, insecure_for_tests=True)
FOLDER = Path(__file__).parents[1] / "golden" / "crypto"

numbers = st.integers(-(2**500), 2**500)


def toy(*, first: int, second: int) -> list[int]:
    key = PaillierPrivateKey(first, second, insecure_for_tests=True)
    public, modulus = key.public, key.public.modulus
    left, right, negative = (public.encrypt_with(m, factor=r) for m, r in ((15, 2), (20, 3), (-5, 4)))
    total, cube = public.add(left, right), public.multiply(left, 3)
    numbers = [key.decrypt(each) % modulus for each in (total, cube, negative)]
    return [left, right, total, numbers[0], cube, numbers[1], negative, numbers[2]]


@pytest.mark.parametrize("golden", load_goldens(FOLDER), ids=str)
def test_worked_examples(golden: Any) -> None:
    check_golden(golden, toy)


def test_every_number_of_a_small_key_comes_back_for_every_factor() -> None:
    public = TOY.public
    for number in range(-38, 39):
        for factor in (1, 2, 3, 5, 76):
            assert TOY.decrypt(public.encrypt_with(number, factor=factor)) == number


@given(numbers, numbers, st.integers(-(2**20), 2**20))
@settings(max_examples=15, deadline=None)
def test_sums_and_multiples_are_those_of_whole_numbers(left: int, right: int, factor: int) -> None:
    public = KEY.public
    encrypted = [public.encrypt(number) for number in (left, right)]
    assert KEY.decrypt(public.add(*encrypted)) == left + right
    small = public.encrypt(left >> 30)
    assert KEY.decrypt(public.multiply(small, factor)) == (left >> 30) * factor


def test_a_key_of_real_length_works() -> None:
    assert LONG.public.bits == LEAST_KEY_BITS
    assert LONG.decrypt(LONG.public.add(LONG.public.encrypt(-(10**300)), LONG.public.encrypt(1))) == 1 - 10**300


def test_the_default_is_longer_than_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, int] = {}

    def refuse(**options: int) -> None:
        asked.update(options)
        raise RuntimeError

    monkeypatch.setattr("cloister.crypto.paillier.rsa.generate_private_key", refuse)
    with pytest.raises(RuntimeError):
        PaillierPrivateKey.generate()
    assert asked["key_size"] == DEFAULT_KEY_BITS == 3072


def test_two_ciphertexts_of_one_number_differ_and_a_renewed_one_as_well() -> None:
    first, second = KEY.public.encrypt(7), KEY.public.encrypt(7)
    renewed = KEY.public.renew(first)
    assert len({first, second, renewed}) == 3
    assert {KEY.decrypt(each) for each in (first, second, renewed)} == {7}


def test_randomness_comes_from_the_source() -> None:
    one, two = (KEY.public.encrypt(7, SeededRandomSource(5)) for _ in range(2))
    assert one == two


def test_factors_without_an_inverse_are_drawn_again() -> None:
    source = ListedRandomSource(2 * factor for factor in (0, 7, 77, 99, 3))
    assert TOY.public.encrypt(15, source) == TOY.public.encrypt_with(15, factor=3)
    assert source.used == 5


@pytest.mark.parametrize("number", [2**1023, -(2**1024), KEY.public.modulus], ids=["large", "low", "modulus"])
def test_a_number_too_large_for_the_key_is_refused(number: int) -> None:
    with pytest.raises(ParameterError, match="use a longer key"):
        KEY.public.encrypt(number)


@pytest.mark.parametrize("bits", [2047, 1024, 512, 1])
def test_a_short_key_is_refused(bits: int) -> None:
    with pytest.raises(ParameterError, match="use 3072 bits, and at least 2048"):
        PaillierPrivateKey.generate(bits=bits)


def test_a_test_key_has_a_length_too() -> None:
    with pytest.raises(ParameterError, match="at least 1024"):
        PaillierPrivateKey.generate(bits=512, insecure_for_tests=True)


@pytest.mark.parametrize("modulus", [KEY.public.modulus, 77, 2**2048], ids=["short", "tiny", "even"])
def test_a_short_or_even_modulus_is_refused(modulus: int) -> None:
    with pytest.raises(CryptoError, match="make one with PaillierPrivateKey.generate"):
        PaillierPublicKey(modulus)


@pytest.mark.parametrize(("first", "second"), [(7, 7), (3, 7)])
def test_primes_that_make_no_key_are_refused(first: int, second: int) -> None:
    with pytest.raises(CryptoError, match="make a key with"):
        PaillierPrivateKey(first, second, insecure_for_tests=True)


def test_ciphertexts_travel_as_bytes() -> None:
    sent = [KEY.public.encrypt(number) for number in (1, -2, 3)]
    payload = KEY.public.to_bytes(sent)
    assert len(payload) == 3 * KEY.public.size == 3 * 256
    assert KEY.public.from_bytes(payload, count=3) == sent
    assert KEY.public.from_bytes(b"", count=0) == []


def test_a_cut_payload_is_refused() -> None:
    payload = KEY.public.to_bytes([KEY.public.encrypt(1)])
    with pytest.raises(CryptoError, match="ask the sender"):
        KEY.public.from_bytes(payload[:-1], count=1)
    with pytest.raises(CryptoError, match="ask the sender"):
        KEY.public.from_bytes(payload, count=2)


@pytest.mark.parametrize("ciphertext", [0, 7, 77, 77**2, -1])
def test_what_is_no_ciphertext_is_refused(ciphertext: int) -> None:
    with pytest.raises(CryptoError, match="no ciphertext of this key"):
        TOY.decrypt(ciphertext)


def test_a_private_key_is_neither_shown_nor_copied() -> None:
    assert repr(KEY) == "PaillierPrivateKey(...)"
    with pytest.raises(CryptoError, match="may not be copied"):
        pickle.dumps(KEY)


def test_gmpy2_computes_powers_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def powmod(base: int, exponent: int, modulus: int) -> int:
        calls.append(exponent)
        return pow(base, exponent, modulus)

    monkeypatch.setitem(sys.modules, "gmpy2", SimpleNamespace(powmod=powmod))
    assert TOY.decrypt(TOY.public.multiply(TOY.public.encrypt_with(15, factor=2), 2)) == 30
    assert calls == [77, 2, 6, 10]


def test_python_computes_them_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    assert TOY.decrypt(TOY.public.encrypt_with(15, factor=2)) == 15
