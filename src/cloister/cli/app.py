"""The frame of the command line: nouns, exit codes, and errors printed with advice in options instead of Python.

Exit codes: 0 done, 1 failed, 2 misuse, 130 interrupted, 141 nobody reads the output anymore. A failure is one sentence
and a fix, with an exit code from one table.
2 means that the command or one of its inputs has to be changed; 1 means that the request was well formed and could not
be fulfilled. The nearest class in the error's ancestry decides.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import click

from cloister import _version, errors
from cloister.cli.commands import CommandOutput, LazyGroup, Noun

FAILED = 1
MISUSE = 2
INTERRUPTED = 130
NOBODY_READS = 141

DEBUG = "CLOISTER_DEBUG"

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT})
_OPTIONS = {
    r'\bencoding="([\w-]+)"': r"--encoding \1",
    r"\bencoding=": "--encoding",
    r'\bmissing=\("([^"]*)",( "\w+")?\)': r'--missing "\1"',
    r"\bopen the table with max_rows_per_unit=\.\.\.": "add --limit NUMBER",
    r"\bprivate\.choose_limit": "in Python, private.choose_limit",
    r"\bunit=([\"'])([^\"']+)\1": r"--unit \2",
    r"(?<![(\w])(?<!, )(epsilon|delta|rho|error)=(?=\d)": r"--\1 ",
    r'\bschema\.with_(bounds|categories)\("([^"]+)", [(\[](.*?)[)\]]\)': r'"\1: [\3]" for \2 in the schema file',
}

EXIT_CODES: dict[type[Exception], int] = {
    errors.ParameterError: MISUSE,
    errors.ParameterTypeError: MISUSE,
    errors.UnsafeMechanismError: MISUSE,
    errors.UnsafeQueryError: MISUSE,
    errors.SchemaError: MISUSE,
    errors.DataError: MISUSE,
    errors.SourceUnreachableError: FAILED,
    errors.UnknownAccountError: MISUSE,
    errors.PolicyError: MISUSE,
    errors.AccountMismatchError: MISUSE,
    errors.CloisterError: FAILED,
}


def exit_code(problem: errors.CloisterError) -> int:
    """Return the exit code for an error."""
    return next((EXIT_CODES[cls] for cls in type(problem).__mro__ if cls in EXIT_CODES), FAILED)


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether failures are to be printed as JSON, also when the arguments cannot be parsed."""
    before_stop = list(arguments)[: list(arguments).index("--")] if "--" in arguments else arguments
    return "--json" in before_stop


def report_failure(problem: BaseException, *, as_json: bool) -> int:
    """Print a failure and return its exit code."""
    # Without a file name it is the output itself that cannot be written.
    if isinstance(problem, OSError) and problem.filename is None and problem.errno in _UNWRITABLE:
        _close_quietly(sys.stdout)
        problem = _unwritable_error(problem)
    match problem:
        case BrokenPipeError():
            _close_quietly(sys.stdout)
            return NOBODY_READS
        case SystemExit() | click.exceptions.Exit():
            return _find_code(problem)
        case _ if _was_interrupted(problem):
            click.echo("Stopped.", err=True)
            return INTERRUPTED
        case errors.CloisterError():
            _print(problem, as_json=as_json)
            return exit_code(problem)
        case click.ClickException():
            _print(_from_click(problem), as_json=as_json)
            return MISUSE
    _print(_internal_error(problem), as_json=as_json)
    return FAILED


def _was_interrupted(problem: BaseException) -> bool:
    """Return whether Ctrl-C is behind a failure: DuckDB turns it into errors of its own while a query runs."""
    found: BaseException | None = problem
    while found is not None:
        if isinstance(found, KeyboardInterrupt | click.exceptions.Abort):
            return True
        if type(found).__name__ == "InterruptException" or str(found) == "Query interrupted":
            return True
        # Other packages wrap an interrupt in errors of their own, so that the whole chain is looked at.
        found = found.__cause__ or found.__context__
    return False


def warning_printer(*, as_json: bool) -> Callable[..., None]:
    """Return what takes the place of ``warnings.showwarning``.

    Warnings of cloister are printed as notes, those of other packages only while debugging.
    """

    def show(message: Warning | str, category: type[Warning], *_where: object) -> None:
        if not issubclass(category, errors.CloisterWarning) and not os.environ.get(DEBUG):
            return
        text = on_command_line(str(message))
        note = {"schema": "cloister.note/1", "note": category.__name__, "text": text}
        click.echo(json.dumps(note, ensure_ascii=False) if as_json else f"Note: {text}", err=True)

    return show


def on_command_line(text: str) -> str:
    """Return advice with the options of commands in place of Python's arguments.

    >>> on_command_line('give encoding="latin-1".')
    'give --encoding latin-1.'
    """
    for argument, option in _OPTIONS.items():
        text = re.sub(argument, option, text)
    return text


def _find_code(problem: SystemExit | click.exceptions.Exit) -> int:
    code = problem.exit_code if isinstance(problem, click.exceptions.Exit) else problem.code
    return code if isinstance(code, int) else FAILED


def _from_click(problem: click.ClickException) -> errors.ParameterError:
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "cloister"
    return errors.ParameterError(problem.format_message(), fix=f'run "{path} --help" to see what it takes.')


def _internal_error(problem: BaseException) -> errors.InternalError:
    """Return an error that names the kind of failure and no data: messages of other packages may quote cells."""
    if os.environ.get(DEBUG):
        traceback.print_exception(problem)
    hint = "" if os.environ.get(DEBUG) else f" Set {DEBUG}=1 to see where; that may print data."
    return errors.InternalError(f"an unexpected {type(problem).__name__} stopped this command.{hint}")


def _unwritable_error(problem: OSError) -> errors.CloisterError:
    return errors.CloisterError(
        f"The output could not be written: {problem.strerror}.", fix="make room, or send the output elsewhere."
    )


def _print(problem: errors.CloisterError, *, as_json: bool) -> None:
    # Advice speaks of Python's arguments, which somebody at a shell cannot write.
    problem.problem, problem.fix = map(on_command_line, (problem.problem, problem.fix))
    if as_json:
        click.echo(json.dumps(problem.to_dict(), indent=2, ensure_ascii=False), err=True)
        return
    label = "Error: "
    if sys.stderr.isatty():
        label = click.style(label, fg="red", bold=True)
    click.echo(f"{label}{problem}", err=True)


def _close_quietly(stream: TextIO) -> None:
    """Point an output elsewhere, so that what Python and its packages do at exit says no more."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


_NOUNS = {
    "anonymize": Noun(
        "cloister.cli.anonymize", "anonymize", "Make a protected copy of a table that may be shared, with its report."
    ),
    "attack": Noun("cloister.cli.attack", "group", "Try one attack on what is about to be published."),
    "audit": Noun("cloister.cli.audit", "audit", "Try to refute the promises of everything that is registered."),
    "demo": Noun("cloister.cli.hub", "demo", "A hub on this machine with made-up people, to look around in."),
    "evaluate": Noun("cloister.cli.models", "evaluate", "Say how often a saved model is right, beside a guess."),
    "gate": Noun("cloister.cli.gate", "gate", "Attack a release in every way that fits it: publish or not, and why."),
    "hub": Noun("cloister.cli.hub", "group", "Run the server where institutions share protected data."),
    "ledger": Noun(
        "cloister.cli.ledger", "ledger", "See what privacy budget was spent, and check that nobody changed it."
    ),
    "predict": Noun("cloister.cli.models", "predict", "Predict with a saved model; this costs nothing."),
    "query": Noun("cloister.cli.query", "query", "Ask one private question of a table, in SQL."),
    "risk": Noun("cloister.cli.risk", "risk", "Measure how easily people in a table could be recognized."),
    "schema": Noun(
        "cloister.cli.schema", "schema", "Describe the columns of a table: what they are and who they expose."
    ),
    "survey": Noun(
        "cloister.cli.survey_answer", "group", "Ask people questions without having to be trusted with answers."
    ),
    "synth": Noun("cloister.cli.synth", "synth", "Make a table of made-up rows that may be shared, with its report."),
    "tour": Noun("cloister.cli.tour", "tour", "A first private answer on example data, explained."),
    "train": Noun("cloister.cli.models", "train", "Train a private model on a table, with its promise in its file."),
}

_HELP = """Use sensitive data without exposing the people in it.

Start with "cloister tour", or with "cloister demo" for the hub. Every command explains itself with --help and answers
in JSON with --json.
"""

cloister = LazyGroup(name="cloister", help=_HELP, nouns=_NOUNS)
cloister = click.version_option(_version.__version__, prog_name="cloister")(cloister)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    if code == INTERRUPTED:
        # DuckDB's binding ends an interrupted process with a page about its own types, behind everything else.
        atexit.register(_close_quietly, sys.stderr)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure is printed, none is raised."""
    as_json = wants_json(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = warning_printer(as_json=as_json)
            code = _print_version() if sorted(arguments) == ["--json", "--version"] else _invoke(arguments)
            # Flushed here, where a full disk or a closed pipe can still become a sentence and an exit code.
            sys.stdout.flush()
    except BaseException as problem:  # noqa: BLE001  # the last place that can turn a failure into a sentence
        return report_failure(problem, as_json=as_json)
    return _exit_code(code)


def _invoke(arguments: Sequence[str]) -> Any:  # whatever the command returned
    with cloister.make_context("cloister", list(arguments)) as context:
        return cloister.invoke(context)


def _print_version() -> int:
    CommandOutput(as_json=True).document({"schema": "cloister.version/1", "version": _version.__version__})
    return 0


def _exit_code(answer: Any) -> int:  # whatever the command returned
    return answer if isinstance(answer, int) else 0
