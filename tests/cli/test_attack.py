from __future__ import annotations

import json
from pathlib import Path

import pytest

from cloister.cli import app

COLUMNS = """\
columns:
  place: {role: quasi, kind: nominal, hierarchy: place.csv}
  job: {role: sensitive, kind: nominal}
"""
RELEASED = "place,job,illness\nhome,smith,flu\nhome,smith,cold\nother,smith,flu\nother,smith,flu\n"
ORIGINAL = "place,job,illness\nflat,smith,flu\nhouse,cook,cold\ntent,cook,flu\ntent,smith,flu\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a released file, its original, and two schemas."""
    monkeypatch.chdir(tmp_path)
    Path("released.csv").write_text(RELEASED, encoding="utf-8")
    Path("original.csv").write_text(ORIGINAL, encoding="utf-8")
    Path("place.csv").write_text("flat;home;*\nhouse;home;*\ntent;other;*\n", encoding="utf-8")
    Path("one.yaml").write_text(COLUMNS, encoding="utf-8")
    Path("two.yaml").write_text(COLUMNS + "  illness: {role: sensitive, kind: nominal}\n", encoding="utf-8")


def test_linkage_reads_labels_by_the_hierarchies_of_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["attack", "linkage", "released.csv", "--original", "original.csv", "--schema", "two.yaml", "--json"]
    assert app.run(asked) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unlinked"] == 0
    assert found["success"] == 0.5


@pytest.mark.parametrize("name", ["homogeneity", "probabilistic-inference", "skewness"])
def test_roles_come_from_the_schema_file_alone(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["attack", name, "released.csv", "--schema", "one.yaml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["column"] == "job"


@pytest.mark.parametrize("original", [[], ["--original", "original.csv"]], ids=["alone", "original"])
def test_one_of_several_sensitive_columns_must_be_named(
    original: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["attack", "homogeneity", "released.csv", "--schema", "two.yaml", *original]
    assert app.run(asked) != 0
    assert "Fix: name one of them: --sensitive job or --sensitive illness." in capsys.readouterr().err
    assert app.run([*asked, "--sensitive", "illness", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["column"] == "illness"


def test_without_a_schema_columns_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["attack", "homogeneity", "released.csv", "--quasi", "place"]) != 0
    assert "--sensitive" in capsys.readouterr().err
    assert app.run(["attack", "homogeneity", "released.csv", "--sensitive", "illness"]) != 0
    assert "--quasi" in capsys.readouterr().err
    assert app.run(["attack", "homogeneity", "released.csv", "--quasi", "place", "--sensitive", "illness"]) == 0


def test_the_baseline_comes_from_the_original(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["attack", "homogeneity", "released.csv", "--schema", "one.yaml", "--json"]
    assert app.run(asked) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == 1
    assert app.run([*asked, "--original", "original.csv"]) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == 0
