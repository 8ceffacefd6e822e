from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cloister.cli.commands import CommandOutput, plain_table, program


def _pretend_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def _write(output: CommandOutput) -> None:
    output.document({"schema": "cloister.example/1", "name": "Zoë"})
    with output.progress("Working"):
        output.heading("Budget")
        output.say("Two [datasets].")
        output.table(["dataset", "left"], [["hospital", "0.9"], ["school", "[red]1[/red]"]])


def test_json_prints_the_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    _write(CommandOutput(as_json=True))
    assert json.loads(capsys.readouterr().out) == {"schema": "cloister.example/1", "name": "Zoë"}


def test_a_pipe_gets_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    _write(CommandOutput())
    shown = capsys.readouterr()
    assert shown.out == "\nBudget\nTwo [datasets].\ndataset   left\nhospital  0.9\nschool    [red]1[/red]\n"
    assert shown.err == ""


def test_a_terminal_gets_tables_and_no_markup_is_read_from_the_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _pretend_terminal(monkeypatch)
    _write(CommandOutput())
    shown = capsys.readouterr().out
    assert "Two [datasets]." in shown
    assert "[red]1[/red]" in shown
    assert "─" in shown


def test_a_table_without_rows_has_its_heading() -> None:
    assert plain_table(["a", "bc"], []) == "a  bc"


@pytest.mark.parametrize(
    ("found", "beside", "inside"), [(True, True, True), (False, True, True), (False, True, False), (False, False, True)]
)
def test_the_program_is_named_as_it_can_be_called(
    found: bool, beside: bool, inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    if beside:
        (folder / "cloister").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path if inside else tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/cloister" if found else None)
    expected = "cloister" if found or not beside else "bin/cloister" if inside else str(folder / "cloister")
    assert program() == expected
