"""Singling out, linking and guessing: copied rows are found, fresh ones are not, and small cases come out by hand."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.attacks import (
    AttackResult,
    SyntheticDetails,
    synthetic_inference,
    synthetic_linkability,
    synthetic_singling_out,
)
from cloister.attacks.synthetic.base import score_attack
from cloister.attacks.synthetic.singling_out import (
    CellRelation,
    Predicates,
    extreme_predicates,
    rare_value_predicates,
    whole_row_predicates,
)
from cloister.core.random import SeededRandomSource
from cloister.data.mixed_rows import MixedRows, read_mixed_rows
from cloister.errors import CloisterError, DataError, ParameterError, ParameterTypeError, UnknownColumnError
from tests.attacks.synthetic.populations import people, with_copies

Attack = Callable[..., AttackResult[SyntheticDetails]]

ORIGINAL, CONTROL, FRESH = (people(1_500, seed=seed) for seed in (1, 2, 3))
COPIED = with_copies(FRESH, ORIGINAL, 0.1)


def _source() -> SeededRandomSource:
    return SeededRandomSource(5)


ATTACKS: dict[str, Attack] = {
    "singling out": synthetic_singling_out,
    "linkability": synthetic_linkability,
    "inference": lambda *tables, **options: synthetic_inference(*tables, secret="town", **options),
}


@pytest.fixture(params=list(ATTACKS))
def attack(request: pytest.FixtureRequest) -> Attack:
    return ATTACKS[request.param]


def test_copied_rows_are_found(attack: Attack) -> None:
    found = attack(ORIGINAL, COPIED, control=CONTROL, random_state=_source())
    assert found.succeeded
    assert found.residual_interval is not None
    assert found.residual_interval[0] > 0
    assert found.residual_risk == pytest.approx(0.1, abs=0.04)
    assert found.verdict.startswith("The synthetic table gives its people away")
    # The copied rows are the first ones of the original.
    assert np.mean([place < 150 for place, _ in found.worst[:20]]) == 1


def test_fresh_rows_are_not(attack: Attack) -> None:
    found = attack(ORIGINAL, FRESH, control=CONTROL, random_state=_source())
    assert not found.succeeded
    assert "Others may find more" in found.verdict


def test_without_a_control_the_verdict_says_so(attack: Attack) -> None:
    found = attack(ORIGINAL, COPIED, random_state=_source())
    assert found.control is None
    assert found.residual_risk is None
    assert "There were no control rows" in found.verdict


def test_no_cell_and_no_position_is_told(attack: Attack) -> None:
    found = attack(ORIGINAL, COPIED, control=CONTROL, random_state=_source())
    told = json.dumps(found.to_dict()) + repr(found) + found.verdict + found.report().to_markdown() + str(found)
    assert not re.search(r"town \d|pilot|nurse", told)
    assert "worst" not in told
    assert found.to_dict()["schema"] == "cloister.synthetic_attack/1"
    assert "residual risk" in dict(found.summary())


@pytest.mark.parametrize("kind", ["univariate", "multivariate"])
def test_other_kinds_of_predicates_find_nothing_in_a_fresh_table(kind: str) -> None:
    found = synthetic_singling_out(
        ORIGINAL, FRESH, control=CONTROL, kind=kind, attacks=300, random_state=_source(), confidence=0.9999
    )
    assert not found.succeeded
    assert found.kind == kind
    assert 0 < found.success < 1


def test_predicates_by_a_slow_way() -> None:
    names = list(FRESH.column_names)
    rows, shown = read_mixed_rows([cl.open_table(people(80, seed=8)), cl.open_table(people(90, seed=9))], names)
    made = [
        extreme_predicates(shown, 40, _source(), columns=2, attempts=5_000),
        rare_value_predicates(shown, 60, _source()),
        whole_row_predicates(shown, 30, _source()),
    ]
    for predicates in made:
        assert len(predicates)
        for table in (rows, shown):
            expected = [_satisfying(predicates, place, table) for place in range(len(predicates))]
            found = predicates.matches(table)
            assert found.counts.tolist() == [len(part) for part in expected]
            assert found.places.tolist() == [part[0] if len(part) == 1 else -1 for part in expected]
        assert predicates.matches(shown).single.all()
        assert predicates.singles(rows).tolist() == np.flatnonzero(predicates.matches(rows).single).tolist()


def _satisfying(predicates: Predicates, place: int, table: MixedRows) -> list[int]:
    compare = {CellRelation.EQUAL: operator.eq, CellRelation.AT_MOST: operator.le, CellRelation.AT_LEAST: operator.ge}
    asked = [
        (name, compare[CellRelation(int(relation))])
        for name, relation in zip(table.columns, predicates.relations[place], strict=True)
        if relation != CellRelation.ANYTHING
    ]
    return [
        row
        for row in range(len(table))
        if all(check(table.column(name)[row], predicates.rows.column(name)[place]) for name, check in asked)
    ]


def test_rows_that_occur_twice_are_not_singled_out() -> None:
    twice = pa.table({"a": ["x", "x", "y"], "b": [1, 1, 2]})
    found = synthetic_singling_out(twice, pa.table({"a": ["x", "y", "z"], "b": [1, 2, 2]}))
    assert found.trials == 3
    assert found.success == pytest.approx(1 / 3)
    assert found.worst == ((2, 1.0),)


def test_univariate_predicates_are_values_that_occur_once_and_extremes() -> None:
    shown = pa.table({"a": ["x", "y", "y"], "b": [1, 2, 3]})
    found = synthetic_singling_out(pa.table({"a": ["x", "z"], "b": [0, 9]}), shown, kind="univariate")
    # a = x: one row; b = 1, 2, 3: none; b <= 1: one; b >= 3: one.
    assert found.trials == 6
    assert found.success == pytest.approx(3 / 6)


def test_tables_of_different_sizes_are_cut_to_one() -> None:
    found = synthetic_singling_out(ORIGINAL, COPIED, control=CONTROL.slice(0, 700), random_state=_source())
    assert found.succeeded
    assert found.residual_risk == pytest.approx(0.1 * 700 / 1500, abs=0.03)


def test_linking_by_hand() -> None:
    original = pa.table({"a": [0, 10], "b": [0, 10]})
    # Row 1 is there with both cells; the cells of row 0 are in two rows.
    made = pa.table({"a": [0, 5, 10], "b": [6, 0, 10]})
    found = synthetic_linkability(original, made, known=(["a"], ["b"]))
    assert found.success == 0.5
    assert found.baseline == pytest.approx(1 / 3)
    assert found.worst == ((1, 1.0),)
    assert synthetic_linkability(original, made, known=(["a"], ["b"]), neighbors=2).success == 1.0


def test_columns_are_dealt_out_by_what_they_tell() -> None:
    found = synthetic_linkability(ORIGINAL, FRESH, random_state=_source())
    # The weight alone, of which hardly two are the same, tells as much as two other columns.
    assert found.kind == "2 and 4 known columns, 1 nearest"


def test_guessing_by_hand() -> None:
    original = pa.table({"age": [20, 40, 60], "pay": [100.0, 200.0, 300.0], "ill": ["yes", "no", "yes"]})
    made = pa.table({"age": [21, 41, 61], "pay": [104.0, 250.0, 290.0], "ill": ["yes", "yes", "no"]})
    found = synthetic_inference(original, made, secret="ill", known=["age"])
    assert found.success == pytest.approx(1 / 3)
    assert found.baseline == pytest.approx(2 / 3)
    numbers = synthetic_inference(original, made, secret="pay", known=["age"])
    assert numbers.success == pytest.approx(2 / 3)
    assert synthetic_inference(original, made, secret="pay", known=["age"], tolerance=0).success == 0


def test_missing_values_are_like_missing_ones_only() -> None:
    original = pa.table({"age": [20.0, None], "ill": ["yes", None]})
    found = synthetic_inference(original, original, secret="ill")
    assert found.success == 1.0
    assert synthetic_inference(original, original, secret="age").success == 1.0
    assert synthetic_singling_out(original, original).success == 1.0
    assert synthetic_singling_out(original, original, kind="multivariate", attacks=5).success > 0


def test_infinite_numbers_are_values_like_others() -> None:
    table = pa.table({"a": [1.5, math.inf, -math.inf, 2.0], "b": ["w", "x", "y", "z"]})
    assert synthetic_inference(table, table, secret="a").success == 1.0


def test_tables_frames_and_schemas_are_taken() -> None:
    schema = cl.Schema.from_dict({"columns": {"age": {"kind": "numeric"}, "town": {"role": "identifier"}}})
    opened = cl.open_table(ORIGINAL, schema=schema)
    found = synthetic_linkability(opened, COPIED.to_pandas(), control=CONTROL.to_pandas(), random_state=_source())
    assert found.kind == "2 and 3 known columns, 1 nearest"


def test_residual_risk_by_hand() -> None:
    trial = {"baseline": 0.05, "kind": "made up", "confidence": 0.95}
    fields = score_attack(30, 100, control=(10, 100), **trial)
    assert fields["details"].residual_risk == pytest.approx(0.2 / 0.9)
    low, high = fields["details"].residual_interval
    assert low < 0.2 / 0.9 < high
    assert fields["interval"][0] < 0.3 < fields["interval"][1]
    wider = score_attack(30, 100, control=(10, 100), alike=(4.0, 1.0), **trial)
    assert wider["interval"][0] < fields["interval"][0]
    assert score_attack(5, 5, control=(5, 5), **trial)["details"].residual_risk == 0


def test_a_residual_risk_below_nothing_is_told_as_none_everywhere() -> None:
    found = _outcome(hits=10, control=(30, 100))
    assert found.residual_risk is not None
    assert found.residual_risk < 0
    assert "Residual risk 0%, between" in found.verdict
    assert dict(found.summary())["residual risk"].startswith("0%, between")
    assert "-28" not in found.report().to_markdown()


def test_an_outcome_is_telling_if_it_succeeds_or_rules_out_a_quarter() -> None:
    assert _outcome(hits=90, control=(10, 100)).is_telling
    assert _outcome(hits=10, control=(10, 100)).is_telling
    few = _outcome(hits=1, trials=10, control=(1, 10))
    assert not few.is_telling
    assert few.verdict.startswith("There are too few rows to tell")
    assert few.to_dict()["is_telling"] is False
    assert not _outcome(hits=0, trials=5, control=None).is_telling
    assert _outcome(hits=0, control=None).is_telling


def test_few_control_rows_or_few_synthetic_rows_tell_nothing(attack: Attack) -> None:
    assert attack(ORIGINAL, FRESH, control=CONTROL, random_state=_source()).is_telling
    for shown, others in ((FRESH, CONTROL.slice(0, 3)), (FRESH.slice(0, 1), CONTROL)):
        found = attack(ORIGINAL, shown, control=others, random_state=_source())
        assert not found.is_telling
        assert "too few rows to tell" in found.verdict
        assert "found nothing" not in found.verdict + found.report().to_markdown().replace(
            "knowledge, found nothing", ""
        )


def _outcome(*, hits: int, control: tuple[int, int] | None, trials: int = 100) -> AttackResult[SyntheticDetails]:
    fields = score_attack(hits, trials, baseline=0.05, kind="made up", control=control, confidence=0.95)
    return AttackResult(attack="trial", assumption="tries", queries=0, **fields)


@pytest.mark.parametrize(
    ("call", "error", "fix"),
    [
        (lambda: synthetic_singling_out(ORIGINAL.slice(0, 0), FRESH), DataError, "give a table with rows"),
        (lambda: synthetic_singling_out(ORIGINAL, None), ParameterTypeError, "give the synthetic rows"),
        (lambda: synthetic_singling_out(ORIGINAL, FRESH, columns=["height"]), UnknownColumnError, ""),
        (lambda: synthetic_singling_out(ORIGINAL, FRESH, columns="age"), ParameterTypeError, r"write columns=\["),
        (lambda: synthetic_singling_out(ORIGINAL, FRESH, kind="loud"), ParameterError, "use one of"),
        (lambda: synthetic_singling_out(pa.table({"a": [1]}), pa.table({"b": [1]})), ParameterError, "same columns"),
        (
            lambda: synthetic_singling_out(*[pa.table({"a": ["x", "x"]})] * 2, kind="univariate"),
            DataError,
            'use kind="row"',
        ),
        (
            lambda: synthetic_linkability(ORIGINAL, FRESH, known=(["age"], ["age"])),
            ParameterError,
            "columns of its own",
        ),
        (
            lambda: synthetic_linkability(ORIGINAL, FRESH, known=(["age"], [])),
            ParameterError,
            "write for example known=",
        ),
        (lambda: synthetic_linkability(*[pa.table({"a": [1, 2]})] * 2), ParameterError, "at least two columns"),
        (lambda: synthetic_linkability(ORIGINAL, FRESH, bounds=[1]), ParameterTypeError, "write for example bounds"),
        (lambda: synthetic_inference(ORIGINAL, FRESH, secret="height"), UnknownColumnError, ""),
        (lambda: synthetic_inference(ORIGINAL, FRESH, secret="ill", known=["ill"]), ParameterError, "other columns"),
        (lambda: synthetic_inference(ORIGINAL, FRESH, secret=3), ParameterTypeError, "write for example secret"),
        (lambda: synthetic_inference(ORIGINAL, FRESH, secret="ill", known="age"), ParameterTypeError, "write known="),
        (lambda: synthetic_inference(ORIGINAL, FRESH, secret="ill", tolerance=math.nan), CloisterError, ""),
    ],
    ids=[
        "empty",
        "nothing",
        "unknown column",
        "one text",
        "kind",
        "no shared column",
        "no predicate",
        "both sides",
        "one side",
        "one column",
        "bounds",
        "unknown secret",
        "known secret",
        "secret",
        "known text",
        "tolerance",
    ],
)
def test_bad_input_is_refused(call: Callable[[], Any], error: type[CloisterError], fix: str) -> None:
    with pytest.raises(error, match=f"Fix: .*{fix}"):
        call()
