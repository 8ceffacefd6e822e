from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister.core.random import SeededRandomSource, SystemRandomSource
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.errors import (
    DataError,
    MissingBoundsError,
    ParameterError,
    SchemaError,
    SeededRandomnessWarning,
    UnknownColumnError,
)
from cloister.hub.domain.algorithms import Artifact
from cloister.hub.sandbox.execution import run
from cloister.hub.sandbox.run_plan import ForeignRunPlan, Slots, alone_on_this_machine, plan
from cloister.hub.sandbox.runner import BlockEnding, BlockOutcome, Runner
from cloister.hub.sandbox.sample_and_aggregate import (
    SandboxBlock,
    assign,
    category_column,
    numeric_column,
    persons_of,
    split,
)
from cloister.testing import distributions, statistics
from tests.support.foreign import unhurried_k_means, with_wall

SCHEMA = Schema(
    [
        Column(name="height", kind="numeric", bounds=(0, 10)),
        Column(name="weight", kind="numeric", bounds=(0, 10)),
        Column(name="ward", kind="nominal", categories=("a", "b", "c")),
        Column(name="patient", kind="nominal", role="identifier"),
        Column(name="free", kind="numeric"),
    ]
)


class Clock:
    """Time that passes only when somebody sleeps or a block runs."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def instant() -> Slots:
    clock = Clock()
    return Slots(1.0, clock=clock, sleep=clock.sleep)


class InProcess:
    """Runs a function here, for tests of what surrounds it."""

    def __init__(self, function: Callable[[SandboxBlock], np.ndarray[Any, Any] | None]) -> None:
        self.function = function
        self.blocks: list[SandboxBlock] = []

    def run(self, block: SandboxBlock) -> BlockOutcome:
        self.blocks.append(block)
        return BlockOutcome(values=self.function(block), ending=BlockEnding.DONE)


def centers_plan(**changes: Any) -> ForeignRunPlan:
    given: dict[str, Any] = {
        "schema": SCHEMA,
        "inputs": {"features": ["height", "weight"]},
        "epsilon": 5,
        "blocks": 20,
    }
    return plan(unhurried_k_means(), **{**given, **changes})


def three_groups(rows: int) -> pa.Table:
    middles = np.array([[2.0, 2.0], [5.0, 8.0], [8.0, 3.0]])
    spread = (np.arange(rows)[:, None] * np.sqrt([2.0, 3.0]) % 1.0) - 0.5
    points = middles[np.arange(rows) % 3] + spread
    return pa.table({"height": points[:, 0], "weight": points[:, 1]})


def test_k_means_finds_the_groups_through_the_sandbox() -> None:
    planned = centers_plan(epsilon=40)
    with Runner(unhurried_k_means()) as runner:
        answer = run(planned, three_groups(3000), runner=runner, slots=instant())
    assert planned.margins(1 - 1e-9)["centers"].max() < 2.0
    expected = np.array([[2.0, 2.0], [5.0, 8.0], [8.0, 3.0]])
    off = np.abs(answer.values["centers"] - expected)
    assert (off <= planned.margins(1 - 1e-10)["centers"] + 0.1).all()
    assert answer.guarantee.holds
    assert "cannot tell each other" in answer.guarantee.explain()
    assert json.loads(json.dumps(answer.to_dict()))["schema"] == "cloister.foreign_answer/1"
    assert str(answer).startswith("k-means 1.0.0: centers [3, 2] from 20 blocks, epsilon = 40 per row")


def test_a_run_charges_one_event_to_the_ledger() -> None:
    ledger = cl.open_ledger("memory:")
    planned = centers_plan(epsilon="1/2")
    ledger.open_account("d", budget=cl.Budget(epsilon=1))
    ledger.spend("d", guarantee=planned.guarantee, event=planned.event, purpose="k-means 1.0.0")
    assert ledger.remaining("d").epsilon == Fraction(1, 2)


def test_every_row_is_in_exactly_one_block() -> None:
    runner = InProcess(lambda block: None)
    run(centers_plan(), three_groups(500), runner=runner, slots=instant())
    assert len(runner.blocks) == 20
    seen = np.concatenate([block.inputs["features"] for block in runner.blocks])
    table = three_groups(500)
    expected = np.column_stack([table["height"], table["weight"]])
    assert sorted(map(tuple, seen)) == sorted(map(tuple, expected))


def test_all_rows_of_a_person_are_in_one_block() -> None:
    names = [f"p{number % 40}" for number in range(400)]
    codes = persons_of(pa.chunked_array([names[:100], names[100:]]))
    owners = assign(codes, 7, SystemRandomSource())
    for name in set(names):
        assert len({int(owner) for owner, other in zip(owners, names, strict=True) if other == name}) == 1
    assert len(set(owners.tolist())) > 1


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([["a", None, "b", None, "a"]]),
        pa.chunked_array([["a", None], ["b", None, "a"]]).dictionary_encode(),
        pa.chunked_array([[7, None, 9, None, 7]]),
    ],
)
def test_persons_are_told_apart_and_missing_ones_are_together(column: pa.ChunkedArray) -> None:
    codes = persons_of(column).tolist()
    assert codes[0] == codes[4]
    assert codes[1] == codes[3]
    assert len(set(codes)) == 3
    assert min(codes) >= 0


def test_persons_are_not_named_by_floats() -> None:
    with pytest.raises(DataError, match="whole numbers or text"):
        persons_of(pa.chunked_array([[0.5]]))


@pytest.mark.statistical
def test_blocks_are_drawn_uniformly() -> None:
    drawn = assign(50_000, 10, SystemRandomSource())
    statistics.check_distribution(drawn, distributions.categorical(dict.fromkeys(range(10), 0.1)))


def test_blocks_without_rows_run_too() -> None:
    parts = list(split({"x": np.zeros((2, 1))}, np.array([3, 3]), 5))
    assert [len(part["x"]) for part in parts] == [0, 0, 0, 2, 0]


def test_what_blocks_return_is_forced_into_the_declared_box() -> None:
    runner = InProcess(lambda block: np.full(6, 1e300))
    answer = run(centers_plan(epsilon=1000), three_groups(10), runner=runner, slots=instant())
    assert answer.values["centers"].max() <= 10.0
    silent = run(centers_plan(epsilon=1000), three_groups(10), runner=InProcess(lambda _: None), slots=instant())
    np.testing.assert_allclose(silent.values["centers"], 5.0, atol=1.0)


def test_a_seed_taints_the_promise() -> None:
    with pytest.warns(SeededRandomnessWarning):
        answer = run(
            centers_plan(), three_groups(10), runner=InProcess(lambda _: None), slots=instant(), random_state=1
        )
    assert not answer.guarantee.holds


# Time ---------------------------------------------------------------------


@pytest.mark.parametrize("durations", [[0.0, 0.0, 0.0], [0.9, 0.1, 0.5], [0.999, 0.999, 0.999]])
def test_blocks_start_at_fixed_times_however_long_others_take(durations: list[float]) -> None:
    clock = Clock()
    starts = []
    for number in Slots(1.0, clock=clock, sleep=clock.sleep).each(3):
        starts.append(clock.now)
        clock.now += durations[number]
    assert starts == [100.0, 101.0, 102.0]
    assert clock.now == 103.0


def test_an_overrun_costs_whole_slots() -> None:
    clock = Clock()
    starts = []
    for _ in Slots(1.0, clock=clock, sleep=clock.sleep).each(2):
        starts.append(clock.now)
        clock.now += 2.5
    assert starts == [100.0, 103.0]
    assert clock.now == 106.0


def test_a_plan_says_how_long_a_run_takes() -> None:
    assert centers_plan().seconds == 20 * (60 + Fraction(1, 4))


def test_one_foreign_algorithm_at_a_time() -> None:
    import fcntl
    import os
    import tempfile
    from pathlib import Path

    path = Path(tempfile.gettempdir()) / f"cloister-sandbox-{os.getuid()}.lock"
    with alone_on_this_machine(), path.open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


# Columns ------------------------------------------------------------------


def test_numbers_are_clamped_and_gaps_are_undefined() -> None:
    column = pa.chunked_array([[1.0, None, 99.0, float("nan"), -99.0, float("inf")]])
    np.testing.assert_array_equal(numeric_column(column, (0.0, 10.0)), [1.0, np.nan, 10.0, np.nan, 0.0, 10.0])
    assert numeric_column(pa.chunked_array([[True, False]]), (0.0, 1.0)).tolist() == [1.0, 0.0]
    with pytest.raises(DataError, match="numeric columns"):
        numeric_column(pa.chunked_array([["a"]]), (0.0, 1.0))


def test_categories_become_places() -> None:
    column = pa.chunked_array([["b", None, "z", "a"]])
    np.testing.assert_array_equal(category_column(column, ("a", "b")), [1.0, np.nan, np.nan, 0.0])
    np.testing.assert_array_equal(category_column(column.dictionary_encode(), ("a", "b")), [1.0, np.nan, np.nan, 0.0])
    with pytest.raises(DataError, match="categories"):
        category_column(pa.chunked_array([[1, 2]]), ("a", "b"))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match='"weight"'):
        run(centers_plan(), pa.table({"height": [1.0]}), runner=InProcess(lambda _: None), slots=instant())


# Plans --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"inputs": {"features": ["hight", "weight"]}}, UnknownColumnError, "Did you mean"),
        ({"inputs": {"features": ["free"]}}, MissingBoundsError, "no bounds"),
        ({"inputs": {"features": ["ward"]}}, SchemaError, "numeric columns"),
        ({"inputs": {"features": []}}, ParameterError, "1 to 6 columns"),
        ({"inputs": {"features": ["height", "height"]}}, ParameterError, "twice"),
        ({"inputs": {"feature": ["height"]}}, ParameterError, 'no input "feature"'),
        ({"parameters": {"groups": 99}}, ParameterError, "from 1 to 8"),
        ({"parameters": {"k": 3}}, ParameterError, "no parameter"),
        ({"epsilon": None}, ParameterError, "needs epsilon"),
        ({"epsilon": 0}, ParameterError, "above 0"),
        ({"delta": 1e-6}, ParameterError, "no delta"),
        ({"blocks": 3}, ParameterError, "10 to 200 blocks"),
        ({"adjacency": "user"}, ParameterError, "names them"),
        ({"adjacency": "edge"}, ParameterError, "rows or persons"),
        ({"key": "nobody"}, UnknownColumnError, "nobody"),
    ],
)
def test_what_cannot_be_planned(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        centers_plan(**changes)


def test_a_guessed_bound_is_refused() -> None:
    guessed = Schema([Column(name="height", kind="numeric", bounds=(0, 10), guessed=("bounds",))])
    with pytest.raises(SchemaError, match="guesses"):
        centers_plan(schema=guessed, inputs={"features": ["height"]})


def test_a_person_is_protected_under_the_name_of_the_key() -> None:
    planned = centers_plan(key="patient")
    assert str(planned.guarantee.adjacency) == "user"
    assert planned.guarantee.unit == "patient"
    assert planned.needed_columns == ("height", "weight", "patient")
    assert json.loads(json.dumps(planned.to_dict()))["seconds"] == 1205.0


COUNTS = """
schema: cloister.algorithm/1
id: shares
version: 1.0.0
title: Shares of categories
author: A
license: MIT
entrypoint: shares:count
inputs: {group: {kind: category}}
outputs:
  shares: {shape: [3], norm: {l1: 1}}
  middle: {shape: [], bounds: [0, 2]}
resources: {wall_seconds: 1}
privacy: {contract: sample_and_aggregate, epsilon: 50, blocks: {default: 30, fewest: 2, most: 100}}
"""
SHARES = b"""
import numpy as np
def count(inputs, parameters, bounds):
    codes = inputs["group"][:, 0]
    found = np.bincount(codes[~np.isnan(codes)].astype(int), minlength=3)
    return {"shares": found / found.sum(), "middle": float(np.nanmedian(codes))}
"""


@pytest.fixture(scope="module")
def shares() -> Iterator[tuple[Artifact, Runner]]:
    artifact = with_wall(Artifact.from_files({"manifest.yaml": COUNTS.encode(), "shares.py": SHARES}), 60)
    with Runner(artifact) as runner:
        yield artifact, runner


def test_categories_and_norms_through_the_sandbox(shares: tuple[Artifact, Runner]) -> None:
    artifact, runner = shares
    planned = plan(artifact, schema=SCHEMA, inputs={"group": ["ward"]}, key="patient", blocks=20)
    table = pa.table({"ward": ["a", "a", "b", "c"] * 1000, "patient": list(range(4000))})
    answer = run(planned, table, runner=runner, slots=instant())
    margin = planned.margins(1 - 1e-10)
    assert margin["shares"].shape == (3,)
    assert (np.abs(answer.values["shares"] - [0.5, 0.25, 0.25]) <= margin["shares"] + 0.05).all()
    assert answer.values["middle"].shape == ()
    assert planned.layout.l1 == 3 * 2**20


def test_a_declared_price_is_fixed(shares: tuple[Artifact, Runner]) -> None:
    with pytest.raises(ParameterError, match="fixed epsilon of 50"):
        plan(shares[0], schema=SCHEMA, inputs={"group": ["ward"]}, epsilon=2)


def test_a_hung_sandbox_is_replaced(shares: tuple[Artifact, Runner]) -> None:
    artifact, _ = shares
    planned = plan(artifact, schema=SCHEMA, inputs={"group": ["ward"]})
    block = SandboxBlock(
        inputs={"group": np.zeros((3, 1))},
        parameters={},
        bounds=planned.bounds,
        outputs=(("shares", (3,)), ("middle", ())),
        entrypoint="shares:count",
    )
    with Runner(artifact) as runner:
        assert runner._process is not None
        runner._process.kill()
        assert runner.run(block).values is None
        assert runner.run(block).values is not None


def test_the_seeded_source_repeats_blocks() -> None:
    first, second = (assign(50, 5, SeededRandomSource(3)) for _ in range(2))
    assert first.tolist() == second.tolist()
