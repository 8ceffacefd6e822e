from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister import local
from cloister.core.random import ListedRandomSource
from cloister.errors import ParameterError, UnsafeMechanismError
from cloister.testing.local_laws import device_law, worst_ratio

ASYMMETRIC = [["0.9", "0.1"], ["0.4", "0.6"]]


@pytest.mark.parametrize(
    "options",
    [
        {"domain": 2, "matrix": ASYMMETRIC},
        {"domain": 4, "epsilon": 1},
        {"domain": 5, "epsilon": 2, "kind": "ordinal"},
        {"domain": 3, "matrix": [["1/2", "1/4", "1/4"], ["1/8", "3/4", "1/8"], ["1/3", "1/3", "1/3"]]},
    ],
)
def test_the_law_is_the_matrix_and_has_its_epsilon(options: dict[str, Any]) -> None:
    """LDP-09."""
    protocol = local.Pram(**options)
    size = len(protocol.domain)
    laws = [device_law(protocol, code) for code in range(size)]
    assert worst_ratio(laws) == protocol.likelihood_ratio
    assert abs(protocol.epsilon_of() - protocol.epsilon) < 1e-9
    for row, each in zip(protocol.matrix, laws, strict=True):
        assert [each[bytes([report])] for report in range(size)] == list(row)
    assert local.open_protocol(protocol.to_dict()) == protocol


def test_an_asymmetric_matrix_is_recovered_by_its_transpose() -> None:
    """LDP-09."""
    protocol = local.Pram(domain=["a", "b"], matrix=ASYMMETRIC)
    assert float(protocol.epsilon) == pytest.approx(math.log(6))
    head = protocol.randomize("a").to_dict()
    estimate = protocol.estimate([{**head, "y": int(place >= 55)} for place in range(100)])
    assert np.asarray(estimate.frequencies) == pytest.approx([0.3, 0.7])
    assert np.asarray(estimate.counts) == pytest.approx([30, 70])


def test_estimates_agree_with_direct_encoding() -> None:
    direct, matrix = local.DirectEncoding(domain=6, epsilon=1), local.Pram(domain=6, epsilon=1)
    assert matrix.variance(0.2) == pytest.approx(direct.variance(0.2), rel=1e-9)
    codes = [place % 6 for place in range(3000)]
    reports = matrix.randomize(codes)
    same = [{**direct.randomize(0).to_dict(), "y": report.y} for report in reports]
    assert np.asarray(matrix.estimate(reports).counts) == pytest.approx(np.asarray(direct.estimate(same).counts))
    errors = np.asarray(matrix.estimate(reports).standard_errors)
    assert errors == pytest.approx(np.asarray(direct.estimate(same).standard_errors), rel=0.02)


@pytest.mark.statistical
def test_errors_are_those_that_repetitions_show() -> None:
    protocol = local.Pram(domain=5, epsilon=1.5, kind="ordinal")
    codes = np.repeat(np.arange(5), [1000, 500, 300, 200, 0])
    runs = np.array([np.asarray(protocol.estimate(protocol.randomize(codes)).counts) for _ in range(600)])
    errors = np.asarray(protocol.estimate(protocol.randomize(codes)).standard_errors)
    assert np.abs(runs.mean(axis=0) - [1000, 500, 300, 200, 0]).max() < 6.6 * errors.max() / math.sqrt(600)
    assert runs.std(axis=0) == pytest.approx(errors, rel=6.6 / math.sqrt(2 * 600) + 0.05)


def test_the_most_likely_shares_are_not_negative() -> None:
    protocol = local.Pram(domain=4, epsilon=0.5)
    reports = protocol.read([{**protocol.randomize(0).to_dict(), "y": y} for y in [0] * 60 + [1] * 30 + [2] * 10])
    assert min(protocol.estimate(reports).counts.values()) < 0
    likely = protocol.most_likely(reports)
    assert likely.method == "most_likely"
    assert min(likely.counts.values()) >= 0
    assert sum(likely.counts.values()) == pytest.approx(100)


def test_matrices_that_prove_something_or_claim_too_little_are_refused() -> None:
    with pytest.raises(UnsafeMechanismError, match="under every true answer"):
        local.Pram(domain=2, matrix=[[1, 0], ["1/2", "1/2"]])
    with pytest.raises(ParameterError, match="leave epsilon out"):
        local.Pram(domain=2, matrix=ASYMMETRIC, epsilon=1)
    assert float(local.Pram(domain=2, matrix=ASYMMETRIC, epsilon=3).epsilon) == pytest.approx(math.log(6))
    with pytest.raises(ParameterError, match="3 rows"):
        local.Pram(domain=3, matrix=ASYMMETRIC)
    with pytest.raises(ParameterError, match="recommend"):
        local.Pram(domain=2000, epsilon=1)
    for singular in (
        [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["3/8", "3/8", "1/4"]],
        [["1/3", "1/3", "1/3"]] * 3,
    ):
        with pytest.raises(ParameterError, match="truth more often"):
            local.Pram(domain=3, matrix=singular)


def test_the_condition_number_says_how_hard_estimating_is() -> None:
    assert local.Pram(domain=3, epsilon=5).condition_number < 1.2 < local.Pram(domain=3, epsilon=1).condition_number


def test_one_word_is_compared_with_the_thresholds_of_its_row() -> None:
    protocol = local.Pram(domain=3, matrix=[["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/4", "1/4", "1/2"]])
    draws = [2**63 - 8, 2**63 + 8, 2**64 - 1]
    reported = [protocol.randomize(0, random_state=ListedRandomSource([word])).y for word in draws]
    assert reported == [0, 1, 2]
