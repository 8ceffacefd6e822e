from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister import attacks
from cloister.anonymize import AnatomyRelease
from cloister.core.random import SeededRandomSource, SystemRandomSource, integers_below
from cloister.errors import CloisterError
from cloister.mechanisms.transitions import check_matrix, draw_codes

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("abc")), min_size=1, max_size=12)


def _tables(rows: list[tuple[int, int, str]]) -> tuple[pa.Table, pa.Table, pa.Table]:
    left, right, values = (list(column) for column in zip(*rows, strict=True))
    names = list(range(len(rows)))
    return (
        pa.table({"left": left, "value": values, "row": names}),
        pa.table({"right": right, "value": values, "row": names}),
        pa.table({"left": left, "right": right}),
    )


OPTIONS: dict[str, Any] = {"quasi_identifiers": ["left", "right"], "sensitive": "value"}


@given(ROWS)
@settings(max_examples=8)
def test_values_that_are_left_are_in_both_classes(rows: list[tuple[int, int, str]]) -> None:
    first, second, people = _tables(rows)
    result = attacks.intersection([first, second], people, truth=[value for *_, value in rows], **OPTIONS)
    left = [
        {value for one, _, value in rows if one == mine} & {value for _, two, value in rows if two == other}
        for mine, other, _ in rows
    ]
    assert result.candidates[1] == (pytest.approx(np.mean([len(found) for found in left])), min(map(len, left)))
    assert result.success == pytest.approx(sum(len(found) == 1 for found in left) / len(rows))


@given(ROWS)
@settings(max_examples=8)
def test_rows_that_are_left_are_in_both_classes(rows: list[tuple[int, int, str]]) -> None:
    first, second, people = _tables(rows)
    result = attacks.intersection([first, second], people, record="row", **OPTIONS)
    left = [sum((one, two) == (mine, other) for one, two, _ in rows) for mine, other, _ in rows]
    assert result.candidates[1] == (pytest.approx(np.mean(left)), min(left))
    assert result.candidates[0][0] >= result.candidates[1][0]
    assert result.success == pytest.approx(left.count(1) / len(rows))


def _patients(count: int = 240) -> pd.DataFrame:
    source = SeededRandomSource(21)
    return pd.DataFrame(
        {
            "age": integers_below(source, 50, count) + 20,
            "zip": integers_below(source, 50, count) + 100,
            "illness": np.array(["flu", "cold", "ulcer", "cancer"])[integers_below(source, 4, count)],
        }
    )


def test_two_diverse_releases_give_people_away_together() -> None:
    releases = [
        cl.anonymize(
            cl.open_table(_patients()),
            models=[cl.LDiversity("illness", l=2)],
            quasi_identifiers=[known],
            sensitive=["illness"],
            algorithm="mondrian",
        )
        for known in ("age", "zip")
    ]
    assert all(attacks.homogeneity(release).success == 0 for release in releases)
    result = attacks.intersection(releases, sensitive="illness")
    assert result.baseline == 0
    assert result.succeeded
    assert "give people away" in result.verdict
    values = _patients()["illness"]
    assert all(values[position] for position, _ in result.worst)
    assert attacks.intersection([releases[0], releases[0]], sensitive="illness").success == 0


def test_a_wrong_last_candidate_is_no_success() -> None:
    first = pa.table({"left": [1, 1], "value": ["a", "b"]})
    second = pa.table({"right": [1, 1], "value": ["b", "c"]})
    people = pa.table({"left": [1], "right": [1]})
    assert attacks.intersection([first, second], people, truth=["b"], **OPTIONS).success == 1
    assert attacks.intersection([first, second], people, truth=["c"], **OPTIONS).success == 0


def test_zeros_of_pram_rule_values_out_and_others_do_not() -> None:
    categories, codes = ["no", "yes"], np.repeat([0, 1], 200)
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    matrices = {"zero": [[half, half], [0, 1]], "finite": [[1 - quarter, quarter], [quarter, 1 - quarter]]}
    found = {}
    for name, matrix in matrices.items():
        checked = check_matrix(matrix)
        drawn = [draw_codes(codes, checked, SystemRandomSource()) for _ in range(40)]
        found[name] = attacks.pram_intersection(
            [[categories[code] for code in column] for column in drawn],
            categories=categories,
            matrices=[matrix] * 40,
            truth=[categories[code] for code in codes],
        )
    assert found["zero"].success == 0.5
    assert found["zero"].resolved[0] < found["zero"].resolved[-1]
    assert found["finite"].success == 0


def test_newcomers_are_told_by_subtraction() -> None:
    before = pa.table({"age": ["20-29"] * 2 + ["30-39"] * 2, "value": ["a", "b", "a", "c"]})
    after = pa.table({"age": ["20-29"] * 3 + ["30-39"] * 3, "value": ["a", "b", "b", "a", "c", "c"]})
    newcomers = pa.table({"age": [25, 31]})
    options: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": "value"}
    result = attacks.republication(before, after, newcomers, truth=["b", "c"], **options)
    assert result.success == 1
    assert result.baseline == 0
    assert result.candidates == ((2.0, 2), (1.0, 1))
    assert attacks.republication(before, after, newcomers, truth=["a", "c"], **options).success == 0.5


# Membership


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.lists(st.integers(0, 3), max_size=8))
@settings(max_examples=12)
def test_presence_is_the_share_of_fitting_people_who_were_released(inside: list[int], outside: list[int]) -> None:
    released = pa.table({"group": [f"[{10 * number}, {10 * number + 10})" for number in inside]})
    town = pa.table({"group": [10 * number + 5 for number in [*inside, *outside]]})
    result = attacks.table_membership(released, town, quasi_identifiers=["group"])
    deltas = [inside.count(number) / [*inside, *outside].count(number) for number in [*inside, *outside]]
    assert result.delta == (pytest.approx(min(deltas)), pytest.approx(max(deltas)))
    assert result.success == pytest.approx(np.mean([max(delta, 1 - delta) for delta in deltas]))


def test_exact_quasi_identifiers_tell_who_is_in_a_table() -> None:
    everybody = _patients(400).assign(person=range(400))
    inside = everybody.iloc[:200]
    told = [True] * 200 + [False] * 200
    names = ["age", "zip"]
    anatomy = cl.anonymize(
        cl.open_table(inside[[*names, "illness"]]),
        models=[cl.LDiversity("illness", l=2, kind="frequency")],
        quasi_identifiers=names,
        sensitive=["illness"],
        algorithm="anatomy",
    )
    assert isinstance(anatomy, AnatomyRelease)
    result = attacks.table_membership(anatomy, everybody, truth=told)
    assert result.succeeded
    assert result.success > 0.85
    coarse = pa.table({"age": ["20-69"] * 200, "zip": ["1**"] * 200})
    nothing = attacks.table_membership(coarse, everybody, quasi_identifiers=names, truth=told)
    assert nothing.success == 0.5
    assert not nothing.succeeded
    assert nothing.delta == (0.5, 0.5)


# Minimality


def test_minimality_finds_what_generalization_gives_away() -> None:
    people = pa.table({"group": [11, 11, 25, 25, 25, 25, 25]})
    released = pa.table({"group": ["[10, 30)"] * 7, "illness": ["HIV"] * 2 + ["none"] * 5})
    options: dict[str, Any] = {"quasi_identifiers": ["group"], "sensitive": "illness"}
    result = attacks.minimality(released, people, value="HIV", l=2, **options)
    assert result.success == pytest.approx(2 / 7)
    assert result.baseline == 0
    assert result.largest_posterior == 1
    assert result.promised == 0.5
    harmless = pa.table({"group": ["[10, 30)"] * 7, "illness": ["HIV"] + ["none"] * 6})
    assert attacks.minimality(harmless, people, value="HIV", l=2, **options).success == 0


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
@settings(max_examples=40)
def test_beliefs_of_groups_add_up_to_the_values_of_the_class(sizes: list[int], data: Any) -> None:
    hits = data.draw(st.integers(1, sum(sizes)))
    found = attacks.posterior_of_groups(sizes, hits, l=2)
    assert sum(size * share for size, share in zip(sizes, found, strict=True)) == pytest.approx(hits)


FIRST, SECOND, PEOPLE = _tables([(0, 0, "a"), (1, 1, "b")])
WRONG: dict[str, tuple[Any, str]] = {
    "one release": (lambda: attacks.intersection([FIRST], PEOPLE, **OPTIONS), "intersection([first, second])"),
    "nobody known": (lambda: attacks.intersection([FIRST, SECOND], **OPTIONS), "table of people"),
    "an unknown name of rows": (lambda: attacks.intersection([FIRST, SECOND], PEOPLE, record="rov", **OPTIONS), "row"),
    "names that repeat": (
        lambda: attacks.intersection(
            [pa.table({"left": [1, 1], "value": ["a", "b"], "row": [1, 1]})] * 2, PEOPLE, record="row", **OPTIONS
        ),
        "leave record out",
    ),
    "truth of another length": (
        lambda: attacks.intersection([FIRST, SECOND], PEOPLE, truth=["a"], **OPTIONS),
        "one value per person",
    ),
    "a release without quasi-identifiers": (
        lambda: attacks.intersection([FIRST, pa.table({"x": [1], "value": ["a"]})], PEOPLE, **OPTIONS),
        "name columns",
    ),
    "too few matrices": (
        lambda: attacks.pram_intersection([["a"]], categories=["a", "b"], matrices=[]),
        "as many matrices",
    ),
    "a strange category": (
        lambda: attacks.pram_intersection([["z"]], categories=["a", "b"], matrices=[[[1, 0], [0, 1]]]),
        "every category",
    ),
    "a matrix of another size": (
        lambda: attacks.pram_intersection([["a"]], categories=["a", "b", "c"], matrices=[[[1, 0], [0, 1]]]),
        "3 rows",
    ),
    "membership without a population": (
        lambda: attacks.table_membership(FIRST, PEOPLE.slice(0, 0), quasi_identifiers=["left"]),
        "at least one person",
    ),
    "membership with odd truth": (
        lambda: attacks.table_membership(FIRST, PEOPLE, quasi_identifiers=["left"], truth=["x", "y"]),
        "True",
    ),
    "membership with short truth": (
        lambda: attacks.table_membership(FIRST, PEOPLE, quasi_identifiers=["left"], truth=[True]),
        "one truth value",
    ),
    "minimality of nobody": (
        lambda: attacks.minimality(FIRST, value="a", l=2, quasi_identifiers=["left"], sensitive="value"),
        "table of people",
    ),
    "minimality of a strange value": (
        lambda: attacks.minimality(FIRST, PEOPLE, value="z", l=2, quasi_identifiers=["left"], sensitive="value"),
        "as the table does",
    ),
    "an l below one": (lambda: attacks.posterior_of_groups([2], 1, l=0), "l=2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_is_refused_with_a_fix(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(CloisterError) as caught:
        call()
    assert words in str(caught.value)
