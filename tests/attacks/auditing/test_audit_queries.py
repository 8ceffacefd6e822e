"""Audits of every kind of private query at epsilon 1, each of which refutes a right query once in 1e9 runs."""

from __future__ import annotations

import pytest

from cloister.errors import PrivacyRefutedError
from tests.support.audited_queries import BROKEN, CASES, HALVED, Case, half_the_noise
from tests.support.thoroughness import audited

pytestmark = [pytest.mark.slow, pytest.mark.statistical]


ALWAYS = (
    "count with Gaussian noise",
    "mean of an attested size",
    "median",
    "histogram of replaced rows",
    "vote",
    "a person's rows in groups chosen privately",
)
"""One of each noise, choice and unit; the others take the same ways through the same code."""


@pytest.mark.parametrize(
    "case", audited(CASES, but=[case for case in CASES if case.name in ALWAYS]), ids=lambda case: case.name
)
def test_no_query_is_refuted(case: Case) -> None:
    case.audit().verify()


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_a_query_that_is_done_wrongly_is_refuted(case: Case) -> None:
    with pytest.raises(PrivacyRefutedError, match="correct the algorithm"):
        case.audit().verify()


@pytest.mark.parametrize("case", audited(HALVED, but=()), ids=lambda case: case.name)
def test_half_of_the_noise_is_refuted(case: Case) -> None:
    """Show what more samples than the audits above have would find; `test_audit_dp.py` shows it without queries."""
    with half_the_noise():
        assert case.audit().refuted
