"""What the parties of a distributed PCA agree on beforehand: public numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.crypto.packing import Packing
from cloister.crypto.paillier import PaillierPublicKey
from cloister.mechanisms.shared_noise import SharedGaussian
from cloister.protocols.pca.fixed_point import FixedPoint

__all__ = ["Budgeted", "Plan", "Released", "Shares", "symmetric", "upper_triangle", "with_noise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgeted:
    """What may be spent, and by how many owners the noise is made; no epsilon is no noise."""

    epsilon: Fraction | None
    delta: Fraction
    owners: int
    colluding: int


@dataclass(frozen=True, slots=True)
class Shares:
    """Whole numbers of one owner, or of all: those that may be packed, and those that stay alone. Protected."""

    packed: list[int]
    alone: list[int]

    def __repr__(self) -> str:
        return f"Shares(packed={len(self.packed)}, alone={len(self.alone)})"


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """What the data user gets in the end: noisy scatter, number of rows and mean, in the units of the rows."""

    scatter: Floats
    count: float
    mean: Floats | None
    deviation: float
    """The standard deviation of the noise on an entry of the scatter."""


class Plan(Protocol):
    """One way to add up what the owners have."""

    @property
    def columns(self) -> int:
        """Return how many columns rows have."""
        ...

    @property
    def noise(self) -> SharedGaussian | None:
        """Return the noise, of which each owner adds a share, if there is any."""
        ...

    @property
    def event(self) -> Event | None:
        """Return what the run is for the accountants, if it is private."""
        ...

    @property
    def packed(self) -> int:
        """Return how many numbers are packed."""
        ...

    @property
    def alone(self) -> int:
        """Return how many numbers have a ciphertext of their own."""
        ...

    @property
    def largest(self) -> int:
        """Return how large a packed number can become on the way."""
        ...

    @property
    def learned_by_user(self) -> str:
        """Return what the data user learns, in words."""
        ...

    def shares(self, rows: Floats, source: RandomSource) -> Shares:
        """Return what an owner contributes, noise included."""
        ...

    def forward(
        self,
        key: PaillierPublicKey,
        packing: Packing,
        packed: Sequence[int],
        alone: Sequence[int],
        source: RandomSource,
    ) -> tuple[list[int], list[int]]:
        """Return what the proxy makes of the encrypted sums for the data user."""
        ...

    def read(self, total: Shares) -> Released:
        """Return what the data user makes of the decrypted numbers."""
        ...


def second_moments(steps: Floats, whole: FixedPoint) -> NDArray[Any]:
    """Return the exact sum of xx' over rows of whole steps."""
    weights = np.ones(len(steps), dtype=np.int64)
    return exact_product(steps, steps, weights, most=whole.largest**2).astype(object)


def column_sums(steps: Floats, whole: FixedPoint) -> NDArray[Any]:
    """Return the exact sums of columns of whole steps."""
    ones = np.ones((len(steps), 1))
    return exact_product(steps, ones, np.ones(len(steps), dtype=np.int64), most=whole.largest)[:, 0].astype(object)


def upper_triangle(matrix: NDArray[Any]) -> list[int]:
    """Return the entries on and above the diagonal, line by line, as Python's integers."""
    return [int(entry) for entry in matrix[np.triu_indices(len(matrix))]]


def symmetric(entries: Sequence[int], width: int) -> NDArray[Any]:
    """Return the symmetric matrix of an upper triangle."""
    matrix = np.zeros((width, width), dtype=object)
    rows, columns = np.triu_indices(width)
    matrix[rows, columns] = matrix[columns, rows] = np.array(entries, dtype=object)
    return matrix


def with_noise(entries: Sequence[int], noise: SharedGaussian | None, source: RandomSource) -> list[int]:
    """Return numbers with one owner's share of the noise."""
    if noise is None:
        return list(entries)
    return [entry + int(drawn) for entry, drawn in zip(entries, noise.draw(source, len(entries)), strict=True)]


def in_units(matrix: NDArray[Any], divisor: Fraction) -> Floats:
    """Return whole numbers divided, each rounded once."""
    return np.array([float(int(entry) / divisor) for entry in matrix.flat]).reshape(matrix.shape)
