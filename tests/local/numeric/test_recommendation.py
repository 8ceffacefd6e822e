from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cloister.errors import MissingBoundsError, ParameterError
from cloister.local import Duchi, DuchiVector, Hybrid, LaplaceVector, PiecewiseVector, recommend_numeric


@pytest.mark.parametrize("epsilon", [0.1, 0.61, 0.62, 1, 1.2898, 2, 2.3242, 4, 8])
def test_the_best_protocol_has_the_smallest_worst_variance(epsilon: float) -> None:
    advice = recommend_numeric(epsilon)
    variances = {name: variance for name, variance, _ in advice.alternatives}
    assert set(variances) == {"duchi", "piecewise", "local_laplace", "hybrid"}
    assert advice.variance == pytest.approx(min(variances.values()))
    assert advice.protocol is (Duchi if epsilon <= 0.61 else Hybrid)
    e, s = math.exp(epsilon), math.exp(epsilon / 2)
    assert variances["duchi"] == pytest.approx(((e + 1) / (e - 1)) ** 2, rel=1e-7)
    assert variances["piecewise"] == pytest.approx(4 * s / (3 * (s - 1) ** 2), rel=1e-6)
    assert variances["local_laplace"] == pytest.approx(8 / epsilon**2, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "dimensions"), [(0.5, 2), (1, 10), (4, 10), (6, 3), (1, 61)])
def test_several_numbers(epsilon: float, dimensions: int) -> None:
    advice = recommend_numeric(epsilon, dimensions=dimensions)
    kinds: dict[str, Any] = {
        "duchi_vector": DuchiVector,
        "piecewise_vector": PiecewiseVector,
        "laplace_vector": LaplaceVector,
    }
    variances = {name: variance for name, variance, _ in advice.alternatives}
    assert set(variances) == set(kinds) - ({"duchi_vector"} if dimensions > 60 else set())
    for name, variance in variances.items():
        protocol = kinds[name](bounds=[(-1, 1)] * dimensions, epsilon=epsilon)
        assert variance == pytest.approx(protocol.variance().max())
    assert advice.protocol is kinds[min(variances, key=variances.__getitem__)]


def test_noise_on_all_numbers_grows_with_their_square() -> None:
    variances = {name: variance for name, variance, _ in recommend_numeric(1, dimensions=10).alternatives}
    assert variances["laplace_vector"] == pytest.approx(800, rel=1e-6)


def test_a_recommendation_opens_plans_and_prints() -> None:
    advice = recommend_numeric(1)
    protocol = advice.open((0, 100))
    assert protocol == Hybrid(bounds=(0, 100), epsilon=1)
    assert advice.respondents(1, bounds=(0, 100)) == protocol.respondents(1) == advice.respondents(0.02)
    assert advice.respondents(0.02, confidence=0.99) > advice.respondents(0.02)
    assert str(advice).startswith("Hybrid: the mixture")
    record = json.loads(json.dumps(advice.to_dict()))
    assert (record["protocol"], record["dimensions"]) == ("hybrid", 1)
    assert {each["protocol"]: each["bits"] for each in record["alternatives"]} == {
        "duchi": 1,
        "piecewise": 31,
        "local_laplace": 23,
        "hybrid": 32,
    }


def test_a_recommendation_for_several_numbers_opens_and_plans() -> None:
    advice = recommend_numeric(1, dimensions=3)
    assert advice.open([(0, 1), (0, 2), (0, 3)]).dimensions == 3  # type: ignore[union-attr]
    assert advice.respondents(0.1, bounds=(0, 1)) == advice.open([(0, 1)] * 3).respondents(0.1)
    assert {name: bits for name, _, bits in advice.alternatives}["duchi_vector"] == 3
    with pytest.raises(MissingBoundsError, match="anybody"):
        advice.open(None)


def test_bad_questions_are_refused() -> None:
    for bad in (0, -1, 21, float("nan")):
        with pytest.raises(ParameterError, match="epsilon"):
            recommend_numeric(bad)
    with pytest.raises(ParameterError, match="dimensions=1"):
        recommend_numeric(1, dimensions=0)


def test_the_recommended_number_of_people_is_enough() -> None:
    advice = recommend_numeric(2)
    people = advice.respondents(0.05)
    protocol = advice.open((-1, 1))
    values = np.where(np.arange(people) % 2 == 0, -1, 1)
    assert protocol.estimate(protocol.randomize(values)).margin() == pytest.approx(0.05, rel=0.1)
