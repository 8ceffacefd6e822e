"""The price and the error before anything is paid."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from cloister import Budget
from cloister.errors import ParameterError
from cloister.queries._aggregates import CountRows
from cloister.queries.preview import Preview, preview
from tests.queries.tables import executed, visits

QUERY = "SELECT ward, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY ward"
KINDS = {
    "counts": "SELECT COUNT(*), COUNT(age), COUNT(DISTINCT patient) FROM data",
    "sums": "SELECT SUM(age), SUM(cost) FROM data",
    "means": "SELECT AVG(age), VARIANCE(cost), STDDEV(cost) FROM data",
    "ranks": "SELECT MEDIAN(age), MIN(age), MAX(age), COUNT(*) FROM data",
}


def test_a_preview_costs_nothing_and_reads_nothing() -> None:
    table = visits(budget=Budget(epsilon=1))
    for query in (*KINDS.values(), QUERY):
        for wanted in ({"epsilon": 0.5}, {"epsilon": 5}, {"epsilon": 0.5, "delta": 1e-6}):
            found = table.preview(query, **wanted)
            assert isinstance(found, Preview)
            assert found.is_affordable == (wanted["epsilon"] < 1 and not found.cost.delta)
            assert str(found)
            assert json.dumps(found.to_dict())
    assert table.remaining == Budget(epsilon=1)
    assert len(table.ledger.entries("data")) == 1
    assert executed(table) == 0


def test_the_forecast_of_counts_and_sums_is_the_margin_of_the_answer() -> None:
    table = visits()
    found = table.preview("SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM data GROUP BY ward", epsilon=0.5)
    frame = table.aggregate({"n": "count", "s": ("sum", "cost")}, by=["ward"], epsilon=0.5)
    assert found.groups == 3
    assert found.margin("n") == frame.margin()["n"][0]
    assert found.margin("s") == frame.margin()["s"][0]
    assert found.margin() == found.margin("n")
    assert found.epsilon == 0.5
    with pytest.raises(ParameterError, match="n, s"):
        found.margin("sum of age")


def test_the_forecast_of_a_mean_is_near_the_margin_of_the_answer() -> None:
    table = visits()
    found = table.preview("SELECT AVG(cost) FROM data", epsilon=5, rows=120)
    margins = [table.mean("cost", epsilon=5, fresh=True).margin() for _ in range(20)]
    assert float(np.median(margins)) <= found.margin() <= 3 * float(np.median(margins))  # at the worst place
    assert [item.rows for item in table.preview("SELECT AVG(cost) FROM data", epsilon=5).forecasts] == [
        100,
        1_000,
        10_000,
    ]


@pytest.mark.parametrize("kind", ["counts", "sums", "means"])
def test_more_epsilon_or_more_rows_never_mean_more_error(kind: str) -> None:
    table = visits(unit="patient", max_rows_per_unit=3)
    amounts = [0.01, 0.1, 0.5, 1, 3, 10]
    found = [[item.margin for item in table.preview(KINDS[kind], epsilon=amount).forecasts] for amount in amounts]
    for smaller, larger in pairwise(found):
        assert all(more <= less + 1e-9 for less, more in zip(smaller, larger, strict=True))
    if kind == "means":
        by_rows = [table.preview(KINDS[kind], epsilon=1, rows=rows).margin() for rows in (10, 100, 1000, 10**5)]
        assert by_rows == sorted(by_rows, reverse=True)


@pytest.mark.parametrize(
    ("query", "error"),
    [("COUNT(*)", 3), ("COUNT(*)", 40), ("SUM(cost)", 0.5), ("SUM(cost)", 40), ("AVG(age)", 0.5), ("AVG(age)", 20)],
)
def test_the_price_of_an_error_buys_it_and_a_lower_one_does_not(query: str, error: float) -> None:
    table = visits()
    found = table.preview(f"SELECT {query} FROM data", error=error, rows=500)
    assert found.margin() <= error
    assert table.preview(f"SELECT {query} FROM data", epsilon=found.epsilon, rows=500).margin() <= error
    assert table.preview(f"SELECT {query} FROM data", epsilon=found.epsilon * 0.97, rows=500).margin() > error
    assert len(f"{found.epsilon:g}".replace("0.", "").replace(".", "").lstrip("0")) <= 3


def test_errors_that_no_price_buys_are_refused() -> None:
    table = visits()
    for wanted, words in (
        ({"error": 1e-9}, "more rows"),
        ({"error": 1, "epsilon": 1}, "leave epsilon out"),
        ({"error": 0}, "error"),
        ({}, "epsilon=0.1"),
        ({"epsilon": 1, "rows": 0}, "rows"),
        ({"epsilon": 1, "confidence": 2}, "confidence"),
    ):
        with pytest.raises(ParameterError, match=words):
            table.preview("SELECT SUM(cost) FROM data", **wanted)
    with pytest.raises(ParameterError, match="rows=1000"):
        table.preview("SELECT AVG(cost) FROM data", error=1)
    with pytest.raises(ParameterError, match="preview it at a price"):
        table.preview("SELECT MEDIAN(age) FROM data", error=1)


def test_ranks_are_forecast_in_words() -> None:
    found = visits().preview(KINDS["ranks"], epsilon=1)
    notes = [item.note for item in found.forecasts if math.isnan(item.margin)]
    assert len(notes) == 3
    assert all("rows in rank" in note for note in notes)
    assert "within" in str(found)


def test_groups_that_are_chosen_privately_are_previewed() -> None:
    found = visits().preview("SELECT note, COUNT(*) AS n FROM data GROUP BY note", epsilon=1, delta=1e-6)
    assert found.groups is None
    assert "in each group that is chosen" in str(found)


def test_a_preview_in_rho_and_of_persons() -> None:
    table = visits(budget=Budget(rho=1), unit="patient", max_rows_per_unit=2)
    found = table.preview("SELECT COUNT(*), COUNT(DISTINCT patient) FROM data", rho=0.1)
    assert found.cost == Budget(rho=0.1)
    assert found.epsilon is None
    assert found.margin("COUNT(*)") > found.margin("COUNT(DISTINCT patient)")


def test_a_question_can_be_previewed_without_a_table() -> None:
    table: Any = visits()
    question = table._question([CountRows()], None)
    found = preview(question, table._contribution, remaining=Budget(epsilon=1), error=10, confidence=0.99)
    assert found.confidence == 0.99
    assert 0.3 < found.epsilon < 0.7
