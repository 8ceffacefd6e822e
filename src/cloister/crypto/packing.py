"""Several signed numbers in one: what is added in one is added in each of them.

Each number gets a slot of its own bits, and a packed number is the sum of all of them, each times the power of two at
which its slot begins. Sums and multiples of packed numbers are packed sums and multiples, as long as every number stays
within the bound of its slot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from cloister.errors import ParameterError

__all__ = ["Packing"]


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
        return [self._packed([numbers[place] for place in batch]) for batch in self.batches(len(numbers))]

    def unpack(self, packed: Sequence[int], *, count: int) -> list[int]:
        """Return the numbers in packed ones."""
        batches = self.batches(count)
        pairs = zip(packed, batches, strict=True)
        return list(itertools.chain.from_iterable(self._unpacked(number, len(batch)) for number, batch in pairs))

    def _packed(self, numbers: Sequence[int]) -> int:
        total = 0
        for number in reversed(numbers):
            total = (total << self.slot_bits) + number
        return total

    def _unpacked(self, packed: int, count: int) -> list[int]:
        found, whole = [], 1 << self.slot_bits
        for _ in range(count):
            digit = packed % whole
            if 2 * digit >= whole:
                digit -= whole
            found.append(digit)
            packed = (packed - digit) >> self.slot_bits
        return found
