from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.cli import app

PEOPLE, VISITS = 400, 600
SECRET = "zanzibar"
SCHEMA = """\
columns:
  patient_id: {role: identifier, kind: nominal}
  age: {role: quasi, kind: numeric, bounds: [0, 110]}
  sex: {role: quasi, kind: nominal, categories: [F, M]}
  diagnosis: {role: sensitive, kind: nominal, categories: [asthma, flu, none]}
  town: {role: quasi, kind: nominal}
  weight: {role: sensitive, kind: numeric}
"""
COUNT = "SELECT COUNT(*) AS n FROM data"
BY_DIAGNOSIS = "SELECT diagnosis, COUNT(*) AS visits, AVG(age) AS mean_age FROM data GROUP BY diagnosis"
LEDGER = ["--ledger", "sqlite:///budget.db", "--dataset", "clinic"]


def _rows() -> str:
    rows = ["patient_id,age,sex,diagnosis,town,weight"]
    for number in range(VISITS):
        town = SECRET if number == 7 else ("north", "south")[number % 2]
        diagnosis = ("asthma", "flu", "none")[number % 3]
        rows.append(f"p{number % PEOPLE},{20 + number % 40},{'FM'[number % 2]},{diagnosis},{town},{50 + number % 30}")
    return "\n".join(rows)


@pytest.fixture(autouse=True)
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of visits and its schema."""
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text(_rows(), encoding="utf-8")
    Path("visits.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def _run(*options: str, sql: str = COUNT, schema: str = "visits.yaml") -> int:
    return app.run(["query", "visits.csv", "--schema", schema, "--sql", sql, *options])


def _document(capsys: pytest.CaptureFixture[str], *options: str, **settings: str) -> dict[str, Any]:
    assert _run(*options, "--json", **settings) == 0
    return json.loads(capsys.readouterr().out)


def _refused(capsys: pytest.CaptureFixture[str], *options: str, code: int = 2, **settings: str) -> str:
    assert _run(*options, **settings) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "\n\nFix: " in shown.err
    assert SECRET not in shown.err
    return shown.err


def _cleared(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    capsys.readouterr()
    return capsys


def _spent() -> Budget:
    with open_ledger("sqlite:///budget.db", create=False) as ledger:
        return ledger.spent("clinic")


# Answers -------------------------------------------------------------------------------------------------------------


def test_an_answer_says_question_price_margin_promise_and_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1", sql=BY_DIAGNOSIS) == 0
    shown = capsys.readouterr().out
    for words in (
        BY_DIAGNOSIS,
        "Epsilon 1.",
        "Nothing remembers what was spent",
        "19 times out of 20",
        "if one row is added or removed",
        "--unit COLUMN --limit NUMBER",
        "- age is clamped to 0 .. 110",
    ):
        assert words in shown
    header = next(line for line in shown.splitlines() if line.startswith("diagnosis"))
    assert header.split() == ["diagnosis", "visits", "±", "mean_age", "±"]


def test_one_number_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1") == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("n: "))
    # 3 is the 95% margin at epsilon 1; noise of 60 has a probability below exp(-59).
    assert abs(int(line.split()[1]) - VISITS) < 60
    assert line.endswith("± 3")


def test_json_is_the_frame_with_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    document = _document(capsys, "--epsilon", "0.1", *LEDGER, "--budget-epsilon", "1", sql=BY_DIAGNOSIS)
    assert document["schema"] == "cloister.query_frame/1"
    assert [column["name"] for column in document["columns"]] == ["diagnosis", "visits", "mean_age"]
    assert document["columns"][0]["values"] == ["asthma", "flu", "none"]
    assert len(document["columns"][1]["margin"]["half_widths"]) == 3
    assert document["guarantee"]["epsilon"] == "1/10"
    assert document["guarantee"]["holds"]
    assert document["sql"] == BY_DIAGNOSIS
    assert document["dataset"] == "clinic"
    assert document["remaining"]["epsilon"] == "9/10"


def test_without_a_ledger_nothing_is_left_to_tell(capsys: pytest.CaptureFixture[str], clinic: Path) -> None:
    document = _document(capsys, "--rho", "0.05")
    assert document["remaining"] is None
    assert document["dataset"] is None
    assert document["guarantee"]["rho"] == "1/20"
    assert sorted(path.name for path in clinic.iterdir()) == ["visits.csv", "visits.yaml"]


def test_a_rank_has_its_margin_in_the_notes(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1", sql="SELECT MEDIAN(age) AS middle FROM data") == 0
    shown = capsys.readouterr().out
    assert "(how far off: see notes)" in shown
    assert "19 times out of 20" not in shown
    assert _run("--epsilon", "1", sql="SELECT sex, MEDIAN(age) AS middle FROM data GROUP BY sex") == 0
    assert "see notes" in capsys.readouterr().out


def test_private_groups_need_delta_and_hide_the_small_ones(capsys: pytest.CaptureFixture[str]) -> None:
    by_town = "SELECT town, COUNT(*) AS n FROM data GROUP BY town"
    assert "--delta 1e-6" in _refused(capsys, "--epsilon", "1", sql=by_town)
    # A single row passes the threshold with probability 1e-9.
    assert _run("--epsilon", "2", "--delta", "1e-9", sql=by_town) == 0
    shown = capsys.readouterr().out
    assert "north" in shown
    assert SECRET not in shown


def test_an_empty_answer_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT town, COUNT(*) AS n FROM data GROUP BY town HAVING COUNT(*) > 100000"
    assert _run("--epsilon", "2", "--delta", "1e-9", sql=sql) == 0
    assert "No rows: no group is large enough" in capsys.readouterr().out


# Persons -------------------------------------------------------------------------------------------------------------


def test_persons_are_protected_with_all_their_rows(capsys: pytest.CaptureFixture[str]) -> None:
    document = _document(capsys, "--epsilon", "1", "--unit", "patient_id", "--limit", "2")
    assert document["guarantee"]["unit"] == "patient_id"
    assert document["guarantee"]["adjacency"] == "user"


def test_the_subject_of_the_schema_is_the_unit_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = SCHEMA.replace("patient_id: {role: identifier", "patient_id: {subject: true, role: identifier")
    Path("subject.yaml").write_text(text, encoding="utf-8")
    advice = _refused(capsys, "--epsilon", "1", schema="subject.yaml")
    assert 'How many rows a "patient_id" counts for' in advice
    assert "Fix: add --limit NUMBER" in advice
    with_limit = _document(capsys, "--epsilon", "1", "--limit", "2", schema="subject.yaml")
    assert with_limit["guarantee"]["unit"] == "patient_id"
    rows = _document(capsys, "--epsilon", "1", "--unit", "row", schema="subject.yaml")
    assert rows["guarantee"]["unit"] == "row"


def test_who_says_rows_is_not_asked_about_persons(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1", "--unit", "row") == 0
    assert "--unit COLUMN" not in capsys.readouterr().out


# Preview -------------------------------------------------------------------------------------------------------------


def test_a_preview_spends_and_writes_nothing(capsys: pytest.CaptureFixture[str], clinic: Path) -> None:
    assert _run("--epsilon", "0.5", "--preview", *LEDGER, "--budget-epsilon", "1", sql=BY_DIAGNOSIS) == 0
    shown = capsys.readouterr().out
    assert "nothing was spent" in shown
    assert 'Epsilon 1 is left of "clinic": enough.' in shown
    assert "in each of 3 groups" in shown
    assert not (clinic / "budget.db").exists()


def test_a_preview_counts_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the table was read")

    monkeypatch.setattr("cloister.queries._budgeted_table.measure", fail)
    assert _run("--epsilon", "0.5", "--preview", sql=BY_DIAGNOSIS) == 0
    assert "not known" in capsys.readouterr().out


def test_a_preview_finds_the_price_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    document = _document(capsys, "--preview", "--error", "10")
    assert document["schema"] == "cloister.query_preview/1"
    assert document["forecasts"][0]["half_width"] <= 10
    assert document["affordable"] is None
    assert document["remaining"] is None
    assert _run("--preview", "--error", "10") == 0
    # Beyond 10 with probability 2 a**11 / (1 + a), a = exp(-epsilon): 5% at 0.28435, rounded up 0.285.
    assert "An error of 10 needs epsilon 0.285." in capsys.readouterr().out


def test_a_preview_of_a_mean_takes_a_guess_of_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT AVG(age) FROM data"
    document = _document(capsys, "--preview", "--epsilon", "1", "--rows", "500", sql=sql)
    assert [item["rows"] for item in document["forecasts"]] == [500]


def test_a_preview_reads_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "0.6", *LEDGER, "--budget-epsilon", "1") == 0
    document = _document(_cleared(capsys), "--epsilon", "0.5", "--preview", *LEDGER)
    assert document["remaining"]["epsilon"] == "2/5"
    assert document["affordable"] is False
    assert _run("--epsilon", "0.5", "--preview", *LEDGER) == 0
    assert "not enough" in capsys.readouterr().out
    assert _spent() == Budget(epsilon="0.6")


def test_a_preview_of_a_new_dataset_opens_no_account(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "0.6", *LEDGER, "--budget-epsilon", "1") == 0
    other = ["--ledger", "sqlite:///budget.db", "--dataset", "school", "--budget-epsilon", "3"]
    document = _document(_cleared(capsys), "--epsilon", "0.5", "--preview", *other)
    assert document["remaining"]["epsilon"] == "3"
    with open_ledger("sqlite:///budget.db") as ledger:
        assert [account.dataset for account in ledger.accounts()] == ["clinic"]


def test_a_preview_says_that_groups_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT town, COUNT(*) AS n FROM data GROUP BY town"
    assert _run("--epsilon", "1", "--delta", "1e-6", "--preview", sql=sql) == 0
    assert "in every group, chosen privately" in capsys.readouterr().out


def test_a_preview_of_a_rank_is_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1", "--preview", sql="SELECT MEDIAN(age) FROM data") == 0
    assert "rows in rank" in capsys.readouterr().out


# Ledger --------------------------------------------------------------------------------------------------------------


def test_the_ledger_remembers_between_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "0.6", *LEDGER, "--budget-epsilon", "1") == 0
    first = capsys.readouterr().out
    assert 'The account "clinic" is new. Its budget is epsilon 1, ever.' in first
    assert 'Epsilon 0.6, taken before the table was read. Epsilon 0.4 is left of "clinic".' in first
    assert _run("--epsilon", "0.6", *LEDGER) == 0
    second = capsys.readouterr().out
    assert "Nothing: this was asked before" in second
    assert [line for line in first.splitlines() if line.startswith("n: ")] == [
        line for line in second.splitlines() if line.startswith("n: ")
    ]
    advice = _refused(capsys, "--epsilon", "0.6", "--fresh", *LEDGER, code=1)
    assert "only 0.4 is left" in advice
    assert _spent() == Budget(epsilon="0.6")


def test_another_version_of_the_data_is_asked_anew(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "0.1", *LEDGER, "--budget-epsilon", "1") == 0
    assert _run("--epsilon", "0.1", "--data-version", "2027", *LEDGER) == 0
    assert _spent() == Budget(epsilon="0.2")


def test_a_limit_for_an_analyst_holds(capsys: pytest.CaptureFixture[str]) -> None:
    with open_ledger("sqlite:///budget.db") as ledger:
        ledger.open_account("clinic", budget=Budget(epsilon=5))
        ledger.limit_analyst("clinic", analyst="ada", budget=Budget(epsilon=1))
    assert _run("--epsilon", "0.7", "--analyst", "ada", *LEDGER) == 0
    assert 'Epsilon 0.3 is left of "clinic" for ada.' in capsys.readouterr().out
    assert "only 0.3 is left" in _refused(capsys, "--epsilon", "0.8", "--analyst", "ada", *LEDGER, code=1)


def test_the_first_use_needs_a_budget(capsys: pytest.CaptureFixture[str], clinic: Path) -> None:
    assert "--budget-epsilon 1" in _refused(capsys, "--epsilon", "0.1", *LEDGER)
    assert not (clinic / "budget.db").exists()
    assert _run("--epsilon", "0.1", *LEDGER, "--budget-epsilon", "1") == 0
    capsys.readouterr()
    mistyped = ["--ledger", "sqlite:///budget.db", "--dataset", "clinik"]
    assert 'Did you mean "clinic"?' in _refused(capsys, "--epsilon", "0.1", *mistyped)


def test_another_budget_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "0.1", *LEDGER, "--budget-epsilon", "1") == 0
    capsys.readouterr()
    advice = _refused(capsys, "--epsilon", "0.1", *LEDGER, "--budget-epsilon", "2")
    assert 'The budget of "clinic" is epsilon 1, not epsilon 2.' in advice
    assert _run("--epsilon", "0.1", *LEDGER, "--budget-epsilon", "1") == 0


def test_another_unit_is_refused_with_the_option_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "0.1", *LEDGER, "--budget-epsilon", "1") == 0
    capsys.readouterr()
    assert "--unit row" in _refused(capsys, "--epsilon", "0.1", "--unit", "patient_id", "--limit", "2", *LEDGER)


def test_a_price_above_a_new_budget_opens_no_account(capsys: pytest.CaptureFixture[str]) -> None:
    assert "only 1 is left" in _refused(capsys, "--epsilon", "2", *LEDGER, "--budget-epsilon", "1", code=1)
    with open_ledger("sqlite:///budget.db") as ledger:
        assert ledger.accounts() == ()


def test_a_budget_in_rho(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*LEDGER, "--budget-rho", "1", "--budget-delta", "1e-6"]
    assert _document(capsys, "--rho", "0.1", *options)["remaining"]["rho"] == "9/10"
    assert _document(capsys, "--epsilon", "1", *LEDGER)["remaining"]["rho"] == "2/5"


def test_an_unreachable_ledger_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--ledger", "postgresql://nobody@127.0.0.1:1/budget", "--dataset", "clinic", "--budget-epsilon", "1"]
    assert "does not answer" in _refused(capsys, "--epsilon", "1", *options, code=1)


def test_of_two_who_race_for_the_last_of_a_budget_one_wins() -> None:
    with open_ledger("sqlite:///budget.db") as ledger:
        ledger.open_account("clinic", budget=Budget(epsilon=1))
    command = [sys.executable, "-m", "cloister", "query", "visits.csv", "--schema", "visits.yaml", "--sql", COUNT]
    command += ["--epsilon", "0.6", "--fresh", *LEDGER]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [racer.communicate()[1] for racer in racers]
    assert sorted(racer.returncode for racer in racers) == [0, 1], errors
    assert sum("only 0.4 is left" in error for error in errors) == 1
    assert _spent() == Budget(epsilon="0.6")


# Charts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "start"), [("a.svg", b"<svg"), ("a.PNG", b"\x89PNG"), ("a.json", b"{")])
def test_the_chart_is_written(name: str, start: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1", "--plot", name, sql=BY_DIAGNOSIS) == 0
    assert f"The chart is in {name}." in capsys.readouterr().out
    assert Path(name).read_bytes().startswith(start)


def test_a_file_is_replaced_only_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.svg").write_text("mine", encoding="utf-8")
    assert "--force" in _refused(capsys, "--epsilon", "1", "--plot", "a.svg")
    assert Path("a.svg").read_text("utf-8") == "mine"
    assert _run("--epsilon", "1", "--plot", "a.svg", "--force") == 0
    assert Path("a.svg").read_text("utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("name", "words"),
    [("a.pdf", "ends in .svg"), ("nowhere/a.svg", "make it first"), ("folder.svg", "choose another name")],
)
def test_a_chart_that_could_not_be_written_costs_nothing(
    name: str, words: str, capsys: pytest.CaptureFixture[str], clinic: Path
) -> None:
    Path("folder.svg").mkdir()
    options = ["--epsilon", "1", "--plot", name, "--force", *LEDGER, "--budget-epsilon", "1"]
    assert words in _refused(capsys, *options)
    assert not (clinic / "budget.db").exists()


def test_a_chart_never_replaces_the_data_or_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    Path("visits.svg").hardlink_to("visits.csv")
    Path("schema.svg").symlink_to("visits.yaml")
    for name in ("visits.svg", "schema.svg"):
        assert "would replace what is read" in _refused(capsys, "--epsilon", "1", "--plot", name, "--force")
    assert Path("visits.csv").read_text("utf-8") == _rows()


def test_a_missing_package_is_told_before_the_price_is_paid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], clinic: Path
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    options = [*LEDGER, "--budget-epsilon", "1"]
    assert "cloister[plot]" in _refused(capsys, "--epsilon", "1", "--plot", "a.svg", *options, code=1)
    assert not (clinic / "budget.db").exists()


def test_a_paid_answer_is_shown_also_when_no_chart_fits_it(capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT sex, diagnosis, age > 30 AS older, COUNT(*) AS n FROM data GROUP BY sex, diagnosis, age > 30"
    assert _run("--epsilon", "1", "--plot", "a.svg", sql=sql) == 2
    shown = capsys.readouterr()
    assert "asthma" in shown.out
    assert "The answer is complete, but not its chart." in shown.err


# Misuse --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--epsilon 0.1"),
        (["--epsilon", "1", "--rho", "1"], "--epsilon and --rho exclude each other"),
        (["--epsilon", "1", "--error", "5", "--preview"], "--epsilon and --error exclude each other"),
        (["--epsilon", "0"], "--epsilon 0.5"),
        (["--epsilon", "much"], "finite number"),
        (["--epsilon", "nan"], "finite number"),
        (["--epsilon", "1", "--delta", "2"], "--delta 1e-6"),
        (["--error", "5"], "add --preview"),
        (["--epsilon", "1", "--rows", "5"], "add --preview"),
        (["--preview", "--error", "0"], "above 0"),
        (["--epsilon", "1", "--limit", "2"], "--unit patient_id"),
        (["--epsilon", "1", "--limit", "0"], "--help"),
        (["--epsilon", "1", "--unit", "pattient_id", "--limit", "2"], 'Did you mean "patient_id"?'),
        (["--epsilon", "1", "--dataset", "clinic"], "--ledger sqlite:///budget.db"),
        (["--epsilon", "1", "--analyst", "ada"], "leave --analyst out"),
        (["--epsilon", "1", "--budget-epsilon", "2"], "leave --budget-epsilon out"),
        (["--epsilon", "1", "--fresh"], "leave --fresh out"),
        (["--epsilon", "1", "--ledger", "sqlite:///budget.db"], "add --dataset"),
        (["--epsilon", "1", "--ledger", "budget.db", "--dataset", "clinic"], "sqlite:///budget.db"),
        (["--epsilon", "1", *LEDGER, "--budget-delta", "1e-6"], "add --budget-epsilon"),
        (["--epsilon", "1", *LEDGER, "--budget-epsilon", "-1"], "at least 0"),
        (["--epsilon", "1", *LEDGER, "--budget-epsilon", "1", "--budget-rho", "1"], "one of them"),
        (["--epsilon", "1", "--preview", "--plot", "a.svg"], "nothing to draw"),
    ],
)
def test_misuse_names_the_option(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str], clinic: Path
) -> None:
    assert words in _refused(capsys, *options)
    assert not (clinic / "budget.db").exists()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM data", "COUNT(*)"),
        ("SELECT town FROM data", "town"),
        ("SELECT COUNT(*) FROM data WHERE agee > 3", 'Did you mean "age"?'),
        ("SELECT COUNT(*) FROM visits", "data"),
        ("SELECT SUM(weight) FROM data", "weight"),
        ("DROP TABLE data", "SELECT"),
        ("not sql at all", "SELECT"),
        ("", "SELECT"),
    ],
)
def test_a_question_that_cannot_be_answered_costs_nothing(
    sql: str, words: str, capsys: pytest.CaptureFixture[str], clinic: Path
) -> None:
    assert words in _refused(capsys, "--epsilon", "1", *LEDGER, "--budget-epsilon", "1", sql=sql)
    assert not (clinic / "budget.db").exists()


def test_guesses_are_refused_with_the_fix(capsys: pytest.CaptureFixture[str], clinic: Path) -> None:
    assert app.run(["schema", "infer", "visits.csv", "-o", "guesses.yaml"]) == 0
    capsys.readouterr()
    advice = _refused(capsys, "--epsilon", "1", *LEDGER, "--budget-epsilon", "1", schema="guesses.yaml")
    assert "The schema holds guesses" in advice
    assert 'delete the "guessed" lines, and run: ' in advice
    assert "schema check guesses.yaml" in advice
    assert "schema.confirm" not in advice
    assert not (clinic / "budget.db").exists()


def test_missing_files_are_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    _refused(capsys, "--epsilon", "1", schema="nowhere.yaml")
    assert app.run(["query", "nowhere.csv", "--schema", "visits.yaml", "--sql", COUNT, "--epsilon", "1"]) == 2
    assert "Fix: " in capsys.readouterr().err


def test_an_error_is_json_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1", "--json", sql="SELECT * FROM data") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err)["error"] == "UnsafeQueryError"


def test_encoding_and_missing_values_are_options(capsys: pytest.CaptureFixture[str]) -> None:
    text = _rows().replace(SECRET, "Zürich").replace(",20,", ",?,")
    Path("visits.csv").write_bytes(text.encode("latin-1"))
    assert "--encoding latin-1" in _refused(capsys, "--epsilon", "1")
    options = ["--encoding", "latin-1", "--missing", "?"]
    document = _document(capsys, "--epsilon", "1", *options, sql="SELECT COUNT(age) AS n FROM data")
    assert abs(document["columns"][0]["values"][0] - VISITS * 39 / 40) < 60


# Types of a CSV file -------------------------------------------------------------------------------------------------


def test_types_that_were_read_from_rows_are_said_to_be_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("--epsilon", "1") == 0
    assert "the types of columns are public, although they were read" in capsys.readouterr().out


def test_stated_types_are_not_assumed_and_no_row_changes_them(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ("age", "weight")
    lines = [
        line.replace("{", f"{{storage: {'integer' if line.strip().startswith(numbers) else 'text'}, ")
        for line in SCHEMA.splitlines()
    ]
    Path("stated.yaml").write_text("\n".join(lines), encoding="utf-8")
    forecasts = []
    for extra in ("", "\np1,1.5,F,flu,north,abc", "\np1,abc,F,flu,north,1e400"):
        Path("visits.csv").write_text(_rows() + extra, encoding="utf-8")
        forecasts.append(_document(capsys, "--epsilon", "1", "--preview", sql=BY_DIAGNOSIS, schema="stated.yaml"))
    assert forecasts[0] == forecasts[1] == forecasts[2]
    assert "types of columns" not in json.dumps(forecasts[0])
