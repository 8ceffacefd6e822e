from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.core.guarantees import SEEDED_RANDOMNESS
from cloister.errors import BudgetExceededError, DataError, MissingBoundsError, ParameterError
from cloister.mechanisms.step_noise import laplace_half_width
from cloister.synth._cell_counts import CellCounts, count_cells
from cloister.synth._domain import declare_domain
from cloister.synth.evaluation.private_evaluation import _STEPS, _steps
from tests.synth.evaluation.small_tables import LETTERS, letters

EVEN = [("x", "red", 0), ("x", "blue", 1), ("y", "red", 2), ("y", "blue", 3)]
LINKED = [("x", "red", 0), ("x", "red", 0), ("y", "blue", 3), ("y", "blue", 3)]


class Counted:
    """Counts of a few rows of letters, without an engine."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        domain = declare_domain(letters([]))
        self._sizes = domain.sizes
        self._codes = [
            item.codes(values) for item, values in zip(domain.attributes, zip(*rows, strict=True), strict=True)
        ]

    def marginal(self, columns: tuple[int, ...]) -> Any:
        shape = tuple(self._sizes[column] for column in columns)
        return count_cells([self._codes[column] for column in columns], shape)


def _moved(real: Counted, synthetic: Counted, ways: int) -> int:
    return _steps(real, synthetic, list(itertools.combinations(range(3), ways)))  # type: ignore[arg-type]


def test_what_is_released_by_hand() -> None:
    many, linked = Counted(EVEN * 9), Counted(LINKED)
    assert _moved(many, linked, 1) == 36 * _STEPS // 6
    assert _moved(many, linked, 2) == 36 * _STEPS // 2
    assert _moved(many, Counted(EVEN), 2) == 0
    table = letters(EVEN * 9)
    assert _moved(CellCounts(table, declare_domain(table)), linked, 2) == 36 * _STEPS // 2  # type: ignore[arg-type]


def test_one_row_moves_it_by_no_more_than_its_sensitivity() -> None:
    everything = list(itertools.product("xz", ("red", None), (0, 3, None)))
    largest = 0
    tables = [Counted(rows) for rows in (LINKED, [("z", None, None)], EVEN * 3)]
    for real in (EVEN, LINKED * 5, [("z", "red", 1)]):
        before = Counted(real)
        neighbors = [Counted([*real, row]) for row in everything]
        for synthetic, after, ways in itertools.product(tables, neighbors, (1, 2)):
            moved = abs(_moved(before, synthetic, ways) - _moved(after, synthetic, ways))
            assert moved <= _STEPS + 1
            largest = max(largest, moved)
    assert largest >= _STEPS - 1


def test_huge_tables_are_counted_in_whole_numbers() -> None:
    class Huge:
        def marginal(self, columns: tuple[int, ...]) -> Any:
            del columns
            return np.array([2**31, 2**31 + 2])

    class Other:
        def marginal(self, columns: tuple[int, ...]) -> Any:
            del columns
            return np.array([2**32, 0])

    assert _steps(Huge(), Other(), [(0,)]) == (2**31 + 2) * _STEPS  # type: ignore[arg-type]


def test_with_a_large_epsilon_it_is_the_truth() -> None:
    found = cl.synth.evaluate_privately(letters(EVEN * 100), letters(LINKED), epsilon=10**6)
    assert found.one_way == pytest.approx(1 / 6, abs=1e-4)
    assert found.two_way == pytest.approx(1 / 2, abs=1e-4)
    assert found.rows == 400
    assert found.guarantee.holds
    assert found.to_dict()["schema"] == "cloister.private_synthetic_evaluation/1"
    assert str(found).startswith("mean total variation 0.166")


def test_one_column_has_no_pairs() -> None:
    found = cl.synth.evaluate_privately(letters(EVEN), letters(LINKED), epsilon=10**6, columns=["size"])
    assert found.two_way is None
    assert "pairs" not in str(found)


def test_margins_follow_from_the_noise() -> None:
    found = cl.synth.evaluate_privately(letters(EVEN * 1000), letters(LINKED), epsilon=3)
    # Epsilon 1 for 1,001 steps of a thousandth: discrete Laplace noise of that scale, whose margin is in whole steps.
    assert found.margins[0] == laplace_half_width(Fraction(1001), 0.95) / 1000 / found.rows
    assert found.margins[0] == pytest.approx(1.001 * np.log(20) / found.rows, rel=1e-3)
    assert found.margins[0] == found.margins[1]


def test_it_is_paid_for_before_anybody_looks() -> None:
    ledger = cl.open_ledger("memory:")
    ledger.open_account("letters", budget=cl.Budget(epsilon=1))
    given: dict[str, Any] = {"ledger": ledger, "dataset": "letters"}
    found = cl.synth.evaluate_privately(letters(EVEN), letters(LINKED), epsilon=Fraction(3, 4), **given)
    assert found.guarantee == cl.PureDP(epsilon=Fraction(3, 4), assumptions=found.guarantee.assumptions)
    with pytest.raises(BudgetExceededError, match=r"0\.25"):
        cl.synth.evaluate_privately(letters(EVEN), letters(LINKED), epsilon=Fraction(1, 2), **given)


def test_bad_tables_are_refused_before_anything_is_paid() -> None:
    with pytest.raises(MissingBoundsError, match="schema"):
        cl.synth.evaluate_privately(letters(EVEN, schema=None), letters(LINKED), epsilon=1)
    with pytest.raises(DataError, match="give a table with rows"):
        cl.synth.evaluate_privately(letters(EVEN), letters([]), epsilon=1)
    with pytest.raises(ParameterError, match="columns="):
        cl.synth.evaluate_privately(letters(EVEN), pa.table({"letter": ["x"]}), epsilon=1)
    found = cl.synth.evaluate_privately(letters(EVEN, schema=None), letters(LINKED), epsilon=1, schema=LETTERS)
    assert found.columns == ("letter", "color", "size")


def test_a_seed_is_for_tests() -> None:
    with pytest.warns(cl.CloisterWarning, match="predictable"):
        found = cl.synth.evaluate_privately(letters(EVEN), letters(LINKED), epsilon=1, random_state=1)
    assert SEEDED_RANDOMNESS in found.guarantee.caveats
