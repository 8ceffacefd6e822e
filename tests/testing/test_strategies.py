from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.core import validation
from cloister.core.guarantees import Adjacency
from cloister.errors import MissingExtraError, ParameterError
from cloister.testing import strategies


@given(strategies.epsilons(), strategies.deltas(), strategies.deltas(allow_zero=False))
def test_parameters_are_legal(epsilon: Fraction, delta: Fraction, positive: Fraction) -> None:
    assert validation.check_epsilon(epsilon) == epsilon
    assert validation.check_delta(delta) == delta
    assert validation.check_delta(positive, allow_zero=False) == positive


@given(strategies.bounds())
def test_bounds_are_in_order(pair: tuple[Fraction, Fraction]) -> None:
    assert validation.check_bounds(pair) == pair


@given(strategies.tables())
def test_tables_are_rectangular(table: dict[str, list[Any]]) -> None:
    assert list(table) == ["age", "group", "member"]
    assert len({len(values) for values in table.values()}) == 1


@given(strategies.neighbors(st.integers(0, 3)))
def test_add_remove_neighbors_differ_by_one_row(pair: Any) -> None:
    first, second = map(Counter, pair)
    assert ((first - second) + (second - first)).total() == 1


@given(strategies.neighbors(st.integers(0, 3), adjacency=Adjacency.REPLACE))
def test_replace_neighbors_differ_in_at_most_one_place(pair: Any) -> None:
    first, second = pair
    assert len(first) == len(second)
    assert sum(a != b for a, b in zip(first, second, strict=True)) <= 1


@given(strategies.neighbors(st.integers(0, 3), adjacency=Adjacency.USER))
def test_user_neighbors_differ_by_one_user(pair: Any) -> None:
    first, second = ({user for user, _ in rows} for rows in pair)
    assert len(first ^ second) == 1


@given(st.data())
def test_other_relations_are_refused(data: st.DataObject) -> None:
    with pytest.raises(ParameterError, match='"user"'):
        data.draw(strategies.neighbors(st.integers(), adjacency=Adjacency.EDGE))


def test_a_missing_hypothesis_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "cloister.testing.strategies")
    with pytest.raises(MissingExtraError, match=r'pip install "cloister\[test\]"'):
        importlib.import_module("cloister.testing.strategies")
