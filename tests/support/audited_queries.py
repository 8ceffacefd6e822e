"""Every kind of private query, and some done wrongly, with the neighbors on which they are audited.

Each query is asked a few hundred times at epsilon 1 on two small tables that differ in one row, or in one person,
chosen so that the answer moves as far as it can. The exact numbers inside do not change between the repeats and are
computed once; the noise is drawn afresh each time, and no budget is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from cloister.accounting.budget import Budget
from cloister.attacks import AttackResult, AuditDetails, audit_dp
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.queries import PrivateTable
from cloister.queries._exact_core import ExactCore
from cloister.queries._uncertainty import LaplaceNoise

SAMPLES = 200

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "person": {"role": "identifier"},
            "age": {"role": "quasi", "kind": "numeric", "bounds": [0, 100]},
            "city": {"role": "quasi", "kind": "nominal", "categories": ["a", "b", "c"]},
            "region": {"role": "quasi", "kind": "nominal"},
            "north": {"role": "quasi", "kind": "numeric", "bounds": [0, 10]},
        }
    }
)

Rows = list[dict[str, Any]]


def row(person: str, age: int | None, city: str = "a", region: str = "west") -> dict[str, Any]:
    return {"person": person, "age": age, "city": city, "region": region, "north": 5.0}


OTHERS = [row(f"p{i}", 100 * (i % 2), "ab"[i % 2]) for i in range(6)]
ONE_ROW = row("x", 100, "c", "east")
ROWS = ([*OTHERS, ONE_ROW], OTHERS)
REPLACED = ([*OTHERS, ONE_ROW], [*OTHERS, row("y", 0)])
PERSONS = ([*OTHERS, *[ONE_ROW] * 30], OTHERS)
VOTES = ([*OTHERS, row("x", 100, "a")], OTHERS)


class Forgetful:
    """A ledger without a memory: an audit asks more than any budget allows."""

    budget: Budget

    def open_account(self, _dataset: str, *, budget: Budget, **_: Any) -> None:
        self.budget = budget

    def account(self, _dataset: str) -> Any:
        return SimpleNamespace(budget=self.budget)

    def spend(self, _dataset: str, *, guarantee: Any, **_: Any) -> Any:
        return SimpleNamespace(cost=self.budget.cost_of(guarantee))

    def store_answer(self, *_: Any, **__: Any) -> None:
        pass


def private(rows: Rows, **options: Any) -> PrivateTable:
    """Return a private table that asks its engine each question once."""
    table = open_table(pa.Table.from_pylist(rows), schema=SCHEMA)
    engine, known = table.engine, dict[str, Any]()
    run = engine._run

    def run_once(sql: str) -> Any:
        if sql not in known:
            known[sql] = run(sql)
        return known[sql]

    engine._run = run_once
    budget = Budget(epsilon=10**9, delta=Fraction(1, 2))
    return PrivateTable(table, dataset="audit", budget=budget, ledger=Forgetful(), **options)


@contextmanager
def counted_once() -> Iterator[None]:
    """Compute the exact numbers of the same question about the same table once, for a while."""
    known: dict[Any, Any] = {}

    def once(count: Callable[..., Any]) -> Callable[..., Any]:
        def counted(core: ExactCore, *asked: Any) -> Any:
            of = [tuple(item) if isinstance(item, list) else item for item in asked]
            rows, keys = core._question.rows, core._question.keys
            key = (count, id(core._engine), rows, keys, core._contribution, core._reach, *of)
            if key not in known:
                # The engine is kept as well, so that no later one has its identity.
                known[key] = core._engine, count(core, *asked)
            return known[key][1]

        return counted

    with ExitStack() as stack:
        for count in (ExactCore.cells, ExactCore.ranks, ExactCore.units):
            stack.enter_context(patch.object(ExactCore, count.__name__, once(count)))
        yield


@dataclass(frozen=True)
class Case:
    """A query, and the neighbors on which it is audited."""

    name: str
    ask: Callable[[PrivateTable], Any]
    rows: tuple[Rows, Rows] = ROWS
    options: dict[str, Any] = field(default_factory=dict)
    delta: Fraction = Fraction(0)
    samples: int = SAMPLES

    @cached_property
    def neighbors(self) -> tuple[PrivateTable, PrivateTable]:
        first, second = (private(rows, **self.options) for rows in self.rows)
        return first, second

    def audit(self) -> AttackResult[AuditDetails]:
        """Return the audit of a claim of epsilon 1, which refutes a right query once in 1e9 runs."""
        with counted_once():
            return audit_dp(
                self.ask,
                self.neighbors,
                epsilon=1,
                delta=self.delta,
                mode="statistical",
                samples=self.samples,
                confidence=1 - 1e-9,
            )


PRICE: dict[str, Any] = {"epsilon": 1, "fresh": True}
SLACK = Fraction(1, 100)
LOOSE: dict[str, Any] = {**PRICE, "delta": SLACK}
COUNT = {"n": "count"}
COUNT_AND_SUM = {"n": "count", "s": ("sum", "age")}
REPLACE: dict[str, Any] = {"adjacency": "replace"}
BY_PERSON: dict[str, Any] = {"unit": "person", "max_rows_per_unit": 2}

CASES = (
    Case("count", lambda table: table.count(**PRICE)),
    Case("count where", lambda table: table.count("age > 50", **PRICE)),
    Case("count with Gaussian noise", lambda table: table.count(noise="gaussian", delta=SLACK, **PRICE), delta=SLACK),
    Case("count present", lambda table: table.count_present("age", **PRICE)),
    Case("count distinct", lambda table: table.count_distinct("city", **PRICE)),
    Case("sum", lambda table: table.sum("age", **PRICE)),
    Case("mean", lambda table: table.mean("age", **PRICE)),
    Case(
        "mean of a public size",
        lambda table: table.mean("age", **PRICE),
        REPLACED,
        {"adjacency": "replace", "public_size": 7},
    ),
    Case("mean of an attested size", lambda table: table.mean("age", **PRICE), options={"min_size": 5}),
    Case("mean within", lambda table: table.mean("age", within=(20, 80), **PRICE), options={"min_size": 5}),
    Case("variance", lambda table: table.variance("age", **PRICE)),
    Case("median", lambda table: table.median("age", **PRICE)),
    Case("quantiles", lambda table: table.quantiles("age", [0.25, 0.75], **PRICE)),
    Case("minimum", lambda table: table.min("age", **PRICE)),
    Case("maximum", lambda table: table.max("age", **PRICE)),
    Case("histogram", lambda table: table.histogram("city", **PRICE)),
    Case("histogram of replaced rows", lambda table: table.histogram("city", **PRICE), REPLACED, REPLACE),
    Case("histogram in bins", lambda table: table.histogram("age", bins=[0, 50, 101], **PRICE)),
    Case("histogram of two", lambda table: table.histogram_2d(("city", "age"), bins={"age": [0, 50, 101]}, **PRICE)),
    Case("grid", lambda table: table.grid("north", "age", box=((0, 10), (0, 101)), cells=(2, 2), **PRICE)),
    Case("public groups", lambda table: table.aggregate(COUNT_AND_SUM, by=["city"], **PRICE)),
    Case("groups chosen privately", lambda table: table.aggregate(COUNT, by=["region"], **LOOSE), delta=SLACK),
    Case("top k", lambda table: table.top_k("city", 2, **PRICE), VOTES),
    Case("vote", lambda table: table.vote("city", **PRICE), VOTES),
    Case("count of a person's rows", lambda table: table.count(**PRICE), PERSONS, BY_PERSON),
    Case("count of truncated rows", lambda table: table.count(**PRICE), PERSONS, {**BY_PERSON, "bounding": "truncate"}),
    Case("sum of sampled rows", lambda table: table.sum("age", **PRICE), PERSONS, {**BY_PERSON, "bounding": "sample"}),
    Case("count of persons", lambda table: table.count_units(**PRICE), PERSONS, BY_PERSON),
    Case(
        "a person's rows in public groups",
        lambda table: table.aggregate(COUNT_AND_SUM, by=["city"], **PRICE),
        PERSONS,
        BY_PERSON,
    ),
    Case(
        "a person's rows in groups chosen privately",
        lambda table: table.aggregate(COUNT, by=["region"], **LOOSE),
        PERSONS,
        BY_PERSON,
        delta=SLACK,
    ),
    Case("limit on rows", lambda table: table.choose_limit(highest=8, **PRICE), PERSONS, BY_PERSON),
    Case("sql count", lambda table: table.sql("SELECT COUNT(*) AS n FROM data WHERE age > 50", **PRICE)),
    Case(
        "sql in public groups",
        lambda table: table.sql("SELECT city, COUNT(*) AS n, AVG(age) AS age FROM data GROUP BY city", **PRICE),
    ),
    Case(
        "sql in groups chosen privately",
        lambda table: table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region ORDER BY n DESC", **LOOSE),
        delta=SLACK,
    ),
    Case(
        "sql about persons",
        lambda table: table.sql("SELECT SUM(age) AS total, COUNT(DISTINCT person) AS n FROM data", **PRICE),
        PERSONS,
        BY_PERSON,
    ),
)


@cache
def _regions(table: PrivateTable) -> list[str]:
    return sorted(set(table._table.to_arrow()["region"].to_pylist()))


def _with_groups_of_the_data(table: PrivateTable) -> Any:
    return table.aggregate(COUNT, by=["region"], keys={"region": _regions(table)}, **PRICE)


ENOUGH = 500
"""So many samples that none is missed by chance: the least epsilon that dozens of audits proved was 1.8, not 1."""

BROKEN = (
    Case("no limit on a person's rows", lambda table: table.count(**PRICE), PERSONS, samples=ENOUGH),
    Case("groups taken from the data", _with_groups_of_the_data, samples=ENOUGH),
    Case(
        "repeats at no price",
        lambda table: [table.count(epsilon=4, fresh=True).value for _ in range(5)],
        samples=ENOUGH,
    ),
    Case(
        "a vote at twenty times the price", lambda table: table.vote("city", epsilon=20, fresh=True), VOTES, samples=800
    ),
)

HALVED = (
    Case("count", lambda table: table.count(**PRICE), samples=3_000),
    Case("histogram", lambda table: table.histogram("city", **PRICE), samples=3_000),
)
"""To be audited inside of `half_the_noise`."""


@contextmanager
def half_the_noise() -> Iterator[None]:
    """Halve the scale of all Laplace noise, for a while."""
    right = LaplaceNoise.scale
    LaplaceNoise.scale = property(lambda noise: noise.sensitivity / noise.epsilon / 2)  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        LaplaceNoise.scale = right  # type: ignore[method-assign]
