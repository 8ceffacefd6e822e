"""Interval arithmetic on fixed-point integers: a real number in a pair (low, high) scaled by a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from cloister.core import exact


@dataclass(frozen=True, slots=True)
class Interval:
    """A real number x >= 0 with ``low <= x * 2**bits <= high``."""

    low: int
    high: int
    bits: int

    @classmethod
    def of(cls, value: Fraction, bits: int) -> Interval:
        """Return the tightest interval of a rational."""
        scaled = value * 2**bits
        return cls(floor(scaled), ceil(scaled), bits)

    @classmethod
    def exp_of_minus(cls, exponent: Fraction, bits: int) -> Interval:
        """Return an interval of exp(-exponent), for an exponent that is not negative."""
        digits = int(bits * 0.302) + 5
        low, high = exact.exp_bounds(-exponent, digits=digits)
        return cls(floor(low * 2**bits), ceil(high * 2**bits), bits)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high, self.bits)

    def __mul__(self, other: Interval) -> Interval:
        return Interval((self.low * other.low) >> self.bits, -((-self.high * other.high) >> self.bits), self.bits)

    def times(self, count: int) -> Interval:
        """Return x times a whole number."""
        return Interval(self.low * count, self.high * count, self.bits)

    def minus(self, other: Interval) -> Interval:
        """Return x - y, for y not above x."""
        return Interval(max(0, self.low - other.high), self.high - other.low, self.bits)

    def one_minus(self) -> Interval:
        """Return 1 - x, for x in [0, 1]."""
        return Interval.of(Fraction(1), self.bits).minus(self)

    def over(self, other: Interval) -> Interval:
        """Return x / y."""
        return Interval((self.low << self.bits) // other.high, -((-self.high << self.bits) // other.low), self.bits)

    def floor_at(self, bits: int) -> int | None:
        """Return floor(x * 2**bits), capped just below 1, or None when the interval is too wide to tell."""
        shift, most = self.bits - bits, (1 << bits) - 1
        low, high = min(self.low >> shift, most), min(self.high >> shift, most)
        return low if low == high else None
