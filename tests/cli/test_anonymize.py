from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cloister.cli import app

SCHEMA = """\
columns:
  patient_id: {role: identifier, kind: nominal}
  age: {role: quasi, kind: numeric, bounds: [0, 110]}
  sex: {role: quasi, kind: nominal, categories: [F, M]}
  diagnosis: {role: sensitive, kind: nominal, categories: [asthma, flu, none]}
"""


@pytest.fixture(autouse=True)
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [f"p{n},{20 + n % 40},{'FM'[n % 2]},{('asthma', 'flu', 'none')[n % 3]}" for n in range(300)]
    Path("visits.csv").write_text("\n".join(["patient_id,age,sex,diagnosis", *rows]), encoding="utf-8")
    Path("visits.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def run(*options: str) -> int:
    return app.run(["anonymize", "visits.csv", "--schema", "visits.yaml", *options])


def measured(*options: str) -> int:
    return app.run(["risk", "visits.csv", "--schema", "visits.yaml", *options])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert run(*options) == 2
    return capsys.readouterr().err


def test_a_protected_table_its_report_and_its_recipe_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "7", "--l", "2", "-o", "out.csv", "--report", "out.html", "--recipe", "out.yaml") == 0
    shown = capsys.readouterr().out
    assert "The protected table is in out.csv." in shown
    assert "looks the same as at least 6 others" in shown
    assert "Mind" in shown
    header, *rows = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert header == '"age","sex","diagnosis"'
    classes = Counter(row.rsplit(",", 1)[0] for row in rows)
    assert len(rows) == 300
    assert min(classes.values()) >= 7
    assert "What is promised" in Path("out.html").read_text(encoding="utf-8")


def test_what_was_chosen_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "7", "-o", "out.csv", "--report", "out.html") == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Chosen for the least loss: ")]
    assert len(told) == 1
    assert "full-domain recoding (optimal)" in told[0]
    assert "Chosen for the least loss" in Path("out.html").read_text(encoding="utf-8")


def test_a_column_that_says_nothing_any_more_is_said_before_all_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "150", "--algorithm", "optimal", "-o", "out.csv", "--force") == 0
    assert capsys.readouterr().out.startswith('"age" says nothing any more: every released row shows *.\n')


def test_a_recipe_makes_the_same_table_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "4", "--t", "0.3", "--algorithm", "mondrian", "-o", "one.csv", "--recipe", "r.yaml") == 0
    assert run("--from-recipe", "r.yaml", "-o", "two.csv") == 0
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    capsys.readouterr()


def test_recursive_diversity_takes_its_factor(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--l", "2", "--l-kind", "recursive", "--c", "2", "-o", "out.csv", "--json") == 0
    assert document(capsys)["guarantee"]["c"] == "2"


def test_any_model_is_asked_for_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    model = "p-sensitivity(attribute=diagnosis, p=2, k=4)"
    assert run("--model", model, "--model", "t_closeness(attribute=diagnosis, t=0.9)", "-o", "out.csv", "--json") == 0
    parts = document(capsys)["guarantee"]["parts"]
    assert [(part["schema"], part.get("p"), part.get("t")) for part in parts] == [
        ("cloister.guarantee.p_sensitivity/1", 2, None),
        ("cloister.guarantee.t_closeness/1", None, "9/10"),
    ]


def test_json_says_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "5", "-o", "out.parquet", "--json") == 0
    told = document(capsys)
    assert told["schema"] == "cloister.release/1"
    assert told["output"] == "out.parquet"
    assert told["guarantee"]["k"] == 5
    assert pq.read_table("out.parquet").num_rows == 300


def test_the_frontier_is_drawn_and_no_table_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--frontier", "f.svg", "--l", "1.5", "--l-kind", "entropy") == 0
    assert "on the frontier" in capsys.readouterr().out
    assert Path("f.svg").read_text(encoding="utf-8").startswith("<svg")


def test_anatomy_writes_two_tables(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--l", "3", "--l-kind", "frequency", "--algorithm", "anatomy", "-o", "a.csv", "--report", "a.md"]
    assert run(*options) == 0
    assert "a.quasi.csv and a.sensitive.csv" in capsys.readouterr().out
    assert "GroupID" in Path("a.quasi.csv").read_text(encoding="utf-8")
    assert "EM and deFinetti" in Path("a.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "5"], "add -o protected.csv"),
        (["-o", "out.csv"], "add --k 5"),
        (["--k", "5", "-o", "out.txt"], ".csv, .parquet"),
        (["--k", "5", "-o", "visits.csv"], "would replace what is read"),
        (["--k", "5", "-o", "missing/out.csv"], "make it first"),
        (["--k", "5", "-o", "there.csv"], "say --force"),
        (["--k", "5", "-o", "out.csv", "--algorithm", "mondiran"], 'Did you mean "mondrian"'),
        (["--k", "5", "-o", "out.csv", "--from-recipe", "r.yaml"], "drop --k, --l and --t"),
        (["--from-recipe", "r.yaml", "-o", "out.csv"], "add anonymize:"),
        (["--frontier", "f.svg", "--k", "5"], "drop --k and --algorithm"),
        (["--frontier", "f.svg", "-o", "out.csv"], "drop -o, --report"),
        (["--frontier", "f.svg", "--model", "k_map(k=2)"], "and --model, or --frontier"),
        (["--model", "k_map(k=2)", "-o", "out.csv", "--from-recipe", "r.yaml"], "--t, --model"),
        (["--model", "k_anonymty(k=2)", "-o", "out.csv"], 'Did you mean "k_anonymity"'),
        (["--from-recipe", "r.yaml", "-o", "out.csv", "--algorithm", "optimal"], "--from-recipe"),
        (["--from-recipe", "r.yaml", "-o", "out.csv", "--suppression-limit", "0.1"], "--from-recipe"),
        (["--l", "3", "--algorithm", "anatomy", "-o", "out.csv", "--recipe", "a.yaml"], "drop --recipe"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    Path("there.csv").write_text("", encoding="utf-8")
    recipe = "schema: cloister.recipe/1\noperations:\n  - {operation: drop_column, columns: [patient_id]}\n"
    Path("r.yaml").write_text(recipe, encoding="utf-8")
    assert words in refusal(capsys, *options)
    assert not Path("out.csv").exists()


def test_a_k_beyond_the_table_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "5000", "-o", "out.csv") == 1
    assert "at most the number of rows" in capsys.readouterr().err


def test_a_sensitive_column_has_to_be_one_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    told = refusal(capsys, "--k", "5", "--sensitive", "diagnosys", "-o", "out.csv")
    assert 'Did you mean "diagnosis"?' in told
    assert not Path("out.csv").exists()


def test_diversity_needs_a_sensitive_column(capsys: pytest.CaptureFixture[str]) -> None:
    Path("visits.yaml").write_text(SCHEMA.replace("sensitive", "insensitive"), encoding="utf-8")
    assert "role: sensitive" in refusal(capsys, "--l", "2", "-o", "out.csv")


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run("--k", "5", "-o", "out.csv") == 0
    capsys.readouterr()


def test_risk_measures_a_raw_table_and_says_how_to_protect_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert measured("--k", "50") == 0
    shown = capsys.readouterr().out
    assert "attacker knows" in shown
    assert "anonymize visits.csv --schema visits.yaml --k 50" in shown


def test_risk_writes_a_report_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert measured("--report", "risk.html", "--population", "100000", "--json") == 0
    assert document(capsys)["schema"] == "cloister.assessment/1"
    assert "not for publication" in Path("risk.html").read_text(encoding="utf-8")


def test_risk_compares_a_protected_table_with_its_original(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--k", "5", "--algorithm", "mondrian", "-o", "out.csv") == 0
    capsys.readouterr()
    assert app.run(["risk", "out.csv", "--schema", "visits.yaml", "--original", "visits.csv", "--json"]) == 0
    told = document(capsys)
    assert told["risk"]["models"]["k"] >= 5
    assert 0 < told["utility"]["losses"]["ncp"] < 1
