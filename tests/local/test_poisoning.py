"""Fake reports: the bound is attained and kept, crude attacks raise an alarm, honest reports never do."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cloister import local
from cloister.core.random import integers_below, random_source
from cloister.errors import ForeignReportError, ParameterError, ParameterTypeError, TooFewReportsError
from cloister.local._plausibility import (  # the exact laws behind two tests
    _pair_moments,
    _reaches,  # the exact law behind a test
    ones_law,
)
from cloister.local.frequency._rappor_regression import bit_gains
from cloister.local.frequency.support import FrequencyProtocol
from cloister.local.naive_bayes._class_means import class_mean_protocols
from tests.local.laws import law

DOMAIN = 24
PROTOCOLS: dict[str, Any] = {
    "randomized_response": local.RandomizedResponse(epsilon=1),
    "direct_encoding": local.DirectEncoding(domain=DOMAIN, epsilon=1),
    "symmetric_unary_encoding": local.SymmetricUnaryEncoding(domain=DOMAIN, epsilon=1),
    "optimized_unary_encoding": local.OptimizedUnaryEncoding(domain=DOMAIN, epsilon=1),
    "optimized_local_hashing": local.OptimizedLocalHashing(domain=DOMAIN, epsilon=1),
    "hadamard_response": local.HadamardResponse(domain=DOMAIN, epsilon=1),
    "subset_selection": local.SubsetSelection(domain=DOMAIN, epsilon=1),
    "summation_histogram_encoding": local.SummationHistogramEncoding(domain=DOMAIN, epsilon=1),
    "threshold_histogram_encoding": local.ThresholdHistogramEncoding(domain=DOMAIN, epsilon=1),
    "pram": local.Pram(domain=5, epsilon=1, kind="ordinal"),
    "rappor": local.Rappor(domain=DOMAIN, epsilon=1),
    "rappor with cohorts": local.Rappor(domain=DOMAIN, epsilon=1, bits=16, hashes=2),
    "heavy_hitters": local.HeavyHitters(kind="integer", size=16, epsilon=1),
}
HONEST, FAKE = 20_000, 1000


def honest(protocol: local.Protocol, count: int = HONEST) -> local.Reports:
    """Reports of people of whom half have the first value."""
    if isinstance(protocol, local.RandomizedResponse):
        return protocol.randomize([False] * (count // 2) + [True] * (count // 2))
    size = len(protocol.domain) if isinstance(protocol, FrequencyProtocol) else 2**16
    return protocol.randomize(np.repeat([0, 1], count // 2) * integers_below(random_source(), size, count))


def poisoned(protocol: local.Protocol, fakes: int = FAKE, **columns: Any) -> local.Reports:
    """Honest reports and fake ones with chosen fields."""
    rows = honest(protocol, fakes).payload.copy()
    for name, column in columns.items():
        rows[name] = column
    return honest(protocol) + local.Reports(protocol, rows)


def alarms(protocol: Any, reports: Any) -> set[str]:
    return {finding.name for finding in local.check_reports(protocol, reports, false_alarm=1e-9).alarms}


@pytest.mark.statistical
@pytest.mark.parametrize("name", PROTOCOLS)
def test_honest_reports_raise_no_alarm(name: str) -> None:
    protocol = PROTOCOLS[name]
    for reports in (honest(protocol), honest(protocol, 2), honest(protocol)[:1]):
        check = local.check_reports(protocol, reports, false_alarm=1e-9)
        assert check.is_plausible, check.reasons


@pytest.mark.statistical
@pytest.mark.parametrize("name", PROTOCOLS)
def test_everybody_with_one_value_raises_no_alarm(name: str) -> None:
    protocol = PROTOCOLS[name]
    value = protocol.domain.values[-1] if hasattr(protocol, "domain") else 2**16 - 1
    assert local.check_reports(protocol, protocol.randomize([value] * 5000), false_alarm=1e-9).is_plausible


@pytest.mark.statistical
@pytest.mark.parametrize("name", PROTOCOLS)
def test_fake_people_who_follow_the_protocol_are_not_seen(name: str) -> None:
    protocol = PROTOCOLS[name]
    value = protocol.domain.values[-1] if hasattr(protocol, "domain") else 2**16 - 1
    check = local.check_reports(protocol, honest(protocol) + protocol.randomize([value] * 5000), false_alarm=1e-9)
    assert check.is_plausible
    assert "cannot be told from honest ones" in dict(check.summary())["limits"]


def test_the_exact_laws_of_ones_and_pairs() -> None:
    protocol = local.OptimizedUnaryEncoding(domain=4, epsilon=1)
    p, q = map(float, protocol.probabilities)
    exact = np.zeros(5)
    for row, chance in law(protocol, 2).items():
        exact[bin(row[0]).count("1")] += float(chance)
    np.testing.assert_allclose(ones_law(4, 1, p, q), exact)
    for kind, size in ((protocol, 4), (local.SubsetSelection(domain=5, epsilon=1, size=2), 5)):
        assert_pairs_have_mean_zero(kind, size)


def assert_pairs_have_mean_zero(protocol: Any, size: int) -> None:
    """For every true value and every pair of bits, the term has mean zero and the stated moments."""
    p, q = map(float, protocol.probabilities)
    pairs: dict[tuple[int, ...], float] = {}
    for code in range(size):
        for row, chance in law(protocol, code).items():
            bits = np.unpackbits(np.frombuffer(row, np.uint8), count=size, bitorder="little")
            for first in range(size):
                for second in range(first):
                    key = (code, first, second, int(bits[first]), int(bits[second]))
                    pairs[key] = pairs.get(key, 0.0) + float(chance)
    neither = pairs[(0, 2, 1, 1, 1)]
    one = pairs[(2, 2, 1, 1, 1)]
    slope = (one - neither) / (p - q)
    variance, most = _pair_moments(p, q, neither, one)
    for code in range(size):
        for first in range(size):
            for second in range(first):
                terms = {(b, c): b * c - neither - slope * (b + c - 2 * q) for b in (0, 1) for c in (0, 1)}
                chances = {(b, c): pairs.get((code, first, second, b, c), 0.0) for b, c in terms}
                assert sum(chances[key] * terms[key] for key in terms) == pytest.approx(0, abs=1e-12)
                assert sum(chances[key] * terms[key] ** 2 for key in terms) <= variance + 1e-12
                assert max(map(abs, terms.values())) <= most + 1e-12


@pytest.mark.parametrize(
    "protocol",
    [
        local.DirectEncoding(domain=4, epsilon=1),
        local.OptimizedUnaryEncoding(domain=4, epsilon=1),
        local.SymmetricUnaryEncoding(domain=3, epsilon=2),
        local.OptimizedLocalHashing(domain=2, epsilon=1, buckets=2),
        local.HadamardResponse(domain=4, epsilon=1),
        local.SubsetSelection(domain=5, epsilon=1, size=2),
        local.Rappor(domain=3, epsilon=1),
    ],
    ids=lambda protocol: protocol.name,
)
def test_the_likeliest_row_is_the_likeliest(protocol: Any) -> None:
    largest = max(float(chance) for code in range(len(protocol.domain)) for chance in law(protocol, code).values())
    assert protocol.likeliest_report == pytest.approx(np.log(largest))


@pytest.mark.statistical
def test_only_the_target_bit_set_is_seen_in_the_number_of_ones() -> None:
    protocol = PROTOCOLS["optimized_unary_encoding"]
    bits = np.zeros((FAKE, 3), dtype=np.uint8)
    bits[:, 0] = 1
    assert alarms(protocol, poisoned(protocol, bits=bits)) >= {"ones", "duplicates"}


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["optimized_unary_encoding", "symmetric_unary_encoding", "rappor"])
def test_targets_set_together_are_seen_in_the_pairs(name: str) -> None:
    protocol = PROTOCOLS[name]
    rows = honest(protocol, 3 * FAKE).payload
    rows["bits"][:, 0] |= 0b1111
    bits = np.unpackbits(rows["bits"], axis=1, count=DOMAIN, bitorder="little")
    # Fakers match the number of ones to the honest law: of the last bits, those beyond the right number are cleared.
    wanted = np.unpackbits(honest(protocol, 3 * FAKE).payload["bits"], axis=1).sum(axis=1)
    for row, ones in zip(bits, wanted, strict=True):
        spare = np.flatnonzero(row[4:])[::-1]
        row[4 + spare[: max(0, int(row.sum()) - int(ones))]] = 0
    rows["bits"] = np.packbits(bits, axis=1, bitorder="little")
    assert "pairs" in alarms(protocol, honest(protocol) + local.Reports(protocol, rows))


@pytest.mark.statistical
def test_sets_of_the_same_targets_are_seen() -> None:
    protocol = PROTOCOLS["subset_selection"]
    chosen = np.zeros(DOMAIN, dtype=np.uint8)
    chosen[: protocol.size] = 1
    reports = poisoned(protocol, bits=np.packbits(chosen, bitorder="little"))
    assert alarms(protocol, reports) >= {"pairs", "duplicates"}


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["optimized_local_hashing", "heavy_hitters"])
def test_hash_functions_that_support_everything_are_seen(name: str) -> None:
    protocol = PROTOCOLS[name]
    b = honest(protocol, FAKE).payload["b"]
    assert "functions" in alarms(protocol, poisoned(protocol, a=0, b=b, y=b % protocol.buckets))


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["optimized_local_hashing", "heavy_hitters"])
def test_one_report_sent_again_and_again_is_seen(name: str) -> None:
    protocol = local.OptimizedLocalHashing(domain=5000, epsilon=1) if name[0] == "o" else PROTOCOLS[name]
    copies = local.Reports(protocol, np.repeat(honest(protocol, 2).payload[:1], 5))
    assert alarms(protocol, honest(protocol) + copies) == {"duplicates"}


@pytest.mark.statistical
def test_the_column_that_agrees_with_all_values_is_seen() -> None:
    protocol = PROTOCOLS["hadamard_response"]
    assert "symbols" in alarms(protocol, poisoned(protocol, y=0))


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["summation_histogram_encoding", "threshold_histogram_encoding"])
def test_cells_beyond_the_noise_are_seen(name: str) -> None:
    protocol = PROTOCOLS[name]
    cells = honest(protocol, FAKE).payload["cells"]
    cells[:, 0] = protocol.output_space.fields[0].high
    assert "cells" in alarms(protocol, poisoned(protocol, cells=cells))


@pytest.mark.statistical
def test_everybody_in_the_last_group_or_one_cohort_is_seen() -> None:
    search = PROTOCOLS["heavy_hitters"]
    assert "groups" in alarms(search, poisoned(search, 5 * FAKE, group=len(search.lengths) - 1))
    cohorts = PROTOCOLS["rappor with cohorts"]
    assert "cohorts" in alarms(cohorts, poisoned(cohorts, cohort=0))


@pytest.mark.statistical
def test_more_support_than_everybody_gives_is_seen() -> None:
    for name, field, value in (("direct_encoding", "y", 3), ("pram", "y", 2), ("randomized_response", "y", 1)):
        protocol = PROTOCOLS[name]
        rows = np.full(HONEST, value, dtype=protocol.output_space.dtype[field])
        reports = local.Reports(protocol, rows.view(protocol.output_space.dtype))
        assert not local.check_reports(protocol, reports).is_plausible
    rappor = PROTOCOLS["rappor with cohorts"]
    full = rappor.randomize([0] * 4000)
    full.payload["bits"] = 255
    assert "supports" in alarms(rappor, full)


@pytest.mark.statistical
def test_a_truthful_looking_attack_on_direct_encoding_is_bounded_but_not_seen() -> None:
    protocol = PROTOCOLS["direct_encoding"]
    reports = poisoned(protocol, y=7)
    assert local.check_reports(protocol, reports, false_alarm=1e-9).is_plausible
    bound = local.poisoning_bound(protocol, fake_users=FAKE)
    before, after = protocol.estimate(reports[:HONEST]), protocol.estimate(reports)
    assert after.counts[7] - before.counts[7] == pytest.approx(bound.up)
    assert before.counts[8] - after.counts[8] == pytest.approx(bound.down)


UNLIKE = {"heavy_hitters", "randomized_response", "rappor with cohorts"}


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name not in UNLIKE])
def test_one_report_moves_counts_by_no_more_than_the_bound(name: str) -> None:
    protocol = PROTOCOLS[name]
    bound = local.poisoning_bound(protocol, fake_users=1)
    base = honest(protocol, 40)
    before = protocol.estimate(base).raw_counts
    moves = np.array([protocol.estimate(base + report).raw_counts - before for report in honest(protocol, 40)])
    assert moves.max() <= bound.up + 1e-9
    assert moves.min() >= -bound.down - 1e-9


def test_the_best_fake_reports_on_cohorts_attain_their_bound() -> None:
    protocol = PROTOCOLS["rappor with cohorts"]
    bound = local.poisoning_bound(protocol, fake_users=1)
    gains = np.array(list(bit_gains(protocol.filters)))
    _, _, value = np.unravel_index(np.argmax(gains), gains.shape)
    own, other = map(float, protocol.probabilities)
    lifted = (np.maximum(gains, 0) * (1 - other) - np.minimum(gains, 0) * other).sum(axis=1) / (own - other)
    assert lifted.max() == pytest.approx(bound.gain)
    # One fake report in each cohort keeps the cohorts of one size, so that their effects add up exactly.
    rows = np.zeros(protocol.cohorts, dtype=protocol.output_space.dtype)
    rows["cohort"] = np.arange(protocol.cohorts)
    rows["bits"] = np.packbits(gains[:, :, value] > 0, axis=1, bitorder="little")
    estimate = protocol.estimate(local.Reports(protocol, rows))
    assert estimate.raw_counts[value] == pytest.approx(lifted[:, value].sum())


def test_randomized_response_and_the_search_have_bounds() -> None:
    bound = local.poisoning_bound(local.RandomizedResponse(truth=0.5, second=0.75), fake_users=10)
    p, q = 0.875, 0.375
    assert bound.gain == pytest.approx(p / (p - q))
    assert bound.loss == pytest.approx(q / (p - q))
    search = PROTOCOLS["heavy_hitters"]
    one = local.poisoning_bound(local.OptimizedLocalHashing(domain=2**16, epsilon=1), fake_users=10)
    assert local.poisoning_bound(search, fake_users=10).up == pytest.approx(len(search.lengths) * one.up, rel=1e-3)


def test_bounds_know_how_many_values_a_report_raises() -> None:
    at_once = {name: local.poisoning_bound(each, fake_users=1).at_once for name, each in PROTOCOLS.items()}
    assert at_once["direct_encoding"] == at_once["pram"] == at_once["randomized_response"] == 1
    assert at_once["subset_selection"] == PROTOCOLS["subset_selection"].size
    assert at_once["optimized_unary_encoding"] == at_once["hadamard_response"] == DOMAIN


def test_smaller_epsilon_gives_fake_reports_more_weight() -> None:
    for kind in (local.DirectEncoding, local.OptimizedUnaryEncoding, local.OptimizedLocalHashing, local.Rappor):
        strong, weak = (local.poisoning_bound(kind(domain=9, epsilon=each), fake_users=1) for each in (0.5, 2))
        assert strong.gain > weak.gain > 1


def test_results_print_and_save() -> None:
    protocol = PROTOCOLS["optimized_unary_encoding"]
    bound = local.poisoning_bound(protocol, fake_users=250)
    assert "250 fake reports" in str(bound)
    assert json.loads(json.dumps(bound.to_dict()))["schema"] == "cloister.poisoning_bound/1"
    assert [name for name, _ in bound.summary()] == ["bound", "together", "by the rules"]
    good = local.check_reports(protocol, honest(protocol))
    assert str(good).startswith("plausible: nothing odd (4 tests of 20,000 reports, false alarms below 1e-06)")
    bad = local.check_reports(protocol, poisoned(protocol, bits=255))
    assert bad.verdict == "implausible"
    assert bad.reasons
    record = json.loads(json.dumps(bad.to_dict()))
    assert record["verdict"] == "implausible"
    assert record["false_alarm"] == 1e-6
    assert {row[0] for row in bad.summary()} >= {"verdict", "ones", "pairs", "limits"}


def test_odd_arguments_are_refused() -> None:
    protocol = PROTOCOLS["direct_encoding"]
    with pytest.raises(TooFewReportsError, match="collect more"):
        local.check_reports(protocol, [])
    with pytest.raises(ForeignReportError):
        local.check_reports(PROTOCOLS["pram"], honest(protocol, 10))
    for rate in (0, 1):
        with pytest.raises(ParameterError, match="false_alarm=1e-6"):
            local.check_reports(protocol, honest(protocol, 10), false_alarm=rate)
    number = local.Duchi(bounds=(0, 1), epsilon=1)
    with pytest.raises(ParameterTypeError, match="frequency protocol"):
        local.poisoning_bound(number, fake_users=3)
    assert local.check_reports(number, number.randomize([0.5] * 10)).is_plausible
    with pytest.raises(ParameterError, match="fake_users"):
        local.poisoning_bound(protocol, fake_users=-1)


RICH: dict[str, tuple[Any, Any]] = {
    "unary_set": (local.UnarySet(domain=DOMAIN, epsilon=1, most=3), [1, 5]),
    "square_wave": (local.SquareWave(bounds=(0, 1), epsilon=1), 0.3),
    "piecewise": (local.Piecewise(bounds=(0, 1), epsilon=1), 0.3),
    "local_laplace": (local.LocalLaplace(bounds=(0, 1), epsilon=1), 0.3),
    "laplace_vector": (local.LaplaceVector(bounds=[(0, 1)] * 3, epsilon=1), [0.1, 0.5, 1]),
    "duchi_vector": (local.DuchiVector(bounds=[(0, 1)] * 24, epsilon=1), [0.2] * 24),
    "piecewise_vector": (local.PiecewiseVector(bounds=[(0, 1)] * 6, epsilon=6), [0.2] * 6),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", RICH)
def test_a_report_that_was_sent_many_times_is_found_among_honest_ones(name: str) -> None:
    protocol, value = RICH[name]
    reports = protocol.randomize([value] * 5000)
    assert local.check_reports(protocol, reports, false_alarm=1e-9).is_plausible
    copies = local.Reports(protocol, np.repeat(reports.payload[:1], 60))
    assert "duplicates" in alarms(protocol, reports + copies)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "test", "field", "column"),
    [
        ("square_wave", "cells", "y", lambda rows, protocol: rows["y"] % 7000 + 100),
        ("local_laplace", "noise", "y", lambda rows, protocol: rows["y"] % 1000 + 20 * protocol.grid.steps),
        ("laplace_vector", "noise", "y", lambda rows, protocol: rows["y"] % 1000 + 40 * protocol.steps),
        ("duchi_vector", "bits", "y", lambda rows, protocol: rows["y"] | 1),
        ("piecewise_vector", "numbers", "numbers", lambda rows, protocol: [[0, 1]] * len(rows)),
        ("piecewise_vector", "cells", "y", lambda rows, protocol: rows["y"] % 7000 + 100),
    ],
)
def test_numbers_that_no_device_sends_so_often_raise_an_alarm(name: str, test: str, field: str, column: Any) -> None:
    protocol, value = RICH[name]
    rows = protocol.randomize([value] * 5000).payload.copy()
    rows[field] = column(rows, protocol)
    assert test in alarms(protocol, local.Reports(protocol, rows))


@pytest.mark.parametrize("ends", [0, 4, -3, 11])
def test_the_share_of_noise_above_a_threshold_is_exact(ends: int) -> None:
    scale, far = 3.0, np.arange(-400, 401)
    law_of_noise = np.exp(-np.abs(far) / scale)
    expected = law_of_noise[far >= ends].sum() / law_of_noise.sum()
    assert float(_reaches(np.array([float(ends)]), scale)[0]) == pytest.approx(expected, rel=1e-12)


def test_classes_told_with_numbers_are_checked_too() -> None:
    for kind in class_mean_protocols.values():
        protocol = kind(classes=3, epsilon=1)
        reports = protocol.randomize([[place % 3, 0.5] for place in range(300)])
        assert local.check_reports(protocol, reports, false_alarm=1e-9).is_plausible
        copies = np.repeat(reports.payload[:1], 2000)
        assert alarms(protocol, local.Reports(protocol, copies))
