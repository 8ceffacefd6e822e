from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from cloister import learn
from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.cli import app

SECRET = "zanzibar"
SCHEMA = """\
columns:
  patient_id: {role: identifier, kind: nominal}
  age: {role: quasi, kind: numeric, bounds: [0, 110]}
  sex: {role: quasi, kind: nominal, categories: [F, M]}
  sick: {role: sensitive, kind: nominal, categories: [no, yes]}
"""
LEDGER = ["--ledger", "sqlite:///budget.db", "--dataset", "clinic"]


@pytest.fixture(autouse=True)
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of patients and its schema."""
    monkeypatch.chdir(tmp_path)
    rows = ["patient_id,age,sex,sick"]
    for number in range(400):
        sick = number % 2
        rows.append(f"p{number % 100},{25 + number % 10 + 50 * sick},{'FM'[sick]},{('no', 'yes')[sick]}")
    rows.append(f"{SECRET},30,F,no")
    Path("people.csv").write_text("\n".join(rows), encoding="utf-8")
    Path("people.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def _train(
    *options: str, model: str = "gaussian_nb", out: str | None = "m.cloister", target: str | None = "sick"
) -> int:
    given = ["train", model, "people.csv", "--schema", "people.yaml", *options]
    given += [] if "--epsilon" in options else ["--epsilon", "3"]
    return app.run([*given, *(["-o", out] if out else []), *(["--target", target] if target else [])])


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


def _spent() -> Budget:
    with open_ledger("sqlite:///budget.db", create=False) as ledger:
        return ledger.spent("clinic")


# Training ------------------------------------------------------------------------------------------------------------


def test_training_says_the_price_first_and_writes_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert _train() == 0
    shown = capsys.readouterr().out
    assert shown.index("This costs epsilon = 3 per row.") < shown.index("The model is in m.cloister.")
    assert "counts, sums and squares of each class" in shown
    assert "Nothing remembers what was spent" in shown
    model = learn.load("m.cloister")
    assert model.encoding_.columns == ("age", "sex")
    assert SECRET not in Path("m.cloister").read_text()


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, _train("--json", "--features", "age", "--set", "variance_floor=0.01", "--delta", "1e-6"))
    assert found["schema"] == "cloister.training/1"
    assert found["features"] == ["age"]
    assert found["remaining"] is None
    model = learn.load("m.cloister")
    assert model.variance_floor == 0.01
    assert float(model.guarantee_.delta) == 1e-6


def test_the_ledger_is_charged_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert _train(*LEDGER, "--budget-epsilon", "5") == 0
    shown = capsys.readouterr().out
    assert 'The account "clinic" is new. Its budget is epsilon 5, ever.' in shown
    assert "Left: epsilon 2." in shown
    assert _spent() == Budget(epsilon=3)
    assert learn.load("m.cloister").provenance_.dataset == "clinic"
    error = _refused(capsys, _train(*LEDGER, out="n.cloister"), expected=1)
    assert "only 2 is left" in error
    assert not Path("n.cloister").exists()
    assert (
        _document(capsys, _train(*LEDGER, "--epsilon", "2", "--json", out="n.cloister"))["remaining"]["epsilon"] == "0"
    )


def test_a_preview_spends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert _train("--preview", out=None) == 0
    assert "Nothing was spent." in capsys.readouterr().out
    new = _document(capsys, _train("--preview", "--json", *LEDGER, "--budget-epsilon", "5", out=None))
    assert new["schema"] == "cloister.fit_preview/1"
    assert new["remaining"]["epsilon"] == "5"
    assert not Path("budget.db").exists()
    assert _train(*LEDGER, "--budget-epsilon", "5") == 0
    capsys.readouterr()
    known = _document(capsys, _train("--preview", "--json", *LEDGER, out=None))
    assert known["remaining"]["epsilon"] == "2"
    assert _spent() == Budget(epsilon=3)


def test_persons_are_protected_by_name_or_by_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, _train("--json", "--unit", "patient_id", "--limit", "4"))
    assert found["guarantee"]["unit"] == "patient_id"
    marked = SCHEMA.replace("{role: identifier, kind: nominal}", "{role: identifier, kind: nominal, subject: true}")
    Path("people.yaml").write_text(marked, encoding="utf-8")
    assert _document(capsys, _train("--json", "--force"))["guarantee"]["unit"] == "patient_id"
    assert _document(capsys, _train("--json", "--force", "--unit", "row"))["guarantee"]["unit"] == "row"


@pytest.mark.parametrize(
    ("options", "settings", "fix"),
    [
        ([], {"model": "gaussian_nbb"}, "gaussian_nb"),
        ([], {"target": None}, "--target"),
        ([], {"target": "sickk"}, 'Did you mean "sick"'),
        ([], {"target": "sickk"}, "--target one of patient_id"),
        ([], {"out": None}, "-o model.cloister"),
        ([], {"out": "m.csv"}, ".cloister"),
        ([], {"out": "people.yaml"}, "would replace what is read"),
        (["--epsilon", "0"], {}, "epsilon"),
        (["--features", "age,agee"], {}, "agee"),
        (["--features", "patient_id"], {}, "categories"),
        (["--set", "variance_floor"], {}, "NAME=VALUE"),
        (["--set", "epsilon=9"], {}, "NAME=VALUE"),
        (["--set", "ledger=x"], {}, "NAME=VALUE"),
        (["--dataset", "clinic"], {}, "--ledger"),
        (["--budget-epsilon", "3"], {}, "--ledger"),
        (["--ledger", "sqlite:///budget.db"], {}, "--dataset"),
        ([*LEDGER, "--budget-delta", "1e-6"], {}, "--budget-epsilon"),
        (LEDGER, {}, "--budget-epsilon"),
        (["--unit", "person"], {}, "person"),
    ],
)
def test_misuse_is_refused_and_costs_nothing(
    capsys: pytest.CaptureFixture[str], options: list[str], settings: dict[str, Any], fix: str
) -> None:
    assert fix in _refused(capsys, _train(*options, **settings))
    assert not Path("budget.db").exists()
    assert not Path("m.cloister").exists()


def test_files_are_replaced_by_force_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert _train() == 0
    capsys.readouterr()
    assert "--force" in _refused(capsys, _train())
    assert _train("--force") == 0


def test_guesses_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["schema", "infer", "people.csv", "-o", "people.yaml", "--force"]) == 0
    capsys.readouterr()
    assert "schema check" in _refused(capsys, _train())


# Predicting ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def trained(capsys: pytest.CaptureFixture[str]) -> str:
    assert _train("--epsilon", "50") == 0
    capsys.readouterr()
    return "m.cloister"


def _predict(*options: str, out: str = "p.csv", data: str = "people.csv") -> int:
    return app.run(["predict", "m.cloister", data, "-o", out, *options])


def test_predictions_stand_beside_the_rows(trained: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, _predict("--keep", "patient_id, age", "--probabilities", "--json"))
    assert found["schema"] == "cloister.predictions/1"
    with Path("p.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["patient_id", "age", "prediction", "probability_no", "probability_yes"]
    assert len(rows) == found["rows"] == 401
    right = sum((row["prediction"] == "yes") == (int(row["age"]) > 60) for row in rows)
    assert right > 390
    assert trained


def test_predictions_say_what_the_model_promises(trained: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _predict(out="p.parquet") == 0
    assert "epsilon = 50 per row" in capsys.readouterr().out
    assert trained


@pytest.mark.parametrize(
    ("options", "settings", "fix"),
    [
        (["--keep", "agee"], {}, "agee"),
        ([], {"out": "p.txt"}, ".csv"),
        ([], {"out": "people.csv"}, "another name"),
        ([], {"data": "none.csv"}, "none.csv"),
        ([], {"data": "other.csv"}, "sex"),
    ],
)
def test_odd_predictions_are_refused(
    trained: str, capsys: pytest.CaptureFixture[str], options: list[str], settings: dict[str, str], fix: str
) -> None:
    Path("other.csv").write_text("age\n5\n", encoding="utf-8")
    assert fix in _refused(capsys, _predict(*options, **settings))
    assert trained


def test_damaged_models_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.cloister").write_text("{}", encoding="utf-8")
    assert "train again" in _refused(capsys, _predict())
    Path("m.cloister").unlink()
    assert "path of the model" in _refused(capsys, _predict())


def test_a_kept_column_may_not_be_hidden(trained: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("people.csv").read_text(encoding="utf-8").replace("patient_id", "prediction", 1)
    Path("people.csv").write_text(lines, encoding="utf-8")
    assert "leave it out of --keep" in _refused(capsys, _predict("--keep", "prediction"))
    assert trained


# Evaluating ----------------------------------------------------------------------------------------------------------


def test_accuracy_stands_beside_the_simplest_guess(trained: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", trained, "people.csv", "--target", "sick", "--schema", "people.yaml"]
    assert app.run(command) == 0
    shown = capsys.readouterr().out
    assert "the simplest guess: 0.5012" in shown
    assert "not for release" in shown
    found = _document(capsys, app.run([*command, "--json"]))
    assert found["schema"] == "cloister.evaluation/1"
    assert found["value"] > 0.95
    assert found["guarantee"]["schema"].startswith("cloister.guarantee.")


def test_odd_evaluations_are_refused(trained: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--target one of" in _refused(capsys, app.run(["evaluate", trained, "people.csv", "--target", "sickk"]))


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run([command, "--help"]) == 0
    assert f"cloister {command} " in capsys.readouterr().out.split("Example:")[1]
