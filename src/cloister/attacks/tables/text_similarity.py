"""How alike texts are: the measure of Jaro (1989) with the prefix bonus of Winkler (1990), for many pairs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["jaro_winkler"]

_BLOCK = 1 << 16
_PREFIX = 4
_BONUS = 0.1


def jaro_winkler(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    """Return how alike each two texts are, place by place, between 0 and 1.

    >>> jaro_winkler(["martha", "dwayne", "abc"], ["marhta", "duane", "xyz"]).round(4).tolist()
    [0.9611, 0.84, 0.0]
    """
    found = [
        _block(first[start : start + _BLOCK], second[start : start + _BLOCK]) for start in range(0, len(first), _BLOCK)
    ]
    return np.concatenate(found) if found else np.zeros(0)


def _block(first: Sequence[str], second: Sequence[str]) -> NDArray[np.float64]:
    left, right = _characters(first), _characters(second)
    sizes = np.count_nonzero(left, axis=1), np.count_nonzero(right, axis=1)
    reach = np.maximum(np.maximum(*sizes) // 2 - 1, 0)
    used_left, used_right = np.zeros(left.shape, dtype=bool), np.zeros(right.shape, dtype=bool)
    for place in range(left.shape[1]):
        free = left[:, place] != 0
        low = max(place - int(reach.max(initial=0)), 0)
        for other in range(low, min(place + int(reach.max(initial=0)) + 1, right.shape[1])):
            same = free & ~used_right[:, other] & (left[:, place] == right[:, other]) & (abs(place - other) <= reach)
            used_right[same, other] = True
            used_left[same, place] = True
            free &= ~same
    matched = used_left.sum(axis=1)
    moved = _moved(left, used_left, right, used_right) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        jaro = (matched / sizes[0] + matched / sizes[1] + (matched - moved) / matched) / 3
    jaro = np.where(matched > 0, jaro, 0.0)
    jaro = np.where((sizes[0] == 0) & (sizes[1] == 0), 1.0, jaro)
    return np.asarray(jaro + _common_prefix(left, right) * _BONUS * (1 - jaro))


def _characters(texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return the code points of texts, filled up with zeros."""
    array = np.array([text.replace("\0", " ") for text in texts], dtype=np.str_)
    width = max(array.dtype.itemsize // 4, 1)
    return np.ascontiguousarray(array.astype(f"<U{width}")).view(np.uint32).reshape(len(texts), width)


def _moved(
    left: NDArray[np.uint32], used_left: NDArray[np.bool_], right: NDArray[np.uint32], used_right: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return how many matched characters stand in another order."""
    width = max(left.shape[1], right.shape[1])
    return np.asarray((_packed(left, used_left, width) != _packed(right, used_right, width)).sum(axis=1))


def _packed(letters: NDArray[np.uint32], used: NDArray[np.bool_], width: int) -> NDArray[np.uint32]:
    """Return the used characters of each text, moved to its front."""
    result = np.zeros((len(letters), width), dtype=np.uint32)
    rows, places = np.nonzero(used)
    result[rows, (np.cumsum(used, axis=1) - 1)[rows, places]] = letters[rows, places]
    return result


def _common_prefix(left: NDArray[np.uint32], right: NDArray[np.uint32]) -> NDArray[np.int64]:
    width = min(left.shape[1], right.shape[1], _PREFIX)
    same = (left[:, :width] == right[:, :width]) & (left[:, :width] != 0)
    return np.asarray(np.cumprod(same, axis=1).sum(axis=1))
