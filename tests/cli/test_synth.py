from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cloister import synth
from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.cli import app
from cloister.synth import row_comparison

SECRET = "zanzibar"
SCHEMA = """\
columns:
  patient_id: {role: identifier, kind: nominal}
  age: {role: quasi, kind: numeric, bounds: [0, 110]}
  sex: {role: quasi, kind: nominal, categories: [F, M]}
  sick: {role: sensitive, kind: nominal, categories: ["no", "yes"]}
  day: {role: quasi, kind: datetime, bounds: [2025-01-01, 2025-12-31]}
"""
LEDGER = ["--ledger", "sqlite:///budget.db", "--dataset", "clinic"]


@pytest.fixture(autouse=True)
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of patients and its schema."""
    monkeypatch.chdir(tmp_path)
    _write_patients()
    return tmp_path


def _write_patients() -> None:
    rows = ["patient_id,age,sex,sick,day"]
    for number in range(400):
        sick = number % 2
        rows.append(f"p{number % 100},{25 + 50 * sick},{'FM'[sick]},{('no', 'yes')[sick]},2025-0{1 + number % 9}-11")
    rows.append(f"{SECRET},30,F,no,2025-06-01")
    Path("people.csv").write_text("\n".join(rows), encoding="utf-8")
    Path("people.yaml").write_text(SCHEMA, encoding="utf-8")


def _synth(*options: str, out: str | None = "o.csv", first: tuple[str, ...] = ("synth",)) -> int:
    given = [*first, "people.csv", "--schema", "people.yaml", *options]
    given += [] if "--epsilon" in options else ["--epsilon", "3"]
    given += [] if "--method" in options else ["--method", "spanning-tree"]
    return app.run([*given, *(["-o", out] if out else [])])


def _refused(capsys: pytest.CaptureFixture[str], code: int, expected: int = 2) -> str:
    assert code == expected
    shown = capsys.readouterr()
    assert "\n\nFix: " in shown.err
    assert SECRET not in shown.err
    return shown.err


def _document(capsys: pytest.CaptureFixture[str], code: int) -> dict[str, Any]:
    assert code == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def _rows(path: str = "o.csv") -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _spent() -> Budget:
    with open_ledger("sqlite:///budget.db", create=False) as ledger:
        return ledger.spent("clinic")


# Fitting -------------------------------------------------------------------------------------------------------------


def test_the_price_and_the_noise_are_said_before_rows_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert _synth("--rows", "250", "--report", "r.html", "--card", "c.html", "--model", "m.cloister") == 0
    shown = capsys.readouterr().out
    places = [shown.index(part) for part in ("This costs epsilon = 3 per row.", "How far each count", "250 made-up")]
    assert places == sorted(places)
    assert "- sex: ± " in shown
    assert "Nothing remembers what was spent" in shown
    rows = _rows()
    assert len(rows) == 250
    assert list(rows[0]) == ["age", "sex", "sick", "day"]
    assert Counter((row["sex"] == "F") == (row["sick"] == "no") for row in rows)[True] > 150
    for name in ("o.csv", "r.html", "c.html", "m.cloister"):
        assert SECRET not in Path(name).read_text("utf-8")
    assert "epsilon = 3" in Path("c.html").read_text("utf-8")


def test_the_command_may_be_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, _synth("--json", "--method", "independent", first=("synth", "fit")))
    assert found["schema"] == "cloister.synthesis/1"
    assert found["method"] == "independent"
    assert found["columns"] == ["age", "sex", "sick", "day"]
    assert found["rows"] == len(_rows())
    assert [step["label"] for step in found["steps"]] == ["age", "sex", "sick", "day"]
    assert app.run(["synth", "--help"]) == 0
    assert "cloister synth sample MODEL" in capsys.readouterr().out


def test_the_default_method_is_adaptive(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["synth", "--epsilon", "3", "--schema", "people.yaml", "--columns", "sex,sick", "--json", "-o", "o.csv"]
    assert _document(capsys, app.run([*given, "people.csv"]))["method"] == "adaptive"


def test_the_ledger_is_charged_once_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--budget-epsilon", "4", "--budget-delta", "1e-5", "--delta", "1e-6", "--columns", "sex,sick")
    assert _synth(*LEDGER, *more, "--model", "m.cloister") == 0
    shown = capsys.readouterr().out
    assert 'The account "clinic" is new. Its budget is epsilon 4, delta 1e-05, ever.' in shown
    assert "Left: epsilon 1, delta 9e-06." in shown
    assert _spent() == Budget(epsilon=3, delta=1e-6)
    assert synth.load("m.cloister").provenance_.dataset == "clinic"
    assert app.run(["synth", "sample", "m.cloister", "-n", "7", "-o", "more.csv"]) == 0
    assert _spent() == Budget(epsilon=3, delta=1e-6)
    capsys.readouterr()
    assert "only 1 is left" in _refused(capsys, _synth(*LEDGER, out="n.csv"), expected=1)
    assert not Path("n.csv").exists()


def test_a_preview_spends_and_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert _synth("--preview", "--expected-rows", "400", out=None) == 0
    shown = capsys.readouterr().out
    assert "With about 400 rows, noise alone misplaces" in shown
    assert "Nothing was spent." in shown
    new = _document(capsys, _synth("--preview", "--json", *LEDGER, "--budget-epsilon", "5", out=None))
    assert new["schema"] == "cloister.synthesis_preview/1"
    assert new["remaining"]["epsilon"] == "5"
    assert {"what": "sex", "cells": 3}.items() <= new["expected"][1].items()
    assert not Path("budget.db").exists()
    assert not Path("o.csv").exists()


def test_persons_are_protected_by_name_or_by_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, _synth("--json", "--unit", "patient_id", "--limit", "4", "--columns", "sex,sick"))
    assert found["guarantee"]["unit"] == "patient_id"
    marked = SCHEMA.replace("{role: identifier, kind: nominal}", "{role: identifier, kind: nominal, subject: true}")
    Path("people.yaml").write_text(marked, encoding="utf-8")
    found = _document(capsys, _synth("--json", "--force", "--columns", "sex,sick"))
    assert found["guarantee"]["unit"] == "patient_id"


def test_bins_complete_columns_settings_and_constraints_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    Path("rules.yaml").write_text("- impossible: {sex: M, sick: 'no'}\n", encoding="utf-8")
    how = ("--bins", "age=4", "--bins", "day=12", "--complete", "all", "--constraints", "rules.yaml")
    assert _synth(*how, "--set", "center=sick", "--model", "m.cloister", "--rows", "300") == 0
    assert not [row for row in _rows() if (row["sex"], row["sick"]) == ("M", "no")]
    domain = synth.load("m.cloister").fitted_facts.domain
    assert domain.sizes == (4, 2, 2, 12)
    capsys.readouterr()
    assert _synth("--bins", "5", "--complete", "age,sex", "--force", "--model", "n.cloister") == 0
    assert synth.load("n.cloister").fitted_facts.domain.sizes == (5, 2, 3, 6)
    edges = ("--bins", "age=0,1,18,65", "--bins", "day=2024-01-01,2024-07-01,2025-01-01")
    assert _synth(*edges, "--complete", "all", "--force", "--model", "e.cloister") == 0
    assert synth.load("e.cloister").fitted_facts.domain.sizes == (3, 2, 2, 2)


class _Found:
    """What an evaluation looks like."""

    def report(self, *, title: str) -> Any:
        from cloister.report import Report, Section, Text

        told = "For the custodian of the real rows only."
        return Report(title, summary=told, sections=[Section("Nearness", [Text("Exact figures.")])])


def test_the_report_compares_with_the_rows_and_the_card_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Any] = []

    def evaluate(real: Any, made: Any, **how: Any) -> _Found:
        seen.append((real.count(), made.count(), how))
        return _Found()

    monkeypatch.setattr(row_comparison, "evaluate", evaluate)
    assert _synth("--rows", "10", "--report", "r.md", "--card", "c.md", "--columns", "sex,sick") == 0
    assert seen[0][:2] == (401, 10)
    report, card = Path("r.md").read_text("utf-8"), Path("c.md").read_text("utf-8")
    assert report.index("For the custodian") < report.index("Exact figures.") < report.index("What was measured")
    assert "may be published" not in report
    assert "may be published" in " ".join(card.split())
    assert "Exact figures." not in card
    assert "for your eyes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "out", "fix"),
    [
        (["--method", "adaptiv"], "o.csv", "adaptive"),
        (["--set", "center"], "o.csv", "NAME=VALUE"),
        (["--set", "epsilon=9"], "o.csv", "NAME=VALUE"),
        ([], None, "-o made-up.csv"),
        ([], "o.txt", ".csv"),
        ([], "people.csv", "another name"),
        (["--model", "m.csv"], "o.csv", ".cloister"),
        (["--report", "r.txt"], "o.csv", ".html"),
        (["--report", "r.html", "--card", "r.html"], "o.csv", "a name of its own"),
        (["--epsilon", "0"], "o.csv", "epsilon"),
        (["--bins", "many"], "o.csv", "--bins 32"),
        (["--bins", "agee=3"], "o.csv", "age"),
        (["--columns", "patient_id"], "o.csv", "leave it out"),
        (["--columns", "agee"], "o.csv", "age"),
        (["--complete", "agee"], "o.csv", "age"),
        (["--unit", "person"], "o.csv", "patient_id"),
        (["--constraints", "rules.yaml"], "o.csv", "path"),
        (["--constraints", "people.yaml"], "o.csv", "at_most"),
        (["--dataset", "clinic"], "o.csv", "--ledger"),
        (["--ledger", "sqlite:///budget.db"], "o.csv", "--dataset"),
        ([*LEDGER, "--budget-delta", "1e-6"], "o.csv", "--budget-epsilon"),
        (LEDGER, "o.csv", "--budget-epsilon"),
    ],
)
def test_misuse_is_explained_before_anything_is_paid(
    capsys: pytest.CaptureFixture[str], options: list[str], out: str | None, fix: str
) -> None:
    assert fix in _refused(capsys, _synth(*options, out=out))
    assert not Path("budget.db").exists()
    assert not Path("o.csv").exists()


def test_a_guessed_schema_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    guessed = SCHEMA.replace("bounds: [0, 110]}", "bounds: [0, 110], guessed: [bounds]}")
    Path("people.yaml").write_text(guessed, encoding="utf-8")
    assert "schema check" in _refused(capsys, _synth())


def test_what_promises_nothing_private_takes_nothing_from_a_ledger(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cloister.core.guarantees import NoGuarantee

    monkeypatch.setattr(
        synth.IndependentMarginals, "_promise", lambda self, facts: (NoGuarantee(reason="it is a test"), None)
    )
    wanted = ("--method", "independent", "--columns", "sex,sick")
    assert "leave --ledger out" in _refused(capsys, _synth(*wanted, *LEDGER))
    assert _synth(*wanted, "--preview", out=None) == 0
    assert "This takes nothing from a budget" in capsys.readouterr().out


# More rows -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _write_patients()
        assert _synth("--model", "m.cloister", "--delta", "1e-6") == 0
    return folder / "m.cloister"


@pytest.fixture
def model(fitted_once: Path, clinic: Path, capsys: pytest.CaptureFixture[str]) -> str:
    shutil.copy(fitted_once, clinic)
    capsys.readouterr()
    return "m.cloister"


def test_more_rows_are_free_and_a_seed_gives_them_again(capsys: pytest.CaptureFixture[str], model: str) -> None:
    for name in ("a.csv", "b.csv"):
        assert app.run(["synth", "sample", model, "-n", "50", "--seed", "7", "-o", name, "--card", f"{name}.md"]) == 0
    assert Path("a.csv").read_text("utf-8") == Path("b.csv").read_text("utf-8")
    assert "50 made-up rows are in b.csv. The model: epsilon = 3, delta = 1e-06 per row." in capsys.readouterr().out
    assert "delta = 1e-06" in Path("a.csv.md").read_text("utf-8")
    found = _document(capsys, app.run(["synth", "sample", model, "-n", "9", "-o", "c.parquet", "--json"]))
    assert found["schema"] == "cloister.synthetic_rows/1"
    assert found["rows"] == 9


def test_rows_can_be_asked_for_under_conditions(capsys: pytest.CaptureFixture[str], model: str) -> None:
    where = ["--where", "sex=F", "--where", "age=20..30", "--where", "day=2025-02-01..2025-03-01"]
    assert app.run(["synth", "sample", model, "-n", "40", *where, "-o", "w.csv"]) == 0
    rows = _rows("w.csv")
    assert len(rows) == 40
    assert {row["sex"] for row in rows} == {"F"}
    assert all(20 <= int(row["age"]) <= 30 for row in rows)
    assert all("2025-02-01" <= row["day"] <= "2025-03-01" for row in rows)


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        (["--where", "sex"], "sex=F"),
        (["--where", "sex=X"], "categories"),
        (["--where", "sexx=F"], "sex"),
        (["--where", "age=old"], "30..40"),
        (["--where", "age=1..2", "--where", "age=5"], "one range"),
        (["--where", "age=50..20"], "inside its bounds"),
        (["-n", "0"], "--help"),
        (["-o", "w.txt"], ".csv"),
    ],
)
def test_wrong_conditions_are_explained(
    capsys: pytest.CaptureFixture[str], model: str, options: list[str], fix: str
) -> None:
    given = options if "-o" in options else [*options, "-o", "w.csv"]
    assert fix in _refused(capsys, app.run(["synth", "sample", model, *given]))


def test_what_is_no_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "path" in _refused(capsys, app.run(["synth", "sample", "none.cloister", "-o", "w.csv"]))
    assert "save()" in _refused(capsys, app.run(["synth", "sample", "people.csv", "-o", "w.csv"]))
