"""Answers as people, programs and charts read them."""

from __future__ import annotations

import datetime as dt
import json
import math
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister import Budget
from cloister.errors import MissingExtraError, ParameterError
from cloister.queries._uncertainty import Exactly, Unknown
from cloister.queries.answers import Answer, Estimate, Frame, plain, show_number
from cloister.queries.choices import Choice
from tests.queries.tables import executed, private, visits

SURE = 10**6
"""An epsilon so large that there is hardly any noise, to see what is computed."""


@pytest.fixture(scope="module")
def table() -> Any:
    return visits()


def test_one_number(table: Any) -> None:
    answer = table.count("sick", epsilon=SURE)
    assert isinstance(answer, Answer)
    assert answer.value == 30
    assert answer.margin(0.99) >= answer.margin(0.5)
    assert answer.interval() == (30 - answer.margin(), 30 + answer.margin())
    assert str(answer) == f"30 ± 0 (95%), epsilon = {SURE} per row" or str(answer).startswith(
        "30 ± 0 (95%), epsilon = 1e+06"
    )
    assert dict(answer.summary())["count"] == str(answer)
    assert answer.standard_deviation < 1
    written = answer.to_dict()
    assert written["schema"] == "cloister.query_answer/1"
    assert written["value"] == 30
    assert json.loads(json.dumps(written))["margin"]["confidence"] == 0.95
    figure = answer.plot()
    assert "count" in json.dumps(figure.to_dict())


@pytest.mark.parametrize("options", [{}, {"unit": "patient", "max_rows_per_unit": 3}])
def test_every_kind_of_number_without_noise(options: Any) -> None:
    table = visits(**options)
    ages = [20 + number % 60 for number in range(120) if number % 11]
    costs = [float(number % 50) / 2 for number in range(120)]
    assert table.count(epsilon=SURE).value == 120
    assert table.count_units(epsilon=SURE).value == (40 if options else 120)
    assert table.count_units("sick", epsilon=SURE).value == (10 if options else 30)
    assert table.count_present("age", epsilon=SURE).value == len(ages)
    assert table.sum("age", epsilon=SURE).value == pytest.approx(sum(ages), abs=0.01)
    assert table.sum("cost", bounds=(0, 5), epsilon=SURE).value == pytest.approx(
        sum(min(c, 5) for c in costs), abs=0.01
    )
    assert table.mean("age", epsilon=SURE).value == pytest.approx(np.mean(ages), abs=0.01)
    assert table.variance("cost", epsilon=SURE).value == pytest.approx(np.var(costs, ddof=1), abs=0.1)
    assert table.variance("cost", sample=False, epsilon=SURE).value == pytest.approx(np.var(costs), abs=0.1)
    assert table.std("cost", epsilon=SURE).value == pytest.approx(np.std(costs, ddof=1), abs=0.1)
    assert table.std("cost", sample=False, epsilon=SURE).value == pytest.approx(np.std(costs), abs=0.1)
    assert abs(table.median("age", epsilon=SURE).value - np.median(ages)) <= 1
    assert table.min("age", epsilon=SURE).value == pytest.approx(min(ages), abs=2)
    assert table.max("age", epsilon=SURE).value == pytest.approx(max(ages), abs=2)
    assert table.quantile("cost", 0.9, granularity=0.5, epsilon=SURE).value == pytest.approx(21.75, abs=0.25)
    if not options:
        assert table.count_distinct("ward", epsilon=SURE).value == 2
    else:
        assert 1 <= table.count_distinct("ward", epsilon=SURE).value <= 2


def test_a_rank_has_words_in_place_of_a_margin(table: Any) -> None:
    answer = table.median("age", epsilon=1)
    assert math.isnan(answer.margin())
    assert "rows in rank, 95%" in str(answer)
    assert any("The 0.5 quantile of age is off by at most" in note for note in answer.notes)
    assert answer.to_dict()["margin"]["half_width"] is None
    assert answer.plot().to_dict()
    assert any("a value that about" in note and "above" in note for note in table.max("age", epsilon=1).notes)
    assert any("a value that about" in note and "below" in note for note in table.min("age", epsilon=1).notes)


def test_a_frame(table: Any) -> None:
    frame = table.aggregate(
        {"n": "count", "people": "units", "age": ("mean", "age"), "spread": ("std", "cost"), "total": ("sum", "age")},
        by=["ward", "sick"],
        epsilon=SURE,
    )
    assert isinstance(frame, Frame)
    assert frame.names == ("ward", "sick", "n", "people", "age", "spread", "total")
    assert len(frame) == 6
    assert frame["ward"].tolist() == ["north", "north", "south", "south", "west", "west"]
    assert frame["sick"].tolist() == [False, True] * 3
    assert frame["n"].tolist() == [60, 20, 30, 10, 0, 0]
    assert frame["people"].tolist() == frame["n"].tolist()
    assert set(frame.margin()) == {"n", "people", "age", "spread", "total"}
    assert frame.margin(0.5)["n"][0] <= frame.margin(0.99)["n"][0]
    text = str(frame)
    assert text.splitlines()[0].split() == ["ward", "sick", "n", "people", "age", "spread", "total"]
    assert "north" in text
    assert "±" in text
    assert dict(frame.summary())["answer"].startswith("6 rows: ward, sick")
    assert frame.rows()[1]["n"] == 20
    assert json.dumps(frame.to_dict())
    assert frame.to_dict()["columns"][0] == {"name": "ward", "values": frame["ward"].tolist()}
    with pytest.raises(ParameterError, match='Did you mean "total"'):
        frame.column("totals")


def test_a_frame_as_arrow_pandas_and_polars(table: Any) -> None:
    frame = table.histogram("day", values=[dt.date(2026, 1, 1), dt.date(2026, 1, 2)], epsilon=SURE)
    arrow = frame.to_arrow(margins=True)
    assert arrow.column_names == ["day", "count", "count ±"]
    assert arrow.column("day").type == pa.date32()
    assert arrow.column("count").to_pylist() == [40, 40]
    assert frame.to_pandas()["count"].tolist() == [40, 40]
    assert frame.to_polars(margins=True).columns == ["day", "count", "count ±"]
    binned = table.histogram("age", bins=[0, 50, 100], epsilon=SURE)
    assert binned.to_arrow().column("age").to_pylist() == ["[0, 50)", "[50, 100)"]


def test_missing_packages_are_named(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table.histogram("ward", epsilon=SURE)
    for name, convert in (("pandas", frame.to_pandas), ("polars", frame.to_polars)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtraError, match=name):
            convert()


def test_a_long_frame_is_shortened(table: Any) -> None:
    frame = table.histogram("age", values=range(100), epsilon=SURE)
    assert "... and 60 more rows" in str(frame)


def test_charts_of_frames(table: Any) -> None:
    one = table.histogram("ward", epsilon=1).plot()
    assert "count by ward" in json.dumps(one.to_dict())
    few = table.aggregate({"n": "count"}, by=["ward", "sick"], epsilon=1).plot("n")
    assert "n by ward and sick" in json.dumps(few.to_dict())
    grid = table.grid("lat", "lon", box=((0, 10), (0, 12)), cells=(2, 8), epsilon=1).plot()
    assert "95% of the time" in json.dumps(grid.to_dict())
    single = table.aggregate({"n": "count", "m": ("median", "age")}, epsilon=1)
    assert single.plot().to_dict()
    assert single.plot("m").to_dict()
    quantiles = table.quantiles("age", [0.25, 0.5], epsilon=10)
    assert quantiles.plot().to_dict()
    with pytest.raises(ParameterError, match="fewer keys"):
        table.aggregate(
            {"n": "count"}, by=["ward", "sick", "day"], keys={"day": [dt.date(2026, 1, 1)]}, epsilon=1
        ).plot()
    nothing = Frame(
        columns=(Estimate.key("g", ["a"]),), guarantee=single.guarantee, cost=single.cost, event=single.event
    )
    with pytest.raises(ParameterError, match="at least one aggregate"):
        nothing.plot()
    empty = Frame(columns=(), guarantee=single.guarantee, cost=single.cost, event=single.event)
    assert len(empty) == 0


def test_quantiles_ascend_and_do_not_claim_to_be_exact(table: Any) -> None:
    frame = table.quantiles("age", [0.9, 0.1, 0.5, 0.5], epsilon=3)
    assert frame["quantile"].tolist() == [0.1, 0.5, 0.9]
    assert sorted(frame["age"]) == frame["age"].tolist()
    assert np.isnan(frame.margin()["age"]).all()
    near = table.quantiles("age", [0.1, 0.5, 0.9], epsilon=SURE)
    assert near["age"] == pytest.approx([25, 49, 74], abs=2)


def test_histograms_have_public_cells_only(table: Any) -> None:
    bins = table.histogram("age", bins=[-math.inf, 30, 60, math.inf], epsilon=SURE)
    assert sum(bins["count"]) == 109
    outside = table.histogram("age", bins=[30, 40], epsilon=SURE)
    assert len(outside) == 1
    whole = table.histogram("age", epsilon=SURE)
    assert whole["age"].tolist() == list(range(101))  # the bounds of the schema are few whole numbers
    assert sum(whole["count"]) == 109
    two = table.histogram_2d(("ward", "sick"), epsilon=SURE)
    assert two["count"].tolist() == [60, 20, 30, 10, 0, 0]
    cells = table.grid("lat", "lon", box=((0, 10), (0, 6)), cells=(2, 3), epsilon=SURE)
    assert len(cells) == 6
    assert sum(cells["count"]) == 60
    assert any("Rows whose ward is missing" in note for note in two.notes)


def test_every_measure_of_an_aggregate(table: Any) -> None:
    wanted = {
        "n": "count",
        "u": ("units",),
        "s": ("sum", "age"),
        "m": ("mean", "age"),
        "v": ("variance", "cost"),
        "d": ["std", "cost"],
        "lo": ("min", "age"),
        "hi": ("max", "age"),
        "mid": ("median", "age"),
        "q": ("quantile", "age", 0.9),
        "p": ("present", "age"),
        "k": ("distinct", "note"),
    }
    frame = table.aggregate(wanted, epsilon=SURE)
    assert frame.names == tuple(wanted)
    found = {name: frame[name][0] for name in wanted}
    assert (found["n"], found["u"], found["p"], found["k"]) == (120, 120, 109, 2)
    assert found["s"] == pytest.approx(found["m"] * 109, abs=1)
    assert found["lo"] < found["mid"] < found["q"] <= found["hi"]


def test_privately_chosen_groups_are_noted_and_few_units_are_not_shown() -> None:
    names = ["common"] * 500 + ["rare"]
    table = private(pa.table({"name": names, "who": list(range(501))}), unit="who", max_rows_per_unit=1)
    frame = table.aggregate({"n": "count", "u": "units"}, by=["name"], epsilon=2, delta=1e-9)
    assert frame["name"].tolist() == ["common"]
    assert frame["n"][0] == pytest.approx(500, abs=100)
    assert any("few whos are not shown; which ones is random" in note for note in frame.notes)
    assert any("Each who counts for at most 1 rows" in note for note in frame.notes)


def test_notes_say_what_a_margin_does_not_cover(table: Any) -> None:
    notes = table.mean("age", epsilon=1).notes
    assert any("age is clamped to 0 .. 100" in note for note in notes)
    dropped = visits(unit="patient", max_rows_per_unit=2, bounding="truncate", order_by="day").count(epsilon=1)
    assert any("Each patient counts for at most 2 rows" in note for note in dropped.notes)


# Choices -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"unit": "patient"}, {"adjacency": "replace"}])
@pytest.mark.parametrize("method", ["permute_and_flip", "exponential"])
def test_choices(options: Any, method: str) -> None:
    table = visits(**options)
    choice = table.top_k("ward", 2, method=method, epsilon=SURE)
    assert isinstance(choice, Choice)
    assert choice.choices[0] == choice.value
    assert set(choice.choices) <= {"north", "south"}
    if "unit" not in options:  # every patient has been in both wards
        assert choice.choices == ("north", "south")
        assert table.most_common("ward", "sick", epsilon=SURE).value == "north"
        assert table.vote("ward", values=["west", "south"], epsilon=SURE).value == "south"
    assert choice.margin() == choice.shortfall >= 0
    with pytest.raises(ParameterError, match="95%"):
        choice.margin(0.9)
    assert "of the best count, 95%" in str(choice)
    assert json.loads(json.dumps(choice.to_dict()))["choices"] == list(choice.choices)
    assert "the categories of ward are public" in choice.guarantee.explain()


def test_a_repeated_choice_costs_nothing_and_keeps_its_guarantee() -> None:
    table = visits(budget=Budget(epsilon=10))
    first = table.top_k("ward", 2, epsilon=2)
    again = table.top_k("ward", 2, epsilon=1)
    assert again.choices == first.choices
    assert again.cost == Budget(epsilon=0)
    assert (again.guarantee, again.shortfall) == (first.guarantee, first.shortfall)
    assert table.top_k("ward", 2, epsilon=1, fresh=True).cost == Budget(epsilon=1)
    assert table.top_k("ward", 1, epsilon=1).cost == Budget(epsilon=1)


# Limits --------------------------------------------------------------------------------------------------------------


def test_a_limit_is_chosen_privately_and_used() -> None:
    table = visits(unit="patient")
    chosen = table.choose_limit(groups=1, for_epsilon=10, highest=50, epsilon=SURE)
    assert chosen.value == 3  # every patient has three visits
    assert chosen.cost.amount == SURE
    assert chosen.notes == ("Limits up to 50 were considered.",)
    assert table.choose_limit(groups=1, for_epsilon=10, highest=50, epsilon=SURE).value == 3
    limited = table.with_limit(chosen.value)
    assert limited.count(epsilon=SURE).value == 120
    assert table.with_limit(1).count(epsilon=SURE).value == 40
    few = table.choose_limit(groups=1, for_epsilon=10, highest=2, where="sick", epsilon=SURE)
    assert few.value in (1, 2)
    with pytest.raises(ParameterError, match="highest"):
        table.choose_limit(highest=1, epsilon=1)
    with pytest.raises(ParameterError, match="groups"):
        table.choose_limit(groups=0, epsilon=1)


@pytest.mark.parametrize("bounding", ["weight", "truncate", "sample"])
def test_limits_are_kept_however_they_are_kept(bounding: str) -> None:
    table = visits(unit="patient", max_rows_per_unit=2, bounding=bounding)
    assert table.count(epsilon=SURE).value == 80
    frame = table.aggregate({"n": "count", "u": "units", "m": ("mean", "cost")}, by=["ward"], epsilon=SURE)
    assert sum(frame["n"]) == pytest.approx(80, abs=2)
    assert 0 <= table.median("age", epsilon=SURE).value <= 100


# Small parts ---------------------------------------------------------------------------------------------------------


def test_numbers_are_shown_with_the_digits_that_their_margin_deserves() -> None:
    assert show_number(1234, 5.0) == "1,234"
    assert show_number(1234.5678, 0.25) == "1,234.57"
    assert show_number(1234.5678, 30.0) == "1,235"
    assert show_number(1234.5678, 33.3) == "1,235"
    assert show_number(0.123456, 0.0) == "0.123456"
    assert show_number(7, math.nan) == "7"
    assert show_number("text", 1.0) == "text"
    assert show_number(True, 1.0) == "True"


def test_plain_values_are_ready_for_json() -> None:
    assert plain(np.int64(3)) == 3
    assert plain(math.inf) is None
    assert plain(dt.date(2026, 1, 1)) == "2026-01-01"
    assert plain(None) is None


def test_estimates_can_be_taken_and_named() -> None:
    column = Estimate.key("g", ["a", "b", "c"])
    taken = column.take(np.array([2, 0])).named("h")
    assert (taken.name, taken.values.tolist(), taken.margins().tolist()) == ("h", ["c", "a"], [0, 0])
    assert isinstance(column.error, Exactly)
    assert Unknown(1).words == ""


def test_a_private_table_shows_no_rows(table: Any) -> None:
    shown = repr(table)
    assert 'dataset="data"' in shown
    assert "p7" not in shown
    assert table.columns[0] == "patient"
    assert table.dataset == "data"
    assert executed(visits()) == 0
