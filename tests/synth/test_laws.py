"""What holds for every registered synthesizer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloister.accounting.events import SequenceEvent
from cloister.core.guarantees import SEEDED_RANDOMNESS
from cloister.core.random import SeededRandomSource
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from cloister.errors import (
    BudgetExceededError,
    MissingBoundsError,
    ModelError,
    ParameterError,
    SeededRandomnessWarning,
    UnconfirmedSchemaError,
)
from cloister.synth import base as synth_base, load, synthesizers
from cloister.synth.documents import document_of
from cloister.synth.marginal_based import MarginalSynthesizer
from tests.synth.toys import ACCOUNT, APART, COLORS, DAYS, OPTIONS, PUBLIC, SCHEMA, book, listing, people

Make = Callable[..., Any]


@pytest.fixture(params=[name for name in synthesizers if name not in APART])
def make(request: pytest.FixtureRequest) -> Make:
    kind = synthesizers.get(request.param)
    return lambda **options: kind(**{**PUBLIC, **OPTIONS.get(request.param, {}), **options})


@pytest.fixture(params=[name for name, kind in synthesizers.items() if issubclass(kind, MarginalSynthesizer)])
def make_of_cells(request: pytest.FixtureRequest) -> Make:
    """Make a synthesizer that takes every kind of column."""
    kind = synthesizers.get(request.param)
    return lambda **options: kind(**{**PUBLIC, **OPTIONS.get(request.param, {}), **options})


def pays(made: Any) -> bool:
    """Return whether a synthesizer is differentially private; others promise less and cost nothing."""
    return made._promise(made.declared(people()))[1] is not None


def learned(made: Any) -> str:
    return json.dumps(document_of(made)["learned"])


def rows_of(table: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return found


# Before paying -------------------------------------------------------------------------------------------------------


def test_guesses_are_refused_before_paying(make: Make) -> None:
    ledger, table = book(), people(schema=None)
    guessed = table.with_schema(Schema.infer(table))
    with pytest.raises(UnconfirmedSchemaError, match=r"Fix: .*confirm"):
        make(ledger=ledger, dataset=ACCOUNT).fit(guessed)
    assert not ledger.spent(ACCOUNT).amount


def test_nothing_that_was_guessed_from_the_rows_leaves_with_a_model(make_of_cells: Make) -> None:
    table = people(schema=None)
    guessed = Schema.infer(table).with_categories("color", COLORS)
    edges = {"age": [0, 30, 60, 100], "weight": [0, 1, 2]}
    made = make_of_cells(columns=["color", "age", "weight"], bins=edges, schema=guessed).fit(table)
    facts = document_of(made)["facts"]["schema"]["columns"]
    assert facts["age"].keys() <= {"role", "kind"}
    assert not any({"guessed", "evidence"} & column.keys() for column in facts.values())
    assert made.sample(5).schema["weight"].bounds is None


def test_a_hierarchy_that_may_list_the_values_of_the_rows_stays_behind(make_of_cells: Make) -> None:
    table = people()
    hierarchy = Hierarchy.from_levels([["41", "40-49"], ["42", "40-49"]])
    made = make_of_cells(columns=["color", "age"], schema=table.schema.with_hierarchy("age", hierarchy)).fit(table)
    assert "40-49" not in json.dumps(document_of(made))


@pytest.mark.parametrize(
    "schema", [None, Schema.from_dict({"columns": {"age": {"role": "quasi", "kind": "numeric"}}})], ids=["none", "bare"]
)
def test_missing_bounds_are_refused_before_paying(make: Make, schema: Schema | None) -> None:
    ledger = book()
    with pytest.raises(MissingBoundsError, match="Fix: "):
        make(ledger=ledger, dataset=ACCOUNT).fit(people(schema=schema))
    assert not ledger.spent(ACCOUNT).amount


def test_what_is_declared_and_expected_does_not_depend_on_the_rows(make: Make) -> None:
    made, tables = make(), [people(), people(4, seed=2), people(0)]
    facts = [made.declared(table) for table in tables]
    assert facts[0] == facts[1] == facts[2]
    assert made.expected(tables[0]) == made.expected(tables[2])


def test_too_little_budget_is_refused_and_nothing_is_learned(make: Make) -> None:
    made = make(ledger=book(), dataset=ACCOUNT, epsilon=1000)
    if not pays(made):
        pytest.skip("costs nothing")
    with pytest.raises(BudgetExceededError, match="Fix: "):
        made.fit(people())
    with pytest.raises(ModelError, match=r"Fix: call fit\(table\) first"):
        made.sample(1)


# Paying --------------------------------------------------------------------------------------------------------------


def test_sampling_costs_nothing_and_a_second_fit_is_paid_again(make: Make) -> None:
    """SYN-17."""
    ledger = book()
    made = make(ledger=ledger, dataset=ACCOUNT, epsilon=Fraction(1, 2))
    price = Fraction(1, 2) if pays(made) else 0
    for fits in (1, 2):
        assert made.fit(people()) is made
        made.sample(5)
        made.sample(7)
        assert ledger.spent(ACCOUNT).amount == fits * price


def test_the_guarantee_is_what_was_asked_for_and_covers_all_steps(make: Make) -> None:
    made = make(epsilon=Fraction(1, 2), adjacency="replace")
    if not pays(made):
        pytest.skip("is not differentially private")
    made.fit(people())
    assert (made.guarantee_.epsilon, made.guarantee_.adjacency, made.guarantee_.holds) == (
        Fraction(1, 2),
        "replace",
        True,
    )
    event = SequenceEvent(events=tuple(step.event for step in made.steps_))
    book(adjacency="replace").spend(ACCOUNT, guarantee=made.guarantee_, event=event)  # raises where steps cost more


def test_with_a_delta_the_steps_stay_within_the_promise(make: Make) -> None:
    ledger = book()
    made = make(epsilon=1, delta=Fraction(1, 10**6), ledger=ledger, dataset=ACCOUNT)
    if not pays(made):
        pytest.skip("is not differentially private")
    made.fit(people())
    assert (ledger.spent(ACCOUNT).amount, ledger.spent(ACCOUNT).delta) == (1, Fraction(1, 10**6))
    event = SequenceEvent(events=tuple(step.event for step in made.steps_))
    assert made.guarantee_.delta == Fraction(1, 10**6)
    book().spend(ACCOUNT, guarantee=made.guarantee_, event=event)


@pytest.mark.hidden_failures
def test_a_fit_that_fails_stays_paid_and_leaves_no_model(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = book()
    made = make(ledger=ledger, dataset=ACCOUNT).fit(people())
    before = ledger.spent(ACCOUNT).amount

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError

    monkeypatch.setattr(synth_base, "person_rows", fail)
    with pytest.raises(OSError):  # noqa: PT011  # an error without words
        made.fit(people())
    assert ledger.spent(ACCOUNT).amount == 2 * before
    assert not [name for name in vars(made) if name.endswith("_")]
    with pytest.raises(ModelError, match="Fix: call fit"):
        made.sample(1)


def test_persons_are_protected_with_all_their_rows(make: Make) -> None:
    made = make(unit="person", max_rows_per_unit=2).fit(people())
    sample = made.sample(10)
    assert "person" not in sample.columns
    assert sample.count() == 10
    if pays(made):
        assert (made.guarantee_.unit, made.guarantee_.adjacency, made.guarantee_.holds) == ("person", "user", True)


# Randomness ----------------------------------------------------------------------------------------------------------


def test_the_default_randomness_is_the_operating_systems(make: Make) -> None:
    made = [make(epsilon=Fraction(1, 10)).fit(people()) for _ in range(2)]
    if not pays(made[0]):
        pytest.skip("is not differentially private")
    assert all(item.guarantee_.holds for item in made)
    assert len({learned(item) for item in made}) > 1


def test_a_seed_repeats_the_fit_and_taints_the_guarantee(make: Make) -> None:
    with pytest.warns(SeededRandomnessWarning):
        first = make(random_state=7).fit(people())
    again = make(random_state=SeededRandomSource(7)).fit(people())
    assert learned(first) == learned(again)
    if pays(first):
        assert not first.guarantee_.holds
        assert SEEDED_RANDOMNESS in first.guarantee_.caveats


def test_rows_with_a_seed_come_again_and_do_not_taint_the_guarantee(make: Make) -> None:
    made = make().fit(people())
    assert rows_of(made.sample(30, random_state=3)) == rows_of(made.sample(30, random_state=3))
    assert rows_of(made.sample(30)) != rows_of(made.sample(30))
    if pays(made):
        assert made.guarantee_.holds


# Rows ----------------------------------------------------------------------------------------------------------------


def test_every_value_is_declared(make_of_cells: Make) -> None:
    sample = make_of_cells(epsilon=Fraction(1, 20)).fit(people()).sample(300)
    assert sample.columns == ("color", "age", "weight", "seen")
    assert sample.to_arrow().schema.types == listing().select(sample.columns).schema.types
    for row in rows_of(sample):
        assert row["color"] in (*COLORS, None)
        assert row["age"] is None or 0 <= row["age"] <= 99
        assert row["weight"] is None or 0 <= row["weight"] <= 2
        assert row["seen"] is None or DAYS[0] <= row["seen"] <= DAYS[1]


def test_no_rows_and_about_as_many_as_there_are(make: Make) -> None:
    made = make(epsilon=5).fit(people())
    assert made.sample(0).count() == 0
    assert made.sample(0).columns == made.sample(1).columns
    assert made.sample().count() == round(made.rows_)


def test_a_table_without_rows_is_fitted(make: Make) -> None:
    made = make()
    if not pays(made):
        pytest.skip("is not differentially private")
    assert made.fit(people(0)).sample(3).count() == 3


def test_columns_that_are_complete_miss_nothing(make_of_cells: Make) -> None:
    sample = make_of_cells(complete=["color", "age"], epsilon=Fraction(1, 20)).fit(people()).sample(200)
    assert sample.to_arrow()["color"].null_count == sample.to_arrow()["age"].null_count == 0


# Files ---------------------------------------------------------------------------------------------------------------


def test_a_saved_synthesizer_gives_the_same_rows(make: Make, tmp_path: Path) -> None:
    made = make().fit(people())
    made.save(tmp_path / "toy.cloister")
    again = load(tmp_path / "toy.cloister")
    assert type(again) is type(made)
    assert (again.guarantee_, again.steps_, again.rows_) == (made.guarantee_, made.steps_, made.rows_)
    assert rows_of(again.sample(40, random_state=11)) == rows_of(made.sample(40, random_state=11))
    assert {name for name in vars(made) if name.endswith("_")} == {name for name in vars(again) if name.endswith("_")}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("spanning_tree", {"center": "color"}),
        ("mwem", {"rounds": 2}),
        ("adaptive", {"workload": [["color", "age"]]}),
        ("grouped_gaussian", {"columns": ["age", "weight"], "bins": None, "regions": 4, "expected_rows": 60}),
        (
            "microaggregated_gaussian",
            {"columns": ["age", "weight"], "bins": None, "k": 20, "expected_rows": 60, "adjacency": "replace"},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Noise will drown")
def test_a_saved_synthesizer_reports_the_same(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    made = synthesizers.get(name)(**{**PUBLIC, **options}).fit(people())
    made.save(tmp_path / "model.cloister")
    read = load(tmp_path / "model.cloister")
    assert read.expectations == made.expectations
    # A page states the minute in which it was made, which may end between the two.
    first, second = (re.sub(r"\d\d:\d\d UTC", "now", one.report().to_html()) for one in (made, read))
    assert first == second


def test_a_saved_synthesizer_holds_no_name_of_a_person(make: Make, tmp_path: Path) -> None:
    table = listing().set_column(0, "person", [list(range(8128000, 8128060))])
    made = make(unit="person", max_rows_per_unit=1, schema=people().schema).fit(table)
    made.save(tmp_path / "toy.cloister")
    assert not re.search(r"(?<![\d.])8128\d{3}(?![\d.])", (tmp_path / "toy.cloister").read_text())


def test_a_report_is_written(make: Make, tmp_path: Path) -> None:
    made = make().fit(people())
    made.report(tmp_path / "toy.html")
    assert made.guarantee_.explain().split(",")[0] in (tmp_path / "toy.html").read_text()


def test_more_rows_than_fit_anywhere_are_refused(make_of_cells: Make) -> None:
    with pytest.raises(ParameterError, match="at a time"):
        make_of_cells().fit(people()).sample(10**12)


def test_a_guess_that_a_column_identifies_people_does_not_choose_the_columns(make: Make) -> None:
    guessed = SCHEMA.with_column(replace(SCHEMA["person"], guessed=frozenset({"role"})))
    with pytest.raises(UnconfirmedSchemaError, match=r"person: role"):
        make(columns=None).fit(people(schema=guessed))
