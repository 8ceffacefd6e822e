"""RAPPOR: both laws exactly, the device's memory, and decoding."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from cloister import local
from cloister.core import exact
from cloister.core.guarantees import SEEDED_RANDOMNESS
from cloister.core.random import SeededRandomSource, integers_below, random_source
from cloister.errors import (
    ForeignReportError,
    OutsideDomainError,
    ParameterError,
    ParameterTypeError,
    TooFewReportsError,
    UnsafeMechanismError,
)
from cloister.local.draws import CERTAIN, law_of
from cloister.testing.local_laws import worst_ratio
from tests.local.laws import Law, assert_epsilon_is_exact, law

RUNS = 200


def permanent_law(protocol: local.Rappor, code: int, cohort: int) -> Law:
    """The probability of every row of permanent bits."""
    return law_of(lambda draws: protocol.permanent(np.array([code]), np.array([cohort]), draws).tobytes())


def test_published_parameters() -> None:
    """LDP-20."""
    protocol = local.Rappor(domain=4, noise=0.5, hashes=1, one_if_clear=0.5, one_if_set=0.75)
    own, other = protocol.probabilities
    assert (own, other) == (Fraction(11, 16), Fraction(9, 16))
    assert round(float(protocol.epsilon), 4) == round(2 * math.log(3), 4) == 2.1972
    assert round(float(protocol.one_report_epsilon), 4) == 0.5371
    assert protocol.likelihood_ratio == 9


def test_more_hashes_cost_more_for_the_same_noise() -> None:
    protocol = local.Rappor(domain=4, noise=0.5, bits=16, hashes=2)
    assert protocol.likelihood_ratio == 81
    assert protocol.one_report_ratio == Fraction(11 * 7, 9 * 5) ** 2


@pytest.mark.parametrize("epsilon", ["1/10", "1", "4"])
@pytest.mark.parametrize("shape", [{}, {"bits": 4, "cohorts": 2, "hashes": 2}, {"bits": 3, "cohorts": 6}])
def test_the_permanent_law_has_exactly_its_epsilon(epsilon: str, shape: dict[str, int]) -> None:
    protocol = local.Rappor(domain=4, epsilon=epsilon, **shape)
    ratios = [
        worst_ratio([permanent_law(protocol, code, cohort) for code in range(4)]) for cohort in range(protocol.cohorts)
    ]
    furthest = max(_distance(protocol, cohort) for cohort in range(protocol.cohorts))
    assert max(ratio for ratio in ratios if ratio) == Fraction(CERTAIN - protocol.flip, protocol.flip) ** furthest
    assert furthest <= 2 * protocol.hashes
    low, high = exact.log_bounds(protocol.likelihood_ratio)
    assert protocol.epsilon - Fraction(1, 10**9) <= low <= high <= protocol.epsilon + Fraction(1, 10**25)


def _distance(protocol: local.Rappor, cohort: int) -> int:
    filters = protocol.filters[cohort]
    return int((filters[:, None] != filters[None]).sum(axis=2).max())


@pytest.mark.parametrize("epsilon", ["1/2", "1", "4"])
def test_with_a_bit_per_value_the_bound_is_attained(epsilon: str) -> None:
    protocol = local.Rappor(domain=5, epsilon=epsilon)
    assert_epsilon_is_exact(protocol, [permanent_law(protocol, code, 0) for code in range(5)])


@pytest.mark.parametrize("shape", [{}, {"bits": 4, "hashes": 2, "cohorts": 2}])
def test_the_law_of_one_report_is_the_stated_one(shape: dict[str, int]) -> None:
    protocol = local.Rappor(domain=3, epsilon=2, **shape)
    laws = [law(protocol, code) for code in range(3)]
    assert all(sum(each.values()) == 1 for each in laws)
    own, other = protocol.probabilities
    base, furthest = own * (1 - other) / (other * (1 - own)), 0
    for cohort in range(protocol.cohorts):
        furthest = max(furthest, _distance(protocol, cohort))
    assert worst_ratio(laws) == base ** (furthest // 2)
    assert furthest == 2 * protocol.hashes
    assert worst_ratio(laws) == protocol.one_report_ratio < protocol.likelihood_ratio


def test_many_reports_of_kept_bits_never_say_more_than_the_kept_bits() -> None:
    protocol = local.Rappor(domain=2, epsilon=1)

    def two_reports(code: int) -> Law:
        def device(draws: object) -> bytes:
            kept = protocol.permanent(np.array([code]), np.array([0]), draws)  # type: ignore[arg-type]
            return b"".join(protocol.instantaneous(kept, draws).tobytes() for _ in range(2))  # type: ignore[arg-type]

        return law_of(device)

    together = worst_ratio([two_reports(0), two_reports(1)])
    assert together is not None
    assert protocol.one_report_ratio < together < protocol.likelihood_ratio
    assert together < protocol.one_report_ratio**2


def test_a_bit_per_value_and_one_cohort_is_the_support_estimate() -> None:
    protocol = local.Rappor(domain=["a", "b", "c"], epsilon=2)
    assert (protocol.bits, protocol.cohorts, protocol.hashes) == (3, 1, 1)
    wider = local.Rappor(domain=["a", "b", "c"], epsilon=2, bits=9)
    for each in (protocol, wider):
        reports = each.randomize(["a"] * 700 + ["b"] * 300)
        found, (p, q) = each.estimate(reports), map(float, each.probabilities)
        bits = np.unpackbits(reports.payload["bits"], axis=1, count=3, bitorder="little")
        counts = (bits.sum(axis=0) - 1000 * q) / (p - q)
        likely = np.clip(counts, 0, 1000)
        variances = (likely * p * (1 - p) + (1000 - likely) * q * (1 - q)) / (p - q) ** 2
        np.testing.assert_allclose(found.raw_counts, counts)
        np.testing.assert_allclose(found.raw_errors, np.sqrt(variances))
        assert each.variance(0.25) == pytest.approx((0.25 * p * (1 - p) + 0.75 * q * (1 - q)) / (p - q) ** 2)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("shape", [{}, {"bits": 8, "cohorts": 6}, {"bits": 16, "hashes": 2, "cohorts": 4}])
def test_estimates_are_unbiased_with_the_errors_that_they_state(shape: dict[str, int]) -> None:
    protocol = local.Rappor(domain=12, epsilon=6, **shape)
    codes = np.sort(integers_below(random_source(), 12, 3000) // 2)
    truth = np.bincount(codes, minlength=12)
    found = [protocol.estimate(protocol.randomize(codes)) for _ in range(RUNS)]
    z = np.array([(each.raw_counts - truth) / each.raw_errors for each in found])
    assert np.abs(z.mean(axis=0)).max() * math.sqrt(RUNS) < 6.6
    # Cells of one run are correlated at worst completely: so many independent squares.
    low, high = chi2.interval(1 - 1e-9, RUNS)
    spread = RUNS * (z**2).mean()
    assert low < spread < high
    assert spread * 0.5**2 < low
    assert spread * 2**2 > high


@pytest.mark.statistical
def test_the_planned_variance_is_the_one_of_estimates() -> None:
    protocol = local.Rappor(domain=20, epsilon=5, bits=16, cohorts=10)
    estimate = protocol.estimate(protocol.randomize(np.zeros(50_000, dtype=np.int64)))
    assert float((estimate.raw_errors**2).max() / 50_000) < 1.1 * protocol.variance(0)
    assert protocol.variance(0) > 0.9 * float(np.median(estimate.raw_errors[1:] ** 2) / 50_000)


@pytest.mark.slow
def test_counts_that_are_not_negative_fit_frequent_values() -> None:
    protocol = local.Rappor(domain=range(300), epsilon=8)
    assert (protocol.bits, protocol.cohorts) == (128, 19)
    reports = protocol.randomize(np.repeat([7, 250], 20_000))
    raw, fitted = protocol.estimate(reports), protocol.non_negative(reports)
    assert min(fitted.counts.values()) >= 0 > min(raw.counts.values())
    assert fitted.method == "non_negative"
    for estimate in (raw, fitted):
        assert set(sorted(estimate.counts, key=estimate.counts.get)[-2:]) == {7, 250}  # type: ignore[arg-type]
    error = raw.standard_errors[7]
    assert abs(raw.counts[7] - 20_000) < 6.2 * error


def test_single_and_bulk_reports_go_through_every_wire_form() -> None:
    protocol = local.Rappor(domain=["x", "y", "z"], epsilon=1, bits=11, hashes=2, cohorts=3)
    reports = protocol.randomize(["x", "y", "z"] * 10)
    assert protocol.read([report.to_json() for report in reports]).payload.tobytes() == reports.payload.tobytes()
    assert protocol.read(reports.to_bytes()).payload.tobytes() == reports.payload.tobytes()
    cohort, bits = protocol.device().report("x").y
    assert 0 <= cohort < 3
    assert len(bits) == 11
    assert local.open_protocol(json.dumps(protocol.to_dict())) == protocol
    with pytest.raises(ForeignReportError):
        local.Rappor(domain=["x", "y", "z"], epsilon=1).estimate(reports)
    by_noise = local.Rappor(domain=3, noise="1/3")
    assert local.open_protocol(by_noise.to_dict()) == by_noise


@pytest.mark.statistical
def test_bulk_reports_follow_the_same_law() -> None:
    protocol = local.Rappor(domain=2, epsilon=3, one_if_set=0.9, one_if_clear=0.2)
    exactly = {key[1]: float(chance) for key, chance in law(protocol, 1).items()}
    told = np.bincount(protocol.randomize([1] * 50_000).payload["bits"][:, 0], minlength=4)
    for bits, chance in exactly.items():
        assert abs(told[bits] - 50_000 * chance) < 6.6 * math.sqrt(50_000 * chance * (1 - chance))


def test_the_promise_is_about_all_reports_of_one_value() -> None:
    protocol = local.Rappor(domain=["no", "yes"], epsilon=1)
    assert "series of reports of one value" in protocol.guarantee.explain()
    estimate = protocol.estimate(protocol.randomize(["no"] * 50))
    assert estimate.guarantee.epsilon == 1  # type: ignore[attr-defined]
    assert "epsilon = 1 per series of reports" in str(estimate)
    assert protocol.one_report_epsilon < 1


def test_a_device_keeps_its_permanent_bits() -> None:
    protocol = local.Rappor(domain=["a", "b", "c"], epsilon=4, bits=64, hashes=2, cohorts=5)
    device = protocol.device()
    mean = np.mean([_bits(device.report("a")) for _ in range(1500)], axis=0)
    kept = json.loads(json.dumps(device.to_dict()))
    # Averaging shows the permanent bits, 1/2 or 3/4 often 1, and nothing behind them.
    assert [int(bit > 0.625) for bit in mean] == [int(bit) for bit in kept["kept"]["0"]]
    assert device.epsilon == 4
    again = protocol.open_device(kept)
    assert {again.report("a").y[0] for _ in range(20)} == {kept["cohort"]}
    assert again.to_dict() == kept
    again.report("c")
    assert again.epsilon == 8
    assert "kept" not in repr(device)
    fresh = protocol.open_device(protocol.device().to_dict())
    assert fresh.epsilon == 0


def _bits(report: local.LocalReport) -> list[int]:
    return [int(bit) for bit in report.y[1]]


def test_devices_and_bulk_reports_are_estimated_together() -> None:
    protocol = local.Rappor(domain=["a", "b"], epsilon=8)
    reports = [protocol.device().report("a") for _ in range(300)]
    estimate = protocol.estimate(reports)
    assert estimate.counts["a"] > estimate.counts["b"]
    with pytest.raises(OutsideDomainError, match="domain="):
        protocol.device().report("c")


def test_records_of_other_devices_are_refused() -> None:
    protocol = local.Rappor(domain=["a", "b"], epsilon=1)
    device = protocol.device()
    device.report("a")
    good = device.to_dict()
    bad = [
        {},
        {**good, "cohort": 1},
        {**good, "cohort": "0"},
        {**good, "kept": {"0": "1"}},
        {**good, "kept": {"9": "10"}},
        {**good, "kept": [3]},
        {**good, "protocol": "0"},
    ]
    for record in bad:
        with pytest.raises(ParameterTypeError, match="to_dict"):
            protocol.open_device(record)


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        ({"domain": 3}, "epsilon=1"),
        ({"domain": 3, "noise": 0.5, "epsilon": 1}, "leave epsilon out"),
        ({"domain": 3, "epsilon": 1, "one_if_set": 0.5}, "one_if_clear"),
        ({"domain": 3, "epsilon": 1, "one_if_set": 1}, "one_if_clear"),
        ({"domain": 3, "epsilon": 1, "bits": 3, "hashes": 2}, "bits >= 4"),
        ({"domain": 30, "epsilon": 1, "bits": 4, "cohorts": 1}, "more bits or cohorts"),
        ({"domain": 3000, "epsilon": 1}, "OptimizedLocalHashing"),
        ({"domain": 2000, "epsilon": 1, "bits": 1024, "cohorts": 1000}, "fewer bits"),
        ({"domain": 3, "noise": 1}, "epsilon=0.5"),
    ],
)
def test_odd_parameters_are_refused(arguments: dict[str, object], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        local.Rappor(**arguments)  # type: ignore[arg-type]


def test_no_permanent_noise_is_refused() -> None:
    with pytest.raises(UnsafeMechanismError, match="noise above 0"):
        local.Rappor(domain=3, noise=0)


def test_cohorts_without_reports_are_said() -> None:
    protocol = local.Rappor(domain=40, epsilon=1, bits=8)
    with pytest.raises(TooFewReportsError, match="more reports"):
        protocol.estimate(protocol.randomize([1, 2, 3]))


def test_permanent_bits_of_a_seed_taint_every_later_report() -> None:
    device = local.Rappor(domain=["a", "b"], epsilon=1).device()
    assert device.report("b").caveats == ()
    assert "secure" not in device.to_dict()
    device.report("a", random_state=SeededRandomSource(1))
    again = device.protocol.open_device(json.loads(json.dumps(device.to_dict())))
    for each in (device, again):
        report = each.report("a")
        assert report.caveats == (SEEDED_RANDOMNESS,)
        assert device.protocol.estimate(report).guarantee.caveats == (SEEDED_RANDOMNESS,)


def test_a_record_cannot_ask_for_endless_hash_functions() -> None:
    for options in ({"cohorts": 10**7}, {"hashes": 10**5, "bits": 2 * 10**5, "cohorts": 1}):
        with pytest.raises(ParameterError, match="too large"):
            local.Rappor(domain=2, epsilon=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("coins", [{"one_if_set": 1 - Fraction(1, 2**70)}, {"one_if_clear": Fraction(1, 2**70)}])
def test_coins_that_round_to_certainty_are_refused(coins: dict[str, Fraction]) -> None:
    with pytest.raises(ParameterError, match="neither always nor never"):
        local.Rappor(domain=2, epsilon=1, **coins)  # type: ignore[arg-type]
