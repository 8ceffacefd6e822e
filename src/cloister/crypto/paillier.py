"""Paillier's encryption (1999): whoever has the public key can add numbers that only the key holder can read.

A number m is encrypted as ``(1 + m n) r**n mod n**2`` with a random r. The product of two ciphertexts is an encryption
of the sum, and the k-th power one of k times the number. Numbers are signed: those above n/2 stand for negative ones.
Without the key ciphertexts tell nothing (decisional composite residuosity), and two of one number differ.

Not promised: integrity. Whoever sees a ciphertext can change what is in it, which is what the scheme is for; sign
messages where that matters. The key holder can also recover the randomness of a ciphertext, so that one that was made
from the ciphertexts of others has to be given new randomness (`PaillierPublicKey.renew`) before the key holder sees
it. Python integers, and gmpy2, take a time that depends on their values: keep clocks away from the key holder.

Powers are computed by gmpy2 where it is installed (``pip install "cloister[crypto]"``), several times faster, and by
Python itself otherwise; both give the same numbers. The primes of a key come from the `cryptography` package.

`Packing` puts several signed numbers into one: what is added in one is added in each of them. Each number gets a slot
of its own bits, and a packed number is the sum of all of them, each times the power of two at which its slot begins.
Sums and multiples of packed numbers are packed sums and multiples, as long as every number stays within the bound of
its slot.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from cryptography.hazmat.primitives.asymmetric import rsa

from cloister.core import validation
from cloister.core.random import RandomSource, random_source
from cloister.crypto.encryption import SecretKey
from cloister.errors import CryptoError, ParameterError

__all__ = ["DEFAULT_KEY_BITS", "LEAST_KEY_BITS", "Packing", "PaillierPrivateKey", "PaillierPublicKey"]


@dataclass(frozen=True, slots=True)
class Packing:
    """How wide a slot is, and how many there are in one number.

    >>> packing = Packing.for_numbers(largest=200, bits=32)
    >>> packed = packing.pack([5, -7, 100, 1, 2])
    >>> len(packed), packing.unpack([2 * packed[0], 0], count=5)
    (2, [10, -14, 200, 0, 0])
    """

    slot_bits: int
    slots: int

    @classmethod
    def for_numbers(cls, *, largest: int, bits: int) -> Self:
        """Return the packing for numbers, sums included, of at most ``largest`` in magnitude and a modulus of ``bits``.

        Packed numbers stay below a quarter of the modulus.

        Raises:
            ParameterError: if not even one fits.
        """
        slot_bits = largest.bit_length() + 1
        slots = (bits - 2) // slot_bits
        if slots < 1:
            raise ParameterError(
                f"Numbers of {slot_bits} bits do not fit into a key of {bits} bits.",
                fix="use a longer key, fewer fraction bits, or fewer rows.",
            )
        return cls(slot_bits, slots)

    def numbers(self, count: int) -> int:
        """Return how many packed numbers hold so many numbers."""
        return -(-count // self.slots)

    def batches(self, count: int) -> list[range]:
        """Return the places of the numbers in each packed number."""
        return [range(start, min(start + self.slots, count)) for start in range(0, count, self.slots)]

    def pack(self, numbers: Sequence[int]) -> list[int]:
        """Return numbers packed."""
        return [self._pack([numbers[place] for place in batch]) for batch in self.batches(len(numbers))]

    def unpack(self, packed: Sequence[int], *, count: int) -> list[int]:
        """Return the numbers in packed ones."""
        batches = self.batches(count)
        pairs = zip(packed, batches, strict=True)
        return list(itertools.chain.from_iterable(self._unpack(number, len(batch)) for number, batch in pairs))

    def _pack(self, numbers: Sequence[int]) -> int:
        total = 0
        for number in reversed(numbers):
            # A negative number borrows from the slot above, which unpacking gives back.
            total = (total << self.slot_bits) + number
        return total

    def _unpack(self, packed: int, count: int) -> list[int]:
        found, whole = [], 1 << self.slot_bits
        for _ in range(count):
            digit = packed % whole
            if 2 * digit >= whole:
                digit -= whole
            found.append(digit)
            # Taking off the signed digit returns what it borrowed.
            packed = (packed - digit) >> self.slot_bits
        return found


DEFAULT_KEY_BITS = 3072
"""As strong as a symmetric key of 128 bits."""

LEAST_KEY_BITS = 2048
"""What is refused below, except in tests."""

_EXPONENT = 65537
_SMALLEST_GENERATED = 1024
"""The shortest key that `cryptography` makes the primes for."""


@dataclass(frozen=True)
class PaillierPublicKey:
    """Encrypts, and adds what is encrypted.

    Args:
        modulus: n, the product of two secret primes.
        insecure_for_tests: accepts a short modulus, which protects nothing.

    >>> key = PaillierPrivateKey.generate(bits=2048)
    >>> total = key.public.add(key.public.encrypt(20), key.public.encrypt(-5))
    >>> key.decrypt(key.public.multiply(total, 3))
    45
    """

    modulus: int
    insecure_for_tests: bool = False

    def __post_init__(self) -> None:
        least = 6 if self.insecure_for_tests else LEAST_KEY_BITS
        if self.modulus.bit_length() < least or self.modulus % 2 == 0:
            raise CryptoError(
                f"A key for this encryption is odd and has {LEAST_KEY_BITS} bits or more.",
                fix="make one with PaillierPrivateKey.generate().",
            )

    @property
    def bits(self) -> int:
        """Return how many bits the modulus has."""
        return self.modulus.bit_length()

    @cached_property
    def _square(self) -> int:
        return self.modulus**2

    @property
    def size(self) -> int:
        """Return how many bytes a ciphertext has."""
        return (self._square.bit_length() + 7) // 8

    # Encrypting ------------------------------------------------------------------------------------------------------

    def encrypt(self, number: int, source: RandomSource | None = None) -> int:
        """Return a ciphertext of a number between -n/2 and n/2, another one each time.

        Raises:
            ParameterError: if the number is too large for the key.
        """
        return self.encrypt_with(number, factor=self._factor(source))

    def encrypt_with(self, number: int, *, factor: int) -> int:
        """Return the ciphertext that a given random factor makes: for comparisons only."""
        if 2 * abs(number) >= self.modulus:
            raise ParameterError("A number is too large for this key.", fix="use a longer key or smaller numbers.")
        power = power_function()
        return (1 + number % self.modulus * self.modulus) * power(factor, self.modulus, self._square) % self._square

    def renew(self, ciphertext: int, source: RandomSource | None = None) -> int:
        """Return a ciphertext of the same number with new randomness, from which the old one cannot be told."""
        return self.add(ciphertext, self.encrypt(0, source))

    def _factor(self, source: RandomSource | None) -> int:
        """Return a uniform number that has an inverse modulo n."""
        drawn, size = random_source(source), (self.bits + 7) // 8
        while True:
            factor = int.from_bytes(drawn.random_bytes(size), "big") >> (8 * size - self.bits)
            # Draws outside are refused: a remainder would favor small factors.
            if 0 < factor < self.modulus and math.gcd(factor, self.modulus) == 1:
                return factor

    # Computing -------------------------------------------------------------------------------------------------------

    def add(self, *ciphertexts: int) -> int:
        """Return a ciphertext of the sum of what is encrypted; it is not renewed."""
        total = 1
        for ciphertext in ciphertexts:
            total = total * ciphertext % self._square
        return total

    def multiply(self, ciphertext: int, factor: int) -> int:
        """Return a ciphertext of a whole number of times what is encrypted; it is not renewed."""
        if factor < 0:
            # The inverse of a ciphertext is one of the negative number.
            return self.multiply(pow(ciphertext, -1, self._square), -factor)
        return power_function()(ciphertext, factor, self._square)

    # Carrying --------------------------------------------------------------------------------------------------------

    def to_bytes(self, ciphertexts: Iterable[int]) -> bytes:
        """Return ciphertexts one after the other."""
        return b"".join(ciphertext.to_bytes(self.size, "big") for ciphertext in ciphertexts)

    def from_bytes(self, sent: bytes, *, count: int) -> list[int]:
        """Return the ciphertexts that `to_bytes` wrote.

        Raises:
            CryptoError: if there are not as many, or some of them are no ciphertexts of this key.
        """
        if len(sent) != count * self.size:
            raise CryptoError("There are not as many ciphertexts as there should be.", fix=_ASK_AGAIN)
        read = [int.from_bytes(sent[at : at + self.size], "big") for at in range(0, len(sent), self.size)]
        for ciphertext in read:
            self.check(ciphertext)
        return read

    def check(self, ciphertext: int) -> None:
        """Raise unless a number can be a ciphertext of this key.

        Raises:
            CryptoError: if it is out of range or shares a factor with the modulus.
        """
        # A factor shared with the modulus is one of the primes: no honest sender has it.
        if not 0 < ciphertext < self._square or math.gcd(ciphertext, self.modulus) != 1:
            raise CryptoError("This is no ciphertext of this key.", fix=_ASK_AGAIN)


class PaillierPrivateKey(SecretKey):
    """Reads what is encrypted with its public key."""

    __slots__ = ("_first", "_inverse", "_second", "public")

    def __init__(self, first: int, second: int, *, insecure_for_tests: bool = False) -> None:
        modulus = first * second
        # Where this holds, n-th powers are undone by the secret exponent, so that every number can be read.
        if first == second or math.gcd(modulus, (first - 1) * (second - 1)) != 1:
            raise CryptoError(
                "These are no primes for a key: they must be different and of one length.",
                fix="make a key with PaillierPrivateKey.generate().",
            )
        self.public = PaillierPublicKey(modulus, insecure_for_tests=insecure_for_tests)
        self._first, self._second = _Half.of(first, modulus), _Half.of(second, modulus)
        self._inverse = pow(second, -1, first)

    @classmethod
    def generate(cls, *, bits: int = DEFAULT_KEY_BITS, insecure_for_tests: bool = False) -> PaillierPrivateKey:
        """Return a new key.

        Args:
            bits: the length of the modulus, 2048 or more.
            insecure_for_tests: allows 1024 bits and more, which is fast and protects nothing.

        Raises:
            ParameterError: if the key would be too short.
        """
        length = validation.check_count(bits, name="bits", at_least=1)
        least = _SMALLEST_GENERATED if insecure_for_tests else LEAST_KEY_BITS
        if length < least:
            raise ParameterError(
                f"A key of {length} bits is too short.", fix=f"use {DEFAULT_KEY_BITS} bits, and at least {least}."
            )
        numbers = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=length).private_numbers()
        return cls(numbers.p, numbers.q, insecure_for_tests=insecure_for_tests)

    def decrypt(self, ciphertext: int) -> int:
        """Return the number in a ciphertext, between -n/2 and n/2.

        Raises:
            CryptoError: if it is no ciphertext of this key.
        """
        self.public.check(ciphertext)
        first, second = self._first.decrypt(ciphertext), self._second.decrypt(ciphertext)
        # The Chinese remainder theorem: modulo each prime alone the powers are several times faster.
        number = second + self._second.prime * ((first - second) * self._inverse % self._first.prime)
        return number - self.public.modulus if 2 * number > self.public.modulus else number


@dataclass(frozen=True, slots=True)
class _Half:
    """Decrypts modulo one of the primes."""

    prime: int
    square: int
    scale: int

    @classmethod
    def of(cls, prime: int, modulus: int) -> _Half:
        """Return the half of a prime: (1 + n)**(p - 1) is 1 + (p - 1) n modulo p**2, so that L of it is -q."""
        return cls(prime, prime**2, pow(-(modulus // prime), -1, prime))

    def decrypt(self, ciphertext: int) -> int:
        """Return the number modulo the prime."""
        raised = power_function()(ciphertext % self.square, self.prime - 1, self.square)
        return (raised - 1) // self.prime * self.scale % self.prime


def power_function() -> Callable[[int, int, int], int]:
    """Return what computes powers modulo a number: gmpy2's function where there is one, else Python's."""
    try:
        from gmpy2 import powmod
    except ImportError:
        return pow
    return lambda base, exponent, modulus: int(powmod(base, exponent, modulus))


_ASK_AGAIN = "ask the sender for the message again; if it stays, stop the protocol."
