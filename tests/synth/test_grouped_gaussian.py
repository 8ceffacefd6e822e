from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting.accountants import compose
from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.core.guarantees import PureDP
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import (
    CloisterError,
    MissingBoundsError,
    ModelError,
    ParameterError,
    PrivacyParameterWarning,
    UnknownColumnError,
)
from cloister.mechanisms.step_noise import LaplaceSteps
from cloister.synth import AtMost, GroupedGaussian, Impossible, SumOf, load, synthesizers
from tests.support.thoroughness import examples
from tests.synth.number_tables import number_table, patients
from tests.synth.recording import check_audit, recorded


def fitted(**options: Any) -> GroupedGaussian:
    return GroupedGaussian(**{"epsilon": 10**5, "label": "class", **options}).fit(patients())


# Gaussian noise on whole numbers is never less than about two rows, so it takes more rows to hardly matter.
@pytest.mark.parametrize(
    ("options", "rows"), [({}, 400), ({"delta": 1e-6}, 20_000), ({"regions": 4}, 400), ({"max_groups": 2}, 400)]
)
def test_rows_look_like_the_data_when_there_is_hardly_any_noise(options: dict[str, Any], rows: int) -> None:
    table = patients(rows)
    drawn = GroupedGaussian(**{"epsilon": 10**5, "label": "class", **options}).fit(table).sample(20_000).to_arrow()
    real = table.to_arrow()
    assert drawn.schema.names == real.schema.names
    assert drawn["visits"].type == pa.int64()
    for name in ("height", "weight", "visits"):
        ours, theirs = (part[name].to_numpy() for part in (drawn, real))
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.1 * theirs.std())
        assert ours.std() == pytest.approx(theirs.std(), rel=0.1)
    together = [np.corrcoef(part["height"], part["weight"])[0, 1] for part in (drawn, real)]
    assert together[0] == pytest.approx(together[1], abs=0.05)
    tall = drawn["height"].to_numpy()[np.array(drawn["class"].to_pylist()) == "well"]
    assert tall.mean() == pytest.approx(180, abs=1)


def test_without_a_label_rows_have_numbers_only() -> None:
    model = GroupedGaussian(epsilon=500, columns=["height", "visits"]).fit(patients())
    assert model.sample(5).columns == ("height", "visits")
    assert model.rows_ == pytest.approx(400, abs=2)
    assert abs(model.sample().count() - 400) <= 2


def test_values_stay_inside_public_bounds_however_much_noise_there_is() -> None:
    drawn = GroupedGaussian(epsilon=0.01, label="class").fit(patients()).sample(2000).to_arrow()
    for name, (low, high) in {"height": (120, 210), "weight": (20, 110), "visits": (0, 9)}.items():
        values = drawn[name].to_numpy()
        assert low <= values.min() <= values.max() <= high
    assert set(drawn["class"].to_pylist()) <= {"ill", "well"}


def test_rows_with_gaps_or_undeclared_labels_are_left_out() -> None:
    table = number_table({"x": [0.5, None, 0.5, float("nan")], "class": ["ill", "ill", "odd", "well"]})
    model = GroupedGaussian(epsilon=10**6, label="class").fit(table)
    assert model.class_weights_.round().tolist() == [1, 0]


def test_a_column_of_one_possible_value_is_that_value() -> None:
    table = number_table({"x": [3, 3], "y": [0.1, 0.2]}, bounds={"x": (3, 3.5), "y": (0, 1)})
    assert set(GroupedGaussian(epsilon=1).fit(table).sample(50).to_arrow()["x"].to_pylist()) == {3}


def test_conditions_are_met() -> None:
    drawn = fitted().sample(300, conditions={"class": "ill", "height": (150, 152)}).to_arrow()
    assert set(drawn["class"].to_pylist()) == {"ill"}
    heights = drawn["height"].to_numpy()
    assert len(heights) == 300
    assert heights.min() >= 150
    assert heights.max() <= 152
    with pytest.raises(ParameterError, match="wider ranges"):
        fitted().sample(10, conditions={"class": "ill", "height": (209.9, 210)})
    with pytest.raises(ParameterError, match="declared values"):
        fitted().sample(10, conditions={"class": "odd"})


def test_sums_are_added_up() -> None:
    table = number_table({"x": [0.5, 0.25], "y": [0.1, 0.2], "total": [0.6, 0.45]}, bounds=(0.0, 2.0))
    drawn = GroupedGaussian(epsilon=5, constraints=SumOf("total", ["x", "y"])).fit(table).sample(40).to_arrow()
    assert drawn["total"].to_numpy() == pytest.approx(drawn["x"].to_numpy() + drawn["y"].to_numpy())


# The price -----------------------------------------------------------------------------------------------------------


def wide(rows: int = 60) -> Any:
    return number_table({f"c{place}": np.sin(np.arange(rows) * (place + 1)) for place in range(14)})


@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("options", [{}, {"regions": 4, "min_rows_per_region": 1}, {"max_groups": 1}])
def test_everything_is_one_entry_and_costs_what_was_asked(delta: float, options: dict[str, Any]) -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("patients", budget=Budget(epsilon=1, delta=delta))
    model = GroupedGaussian(epsilon=1, delta=delta, ledger=ledger, dataset="patients", **options).fit(wide())
    assert [entry.kind for entry in ledger.entries("patients")] == ["open", "spend"]
    assert ledger.remaining("patients").epsilon < Fraction(1, 10**6)
    assert model.guarantee_.holds
    events = [step.event for step in model.steps_]
    total = compose(events, delta=delta or None, adjacency="add_remove", unit="row")
    assert float(total.epsilon) <= 1 + 1e-9
    assert float(total.epsilon) == pytest.approx(1, rel=0.01)
    model.sample(10)
    assert len(ledger.entries("patients")) == 2
    with pytest.raises(CloisterError, match="left"):
        model.fit(wide())


def test_the_choice_of_groups_and_regions_is_public() -> None:
    model = GroupedGaussian(epsilon=2, expected_rows=1000)
    assert [model._most_groups(columns) for columns in (1, 12, 13)] == [1, 1, 12]
    # 1000 / (R * 1) >= 50 * 5 / 2 holds up to R = 8, and 1000 / (R * 2) up to R = 4.
    assert (model._levels(5, 1), model._levels(5, 2), model._levels(60, 1)) == (3, 2, 0)
    assert GroupedGaussian(epsilon=2)._levels(1, 1) == 0
    assert GroupedGaussian(epsilon=2, regions=9)._levels(1, 1) == 3


def test_many_columns_are_grouped_by_noisy_correlations() -> None:
    base = {f"a{place}": np.sin(np.arange(500) * 1.7) / (place + 1) for place in range(7)}
    other = {f"b{place}": np.cos(np.arange(500) * 0.9) / (place + 1) for place in range(7)}
    model = GroupedGaussian(epsilon=10**5).fit(number_table({**base, **other}))
    assert model.groups_ == (tuple(base), tuple(other))
    assert [step.label for step in model.steps_] == ["correlations of columns"] + [
        "counts, sums and products of columns"
    ] * 2


def test_noise_that_drowns_covariances_is_told_before_anything_is_paid() -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("patients", budget=Budget(epsilon=1))
    model = GroupedGaussian(epsilon=0.1, label="class", expected_rows=400, ledger=ledger, dataset="patients")
    with pytest.raises(PrivacyParameterWarning, match="larger epsilon"):
        model.fit(patients())
    assert ledger.remaining("patients").epsilon == 1
    counts, means, covariances = model.expected(patients())
    assert "± " in str(means)
    assert means.error(1) == min(1.0, means.deviation)
    assert covariances.deviation > means.deviation
    assert counts.cells == 2


TEXTS = Schema.from_dict(
    {
        "columns": {
            **{name: {"kind": "numeric", "bounds": [0, 1]} for name in ("x", "y")},
            "sex": {"kind": "nominal", "categories": ["F", "M"]},
        }
    }
)


@pytest.mark.parametrize(
    ("options", "schema", "error", "fix"),
    [
        ({}, TEXTS, ParameterError, "SpanningTree or AdaptiveMarginals"),
        ({"columns": ["sex"], "label": "sex"}, TEXTS, ParameterError, "SpanningTree or AdaptiveMarginals"),
        ({"label": "x", "bins": None, "columns": ["x"]}, TEXTS, ParameterError, "categories"),
        ({"label": "age"}, TEXTS, UnknownColumnError, "x"),
        ({"label": "sex", "bins": 8}, TEXTS, ParameterError, "leave bins out"),
        ({"label": "sex", "regions": 0}, TEXTS, ParameterError, "regions"),
        ({"label": "sex", "max_groups": 0}, TEXTS, ParameterError, "max_groups"),
        ({"label": "sex", "min_rows_per_region": 0}, TEXTS, ParameterError, "min_rows_per_region"),
        ({"label": "sex", "epsilon": -1}, TEXTS, ParameterError, "epsilon"),
        ({"label": "sex", "constraints": AtMost("x", "y")}, TEXTS, ParameterError, "AdaptiveMarginals"),
        ({"columns": ["x"]}, TEXTS.without("x"), MissingBoundsError, "schema"),
    ],
)
def test_bad_input_is_refused_before_anything_is_paid(
    options: dict[str, Any], schema: Schema, error: type[Exception], fix: str
) -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("patients", budget=Budget(epsilon=1))
    table = open_table(pa.table({"x": [0.1, 0.9], "y": [0.2, 0.8], "sex": ["F", "M"]}), schema=schema)
    with pytest.raises(error, match=fix):
        GroupedGaussian(**{"ledger": ledger, "dataset": "patients", **options}).fit(table)
    assert ledger.remaining("patients").epsilon == 1


def test_what_cannot_be_kept_between_columns_is_refused() -> None:
    table = number_table({"x": [0.5], "class": ["ill"]})
    with pytest.raises(CloisterError, match="bins|AdaptiveMarginals"):
        GroupedGaussian(label="class", constraints=Impossible({"x": 0.5, "class": "ill"})).fit(table)


# SYN-11 --------------------------------------------------------------------------------------------------------------


def test_syn_11_noise_is_drawn_once_even_if_the_matrix_is_no_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    add = LaplaceSteps.add

    def counting(self: LaplaceSteps, values: Any, source: Any) -> Any:
        drawn.append(values.size)
        return add(self, values, source)

    monkeypatch.setattr(LaplaceSteps, "add", counting)
    for _ in range(20):
        drawn.clear()
        model = GroupedGaussian(epsilon=0.01, label="class").fit(patients(20))
        assert drawn == [1, 3, 6] * 2
        for mixture in model.mixtures_[0]:
            assert np.linalg.eigvalsh(mixture.covariances[0]).min() > 0


def test_syn_11_a_canary_is_neither_in_the_model_nor_in_the_rows(tmp_path: Path) -> None:
    canary = 171.640625
    table = patients()
    listing = table.to_arrow()
    heights = listing["height"].to_numpy().copy()
    heights[7] = canary
    planted = open_table(listing.set_column(0, "height", pa.array(heights)), schema=table.schema)
    model = GroupedGaussian(epsilon=1, label="class").fit(planted)
    model.save(tmp_path / "model.cloister")
    text = (tmp_path / "model.cloister").read_text("utf-8")
    assert str(canary) not in text
    assert not {str(value) for value in heights} & set(json.dumps(json.loads(text)["learned"]).split())
    again = load(tmp_path / "model.cloister")
    assert again.guarantee_ == model.guarantee_
    assert canary not in again.sample(2000).to_arrow()["height"].to_pylist()


@pytest.mark.statistical
def test_syn_11_rows_do_not_keep_the_order_of_the_data() -> None:
    rows = 4000
    model = GroupedGaussian(epsilon=1000, label="class").fit(patients(rows))
    drawn, real = model.sample(rows).to_arrow(), patients(rows).to_arrow()
    # Of independent columns, the correlation is beyond 6.2 / sqrt(n) with a probability below 1e-9.
    limit = 6.2 / rows**0.5
    for name in ("height", "weight", "visits"):
        assert abs(np.corrcoef(drawn[name], real[name])[0, 1]) < limit
        assert abs(np.corrcoef(real[name], real[name])[0, 1]) > limit
    labels = [np.array(part["class"].to_pylist()) == "ill" for part in (drawn, real)]
    assert abs(np.corrcoef(*labels)[0, 1]) < limit


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    fitted().save(tmp_path / "model.cloister")
    document = json.loads((tmp_path / "model.cloister").read_text("utf-8"))
    document["learned"]["mixtures"][0][0]["dict"]["means"]["values"] = [0.0]
    document["learned"]["mixtures"][0][0]["dict"]["means"]["shape"] = [1, 1]
    (tmp_path / "other.cloister").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ModelError, match="damaged"):
        load(tmp_path / "other.cloister")


# The promise ---------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_syn_16_a_claim_stands_and_half_of_the_noise_is_refuted() -> None:
    without = [-0.5, 0.5] * 40
    neighbors = (number_table({"x": without}), number_table({"x": [*without, 1.0]}))
    check_audit(lambda table, epsilon: GroupedGaussian(epsilon=epsilon).fit(table), neighbors)


@settings(max_examples=examples(25, usual=10))
@given(
    rows=st.lists(st.tuples(*[st.floats(-1, 1)] * 3), max_size=12),
    added=st.tuples(*[st.floats(-1, 1)] * 3),
    label=st.sampled_from(["ill", "well"]),
)
def test_no_added_row_moves_a_release_further_than_its_noise_is_made_for(rows: Any, added: Any, label: str) -> None:
    def table(listed: list[Any]) -> Any:
        labels = pa.array(["well"] * len(rows) + [label], pa.string())[: len(listed)]
        numbers = {name: pa.array([row[place] for row in listed], pa.float64()) for place, name in enumerate("xyz")}
        return number_table({**numbers, "class": labels})

    # Boxes that cannot be cut, so that both fits release the same numbers.
    model = GroupedGaussian(epsilon=1, label="class", regions=2, min_rows_per_region=10**6)
    here, there = (recorded(lambda part=part: model.fit(part)) for part in (table(rows), table([*rows, added])))
    moved: dict[Any, int] = {}
    for (noise, before), (_, after) in zip(here, there, strict=True):
        moved[noise] = moved.get(noise, 0) + int(np.abs(after.astype(object) - before.astype(object)).sum())
    # Classes are parallel: what all of them move together is no more than what one may.
    assert all(distance <= noise.sensitivity for noise, distance in moved.items())
    assert [noise.epsilon for noise, _ in here] == [Fraction(2, 9), *[Fraction(7, 27)] * 6]
    assert here[0][0].sensitivity == 4


def test_it_is_registered_and_its_randomness_is_the_operating_systems() -> None:
    assert synthesizers.get("grouped_gaussian") is GroupedGaussian
    model = fitted()
    assert isinstance(model.guarantee_, PureDP)
    assert model.guarantee_.holds
    assert model.random_state is None


def test_persons_are_protected_with_all_their_rows() -> None:
    table = number_table({"person": [1, 1, 1, 2], "x": [0.1, 0.2, 0.3, 0.4]})
    model = GroupedGaussian(epsilon=10**6, unit="person", max_rows_per_unit=2).fit(table)
    assert round(model.rows_) == 3
    assert model.guarantee_.unit == "person"
