"""Random transition matrices."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

MATRIX = (
    (Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)),
    (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)),
    (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)),
)


@st.composite
def matrices(draw: Any, size: int = 3, least: int = 1, most: int = 20) -> Any:
    rows = [draw(st.tuples(*[st.integers(least, most)] * size).filter(any)) for _ in range(size)]
    return tuple(tuple(Fraction(entry, sum(row)) for entry in row) for row in rows)
