from __future__ import annotations

import json
from collections import Counter
from math import comb
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

CLASSES = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6), min_size=1, max_size=5)
OPTIONS: dict[str, Any] = {"quasi_identifiers": ["class"], "sensitive": "value"}
ATTACKS: dict[str, Any] = {
    "homogeneity": attacks.homogeneity,
    "similarity": lambda table, **options: attacks.similarity(table, categories=KINDS, **options),
    "background_knowledge": attacks.background_knowledge,
    "probabilistic_inference": attacks.probabilistic_inference,
    "skewness": attacks.skewness,
}
KINDS = {"a": "vowel", "b": "consonant", "c": "consonant", "§x": "secret"}


def _table(classes: list[list[str]]) -> pa.Table:
    return pa.table(
        {
            "class": [f"c{number}" for number, values in enumerate(classes) for _ in values],
            "value": [value for values in classes for value in values],
        }
    )


def _share(classes: list[list[str]], is_disclosed: Any) -> float:
    return sum(len(values) for values in classes if is_disclosed(values)) / sum(map(len, classes))


@given(CLASSES)
@settings(max_examples=10)
def test_homogeneous_classes_are_those_of_one_value(classes: list[list[str]]) -> None:
    result = attacks.homogeneity(_table(classes), **OPTIONS)
    assert result.success == pytest.approx(_share(classes, lambda values: len(set(values)) == 1))
    assert result.baseline == (len({value for values in classes for value in values}) == 1)
    assert result.interval[0] <= result.success <= result.interval[1]


@given(CLASSES)
@settings(max_examples=10)
def test_similar_classes_are_homogeneous_in_categories(classes: list[list[str]]) -> None:
    result = attacks.similarity(_table(classes), categories=KINDS, **OPTIONS)
    mapped = [[KINDS[value] for value in values] for values in classes]
    assert result.success == pytest.approx(_share(mapped, lambda values: len(set(values)) == 1))
    assert result.success >= attacks.homogeneity(_table(classes), **OPTIONS).success


@given(CLASSES, st.integers(0, 2))
@settings(max_examples=10)
def test_as_many_exclusions_as_there_are_other_values_make_certain(classes: list[list[str]], excluded: int) -> None:
    result = attacks.background_knowledge(_table(classes), excluded=excluded, **OPTIONS)
    assert result.success == pytest.approx(_share(classes, lambda values: len(set(values)) - 1 <= excluded))


@given(CLASSES, st.integers(1, 3))
@settings(max_examples=10)
def test_neighbors_make_certain_once_all_others_are_known(classes: list[list[str]], known: int) -> None:
    result = attacks.background_knowledge(_table(classes), neighbors=known, **OPTIONS)
    hits = 0.0
    for values in classes:
        for count in Counter(values).values():
            others, asked = len(values) - count, min(known, len(values) - 1)
            if asked >= others:
                hits += count * comb(count - 1, asked - others) / comb(len(values) - 1, asked)
    assert result.success == pytest.approx(hits / sum(map(len, classes)))


@given(CLASSES)
@settings(max_examples=10)
def test_the_most_frequent_value_of_a_class_is_guessed(classes: list[list[str]]) -> None:
    result = attacks.probabilistic_inference(_table(classes), shuffles=1, **OPTIONS)
    everybody = [value for values in classes for value in values]
    assert result.success == pytest.approx(sum(max(Counter(values).values()) for values in classes) / len(everybody))
    assert result.baseline == pytest.approx(max(Counter(everybody).values()) / len(everybody))
    assert result.control is not None
    assert result.baseline - 1e-12 <= result.control <= 1


def test_the_control_of_homogeneity_is_what_chance_would_give() -> None:
    classes = [["a"] * 2, ["a", "b"], ["b", "c", "a"], ["a"] * 3]
    exact = attacks.homogeneity(_table(classes), **OPTIONS).control
    values = np.array([value for row in classes for value in row])
    source, shares = SeededRandomSource(4), []
    for _ in range(4000):
        mixed = values[permutation(source, len(values))]
        dealt = np.split(mixed, np.cumsum([len(row) for row in classes])[:-1])
        shares.append(_share([list(part) for part in dealt], lambda row: len(set(row)) == 1))
    assert exact == pytest.approx(np.mean(shares), abs=0.03)


def _hospital(count: int = 400) -> pd.DataFrame:
    """Return patients whose illness follows from their age group."""
    source = SeededRandomSource(9)
    ages = integers_below(source, 60, count) + 20
    chance = integers_below(source, 10, count)
    illness = np.where(ages < 40, "flu", np.where(ages < 60, "cancer", "stroke"))
    return pd.DataFrame({"age": ages, "illness": np.where(chance == 0, "cold", illness)})


def _released(*models: Any, **options: Any) -> Release:
    table = cl.open_table(_hospital())
    made = cl.anonymize(
        table, models=list(models), quasi_identifiers=["age"], sensitive=["illness"], algorithm="mondrian", **options
    )
    assert isinstance(made, Release)
    return made


def test_k_anonymity_alone_is_broken_and_closeness_is_not() -> None:
    broken, mended = _released(cl.KAnonymity(k=5)), _released(cl.KAnonymity(k=5), cl.TCloseness("illness", t=0.1))
    found, nothing = attacks.homogeneity(broken), attacks.homogeneity(mended)
    assert found.succeeded
    assert found.success > 0.2
    assert found.success > (found.control or 0)
    assert not nothing.succeeded
    assert nothing.success == 0
    assert "The attack works" in found.verdict
    assert "no more than the whole table" in nothing.verdict
    assert attacks.skewness(mended).success < attacks.skewness(broken).success


def test_the_exposed_are_rows_of_the_original() -> None:
    release = _released(cl.KAnonymity(k=5))
    patients, shown = _hospital(), release.table.to_pandas()
    certain = {label for label, values in shown.groupby("age")["illness"] if values.nunique() == 1}
    ranges = [tuple(map(int, label.strip("[]").split(", "))) for label in certain if "," in str(label)]
    for position, score in attacks.homogeneity(release).worst:
        age = patients["age"][position]
        assert score == 1.0
        assert any(low <= age <= high for low, high in ranges) or str(age) in certain


def test_every_row_of_the_original_is_in_the_class_that_shows_it() -> None:
    from cloister.attacks.tables._published_table import publish

    published = publish(_released(cl.KAnonymity(k=5)))
    assert np.bincount(published.row_classes).tolist() == published.sizes.tolist()
    values = _hospital()["illness"].to_numpy()
    histogram = published.histogram("illness")
    names = published.sensitive("illness").values
    for line in range(len(histogram.classes)):
        members = values[published.row_classes == histogram.classes[line]]
        assert (members == names[histogram.values[line]]).sum() == histogram.counts[line]


def test_groups_are_the_classes_of_an_anatomy() -> None:
    table = cl.open_table(_hospital())
    anatomy = cl.anonymize(
        table,
        models=[cl.LDiversity("illness", l=2, kind="frequency")],
        algorithm="anatomy",
        quasi_identifiers=["age"],
        sensitive=["illness"],
    )
    assert attacks.homogeneity(anatomy).success == 0
    guessed = attacks.probabilistic_inference(anatomy, shuffles=0)
    assert guessed.largest_posterior == 0.5
    assert guessed.trials == 400


@pytest.mark.parametrize("name", ATTACKS)
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    table = _table([["a", "a", "b"], ["c", "c"], ["b"]])
    mixed = table.take(permutation(SeededRandomSource(1), len(table)))
    first, second = (ATTACKS[name](rows, **OPTIONS) for rows in (table, mixed))
    assert first.success == second.success
    assert first.largest_posterior == second.largest_posterior


@pytest.mark.parametrize("name", ATTACKS)
def test_no_value_is_told(name: str) -> None:
    result = ATTACKS[name](_table([["§x"] * 3, ["a", "§x", "b"]]), **OPTIONS)
    told = json.dumps(result.to_dict()) + repr(result) + result.verdict + str(result.summary()) + str(result)
    assert "§" not in told
    assert "§" not in str(result.report())
    assert result.plot() is not None


def test_a_report_shows_the_facts_of_the_attack(tmp_path: Path) -> None:
    place = tmp_path / "attack.md"
    attacks.homogeneity(_table([["a", "a"], ["b", "c"]]), **OPTIONS).report(place)
    assert "classes that give it away" in place.read_text("utf-8")
    assert "1 of 2" in place.read_text("utf-8")


def test_suppressed_rows_are_in_no_class() -> None:
    table = pa.table({"class": ["x", "x", "*", "*"], "value": ["a", "b", "c", "c"]})
    result = attacks.homogeneity(table, **OPTIONS)
    assert result.trials == 2
    assert result.success == 0
    assert result.worst == ()


def test_missing_values_are_a_value() -> None:
    result = attacks.homogeneity(pa.table({"class": ["x", "x", "y"], "value": [None, "b", None]}), **OPTIONS)
    assert result.success == pytest.approx(1 / 3)


def test_hierarchies_say_what_is_similar() -> None:
    schema = cl.Schema.from_dict(
        {"columns": {"class": {"role": "quasi"}, "value": {"role": "sensitive", "kind": "nominal"}}}
    ).with_hierarchy("value", cl.Hierarchy.taxonomy({"stomach": ["ulcer", "gastritis"], "lungs": ["flu", "cold"]}))
    table = cl.open_table(_table([["ulcer", "gastritis"], ["flu", "ulcer"]]), schema=schema)
    assert attacks.similarity(table).success == 0.5
    assert attacks.similarity(table, categories=2).success == 1.0
    assert attacks.homogeneity(table).success == 0


def test_numbers_are_similar_in_intervals() -> None:
    table = pa.table({"class": ["x"] * 3 + ["y"] * 3, "value": [3000, 4000, 5000, 6000, 8000, 11000]})
    assert attacks.similarity(table, categories=[5500], **OPTIONS).success == 1.0
    assert attacks.similarity(table, categories=[4500], **OPTIONS).success == 0.5
    assert attacks.similarity(table, **OPTIONS).success == 0.0


TABLE = _table([["§x", "a"], ["b", "c"]])
WRONG: dict[str, tuple[Any, str]] = {
    "no sensitive column": (lambda: attacks.homogeneity(TABLE, quasi_identifiers=["class"]), "sensitive="),
    "an unknown one": (lambda: attacks.homogeneity(TABLE, quasi_identifiers=["class"], sensitive="valu"), "value"),
    "nothing known": (lambda: attacks.homogeneity(TABLE, sensitive="value"), "quasi_identifiers="),
    "the same column twice": (
        lambda: attacks.homogeneity(TABLE, quasi_identifiers=["value"], sensitive="value"),
        "one list",
    ),
    "no rows": (lambda: attacks.homogeneity(TABLE.slice(0, 0), **OPTIONS), "open a table"),
    "certainty above one": (lambda: attacks.homogeneity(TABLE, certainty=2, **OPTIONS), "probability"),
    "values without categories": (lambda: attacks.similarity(TABLE, **OPTIONS), "categories="),
    "a value left out": (lambda: attacks.similarity(TABLE, categories={"a": "x"}, **OPTIONS), "map every value"),
    "a level of no hierarchy": (lambda: attacks.similarity(TABLE, categories=1, **OPTIONS), "with_hierarchy"),
    "a value that does not occur": (
        lambda: attacks.background_knowledge(TABLE, excluded=["z"], **OPTIONS),
        "as the table does",
    ),
    "all values ruled out": (
        lambda: attacks.background_knowledge(TABLE, excluded=["a", "b", "c", "§x"], **OPTIONS),
        "rule fewer",
    ),
    "values and neighbors": (
        lambda: attacks.background_knowledge(TABLE, excluded=1, neighbors=1, **OPTIONS),
        "excluded= or neighbors=",
    ),
    "one text": (lambda: attacks.background_knowledge(TABLE, excluded="a", **OPTIONS), "excluded=["),
    "a factor of one": (lambda: attacks.skewness(TABLE, factor=1, **OPTIONS), "factor=2"),
    "skewness of nothing": (lambda: attacks.skewness(TABLE, value="z", **OPTIONS), "as the table does"),
}


@pytest.mark.parametrize("name", WRONG)
def test_misuse_is_refused_with_a_fix(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(CloisterError) as caught:
        call()
    assert words in str(caught.value)
    assert "§" not in str(caught.value)


@pytest.mark.parametrize("name", list(ATTACKS))
def test_one_value_in_all_rows_is_held_against_the_original(name: str) -> None:
    released = _table([["a"] * 20, ["a"] * 20])
    original = _table([["a", "b"] * 20, ["c"] * 20 + ["b"] * 20])
    alone = ATTACKS[name](released, **OPTIONS)
    assert not alone.succeeded
    assert alone.shows_one_value
    assert "All released rows have the same value" in alone.verdict
    found = ATTACKS[name](released, original=original, **OPTIONS)
    assert found.succeeded
    assert found.success == 1
    assert "without the release" in found.verdict
    assert found.prior < 0.8
    several = ATTACKS[name](_table([["a", "b"], ["b", "c"]]), **OPTIONS)
    assert not several.shows_one_value
    assert "All released rows" not in several.verdict


def test_the_baseline_of_a_release_is_that_of_its_original() -> None:
    release = _released(cl.KAnonymity(k=5))
    most = _hospital()["illness"].value_counts(normalize=True).iloc[0]
    assert attacks.probabilistic_inference(release, shuffles=0).baseline == pytest.approx(most)
    other = pd.DataFrame({"illness": ["flu"] * 9 + ["cold", "cancer", "stroke"]})
    assert attacks.probabilistic_inference(release, original=other, shuffles=0).baseline == pytest.approx(0.75)
    assert (
        attacks.homogeneity(release.table, sensitive="illness", original=other, quasi_identifiers=["age"]).prior == 0.75
    )


def test_an_original_without_the_values_is_refused() -> None:
    released = _table([["a", "b"], ["b", "c"]])
    with pytest.raises(CloisterError, match="Fix: give the original that the release was made from"):
        attacks.skewness(released, original=_table([["a", "b"]]), **OPTIONS)
    with pytest.raises(CloisterError, match="illness"):
        attacks.homogeneity(released, original=pa.table({"illness": ["a"]}), **OPTIONS)


def test_similar_numbers_are_compared_over_the_same_intervals() -> None:
    released = pa.table({"class": ["c"] * 4, "value": [1, 2, 3, 10]})
    original = pa.table({"value": [1, 1, 1, 2, 3, 10, 1000, 2000]})
    assert attacks.similarity(released, original=original, **OPTIONS).prior == pytest.approx(3 / 8)
    with pytest.raises(CloisterError, match="Fix: open the original with the column as numbers"):
        attacks.similarity(released, original=pa.table({"value": ["a", "b"]}), **OPTIONS)


@pytest.mark.parametrize("name", ["homogeneity", "similarity"])
def test_less_than_certainty_is_said(name: str) -> None:
    table = _table([["a"] * 5 + ["b"], ["b", "a"] * 3])
    nearly = ATTACKS[name](table, certainty=0.9, **OPTIONS)
    assert "is at least 90% sure of the" in nearly.verdict
    assert "of 0% of the people" in nearly.verdict
    assert "Surest class: 83.3%." in nearly.verdict
    assert "learns the" in ATTACKS[name](table, **OPTIONS).verdict
    assert "Surest class" not in ATTACKS[name](table, **OPTIONS).verdict


@pytest.mark.parametrize(
    ("certainty", "remedy"),
    [
        (1, "not for k-anonymity alone"),
        (0, "not for k-anonymity alone"),
        (
            0.9,
            "ask for equal t-closeness with t = 0.39 (--t 0.39), or for frequency l-diversity with l = 1.12 (--l 1.12",
        ),
        (0.5, 'frequency l-diversity with l = 2.01 (--l 2.01 --l-kind frequency) of "illness";'),
    ],
)
def test_what_helps_is_enough_for_the_limit_that_was_asked_for(certainty: float, remedy: str) -> None:
    rows = pa.table({"zip": ["1"] * 4 + ["2"] * 4, "illness": ["flu"] * 4 + ["cold"] * 3 + ["rash"]})
    found = attacks.homogeneity(rows, quasi_identifiers=["zip"], sensitive="illness", certainty=certainty)
    assert remedy in found.mitigation[0]
