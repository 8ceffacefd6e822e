"""The noisy scatter and nothing else: what is released when the number of rows is public.

With N rows, sums v and products R, N times the scatter S is the whole matrix ``T = N R - vv'``. Owners send ``N R_l``
with noise, and ``v_l``, encrypted. The proxy adds a random whole vector b to the sums, and ``vb' + bv' + bb'`` to the
products. The data user decrypts ``w = v + b`` and ``Q = N R + H + vb' + bv' + bb'``, where H is all noise, and computes
``Q - ww' = T + H``, which is N times S with noise H / N.

The published protocol (DPDPCA) divides by N on the way. Then the sums have to be blinded with multiples of N, which
shows v modulo N, and the fractions of S, which is no whole matrix, show vv' modulo N through whole noise. Multiplied by
N, everything is whole, the noise is on the lattice of what it hides, and b is free.

Privacy: claim (epsilon, delta)-DP for one row replaced by another at the same owner, rows having norms of at most B.

- Noise. Let m be the mean of the other rows, and x and y the row before and after. S moves by (N - 1)/N times
  ``aa' - cc'`` with a = x - m and c = y - m. That is affine in m, so that its Frobenius norm is largest for |m| = B.
  Then |a| <= 2B cos p and |c| <= 2B cos q, p and q being the angles from -m. The squared norm,
  ``|a|**4 + |c|**4 - 2 (a.c)**2``, is convex in the pair of |a|**2 and |c|**2, so that it is largest at a corner. If a
  or c is 0 it is at most (2B)**4. If both are as long as can be, it is at most (2B)**4 times
  ``cos(p)**4 + cos(q)**4 - 2 (cos(p) cos(q) cos(s))**2`` with s = p + q below a right angle, which equals
  ``sin(s)**2 (1 + cos(s)**2 - (cos(q - p) - cos(s))**2 / 2)``, at most ``1 - cos(s)**4``; beyond, the first two terms
  are at most 1. So T moves by at most ``4 B**2 (N - 1)``, and its upper triangle by no more.
- Blinding. The sums move by at most 2B in each of M coordinates, and b is uniform on a range of at least 2**k times 2B,
  whatever else is seen: w is (0, M 2**-k)-private. Q is computed from w and T + H.

Both together are (epsilon, delta' + M 2**-k)-private if the noise is (epsilon, delta')-private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from cloister.accounting.events import ApproxEvent, Event
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.crypto.paillier import Packing, PaillierPublicKey
from cloister.mechanisms.gaussian import SharedGaussian
from cloister.protocols.pca._plans import (
    FixedPoint,
    NoiseSharing,
    Released,
    Shares,
    column_sums,
    in_units,
    second_moments,
    symmetric,
    upper_triangle,
    with_noise,
)

__all__ = ["BlindedScatterPlan", "plan_blinded_scatter"]

_HIDING = 64
_SHARE_OF_DELTA = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindedScatterPlan:
    """Adds up products, and sums that stay hidden from the data user.

    Attributes:
        rows: the public number of rows of all owners.
        hiding: k; the range of what hides the sums is 2**k times as large as they can be.
        noise: the noise, of which each owner adds a share, if there is any.
        event: what the run is for the accountants, if it is private; none of them knows the composition, so that it is
            the stated (epsilon, delta).
    """

    columns: int
    rows: int
    whole: FixedPoint
    hiding: int
    noise: SharedGaussian | None
    event: Event | None

    @property
    def packed(self) -> int:
        """Return how many numbers are packed: the upper triangle."""
        return self.columns * (self.columns + 1) // 2

    @property
    def alone(self) -> int:
        """Return how many sums there are."""
        return self.columns

    @property
    def blind_bits(self) -> int:
        """Return the bits of each number that is added to a sum."""
        return self.sums.bit_length() + self.hiding

    @property
    def sums(self) -> int:
        """Return how large a sum can be."""
        return self.rows * self.whole.largest

    @property
    def largest(self) -> int:
        """Return how large a blinded product can become."""
        noise = 0 if self.noise is None else self.noise.largest
        return self.sums**2 + (self.sums + (1 << self.blind_bits)) ** 2 + noise

    @property
    def learned_by_user(self) -> str:
        """Return what the data user learns."""
        return "the scatter matrix around the mean, " + ("exactly" if self.noise is None else "with noise")

    def shares(self, rows: Floats, source: RandomSource) -> Shares:
        """Return an owner's products times the number of all rows, with its share of the noise, and its sums."""
        steps = self.whole.steps(rows)
        products = upper_triangle(self.rows * second_moments(steps, self.whole))
        return Shares(
            with_noise(products, self.noise, source), [int(total) for total in column_sums(steps, self.whole)]
        )

    def blinds(self, source: RandomSource) -> list[int]:
        """Return uniform numbers to add to the sums."""
        size = -(-self.blind_bits // 8)
        drawn = (int.from_bytes(source.random_bytes(size), "big") for _ in range(self.columns))
        # The spare bits of the first byte go, so that numbers are uniform below a power of two.
        return [number >> (8 * size - self.blind_bits) for number in drawn]

    def forward(
        self,
        key: PaillierPublicKey,
        packing: Packing,
        packed: Sequence[int],
        alone: Sequence[int],
        source: RandomSource,
    ) -> tuple[list[int], list[int]]:
        """Return encrypted products and sums, blinded, with new randomness."""
        blinds = self.blinds(source)
        pairs = list(combinations_with_replacement(range(self.columns), 2))
        squares = packing.pack([blinds[left] * blinds[right] for left, right in pairs])
        products = []
        for ciphertext, batch, square in zip(packed, packing.batches(len(pairs)), squares, strict=True):
            crossed = _cross_terms(key, packing, [pairs[place] for place in batch], alone, blinds)
            # Encrypting the square also renews the randomness, by which the data user could recognize ciphertexts.
            products.append(key.add(ciphertext, crossed, key.encrypt(square)))
        sums = [key.add(total, key.encrypt(blind)) for total, blind in zip(alone, blinds, strict=True)]
        return products, sums

    def read(self, total: Shares) -> Released:
        """Return the scatter: exact arithmetic on what was decrypted, rounded once."""
        sums = np.array(total.alone, dtype=object)
        # Python's integers: products of sums pass 64 bits.
        scatter = symmetric(total.packed, self.columns) - np.outer(sums, sums)
        divisor = self.rows * self.whole.squared_unit
        return Released(
            scatter=in_units(scatter, divisor),
            count=float(self.rows),
            mean=None,
            deviation=0.0 if self.noise is None else self.noise.deviation / float(divisor),
        )


def _cross_terms(
    key: PaillierPublicKey,
    packing: Packing,
    pairs: Sequence[tuple[int, int]],
    sums: Sequence[int],
    blinds: Sequence[int],
) -> int:
    """Return encrypted v_i b_j + b_i v_j of several pairs, packed: from the last slot to the first."""
    # 1 encrypts 0, without randomness; what is added brings its own.
    total = 1
    for left, right in reversed(pairs):
        # Horner's rule: multiplying by a power of two moves all slots up by one.
        shifted = key.multiply(total, 1 << packing.slot_bits)
        total = key.add(shifted, key.multiply(sums[left], blinds[right]), key.multiply(sums[right], blinds[left]))
    return total


def plan_blinded_scatter(*, whole: FixedPoint, columns: int, rows: int, sharing: NoiseSharing) -> BlindedScatterPlan:
    """Return the plan that the budget buys for a public number of rows."""
    hiding, noise, event, budget = _HIDING, None, None, sharing.budget
    if budget is not None:
        # What hides the sums may take a thousandth of delta, and the noise gets the rest.
        hiding = max(hiding, math.ceil(_SHARE_OF_DELTA * columns / budget.delta).bit_length())
        event = ApproxEvent(epsilon=budget.amount, delta=budget.delta)
        noise = SharedGaussian.calibrate(
            epsilon=budget.amount,
            delta=budget.delta - Fraction(columns, 2**hiding),
            squared_sensitivity=(4 * whole.largest**2 * (rows - 1)) ** 2,
            dimensions=columns * (columns + 1) // 2,
            shares=sharing.owners,
            colluding=sharing.colluding,
        )
    return BlindedScatterPlan(columns=columns, rows=rows, whole=whole, hiding=hiding, noise=noise, event=event)
