"""Query-set size: a question about too few rows, or about all but too few, is not answered.

On its own it is not enough: a tracker (Denning, Denning and Schwartz, 1979) adds and subtracts allowed questions.
"""

from __future__ import annotations

__all__ = ["size_permits"]


def size_permits(*, asked: int, among: int, contributing: int, min_size: int) -> bool:
    """Return whether a question is about enough rows, and leaves out enough.

    Args:
        asked: how many rows meet all conditions.
        among: the rows of the table; for a condition on confidential columns, the rows that meet the other conditions.
        contributing: how many of the asked rows have a value.
        min_size: the fewest rows, asked and left out.

    >>> sum(size_permits(asked=asked, among=10, contributing=asked, min_size=2) for asked in range(11))
    7
    """
    return min_size <= asked <= among - min_size and contributing >= min_size
