"""Draws from the rows of a transition matrix, for many values at once.

`draw_codes` follows a rational matrix exactly, with as many random bits as it takes. `pick_codes` does what a device
does: one given 64-bit word for each value, compared with integer thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.random import RandomSource, Words
from cloister.errors import ParameterError
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import Inversion, Reals
from cloister.mechanisms.transitions.matrices import Matrix
from cloister.mechanisms.transitions.quantization import WORDS

__all__ = ["draw_codes", "pick_codes"]

Integers: TypeAlias = NDArray[np.int64]


def draw_codes(codes: ArrayLike, matrix: Matrix, source: RandomSource) -> Integers:
    """Return for each category number an exact draw from its row of a matrix.

    Args:
        codes: numbers of true categories.
        matrix: as `check_matrix` returns it.
        source: where the random bits come from.
    """
    true = _checked(codes, len(matrix))
    drawn = np.empty(len(true), dtype=np.int64)
    for code, places in _by_code(true):
        drawn[places] = Inversion(_cumulative(matrix[code])).draw(source, len(places))
    return drawn


def pick_codes(codes: ArrayLike, thresholds: Sequence[Sequence[int]], words: Words) -> Integers:
    """Return for each category number what a device reports with a given word: the thresholds not above it, counted.

    Args:
        codes: numbers of true categories.
        thresholds: as `quantized` returns them.
        words: one uniform 64-bit word for each.

    >>> pick_codes([0, 1, 1], [[2**63], [2**62]], np.array([2**63 - 1, 2**62 - 1, 2**62], dtype=np.uint64))
    array([0, 0, 1])
    """
    true = _checked(codes, len(thresholds))
    if words.dtype != np.uint64 or words.shape != true.shape:
        raise ParameterError("There is not one 64-bit word for each value.", fix="draw source.words(len(codes)).")
    picked = np.empty(len(true), dtype=np.int64)
    for code, places in _by_code(true):
        reachable = np.array([bound for bound in thresholds[code] if bound < WORDS], dtype=np.uint64)
        picked[places] = np.searchsorted(reachable, words[places], side="right")
    return picked


def _checked(codes: ArrayLike, categories: int) -> Integers:
    given: NDArray[Any] = np.asarray(codes)  # of whatever type the caller has
    is_integer = given.ndim == 1 and (np.issubdtype(given.dtype, np.integer) or not given.size)
    if not is_integer or bool(((given < 0) | (given >= categories)).any()):
        raise ParameterError(
            "The values are not numbers of categories.", fix=f"give whole numbers from 0 to {categories - 1}."
        )
    return given.astype(np.int64)


def _by_code(codes: Integers) -> Iterator[tuple[int, Integers]]:
    """Return each category that occurs with the places where it does."""
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    ends = [*starts.tolist(), len(codes)]
    for code, (start, end) in zip(found.tolist(), pairwise(ends), strict=True):
        yield code, order[start:end]


def _cumulative(row: Sequence[Fraction]) -> Reals:
    bounds = list(accumulate(row[:-1]))
    return lambda bits: [Interval.of(bound, bits) for bound in bounds]
