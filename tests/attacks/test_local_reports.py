from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloister import local
from cloister.attacks import guess_from_reports
from cloister.attacks.local_reports import most_right
from cloister.core.random import SeededRandomSource, integers_below
from cloister.errors import ForeignReportError, ParameterError, ParameterTypeError

PROTOCOLS: dict[str, Callable[..., Any]] = {
    "direct": local.DirectEncoding,
    "symmetric_unary": local.SymmetricUnaryEncoding,
    "optimized_unary": local.OptimizedUnaryEncoding,
    "local_hashing": local.OptimizedLocalHashing,
    "hadamard": local.HadamardResponse,
    "subset": local.SubsetSelection,
    "summation": local.SummationHistogramEncoding,
    "threshold": local.ThresholdHistogramEncoding,
    "pram": local.Pram,
    "rappor": local.Rappor,
}
DOMAIN = ["a", "b", "c", "d", "e"]
PEOPLE = 20_000


def truth_of(people: int = PEOPLE) -> list[str]:
    """Return people, two fifths of whom have the first value."""
    drawn = integers_below(SeededRandomSource(1), 5, 2 * people).reshape(2, people)
    return [DOMAIN[place] for place in np.minimum(*drawn)]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_best_guess_is_as_sure_as_it_is_right(name: str) -> None:
    protocol, truth = PROTOCOLS[name](domain=DOMAIN, epsilon=2), truth_of()
    reports = protocol.randomize(truth, random_state=SeededRandomSource(2))
    prior = np.array([truth.count(value) for value in DOMAIN]) / len(truth)
    scores = np.exp(protocol.log_likelihoods(reports.payload)) * prior
    sureness = scores.max(axis=1) / scores.sum(axis=1)
    result = guess_from_reports(protocol, truth=truth, reports=reports)
    # A wrong likelihood makes probabilities that do not come true; the standard deviation here is below 0.0036.
    assert abs(sureness.mean() - result.success) < 0.02
    assert result.baseline < result.success < result.bound + 0.02
    assert result.succeeded
    assert result.worst[0][1] == pytest.approx(sureness.max())


def test_direct_encoding_meets_the_bound() -> None:
    protocol = local.DirectEncoding(domain=DOMAIN, epsilon=1)
    even = DOMAIN * (PEOPLE // 5)
    result = guess_from_reports(protocol, truth=even, random_state=SeededRandomSource(3))
    assert result.bound == pytest.approx(math.e / (math.e + 4))
    assert result.success == pytest.approx(result.bound, abs=0.02)
    assert result.baseline == 0.2


def test_two_answers_by_randomized_response() -> None:
    protocol = local.RandomizedResponse(domain=["no", "yes"], epsilon=1)
    result = guess_from_reports(protocol, truth=["no", "yes"] * 10_000, random_state=SeededRandomSource(4))
    assert result.success == pytest.approx(math.e / (1 + math.e), abs=0.02)
    forced = local.RandomizedResponse(domain=["no", "yes"], truth="1/2", second="1/10")
    found = np.exp(
        forced.log_likelihoods(forced.randomize(["no", "yes"] * 50, random_state=SeededRandomSource(5)).payload)
    )
    p, q = map(float, forced.probabilities)
    assert {tuple(row.round(9)) for row in found} == {tuple(np.round(row, 9)) for row in ((1 - q, 1 - p), (q, p))}


def test_likelihoods_of_bits_are_those_of_independent_tosses() -> None:
    protocol = local.OptimizedUnaryEncoding(domain=["a", "b", "c"], epsilon=1)
    reports = protocol.randomize(["a", "b", "c"] * 40, random_state=SeededRandomSource(6))
    p, q = map(float, protocol.probabilities)
    bits = np.unpackbits(reports.payload["bits"], axis=1, count=3, bitorder="little")
    found = protocol.log_likelihoods(reports.payload)
    for row, scores in zip(bits, found, strict=True):
        exact = [
            math.log(
                math.prod(
                    (p if place == value else q) if bit else 1 - (p if place == value else q)
                    for place, bit in enumerate(row)
                )
            )
            for value in range(3)
        ]
        for first, second in itertools.combinations(range(3), 2):
            assert scores[first] - scores[second] == pytest.approx(exact[first] - exact[second])


def test_a_tiny_epsilon_gives_nothing_away() -> None:
    protocol = local.OptimizedLocalHashing(domain=DOMAIN, epsilon="0.01")
    result = guess_from_reports(protocol, truth=truth_of(), random_state=SeededRandomSource(7))
    assert not result.succeeded
    assert result.success == pytest.approx(result.baseline, abs=0.005)
    assert "hardly help" in result.verdict


def test_fresh_reports_add_up_and_replayed_ones_do_not() -> None:
    protocol, truth = local.DirectEncoding(domain=DOMAIN, epsilon=1), truth_of(5000)
    once = guess_from_reports(protocol, truth=truth, random_state=SeededRandomSource(8))
    fresh = guess_from_reports(protocol, truth=truth, repeats=30, random_state=SeededRandomSource(8))
    replayed = guess_from_reports(protocol, truth=truth, repeats=30, memoized=True, random_state=SeededRandomSource(8))
    assert fresh.success > 0.9
    assert fresh.control == once.success
    assert (fresh.epsilon, fresh.reports_each) == (30, 30)
    assert replayed.success == once.success
    assert replayed.epsilon == once.epsilon == 1
    assert replayed.control is None
    assert "From one report it was" in fresh.verdict
    assert "30 replayed reports" in replayed.assumption


def test_reports_of_several_times_are_combined() -> None:
    protocol, truth = local.SymmetricUnaryEncoding(domain=DOMAIN, epsilon=1), truth_of(5000)
    source = SeededRandomSource(9)
    times = [protocol.randomize(truth, random_state=source) for _ in range(10)]
    many, one = (
        guess_from_reports(protocol, truth=truth, reports=times),
        guess_from_reports(protocol, truth=truth, reports=times[0]),
    )
    assert many.success > one.success == many.control
    assert many.success < many.bound


def test_what_the_collector_knows_moves_the_guess() -> None:
    protocol, truth = local.DirectEncoding(domain=DOMAIN, epsilon=1), truth_of(5000)
    misled = guess_from_reports(protocol, truth=truth, shares={"e": 0.9, "a": 0.1}, random_state=SeededRandomSource(1))
    informed = guess_from_reports(protocol, truth=truth, random_state=SeededRandomSource(1))
    assert misled.success < informed.success


@pytest.mark.parametrize(("epsilon", "share", "most"), [(0, 0.3, 0.3), (50, 0.3, 1), (math.log(3), 0.5, 0.75)])
def test_the_bound(epsilon: float, share: float, most: float) -> None:
    assert most_right(epsilon=epsilon, share=share) == pytest.approx(most)


def test_the_report_shows_the_bound_and_no_person() -> None:
    protocol = local.DirectEncoding(domain=DOMAIN, epsilon=1)
    result = guess_from_reports(protocol, truth=truth_of(500), random_state=SeededRandomSource(1))
    assert "most that epsilon allows" in result.comparisons()
    assert "worst" not in json.dumps(result.to_dict()) + repr(result)
    assert "epsilon 1" in dict(result.summary())["most that can be right"]
    assert "guessing from local reports" in result.report().to_markdown()
    assert result.plot().title.startswith("How often")


DIRECT = local.DirectEncoding(domain=DOMAIN, epsilon=1)


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"truth": []}, ParameterError, "at least one person"),
        ({"repeats": 0}, ParameterError, "repeats=1"),
        ({"shares": {"a": -1}}, ParameterError, "how frequent"),
        ({"reports": []}, ParameterTypeError, "protocol.randomize"),
        ({"reports": [1]}, ParameterTypeError, "protocol.randomize"),
        ({"reports": DIRECT.randomize(["a"])}, ParameterError, "one report for every person"),
        ({"protocol": 5}, ParameterTypeError, "DirectEncoding"),
        ({"protocol": local.Duchi(bounds=(0, 1), epsilon=1)}, ParameterTypeError, "DirectEncoding"),
    ],
    ids=["nobody", "repeats", "shares", "no-reports", "not-reports", "lengths", "number", "numeric"],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], error: type[Exception], fix: str) -> None:
    given = {"protocol": DIRECT, "truth": ["a", "b"], **parameters}
    with pytest.raises(error, match=fix):
        guess_from_reports(given.pop("protocol"), **given)


def test_reports_of_another_protocol_are_refused() -> None:
    other = local.DirectEncoding(domain=DOMAIN, epsilon=2).randomize(["a", "b"])
    with pytest.raises(ForeignReportError):
        guess_from_reports(DIRECT, truth=["a", "b"], reports=other)
