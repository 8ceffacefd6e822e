from __future__ import annotations

import numpy as np
import pytest

from cloister import local
from cloister.core.guarantees import LocalDP
from cloister.local.estimates import FrequencyEstimate, MeanEstimate


def estimate(counts: list[float], errors: list[float], reports: int = 100) -> FrequencyEstimate:
    return FrequencyEstimate(
        domain=("a", "b", "c"),
        raw_counts=np.array(counts),
        raw_errors=np.array(errors),
        reports=reports,
        protocol="direct_encoding",
        guarantee=LocalDP(epsilon=1),
    )


def test_mended_counts_keep_the_raw_intervals() -> None:
    raw = estimate([80.0, 30.0, -10.0], [10.0, 10.0, 5.0])
    for method, counts in (("norm_sub", [75, 25, 0]), ("simplex", [75, 25, 0]), ("clip", [80, 30, 0])):
        mended = raw.consistent(method)
        assert np.asarray(mended.counts) == pytest.approx(counts)
        assert np.asarray(mended.frequencies) == pytest.approx(np.array(counts) / 100)
        assert mended.intervals() == raw.intervals()
        assert mended.margins() == raw.margins()
        assert f"mended: {method}" in str(mended)
        assert mended.to_dict()["values"][2] == {
            "value": "c",
            "count": 0.0,
            "share": 0.0,
            "raw_count": -10.0,
            "standard_error": 5.0,
        }
        assert dict(mended.summary())["c"] == "0, before mending -10 ± 10 (95%)"
    assert dict(raw.summary())["c"] == "-10 ± 10 (95%)"


def test_charts_of_raw_counts_have_margins_and_those_of_mended_ones_say_that_they_have_none() -> None:
    raw = estimate([80.0, 30.0, -10.0], [10.0, 10.0, 5.0])
    assert "lines show 95% margins" in str(raw.plot().to_dict())
    assert "without margins" in str(raw.consistent().plot().to_dict())


def test_too_few_reports_are_said() -> None:
    few = estimate([1.0, 1.0, 0.0], [2.0, 2.0, 2.0], reports=2)
    assert not few.is_telling
    assert "too few to say anything" in str(few)
    assert "too few reports" in dict(few.summary())["note"]
    assert "too few reports" in few.to_dict()["notes"][0]
    one = local.RandomizedResponse(epsilon=1)
    assert str(one.estimate(one.randomize(True))).startswith("1 report of 2 values")


def test_means_print_as_people_write_numbers() -> None:
    mean = MeanEstimate(
        value=36190.4,
        standard_error=1122.3,
        reports=1,
        bounds=(0.0, 100_000.0),
        protocol="duchi",
        guarantee=LocalDP(epsilon=1),
    )
    assert str(mean) == "mean 36,190 ± 2,200 (95%) from 1 report, epsilon = 1 per report"
    assert "the line shows the 95% margin" in str(mean.plot().to_dict())
    unsure = MeanEstimate(
        value=5.0, standard_error=9.0, reports=3, bounds=(0.0, 10.0), protocol="duchi", guarantee=LocalDP(epsilon=1)
    )
    assert "too few reports to say anything" in str(unsure)


def test_what_is_left_out_is_asked_for() -> None:
    for kind in (local.OptimizedUnaryEncoding, local.DirectEncoding, local.OptimizedLocalHashing):
        with pytest.raises(local.protocol.ParameterError, match="epsilon=1"):
            kind(domain=3)
        with pytest.raises(local.protocol.ParameterError, match="domain="):
            kind(epsilon=1)


def test_probabilities_too_small_for_64_bits_are_refused() -> None:
    with pytest.raises(local.protocol.ParameterError, match="64 random bits"):
        local.RandomizedResponse(truth="1e-17", second="1e-17")
