from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.attacks.auditing.statistical_check import largest_detectable_epsilon
from cloister.core.confidence import binomial_bounds
from cloister.errors import ParameterError, PrivacyRefutedError
from cloister.testing import audit, samplers

SURE = 1 - 1e-9


def noisy(answer: float, size: int) -> Any:
    return answer + samplers.laplace(1.0, size)


@pytest.mark.statistical
def test_a_true_claim_is_not_refuted_and_the_bound_is_near() -> None:
    report = audit(noisy, (0.0, 1.0), epsilon=1, confidence=SURE)
    report.verify()
    assert 0.8 < report.epsilon_lower <= 1
    assert "not refuted" in str(report)


@pytest.mark.statistical
def test_a_false_claim_is_refuted_with_its_event() -> None:
    report = audit(noisy, (0.0, 1.0), epsilon=0.7, confidence=SURE)
    assert report.refuted
    with pytest.raises(PrivacyRefutedError, match=r"claim epsilon >= 0\.[89]"):
        report.verify()
    assert report.event.relation in {"<=", ">"}
    assert sum(report.hits) < 2 * report.samples


@pytest.mark.statistical
def test_delta_is_allowed_for() -> None:
    def sometimes_tells(answer: int, size: int) -> Any:
        return np.where(samplers.uniform(size) < 0.1, answer, -1)

    assert audit(sometimes_tells, (0, 1), epsilon=1, confidence=SURE).refuted
    assert not audit(sometimes_tells, (0, 1), epsilon=1, delta=0.1, confidence=SURE).refuted
    assert audit(sometimes_tells, (0, 1), epsilon=1, delta=0.07, confidence=SURE).refuted


@pytest.mark.statistical
def test_text_outputs_and_one_at_a_time_mechanisms() -> None:
    def tell(answer: str) -> str:
        return answer if samplers.uniform(1)[0] < 0.9 else "other"

    assert audit(tell, [("yes", "no")], epsilon=1, samples=2_000, confidence=SURE).refuted
    assert audit(tell, [("yes", "no")], epsilon=1, samples=2_000, vectorized=False).refuted


@pytest.mark.statistical
def test_the_worst_of_several_pairs_is_reported() -> None:
    report = audit(noisy, [(0.0, 0.1), (0.0, 3.0), (0.0, 1.0)], epsilon=1)
    assert {report.dataset, report.neighbor} == {0.0, 3.0}


@pytest.mark.statistical
def test_wide_vectors_are_searched_by_coordinate_difference_and_sum() -> None:
    def shared(answer: tuple[int, ...], size: int) -> Any:
        return np.array(answer) + samplers.discrete_laplace(2, (size, 1))

    report = audit(shared, ((1,) * 8, (1, 2, 1, 1, 1, 1, 1, 1)), epsilon=1, samples=5_000)
    assert report.refuted
    assert report.event.feature.startswith("output[")
    assert " - " in report.event.feature


def test_binomial_bounds_match_the_known_ones() -> None:
    low, high = binomial_bounds(np.array([0, 5, 10]), 10, alpha=0.05)
    assert low == pytest.approx([0, 0.187086, 0.691503], abs=1e-6)
    assert high == pytest.approx([0.308497, 0.812914, 1], abs=1e-6)


def test_the_reach_of_an_audit_is_known_before() -> None:
    assert largest_detectable_epsilon(50_000) == pytest.approx(8.097, abs=0.01)


@pytest.mark.parametrize("neighbors", [[], (1, 2, 3), [1, 2], [(1, 2, 3)]])
def test_neighbors_are_pairs(neighbors: Any) -> None:
    with pytest.raises(ParameterError, match=r"\(dataset, neighbor\)"):
        audit(noisy, neighbors, epsilon=1)


@pytest.mark.parametrize("output", [np.zeros(7), np.zeros((100, 2, 2)), np.array(5.0)])
def test_outputs_have_one_row_each(output: Any) -> None:
    with pytest.raises(ParameterError, match="one row of numbers, per output"):
        audit(lambda answer, size: output if output.ndim else [[[0.0]]] * size, (0, 1), epsilon=1, samples=100)


def test_features_may_not_be_empty() -> None:
    class Nothing(dict[str, Any]):
        def __bool__(self) -> bool:
            return True

    with pytest.raises(ParameterError, match="at least one feature"):
        audit(noisy, (0.0, 1.0), epsilon=1, features=Nothing())


@pytest.mark.parametrize("width", [None, 2])
def test_nan_on_one_side_only_is_seen(width: int | None) -> None:
    def mechanism(dataset: int, size: int) -> Any:
        values = samplers.laplace(1, size if width is None else (size, width))
        values[: size * dataset : 2] = np.nan
        return values

    for pair in ((0, 1), (1, 0)):
        report = audit(mechanism, pair, epsilon=1)
        assert report.refuted
        assert np.isnan(report.event.value)
        assert report.hits == (12_500, 0)


def test_nan_is_neither_below_nor_above() -> None:
    def mechanism(dataset: int, size: int) -> Any:
        values = dataset + samplers.laplace(1, size)
        values[::2] = np.nan
        return values

    assert not audit(mechanism, (0, 1), epsilon=1, confidence=SURE).refuted
    assert audit(mechanism, (0, 9), epsilon=1, confidence=SURE).refuted


def test_none_is_not_an_output() -> None:
    with pytest.raises(ParameterError, match="return NaN"):
        audit(lambda _: None, (0, 1), epsilon=1, samples=100)
