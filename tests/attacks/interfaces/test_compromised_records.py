from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.attacks import compromised_records
from cloister.attacks.interfaces.compromised_records import reduce_rows
from cloister.core.random import SeededRandomSource, bits
from cloister.errors import ParameterError, ParameterTypeError, QueryRefusedError
from cloister.queries.inference_control import ControlledTable, Controls
from tests.support.asked_tables import random_conditions, secret_table


def by_float_rank(matrix: Any) -> list[int]:
    rank = np.linalg.matrix_rank(matrix)
    units = np.eye(matrix.shape[1])
    return [place for place, unit in enumerate(units) if np.linalg.matrix_rank(np.vstack([matrix, unit])) == rank]


def test_a_tracker_compromises_its_target() -> None:
    women, men = set(range(5)), set(range(5, 10))
    result = compromised_records([women, men, women | {7}, men | {7}], records=10)
    assert result.compromised == (7,)
    assert (result.rank, result.queries, result.success) == (3, 4, 0.1)
    assert result.succeeded
    assert "the value of 1 record follows from 4 sums, 3 of them independent, of 10 records" in result.verdict


def test_sums_over_separate_groups_compromise_nobody() -> None:
    result = compromised_records([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]])
    assert result.compromised == ()
    assert result.rank == 2
    assert not result.succeeded
    assert "No record's value follows" in result.verdict


def test_random_sums_compromise_everybody_once_there_are_enough() -> None:
    sets = bits(SeededRandomSource(1), 60 * 40).reshape(60, 40)
    assert len(compromised_records(sets).compromised) == 40
    assert compromised_records(sets[:30]).compromised == ()


def test_no_rounding_takes_part() -> None:
    tiny = Fraction(1, 10**30)
    assert compromised_records([[1, 1], [1, 1 + tiny]]).compromised == (0, 1)
    assert compromised_records([["1/3", "1/7"], ["2/3", "2/7"]]).compromised == ()
    assert compromised_records([[3, 0], [0, 0]]).compromised == (0,)


@given(
    st.integers(1, 6).flatmap(
        lambda people: st.lists(st.lists(st.integers(0, 1), min_size=people, max_size=people), min_size=1, max_size=7)
    )
)
def test_it_agrees_with_ranks_in_floating_point(rows: list[list[int]]) -> None:
    matrix = np.array(rows)
    result = compromised_records(matrix)
    assert list(result.compromised) == by_float_rank(matrix)
    assert result.rank == np.linalg.matrix_rank(matrix)


@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=6))
def test_reduced_rows_span_the_same(rows: list[list[int]]) -> None:
    matrix = np.array(rows)
    found = reduce_rows(matrix).astype(float)
    rank = np.linalg.matrix_rank(matrix)
    assert len(found) == rank
    if rank:
        assert np.linalg.matrix_rank(np.vstack([matrix, found / np.abs(found).max()])) == rank


def test_an_audited_table_never_gets_there() -> None:
    secret = bits(SeededRandomSource(1), 30).astype(np.int64)
    members, conditions = random_conditions(30, 40, SeededRandomSource(2))
    table = ControlledTable(secret_table(secret), controls=Controls(min_size=3))
    answered = []
    for row, where in zip(members, conditions, strict=True):
        try:
            table.sum("sick", where)
        except QueryRefusedError:
            continue
        answered.append(row)
    assert len(answered) > 20
    assert compromised_records(answered).compromised == ()
    assert len(compromised_records(members).compromised) == 30


def test_the_report_says_how_many_and_not_who() -> None:
    result = compromised_records([[0, 1, 2], [0, 1]], records=3)
    found = result.to_dict()
    assert (found["compromised"], found["rank"]) == (1, 2)
    assert "worst" not in json.dumps(found) + repr(result)
    assert result.worst == ((2, 1.0),)
    assert result.interval == (1 / 3, 1 / 3)
    assert "2 of 2" in result.report().to_markdown()


@pytest.mark.parametrize(
    ("queries", "records", "error", "fix"),
    [
        ([], None, ParameterError, "equally many records"),
        ([[]], None, ParameterError, "equally many records"),
        ([[1, 0], [1]], None, ParameterError, "equally many records"),
        ([["x"]], None, ParameterError, "finite number"),
        ([[float("nan")]], None, ParameterError, "finite number"),
        (5, None, ParameterTypeError, "one list of weights"),
        ([], 3, ParameterError, "positions of the records"),
        ([[3]], 3, ParameterError, "from 0 to 2"),
        ([[0.5]], 3, ParameterError, "from 0 to 2"),
        ([[0]], 0, ParameterError, "records=1"),
    ],
    ids=["none", "no-records", "lengths", "words", "nan", "number", "no-sets", "outside", "half", "nobody"],
)
def test_bad_input_is_refused_with_a_fix(queries: Any, records: Any, error: type[Exception], fix: str) -> None:
    with pytest.raises(error, match=fix):
        compromised_records(queries, records=records)
