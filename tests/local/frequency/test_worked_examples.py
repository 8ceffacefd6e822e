"""The worked figures of the literature, some of them corrected."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from cloister import local
from cloister.errors import ParameterError, UnsafeMechanismError

OCCUPATIONS = {
    "Adm-clerical": 3770,
    "Armed-Forces": 9,
    "Craft-repair": 4099,
    "Exec-managerial": 4066,
    "Farming-fishing": 994,
    "Handlers-cleaners": 1370,
    "Machine-op-inspct": 2002,
    "Other-service": 3295,
    "Priv-house-serv": 149,
    "Prof-specialty": 4140,
    "Protective-serv": 649,
    "Sales": 3650,
    "Tech-support": 928,
    "Transport-moving": 1597,
}
TRUTH_SHARES = {
    0.1: {2: 0.52, 8: 0.14, 128: 0.009, 1024: 0.001},
    1: {2: 0.73, 8: 0.28, 128: 0.021, 1024: 0.003},
    2: {2: 0.88, 8: 0.51, 128: 0.055, 1024: 0.007},
    4: {2: 0.98, 8: 0.89, 128: 0.301, 1024: 0.051},
}
VARIANCES = {
    "DirectEncoding": (4.9850, 0.4750, 0.02318),
    "SymmetricUnaryEncoding": (3.9177, 0.9207, 0.18102),
    "OptimizedUnaryEncoding": (3.6827, 0.7241, 0.07602),
    "SummationHistogramEncoding": (8, 2, 0.5),
    "ThresholdHistogramEncoding": (4.8072, 1.2836, 0.28517),
}


def test_lecture_table_of_randomized_response() -> None:
    """LDP-05."""
    protocol = local.RandomizedResponse(truth=0.5, second=0.5)
    assert protocol.probabilities == (0.75, 0.25)
    reports = protocol.read([{**protocol.randomize(True).to_dict(), "y": int(place < 65)} for place in range(100)])
    assert protocol.estimate(reports).counts == {False: 20.0, True: 80.0}


def test_the_general_coins_of_the_slides() -> None:
    protocol = local.RandomizedResponse(truth=0.5, second=0.75)
    assert float(protocol.epsilon) == pytest.approx(math.log(5))
    told = 1000 * 0.425
    head = protocol.randomize(True).to_dict()
    estimate = protocol.estimate([{**head, "y": int(place < told)} for place in range(1000)])
    assert estimate.frequencies[True] == pytest.approx(0.1)
    assert estimate.frequencies[False] == pytest.approx(0.9)


def test_coins_that_prove_something_are_refused() -> None:
    """LDP-02."""
    for truth, second in ((0.5, 1), (0.5, 0), (1, 0.5)):
        with pytest.raises(UnsafeMechanismError, match="strictly between"):
            local.RandomizedResponse(truth=truth, second=second)
    for odd in ({"truth": 0.5}, {}, {"epsilon": 1, "truth": 0.5, "second": 0.5}):
        with pytest.raises(ParameterError, match="epsilon"):
            local.RandomizedResponse(**odd)
    with pytest.raises(ParameterError, match="DirectEncoding"):
        local.RandomizedResponse(domain=3, epsilon=1)


def test_warners_variance() -> None:
    protocol = local.RandomizedResponse(epsilon=1)
    share, coin = 0.3, math.e / (1 + math.e)
    warner = share * (1 - share) + coin * (1 - coin) / (2 * coin - 1) ** 2
    assert protocol.variance(share) + share * (1 - share) == pytest.approx(warner)


@pytest.mark.statistical
def test_randomized_response_on_ages_of_adult(shared_data: Path) -> None:
    """LDP-03."""
    older = _adult(shared_data, "age").to_numpy() > 50
    assert (int(older.sum()), older.size) == (6460, 32561)
    protocol = local.RandomizedResponse(truth=0.5, second=0.5)
    runs = [protocol.estimate(protocol.randomize(older)).counts[True] for _ in range(500)]
    assert protocol.estimate(protocol.randomize(older)).standard_errors[True] == pytest.approx(156.27, abs=0.01)
    assert abs(np.mean(runs) - 6460) < 6.2 * 156.27 / math.sqrt(500)


@pytest.mark.statistical
def test_direct_encoding_on_occupations_of_adult() -> None:
    values = np.repeat(list(OCCUPATIONS), list(OCCUPATIONS.values()))
    protocol = local.DirectEncoding(domain=list(OCCUPATIONS), epsilon=5)
    p, q = map(float, protocol.probabilities)
    assert (round(p, 6), round(q, 6)) == (0.919461, 0.006195)
    runs = np.array([np.asarray(protocol.estimate(protocol.randomize(values)).counts) for _ in range(200)])
    truth, people = np.array(list(OCCUPATIONS.values())), len(values)
    errors = np.sqrt([people * protocol.variance(count / people) for count in truth])
    assert math.sqrt(people * protocol.variance()) == pytest.approx(15.06, abs=0.005)
    assert (np.abs(runs.mean(axis=0) - truth) < 6.6 * errors / math.sqrt(200)).all()
    # What is stated is the same formula at the estimated counts, which differ from run to run.
    estimate = protocol.estimate(protocol.randomize(values))
    likely = np.clip(np.asarray(estimate.counts), 0, people)
    stated = np.sqrt([people * protocol.variance(count / people) for count in likely])
    assert np.asarray(estimate.standard_errors) == pytest.approx(stated)


@pytest.mark.parametrize(("epsilon", "row"), TRUTH_SHARES.items())
def test_truth_shares_of_direct_encoding(epsilon: float, row: dict[int, float]) -> None:
    """LDP-04."""
    for size, share in row.items():
        digits = 3 if size > 8 else 2
        assert round(float(local.DirectEncoding(domain=size, epsilon=epsilon).probabilities[0]), digits) == share
    p, q = local.DirectEncoding(domain=14, epsilon=0.1).probabilities
    assert (round(float(p), 6), round(float(q), 6)) == (0.078352, 0.070896)


@pytest.mark.parametrize(("name", "expected"), VARIANCES.items())
def test_table_of_variances(name: str, expected: tuple[float, ...]) -> None:
    """LDP-06."""
    for epsilon, variance in zip((1, 2, 4), expected, strict=True):
        protocol = getattr(local, name)(domain=14, epsilon=epsilon)
        assert protocol.variance() == pytest.approx(variance, rel=2e-4)


def test_hashing_chooses_the_better_number_of_buckets() -> None:
    chosen = local.OptimizedLocalHashing(domain=10_000, epsilon=1)
    assert (chosen.buckets, round(float(chosen.probabilities[0]), 6)) == (4, 0.475367)
    assert float(chosen.probabilities[1]) == pytest.approx(0.25, abs=1e-7)
    assert chosen.variance() == pytest.approx(3.6917, abs=1e-4)
    three = local.OptimizedLocalHashing(domain=10_000, epsilon=1, buckets=3)
    assert (round(float(three.probabilities[0]), 6), round(three.variance(), 4)) == (0.576117, 3.7701)
    assert local.open_protocol(three.to_dict()).to_dict()["options"] == {"buckets": 3}
    for bad in (1, 2**21):
        with pytest.raises(ParameterError, match="buckets"):
            local.OptimizedLocalHashing(domain=4, epsilon=1, buckets=bad)


@pytest.mark.parametrize(("epsilon", "best"), [(0.5, 0.5616), (1, 0.6186), (2, 0.7096), (4, 0.8157), (5, 0.8465)])
def test_best_thresholds(epsilon: float, best: float) -> None:
    """LDP-07."""
    assert local.ThresholdHistogramEncoding(domain=9, epsilon=epsilon).threshold == pytest.approx(best, abs=1e-3)


def test_a_quarter_is_a_worse_threshold_than_the_best() -> None:
    quarter = local.ThresholdHistogramEncoding(domain=9, epsilon=2, threshold=0.25)
    assert quarter.variance() == pytest.approx(1.696, abs=1e-3)
    assert local.open_protocol(quarter.to_dict()) == quarter
    for bad in (0, 1.5, -1):
        with pytest.raises(ParameterError, match="threshold"):
            local.ThresholdHistogramEncoding(domain=9, epsilon=2, threshold=bad)


def test_optimized_unary_micro_test() -> None:
    """LDP-08."""
    protocol = local.OptimizedUnaryEncoding(domain=6, epsilon=1)
    head = protocol.randomize(0).to_dict()
    reports = [{**head, "y": bits} for bits in ("011100", "100110", "111010", "101010")]
    assert protocol.support_counts(protocol.read(reports).payload).tolist() == [3, 2, 3, 2, 3, 0]
    assert protocol.estimate(reports).counts[0] == pytest.approx(8.327907, abs=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "rare", "common"), [("Symmetric", 56.3, None), ("Optimized", 29.8, 169.4)])
def test_unary_encodings_on_races_of_adult(shared_data: Path, kind: str, rare: float, common: float | None) -> None:
    values = _adult(shared_data, "race")
    domain = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"]
    truth = dict(zip(domain, (311, 1039, 3124, 271, 27816), strict=True))
    protocol = getattr(local, f"{kind}UnaryEncoding")(domain=domain, epsilon=5)
    estimate = protocol.estimate(protocol.randomize(values))
    assert math.sqrt(len(values) * protocol.variance()) == pytest.approx(rare, abs=0.05)
    if common is not None:
        assert estimate.standard_errors["White"] == pytest.approx(common, rel=0.02)
    assert all(
        abs(estimate.counts[race] - count) < 6.2 * estimate.standard_errors[race] for race, count in truth.items()
    )


def test_subset_sizes() -> None:
    for size, epsilon in ((100, 4), (100, 1), (15, 1)):
        protocols = [local.SubsetSelection(domain=size, epsilon=epsilon, size=k) for k in range(1, size)]
        best = min(protocols, key=lambda protocol: protocol.variance())
        assert local.SubsetSelection(domain=size, epsilon=epsilon).size == best.size
    assert local.SubsetSelection(domain=4, epsilon=5).size == 1
    assert local.SubsetSelection(domain=4, epsilon=5).variance() == pytest.approx(
        local.DirectEncoding(domain=4, epsilon=5).variance()
    )
    chosen = local.SubsetSelection(domain=9, epsilon=1, size=5)
    assert local.open_protocol(chosen.to_dict()) == chosen
    with pytest.raises(ParameterError, match="size <= 8"):
        local.SubsetSelection(domain=9, epsilon=1, size=9)


def test_subset_selection_is_never_worse_than_the_others() -> None:
    for size in (3, 14, 200):
        for epsilon in (0.5, 1, 3):
            best = local.SubsetSelection(domain=size, epsilon=epsilon).variance()
            for kind in (local.DirectEncoding, local.OptimizedUnaryEncoding, local.HadamardResponse):
                assert best <= kind(domain=size, epsilon=epsilon).variance() * (1 + 1e-9)


def test_recommendations_follow_the_rule() -> None:
    chosen = {(size, epsilon): local.recommend(size, epsilon).protocol.__name__ for size, epsilon in RULE}
    assert chosen == RULE
    advice = local.recommend(14, 1)
    assert advice.variance == pytest.approx(3.6827, abs=1e-4)
    assert isinstance(advice.open(range(14)), local.OptimizedUnaryEncoding)
    assert "OptimizedUnaryEncoding" in str(advice)
    assert advice.to_dict()["protocol"] == "optimized_unary_encoding"
    assert {name for name, *_ in advice.alternatives} >= {"direct_encoding", "hadamard_response"}
    assert local.recommend(2, 1).respondents(0.02) < 12_000


RULE = {
    (2, 1): "RandomizedResponse",
    (10, 1): "DirectEncoding",
    (11, 1): "OptimizedUnaryEncoding",
    (14, 4): "DirectEncoding",
    (1024, 1): "OptimizedUnaryEncoding",
    (1025, 1): "OptimizedLocalHashing",
    (10**6, 2): "OptimizedLocalHashing",
    (10**6, 1): "HadamardResponse",
}


def _adult(shared_data: Path, column: str) -> pyarrow.Array:
    return pyarrow.csv.read_csv(shared_data / "adult" / "adult.csv")[column].combine_chunks()


@pytest.mark.parametrize("margin", [0, -1, float("nan")])
def test_a_margin_is_above_nothing(margin: float) -> None:
    with pytest.raises(ParameterError):
        local.recommend(14, 1).respondents(margin)
