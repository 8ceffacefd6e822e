"""Overlap control: a question shares only few rows with every other one that was answered.

With sets of at least k rows that share at most r rows, nobody's value follows from fewer than 1 + (k - 1) / r sums
(Dobkin, Jones and Lipton, "Secure databases: protection against user influence", 1979). The price is high: after a
total, none of its parts can be asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from cloister.queries.inference_control.auditing import Mask

__all__ = ["fewest_questions", "overlap_permits"]


def overlap_permits(asked: Mask, answered: Iterable[Mask], *, max_overlap: int) -> bool:
    """Return whether a set shares at most so many rows with each other one; the same set again adds nothing."""
    return all((asked & other).sum() <= max_overlap or (asked == other).all() for other in answered)


def fewest_questions(*, min_size: int, max_overlap: int) -> int:
    """Return how many sums it takes at least before a value can follow from them.

    >>> fewest_questions(min_size=10, max_overlap=1), fewest_questions(min_size=10, max_overlap=4)
    (10, 4)
    """
    return 1 + math.ceil(Fraction(min_size - 1, max(max_overlap, 1)))
