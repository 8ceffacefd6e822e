from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from cloister.core.guarantees import KAnonymity
from cloister.errors import InternalError, PrivacyRefutedError, VerificationError
from cloister.testing import ExactReport, check_independent, samplers
from cloister.testing.zoo import EXHIBITS, Exhibit, Way
from cloister.testing.zoo.additive import truncated_laplace

BY_NAME = {exhibit.name: exhibit for exhibit in EXHIBITS}


@cache
def exact_report(name: str) -> ExactReport:
    exhibit = BY_NAME[name]
    report = exhibit.examine(exhibit.broken)
    assert isinstance(report, ExactReport)
    return report


@pytest.mark.statistical
@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_every_bug_is_refuted_and_its_correction_is_not(exhibit: Exhibit) -> None:
    report = exhibit.examine(exhibit.broken)
    assert report.refuted
    with pytest.raises(PrivacyRefutedError):
        report.verify()
    exhibit.examine(exhibit.corrected).verify()


def test_the_zoo_holds_the_named_bugs() -> None:
    assert len(BY_NAME) == len(EXHIBITS) >= 20
    references = " ".join(exhibit.reference for exhibit in EXHIBITS)
    for reference in ("L6", "L12", "L14", "E7", "E9", "E10", "E12", "E14", "E15", "E16", "E19", "E20", "E21", "E24"):
        assert reference in references


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("redrawn_laplace", 1.48985),
        ("duchi_even_dimension", 2.098612),
        ("duchi_overlapping_halves", 1.313262),
        ("vector_laplace_of_l2_sensitivity", 2),
        ("parallel_composition_under_replace", 2),
        ("direct_encoding_off_by_one", float("inf")),
        ("one_sided_randomized_response", float("inf")),
        ("candidates_from_data", float("inf")),
        ("histogram_edges_from_data", float("inf")),
        ("histogram_ignores_epsilon", 1),
    ],
)
def test_the_true_epsilon_of_a_bug(name: str, expected: float) -> None:
    assert exact_report(name).tight_epsilon == pytest.approx(expected, abs=2e-6)


def test_cdp_04_the_auditor_on_naive_redraw_reports_1_48985() -> None:
    assert round(exact_report("redrawn_laplace").tight_epsilon, 5) == 1.48985


def test_cdp_04_the_fixed_point_is_the_smallest_scale_that_holds() -> None:
    from fractions import Fraction

    exhibit = BY_NAME["redrawn_laplace"]
    assert exhibit.examine(truncated_laplace(Fraction("1.61156"))).tight_epsilon == pytest.approx(1, abs=1e-6)
    assert exhibit.examine(truncated_laplace(Fraction("1.6115"))).refuted


def test_the_classic_gaussian_has_the_published_true_delta() -> None:
    assert float(exact_report("classic_gaussian_large_epsilon").delta_at(10)) == pytest.approx(2.27e-5, abs=5e-8)


def test_one_sided_response_is_private_with_half_delta_only() -> None:
    assert exact_report("one_sided_randomized_response").delta_at(0) == pytest.approx(0.5)


@pytest.mark.statistical
def test_cdp_19_shared_noise_is_refuted_as_dependent_too() -> None:
    exhibit = BY_NAME["shared_scalar_noise"]
    with pytest.raises(VerificationError, match="independent value per coordinate"):
        check_independent(exhibit.broken((5, 7, 4), 5_000))
    check_independent(exhibit.corrected((5, 7, 4), 5_000))


def test_a_blind_check_is_found_out() -> None:
    exhibit = BY_NAME["count_plus_constant"]
    exhibit.verify()
    blind = replace(exhibit, broken=exhibit.corrected)
    with pytest.raises(VerificationError, match="sharpen the check"):
        blind.verify()


def test_a_check_that_refutes_everything_is_found_out() -> None:
    exhibit = BY_NAME["count_plus_constant"]
    with pytest.raises(PrivacyRefutedError):
        replace(exhibit, corrected=exhibit.broken).verify()


def test_an_exhibit_claims_differential_privacy() -> None:
    with pytest.raises(InternalError):
        _ = replace(BY_NAME["first_row"], claimed=KAnonymity(k=2)).claim


def test_exhibits_explain_themselves() -> None:
    for exhibit in EXHIBITS:
        assert exhibit.flaw.endswith(".")
        assert exhibit.reference in str(exhibit)
        assert exhibit.way in Way


@pytest.mark.statistical
def test_seeded_samplers_repeat() -> None:
    from cloister.core.random import SeededRandomSource

    first, second = (samplers.laplace(1.0, 5, random_state=SeededRandomSource(3)) for _ in range(2))
    assert (first == second).all()
