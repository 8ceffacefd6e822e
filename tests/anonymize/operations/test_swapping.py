from __future__ import annotations

import datetime as dt
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.anonymize.operations import Swap, SwapRecords
from cloister.anonymize.operations.swapping import rank_partners
from cloister.core.random import random_source
from cloister.errors import CloisterError, DataError
from cloister.testing import check_distribution, distributions, statistics
from tests.anonymize.operations.helpers import transformed

values = st.lists(st.tuples(st.none() | st.integers(-5, 5), st.sampled_from("ab")), max_size=40)


@given(values, st.integers(1, 100))
def test_values_within_a_stratum_stay_the_same(rows: list[tuple[int | None, str]], percent: int) -> None:
    numbers, groups = [row[0] for row in rows], [row[1] for row in rows]
    after = transformed(
        Swap("v", percent=percent, within=["g"]), v=pa.array(numbers, pa.int64()), g=pa.array(groups, pa.string())
    )
    assert after["g"] == groups
    before = Counter(zip(groups, numbers, strict=True))
    assert Counter(zip(groups, after["v"], strict=True)) == before
    assert [value is None for value in after["v"]] == [value is None for value in numbers]


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=60), st.integers(1, 100))
def test_partners_are_mutual_and_near_in_rank(strata: list[int], percent: int) -> None:
    groups = np.array(strata)
    order = np.arange(len(groups))[::-1].astype(float)
    partners = rank_partners(order, groups, Fraction(percent), random_source(None))
    assert np.array_equal(partners[partners], np.arange(len(groups)))
    assert np.array_equal(groups[partners], groups)
    for group in set(strata):
        members = np.flatnonzero(groups == group)
        rank = {row: place for place, row in enumerate(members[np.argsort(order[members])])}
        allowed = percent * len(members) / 100
        assert all(abs(rank[row] - rank[partners[row]]) <= allowed for row in members)


@pytest.mark.statistical
def test_every_near_partner_is_possible_and_the_whole_range_is_a_uniform_matching() -> None:
    count = 20_000
    found = []
    for _ in range(count // 100):
        order = np.tile(np.arange(4.0), 100)
        strata = np.repeat(np.arange(100), 4)
        partners = rank_partners(order, strata, Fraction(75), random_source(None))
        found.append(order[partners[order == 0]])
    met = np.concatenate(found)
    # A block of four at a random offset: alone, with one, two or three others, each with probability 1/4.
    alone = 1 / 4 + 1 / 4 * 1 / 3
    near = 1 / 4 * (1 + 1 / 3 + 1 / 3)
    law = {0.0: alone, 1.0: near, 2.0: 1 / 4 * (1 / 3 + 1 / 3), 3.0: 1 / 12}
    check_distribution(met, distributions.categorical(law))
    uniform = distributions.categorical(dict.fromkeys(law, 0.25))
    assert statistics.fit(met, uniform).p_value < 1e-9


def test_a_large_share_of_distinct_values_is_swapped_and_equal_ones_do_not_count() -> None:
    many = pa.table({"v": np.arange(10_000.0), "one": np.ones(10_000)})
    assert Swap("v", percent=5).run(many).log.share_changed("v") > 0.95
    assert Swap("one", percent=5).run(many).log.share_changed("one") == 0
    assert "not truthful" in str(Swap("v", percent=5).run(many).log)


def test_too_small_a_distance_swaps_nothing() -> None:
    assert transformed(Swap("v", percent=1), v=[1, 2, 3])["v"] == [1, 2, 3]


def test_dates_are_swapped_and_the_schema_stays() -> None:
    days = [dt.date(2020, 1, day) for day in (1, 2, 3, 4)]
    schema = cl.Schema([cl.Column(name="v", kind="datetime", bounds=("2020-01-01", "2020-12-31"))])
    after = Swap("v", percent=100).apply(cl.open_table(pa.table({"v": days}), schema=schema))
    assert sorted(after.to_arrow()["v"].to_pylist()) == days
    assert after.schema == schema
    times = [dt.datetime(2020, 1, 1, hour) for hour in (1, 2, 3, 4)]
    assert sorted(transformed(Swap("v", percent=100), v=times)["v"]) == times


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda: Swap("v", percent=0), "positive"),
        (lambda: Swap("v", percent=101), "percent=5"),
        (lambda: Swap("v", percent=5, within=["v"]), "leave it out"),
        (lambda: SwapRecords("v", fraction=2), "probability"),
        (lambda: SwapRecords("v", fraction=0.1, within=["v"]), "leave it out"),
        (lambda: SwapRecords([], fraction=0.1), "at least one"),
    ],
)
def test_contradictory_settings_are_refused(make: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        make()


def test_texts_have_no_rank() -> None:
    with pytest.raises(DataError, match="numeric column"):
        transformed(Swap("v", percent=50), v=["a", "b"])


records = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("ab"), st.none() | st.integers(0, 9)), min_size=0, max_size=40
)


@given(records, st.fractions(0, 1))
def test_exchanged_attributes_keep_the_marginals_of_a_stratum(rows: list[Any], fraction: Fraction) -> None:
    places, groups, near = ([row[column] for row in rows] for column in range(3))
    after = transformed(
        SwapRecords("place", fraction=fraction, near=["near"], within=["group"]),
        place=pa.array(places, pa.string()),
        group=pa.array(groups, pa.string()),
        near=pa.array(near, pa.int64()),
    )
    assert Counter(zip(groups, after["place"], strict=True)) == Counter(zip(groups, places, strict=True))
    assert after["near"] == near
    changed = sum(old != new for old, new in zip(places, after["place"], strict=True))
    assert changed % 2 == 0
    assert changed <= 2 * int(fraction * len(rows))


def test_the_nearest_partner_with_another_value_is_chosen() -> None:
    after = transformed(
        SwapRecords("place", fraction=1, near=["age"], where="age = 30"),
        place=["A", "A", "B", "C"],
        age=[30, 31, 33, 90],
    )
    assert after["place"] == ["B", "A", "A", "C"]


def test_attributes_are_exchanged_together() -> None:
    after = transformed(SwapRecords(["a", "b"], fraction=1), a=[1, 2], b=["x", "y"], c=[True, False])
    assert after == {"a": [2, 1], "b": ["y", "x"], "c": [True, False]}


def test_a_stratum_without_other_values_stays() -> None:
    outcome = SwapRecords("v", fraction=1, within=["g"]).run(pa.table({"v": [1, 1, 2], "g": ["a", "a", "b"]}))
    assert outcome.log.share_changed("v") == 0


def test_nearly_all_targets_find_a_partner_among_many() -> None:
    count = 5_000
    table = pa.table({"place": [str(row % 7) for row in range(count)], "age": [row % 50 for row in range(count)]})
    log = SwapRecords("place", fraction=0.1, near=["age"]).run(table).log
    assert 0.15 <= log.share_changed("place") <= 0.2
    schema = cl.Schema([cl.Column(name="place", categories=[str(digit) for digit in range(7)])])
    assert SwapRecords("place", fraction=0.1).apply(cl.open_table(table, schema=schema)).schema == schema


def test_far_partners_are_found_when_the_near_ones_are_equal() -> None:
    places = ["A"] * 200 + ["B"]
    after = transformed(SwapRecords("p", fraction=1, near=["x"], where="x = 0"), p=places, x=list(range(201)))
    assert after["p"][0] == "B"
    assert after["p"][200] == "A"
