from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import open_ledger
from cloister.cli import app
from cloister.errors import LedgerUnreachableError

URL = "sqlite:///budget.db"


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with two datasets, one of them with two spends."""
    monkeypatch.chdir(tmp_path)
    with open_ledger(URL) as ledger:
        ledger.open_account("hospital", budget=Budget(epsilon=1, delta=1e-6), unit="patient")
        ledger.spend("hospital", cost=Budget(epsilon=0.1), purpose="patients with asthma", analyst="ada")
        ledger.spend("hospital", cost=Budget(epsilon=0.2, delta=1e-7))
        ledger.open_account("school", budget=Budget(rho=0.5))
    return tmp_path / "budget.db"


def test_show_lists_every_dataset(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", URL]) == 0
    header, hospital, school = capsys.readouterr().out.splitlines()
    assert header.split() == ["dataset", "budget", "spent", "left", "protects", "one", "entries", "last", "change"]
    assert "epsilon 0.7, delta 9e-07" in hospital
    assert "patient" in hospital
    assert "rho 0.5" in school


def test_show_prints_exact_numbers_as_json(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", URL, "--json"]) == 0
    accounts = json.loads(capsys.readouterr().out)["accounts"]
    assert [account["dataset"] for account in accounts] == ["hospital", "school"]
    assert accounts[0]["remaining"]["epsilon"] == "7/10"


def test_show_one_dataset(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", URL, "--dataset", "hospital"]) == 0
    shown = capsys.readouterr().out
    assert "epsilon 0.7, delta 9e-07 is left of epsilon 1, delta 1e-06" in shown
    assert "patients with asthma" in shown
    assert "ada" in shown


def test_show_one_dataset_as_json(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", URL, "--dataset", "hospital", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["account"]["dataset"] == "hospital"
    assert [entry["kind"] for entry in document["entries"]] == ["open", "spend", "spend"]


def test_an_unknown_dataset_is_misuse(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", URL, "--dataset", "hospitel"]) == 2
    shown = capsys.readouterr().err
    assert 'Did you mean "hospital"?' in shown
    assert "Fix: name one that it has: hospital, school" in shown
    assert "open_account(" not in shown


def test_an_empty_ledger_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    open_ledger(URL).close()
    assert app.run(["ledger", "show", URL]) == 0
    assert capsys.readouterr().out == "No dataset has an account in this ledger yet.\n"
    assert app.run(["ledger", "verify", URL]) == 0
    assert "0 datasets, 0 entries" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_looking_at_a_ledger_that_is_not_there_makes_none(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert app.run(["ledger", verb, URL]) == 2
    shown = capsys.readouterr().err
    assert 'There is no ledger file "budget.db"' in shown
    assert "create=True" not in shown
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_address_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", "budget.db"]) == 2
    assert "sqlite:///budget.db" in capsys.readouterr().err


def test_verify_an_honest_ledger(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "verify", URL]) == 0
    assert "2 datasets, 4 entries" in capsys.readouterr().out
    assert app.run(["ledger", "verify", URL, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["entries"] == 4
    head = document["heads"]["hospital"]
    assert app.run(["ledger", "verify", URL, "--head", f"hospital={head}"]) == 0


def test_verify_finds_a_head_that_was_cut_off(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "verify", URL, "--head", f"hospital={'f' * 64}"]) == 1
    assert "Fix: " in capsys.readouterr().err


def test_typing_mistakes_in_a_head_are_misuse(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "verify", URL, "--head", "hospital=3f9a"]) == 2
    assert "copy it whole" in capsys.readouterr().err
    assert app.run(["ledger", "verify", URL, "--head", f"hospitl={'f' * 64}"]) == 2
    assert 'Did you mean "hospital"?' in capsys.readouterr().err


def test_a_noted_dataset_that_is_gone_is_damage(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "verify", URL, "--head", f"prison={'f' * 64}", "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["error"] == "LedgerDamagedError"


def test_a_digest_is_whole_on_a_line_of_its_own(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "verify", URL]) == 0
    lines = capsys.readouterr().out.splitlines()
    with open_ledger(URL) as ledger:
        assert lines[lines.index("hospital: 3 entries. Digest:") + 1] == f"  {ledger.head('hospital')}"


def test_a_path_becomes_an_address(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", str(book)]) == 2
    assert f"Fix: write sqlite:///{book}" in capsys.readouterr().err


def test_a_near_file_is_named(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "show", "sqlite:///budgt.db"]) == 2
    assert 'Did you mean "budget.db"?' in capsys.readouterr().err
    assert app.run(["ledger", "show", "sqlite:///nowhere/budget.db"]) == 2


@pytest.mark.parametrize(("fix", "code"), [("open it with create=True.", 2), ("start the server.", 1)])
def test_a_database_without_a_ledger_is_misuse_and_a_silent_one_is_not(
    fix: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(url: str, *, create: bool) -> None:
        raise LedgerUnreachableError("There is no ledger here.", fix=fix)

    monkeypatch.setattr("cloister.accounting.ledger.open_ledger", refuse)
    assert app.run(["ledger", "show", "postgresql://host/db"]) == code
    assert "create=True" not in capsys.readouterr().err


def test_an_empty_ledger_has_no_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    open_ledger(URL).close()
    assert app.run(["ledger", "show", URL, "--dataset", "hospital"]) == 2
    assert "nothing was opened in it yet" in capsys.readouterr().err


def test_verify_wants_heads_with_their_dataset(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["ledger", "verify", URL, "--head", "3f9a"]) == 2
    assert "Fix: write for example --head" in capsys.readouterr().err


def test_verify_finds_a_changed_byte(book: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = book.read_bytes()
    at = content.index(b"patients with asthma")
    book.write_bytes(content[:at] + b"P" + content[at + 1 :])
    assert app.run(["ledger", "verify", URL, "--json"]) == 1
    assert json.loads(capsys.readouterr().err)["error"] == "LedgerDamagedError"


def test_a_file_that_is_no_ledger_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "budget.db").write_text("not a database, and long enough to be looked at " * 40, encoding="utf-8")
    assert app.run(["ledger", "show", URL]) == 1
    assert "Fix: " in capsys.readouterr().err


def test_a_ledger_of_another_program_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with sqlite3.connect("budget.db") as connection:
        connection.execute("CREATE TABLE songs (name TEXT)")
    connection.close()
    assert app.run(["ledger", "show", URL]) == 1
    assert "Fix: " in capsys.readouterr().err
