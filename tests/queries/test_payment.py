"""Paying: spend, then look; repeats for nothing; failures are not refunded; bad questions cost nothing."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cloister import Budget, Column, PrivateTable, Schema, open_ledger
from cloister.accounting import planner
from cloister.errors import (
    AccountingError,
    AccountMismatchError,
    BudgetExceededError,
    CloisterError,
    DataError,
    MissingBoundsError,
    ParameterError,
    ParameterTypeError,
    UnconfirmedSchemaError,
    UnknownColumnError,
    UnsafeQueryError,
)
from cloister.queries.answers import Frame
from tests.queries.neighbors import fast_table
from tests.queries.tables import SCHEMA, VISITS, executed, private, visits

NOTHING = Budget(epsilon=0)


def test_a_repeat_costs_nothing_for_another_analyst_and_at_a_lower_price() -> None:
    ledger = open_ledger("memory:")
    options: dict[str, Any] = {"ledger": ledger, "dataset": "hospital", "budget": Budget(epsilon=1)}
    ann, bob = visits(**options, analyst="ann"), visits(**options, analyst="bob")
    first = ann.count("age > 30", epsilon=0.5)
    assert first.cost == Budget(epsilon=0.5)
    for repeat in (
        bob.count("age > 30", epsilon=0.5),
        bob.count("age > 30", epsilon=0.25),
        ann.count("AGE > 30", epsilon=0.1),
    ):
        assert repeat.cost == NOTHING
        assert repeat.value == first.value
        assert repeat.guarantee == first.guarantee
        assert repeat.margin() == first.margin()
    assert executed(bob) == 0
    assert ledger.remaining("hospital") == Budget(epsilon=0.5)
    fresh = bob.count("age > 30", epsilon=0.25, fresh=True)
    assert fresh.cost == Budget(epsilon=0.25)
    assert ledger.spent("hospital", analyst="bob") == Budget(epsilon=0.25)
    assert ledger.spent("hospital", analyst="ann") == Budget(epsilon=0.5)
    dearer = bob.count("age > 31", epsilon=0.125)
    assert dearer.cost == Budget(epsilon=0.125)


def test_a_higher_price_is_charged_and_then_serves_everybody() -> None:
    table = visits(budget=Budget(epsilon=2))
    table.count(epsilon=0.5)
    better = table.count(epsilon=1)
    assert better.cost == Budget(epsilon=1)
    assert table.count(epsilon=0.5).value == better.value
    assert table.remaining == Budget(epsilon=0.5)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2"},
        {"unit": "patient", "max_rows_per_unit": 2},
        {"adjacency": "replace"},
    ],
)
def test_other_versions_units_and_relations_are_other_questions(change: dict[str, Any]) -> None:
    ledger = open_ledger("memory:")
    first = visits(ledger=ledger, dataset="one", budget=Budget(epsilon=1))
    first.count(epsilon=0.5)
    if "version" in change:
        other = visits(ledger=ledger, dataset="one", budget=Budget(epsilon=1), **change)
    else:
        with pytest.raises(AccountMismatchError):
            visits(ledger=ledger, dataset="one", budget=Budget(epsilon=1), **change)
        other = visits(ledger=ledger, dataset="two", budget=Budget(epsilon=1), **change)
    assert other.count(epsilon=0.5).cost == Budget(epsilon=0.5)


def test_noise_limits_and_options_are_parts_of_the_question() -> None:
    table = visits(unit="patient", max_rows_per_unit=2)
    price = {"epsilon": 1, "delta": 1e-6}
    assert table.count(**price).cost.amount == 1
    assert table.count(**price, noise="gaussian").cost.amount == 1
    assert table.with_limit(3).count(**price).cost.amount == 1
    assert table.count(**price).cost.amount == 0
    assert table.with_limit(3).remaining == table.remaining


def test_stored_answers_are_read_back_as_they_were(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    many = pa.table(
        {
            "day": [dt.date(2026, 1, 1 + number % 2) for number in range(400)],
            "at": [dt.datetime(2026, 1, 1, number % 2) for number in range(400)],
            "size": [math.inf if number % 2 else -0.5 for number in range(400)],
            "age": [number % 100 for number in range(400)],
            "name": ["ä" if number % 2 else "b" for number in range(400)],
        }
    )

    def ask(by: str, **options: Any) -> tuple[Frame, Frame]:
        frames = []
        for _ in range(2):
            with open_ledger(url) as ledger:
                table = private(many, ledger=ledger, dataset="d", budget=Budget(epsilon=1000, delta=0.5))
                frames.append(table.aggregate({"n": "count"}, by=[by], epsilon=5, delta=1e-6, **options))
        return frames[0], frames[1]

    for by, expected in (
        ("day", [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
        ("at", [dt.datetime(2026, 1, 1, 0), dt.datetime(2026, 1, 1, 1)]),
        ("size", [-0.5, math.inf]),
        ("name", ["b", "ä"]),
    ):
        first, again = ask(by)
        assert first[by].tolist() == again[by].tolist() == expected
        assert [type(item) for item in again[by]] == [type(item) for item in expected]
        assert first["n"].tolist() == again["n"].tolist()
        assert again.cost == Budget(epsilon=0)
    first, again = ask("age", bins={"age": [0, 50, math.inf]})
    assert list(map(str, again["age"])) == ["[0, 50)", "[50, inf]"] == list(map(str, first["age"]))
    assert json.dumps(again.to_dict()["columns"]) == json.dumps(first.to_dict()["columns"])


def test_mixed_public_and_private_groups_are_read_back() -> None:
    rows = pa.table({"age": [number % 100 for number in range(600)], "name": ["a", "b", "c"] * 200})
    table = private(rows)
    frames = [
        table.aggregate({"n": "count"}, by=["age", "name"], bins={"age": [0, 50, 100]}, epsilon=9, delta=1e-6)
        for _ in range(2)
    ]
    assert len(frames[0]) == 6
    assert frames[0]["age"].tolist() == frames[1]["age"].tolist()
    assert frames[1].cost.amount == 0


@pytest.mark.hidden_failures
def test_a_failure_after_the_spend_is_not_refunded() -> None:
    table = visits(fails=DataError("The data could not be read.", fix="check it."), budget=Budget(epsilon=1))
    for ask in (
        lambda: table.count(epsilon="1/8"),
        lambda: table.mean("age", epsilon="1/8"),
        lambda: table.top_k("ward", 2, epsilon="1/8"),
        lambda: table.median("age", epsilon="1/8"),
    ):
        with pytest.raises(DataError):
            ask()
    assert table.remaining == Budget(epsilon=0.5)
    assert [entry.kind for entry in table.ledger.entries("data")].count("answer") == 0


def test_the_budget_ends_and_the_error_says_what_is_left() -> None:
    table = visits(budget=Budget(epsilon=1))
    table.count(epsilon=0.75)
    before = executed(table)
    with pytest.raises(BudgetExceededError, match="only 0.25 is left") as refused:
        table.mean("age", epsilon=0.5)
    assert refused.value.remaining == table.remaining.amount
    assert executed(table) == before
    assert table.count(epsilon=0.5).cost == NOTHING  # repeats go on
    with pytest.raises(BudgetExceededError, match="delta"):
        table.aggregate({"n": "count"}, by=["note"], epsilon=0.1, delta=1e-6)


def test_a_limit_of_an_analyst_binds() -> None:
    ledger = open_ledger("memory:")
    table = visits(ledger=ledger, dataset="d", budget=Budget(epsilon=1), analyst="ann")
    ledger.limit_analyst("d", analyst="ann", budget=Budget(epsilon=0.25))
    assert table.remaining == Budget(epsilon=0.25)
    with pytest.raises(BudgetExceededError):
        table.count(epsilon=0.5)


def test_policies_price_questions_that_name_no_price() -> None:
    total = Budget(epsilon=1)
    table = visits(budget=total, policy=planner.uniform(total, queries=2))
    assert table.count(epsilon=None).cost == Budget(epsilon=0.5)
    assert table.count().cost == NOTHING  # a repeat keeps the share
    assert table.mean("age").cost == Budget(epsilon=0.5)
    with pytest.raises(BudgetExceededError, match="of the plan"):
        table.median("age")
    halves = visits(budget=total, policy=planner.geometric(total))
    spent = [halves.count(f"age > {number}").cost.amount for number in range(10)]
    assert sum(spent) == 1 - 2**-10 == total.amount - halves.remaining.amount
    with pytest.raises(ParameterError, match="epsilon=0.1"):
        visits().count()


def test_a_bad_question_does_not_use_up_a_share() -> None:
    total = Budget(epsilon=1)
    table = visits(budget=total, policy=planner.uniform(total, queries=1))
    with pytest.raises(UnknownColumnError):
        table.mean("agee")
    with pytest.raises(ParameterError):
        table.histogram("note")
    assert table.count().cost == total


def test_rho_is_paid_from_rho_and_epsilon_from_either() -> None:
    table = visits(budget=Budget(rho=1, delta=1e-3))
    assert table.count(rho=0.25).cost == Budget(rho=0.25)
    assert table.mean("age", epsilon=1).cost == Budget(rho=0.5)
    with pytest.raises(AccountingError, match="budget in epsilon"):
        visits().count(rho=0.1)
    for ask in (lambda: table.top_k("ward", 1, rho=0.1), lambda: table.top_k("ward", 1, epsilon=1, delta=1e-6)):
        with pytest.raises(ParameterError, match="epsilon=0.1, without delta or rho"):
            ask()


# Bad input -----------------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[Any, type[CloisterError], str]] = {
    "an unknown column": (lambda t: t.mean("agge", epsilon=1), UnknownColumnError, 'Did you mean "age"'),
    "an unknown column in where": (
        lambda t: t.count("wad = 'north'", epsilon=1),
        UnknownColumnError,
        'Did you mean "ward"',
    ),
    "an unknown key": (lambda t: t.histogram("wardd", epsilon=1), UnknownColumnError, 'Did you mean "ward"'),
    "a sentence for where": (lambda t: t.count("give me all", epsilon=1), ParameterError, "where"),
    "a subquery in where": (
        lambda t: t.count("age > (SELECT 1)", epsilon=1),
        UnsafeQueryError,
        "filter by columns",
    ),
    "text for a mean": (lambda t: t.mean("ward", epsilon=1), ParameterTypeError, "use a numeric column"),
    "dates for a mean": (lambda t: t.mean("day", epsilon=1), ParameterTypeError, "use a numeric column"),
    "no categories": (lambda t: t.histogram("note", epsilon=1), ParameterError, "delta=1e-6"),
    "no categories for a choice": (lambda t: t.top_k("note", 1, epsilon=1), MissingBoundsError, "values=\\[...\\]"),
    "values of another type": (
        lambda t: t.histogram("ward", values=[], epsilon=1),
        MissingBoundsError,
        "list values of the type text",
    ),
    "repeated values": (
        lambda t: t.histogram("ward", values=["a", "a"], epsilon=1),
        ParameterError,
        "every value once",
    ),
    "bounds in the wrong order": (lambda t: t.mean("age", bounds=(5, 1), epsilon=1), ParameterError, "bounds"),
    "infinite bounds": (lambda t: t.mean("age", bounds=(0, math.inf), epsilon=1), ParameterError, "bounds"),
    "too fine steps": (
        lambda t: t.quantile("age", 0.5, bounds=(0, 2**50), granularity=2**-20, epsilon=1),
        ParameterError,
        "coarser granularity",
    ),
    "a step that is no power of two": (
        lambda t: t.quantile("age", 0.5, granularity=0.3, epsilon=1),
        ParameterError,
        "granularity=0.25",
    ),
    "huge k": (lambda t: t.top_k("ward", 10**9, epsilon=1), ParameterError, "ask for k <= 3"),
    "k of zero": (lambda t: t.top_k("ward", 0, epsilon=1), ParameterError, "k"),
    "an unknown method": (lambda t: t.top_k("ward", 1, method="best", epsilon=1), ParameterError, "permute_and_flip"),
    "a quantile of 0": (lambda t: t.quantile("age", 0, epsilon=1), ParameterError, "min and max"),
    "a quantile of many digits": (lambda t: t.quantile("age", "1/3333333", epsilon=1), ParameterError, "six digits"),
    "no quantiles": (lambda t: t.quantiles("age", [], epsilon=1), ParameterError, "qs="),
    "one quantile for a list": (lambda t: t.quantiles("age", 0.5, epsilon=1), ParameterTypeError, "0.25, 0.5, 0.75"),
    "three columns for two": (
        lambda t: t.histogram_2d(("ward", "sick", "day"), epsilon=1),
        ParameterError,
        '\\("sex", "age"\\)',
    ),
    "epsilon of zero": (lambda t: t.count(epsilon=0), ParameterError, "epsilon=0.5"),
    "negative epsilon": (lambda t: t.count(epsilon=-1), ParameterError, "epsilon=0.5"),
    "epsilon that is no number": (lambda t: t.count(epsilon="much"), ParameterError, "epsilon"),
    "NaN for epsilon": (lambda t: t.count(epsilon=math.nan), ParameterError, "epsilon"),
    "delta of one": (lambda t: t.count(epsilon=1, delta=1), ParameterError, "delta"),
    "a misspelled option": (lambda t: t.count(epsilom=1), ParameterTypeError, "use epsilon, delta, rho"),
    "an unknown noise": (lambda t: t.count(epsilon=1, noise="uniform"), ParameterError, "laplace"),
    "an unknown measure": (lambda t: t.aggregate({"n": "cout"}, epsilon=1), ParameterError, '"count", "units"'),
    "a measure without its column": (
        lambda t: t.aggregate({"n": ("mean",)}, epsilon=1),
        ParameterError,
        "kind, column",
    ),
    "nothing to measure": (lambda t: t.aggregate({}, epsilon=1), ParameterError, "measures="),
    "one name for a list of names": (
        lambda t: t.aggregate({"n": "count"}, by="ward", epsilon=1),
        ParameterTypeError,
        'write for example \\["sex"\\]',
    ),
    "a key twice": (
        lambda t: t.aggregate({"n": "count"}, by=["ward", "ward"], epsilon=1),
        ParameterError,
        "column once",
    ),
    "a measure called like a key": (
        lambda t: t.aggregate({"ward": "count"}, by=["ward"], epsilon=1),
        ParameterError,
        "another name",
    ),
    "bins of a column that is not grouped by": (
        lambda t: t.aggregate({"n": "count"}, by=["ward"], bins={"age": [0, 9]}, epsilon=1),
        ParameterError,
        "add it to by=",
    ),
    "bins that go down": (lambda t: t.histogram("age", bins=[5, 1], epsilon=1), ParameterError, "smallest first"),
    "too many groups": (
        lambda t: t.aggregate(
            {"n": "count"}, by=["lat", "lon"], keys={"lat": range(1100), "lon": range(1100)}, epsilon=1
        ),
        ParameterError,
        "at most 1,000,000 groups",
    ),
    "a grid of no cells": (
        lambda t: t.grid("lat", "lon", box=((0, 1), (0, 1)), cells=(0, 2), epsilon=1),
        ParameterError,
        "cells",
    ),
    "a grid of tiny cells": (
        lambda t: t.grid("lat", "lon", box=((1, 1.0000000000000002), (0, 1)), cells=(9, 2), epsilon=1),
        ParameterError,
        "fewer cells",
    ),
    "a limit without persons": (lambda t: t.choose_limit(epsilon=1), ParameterError, 'unit="..."'),
    "another limit without persons": (lambda t: t.with_limit(3), ParameterError, 'unit="patient_id"'),
    "quantiles in groups that are chosen": (
        lambda t: t.aggregate({"m": ("median", "age")}, by=["note"], epsilon=1, delta=1e-6),
        UnsafeQueryError,
        "state the groups",
    ),
    "a random state that is none": (lambda t: t.count(epsilon=1, random_state="x"), ParameterTypeError, "random_state"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_costs_nothing_and_says_what_to_do(name: str) -> None:
    ask, kind, words = BAD[name]
    table = visits(budget=Budget(epsilon=10, delta=0.5))
    entries = len(table.ledger.entries("data"))
    with pytest.raises(kind, match=words) as refused:
        ask(table)
    assert refused.value.fix
    assert table.remaining == Budget(epsilon=10, delta=0.5)
    assert len(table.ledger.entries("data")) == entries
    assert executed(table) == 0


def test_missing_bounds_name_the_private_alternative() -> None:
    table = private(VISITS)
    for ask in (table.sum, table.mean, table.variance, table.std, table.min, table.max):
        with pytest.raises(MissingBoundsError, match=r'private.quantile\("age", 0.99, ...\)'):
            ask("age", epsilon=1)
    unbounded = private(VISITS, schema=Schema([Column(name="age", kind="numeric")]))
    with pytest.raises(MissingBoundsError):
        unbounded.mean("age", epsilon=1)
    guessed = private(
        VISITS, schema=Schema([Column(name="age", kind="numeric", bounds=(0, 9), guessed=frozenset({"bounds"}))])
    )
    with pytest.raises(UnconfirmedSchemaError, match="confirm"):
        guessed.mean("age", epsilon=1)


def test_a_column_that_the_schema_leaves_out_is_not_there() -> None:
    table = private(VISITS, schema=Schema([Column(name="age", kind="numeric", bounds=(0, 99))]))
    assert table.columns == ("age",)
    with pytest.raises(UnknownColumnError):
        table.count_present("cost", epsilon=1)


def test_opening_a_private_table_badly() -> None:
    table = fast_table(VISITS, schema=SCHEMA)
    budget = Budget(epsilon=1)
    for options, words in (
        ({"unit": "patien"}, 'Did you mean "patient"'),
        ({"budget": None}, "budget=Budget"),
        ({"ledger": open_ledger("memory:")}, 'dataset="hospital-2026"'),
        ({"max_rows_per_unit": 3}, 'unit="patient_id"'),
        ({"order_by": "day"}, 'unit="patient_id"'),
        ({"adjacency": "user"}, "add_remove"),
        ({"unit": "patient", "adjacency": "replace"}, 'adjacency="add_remove"'),
        ({"unit": "patient", "bounding": "first"}, "weight"),
        ({"unit": "patient", "max_rows_per_unit": 0}, "limit"),
        ({"min_size": 0}, "size"),
        ({"public": {"codes": 7}}, "data frame, an Arrow table or a dictionary"),
    ):
        with pytest.raises(CloisterError, match=words):
            PrivateTable(table, **{"budget": budget, **options})  # type: ignore[arg-type]
    with pytest.raises(ParameterTypeError, match="open_table"):
        PrivateTable(VISITS, budget=budget)


@pytest.mark.parametrize("kind", ["arrow", "table", "dictionary", "pandas", "polars"])
def test_public_tables_of_every_kind_can_be_joined(kind: str) -> None:
    import polars as pl

    wards = pa.table({"ward": ["north", "south"], "floor": [1, 2]})
    given = {
        "arrow": wards,
        "table": fast_table(wards),
        "dictionary": {"ward": ["north", "south"], "floor": [1, 2]},
        "pandas": wards.to_pandas(),
        "polars": pl.from_arrow(wards),
    }[kind]
    table = visits(public={"wards": given})
    frame = table.sql(
        "SELECT floor, COUNT(*) AS n FROM data JOIN wards ON data.ward = wards.ward GROUP BY floor", epsilon=1000
    )
    assert dict(zip(frame["floor"].tolist(), frame["n"].tolist(), strict=True)) == {1: 80, 2: 40}


def test_persons_are_not_groups() -> None:
    table = visits(unit="patient", max_rows_per_unit=3)
    for ask in (
        lambda: table.histogram("patient", values=["p1"], epsilon=1),
        lambda: table.aggregate({"n": "count"}, by=["patient"], epsilon=1, delta=1e-6),
    ):
        with pytest.raises(UnsafeQueryError, match="count_units"):
            ask()
    assert executed(table) == 0


def test_a_person_without_a_limit_is_asked_for_one() -> None:
    table = visits(unit="patient")
    with pytest.raises(ParameterError, match="choose_limit"):
        table.count(epsilon=1)
    assert table.top_k("ward", 1, epsilon=1).choices
    for wrong in (0, None, 2.5):
        with pytest.raises(CloisterError, match="max_rows_per_unit"):
            table.with_limit(wrong)  # type: ignore[arg-type]


def test_the_first_to_open_an_account_sets_its_budget() -> None:
    ledger = open_ledger("memory:")
    visits(ledger=ledger, dataset="d", budget=Budget(epsilon=1))
    assert visits(ledger=ledger, dataset="d", budget=None).remaining == Budget(epsilon=1)
    with pytest.raises(AccountMismatchError):
        visits(ledger=ledger, dataset="d", budget=Budget(epsilon=2))
    with pytest.raises(CloisterError):
        visits(ledger=ledger, dataset="new", budget=None)


# Odd data is not an error --------------------------------------------------------------------------------------------


def test_empty_groups_and_columns_of_nulls_are_answered() -> None:
    table = visits()
    frame = table.histogram("ward", epsilon=100)
    assert frame["ward"].tolist() == ["north", "south", "west"]
    assert frame["count"].tolist() == [80, 40, 0]
    assert table.count_present("empty", epsilon=100).value == 0
    assert table.sum("empty", epsilon=1000).value == pytest.approx(0, abs=1)
    assert 0 <= table.mean("empty", epsilon=1).value <= 10
    assert table.mean("empty", epsilon=100).margin() == 5
    assert 0 <= table.median("empty", epsilon=1).value <= 10
    spread = table.variance("empty", epsilon=1)
    # Half of the range squared, times n / (n - 1) for a sample: at most twice as much, where the noisy n is two.
    assert 0 <= spread.value <= 50
    nobody = table.aggregate({"n": "count", "m": ("mean", "age")}, by=["ward"], where="age > 1000", epsilon=50)
    assert nobody["n"].tolist() == [0, 0, 0]
    assert (np.abs(nobody["m"] - 50) <= 50).all()


def test_no_rows_at_all() -> None:
    table = private(VISITS.slice(0, 0), schema=SCHEMA, unit="patient", max_rows_per_unit=3)
    assert table.count(epsilon=1000).value == 0
    assert len(table.aggregate({"n": "count"}, by=["note"], epsilon=1, delta=1e-6)) == 0
    assert table.choose_limit(epsilon=1).value >= 1
    assert table.most_common("ward", epsilon=1).value in ("north", "south", "west")


def test_huge_noise_does_not_overflow() -> None:
    for options in ({}, {"unit": "patient", "max_rows_per_unit": 3}):
        table = visits(**options)
        for epsilon in ("1e-15", "1e-25", "1e-330"):
            assert isinstance(table.count(epsilon=epsilon).value, int)
            assert math.isfinite(table.sum("cost", epsilon=epsilon).value) or epsilon == "1e-330"
            assert 0 <= table.mean("age", epsilon=epsilon).value <= 100
            assert 0 <= table.std("cost", epsilon=epsilon).value <= 25
            assert 0 <= table.median("age", epsilon=epsilon).value <= 100
            assert str(table.histogram("ward", epsilon=epsilon))


def test_wide_numbers_are_summed_exactly() -> None:
    rows = pa.table({"x": pa.array([2**62, 2**62, 2**62, -3], pa.int64())})
    answer = private(rows).sum("x", bounds=(-(2**52), 2**52), epsilon=10**9)
    assert answer.value == pytest.approx(3 * 2**52, rel=1e-5)
    with pytest.raises(ParameterError, match="narrower bounds"):
        private(rows).sum("x", bounds=(-(2**62), 2**62), epsilon=1)
    reals = pa.table({"x": [1e300, -1e300, math.inf, math.nan, 5.0]})
    assert private(reals).sum("x", bounds=(-10, 10), epsilon=10**6).value == pytest.approx(15, abs=0.1)
