"""The joint histogram: the numbers of the specification, its noise, its range counts."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cloister.accounting.events import GaussianEvent
from cloister.core.postprocessing import clip
from cloister.core.random import random_source
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError, UnknownColumnError
from cloister.mechanisms.step_noise import laplace_standard_deviation
from cloister.synth import HistogramSynthesizer, Impossible, load
from cloister.synth._cell_counts import CellCounts, count_cells
from cloister.synth.histogram import cells_half_width
from cloister.synth.marginal_based import MarginalFit, PrivacyFilter
from cloister.testing.distributions import Distribution, discrete
from cloister.testing.statistics import check_scale
from tests.synth.toys import ACCOUNT, SCHEMA, book, people

AGES = 100
MARITAL = (
    "Divorced",
    "Married-AF-spouse",
    "Married-civ-spouse",
    "Married-spouse-absent",
    "Never-married",
    "Separated",
    "Widowed",
)
ADULT = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, AGES - 1]},
            "marital-status": {"role": "quasi", "kind": "nominal", "categories": list(MARITAL)},
        }
    }
)


@pytest.fixture(scope="module")
def adult(shared_data: Path) -> Table:
    return open_table(shared_data / "adult" / "adult.csv", schema=ADULT)


def ages(**options: Any) -> HistogramSynthesizer:
    return HistogramSynthesizer(**{"columns": ["age"], "bins": {"age": AGES}, "complete": True, **options})


def both(**options: Any) -> HistogramSynthesizer:
    return ages(**{"columns": ["age", "marital-status"], **options})


def truth(made: HistogramSynthesizer, table: Table) -> Any:
    domain = made.declared(table).domain
    return CellCounts(table, domain).marginal(range(len(domain.names)))


def noise_of(made: HistogramSynthesizer, table: Table, fits: int) -> Any:
    """Return the noise of many fits, one row each; the counts are read once."""
    facts, source, calibration = made.declared(table), random_source(), made._calibration()
    counts = CellCounts(table, facts.domain)
    exact = counts.marginal(range(len(facts.domain.names))).ravel()
    found = []
    for _ in range(fits):
        work = MarginalFit(facts, counts, PrivacyFilter(calibration), source)
        made._modeled(work)
        found.append(work.seen[0].values.ravel() - exact)
    return np.array(found)


def distance(first: Any, second: Any) -> float:
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)


# The specification ---------------------------------------------------------------------------------------------------


def test_syn_01_exact_and_histogram_answers(adult: Table) -> None:
    made = ages(epsilon=100).fit(adult)  # noise other than 0 has a probability of 1e-41
    assert truth(made, adult)[44:55].sum() == 6577
    assert made.count({"age": (44, 54)}).value == 6577
    assert made.count({"age": list(range(44, 55))}).value == 6577


@pytest.mark.statistical
def test_syn_02_deviation_of_a_range() -> None:
    made = ages(epsilon=1)

    def draw(size: int) -> Any:
        noise = noise_of(made, ages_table(50), size // 9 + 1)
        return noise[:, :99].reshape(len(noise), 9, 11).sum(axis=2).ravel()[:size]

    check_scale(draw, _sum_of_eleven, scale=1.0)
    answer = made.fit(ages_table(50)).count({"age": (44, 54)})
    assert answer.cells == 11
    assert answer.deviation == pytest.approx(4.69, rel=0.05)  # that of continuous noise; ours is a little smaller


def _sum_of_eleven(scale: float) -> Distribution:
    points = np.arange(-400, 401)
    single = np.exp(-np.abs(points) / scale)
    masses = single / single.sum()
    total = masses
    for _ in range(10):
        total = np.convolve(total, masses, mode="same")
    return discrete(lambda wanted: np.where(np.abs(wanted) <= 400, total[np.clip(wanted + 400, 0, 800)], 0.0))


def ages_table(rows: int) -> Table:
    return open_table(pa.table({"age": np.arange(rows) % AGES}), schema=ADULT.without("marital-status"))


@pytest.mark.statistical
def test_syn_03_every_cell_has_noise_of_its_own() -> None:
    epsilon = 0.1
    table = open_table(pa.table({"age": [30, 90], "marital-status": ["Divorced", "Widowed"]}), schema=ADULT)
    noise = noise_of(both(epsilon=epsilon), table, 150)
    apart = (noise[:, 0::2] - noise[:, 1::2]).ravel()
    assert apart.size > 50_000
    # A variance has a relative deviation of sqrt(3.5 / size), 6.1 of which are exceeded once in 1e9 runs.
    allowed = 6.1 * np.sqrt(3.5 / apart.size)
    assert apart.var() == pytest.approx(4 / epsilon**2, rel=allowed + 0.001)
    assert all(abs(apart.var() / (factor**2 * 4 / epsilon**2) - 1) > 2 * allowed for factor in (0.9, 1.1))
    correlation = np.corrcoef(noise[:, 0::2].ravel(), noise[:, 1::2].ravel())[0, 1]
    assert abs(correlation) < 6.1 / np.sqrt(apart.size)


def test_syn_04_cells_are_declared_and_not_observed(adult: Table) -> None:
    rows = adult.to_arrow()
    rare = pc.and_(pc.equal(rows["age"], 90), pc.equal(rows["marital-status"], "Divorced"))
    whole, without = open_table(rows, schema=ADULT), open_table(rows.filter(pc.invert(rare)), schema=ADULT)
    assert whole.count() - without.count() == 1
    made = [both().fit(table) for table in (whole, without)]
    for item in made:
        assert item.measurements_[0].values.shape == (AGES, len(MARITAL))
    assert made[0].facts_ == made[1].facts_
    assert (truth(made[0], adult) > 0).sum() == 396


def test_syn_05_the_number_of_rows_costs_nothing_more(adult: Table) -> None:
    ledger = book()
    made = both(epsilon=Fraction(1, 2), ledger=ledger, dataset=ACCOUNT).fit(adult)
    assert ledger.spent(ACCOUNT).amount == Fraction(1, 2)
    assert len(made.steps_) == 1
    assert made.rows_ == made.count().value == made.measurements_[0].values.sum()


BARS = [
    (ages, 1, 0.0014, 0.0168),
    (ages, 0.1, 0.0133, 0.0229),
    (ages, 0.01, 0.120, 0.122),
    (both, 1, 0.0094, 0.0357),
    (both, 0.1, 0.0860, 0.0938),
    (both, 0.01, 0.474, 0.475),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "epsilon", "model_bar", "sample_bar"), BARS)
def test_syn_06_distance_from_the_data(
    adult: Table, kind: Any, epsilon: float, model_bar: float, sample_bar: float
) -> None:
    """The bars are of clipped cells with continuous noise and of independent draws: these are met, ours do better."""
    made = kind(epsilon=epsilon)
    facts, calibration, exact = made.declared(adult), made._calibration(), truth(made, adult)
    counts, clipped, modeled, sampled = CellCounts(adult, facts.domain), [], [], []
    for place in range(300):
        work = MarginalFit(facts, counts, PrivacyFilter(calibration), random_source())
        model = made._modeled(work)
        clipped.append(distance(clip(work.seen[0].values), exact))
        modeled.append(distance(model.cliques[0], exact))
        if place < 5:
            codes = model.sample(32_561, random_source())
            sampled.append(distance(count_cells(list(codes.T), exact.shape), exact))
    ratio = np.exp(-epsilon)
    mean_absolute = 2 * ratio / (1 - ratio**2) * epsilon  # of discrete noise, in units of continuous noise
    assert np.mean(clipped) == pytest.approx(mean_absolute * model_bar, rel=0.15)
    assert np.mean(modeled) < model_bar
    assert np.mean(sampled) < 1.15 * sample_bar


# Noise ---------------------------------------------------------------------------------------------------------------


def test_gaussian_noise_is_the_smaller_of_two_calibrations() -> None:
    for epsilon in (0.1, 10):
        made = ages(epsilon=epsilon, delta=1e-6).fit(ages_table(10))
        assert isinstance(made.steps_[0].event, GaussianEvent)
        assert made.measurements_[0].deviation <= PrivacyFilter(made._calibration()).noise(Fraction(1)).deviation


@pytest.mark.parametrize(("options", "factor"), [({"adjacency": "replace"}, 2), ({"unit": "person"}, 3)])
def test_noise_grows_with_what_a_neighbor_moves(options: dict[str, Any], factor: int) -> None:
    table = people()
    plain = HistogramSynthesizer(columns=["color"]).expected(table)[0]
    more = HistogramSynthesizer(columns=["color"], max_rows_per_unit=1 if "adjacency" in options else 3, **options)
    assert plain.deviation == laplace_standard_deviation(Fraction(1))
    assert more.expected(table)[0].deviation == laplace_standard_deviation(Fraction(factor))


# Range counts --------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("options", [{"epsilon": 0.5}, {"epsilon": 1, "delta": 1e-6}], ids=["laplace", "gaussian"])
def test_margins_cover_as_often_as_they_say(options: dict[str, Any]) -> None:
    made = ages(**options).fit(ages_table(50))
    answer = made.count({"age": (10, 14)})
    sums = noise_of(made, ages_table(50), 500).reshape(-1, 5).sum(axis=1)
    for confidence in (0.5, 0.9):
        margin = answer.margin(confidence)
        outside = np.abs(sums) > margin
        slack = 6.1 * np.sqrt(0.25 / sums.size)
        assert outside.mean() < 1 - confidence + slack
        assert (np.abs(sums) > margin - 3).mean() > 1 - confidence - slack
    assert sums.std() == pytest.approx(answer.deviation, rel=6.1 * np.sqrt(0.9 / sums.size))


def test_margins_of_many_cells_and_large_scales_agree() -> None:
    for cells in (4095, 4096):
        assert cells_half_width("laplace", 10.0, cells, 0.95) == pytest.approx(1.96 * 14.14 * np.sqrt(cells), rel=0.003)
    assert cells_half_width("laplace", 10_000.0, 3, 0.95) == pytest.approx(
        100 * cells_half_width("laplace", 100.0, 3, 0.95), rel=0.02
    )
    assert cells_half_width("laplace", 1.0, 0, 0.95) == 0


def test_an_answer_prints_its_margin_and_survives_saving(tmp_path: Path) -> None:
    made = ages(epsilon=2).fit(ages_table(500))
    answer = made.count({"age": (0, 49)})
    assert str(answer) == f"{answer.value:,} ± {answer.margin():,.0f} (95%), epsilon = 2 per row"
    assert answer.interval() == (answer.value - answer.margin(), answer.value + answer.margin())
    assert answer.to_dict()["schema"] == "cloister.range_count/1"
    made.save(tmp_path / "ages.cloister")
    again = load(tmp_path / "ages.cloister").count({"age": (0, 49)})
    assert again.to_dict() == answer.to_dict()


def test_ranges_are_of_whole_bins() -> None:
    made = HistogramSynthesizer(bins={"age": 10, "weight": 4, "seen": 12}, epsilon=50).fit(people(200))
    rows = people(200).to_arrow().to_pylist()
    meant = {
        "age": (30, 59),
        "weight": (0.5, 1.5),
        "seen": (dt.date(2024, 1, 1), made.facts_.domain["seen"].edges[3] - dt.timedelta(days=1)),
    }
    for name, (low, high) in meant.items():
        expected = sum(row[name] is not None and low <= row[name] <= high for row in rows)
        assert made.count({name: (low, high)}).value == pytest.approx(expected, abs=2)
    missing = sum(row["weight"] is None for row in rows)
    assert made.count({"weight": None}).value == pytest.approx(missing, abs=2)
    with pytest.raises(ParameterError, match=r"a part of a bin.*\n\nFix: ask for whole bins, such as \[30, 40\)"):
        made.count({"age": (31, 59)})


@pytest.mark.parametrize(
    ("conditions", "error", "fix"),
    [
        ({"height": 3}, UnknownColumnError, "Fix: "),
        ({"age": (50, 40)}, ParameterError, r"pair \(low, high\) inside its bounds"),
        ({"age": ("old", "young")}, ParameterTypeError, r"write for example \(30, 40\)"),
        ({"age": (200, 300)}, ParameterError, "inside its bounds"),
        ({"color": "violet"}, ParameterError, "declared values"),
    ],
)
def test_conditions_that_mean_nothing_are_refused(conditions: Any, error: type[Exception], fix: str) -> None:
    made = HistogramSynthesizer(columns=["age", "color"], bins={"age": AGES}).fit(people())
    for use in (made.count, lambda given: made.sample(3, conditions=given)):
        with pytest.raises(error, match=fix):
            use(conditions)


def test_a_pair_of_numbers_is_a_range_also_where_each_has_a_cell() -> None:
    made = HistogramSynthesizer(columns=["age"], bins={"age": AGES}, complete=True).fit(people(300))
    drawn = made.sample(200, conditions={"age": (10, 20)}).to_arrow()["age"].to_pylist()
    assert all(10 <= age <= 20 for age in drawn)
    assert len(set(drawn)) > 2


def test_too_many_cells_are_refused_before_paying() -> None:
    ledger = book()
    wide = HistogramSynthesizer(bins={"age": 100, "weight": 1000, "seen": 366}, ledger=ledger, dataset=ACCOUNT)
    with pytest.raises(ParameterError, match=r"10,000,000 are possible.*\n\nFix: .*SpanningTree"):
        wide.fit(people())
    assert not ledger.spent(ACCOUNT).amount


def test_impossible_combinations_are_neither_counted_nor_drawn() -> None:
    rule = Impossible({"color": "red", "age": [0, 1, 2]})
    schema = SCHEMA.without("weight", "seen")
    table = open_table(people(400).to_arrow().select(["color", "age"]), schema=schema.without("person"))
    made = HistogramSynthesizer(bins={"age": AGES}, constraints=[rule], epsilon=0.1, complete=True).fit(table)
    assert made.count({"color": "red", "age": (0, 9)}).cells == 7
    drawn = made.sample(2000).to_arrow().to_pylist()
    assert not [row for row in drawn if row["color"] == "red" and row["age"] <= 2]
