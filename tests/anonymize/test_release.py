"""A release as a result: its numbers, its table, its settings; never rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

import cloister as cl
from cloister.anonymize.release import Release
from cloister.errors import DataError
from tests.anonymize.people import SCHEMA, columns, people


@pytest.fixture(scope="module")
def release() -> Release:
    made = cl.anonymize(
        people(SCHEMA.with_subject("patient")),
        models=[cl.KAnonymity(k=4), cl.LDiversity("disease", l=2)],
        algorithm="mondrian",
        values="hierarchy",
        suppression_limit="0.25",
        weights={"age": 2},
    )
    assert isinstance(made, Release)
    return made


def test_it_says_what_it_is_in_one_line(release: Release) -> None:
    assert str(release).startswith(f"{release.partition.size} classes, loss ")
    assert "% of the rows suppressed; k = 4 per patient" in str(release)


def test_it_shows_no_rows(release: Release) -> None:
    shown = [repr(release), str(release), json.dumps(release.to_dict()), str(release.summary())]
    for cell in (*columns()["patient"], "kiel", "angina"):
        assert not any(f'"{cell}"' in text or f"'{cell}'" in text for text in shown)


def test_its_numbers_are_those_of_its_table(release: Release) -> None:
    written = json.loads(json.dumps(release.to_dict()))
    rows = release.table.to_arrow()
    assert written["schema"] == "cloister.release/1"
    assert written["rows"] - written["suppressed"] == rows.num_rows
    assert written["classes"] == len(rows.select(["age", "city"]).group_by(["age", "city"]).aggregate([]))
    assert written["values"] == "hierarchy"
    assert {pitfall["code"] for pitfall in written["pitfalls"]} == {pitfall.code for pitfall in release.pitfalls}


def test_every_model_is_promised_against_those_who_know_the_quasi_identifiers(release: Release) -> None:
    assert release.guarantee.holds
    assert "others know at most these columns: age, city" in release.guarantee.explain()


def test_risk_and_loss_are_measured(release: Release) -> None:
    assert release.risk.models.k == release.classes.rows.min()
    assert release.risk.models.k_persons == release.classes.persons.min()
    assert release.risk.suppressed == release.suppressed
    assert release.loss.ncp == pytest.approx(release.regions.loss())
    assert json.dumps(release.plot().to_dict())
    names = [name for name, _ in release.summary()]
    assert names[0] == "release"
    assert "mind" in names


def test_a_column_with_too_many_values_leaves_the_mean_loss(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = release.loss.ncp
    monkeypatch.setattr("cloister.anonymize.assessment._LARGEST_COMPARISON", 1)
    large = replace(release)
    assert large.assessment.utility is None
    with pytest.raises(DataError, match="use release.ncp"):
        _ = large.loss
    assert large.ncp == pytest.approx(measured)
    assert large.column_losses == pytest.approx(release.loss.by_column)
    assert "Mean loss of precision" in large.report().to_markdown()


def test_the_original_is_seen_under_the_roles_of_the_release() -> None:
    made = cl.anonymize(people(), models=[cl.KAnonymity(k=2)], quasi_identifiers=["age"])
    assert isinstance(made, Release)
    schema = made.original_with_roles.schema
    assert schema is not None
    assert schema["city"].role == "identifier"


def test_settings_and_recipe_make_the_same_release_again(release: Release) -> None:
    table = people(SCHEMA.with_subject("patient"))
    again = cl.anonymize(table, **json.loads(json.dumps(release.settings)))
    assert again.table.to_arrow().equals(release.table.to_arrow())
    recipe = cl.anonymize.Recipe.from_dict(yaml.safe_load(release.recipe.to_yaml()))
    made = recipe.run(table, anonymizer=cl.anonymize).release
    assert made.table.to_arrow().equals(release.table.to_arrow())


def test_it_is_written_whole_or_not_at_all(release: Release, tmp_path: Path) -> None:
    release.write(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == release.table.to_arrow().num_rows
    release.write(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text("utf-8").startswith('"age","city","disease","pay","note"\n')
    with pytest.raises(DataError, match="overwrite"):
        release.write(tmp_path / "out.csv")
    release.write(tmp_path / "out.csv", overwrite=True)


def test_every_class_counts_in_an_assessment_even_one_that_shows_nothing() -> None:
    cells = {"age": [20] * 20 + [30, 30, 50, 50], "city": ["kiel"] * 20 + ["ulm", "ulm", "emden", "emden"]}
    made = cl.anonymize(people(**cells), models=[cl.KAnonymity(k=4)], algorithm="mdav", values="hierarchy")
    assert isinstance(made, Release)
    assert {row["age"] for row in made.table.to_arrow().to_pylist()} == {"20", "*"}
    assert made.risk.models.k == 4
    assert made.risk.suppressed == 0
