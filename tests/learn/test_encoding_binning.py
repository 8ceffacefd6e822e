from __future__ import annotations

import numpy as np
import pytest

from cloister.errors import ParameterError
from cloister.learn._encoding import Encoding, FeatureBins, bins_of, encoding_of
from cloister.learn._features import Binned, Categorical, Numeric

MIXED = Encoding((Numeric("age", 0.0, 100.0), Categorical("color", ("red", "blue"))))


def test_numbers_fall_between_edges_and_categories_on_their_position() -> None:
    bins = bins_of(MIXED, 4)
    matrix = MIXED.matrix([np.array([-5.0, 0.0, 24.9, 25.0, 100.0, 170.0]), np.array(["red", "blue", None] * 2)])
    assert bins.codes(matrix).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [3, 1], [3, 2]]
    assert bins.cells == (4, 3)
    assert [feature.is_ordered for feature in bins.features] == [True, False]


def test_edges_of_single_columns() -> None:
    assert bins_of(MIXED, {"age": [0, 18, 65, 100]}) == FeatureBins(
        (Binned("age", (0.0, 18.0, 65.0, 100.0)), Categorical("color", ("red", "blue")))
    )
    assert bins_of(MIXED, {"age": 2}).features[0] == Binned("age", (0.0, 50.0, 100.0))
    assert bins_of(MIXED, {}).cells == (32, 3)


def test_a_row_is_binned_by_itself() -> None:
    columns = [np.linspace(-10, 110, 20), np.array(["red", "blue", "green", None, "red"] * 4)]
    together = bins_of(MIXED, 7).codes(MIXED.matrix(columns))
    for place in range(20):
        alone = MIXED.matrix([column[place : place + 1] for column in columns])
        assert (bins_of(MIXED, 7).codes(alone)[0] == together[place]).all()


@pytest.mark.parametrize("bins", [{"age": [3, 2]}, {"age": [1]}, {"age": [0, float("nan")]}, {"age": [[0, 1]]}])
def test_edges_must_rise(bins: object) -> None:
    with pytest.raises(ParameterError, match="outer bins take what lies outside"):
        bins_of(MIXED, bins)


def test_no_more_bins_than_sensible() -> None:
    with pytest.raises(ParameterError, match="use fewer bins"):
        bins_of(MIXED, 5000)
    with pytest.raises(ParameterError):
        bins_of(MIXED, 0)


@pytest.mark.parametrize("bins", [7, {"age": 7}, {"age": [0, 18, 65, 100]}])
def test_trees_and_naive_bayes_cut_numbers_alike(bins: object) -> None:
    columns = [np.linspace(-10, 110, 241)]
    age = Encoding((Numeric("age", 0.0, 100.0),))
    cut = encoding_of(["age"], bounds={"age": (0, 100)}, bins=bins, named=True)
    assert bins_of(age, bins).features == cut.features
    assert bins_of(age, bins).codes(age.matrix(columns)).tolist() == cut.codes(columns).tolist()
    with pytest.raises(ParameterError, match="use fewer bins"):
        encoding_of(["age"], bounds={"age": (0, 100)}, bins=5000, named=True)
