from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.anonymize.operations import (
    Pram,
    estimate_shares,
    estimate_yes_share,
    invariant_matrix,
    matrix_epsilon,
    project_to_simplex,
    response_matrix,
    two_coin_matrix,
)
from cloister.anonymize.operations.pram import draw_categories
from cloister.core import exact
from cloister.core.random import random_source
from cloister.errors import (
    CloisterError,
    DataError,
    MissingBoundsError,
    ParameterError,
    UnconfirmedSchemaError,
    UnsafeMechanismError,
)
from cloister.testing import check_distribution, distributions, statistics
from cloister.testing.exact_check import check_exactly

N = 50_000
MATRIX = (
    (Fraction(7, 10), Fraction(2, 10), Fraction(1, 10)),
    (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)),
    (Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)),
)
shares3 = st.tuples(*[st.integers(0, 20)] * 3).filter(lambda counts: sum(counts) > 0)
inner = st.fractions(min_value="1/100", max_value="99/100", max_denominator=100)


@st.composite
def matrices(draw: Any, size: int = 3, least: int = 1) -> Any:
    rows = [draw(st.tuples(*[st.integers(least, 20)] * size).filter(any)) for _ in range(size)]
    return tuple(tuple(Fraction(entry, sum(row)) for entry in row) for row in rows)


@given(st.integers(2, 8), st.fractions(0, 20, max_denominator=100))
def test_the_best_matrix_keeps_its_epsilon_and_nearly_uses_it(categories: int, epsilon: Fraction) -> None:
    matrix = response_matrix(categories, epsilon=epsilon)
    spent = matrix_epsilon(matrix)
    assert spent is not None
    assert all(sum(row) == 1 for row in matrix)
    law = lambda true: dict(enumerate(matrix[true]))  # noqa: E731
    check_exactly(law, [(0, 1), (1, 0)], epsilon=epsilon).verify()
    assert float(epsilon) - 1e-12 <= float(spent)
    diagonal = math.exp(epsilon) / (categories - 1 + math.exp(epsilon))
    assert float(matrix[0][0]) == pytest.approx(diagonal, rel=1e-12)


@given(inner, inner, st.fractions("1/100", 5, max_denominator=100))
def test_epsilon_is_feasible_exactly_when_the_four_inequalities_hold(p00: Any, p11: Any, epsilon: Fraction) -> None:
    low, high = exact.exp_bounds(epsilon)
    pairs = [(p00, 1 - p11), (p11, 1 - p00), (1 - p00, p11), (1 - p11, p00)]
    spent = matrix_epsilon([[p00, 1 - p00], [1 - p11, p11]])
    assert spent is not None
    if all(left <= right * low for left, right in pairs):
        assert spent <= epsilon + Fraction(1, 10**30)
    if any(left > right * high for left, right in pairs):
        assert spent > epsilon


@given(matrices(least=0))
def test_a_zero_beside_a_nonzero_is_infinite(matrix: Any) -> None:
    columns = list(zip(*matrix, strict=True))
    is_infinite = any(min(column) == 0 < max(column) for column in columns)
    assert (matrix_epsilon(matrix) is None) == is_infinite


def test_a_category_that_is_never_released_costs_nothing() -> None:
    assert matrix_epsilon([[1, 0], [1, 0]]) == 0


@given(matrices(), shares3)
def test_the_invariant_matrix_leaves_the_shares_as_they_are(matrix: Any, counts: tuple[int, ...]) -> None:
    prior = [Fraction(count, sum(counts)) for count in counts]
    kept = invariant_matrix(matrix, prior)
    assert all(sum(row) == 1 for row in kept)
    assert [sum(prior[i] * kept[i][j] for i in range(3)) for j in range(3)] == prior


def test_a_category_without_people_stays_apart() -> None:
    kept = invariant_matrix([[1, 0], [0, 1]], [1, 0])
    assert kept == ((1, 0), (0, 1))


@given(matrices(), shares3)
def test_the_estimator_undoes_the_matrix(matrix: Any, counts: tuple[int, ...]) -> None:
    transition = np.array(matrix, dtype=float)
    if np.linalg.cond(transition) > 1e4:
        return
    prior = np.array(counts) / sum(counts)
    assert estimate_shares(prior @ transition, matrix=matrix) == pytest.approx(prior, abs=1e-8)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6))
def test_the_projection_is_the_nearest_distribution(values: list[float]) -> None:
    nearest = project_to_simplex(values)
    assert nearest.sum() == pytest.approx(1)
    assert (nearest >= 0).all()
    gap = np.array(values) - nearest
    # Optimality: the gap is constant where the projection is positive, and not larger elsewhere.
    level = gap[nearest > 1e-12]
    assert level == pytest.approx(np.full(len(level), level[0]), abs=1e-9)
    assert (gap <= level[0] + 1e-9).all()


@pytest.mark.statistical
def test_draws_follow_the_matrix_and_refute_another() -> None:
    for true in range(3):
        drawn = draw_categories(np.full(N, true), MATRIX, random_source(None))
        law = {place: float(entry) for place, entry in enumerate(MATRIX[true])}
        check_distribution(drawn, distributions.categorical(law))
        other = {place: float(entry) for place, entry in enumerate(MATRIX[(true + 1) % 3])}
        assert statistics.fit(drawn, distributions.categorical(other)).p_value < 1e-9


@pytest.mark.statistical
def test_the_whole_column_is_randomized_by_its_epsilon() -> None:
    table = pa.table({"v": ["b"] * N})
    found = Pram("v", categories=["a", "b"], epsilon=1).apply(table).to_arrow()["v"].to_numpy(zero_copy_only=False)
    kept = math.e / (1 + math.e)
    law = lambda truth: distributions.categorical({"a": 1 - truth, "b": truth})  # noqa: E731
    check_distribution(found.astype(str), law(kept))
    for wrong in (0.9, 1.1):
        truth = math.exp(wrong) / (1 + math.exp(wrong))
        assert statistics.fit(found.astype(str), law(truth)).p_value < 1e-9


def test_estimates_come_near_the_truth() -> None:
    table = pa.table({"v": ["a"] * (N // 5) + ["b"] * (4 * N // 5)})
    operation = Pram("v", categories=["a", "b"], epsilon=2)
    shares = operation.estimate(operation.apply(table))
    assert shares["a"] == pytest.approx(0.2, abs=0.05)
    with pytest.raises(ParameterError, match="count the categories"):
        Pram("v", categories=["a", "b"], epsilon=2, invariant=True).estimate(table)


def test_the_categories_of_the_schema_are_used_and_stay() -> None:
    schema = cl.Schema([cl.Column(name="v", categories=["a", "b"])])
    table = cl.open_table(pa.table({"v": ["a", "b"]}), schema=schema)
    after = Pram("v", epsilon=1).apply(table)
    assert after.schema == schema
    assert set(Pram("v", epsilon=1).estimate(after)) == {"a", "b"}


def test_missing_cells_are_refused_or_randomized() -> None:
    table = pa.table({"v": ["a", None]})
    with pytest.raises(DataError, match="include_missing=True"):
        Pram("v", categories=["a", "b"], epsilon=1).apply(table)
    always_missing = [[0, 0, 1]] * 3
    operation = Pram("v", categories=["a", "b"], matrix=always_missing, include_missing=True)
    assert operation.apply(table).to_arrow()["v"].to_pylist() == [None, None]


def test_numbers_and_truth_values_are_categories_too() -> None:
    swap = [[0, 1], [1, 0]]
    table = pa.table({"n": [1, 2], "t": [True, False]})
    assert Pram("n", categories=[1, 2], matrix=swap).apply(table).to_arrow()["n"].to_pylist() == [2, 1]
    assert Pram("t", categories=[False, True], matrix=swap).apply(table).to_arrow()["t"].to_pylist() == [False, True]


def test_promises() -> None:
    told = Pram("v", categories=["a", "b"], epsilon=1).guarantee
    assert told.holds
    assert told.to_dict()["epsilon"] == "1"
    assert 'value of "v"' in told.explain()
    assert not Pram("v", categories=["a", "b"], epsilon=1, invariant=True).guarantee.holds
    assert not Pram("v", categories=["a", "b"], matrix=[["1/2", "1/2"], [0, 1]]).guarantee.holds
    assert Pram("v", categories=["a", "b"], matrix=[["1/2", "1/2"], ["1/4", "3/4"]]).guarantee.holds


def test_an_invariant_release_keeps_shares_on_average() -> None:
    table = pa.table({"v": ["a"] * 9_000 + ["b"] * 1_000})
    operation = Pram("v", categories=["a", "b"], epsilon=0, invariant=True)
    found = operation.apply(table).to_arrow()["v"].to_pylist()
    # Each cell is drawn from the shares: 30 is the standard deviation of the count, and 6.2 of them are 1e-9.
    assert abs(found.count("b") - 1_000) < 187
    assert Pram("v", categories=["a", "b"], epsilon=1, invariant=True).apply(table.slice(0, 0)).count() == 0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Pram("v"), ParameterError),
        (lambda: Pram("v", epsilon=1, matrix=MATRIX), ParameterError),
        (lambda: Pram("v", epsilon=-1), ParameterError),
        (lambda: Pram("v", categories=["a"], matrix=MATRIX), ParameterError),
        (lambda: Pram("v", matrix=[[1, 0]]), CloisterError),
        (lambda: Pram("v", matrix=[[0.6, 0.6], [0.5, 0.5]]), ParameterError),
        (lambda: Pram("v", matrix=[[-1, 2], [0.5, 0.5]]), ParameterError),
        (lambda: response_matrix(1, epsilon=1), ParameterError),
        (lambda: response_matrix(2, epsilon=51), UnsafeMechanismError),
        (lambda: invariant_matrix(MATRIX, [1, 1, 1]), ParameterError),
        (lambda: estimate_shares([1, 2], matrix=MATRIX), ParameterError),
        (lambda: estimate_shares([0, 0, 0], matrix=MATRIX), ParameterError),
        (lambda: estimate_shares([1, 2], matrix=[[0.5, 0.5], [0.5, 0.5]]), ParameterError),
        (lambda: estimate_yes_share(0.5, truth=0, second=0.5), ParameterError),
    ],
)
def test_broken_settings_are_refused(make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def test_arrays_are_matrices() -> None:
    assert Pram("v", categories=["a", "b"], matrix=np.array([[0.5, 0.5], [0.25, 0.75]])).matrix == (
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(1, 4), Fraction(3, 4)),
    )


@pytest.mark.parametrize("second", [0, 1])
def test_the_coin_that_forces_an_answer_is_refused(second: int) -> None:
    with pytest.raises(UnsafeMechanismError, match="strictly between 0 and 1"):
        two_coin_matrix(truth=0.5, second=second)


@given(inner, inner)
def test_the_matrix_of_two_coins_agrees_with_the_mechanism(truth: Fraction, second: Fraction) -> None:
    from cloister.mechanisms import BinaryRandomizedResponse

    law = BinaryRandomizedResponse(truth=truth, second=second)
    matrix = two_coin_matrix(truth=truth, second=second)
    assert {(told, true): matrix[true][told] for told in (0, 1) for true in (0, 1)} == law.transition()
    assert matrix_epsilon(matrix) == law.epsilon


def test_categories_are_needed_and_few() -> None:
    with pytest.raises(MissingBoundsError, match="categories="):
        Pram("v", epsilon=1).apply(pa.table({"v": ["a"]}))
    with pytest.raises(ParameterError, match="generalize"):
        Pram("v", epsilon=1, categories=list(range(1001))).apply(pa.table({"v": [1]}))
    with pytest.raises(ParameterError, match="2 rows"):
        Pram("v", matrix=MATRIX).apply(
            cl.open_table(pa.table({"v": ["a"]}), schema=cl.Schema([cl.Column(name="v", categories=["a", "b"])]))
        )


def test_values_outside_are_not_shown() -> None:
    with pytest.raises(DataError) as caught:
        Pram("v", categories=["a", "b"], epsilon=1).apply(pa.table({"v": ["secret"]}))
    assert "secret" not in str(caught.value)


def test_guessed_categories_are_refused_where_something_is_promised() -> None:
    schema = cl.Schema([cl.Column(name="v", categories=["a", "b"], guessed={"categories"})])
    table = cl.open_table(pa.table({"v": ["a", "b"]}), schema=schema)
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        Pram("v", epsilon=1).apply(table)
    assert Pram("v", epsilon=1, invariant=True).apply(table).count() == 2


def test_categories_of_another_type_are_refused() -> None:
    with pytest.raises(ParameterError, match="as they are stored"):
        Pram("v", categories=["a", "b"], epsilon=1).apply(pa.table({"v": pa.array([], pa.int64())}))
