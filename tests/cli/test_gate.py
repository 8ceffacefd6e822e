from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cloister as cl
from cloister.cli import app
from tests.attacks.gating.releases import anonymized, correlated, patients

SCHEMA = """\
columns:
  age: {role: quasi, kind: numeric, bounds: [0, 110]}
  district: {role: quasi, kind: nominal, categories: ["0", "1", "2", "3", "4", "5"]}
  illness: {role: sensitive, kind: nominal, categories: [asthma, cancer, flu, heart]}
"""
ASKED = ["--original", "people.csv", "--schema", "people.yaml"]
KIND = ["--kind", "anonymized"]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with patients, a protected table of them, and a bad one."""
    folder = tmp_path_factory.mktemp("clinic")
    patients().to_csv(folder / "people.csv", index=False)
    patients(1200)[600:].assign(age=lambda frame: frame["age"] % 50 + 20).to_csv(folder / "others.csv", index=False)
    (folder / "people.yaml").write_text(SCHEMA, encoding="utf-8")
    anonymized(patients(), cl.LDiversity("illness", l=3)).write(folder / "good.csv")
    anonymized(patients(known_by_place=True)).write(folder / "bad.csv")
    return folder


@pytest.fixture(autouse=True)
def clinic(made_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, which a test may write into."""
    shutil.copytree(made_once, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_good_release_ends_with_0_and_a_bad_one_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["gate", "good.csv", *ASKED, *KIND]) == 0
    assert "Nothing that was tried speaks against publishing." in capsys.readouterr().out
    assert app.run(["gate", "bad.csv", *ASKED, *KIND, "--report", "gate.html"]) == 1
    shown = capsys.readouterr().out
    assert "Do not publish." in shown
    assert "The report is in gate.html." in shown
    assert "follows with certainty" in Path("gate.html").read_text(encoding="utf-8")


def test_json_is_the_decision_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["gate", "good.csv", *ASKED, *KIND, "--limit", "max_match=0.01", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "cloister.gate/1"
    assert found["publish"] is False
    assert found["policy"]["max_match"] == 0.01


def test_a_synthetic_table_needs_a_control_or_a_promise(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["gate", "people.csv", *ASKED, "--kind", "synthetic"]
    assert app.run(asked) == 1
    assert "(a control)" in capsys.readouterr().out.replace("\n", " ")
    assert app.run([*asked, "--epsilon", "1"]) == 1
    assert "exactly as often as in the original" in capsys.readouterr().out.replace("\n", " ")
    asked[1] = "others.csv"
    assert app.run([*asked, "--epsilon", "1"]) == 0
    assert app.run([*asked, "--epsilon", "1", "--delta", "0.5"]) == 1


def test_two_tables_are_attacked_together(capsys: pytest.CaptureFixture[str]) -> None:
    frame = correlated()
    table = cl.open_table(frame)
    schema = cl.Schema.infer(table).confirm().with_role("job", "quasi").with_role("age", "quasi")
    models = [cl.LDiversity("illness", l=2, kind="frequency")]
    table = table.with_schema(schema.with_role("illness", "sensitive"))
    release = cl.anonymize(table, models=models, algorithm="anatomy")
    release.write("two.csv")
    frame.iloc[release.tables.positions].to_csv("truth.csv", index=False)
    asked = ["two.quasi.csv", "--sensitive-table", "two.sensitive.csv", "--original", "truth.csv"]
    assert app.run(["gate", *asked, "--kind", "anatomy"]) == 1
    assert app.run(["gate", *asked]) == 2
    capsys.readouterr()
    assert app.run(["attack", "anatomy-em", "two.quasi.csv", "two.sensitive.csv", "--truth", "truth.csv"]) == 0
    assert "verdict" in capsys.readouterr().out


@pytest.mark.parametrize(
    "given",
    [[*KIND, "--epsilon", "1"], [*KIND, "--control", "people.csv"], ["--kind", "synthetic", "--delta", "1e-6"]],
    ids=["epsilon", "control", "delta"],
)
def test_what_is_about_other_releases_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["gate", "good.csv", *ASKED, *given]) == 2
    assert "Fix:" in capsys.readouterr().err


def test_columns_can_be_named_where_there_is_no_schema(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["gate", "bad.csv", "--original", "people.csv", *KIND]
    assert app.run(asked) == 2
    assert "--quasi" in capsys.readouterr().err
    assert app.run([*asked, "--quasi", "age, district", "--sensitive", "illness"]) == 1
    assert "homogeneity of illness" in capsys.readouterr().out


@pytest.mark.parametrize("given", ["max_match", "max_match=much", "largest=0.1"])
def test_a_limit_that_is_none_is_refused(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["gate", "good.csv", *ASKED, *KIND, "--limit", given]) == 2
    assert "Fix:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "asked",
    [
        ["linkage", "good.csv", *ASKED],
        ["linkage", "good.csv", "--original", "people.csv", "--quasi", "age, district"],
        ["homogeneity", "bad.csv", "--quasi", "age,district", "--sensitive", "illness"],
        ["probabilistic-inference", "bad.csv", *ASKED],
        ["skewness", "bad.csv", *ASKED],
        ["singling-out", "people.csv", *ASKED, "--control", "others.csv"],
        ["linkability", "people.csv", *ASKED],
        ["inference", "people.csv", *ASKED, "--secret", "illness"],
        ["closest-rows", "people.csv", *ASKED, "--control", "others.csv"],
    ],
    ids=lambda asked: "-".join(part for part in asked if part.isalnum() or "-" in part)[:60],
)
def test_every_attack_prints_its_baseline(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["attack", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"success", "baseline", "interval", "verdict"} <= set(found)


def test_the_report_of_one_attack_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["attack", "homogeneity", "bad.csv", *ASKED, "--report", "attack.md"]
    assert app.run(asked) == 0
    assert "Attack: homogeneity" in Path("attack.md").read_text(encoding="utf-8")
    assert app.run(asked) == 2
    assert "--force" in capsys.readouterr().err


def test_a_release_that_is_not_there_is_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["gate", "god.csv", *ASKED]) == 2
    told = capsys.readouterr().err
    assert 'There is no file "god.csv". Did you mean "good.csv"?' in told
    assert "--kind" not in told
