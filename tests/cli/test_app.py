from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable

import click
import duckdb
import pytest

from cloister import __version__, errors
from cloister.cli import app, app as cli_app, commands
from cloister.cli.commands import CommandOutput


@pytest.fixture
def with_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return a function that puts a command "try" with a given body into the root group."""

    def add(body: Callable[[], object]) -> None:
        def run(output: CommandOutput) -> object:
            """Try something."""
            return body()

        made = commands.command("try", example="cloister try")(run)
        monkeypatch.setattr(commands.Noun, "load", lambda noun: made)
        monkeypatch.setitem(app.cloister.nouns, "try", commands.Noun("here", "try", "Try something."))

    return add


def _raise(problem: BaseException) -> Callable[[], object]:
    def body() -> object:
        raise problem

    return body


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


def test_version_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["--version", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": "cloister.version/1", "version": __version__}


@pytest.mark.parametrize(("typed", "meant"), [(["schem"], "schema"), (["ledger", "verfy"], "verify")])
def test_a_near_command_is_named(typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(typed) == 2
    assert f'Did you mean "{meant}"?' in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
def test_output_that_cannot_be_written_is_told() -> None:
    script = "from cloister.cli import app; app.main(['--help'])"
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == cli_app.FAILED
    assert "The output could not be written: No space left on device." in done.stderr
    assert "bug" not in done.stderr


def test_only_a_failed_write_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_app.report_failure(OSError(errno.ENOSPC, "No space left on device"), as_json=True) == cli_app.FAILED
    assert "could not be written" in json.loads(capsys.readouterr().err)["problem"]
    assert cli_app.report_failure(OSError(errno.ECONNRESET, "reset"), as_json=True) == cli_app.FAILED
    assert "bug in cloister" in json.loads(capsys.readouterr().err)["problem"]


def test_advice_names_options() -> None:
    assert (
        cli_app.on_command_line('give missing=("?", "NA"), encoding="utf-8".')
        == 'give --missing "?", --encoding utf-8.'
    )
    assert cli_app.on_command_line("use epsilon=0.1 with delta=1e-6.") == "use --epsilon 0.1 with --delta 1e-6."
    assert cli_app.on_command_line("use unit=\"row\" or unit='id'.") == "use --unit row or --unit id."
    state = 'state schema.with_bounds("age", (0, 110)) or schema.with_categories("sex", ["F", "M"]).'
    assert (
        cli_app.on_command_line(state)
        == 'state "bounds: [0, 110]" for age in the schema file or "categories: ["F", "M"]" for sex in the schema file.'
    )
    python = "write Budget(epsilon=3, delta=1e-6) or Budget(rho=..., delta=...)."
    assert cli_app.on_command_line(python) == python


def test_version_loads_no_heavy_package() -> None:
    code = (
        "import sys; from cloister.cli import app; app.run(['--version']);"
        "print(sorted({'numpy', 'pyarrow', 'duckdb', 'rich', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", [[], ["schema"], ["--help"], ["ledger", "-h"]])
def test_a_group_alone_shows_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(arguments) == 0
    assert "Usage: cloister" in capsys.readouterr().out


def test_the_list_of_nouns_is_short_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    app.run(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in app.cloister.nouns)


@pytest.mark.parametrize("name", sorted(app._NOUNS))
def test_every_command_has_json_and_an_example(name: str) -> None:
    noun = app._NOUNS[name].load()
    for made in noun.commands.values() if isinstance(noun, click.Group) else [noun]:
        assert made.epilog is not None
        assert f"cloister {name}" in made.epilog
        assert any("--json" in parameter.opts for parameter in made.params)
        assert made.help


def test_the_answer_of_a_command_is_its_exit_code(with_command: Callable[..., None]) -> None:
    with_command(lambda: 1)
    assert app.run(["try"]) == 1
    with_command(lambda: None)
    assert app.run(["try"]) == 0


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (errors.ParameterError("Bad.", fix="mend it."), 2),
        (errors.MissingBoundsError("Bad.", fix="mend it."), 2),
        (errors.UnknownColumnError("ag", ["age"]), 2),
        (errors.SourceNotFoundError("Bad.", fix="mend it."), 2),
        (errors.SourceUnreachableError("Bad.", fix="mend it."), 1),
        (errors.UnknownAccountError("Bad.", fix="mend it."), 2),
        (errors.LedgerDamagedError("Bad.", fix="mend it."), 1),
        (errors.LedgerUnreachableError("Bad.", fix="mend it."), 1),
        (errors.LedgerVersionError("Bad.", fix="mend it."), 1),
        (errors.MissingExtraError(what="Plots", package="altair", extra="plot"), 1),
        (errors.InternalError("bad."), 1),
    ],
)
def test_an_error_is_a_sentence_with_a_fix_and_a_code(
    problem: errors.CloisterError, code: int, with_command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with_command(_raise(problem))
    assert app.run(["try"]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"Error: {problem}\n"
    assert "\n\nFix: " in shown.err


def test_an_error_is_json_when_asked(with_command: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    problem = errors.ParameterError("Bad.", fix="mend it.")
    with_command(_raise(problem))
    assert app.run(["try", "--json"]) == 2
    assert json.loads(capsys.readouterr().err) == problem.to_dict()


def test_every_error_class_has_an_exit_code() -> None:
    for name in errors.__all__:
        cls = getattr(errors, name)
        if isinstance(cls, type) and issubclass(cls, errors.CloisterError):
            assert next(cli_app.EXIT_CODES[base] for base in cls.__mro__ if base in cli_app.EXIT_CODES) in {1, 2}


def test_a_typing_error_names_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["schema", "infer", "--nonsense"]) == 2
    assert 'Fix: run "cloister schema infer --help"' in capsys.readouterr().err


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["shcema", "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["error"] == "ParameterError"


def test_an_unexpected_failure_shows_no_data(
    with_command: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(cli_app.DEBUG, raising=False)
    with_command(_raise(RuntimeError("cell value 4711")))
    assert app.run(["try"]) == 1
    shown = capsys.readouterr().err
    assert "4711" not in shown
    assert "RuntimeError" in shown
    assert "Fix: please report it" in shown


def test_debugging_shows_where(
    with_command: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cli_app.DEBUG, "1")
    with_command(_raise(RuntimeError("cell value 4711")))
    assert app.run(["try"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), click.exceptions.Abort()])
def test_an_interrupt_is_130(
    problem: BaseException, with_command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    with_command(_raise(problem))
    assert app.run(["try"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_an_interrupt_that_an_engine_wrapped_is_130(
    with_command: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = errors.DataError("It cannot be read.", fix="look.")
    hidden.__context__ = duckdb.InterruptException("INTERRUPT Error: Interrupted!")
    for problem in (RuntimeError("Query interrupted"), hidden):
        with_command(_raise(problem))
        assert app.run(["try"]) == 130
        assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.parametrize(
    ("problem", "code"), [(SystemExit(3), 3), (SystemExit("odd"), 1), (click.exceptions.Exit(4), 4)]
)
def test_an_exit_that_was_asked_for_is_kept(problem: BaseException, code: int) -> None:
    assert cli_app.report_failure(problem, as_json=False) == code


def test_a_broken_pipe_is_quiet() -> None:
    script = "from cloister.cli import app; app.main(['--help'])"
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=write_end, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write_end)
    assert done.returncode == cli_app.NOBODY_READS
    assert done.stderr == ""


def test_a_broken_pipe_without_a_file_behind_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_app.report_failure(BrokenPipeError(), as_json=False) == cli_app.NOBODY_READS


def test_main_ends_the_process_with_the_code() -> None:
    with pytest.raises(SystemExit) as ended:
        app.main(["--nonsense"])
    assert ended.value.code == 2


def test_main_reads_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["cloister", "--version"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_warnings_of_cloister_are_notes(with_command: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        warnings.warn("two columns share a name.", errors.DataWarning, stacklevel=2)
        warnings.warn("some package is old.", DeprecationWarning, stacklevel=2)

    with_command(warn)
    assert app.run(["try"]) == 0
    assert capsys.readouterr().err == "Note: two columns share a name.\n"
    assert app.run(["try", "--json"]) == 0
    assert json.loads(capsys.readouterr().err) == {
        "schema": "cloister.note/1",
        "note": "DataWarning",
        "text": "two columns share a name.",
    }


def test_json_is_recognized_before_the_stop_sign_only() -> None:
    assert cli_app.wants_json(["schema", "--json"])
    assert not cli_app.wants_json(["schema", "--", "--json"])
    assert not cli_app.wants_json(["schema"])


def test_a_noun_must_be_a_command() -> None:
    with pytest.raises(TypeError, match="is not a command"):
        commands.Noun("cloister.errors", "did_you_mean", "").load()


def test_errors_are_red_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli_app.report_failure(errors.ParameterError("Bad.", fix="mend it."), as_json=False) == 2
    assert "Bad." in capsys.readouterr().err
