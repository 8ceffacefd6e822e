"""The frame of the command line: the nouns, and what happens when something goes wrong.

Exit codes: 0 done, 1 failed, 2 misuse, 130 interrupted, 141 nobody reads the output anymore. The table that decides
between 1 and 2 is in `cloister.cli.failures`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import click

from cloister import _version
from cloister.cli import failures
from cloister.cli.commands import LazyGroup, Noun
from cloister.cli.output import Output

_NOUNS = {
    "anonymize": Noun(
        "cloister.cli.anonymize", "anonymize", "Make a protected copy of a table that may be shared, with its report."
    ),
    "attack": Noun("cloister.cli.attack", "group", "Try one attack on what is about to be published."),
    "audit": Noun("cloister.cli.audit", "audit", "Try to refute the promises of everything that is registered."),
    "demo": Noun("cloister.cli.demo", "demo", "A hub on this machine with made-up people, to look around in."),
    "evaluate": Noun("cloister.cli.predict", "evaluate", "Say how often a saved model is right, beside a guess."),
    "gate": Noun("cloister.cli.gate", "gate", "Attack a release in every way that fits it: publish or not, and why."),
    "hub": Noun("cloister.cli.hub_keeping", "group", "Run the server where institutions share protected data."),
    "ledger": Noun(
        "cloister.cli.ledger", "ledger", "See what privacy budget was spent, and check that nobody changed it."
    ),
    "predict": Noun("cloister.cli.predict", "predict", "Predict with a saved model; this costs nothing."),
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
    "train": Noun("cloister.cli.train", "train", "Train a private model on a table, with its promise in its file."),
}

_HELP = """Use sensitive data without exposing the people in it.

Start with "cloister tour", or with "cloister demo" for the hub. Every command explains itself with --help and answers
in JSON with --json.
"""

cloister = LazyGroup(name="cloister", help=_HELP, nouns=_NOUNS)
cloister = click.version_option(_version.__version__, prog_name="cloister")(cloister)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; every failure is printed, none is raised."""
    as_json = failures.wants_json(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = failures.warning_printer(as_json=as_json)
            code = _print_version() if sorted(arguments) == ["--json", "--version"] else _invoke(arguments)
            sys.stdout.flush()
    except BaseException as problem:  # noqa: BLE001  # the last place that can turn a failure into a sentence
        return failures.report(problem, as_json=as_json)
    return _exit_code(code)


def _invoke(arguments: Sequence[str]) -> Any:  # whatever the command returned
    with cloister.make_context("cloister", list(arguments)) as context:
        return cloister.invoke(context)


def _print_version() -> int:
    Output(as_json=True).document({"schema": "cloister.version/1", "version": _version.__version__})
    return 0


def _exit_code(answer: Any) -> int:  # whatever the command returned
    return answer if isinstance(answer, int) else 0
