"""The square wave and the fit of a distribution to its reports."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.errors import ParameterError, ParameterTypeError, TooFewReportsError
from cloister.local import SquareWave
from cloister.local.numeric._deconvolution import GAP, bins_for, draw_counts, fit_many, fit_shares
from cloister.local.numeric.square_wave import bin_law, edges_of
from cloister.testing import samplers
from tests.local.numeric.helpers import Z, mean_is
from tests.support.thoroughness import audited

PEOPLE = 100_000


def slow_bin_law(protocol: SquareWave, bins: int, output_bins: int) -> Any:
    """Follow the window of every step, cell by cell."""
    window = protocol.window
    starts, edges = edges_of(window.steps, bins), edges_of(window.cells, output_bins)
    inside, outside = float(window.inside) / window.width, (1 - float(window.inside)) / window.steps
    found = np.zeros((output_bins, bins))
    sizes = np.zeros(bins)
    for step in range(window.steps + 1):
        column = min(int(np.searchsorted(starts, step, side="right")) - 1, bins - 1)
        cells = np.full(window.cells, outside)
        cells[step : step + window.width] = inside
        found[:, column] += np.add.reduceat(cells, edges[:-1])
        sizes[column] += 1
    return found / sizes


@pytest.mark.parametrize(("steps", "bins", "output_bins"), [(60, 5, 7), (61, 8, 60), (7, 7, 3), (100, 100, 10)])
@pytest.mark.parametrize("epsilon", [0.2, 1, 5])
def test_probabilities_of_bins_are_exact(steps: int, bins: int, output_bins: int, epsilon: float) -> None:
    protocol = SquareWave(bounds=(0, 1), epsilon=epsilon, steps=steps)
    law = bin_law(protocol.window, bins, output_bins)
    assert law == pytest.approx(slow_bin_law(protocol, bins, output_bins), abs=1e-14)


@pytest.mark.parametrize("steps", [2**30, 2**31])
def test_probabilities_of_bins_add_up_on_the_finest_grid(steps: int) -> None:
    for epsilon in ("1/1000000", 1, 20):
        law = bin_law(SquareWave(bounds=(0, 1), epsilon=epsilon, steps=steps).window, 512, 512)
        assert law.sum(axis=0) == pytest.approx(np.ones(512), abs=1e-12)
        assert law.min() > 0


def test_the_likeliest_shares_of_expected_counts_are_the_true_ones() -> None:
    law = bin_law(SquareWave(bounds=(0, 1), epsilon=3).window, 6, 200)
    truth = np.array([0.1, 0.3, 0.05, 0.25, 0.2, 0.1])
    fit = fit_shares(np.rint(1e9 * law @ truth).astype(np.int64), law, smooth=False)
    assert fit.converged
    assert fit.gap <= GAP
    assert fit.shares == pytest.approx(truth, abs=2e-4)


def log_likelihood(counts: Any, law: Any, shares: Any) -> float:
    return float(counts @ np.log(law @ shares))


def test_the_gap_bounds_what_other_shares_can_gain() -> None:
    law = bin_law(SquareWave(bounds=(0, 1), epsilon=2).window, 5, 50)
    counts = np.rint(1e5 * law @ np.array([0.0, 0.6, 0.0, 0.4, 0.0])).astype(np.int64)
    best = log_likelihood(counts, law, fit_shares(counts, law, smooth=False).shares)
    for most in (1, 4, 10, 40):
        early = fit_shares(counts, law, smooth=False, most=most)
        assert not early.converged or early.gap <= GAP
        assert best - log_likelihood(counts, law, early.shares) <= early.gap + 1e-6
    others = samplers.uniform((200, 5))
    for shares in others / others.sum(axis=1, keepdims=True):
        assert log_likelihood(counts, law, shares) <= best + GAP


def test_likelier_shares_with_every_step() -> None:
    law = bin_law(SquareWave(bounds=(0, 1), epsilon=1).window, 20, 100)
    counts = np.rint(1e5 * law @ (np.arange(20) / 190)).astype(np.int64)
    found = [fit_shares(counts, law, smooth=False, most=most).shares for most in (1, 4, 10, 25, 50)]
    rising = [log_likelihood(counts, law, shares) for shares in found]
    assert rising == sorted(rising)


def test_smooth_shares_are_a_fixed_point() -> None:
    law = bin_law(SquareWave(bounds=(0, 1), epsilon=1).window, 40, 100)
    counts = np.rint(1e5 * law @ np.full(40, 1 / 40)).astype(np.int64)
    fit = fit_shares(counts, law, smooth=True)
    assert fit.converged
    assert fit.move <= 1e-8
    plain = fit.shares * (law.T @ (counts / (law @ fit.shares))) / counts.sum()
    padded = np.concatenate([plain[:1] * 0, plain, plain[:1] * 0])
    weights = np.convolve(np.ones(40), [1, 2, 1], mode="same")
    averaged = (padded[:-2] + 2 * plain + padded[2:]) / weights
    assert averaged / averaged.sum() == pytest.approx(fit.shares, abs=1e-7)


def people(shape: str) -> Any:
    if shape == "bell":
        return np.clip(0.5 + samplers.gaussian(0.12, PEOPLE), 0, 1)
    first, second = 0.2 + samplers.gaussian(0.05, PEOPLE), 0.7 + samplers.gaussian(0.08, PEOPLE)
    return np.clip(np.where(samplers.uniform(PEOPLE) < 0.3, first, second), 0, 1)


def distance(estimate: Any, values: Any) -> float:
    """The mean difference of the cumulative shares, in widths of the bounds."""
    below = np.searchsorted(np.sort(values), estimate.edges, side="left") / len(values)
    return float(np.abs(estimate.cumulative - below).mean())


@pytest.mark.statistical
@pytest.mark.parametrize("shape", ["bell", "two"])
@pytest.mark.parametrize("method", ["smooth", "likeliest"])
@pytest.mark.parametrize(("epsilon", "most"), [(1, 0.035), (4, 0.008)])
def test_distributions_are_found_and_others_are_not_taken_for_them(
    shape: str, method: str, epsilon: float, most: float
) -> None:
    values = people(shape)
    protocol = SquareWave(bounds=(0, 1), epsilon=epsilon)
    estimate = protocol.estimate(protocol.randomize(values), bins=32, method=method)
    assert estimate.converged
    assert estimate.shares.sum() == pytest.approx(1)
    assert estimate.shares.min() >= 0
    assert distance(estimate, values) < most
    assert distance(estimate, samplers.uniform(PEOPLE)) > most
    assert distance(estimate, people("two" if shape == "bell" else "bell")) > most
    assert abs(estimate.quantile(0.5) - np.median(values)) < 4 * most


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 4])
def test_the_mean_is_unbiased_whatever_the_shares(epsilon: float) -> None:
    values = people("two")
    protocol = SquareWave(bounds=(0, 1), epsilon=epsilon)
    reports = protocol.randomize(values)
    estimate = protocol.estimate(reports, bins=4)
    assert abs(estimate.mean.value - values.mean()) < Z * estimate.mean.standard_error
    assert mean_is(protocol.debias(reports), values.mean(), protocol.spread())
    assert estimate.mean.value == pytest.approx(protocol.mean(reports).value)


def test_margins_shrink_with_more_reports() -> None:
    protocol = SquareWave(bounds=(0, 1), epsilon=2)
    few, many = (protocol.estimate(protocol.randomize(people("bell")[:size]), bins=8) for size in (500, PEOPLE))
    assert few.margins().mean() > 2 * many.margins().mean() > 0
    assert few.quantile_margin(0.5) > 2 * many.quantile_margin(0.5) > 0
    assert few.margins(0.99) == pytest.approx(few.margins() * 2.5758 / 1.96, rel=1e-3)
    assert few.deviations == pytest.approx(few.margins() / 1.959964, rel=1e-5)
    assert (few.intervals() >= 0).all()
    low, high = few.quantile_interval(0.5)
    assert high - low == pytest.approx(2 * few.quantile_margin(0.5))


def test_the_same_reports_give_the_same_margins() -> None:
    protocol = SquareWave(bounds=(0, 1), epsilon=2)
    reports = protocol.randomize(people("two")[:3000])
    first, second = protocol.estimate(reports), protocol.estimate(reports)
    assert first.margins().tolist() == second.margins().tolist()
    assert not first.guarantee.caveats


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("shape", "epsilon", "size"), audited([("bell", 1, 20_000), ("two", 2, 5000)], but=[("bell", 1, 20_000)])
)
def test_margins_hold_for_most_shares_and_smaller_ones_do_not(shape: str, epsilon: float, size: int) -> None:
    protocol, held, tenth = SquareWave(bounds=(0, 1), epsilon=epsilon), [], []
    for _ in range(20):
        values = people(shape)[:size]
        estimate = protocol.estimate(protocol.randomize(values))
        truth = np.histogram(values, len(estimate.shares), (0, 1))[0] / size
        off = np.abs(estimate.shares - truth)
        held += (off <= estimate.margins()).tolist()
        tenth += (off <= estimate.margins() / 10).tolist()
    assert np.mean(held) > 0.75
    assert np.mean(tenth) < 0.6


def test_many_fits_at_once_are_those_one_by_one() -> None:
    protocol = SquareWave(bounds=(0, 1), epsilon=2)
    counts = protocol._counts(protocol.randomize(people("two")[:20_000]).payload)
    for smooth, fine in ((True, 128), (False, 16)):
        law = bin_law(protocol.window, fine, 512)
        fit = fit_shares(counts, law, smooth=smooth)
        others = draw_counts(20_000 * (law @ fit.shares), 3)
        together = fit_many(others, law, fit.shares, smooth=smooth, leaps=4000)
        for column in range(3):
            alone = fit_shares(others[:, column].astype(np.int64), law, smooth=smooth).shares
            found = log_likelihood(others[:, column], law, together[:, column])
            assert abs(found - log_likelihood(others[:, column], law, alone)) <= GAP
            if smooth:
                assert together[:, column] == pytest.approx(alone, abs=1e-4)


def test_drawn_counts_have_the_moments_of_poisson_counts() -> None:
    found = draw_counts(np.array([0.0, 0.3, 4.0, 1e6]), 4000)
    assert not found[0].any()
    for row, mean in zip(found[1:], (0.3, 4.0, 1e6), strict=True):
        assert abs(row.mean() - mean) < Z * math.sqrt(mean / 4000)
        assert row.var() == pytest.approx(mean, rel=0.35)


@pytest.mark.parametrize(
    ("reports", "epsilon", "width", "bins"),
    [
        (3, 1, 100, 2),
        (20_000, 1, 100, 10),
        (20_000, 1, 24, 8),
        (20_000, 1, 80, 8),
        (20_000, 1, 97, 9),
        (10**7, 4, 1, 25),
    ],
)
def test_few_reports_get_few_bins_with_round_ends(reports: int, epsilon: int, width: int, bins: int) -> None:
    assert bins_for(reports, Fraction(epsilon), Fraction(width)) == bins


def test_bins_follow_the_number_of_reports_and_not_what_they_say() -> None:
    protocol = SquareWave(bounds=(0, 100), epsilon=1)
    for values in ([0.0] * 20_000, [0.0, 100.0] * 10_000):
        estimate = protocol.estimate(protocol.randomize(values), resamples=0)
        assert estimate.edges.tolist() == pytest.approx(list(range(0, 101, 10)))


def test_too_few_reports_are_told() -> None:
    protocol = SquareWave(bounds=(0, 100), epsilon=1)
    few = protocol.estimate(protocol.randomize([20, 30, 40]))
    assert not few.telling
    assert str(few).startswith("too few reports for a distribution; mean ")
    assert any("too few reports" in note for note in few.notes)
    assert "TOO FEW" in str(few.plot().to_dict())
    many = protocol.estimate(protocol.randomize([20, 30, 40] * 1000))
    assert many.telling
    assert not any("too few" in note for note in many.notes)
    jagged = protocol.estimate(protocol.randomize([20, 30, 40] * 1000), bins=32)
    assert any("made by noise" in note for note in jagged.notes)


def test_large_numbers_are_written_out() -> None:
    protocol = SquareWave(bounds=(0, 100_000), epsilon=4)
    estimate = protocol.estimate(protocol.randomize([30_000.0] * 20_000))
    shown = (
        str(estimate) + str(estimate.summary()) + str(protocol.estimate(protocol.randomize([3e4] * 500), resamples=0))
    )
    assert "e+" not in shown
    assert re.match(r"(29|30),\d+ ± \d+ \(95%\)$", dict(estimate.summary())["mean"])


def test_quantiles_and_shares_agree() -> None:
    protocol = SquareWave(bounds=(0, 100), epsilon=8)
    estimate = protocol.estimate(protocol.randomize(100 * people("bell")), bins=20)
    assert estimate.edges.tolist() == pytest.approx(list(range(0, 101, 5)))
    for share in (0.1, 0.5, 0.9):
        assert estimate.share_below(estimate.quantile(share)) == pytest.approx(share)
    assert estimate.quantile(0) >= 0
    assert estimate.quantile(1) <= 100
    assert estimate.share_below(0) == 0
    assert estimate.share_below(100) == pytest.approx(1)
    with pytest.raises(ParameterError, match="probability"):
        estimate.quantile(1.5)


def test_the_estimate_can_be_printed_stored_and_drawn() -> None:
    protocol = SquareWave(bounds=(0, 100), epsilon=2)
    reports = protocol.randomize(100 * people("bell"))
    estimate = protocol.estimate(reports, bins=10)
    assert re.match(r"median [\d.]+ ± [\d.]+, middle half .* ± .* to .* ± .* \(95%\) from", str(estimate))
    assert " ± " in dict(estimate.summary())["50% are below"]
    assert any("nine shares in ten" in note for note in estimate.notes)
    assert dict(estimate.summary())["fit"].startswith("smooth, converged")
    record = json.loads(json.dumps(estimate.to_dict()))
    assert record["schema"] == "cloister.local_distribution/1"
    assert len(record["shares"]) == len(record["edges"]) - 1 == len(record["deviations"]) == 10
    assert "10 to 20" in json.dumps(estimate.plot().to_dict())
    bare = protocol.estimate(reports, bins=10, resamples=0)
    assert bare.to_dict()["deviations"] is None
    assert "no margins" in json.dumps(bare.plot().to_dict())
    with pytest.raises(ParameterError, match="leave resamples out"):
        bare.margins()


def test_a_fit_that_did_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.local.numeric import square_wave

    protocol = SquareWave(bounds=(0, 1), epsilon=1)
    reports = protocol.randomize(people("bell"))
    monkeypatch.setattr(square_wave, "fit_shares", lambda *given, **options: fit_shares(*given, **options, most=4))
    estimate = protocol.estimate(reports, resamples=2)
    assert not estimate.converged
    assert "not converged" in str(estimate)
    assert "NOT converged" in dict(estimate.summary())["fit"]


def test_small_grids_and_few_reports() -> None:
    protocol = SquareWave(bounds=(0, 1), epsilon=1, steps=6)
    assert protocol.estimate(protocol.randomize([0.2] * 50), bins=6).shares.size == 6
    assert protocol.estimate(protocol.randomize([0.2] * 50), bins=4, method="likeliest").shares.size == 4
    with pytest.raises(TooFewReportsError, match="at least 2"):
        protocol.estimate(protocol.randomize(0.2))
    reports = protocol.randomize([0.2] * 50)
    with pytest.raises(ParameterError, match="bins=6"):
        protocol.estimate(reports, bins=7)
    with pytest.raises(ParameterError, match="bins=2"):
        protocol.estimate(reports, bins=1)
    with pytest.raises(ParameterError, match="smooth, likeliest"):
        protocol.estimate(reports, bins=3, method="rough")
    with pytest.raises(ParameterTypeError, match="integer"):
        protocol.estimate(reports, bins=3, resamples=0.5)


def test_reports_tell_most_at_the_published_width() -> None:
    """The width is the best one: the divergence of a report's law from the uniform one falls on both sides of it."""

    def information(share: float, epsilon: float) -> float:
        inside = share * math.exp(epsilon) / (share * math.exp(epsilon) + 1)
        return inside * math.log(inside / share) + (1 - inside) * math.log(1 - inside) + math.log(1 + share)

    for epsilon in (0.5, 1, 4):
        window = SquareWave(bounds=(0, 1), epsilon=epsilon).window
        share = window.width / window.steps
        best = information(share, epsilon)
        assert best > information(0.95 * share, epsilon)
        assert best > information(1.05 * share, epsilon)
