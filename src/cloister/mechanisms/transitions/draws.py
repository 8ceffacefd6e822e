"""Draws from the rows of a transition matrix: exactly, or by integer thresholds as devices do.

`draw_codes` follows a rational matrix exactly, with as many random bits as it takes. `pick_codes` does what a device
does: one given 64-bit word for each value, compared with integer thresholds.

Thresholds are for devices. The respondent's device draws one word u, uniform in 0 .. 2**64 - 1, and reports the number
of thresholds of its row that are not above u. The matrix then consists of whole multiples of 2**-64,
`quantized_matrix`: that is the law, for estimates as for epsilon.

Rounding alone could raise a ratio. So every row is first mixed with the uniform one, just enough: with R the largest
ratio of the matrix, c reportable categories and a weight w of the uniform row, ``R * smaller - larger`` is at least
``w (R - 1) / c`` in every column, and rounding each entry by less than one unit u costs less than ``(R + 1) u``. A
weight of ``c u (R + 1) / (R - 1)`` is therefore enough; it is near 2**-64 unless epsilon is close to 0.

Privacy: claim the epsilon of the given matrix or less, for one value under the replace relation: no ratio within a
column of the quantized matrix is above the largest of the given one, in integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.random import RandomSource, Words
from cloister.core.validation import check_count
from cloister.errors import ParameterError
from cloister.mechanisms.sampling.inversion import FixedPointInterval, Inversion, Reals
from cloister.mechanisms.transitions.matrices import Matrix, check_matrix, largest_ratio

__all__ = ["WORDS", "Thresholds", "draw_codes", "pick_codes", "quantize", "quantized_matrix"]


Thresholds: TypeAlias = "tuple[tuple[int, ...], ...]"
"""One row per true category: increasing integers from 0 to `WORDS`, one fewer than there are categories."""

WORDS = 2**64
"""How many different words there are."""

_FINE = 2**128


def quantize(matrix: object) -> Thresholds:
    """Return the thresholds of a matrix for 64-bit words; the epsilon is never above that of the matrix.

    Impossible reports stay impossible, and a matrix whose epsilon is infinite is only rounded.

    >>> for row in quantize([["1/2", "1/2"], ["1/4", "3/4"]]):
    ...     print(*(bound / 2**64 for bound in row))
    0.5
    0.25
    """
    rows = check_matrix(matrix)
    reported = sum(any(column) for column in zip(*rows, strict=True))
    weight = _uniform_weight(largest_ratio(rows), reported)
    # Large matrices have few different entries, and exact scaling is the slow part.
    scaled = {entry: _scale_entry(entry, weight, reported) for entry in set().union(*rows)}
    return tuple(tuple(accumulate(_round_entries([scaled[entry] for entry in row])))[:-1] for row in rows)


def quantized_matrix(thresholds: Sequence[Sequence[int]]) -> Matrix:
    """Return the exact matrix that thresholds stand for.

    Raises:
        ParameterError: if they are not one row per category of increasing integers from 0 to 2**64.
    """
    rows = [[0, *(check_count(bound, name="each threshold") for bound in row), WORDS] for row in thresholds]
    if any(len(row) != len(rows) + 1 or row != sorted(row) for row in rows):
        raise ParameterError(
            "The thresholds are not increasing integers up to 2**64, one fewer in each row than there are rows.",
            fix="take them from quantize().",
        )
    return check_matrix([[Fraction(high - low, WORDS) for low, high in pairwise(row)] for row in rows])


def _uniform_weight(ratio: Fraction | None, categories: int) -> Fraction:
    """Return how much of the uniform row is needed; none for rows that are all the same, or prove a value anyway."""
    if ratio is None or ratio == 1:
        return Fraction(0)
    enough = categories * (ratio + 1) / (ratio - 1) / WORDS
    return min(Fraction(1), Fraction(math.ceil(enough * _FINE), _FINE))


def _scale_entry(entry: Fraction, weight: Fraction, categories: int) -> tuple[int, Fraction]:
    """Return an entry in words, mixed with the uniform row unless it is impossible: the whole ones and the rest."""
    words = WORDS * ((1 - weight) * entry + weight / categories) if entry else Fraction(0)
    return math.floor(words), words % 1


def _round_entries(entries: Sequence[tuple[int, Fraction]]) -> list[int]:
    """Return whole numbers of words that add up to all of them; the largest remainders go up, by less than one."""
    words = [whole for whole, _ in entries]
    # The sort is stable, so that every device finds the same thresholds.
    order = sorted(range(len(entries)), key=lambda place: -entries[place][1])
    # There are more positive remainders than words left over, so that an impossible report never gets one.
    for place in order[: WORDS - sum(words)]:
        words[place] += 1
    return words


Integers: TypeAlias = NDArray[np.int64]


def draw_codes(codes: ArrayLike, matrix: Matrix, source: RandomSource) -> Integers:
    """Return for each category number an exact draw from its row of a matrix.

    Args:
        codes: numbers of true categories.
        matrix: as `check_matrix` returns it.
        source: where the random bits come from.
    """
    true = _check_codes(codes, len(matrix))
    drawn = np.empty(len(true), dtype=np.int64)
    for code, places in _by_code(true):
        drawn[places] = Inversion(_cumulative(matrix[code])).draw(source, len(places))
    return drawn


def pick_codes(codes: ArrayLike, thresholds: Sequence[Sequence[int]], words: Words) -> Integers:
    """Return for each category number what a device reports with a given word: the thresholds not above it, counted.

    Args:
        codes: numbers of true categories.
        thresholds: as `quantize` returns them.
        words: one uniform 64-bit word for each.

    >>> pick_codes([0, 1, 1], [[2**63], [2**62]], np.array([2**63 - 1, 2**62 - 1, 2**62], dtype=np.uint64))
    array([0, 0, 1])
    """
    true = _check_codes(codes, len(thresholds))
    if words.dtype != np.uint64 or words.shape != true.shape:
        raise ParameterError("There is not one 64-bit word for each value.", fix="draw source.words(len(codes)).")
    picked = np.empty(len(true), dtype=np.int64)
    for code, places in _by_code(true):
        # A bound of 2**64 does not fit 64 bits; no word reaches it, so that leaving it out changes no count.
        reachable = np.array([bound for bound in thresholds[code] if bound < WORDS], dtype=np.uint64)
        picked[places] = np.searchsorted(reachable, words[places], side="right")
    return picked


def _check_codes(codes: ArrayLike, categories: int) -> Integers:
    given: NDArray[Any] = np.asarray(codes)  # of whatever type the caller has
    is_integer = given.ndim == 1 and (np.issubdtype(given.dtype, np.integer) or not given.size)
    if not is_integer or bool(((given < 0) | (given >= categories)).any()):
        raise ParameterError(
            "The values are not numbers of categories.", fix=f"give whole numbers from 0 to {categories - 1}."
        )
    return given.astype(np.int64)


def _by_code(codes: Integers) -> Iterator[tuple[int, Integers]]:
    """Return each category that occurs with the places where it does."""
    # One sort finds the places of all categories, instead of one pass over the values for each.
    order = np.argsort(codes, kind="stable")
    found, starts = np.unique(codes[order], return_index=True)
    ends = [*starts.tolist(), len(codes)]
    for code, (start, end) in zip(found.tolist(), pairwise(ends), strict=True):
        yield code, order[start:end]


def _cumulative(row: Sequence[Fraction]) -> Reals:
    bounds = list(accumulate(row[:-1]))
    return lambda bits: [FixedPointInterval.of(bound, bits) for bound in bounds]
