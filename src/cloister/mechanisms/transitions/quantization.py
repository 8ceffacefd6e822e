"""Transition matrices for devices: integer thresholds that one 64-bit word is compared with.

The respondent's device draws one word u, uniform in 0 .. 2**64 - 1, and reports the number of thresholds of its row
that are not above u. The matrix then consists of whole multiples of 2**-64, `quantized_matrix`: that is the law, for
estimates as for epsilon.

Rounding alone could raise a ratio. So every row is first mixed with the uniform one, just enough: with R the largest
ratio of the matrix, c reportable categories and a weight w of the uniform row, ``R * smaller - larger`` is at least
``w (R - 1) / c`` in every column, and rounding each entry by less than one unit u costs less than ``(R + 1) u``. A
weight of ``c u (R + 1) / (R - 1)`` is therefore enough; it is near 2**-64 unless epsilon is close to 0.

Privacy: claim the epsilon of the given matrix or less, for one value under the replace relation: no ratio within a
column of the quantized matrix is above the largest of the given one, in integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import TypeAlias

from cloister.core.validation import check_count
from cloister.errors import ParameterError
from cloister.mechanisms.transitions.matrices import Matrix, check_matrix, largest_ratio

__all__ = ["WORDS", "Thresholds", "quantized", "quantized_matrix"]

Thresholds: TypeAlias = "tuple[tuple[int, ...], ...]"
"""One row per true category: increasing integers from 0 to `WORDS`, one fewer than there are categories."""

WORDS = 2**64
"""How many different words there are."""

_FINE = 2**128


def quantized(matrix: object) -> Thresholds:
    """Return the thresholds of a matrix for 64-bit words; the epsilon is never above that of the matrix.

    Impossible reports stay impossible, and a matrix whose epsilon is infinite is only rounded.

    >>> for row in quantized([["1/2", "1/2"], ["1/4", "3/4"]]):
    ...     print(*(bound / 2**64 for bound in row))
    0.5
    0.25
    """
    rows = check_matrix(matrix)
    reported = sum(any(column) for column in zip(*rows, strict=True))
    weight = _uniform_weight(largest_ratio(rows), reported)
    scaled = {entry: _scaled(entry, weight, reported) for entry in set().union(*rows)}
    return tuple(tuple(accumulate(_rounded([scaled[entry] for entry in row])))[:-1] for row in rows)


def quantized_matrix(thresholds: Sequence[Sequence[int]]) -> Matrix:
    """Return the exact matrix that thresholds stand for.

    Raises:
        ParameterError: if they are not one row per category of increasing integers from 0 to 2**64.
    """
    rows = [[0, *(check_count(bound, name="each threshold") for bound in row), WORDS] for row in thresholds]
    if any(len(row) != len(rows) + 1 or row != sorted(row) for row in rows):
        raise ParameterError(
            "The thresholds are not increasing integers up to 2**64, one fewer in each row than there are rows.",
            fix="take them from quantized.",
        )
    return check_matrix([[Fraction(high - low, WORDS) for low, high in pairwise(row)] for row in rows])


def _uniform_weight(ratio: Fraction | None, categories: int) -> Fraction:
    """Return how much of the uniform row is needed; none for rows that are all the same, or prove a value anyway."""
    if ratio is None or ratio == 1:
        return Fraction(0)
    enough = categories * (ratio + 1) / (ratio - 1) / WORDS
    return min(Fraction(1), Fraction(math.ceil(enough * _FINE), _FINE))


def _scaled(entry: Fraction, weight: Fraction, categories: int) -> tuple[int, Fraction]:
    """Return an entry in words, mixed with the uniform row unless it is impossible: the whole ones and the rest."""
    words = WORDS * ((1 - weight) * entry + weight / categories) if entry else Fraction(0)
    return math.floor(words), words % 1


def _rounded(entries: Sequence[tuple[int, Fraction]]) -> list[int]:
    """Return whole numbers of words that add up to all of them; the largest remainders go up, by less than one."""
    words = [whole for whole, _ in entries]
    order = sorted(range(len(entries)), key=lambda place: -entries[place][1])
    for place in order[: WORDS - sum(words)]:
        words[place] += 1
    return words
