"""Small puzzles, and the slow, obvious ways to solve them."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from cloister.attacks.anatomy._two_tables import Puzzle, make_puzzle
from cloister.core.random import SeededRandomSource


def puzzle_of(levels: Any, values: list[list[int]]) -> Puzzle:
    """Return the puzzle of people's levels, one column each, and the values of groups of consecutive people."""
    rows = np.asarray(levels)
    group = np.repeat(np.arange(len(values)), [len(listed) for listed in values])
    lines = [(number, code, count) for number, listed in enumerate(values) for code, count in Counter(listed).items()]
    names = sorted({code for listed in values for code in listed})
    return make_puzzle(
        {f"column {place}": rows[:, place] for place in range(rows.shape[1])},
        group,
        tuple(np.array(part) for part in zip(*lines, strict=True)),  # type: ignore[arg-type]
        values=pa.array([f"value {code}" for code in range(max(names) + 1)]),
        attribute="illness",
        source=SeededRandomSource(0),
    )


def enumerated(scores: np.ndarray, pattern: tuple[int, ...]) -> tuple[float, np.ndarray]:
    """Return the logarithm of the sum over all distinct assignments of one group, and the share of each value."""
    values = np.repeat(np.arange(len(pattern)), pattern)
    total, shares = 0.0, np.zeros(scores.shape)
    people = np.arange(len(values))
    largest = max(scores[people, list(each)].sum() for each in itertools.permutations(values))
    for each in set(itertools.permutations(values.tolist())):
        weight = np.exp(scores[people, list(each)].sum() - largest)
        total += weight
        shares[people, list(each)] += weight
    return float(np.log(total) + largest), shares / total


PATTERNS = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple).filter(lambda pattern: sum(pattern) <= 6)


@st.composite
def scored_groups(draw: st.DrawFn, *, wide: float = 5.0) -> tuple[np.ndarray, tuple[int, ...]]:
    """Draw the scores of a few groups of one pattern."""
    pattern = draw(PATTERNS)
    groups = draw(st.integers(1, 3))
    size = groups * sum(pattern) * len(pattern)
    numbers = draw(st.lists(st.floats(-wide, wide), min_size=size, max_size=size))
    return np.array(numbers).reshape(groups, sum(pattern), len(pattern)), pattern


@st.composite
def small_puzzles(draw: st.DrawFn) -> Puzzle:
    """Draw a puzzle of several groups of different sizes, also with values that occur twice in a group."""
    values = draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=2, max_size=6))
    values[0] = [0, 3]
    people = sum(map(len, values))
    levels = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=people, max_size=people))
    return puzzle_of(np.array(levels), values)
