"""The report of a release: everything that answers for it, in three formats, whatever the columns are called."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import cloister as cl
from cloister.anonymize._report_words import facts_in_words, glossary, model_name
from cloister.anonymize.release_report import report_of_risk
from cloister.data.columns import Column
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.errors import ParameterError
from tests.anonymize.people import SCHEMA, people
from tests.support.reports import HOSTILE, PageReader

SECTIONS = (
    "What is promised, and against whom",
    "What is not protected",
    "Risk before and after",
    "What was lost",
    "Classes",
    "Columns",
    "How it was made",
    "The words of this report",
)
MODELS = [cl.KAnonymity(k=4), cl.LDiversity("disease", l="1.5", kind="entropy"), cl.TCloseness("pay", t="0.9")]


@pytest.fixture(scope="module")
def release() -> Any:
    return cl.anonymize(people(), models=MODELS, algorithm="mondrian", suppression_limit="0.1")


def test_three_formats_have_every_section(release: Any, tmp_path: Path) -> None:
    for ending in ("html", "md", "json"):
        release.report(tmp_path / f"report.{ending}", title="Patients")
        text = (tmp_path / f"report.{ending}").read_text("utf-8")
        assert "Patients" in text
        for section in SECTIONS:
            assert section in text
    json.loads((tmp_path / "report.json").read_text("utf-8"))
    page = PageReader((tmp_path / "report.html").read_text("utf-8"))
    assert page.tags.count("h1") == 1


def test_another_ending_is_refused(release: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="html"):
        release.report(tmp_path / "report.docx")


def test_what_was_asked_for_is_told_beside_what_was_attained(release: Any) -> None:
    text = release.report().to_markdown()
    smallest = release.classes.rows.min()
    assert "All 3 models hold for every one of" in text
    assert f"| k-anonymity | k = 4 per row | {smallest} |" in text
    assert "l-diversity (entropy)" in text
    assert "not differential privacy" in text
    assert "later, can be intersected" in text


def test_the_recipe_in_the_report_makes_the_release_again(release: Any) -> None:
    text = release.report().to_markdown()
    recipe = text.split("```yaml\n")[1].split("```")[0]
    made = cl.anonymize.Recipe.from_dict(yaml.safe_load(recipe)).run(people(), anonymizer=cl.anonymize).release
    assert made.table.to_arrow().equals(release.table.to_arrow())


def test_no_identifier_and_no_raw_row_is_in_a_report(release: Any) -> None:
    text = release.report().to_markdown()
    assert "p11" not in text
    assert "angina" not in text


@pytest.mark.parametrize("algorithm", ["optimal", "mdav"])
def test_hostile_names_stay_text(algorithm: str) -> None:
    names = {"q": HOSTILE, "s": f"{HOSTILE}s", "i": f"{HOSTILE}i", "x": f"{HOSTILE}x"}
    schema = Schema(
        [
            Column(name=names["q"]),
            Column(name=names["s"], role="sensitive"),
            Column(name=names["i"], role="insensitive"),
            Column(name=names["x"], role="identifier", subject=True),
        ]
    )
    cells = {names["q"]: ["a", "b"] * 6, names["s"]: ["u", "v", "w"] * 4, names["i"]: ["n"] * 12}
    people_cells = {names["x"]: [f"p{place}" for place in range(12)]}
    table = open_table(pa.table(cells | people_cells), schema=schema)
    made = cl.anonymize(table, models=[cl.KAnonymity(k=3), cl.LDiversity(names["s"], l=2)], algorithm=algorithm)
    report = made.report(title=HOSTILE)
    page = PageReader(report.to_html())
    assert "script" not in page.tags
    assert "<script" not in re.sub(r"```.*?\n```", "", report.to_markdown(), flags=re.DOTALL)
    assert json.loads(json.dumps(report.to_dict()))


def test_one_model_and_one_quasi_identifier_read_well() -> None:
    made = cl.anonymize(people(), models=[cl.KAnonymity(k=12)], quasi_identifiers=["age"], sensitive=[])
    text = made.report().to_markdown()
    assert "The model holds for every one of" in text
    assert "Certain before" not in text


def test_a_promise_that_does_not_hold_is_said_aloud(release: Any) -> None:
    from dataclasses import replace

    from cloister.core.guarantees import Caveat

    broken = replace(release, guarantee=release.guarantee.with_caveat(Caveat("test", "it was broken.")))
    assert "The promise does not hold" in broken.report().to_markdown()


def test_guessed_roles_need_attention() -> None:
    from dataclasses import replace

    guessed = SCHEMA.with_column(replace(SCHEMA["city"], guessed=frozenset({"role"})))
    made = cl.anonymize(people(guessed), models=[cl.KAnonymity(k=3)])
    assert "The roles were stated by a person" in made.report().to_markdown()
    assert any(pitfall.code == "guessed_roles" for pitfall in made.pitfalls)


@pytest.mark.parametrize(("k", "status"), [(1, "good"), (5, "bad")])
def test_the_risk_of_a_table_as_it_is_has_a_report(k: int, status: str) -> None:
    report = report_of_risk(cl.assess(people(), k=k))
    text = json.dumps(report.to_dict())
    assert "not for publication" in text
    assert report.verdict is not None
    assert report.verdict.status == status


def test_a_column_that_lost_nothing_is_said_to_be_exact_and_one_that_lost_all_to_be_untold() -> None:
    cells = {"sex": ["f", "m"] * 6, "town": [f"t{place}" for place in range(12)]}
    made = cl.anonymize(open_table(pa.table(cells)), models=[cl.KAnonymity(k=6)], quasi_identifiers=["sex", "town"])
    text = made.report().to_markdown()
    assert "| sex | quasi-identifier: released exactly |" in text
    assert "| town | quasi-identifier: " in text


def test_models_of_a_population_are_not_promised_against_those_who_know_the_members() -> None:
    made = cl.anonymize(people(), models=[cl.KMap(k=3)], population=people())
    text = made.report().to_markdown()
    assert "but not who of it is in the table" in text
    assert "| k-map |" in text
    assert "knows that a person is in the table" not in text


def test_facts_are_told_in_words() -> None:
    facts = {"levels": {"age": 1, "sex": 0}, "nodes": 1200, "is_optimal": True, "is_split": False, "score": "branching"}
    assert facts_in_words(facts) == [
        ("Levels", "age: 1, sex: 0"),
        ("Combinations of levels", "1,200"),
        ("Proven the best", "yes"),
        ("Equal rows in different classes", "no"),
        ("Score", "branching"),
    ]


def test_the_words_of_a_report_are_those_of_its_models() -> None:
    words = dict(glossary([cl.KAnonymity(k=3), cl.KAnonymity(k=4), cl.PureDP(epsilon=1)]))
    assert {"k-anonymity", "Prosecutor", "Discernibility"} <= set(words)
    assert "t-closeness" not in words
    assert model_name(cl.PureDP(epsilon=1)) == "pure dp"


def test_a_release_in_two_tables_says_what_is_exact_apart_and_left_out() -> None:
    made = cl.anonymize(people(), models=[cl.LDiversity("disease", l=2, kind="frequency")], algorithm="anatomy")
    report = made.report()
    text = report.to_markdown()
    assert "**Released exactly:** age, city, note. **In the second table only:** disease." in text
    assert "**Left out:** patient, pay." in text
    assert report.verdict is not None
    assert report.verdict.status == "attention"
    assert set(made.quasi.to_arrow().column_names) == {"age", "city", "note", "GroupID"}
