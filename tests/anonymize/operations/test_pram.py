from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.anonymize import operations
from cloister.anonymize.operations import PostRandomize, invariant_matrix
from cloister.errors import (
    CloisterError,
    DataError,
    MissingBoundsError,
    ParameterError,
    UnconfirmedSchemaError,
)
from cloister.mechanisms import transitions
from cloister.testing import check_distribution, distributions, statistics
from tests.mechanisms.transitions.strategies import MATRIX, matrices

N = 50_000
shares3 = st.tuples(*[st.integers(0, 20)] * 3).filter(lambda counts: sum(counts) > 0)


@given(matrices(), shares3)
def test_the_invariant_matrix_leaves_the_shares_as_they_are(matrix: Any, counts: tuple[int, ...]) -> None:
    prior = [Fraction(count, sum(counts)) for count in counts]
    kept = invariant_matrix(matrix, prior)
    assert all(sum(row) == 1 for row in kept)
    assert [sum(prior[i] * kept[i][j] for i in range(3)) for j in range(3)] == prior


def test_a_category_without_people_stays_apart() -> None:
    kept = invariant_matrix([[1, 0], [0, 1]], [1, 0])
    assert kept == ((1, 0), (0, 1))


@pytest.mark.statistical
def test_the_whole_column_is_randomized_by_its_epsilon() -> None:
    table = pa.table({"v": ["b"] * (4 * N)})
    found = (
        PostRandomize("v", categories=["a", "b"], epsilon=1).apply(table).to_arrow()["v"].to_numpy(zero_copy_only=False)
    )
    kept = math.e / (1 + math.e)
    law = lambda truth: distributions.categorical({"a": 1 - truth, "b": truth})  # noqa: E731
    check_distribution(found.astype(str), law(kept))
    for wrong in (0.9, 1.1):
        truth = math.exp(wrong) / (1 + math.exp(wrong))
        assert statistics.fit(found.astype(str), law(truth)).p_value < 1e-9


def test_estimates_come_near_the_truth() -> None:
    table = pa.table({"v": ["a"] * (N // 5) + ["b"] * (4 * N // 5)})
    operation = PostRandomize("v", categories=["a", "b"], epsilon=2)
    shares = operation.estimate(operation.apply(table))
    assert shares["a"] == pytest.approx(0.2, abs=0.05)
    with pytest.raises(ParameterError, match="count the categories"):
        PostRandomize("v", categories=["a", "b"], epsilon=2, invariant=True).estimate(table)


def test_the_categories_of_the_schema_are_used_and_stay() -> None:
    schema = cl.Schema([cl.Column(name="v", categories=["a", "b"])])
    table = cl.open_table(pa.table({"v": ["a", "b"]}), schema=schema)
    after = PostRandomize("v", epsilon=1).apply(table)
    assert after.schema == schema
    assert set(PostRandomize("v", epsilon=1).estimate(after)) == {"a", "b"}


def test_missing_cells_are_refused_or_randomized() -> None:
    table = pa.table({"v": ["a", None]})
    with pytest.raises(DataError, match="include_missing=True"):
        PostRandomize("v", categories=["a", "b"], epsilon=1).apply(table)
    always_missing = [[0, 0, 1]] * 3
    operation = PostRandomize("v", categories=["a", "b"], matrix=always_missing, include_missing=True)
    assert operation.apply(table).to_arrow()["v"].to_pylist() == [None, None]


def test_numbers_and_truth_values_are_categories_too() -> None:
    swap = [[0, 1], [1, 0]]
    table = pa.table({"n": [1, 2], "t": [True, False]})
    assert PostRandomize("n", categories=[1, 2], matrix=swap).apply(table).to_arrow()["n"].to_pylist() == [2, 1]
    assert PostRandomize("t", categories=[False, True], matrix=swap).apply(table).to_arrow()["t"].to_pylist() == [
        False,
        True,
    ]


def test_promises() -> None:
    told = PostRandomize("v", categories=["a", "b"], epsilon=1).guarantee
    assert told.holds
    assert told.to_dict()["epsilon"] == "1"
    assert 'value of "v"' in told.explain()
    assert not PostRandomize("v", categories=["a", "b"], epsilon=1, invariant=True).guarantee.holds
    assert not PostRandomize("v", categories=["a", "b"], matrix=[["1/2", "1/2"], [0, 1]]).guarantee.holds
    assert PostRandomize("v", categories=["a", "b"], matrix=[["1/2", "1/2"], ["1/4", "3/4"]]).guarantee.holds


def test_an_invariant_release_keeps_shares_on_average() -> None:
    table = pa.table({"v": ["a"] * 9_000 + ["b"] * 1_000})
    operation = PostRandomize("v", categories=["a", "b"], epsilon=0, invariant=True)
    found = operation.apply(table).to_arrow()["v"].to_pylist()
    # Each cell is drawn from the shares: 30 is the standard deviation of the count, and 6.2 of them are 1e-9.
    assert abs(found.count("b") - 1_000) < 187
    assert PostRandomize("v", categories=["a", "b"], epsilon=1, invariant=True).apply(table.slice(0, 0)).count() == 0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: PostRandomize("v"), ParameterError),
        (lambda: PostRandomize("v", epsilon=1, matrix=MATRIX), ParameterError),
        (lambda: PostRandomize("v", epsilon=-1), ParameterError),
        (lambda: PostRandomize("v", categories=["a"], matrix=MATRIX), ParameterError),
        (lambda: PostRandomize("v", matrix=[[1, 0]]), CloisterError),
        (lambda: PostRandomize("v", matrix=[[0.6, 0.6], [0.5, 0.5]]), ParameterError),
        (lambda: PostRandomize("v", matrix=[[-1, 2], [0.5, 0.5]]), ParameterError),
        (lambda: invariant_matrix(MATRIX, [1, 1, 1]), ParameterError),
    ],
)
def test_broken_settings_are_refused(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_arrays_are_matrices() -> None:
    assert PostRandomize("v", categories=["a", "b"], matrix=np.array([[0.5, 0.5], [0.25, 0.75]])).matrix == (
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(1, 4), Fraction(3, 4)),
    )


@pytest.mark.parametrize(
    "name",
    [
        "estimate_shares",
        "estimate_yes_share",
        "matrix_epsilon",
        "project_to_simplex",
        "response_matrix",
        "two_coin_matrix",
    ],
)
def test_the_tools_for_public_matrices_are_at_hand(name: str) -> None:
    assert name in operations.__all__
    assert getattr(operations, name) is getattr(transitions, name)


def test_categories_are_needed_and_few() -> None:
    with pytest.raises(MissingBoundsError, match="categories="):
        PostRandomize("v", epsilon=1).apply(pa.table({"v": ["a"]}))
    with pytest.raises(ParameterError, match="generalize"):
        PostRandomize("v", epsilon=1, categories=list(range(1001))).apply(pa.table({"v": [1]}))
    with pytest.raises(ParameterError, match="2 rows"):
        PostRandomize("v", matrix=MATRIX).apply(
            cl.open_table(pa.table({"v": ["a"]}), schema=cl.Schema([cl.Column(name="v", categories=["a", "b"])]))
        )


def test_values_outside_are_not_shown() -> None:
    with pytest.raises(DataError) as caught:
        PostRandomize("v", categories=["a", "b"], epsilon=1).apply(pa.table({"v": ["secret"]}))
    assert "secret" not in str(caught.value)


def test_guessed_categories_are_refused_where_something_is_promised() -> None:
    schema = cl.Schema([cl.Column(name="v", categories=["a", "b"], guessed={"categories"})])
    table = cl.open_table(pa.table({"v": ["a", "b"]}), schema=schema)
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        PostRandomize("v", epsilon=1).apply(table)
    assert PostRandomize("v", epsilon=1, invariant=True).apply(table).count() == 2


def test_categories_of_another_type_are_refused() -> None:
    with pytest.raises(ParameterError, match="as they are stored"):
        PostRandomize("v", categories=["a", "b"], epsilon=1).apply(pa.table({"v": pa.array([], pa.int64())}))
