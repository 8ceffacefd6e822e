"""Every kind of query on hostile rows and extreme settings: no row decides whether it fails, warns or ends otherwise.

The second wall is held open, so that a failure shows: none may need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

from cloister import Budget, PrivateTable
from cloister.accounting import show_failures
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.queries._aggregates import AggregateOperand, aggregates
from cloister.testing.hostile import EXTREME_BOUNDS, HostileColumn, NeighborPair, check_alike, hostile_pairs
from tests.support.thoroughness import examples, is_thorough

COLUMNS = (
    HostileColumn("person", "integer", low=1, high=3),
    HostileColumn("age", "real", low=0.0, high=110.0),
    HostileColumn("sex", "text", values=("F", "M")),
    HostileColumn("seen", "boolean", values=(True, False)),
    HostileColumn("note", "text", values=("a", "b")),
)
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "person": {"role": "identifier", "kind": "nominal"},
            "age": {"kind": "numeric", "bounds": [0, 110]},
            "sex": {"kind": "nominal", "categories": ["F", "M"]},
            "seen": {"kind": "nominal", "categories": [True, False]},
            "note": {"kind": "nominal"},
        }
    }
)
FEW = examples(5, usual=2)
PAIRS = hostile_pairs(COLUMNS, most=FEW)
ENDS = PAIRS if is_thorough() else [NeighborPair("no rows, and every odd row", PAIRS[0].first, PAIRS[1].first)]
"""For the many kinds of query usually the two ends of a way from neighbor to neighbor."""

Ask = Callable[[PrivateTable, dict[str, Any]], Any]
KINDS: dict[str, Ask] = {
    "CountRows": lambda t, price: t.count("age >= 50 AND sex = 'F'", **price),
    "CountUnits": lambda t, price: t.count_units(**price),
    "CountPresent": lambda t, price: t.count_present("age", **price),
    "CountDistinct": lambda t, price: t.count_distinct("sex", **price),
    "Total": lambda t, price: t.sum("age", **price),
    "Mean": lambda t, price: t.mean("age", **price),
    "Variance": lambda t, price: t.variance("age", **price),
    "StandardDeviation": lambda t, price: t.std("age", **price),
    "Quantile": lambda t, price: t.quantile("age", 0.9, **price),
    "Extreme": lambda t, price: (t.min("age", **price), t.max("age", **price)),
    "histogram": lambda t, price: t.histogram("age", bins=[0, 18, 65, 110], **price),
    "two columns": lambda t, price: t.histogram_2d(("sex", "seen"), **price),
    "public groups": lambda t, price: t.sql(
        "SELECT sex, COUNT(*) AS n, AVG(age) AS m, SUM(age) AS s FROM data GROUP BY sex", **price
    ),
    "public groups under a condition": lambda t, price: t.sql(
        "SELECT seen, COUNT(DISTINCT sex) AS n FROM data WHERE age BETWEEN 0 AND 1e300 OR sex LIKE '%x' GROUP BY seen",
        **price,
    ),
    "arithmetic": lambda t, price: t.sql(
        "SELECT SUM(CASE WHEN sex = 'F' THEN age * age + 1 END) AS s FROM data", **price
    ),
}


def named(kind: str) -> Ask:
    """Return the question for an aggregate by its registered name."""
    found = aggregates.get(kind)
    column = {AggregateOperand.ROWS: (), AggregateOperand.VALUE: ("sex",), AggregateOperand.NUMBER: ("age",)}[
        found.operand
    ]
    return lambda t, price: t.aggregate({"m": (kind, *column, *found.examples)}, by=["seen"], **price)


KINDS |= {f"{kind} in groups": named(kind) for kind in aggregates}
PURE: dict[str, Ask] = {
    "choice": lambda t, price: t.top_k("sex", 1, **price),
    "choice under a condition": lambda t, price: t.top_k("sex", 2, where="age > 1", **price),
}
PRIVATE_GROUPS: dict[str, Ask] = {
    "groups of texts": lambda t, price: t.sql("SELECT note, COUNT(*) AS n FROM data GROUP BY note", **price),
    "groups of numbers": lambda t, price: t.aggregate({"n": "count", "m": ("mean", "age")}, by=["age"], **price),
}

ROW: dict[str, Any] = {"unit": "row"}
UNITS: dict[str, dict[str, Any]] = {
    "row": ROW,
    "replaced row": {"unit": "row", "adjacency": "replace"},
    "person": {"unit": "person", "max_rows_per_unit": 2},
    "first rows of a person": {"unit": "person", "max_rows_per_unit": 1, "bounding": "truncate", "order_by": "age"},
    "groups of a person": {"unit": "person", "max_rows_per_unit": 3, "max_groups_per_unit": 1, "max_rows_per_group": 1},
}
PRICES: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1},
    "next to nothing": {"epsilon": 1e-9},
    "dear": {"epsilon": 10**6},
    "approximate": {"epsilon": 1, "delta": 1e-6},
    "concentrated": {"rho": 1e-9},
}


def shown(answer: Any) -> str:
    """Return what shows of an answer besides its numbers."""
    if isinstance(answer, tuple):
        return " ".join(map(shown, answer))
    columns = [column.name for column in answer.columns] if hasattr(answer, "columns") else ""
    return f"{type(answer).__name__} {answer.guarantee.brief()} {answer.cost} {columns} {answer.notes}"


OPENED: dict[int, Table] = {}


def opened(rows: pa.Table) -> Table:
    """Return rows of a pair as a table; opening takes as long as asking, and every kind of question asks them all."""
    if id(rows) not in OPENED:
        OPENED[id(rows)] = open_table(rows, schema=SCHEMA)
    return OPENED[id(rows)]


def drive(ask: Ask, unit: dict[str, Any], price: dict[str, Any], pairs: Sequence[NeighborPair] = PAIRS) -> int:
    budget = Budget(rho=10**3, delta=0.5) if "rho" in price else Budget(epsilon=10**9, delta=0.5)

    def run(rows: pa.Table) -> str:
        with show_failures():
            table = PrivateTable(opened(rows), budget=budget, **unit)
            return shown(ask(table, price))

    report = check_alike(run, pairs)
    assert not report.refused, report.behavior
    return report.pairs


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_decides_how_a_query_ends(kind: str) -> None:
    # Every unit with the price at its place: all of both, and not all pairs of them.
    tried = [drive(KINDS[kind], UNITS[unit], PRICES[price], ENDS) for unit, price in zip(UNITS, PRICES, strict=True)]
    assert sum(tried) == len(ENDS) * len(UNITS)


@pytest.mark.parametrize("kind", PURE)
def test_no_row_decides_how_a_choice_ends(kind: str) -> None:
    tried = [drive(PURE[kind], ROW, PRICES[price]) for price in ("pure", "next to nothing", "dear")]
    assert sum(tried) == FEW * 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", PRIVATE_GROUPS)
def test_no_row_decides_how_groups_are_chosen(kind: str) -> None:
    # The groups themselves are the answer; everything else must be alike.
    prices = ({"epsilon": 1e-6, "delta": 1e-9}, {"epsilon": 1, "delta": 1e-6})
    tried = [
        drive(PRIVATE_GROUPS[kind], UNITS[unit], price) for unit in ("row", "groups of a person") for price in prices
    ]
    assert sum(tried) == FEW * 4


@pytest.mark.parametrize("bounds", EXTREME_BOUNDS)
def test_no_row_decides_how_a_query_with_extreme_bounds_ends(bounds: tuple[float, float]) -> None:
    column = HostileColumn("size", "real", low=bounds[0], high=bounds[1])
    schema = Schema.from_dict({"columns": {"size": {"kind": "numeric", "bounds": list(bounds)}}})
    pairs = hostile_pairs([column], most=FEW)

    def run(rows: pa.Table) -> list[str]:
        seen, source = [], open_table(rows, schema=schema)
        for ask in (PrivateTable.sum, PrivateTable.mean, PrivateTable.variance, PrivateTable.median):
            table = PrivateTable(source, budget=Budget(epsilon=10**9))
            try:
                with show_failures():
                    seen.append(shown(ask(table, "size", epsilon=1)))
            except Exception as error:  # noqa: BLE001  # a refusal must be one for all tables
                seen.append(f"{type(error).__name__} {error}")
        return seen

    assert check_alike(run, pairs).pairs == FEW
    answers = run(pairs[0].first)
    refused = [answer.startswith("ParameterError") for answer in answers]
    # Beyond the steps on which sums are exact, all questions are refused; else all are answered.
    assert refused == [bounds in {(-1e150, 1e150), (0.0, 1e-150)}] * len(answers)
