from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import cloister as cl
from cloister import attacks
from cloister.anonymize import Release
from cloister.core.random import SeededRandomSource, integers_below, permutation
from cloister.errors import CloisterError

SECRET = "§secret"


def _people(count: int, *, source: Any = None) -> pd.DataFrame:
    source = source or SeededRandomSource(7)
    return pd.DataFrame(
        {
            "age": integers_below(source, 60, count) + 20,
            "sex": np.array(["F", "M"])[integers_below(source, 2, count)],
            "zip": [f"{13000 + number}" for number in integers_below(source, 60, count)],
            "illness": np.array(["flu", "cold", SECRET])[integers_below(source, 3, count)],
        }
    )


SCHEMA = cl.Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "bounds": [20, 80]},
            "sex": {"role": "quasi", "kind": "nominal"},
            "zip": {"role": "quasi", "kind": "nominal"},
            "illness": {"role": "sensitive", "kind": "nominal"},
        }
    }
).with_hierarchy("zip", cl.Hierarchy.masking([str(13000 + number) for number in range(60)]))


def _release(count: int = 300, **options: Any) -> Release:
    table = cl.open_table(_people(count), schema=SCHEMA)
    options.setdefault("models", [cl.KAnonymity(k=5)])
    release = cl.anonymize(table, **options)
    assert isinstance(release, Release)
    return release


RAW = _people(300)
QUASI = ["age", "sex", "zip"]


def _slow_candidates(ages: list[tuple[int, int]], zips: list[str], person: tuple[int, str]) -> int:
    return sum(
        low <= person[0] < high and person[1].startswith(mask.rstrip("*"))
        for (low, high), mask in zip(ages, zips, strict=True)
    )


@given(
    rows=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 9), st.integers(0, 5), st.integers(0, 5)), min_size=1),
    people=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99999)), min_size=1, max_size=20),
)
@settings(max_examples=8)
def test_candidates_are_the_rows_whose_intervals_and_masks_allow_a_person(rows: Any, people: Any) -> None:
    ages = [(10 * low, 10 * (low + width)) for low, width, _, _ in rows]
    zips = [f"{number}3{number}21"[: 5 - hidden] + "*" * hidden for _, _, number, hidden in rows]
    released = pa.table({"age": [f"[{low}, {high})" for low, high in ages], "zip": zips})
    known = [(age, f"{code:05d}") for age, code in people] + [(ages[0][0], f"{rows[0][2]}3{rows[0][2]}21")]
    expected = [_slow_candidates(ages, zips, person) for person in known]
    result = attacks.linkage(
        released,
        pa.table({"age": [age for age, _ in known], "zip": [code for _, code in known]}),
        quasi_identifiers=["age", "zip"],
    )
    assert result.expected_hits == pytest.approx(sum(1 / count for count in expected if count))
    assert result.unique_matches == expected.count(1)
    assert result.unlinked == expected.count(0)


def test_raw_tables_give_their_unique_rows_away() -> None:
    result = attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=range(300), threshold=1)
    sizes = RAW.groupby(QUASI)["age"].transform("size")
    assert result.success == pytest.approx((1 / sizes).mean())
    assert result.unique_matches == (sizes == 1).sum()
    assert result.succeeded
    assert result.precision == 1.0
    assert all(sizes[position] == 1 for position, _ in result.worst)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
@pytest.mark.parametrize("kind", ["exact", "distance", "probabilistic"])
def test_no_attacker_beats_what_k_anonymity_promises(algorithm: str, kind: str) -> None:
    result = attacks.linkage(_release(algorithm=algorithm), kind=kind)
    assert result.success <= 0.2
    assert not result.succeeded
    assert "stays within what was promised" in result.verdict or result.interval[0] <= result.baseline


def test_all_who_were_released_are_linked_once_per_class_on_average() -> None:
    release = _release(algorithm="optimal")
    result = attacks.linkage(release)
    assert release.suppressed == 0
    assert result.expected_hits == pytest.approx(release.partition.size)
    assert result.success == pytest.approx(release.partition.size / 300)


def test_suppressed_people_are_not_linked() -> None:
    colors = ["red"] * 50 + ["green"] * 2 + ["blue"] * 46 + ["white"] * 2
    table = cl.open_table(pa.table({"color": colors, "illness": ["flu"] * 100}))
    release = cl.anonymize(
        table,
        models=[cl.KAnonymity(k=5)],
        algorithm="optimal",
        quasi_identifiers=["color"],
        sensitive=["illness"],
        suppression_limit=0.05,
    )
    result = attacks.linkage(release)
    assert isinstance(release, Release)
    assert result.unlinked == release.suppressed == 4
    assert result.success == pytest.approx(2 / 100)
    assert all(colors[position] in ("red", "blue") for position, _ in result.worst)


def test_sets_and_ranges_are_read_as_they_are_written() -> None:
    release = _release(algorithm="mondrian", values="sets")
    assert attacks.linkage(release).unlinked == 0


def test_dates_are_read() -> None:
    days = [dt.date(2026, 1, 1) + dt.timedelta(days=day) for day in range(40)]
    released = pa.table({"day": ["[2026-01-01, 2026-01-20]"] * 20 + ["[2026-01-21, 2026-02-09]"] * 20})
    result = attacks.linkage(released, pa.table({"day": days}), quasi_identifiers=["day"])
    assert result.expected_hits == pytest.approx(2)


def test_what_is_not_known_fits_everything() -> None:
    released = pa.table({"age": ["20-29", "30-39"], "sex": ["F", "M"]})
    known = pa.table({"age": [25, None], "sex": ["F", "F"]})
    result = attacks.linkage(released, known, quasi_identifiers=["age", "sex"])
    assert result.unique_matches == 2


def test_people_outside_of_the_hierarchy_fit_what_says_nothing() -> None:
    release = _release(algorithm="optimal")
    strangers = pa.table({"age": [25], "sex": ["M"], "zip": ["99999"]})
    result = attacks.linkage(release, strangers, columns=["sex", "zip"])
    shown = set(release.table.to_pandas()["zip"])
    assert result.unlinked == int("*" not in shown)


def test_outsiders_are_a_control() -> None:
    outsiders = _people(200, source=SeededRandomSource(8))
    result = attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=range(300), outsiders=outsiders)
    assert result.control is not None
    assert result.control < result.success / 2
    assert result.precision is not None
    assert result.precision < 1
    both = pd.concat([RAW, outsiders], ignore_index=True)
    told = [*range(300), *[-1] * 200]
    again = attacks.linkage(RAW, both, quasi_identifiers=QUASI, truth=told)
    assert again.control == pytest.approx(result.control)
    assert again.success == pytest.approx(result.success)


def _normal(count: int) -> np.ndarray:
    words = integers_below(SeededRandomSource(3), 2**20, 12 * count).reshape(12, count)
    return np.asarray(words.sum(axis=0) / 2**20 - 6)


@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 1.0, 1.0), (0.05, 0.5, 1.0), (20.0, 0.0, 0.05)])
def test_distance_finds_people_through_little_noise_and_not_through_much(noise: float, low: float, high: float) -> None:
    drawn = _normal(900).reshape(300, 3)
    numbers = pd.DataFrame(np.round(drawn[permutation(SeededRandomSource(5), 300)], 6), columns=["x", "y", "z"])
    masked = numbers + noise * drawn
    result = attacks.linkage(
        masked, numbers, quasi_identifiers=["x", "y", "z"], kind="distance", truth=range(300), nearest=10
    )
    assert low <= result.success <= high
    assert [share for _, share in result.nearest] == sorted(share for _, share in result.nearest)
    assert result.nearest[0][1] == pytest.approx(result.success)


def test_distance_takes_means_for_what_they_are() -> None:
    release = _release(algorithm="mdav")
    result = attacks.linkage(release, kind="distance")
    assert 0 < result.success <= 0.2


NAMES = ["jonathan", "margaret", "elisabeth", "frederick", "catherine", "alexander", "christine", "benjamin"]
TOWNS = ["springfield", "rivertown", "lakeside", "hillsborough", "greenville", "fairview", "ashland", "milton"]


def _misspelled(text: str, place: int) -> str:
    place %= len(text) - 1
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def test_weights_find_misspelled_people_whom_exact_linkage_misses() -> None:
    source = SeededRandomSource(11)
    picks = integers_below(source, 8, 400).reshape(200, 2)
    released = pd.DataFrame(
        {
            "name": [NAMES[first] for first, _ in picks],
            "town": [TOWNS[second] for _, second in picks],
            "born": 1930 + integers_below(source, 60, 200),
        }
    )
    known = released.assign(name=[_misspelled(name, place) for place, name in enumerate(released["name"])])
    options: dict[str, Any] = {"quasi_identifiers": ["name", "town", "born"], "truth": range(200)}
    patient = attacks.linkage(released, known, kind="probabilistic", **options)
    plain = attacks.linkage(released, known, **options)
    assert plain.success < 0.05
    assert patient.success > 0.8
    weights = dict(patient.weights)
    assert weights["born"] > weights["town"] > 0


def test_guesses_about_strangers_are_less_sure() -> None:
    source = SeededRandomSource(12)
    made = [_people(150, source=source) for _ in range(2)]
    result = attacks.linkage(
        made[0],
        made[0],
        quasi_identifiers=QUASI,
        kind="probabilistic",
        truth=range(150),
        outsiders=made[1],
    )
    assert result.control is not None
    assert result.control < result.success


def test_a_sample_is_enough() -> None:
    source = SeededRandomSource(1)
    result = attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=range(300), sample=100, random_state=source)
    assert result.trials == 100


def test_anatomies_show_exact_rows() -> None:
    table = cl.open_table(RAW, schema=SCHEMA)
    anatomy = cl.anonymize(table, models=[cl.LDiversity("illness", l=2, kind="frequency")], algorithm="anatomy")
    result = attacks.linkage(anatomy, RAW)
    sizes = RAW.groupby(QUASI)["age"].transform("size")
    assert result.expected_hits == pytest.approx((1 / sizes).sum())


def test_the_order_of_rows_and_columns_changes_nothing() -> None:
    order = permutation(SeededRandomSource(2), 300)
    first = attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=range(300))
    shuffled = RAW.iloc[order].reset_index(drop=True)
    second = attacks.linkage(shuffled, RAW, quasi_identifiers=QUASI[::-1], truth=np.argsort(order))
    assert first.success == pytest.approx(second.success)


def test_nothing_about_people_is_told() -> None:
    result = attacks.linkage(RAW, RAW, quasi_identifiers=[*QUASI, "illness"], truth=range(300))
    told = json.dumps(result.to_dict()) + repr(result) + str(result) + result.verdict + str(result.summary())
    told += result.report().to_markdown() if hasattr(result.report(), "to_markdown") else ""
    assert SECRET not in told
    assert "13000" not in told
    assert "worst" not in result.to_dict()
    assert result.plot() is not None
    assert result.sections()


EMPTY = RAW.iloc[:0]
WRONG: dict[str, tuple[Any, str]] = {
    "no quasi-identifiers": (lambda: attacks.linkage(RAW, RAW), "quasi_identifiers="),
    "an unknown column": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=["agee"]), "agee"),
    "one text": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers="age"), "quasi_identifiers="),
    "an empty list": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=[]), "quasi_identifiers="),
    "an unknown kind": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, kind="exakt"), "exact"),
    "nobody known": (lambda: attacks.linkage(RAW, quasi_identifiers=QUASI), "auxiliary"),
    "no rows": (lambda: attacks.linkage(EMPTY, RAW, quasi_identifiers=QUASI), "open a table"),
    "no people": (lambda: attacks.linkage(RAW, EMPTY, quasi_identifiers=QUASI), "at least one person"),
    "nothing shared": (lambda: attacks.linkage(RAW, pa.table({"x": [1]}), quasi_identifiers=QUASI), "rename"),
    "a short truth": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=[0]), "one position per person"),
    "truth of rows that are not there": (
        lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=[300] * 300),
        "count rows from 0",
    ),
    "truth of texts": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=["a"] * 300), "position"),
    "truth of nobody": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, truth=[-1] * 300), "outsiders="),
    "a column that is not released": (
        lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, columns=["illness"]),
        "illness",
    ),
    "other columns than those of the release": (
        lambda: attacks.linkage(_release(30), quasi_identifiers=["age", "sex"]),
        "leave quasi_identifiers out",
    ),
    "confidence of one": (lambda: attacks.linkage(RAW, RAW, quasi_identifiers=QUASI, confidence=1), "confidence=0.95"),
    "a table of no kind": (lambda: attacks.linkage(7, RAW, quasi_identifiers=QUASI), "Fix"),
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_is_refused_with_a_fix(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(CloisterError) as caught:
        call()
    assert words in str(caught.value)
    assert "Fix:" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.slow
def test_adult_is_linked_as_its_classes_promise(shared_data: Path) -> None:
    table = cl.open_table(shared_data / "adult" / "adult_complete_9.csv")
    quasi = [name for name in table.columns if name != "salary-class"]
    release = cl.anonymize(
        table, models=[cl.KAnonymity(k=5)], algorithm="mondrian", quasi_identifiers=quasi, sensitive=["salary-class"]
    )
    assert isinstance(release, Release)
    result = attacks.linkage(release)
    assert result.largest_risk <= 0.2
    assert result.success == pytest.approx(release.partition.size / 30162, rel=0.05)


def _with_labels_of_a_tree() -> tuple[pa.Table, Any]:
    """Return a released file and the people in it; only the schema of the people explains its labels."""
    tree = cl.Hierarchy.from_levels([["flat", "home", "*"], ["house", "home", "*"], ["tent", "other", "*"]])
    people = pa.table({"place": ["flat", "house", "tent", "tent"], "grade": ["low", "mid", "mid", "high"]})
    stated = {
        "place": {"role": "quasi", "kind": "nominal"},
        "grade": {"role": "quasi", "kind": "ordinal", "categories": ["low", "mid", "high"]},
    }
    schema = cl.Schema.from_dict({"columns": stated}).with_hierarchy("place", tree)
    released = pa.table(
        {"place": ["home", "home", "other", "other"], "grade": ["[low, mid]"] * 2 + ["[mid, high]"] * 2}
    )
    return released, cl.open_table(people, schema=schema)


@pytest.mark.parametrize("kind", ["exact", "probabilistic", "distance"])
def test_labels_of_a_plain_file_are_read_by_the_schema_of_the_people(kind: str) -> None:
    released, people = _with_labels_of_a_tree()
    known = ["place", "grade"]
    result = attacks.linkage(released, people, quasi_identifiers=known, truth=[0, 1, 2, 3], kind=kind)
    assert result.unlinked == 0
    assert result.success == pytest.approx(0.5)


def test_labels_that_nobody_can_read_are_no_failed_attack() -> None:
    released, people = _with_labels_of_a_tree()
    bare = people.to_arrow()
    result = attacks.linkage(released, bare, quasi_identifiers=["place", "grade"])
    assert result.unread == ("place", "grade")
    assert result.to_dict()["unread"] == ["place", "grade"]
    assert dict(result.summary())["columns that fit nobody"] == "place, grade"
    assert "4 of 4 people fit no row: labels of the columns place and grade could not be read" in result.verdict
    assert "no more than guessing" not in result.verdict
    read = attacks.linkage(released, people, quasi_identifiers=["place", "grade"])
    assert read.unread == ()
    assert "columns that fit nobody" not in dict(read.summary())


def test_one_unread_column_is_told_where_stars_let_people_fit() -> None:
    released = pa.table({"age": ["[20, 30]"] * 3, "place": ["home", "home", "*"]})
    people = pa.table({"age": [24, 25, 26], "place": ["flat", "house", "tent"]})
    result = attacks.linkage(released, people, quasi_identifiers=["age", "place"])
    assert result.unread == ("place",)
    assert "No label of the column place contains a value of anybody" in result.verdict
    starred = released.set_column(1, "place", pa.array(["*"] * 3))
    assert attacks.linkage(starred, people, quasi_identifiers=["age", "place"]).unread == ()


def test_means_are_read_by_distance() -> None:
    released, people = pa.table({"age": [24.5, 24.5, 60.5]}), pa.table({"age": [24, 25, 61]})
    assert attacks.linkage(released, people, quasi_identifiers=["age"]).unread == ("age",)
    assert attacks.linkage(released, people, quasi_identifiers=["age"], kind="distance").unread == ()
