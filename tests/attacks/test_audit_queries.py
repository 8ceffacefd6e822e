"""Audits of every kind of private query at epsilon 1 and 99.9%.

A right query is refuted far more rarely than once in a thousand runs: with 150 outputs to test on, the event of a count
(probabilities 0.73 and 0.27) exceeds both of its bounds at once with a probability below 1e-5, by exact summation.
"""

from __future__ import annotations

import pytest

from cloister.errors import PrivacyRefutedError
from tests.support.audited_queries import BROKEN, CASES, HALVED, Case, half_the_noise

pytestmark = [pytest.mark.slow, pytest.mark.statistical]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_query_is_refuted(case: Case) -> None:
    case.audit().verify()


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_query_that_is_done_wrongly_is_refuted(case: Case) -> None:
    with pytest.raises(PrivacyRefutedError, match="correct the algorithm"):
        case.audit().verify()


@pytest.mark.parametrize("case", HALVED, ids=lambda case: case.name)
def test_half_of_the_noise_is_refuted(case: Case) -> None:
    with half_the_noise():
        assert case.audit().refuted
