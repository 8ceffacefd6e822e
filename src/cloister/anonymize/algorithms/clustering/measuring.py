"""The loss of many candidate classes at once, for classes that are written as sets and intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.cells import Cells

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Callable[[Counts, Counts], Losses]

_WORD = 64
_WORDS = 4
_BITS = np.array([bin(number).count("1") for number in range(256)], dtype=np.uint8)


class SetLosses:
    """What sets and intervals lose, from the leaf codes of pieces."""

    def __init__(self, cells: Cells, leaves: Counts) -> None:
        self._losses = [
            _interval_loss(attribute, leaves[place], weight)
            if attribute.is_ordered
            else _set_loss(attribute, leaves[place], weight)
            for place, (attribute, weight) in enumerate(zip(cells.attributes, cells.weights_of_attributes, strict=True))
        ]

    def of(self, members: Counts, starts: Counts, places: Iterable[int]) -> Losses:
        """Return the weighted loss of each class over some attributes.

        Args:
            members: the pieces, class by class.
            starts: where each class starts.
            places: the attributes in which the pieces of a class may differ.
        """
        return np.asarray(sum((self._losses[place](members, starts) for place in places), np.zeros(len(starts))))


def _interval_loss(attribute: Attribute, leaves: Counts, weight: float) -> Loss:
    positions = np.nan_to_num(attribute.positions, nan=np.inf) if attribute.positions is not None else np.zeros(1)
    places, span = positions[leaves], attribute.span or 1.0

    def loss(members: Counts, starts: Counts) -> Losses:
        mine = places[members]
        low, high = np.minimum.reduceat(mine, starts), np.maximum.reduceat(mine, starts)
        with np.errstate(invalid="ignore"):
            width = (high - low) / span
        return np.where(np.isnan(width), 0.0, np.minimum(width, 1.0)) * weight

    return loss


def _set_loss(attribute: Attribute, leaves: Counts, weight: float) -> Loss:
    size = len(attribute.leaves)
    scale = weight / max(size - 1, 1)
    if size > _WORD * _WORDS:
        return lambda members, starts: (_distinct(leaves[members], starts, size) - 1) * scale
    words = [
        np.where(leaves // _WORD == word, np.uint64(1) << (leaves % _WORD).astype(np.uint64), np.uint64(0))
        for word in range(-(-size // _WORD))
    ]

    def loss(members: Counts, starts: Counts) -> Losses:
        found = sum((_bits(np.bitwise_or.reduceat(word[members], starts)) for word in words), np.zeros(len(starts)))
        return np.asarray((found - 1) * scale)

    return loss


def _bits(words: NDArray[np.uint64]) -> Losses:
    return np.asarray(_BITS[words.view(np.uint8)].reshape(-1, 8).sum(axis=1), dtype=np.float64)


def _distinct(codes: Counts, starts: Counts, size: int) -> Losses:
    group = np.zeros(len(codes), dtype=np.int64)
    group[starts[1:]] = 1
    pairs = np.unique(np.cumsum(group) * size + codes)
    return np.bincount(pairs // size, minlength=len(starts)).astype(np.float64)
