"""Hypothesis strategies for privacy parameters, small tables and neighbors. Needs the extra ``test``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cloister.core.guarantees import Adjacency
from cloister.errors import MissingExtraError, ParameterError
from cloister.testing.neighbors import Dataset

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:
    raise MissingExtraError(what="Test strategies", package="hypothesis", extra="test") from error

__all__ = ["bounds", "datasets", "deltas", "epsilons", "neighbors", "numbers", "tables"]


def epsilons(*, smallest: Fraction = Fraction(1, 1000), largest: Fraction = Fraction(10)) -> SearchStrategy[Fraction]:
    """Return positive rationals such as people use for epsilon."""
    return st.fractions(min_value=smallest, max_value=largest, max_denominator=1000)


def deltas(*, allow_zero: bool = True) -> SearchStrategy[Fraction]:
    """Return rationals in [0, 1), most of them tiny."""
    tiny = st.builds(lambda digit, power: Fraction(digit, 10**power), st.integers(1, 9), st.integers(1, 12))
    return st.just(Fraction(0)) | tiny if allow_zero else tiny


def numbers(*, magnitude: int = 1000) -> SearchStrategy[Fraction]:
    """Return rationals of both signs with small denominators."""
    return st.fractions(min_value=-magnitude, max_value=magnitude, max_denominator=64)


def bounds(*, magnitude: int = 1000) -> SearchStrategy[tuple[Fraction, Fraction]]:
    """Return pairs (lower, upper) with lower below upper."""
    ends = st.lists(numbers(magnitude=magnitude), min_size=2, max_size=2, unique=True)
    return ends.map(lambda pair: (min(pair), max(pair)))


def datasets(rows: SearchStrategy[Any], *, min_rows: int = 0, max_rows: int = 8) -> SearchStrategy[Dataset[Any]]:
    """Return small datasets as tuples of rows."""
    return st.lists(rows, min_size=min_rows, max_size=max_rows).map(tuple)


def tables(*, max_rows: int = 8) -> SearchStrategy[dict[str, list[Any]]]:
    """Return small tables {column: values} with an integer, a category and a truth value per row."""
    row = st.tuples(st.integers(0, 100), st.sampled_from("abcd"), st.booleans())
    return st.lists(row, max_size=max_rows).map(
        lambda rows: {name: [row[position] for row in rows] for position, name in enumerate(("age", "group", "member"))}
    )


@st.composite
def neighbors(
    draw: st.DrawFn,
    rows: SearchStrategy[Any],
    *,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    max_rows: int = 8,
) -> tuple[Dataset[Any], Dataset[Any]]:
    """Return pairs of neighboring datasets, in either order.

    Under "user", rows are (user, row) pairs and all rows of one user are added or removed.
    """
    match Adjacency(adjacency):
        case Adjacency.ADD_REMOVE:
            whole = draw(datasets(rows, min_rows=1, max_rows=max_rows))
            position = draw(st.integers(0, len(whole) - 1))
            other = whole[:position] + whole[position + 1 :]
        case Adjacency.REPLACE:
            whole = draw(datasets(rows, min_rows=1, max_rows=max_rows))
            position = draw(st.integers(0, len(whole) - 1))
            other = (*whole[:position], draw(rows), *whole[position + 1 :])
        case Adjacency.USER:
            whole = draw(datasets(st.tuples(st.integers(0, 3), rows), min_rows=1, max_rows=max_rows))
            user = draw(st.sampled_from(whole))[0]
            other = tuple(row for row in whole if row[0] != user)
        case unknown:
            raise ParameterError(
                f"Neighbors under {unknown} depend on more than rows.",
                fix='use adjacency="add_remove", "replace" or "user".',
            )
    return (whole, other) if draw(st.booleans()) else (other, whole)
