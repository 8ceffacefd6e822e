from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.core.guarantees import Adjacency
from cloister.errors import CloisterError, ModelError, ParameterError, PrivacyParameterWarning
from cloister.mechanisms.step_noise import LaplaceSteps
from cloister.synth import MicroaggregatedGaussian, load, synthesizers
from cloister.synth._numeric import UNIT, NumericRows
from cloister.synth.microaggregated import block_sums
from tests.synth.number_tables import number_table, patients
from tests.synth.recording import check_audit


def coded(rows: Any, classes: Any = None) -> NumericRows:
    """Return rows of steps and their classes, each once."""
    steps = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    labels = np.zeros(len(rows), np.int64) if classes is None else np.array(classes, dtype=np.int64)
    return NumericRows(steps, labels, np.ones(len(rows), np.int64), np.ones(len(rows), np.bool_))


def plain_blocks(rows: list[tuple[int, ...]], labels: list[int], classes: int, k: int) -> list[list[int]]:
    """Return the sums of blocks, row by row."""
    ordered = sorted(zip(labels, [sum(row) for row in rows], rows, strict=True))
    blocks = max(1, len(rows) // k)
    cuts = [len(rows) * place // blocks for place in range(blocks + 1)]
    found = []
    for start, end in pairwise(cuts):
        part = ordered[start:end]
        sums = [sum(row[column] for _, _, row in part) for column in range(len(rows[0]))]
        found.append(sums + [UNIT * sum(label == one for label, _, _ in part) for one in range(classes)])
    return found


rows_and_labels = st.lists(
    st.tuples(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), st.integers(0, 2)), min_size=1, max_size=14
)


@given(table=rows_and_labels, k=st.integers(1, 6))
def test_blocks_are_those_of_the_plain_algorithm_however_often_rows_occur(table: Any, k: int) -> None:
    rows, labels = [row for row, _ in table], [label for _, label in table]
    distinct = sorted(set(table))
    merged = NumericRows(
        np.array([row for row, _ in distinct], dtype=np.float64),
        np.array([label for _, label in distinct], dtype=np.int64),
        np.array([table.count(item) for item in distinct], dtype=np.int64),
        np.ones(len(distinct), np.bool_),
    )
    sizes, sums = block_sums(merged, classes=2, k=k)
    assert sums.tolist() == plain_blocks(rows, labels, 2, k)
    assert sizes.sum() == len(rows)
    assert len(rows) < k or sizes.min() >= k


@given(
    table=rows_and_labels,
    other=st.tuples(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), st.integers(0, 2)),
    k=st.integers(1, 6),
    data=st.data(),
)
def test_a_replaced_row_moves_every_block_by_one_row_at_most(table: Any, other: Any, k: int, data: Any) -> None:
    place = data.draw(st.integers(0, len(table) - 1))
    neighbor = [*table[:place], other, *table[place + 1 :]]
    here, there = (
        block_sums(coded([row for row, _ in part], [label for _, label in part]), classes=2, k=k)
        for part in (table, neighbor)
    )
    assert here[0].tolist() == there[0].tolist()
    moved = np.abs(here[1] - there[1])
    assert moved[:, :2].max() <= 6
    assert moved[:, 2:].sum(axis=1).max() <= 2 * UNIT


def alternating(rows: int) -> list[tuple[int, int]]:
    """Return rows that are at opposite corners by turns, in their order."""
    return [(UNIT - place, -UNIT) if place % 2 else (-UNIT, UNIT - place) for place in range(rows, 0, -1)]


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_neighbors_that_move_all_blocks_as_far_as_noise_is_made_for(delta: float) -> None:
    rows = alternating(7)
    here, there = (block_sums(coded(part), classes=0, k=3)[1] for part in (rows[:-1], rows[1:]))
    moved = np.abs(here - there)
    assert len(moved) == 2
    model = MicroaggregatedGaussian(epsilon=1, delta=delta, k=3)
    facts = model.declared(number_table({"x": [0.0], "y": [0.0]}))
    noise = model._center_noise(facts, 2)
    farthest = 2 * 2 * 2 * UNIT
    assert 0.99 * farthest <= moved.sum() <= farthest
    if isinstance(noise, LaplaceSteps):
        assert noise.sensitivity == farthest
        assert noise.epsilon == Fraction(9, 10)
    else:
        assert noise.squared_sigma >= 2 * 2 * (2 * UNIT) ** 2 * model._replaced().squared_multiplier
    squares = [np.square(row) for row in product((-UNIT, 0, UNIT), repeat=2)]
    apart = max(int(np.abs(first - second).sum()) for first in squares for second in squares)
    assert not isinstance(noise, LaplaceSteps) or model._square_noise(facts).sensitivity == apart  # type: ignore[union-attr]


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6}])
def test_rows_look_like_the_data_when_there_is_hardly_any_noise(options: dict[str, Any]) -> None:
    model = MicroaggregatedGaussian(epsilon=10**6, k=25, label="class", **options).fit(patients())
    drawn, real = model.sample(20_000).to_arrow(), patients().to_arrow()
    for name in ("height", "weight", "visits"):
        ours, theirs = (part[name].to_numpy() for part in (drawn, real))
        assert ours.mean() == pytest.approx(theirs.mean(), abs=0.1 * theirs.std())
        assert ours.std() == pytest.approx(theirs.std(), rel=0.1)
    tall = drawn["height"].to_numpy()[np.array(drawn["class"].to_pylist()) == "well"]
    assert tall.mean() == pytest.approx(180, abs=1)
    assert model.sample().count() == 400
    assert set(model.sample(50, conditions={"class": "ill"}).to_arrow()["class"].to_pylist()) == {"ill"}


def test_values_stay_inside_public_bounds_however_much_noise_there_is() -> None:
    drawn = MicroaggregatedGaussian(epsilon=0.01, k=50).fit(number_table({"x": [0.9] * 200})).sample(500).to_arrow()
    assert np.abs(drawn["x"].to_numpy()).max() <= 1


def test_no_row_is_left_out_so_that_the_number_of_rows_stays() -> None:
    table = number_table({"x": [0.5, None, float("nan"), 9.0], "class": ["ill", "odd", None, "well"]})
    model = MicroaggregatedGaussian(epsilon=1, k=2, label="class").fit(table)
    assert model.sizes_.tolist() == [2, 2]
    assert model.rows_ == 4


def test_a_table_smaller_than_a_block_is_one_block() -> None:
    model = MicroaggregatedGaussian(epsilon=1, k=50).fit(number_table({"x": [0.5, 0.25]}))
    assert model.sizes_.tolist() == [2]
    empty = MicroaggregatedGaussian(epsilon=1, k=50).fit(number_table({"x": np.zeros(0)}))
    assert (empty.rows_, empty.sample(3).count()) == (0, 3)


# The price -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_it_is_one_entry_about_replaced_rows(delta: float) -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("patients", budget=Budget(epsilon=1, delta=delta), adjacency="replace")
    options: dict[str, Any] = {"epsilon": 1, "delta": delta, "ledger": ledger, "dataset": "patients"}
    model = MicroaggregatedGaussian(k=100, **options).fit(number_table({"x": [0.1] * 300}))
    assert [entry.kind for entry in ledger.entries("patients")] == ["open", "spend"]
    assert ledger.remaining("patients").epsilon < Fraction(1, 10**6)
    assert model.guarantee_.adjacency is Adjacency.REPLACE  # type: ignore[attr-defined]
    assert "the number of rows is public" in model.guarantee_.explain()


def test_blocks_that_are_not_worthwhile_are_told_from_public_facts_before_anything_is_paid() -> None:
    ledger = open_ledger("memory:")
    ledger.open_account("patients", budget=Budget(epsilon=1), adjacency="replace")
    options: dict[str, Any] = {"ledger": ledger, "dataset": "patients", "expected_rows": 900}
    table = number_table({"x": [0.1] * 10})
    with pytest.raises(PrivacyParameterWarning, match="not worthwhile for about 900 rows.*GroupedGaussian"):
        MicroaggregatedGaussian(k=30, **options).fit(table)
    with pytest.raises(PrivacyParameterWarning, match="drown"):
        MicroaggregatedGaussian(k=31, epsilon=0.1, **options).fit(table)
    assert ledger.remaining("patients").epsilon == 1


def test_a_public_rule_finds_the_size_of_blocks() -> None:
    table = number_table({"x": [0.1], "y": [0.1]})
    sizes = {}
    for epsilon in (0.1, 1, 100):
        model = MicroaggregatedGaussian(epsilon=epsilon, expected_rows=10_000)
        facts = model.declared(table)
        sizes[epsilon] = model._block_size(facts)
        (expected,) = model.expected(table)
        assert expected.deviation <= 0.25
        assert epsilon == 100 or model._noise_of_centers(facts, 10_000, sizes[epsilon] - 1) > 0.25
    assert sizes[0.1] > sizes[1] > sizes[100] == 101


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({}, "expected_rows=10_000"),
        ({"k": 0}, "k"),
        ({"k": 5, "adjacency": "add_remove"}, "GroupedGaussian"),
        ({"k": 5, "unit": "x"}, "GroupedGaussian"),
        ({"k": 5, "epsilon": 0}, "epsilon"),
    ],
)
def test_bad_input_is_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        MicroaggregatedGaussian(**options).fit(number_table({"x": [0.1]}))


def test_a_saved_model_draws_the_same_rows(tmp_path: Path) -> None:
    model = MicroaggregatedGaussian(epsilon=5, k=100, label="class").fit(patients())
    model.save(tmp_path / "model.cloister")
    again = load(tmp_path / "model.cloister")
    assert again.sample(40, random_state=1).to_arrow() == model.sample(40, random_state=1).to_arrow()
    with pytest.raises(ModelError, match="damaged"):
        again._restore({**again._learned_state(), "centers": np.zeros((1, 2))})
    with pytest.raises(CloisterError, match="fit"):
        MicroaggregatedGaussian(k=5).sample(1)
    assert synthesizers.get("microaggregated_gaussian") is MicroaggregatedGaussian


# The promise ---------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_syn_16_a_claim_stands_and_half_of_the_noise_is_refuted() -> None:
    rows = np.array(alternating(7)) / UNIT
    neighbors = tuple(number_table({"x": part[:, 0], "y": part[:, 1]}) for part in (rows[:-1], rows[1:]))
    check_audit(lambda table, epsilon: MicroaggregatedGaussian(epsilon=epsilon, k=3).fit(table), neighbors)
