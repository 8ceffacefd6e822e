from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from cloister.cli import app

ROWS = "visit_id,age,diagnosis\n" + "\n".join(f"v{n},{20 + n % 30},{'asthma' if n % 3 else 'flu'}" for n in range(60))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "visits.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def _write_schema(path: Path, *, age: str = "{role: quasi, kind: numeric, bounds: [0, 110]}") -> None:
    path.write_text(
        "columns:\n"
        "  visit_id: {role: identifier}\n"
        f"  age: {age}\n"
        "  diagnosis: {role: sensitive, kind: nominal, categories: [asthma, flu, other]}\n",
        encoding="utf-8",
    )


def test_infer_writes_a_file_and_says_why(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["schema", "infer", "visits.csv", "-o", "visits.yaml"]) == 0
    shown = capsys.readouterr().out
    assert "age" in shown
    assert "numeric" in shown
    assert "cloister schema check visits.yaml visits.csv" in shown
    assert "guessed" in (data.parent / "visits.yaml").read_text("utf-8")


def test_infer_prints_json_only(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["schema", "infer", "visits.csv", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "cloister.schema.proposal/1"
    assert document["file"] == "schema.yaml"
    assert set(document["proposal"]["columns"]) == {"visit_id", "age", "diagnosis"}


def test_infer_overwrites_only_when_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = data.parent / "schema.yaml"
    mine.write_text("columns: # my careful work", encoding="utf-8")
    assert app.run(["schema", "infer", "visits.csv"]) == 2
    assert "Fix: choose another name, or say --force." in capsys.readouterr().err
    assert mine.read_text("utf-8") == "columns: # my careful work"
    assert app.run(["schema", "infer", "visits.csv", "--force"]) == 0
    assert "visit_id:" in mine.read_text("utf-8")


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("visits.csv", "visits.csv"),
        ("visits.csv", "./sub/../visits.csv"),
        ("*.csv", "visits.csv"),
        ("visits.csv", "link.yaml"),
        ("visits.csv", "hard.yaml"),
        ("link.csv", "visits.csv"),
    ],
)
def test_infer_never_replaces_the_data(
    source: str, target: str, force: list[str], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data.parent / "sub").mkdir()
    (data.parent / "link.yaml").symlink_to(data)
    (data.parent / "hard.yaml").hardlink_to(data)
    (data.parent / "link.csv").symlink_to(data)
    assert app.run(["schema", "infer", source, "-o", target, *force]) == 2
    assert "would replace what is read" in capsys.readouterr().err
    assert data.read_text("utf-8") == ROWS
    assert (data.parent / "link.yaml").is_symlink()


@pytest.mark.parametrize("content", [b"name,columns:\nx,1\n", b"\xff\xfe\x00", b"my essay"])
def test_infer_never_replaces_what_is_no_schema(content: bytes, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = data.parent / "other.txt"
    other.write_bytes(content)
    assert app.run(["schema", "infer", "visits.csv", "-o", "other.txt", "--force"]) == 2
    assert "is no schema" in capsys.readouterr().err
    assert other.read_bytes() == content


def test_infer_replaces_an_empty_file_when_told(data: Path) -> None:
    (data.parent / "schema.yaml").touch()
    assert app.run(["schema", "infer", "visits.csv", "--force"]) == 0


def test_the_file_of_a_duckdb_database_is_data_too(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with duckdb.connect("store.duckdb") as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS age")
    url = "duckdb:///store.duckdb?table=visits"
    assert app.run(["schema", "infer", url, "-o", "store.duckdb", "--force"]) == 2
    assert "would replace what is read" in capsys.readouterr().err
    assert app.run(["schema", "infer", url]) == 0


def test_infer_wants_an_existing_folder(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["schema", "infer", "visits.csv", "-o", "nowhere/schema.yaml"]) == 2
    assert "Fix: make it first" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "text"), [("missing.csv", None), ("empty.csv", ""), ("odd.xyz", "a,b\n1,2\n")])
def test_bad_data_is_misuse_and_writes_nothing(
    name: str, text: str | None, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (data.parent / name).write_text(text, encoding="utf-8")
    assert app.run(["schema", "infer", name]) == 2
    assert "\n\nFix: " in capsys.readouterr().err
    assert not (data.parent / "schema.yaml").exists()


def test_check_passes_a_complete_schema(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_schema(data.parent / "visits.yaml")
    assert app.run(["schema", "check", "visits.yaml", "visits.csv"]) == 0
    assert "Nothing stands in the way of a private release." in capsys.readouterr().out


def test_check_fails_on_guesses(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app.run(["schema", "infer", "visits.csv"])
    capsys.readouterr()
    assert app.run(["schema", "check", "schema.yaml"]) == 1
    shown = capsys.readouterr().out
    assert 'error: The bounds of "age" were read from the data' in shown
    assert 'delete "bounds" from the "guessed" line' in shown
    assert "schema.confirm" not in shown
    assert "must be mended" in shown


def test_check_finds_what_does_not_fit_the_table(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_schema(data.parent / "visits.yaml")
    data.write_text("visit_id,agee,diagnosis\nv1,3,flu\n", encoding="utf-8")
    assert app.run(["schema", "check", "visits.yaml", "visits.csv", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert {finding["column"] for finding in report["findings"]} >= {"age", "agee"}


def test_a_broken_schema_file_is_misuse(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_schema(data.parent / "visits.yaml", age="{kind: numeric, bounds: [110, 0]}")
    assert app.run(["schema", "check", "visits.yaml"]) == 2
    assert "Fix: " in capsys.readouterr().err


def test_a_missing_schema_file_is_misuse(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["schema", "check", "nowhere.yaml"]) == 2
    assert "Fix: " in capsys.readouterr().err


def test_a_perfect_schema_says_so(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data.parent / "tiny.yaml").write_text("columns:\n  visit_id: {role: identifier}\n", encoding="utf-8")
    assert app.run(["schema", "check", "tiny.yaml"]) == 0
    assert capsys.readouterr().out == "The schema is complete.\n"


def test_an_unreachable_database_is_a_failure_and_writes_nothing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://nobody@127.0.0.1:1/clinic?table=visits"
    assert app.run(["schema", "infer", url, "--json"]) == 1
    problem = json.loads(capsys.readouterr().err)
    assert problem["error"] == "SourceUnreachableError"
    assert "that the server runs" in problem["fix"]
    assert not (data.parent / "schema.yaml").exists()


def test_warnings_weaken_the_verdict(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_schema(data.parent / "visits.yaml", age="{role: sensitive, kind: numeric}")
    assert app.run(["schema", "check", "visits.yaml", "visits.csv"]) == 0
    shown = capsys.readouterr().out
    assert "No errors, but 1 warning to read before a private release." in shown
    assert "Nothing stands in the way" not in shown
    assert 'Fix: write "bounds: [lowest, highest]"' in shown


def test_a_contradiction_is_an_error(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data.parent / "visits.yaml").write_text(
        "columns:\n  visit_id: {role: identifier}\n  age: {role: sensitive, bounds: [0, 110]}\n"
        "  diagnosis: {role: sensitive, kind: numeric, bounds: [0, 5]}\n"
    )
    assert app.run(["schema", "check", "visits.yaml", "visits.csv"]) == 1
    assert '"diagnosis" is called numeric, but the table holds it as text' in capsys.readouterr().out


def test_the_same_finding_about_several_columns_is_printed_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"answer{number}" for number in range(9)]
    lines = "".join(f"  {name}: {{role: quasi, categories: [a, b]}}\n" for name in names)
    (data.parent / "answers.yaml").write_text(f"columns:\n{lines}")
    assert app.run(["schema", "check", "answers.yaml"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("has no hierarchy") == 1
    assert f"The same for 8 columns more: {', '.join(names[1:])}." in shown
    assert app.run(["schema", "check", "answers.yaml", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 9


def test_guesses_are_grouped_without_their_evidence(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data.parent / "draft.yaml").write_text(
        "columns:\n  a: {role: identifier, guessed: [role], evidence: its name}\n"
        "  b: {role: identifier, guessed: [role], evidence: its form}\n"
    )
    app.run(["schema", "check", "draft.yaml"])
    shown = capsys.readouterr().out
    assert 'The role of "a" are guesses.\n    The same for 1 column more: b.\n' in shown


@pytest.mark.parametrize("verb", [["infer"], ["check", "visits.yaml"]])
def test_encoding_and_missing_values_are_options(
    verb: list[str], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_schema(data.parent / "visits.yaml")
    rows = "".join(f"v{n},{'?' if n == 3 else '-' if n == 4 else n},{'café' if n % 2 else 'flu'}\n" for n in range(9))
    data.write_bytes(f"visit_id,age,diagnosis\n{rows}".encode("latin-1"))
    assert app.run(["schema", *verb, "visits.csv"]) == 2
    advice = capsys.readouterr().err
    assert "--encoding latin-1" in advice
    assert "encoding=" not in advice
    options = ["--encoding", "latin-1", "--missing", "?", "--missing", "-"]
    assert app.run(["schema", *verb, "visits.csv", *options, "--json"]) == 0
    if verb == ["infer"]:
        assert json.loads(capsys.readouterr().out)["proposal"]["columns"]["age"]["kind"] == "numeric"
        assert app.run(["schema", "infer", "visits.csv", *options, "--force"]) == 0
        assert "--encoding latin-1 --missing '?' --missing -" in capsys.readouterr().out


def test_a_file_without_rows_gets_a_note(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text("visit_id,age\n", encoding="utf-8")
    assert app.run(["schema", "infer", "visits.csv"]) == 0
    assert "Note: The table has no rows" in capsys.readouterr().err
    assert app.run(["schema", "infer", "visits.csv", "--force", "--json"]) == 0
    note = json.loads(capsys.readouterr().err)
    assert note["schema"] == "cloister.note/1"
    assert note["note"] == "DataWarning"
