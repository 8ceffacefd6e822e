"""What may still go wrong with a release is said, and only where it applies."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.pitfalls import Pitfall
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.schema import Schema
from tests.anonymize.people import SCHEMA, columns, people

ALWAYS = {"later_releases"}
K3 = cl.KAnonymity(k=3)


def found(schema: Schema = SCHEMA, models: Any = (K3,), changed: Any = None, **options: Any) -> dict[str, Pitfall]:
    release = cl.anonymize(people(schema, **(changed or {})), models=models, **options)
    return {pitfall.code: pitfall for pitfall in release.pitfalls}


def test_the_patients_have_these_pitfalls() -> None:
    pitfalls = found()
    assert set(pitfalls) == ALWAYS | {
        "attribute_disclosure",
        "insensitive_columns",
        "rows_not_persons",
        "outliers",
        "small_k",
    }
    assert '"disease", "pay"' in pitfalls["attribute_disclosure"].sentence
    assert '"note"' in pitfalls["insensitive_columns"].sentence
    assert '"pay"' in pitfalls["outliers"].sentence
    assert "below the usual 5" in pitfalls["small_k"].sentence


def test_a_careful_release_has_few() -> None:
    kept = SCHEMA.without("note", "pay").with_subject("patient")
    models = [cl.KAnonymity(k=11), cl.LDiversity("disease", l=2)]
    careful = found(kept, models, {"note": None, "pay": None})
    assert set(careful) == ALWAYS | {"minimality", "values_of_rows", "silent_columns"}


def test_k_below_the_public_minimum_is_said() -> None:
    assert "11 is the usual minimum" in found(models=[cl.KAnonymity(k=5)])["small_k"].sentence
    assert "k = 1" in found(models=[cl.LDiversity("disease", l=1)])["small_k"].sentence


def test_free_text_and_days_are_said() -> None:
    schema = SCHEMA.with_kind("note", "text").with_column(Column(name="seen", role="insensitive", kind="datetime"))
    days = {"seen": [dt.date(2020, 1, 1 + place) for place in range(24)]}
    pitfalls = found(schema, changed=days)
    assert '"note"' in pitfalls["free_text"].sentence
    assert '"seen"' in pitfalls["exact_dates"].sentence
    coarse = schema.with_role("seen", "quasi").with_hierarchy(
        "seen", Hierarchy.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 31))
    )
    assert "exact_dates" not in found(coarse, changed=days, algorithm="optimal")


def test_a_class_of_stars_is_said() -> None:
    cells = {"age": [20] * 20 + [30, 30, 50, 50], "city": ["kiel"] * 20 + ["ulm", "ulm", "emden", "emden"]}
    assert "star_class" in found(changed=cells, models=[cl.KAnonymity(k=4)], algorithm="mdav", values="hierarchy")
    assert "star_class" not in found(changed={"age": [20] * 24, "city": ["ulm"] * 24})


def test_many_columns_are_said() -> None:
    names = [f"q{number}" for number in range(10)]
    table = cl.open_table(pa.table(dict.fromkeys(names, ["a", "b"] * 5)), schema=Schema(Column(name=n) for n in names))
    release = cl.anonymize(table, models=[K3], algorithm="mondrian")
    codes = {pitfall.code: pitfall for pitfall in release.pitfalls}
    assert "With 10 quasi-identifiers" in codes["many_quasi_identifiers"].sentence


def test_long_lists_are_cut() -> None:
    names = [f"i{number}" for number in range(10)]
    schema = Schema([*SCHEMA.columns.values(), *(Column(name=name, role="insensitive") for name in names)])
    changed = dict.fromkeys(names, ["a"] * 24)
    assert '"i6" and 3 more are released' in found(schema, changed=changed)["insensitive_columns"].sentence


def test_names_for_one_value_are_said() -> None:
    leaky = Hierarchy.taxonomy({"north": ["kiel", "emden", "lindau"], "only": ["ulm"]})
    assert '"city"' in found(SCHEMA.with_hierarchy("city", leaky))["leaky_hierarchy"].sentence
    padded = Hierarchy.taxonomy({"north": ["kiel", "emden", "lindau"], "ulm": None})
    assert "leaky_hierarchy" not in found(SCHEMA.with_hierarchy("city", padded))


def test_weaker_readings_of_missing_values_are_said() -> None:
    lenient = SCHEMA.with_column(replace(SCHEMA["city"], missing="matches_any"))
    assert "stronger reading" in found(lenient)["missing_values"].advice


def test_guesses_are_said() -> None:
    guessed = SCHEMA.with_column(replace(SCHEMA["city"], guessed=frozenset({"role"})))
    assert "schema.confirm()" in found(guessed)["guessed_roles"].advice


def test_centers_are_said_to_be_untrue() -> None:
    assert "no single row is true" in found(algorithm="mdav")["centers"].sentence


@pytest.mark.parametrize("code", ["small_k", "outliers"])
def test_pitfalls_are_sentences_with_advice_and_no_cells(code: str) -> None:
    pitfall = found()[code]
    assert pitfall.to_dict() == {"code": code, "sentence": pitfall.sentence, "advice": pitfall.advice}
    assert str(pitfall) == f"{pitfall.sentence} {pitfall.advice}"
    assert not any(str(cell) in str(pitfall) for cell in columns()["city"])
