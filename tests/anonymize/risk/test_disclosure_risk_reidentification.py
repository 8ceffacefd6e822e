from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize.risk.disclosure_risk import measure_reidentification

SIZES = np.array([1, 1, 3, 5])


def test_the_prosecutor_has_one_over_the_class() -> None:
    found = measure_reidentification(SIZES, threshold=0.25, k=4)
    assert found.rows == 10
    assert found.smallest == 1
    assert found.prosecutor_max == 1
    assert found.prosecutor_average == pytest.approx(0.4)
    assert found.marketer == pytest.approx(0.4)
    assert found.at_risk == pytest.approx(0.5)
    assert found.below_k == pytest.approx(0.5)
    assert (found.unique, found.unique_share) == (2, 0.2)
    assert found.journalist_average is None


def test_a_risk_at_the_threshold_is_not_above_it() -> None:
    assert measure_reidentification(np.array([5, 5]), threshold=0.2, k=5).at_risk == 0


def test_the_journalist_has_one_over_the_people_who_fit() -> None:
    found = measure_reidentification(SIZES, fitting=np.array([2, 10, 3, 50]))
    assert found.journalist_max == pytest.approx(0.5)
    assert found.journalist_average == pytest.approx((1 / 2 + 1 / 10 + 3 / 3 + 5 / 50) / 10)
    assert found.journalist_basis == "the population table"


def test_a_population_that_misses_people_of_the_table_has_at_least_them() -> None:
    assert measure_reidentification(SIZES, fitting=np.zeros(4, dtype=np.int64)).journalist_max == 1


def test_several_rows_of_the_only_person_who_fits_are_that_persons() -> None:
    found = measure_reidentification(np.array([2, 3]), fitting=np.array([1, 6]))
    assert found.journalist_max == 1
    assert found.journalist_average == pytest.approx((2 + 3 / 6) / 5)


def test_an_estimate_for_the_population_is_said_to_be_one() -> None:
    found = measure_reidentification(SIZES, estimated=0.125)
    assert (found.journalist_max, found.journalist_average) == (None, 0.125)
    assert "estimated" in found.journalist_basis


def test_no_classes_are_no_risk() -> None:
    found = measure_reidentification(np.array([], dtype=np.int64))
    assert (found.prosecutor_max, found.at_risk, found.unique_share) == (0, 0, 0)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_the_average_is_the_mean_over_rows(sizes: list[int]) -> None:
    found = measure_reidentification(np.array(sizes))
    rows = [1 / size for size in sizes for _ in range(size)]
    assert found.prosecutor_average == pytest.approx(np.mean(rows))
    assert found.at_risk == pytest.approx(np.mean([risk > 0.2 for risk in rows]))
    assert found.to_dict()["rows"] == sum(sizes)
