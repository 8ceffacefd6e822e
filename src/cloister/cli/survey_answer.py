"""``cloister survey answer``: the respondent's side, at a terminal.

Levels are chosen before the questions are shown, because the collector sees them. Everything that would be sent is
shown before it is written, and nothing is sent from here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cloister.cli.commands import CommandOutput, command
from cloister.cli.options import check_target, output_options
from cloister.cli.survey import survey as group
from cloister.errors import CloisterError, ParameterError

if TYPE_CHECKING:
    from cloister.local.survey import Submission, Survey, SurveyQuestion

_EACH = "each"
_SUBMISSION = (".json",)
_T = TypeVar("_T")


@command("answer", example="cloister survey answer survey.yaml -o submission.json", group=group)
@click.argument("file", metavar="FILE")
@click.option("--answers", metavar="FILE", help="Take answers and levels from a YAML file, and ask nothing.")
@click.option("--token", metavar="TEXT", help="The one-time token of your invitation.")
@output_options("the submission", endings=_SUBMISSION, required=True)
def answer(
    output: CommandOutput, *, file: str, output_file: str, answers: str | None, token: str | None, force: bool
) -> int | None:
    """Answer a survey, and see exactly what is sent.

    FILE is a survey that somebody published. You choose how strongly each answer is protected; your answers are changed
    at random on this computer, and only the changed reports are written. Nothing is sent: you send the file, or not.
    """
    from cloister.core.atomic_files import write_text
    from cloister.local.survey import Survey
    from cloister.local.survey.typed_answers import read_file

    check_target(output_file, inputs=(file, answers), force=force, endings=_SUBMISSION)
    asked = Survey.read(file)
    if answers is None and output.as_json:
        raise ParameterError("With --json nothing can be asked.", fix="give the answers in a file with --answers.")
    if answers is None:
        levels: Any = _choose_levels(output, asked)
        given = _ask(output, asked, levels)
    else:
        given, levels = read_file(asked, answers)
    made = asked.answer(given, levels=levels, token=token)
    chosen = asked.choice(levels)
    told = asked.total({name: level for name, level in chosen.items() if name in given} | _leave_out(asked, given))
    output.document(
        {"schema": "cloister.survey_answer/1", "file": output_file, **told.to_dict(), "submission": made.to_dict()}
    )
    _show(output, asked, made)
    output.say(f"\n{told}")
    if answers is None and not click.confirm(f"Write this to {output_file}?", default=True):
        output.say("Nothing was written.")
        return 1
    write_text(output_file, made.to_json() + "\n", overwrite=force)
    output.say(f"\nIt is in {output_file}, on one line. Nothing was sent: send the file as the collector asks, once.")
    output.say("A second submission would be a second hint about the same answers.")
    return None


def _leave_out(survey: Survey, given: dict[str, Any]) -> dict[str, str]:
    from cloister.local.survey import OFF

    return {question.id: OFF for question in survey.questions if question.id not in given}


def _choose_levels(output: CommandOutput, survey: Survey) -> dict[str, str]:
    """Return a level for each question, chosen before the questions are shown."""
    from cloister.local.survey.levels import LEVELS_ARE_VISIBLE

    output.heading(survey.title)
    output.say(f"Asked by {survey.collector}. {survey.purpose}".rstrip())
    output.say(f"Fingerprint of the survey, the same for everybody: {survey.fingerprint}")
    output.heading("How strongly should your answers be protected?")
    output.say(LEVELS_ARE_VISIBLE)
    known = _levels_table(output, survey)
    count = len(survey.questions)
    default = survey.default_of(survey.questions[0].id).name
    wanted = _prompt(f"Level for all {count} questions, or {_EACH}", (*known, _EACH), default)
    chosen = {}
    for place, question in enumerate(survey.questions, start=1):
        levels = tuple(survey.levels_of(question.id))
        preselected = survey.default_of(question.id).name
        asked = f"Level for question {place} ({question.id})"
        chosen[question.id] = wanted if wanted in levels else _prompt(asked, levels, preselected)
    return chosen


def _levels_table(output: CommandOutput, survey: Survey) -> tuple[str, ...]:
    from cloister.local.survey.levels import Statement, format_factor

    found: dict[str, str] = {}
    for question in survey.questions:
        for level in survey.levels_of(question.id).values():
            factor = "nothing is sent" if level.epsilon is None else format_factor(Statement(level.loss).factor)
            found.setdefault(level.name, factor)
    output.table(["level", "odds about one answer change by at most a factor"], [list(row) for row in found.items()])
    return tuple(found)


def _ask(output: CommandOutput, survey: Survey, levels: dict[str, str]) -> dict[str, Any]:
    """Return the answers to all questions that are not off."""
    from cloister.local.survey import OFF
    from cloister.local.survey.typed_answers import read_typed

    given: dict[str, Any] = {}
    for place, question in enumerate(survey.questions, start=1):
        if levels[question.id] == OFF:
            continue
        output.heading(f"{place} of {len(survey.questions)}. {question.text}")
        if question.help:
            output.say(question.help)
        output.say(f"{levels[question.id]}: {survey.statement(question.id, levels[question.id])}")
        output.say(question.rules.prompt(question))
        is_optional = OFF in survey.levels_of(question.id)
        end = ", or nothing to leave it out" if is_optional else ""

        def read(text: str, question: SurveyQuestion = question, is_optional: bool = is_optional) -> Any:  # noqa: FBT001
            return None if is_optional and not text.strip() else read_typed(question, text)

        found = _again(f"Your answer{end}", read)
        if found is not None:
            given[question.id] = found
    return given


def _prompt(text: str, choices: tuple[str, ...], default: str) -> str:
    found = click.prompt(text, type=click.Choice(choices), default=default, show_choices=True)
    return str(found)


def _again(text: str, read: Callable[[str], _T]) -> _T:
    """Ask until the answer can be read."""
    while True:
        typed = click.prompt(text, default="", show_default=False)
        try:
            return read(typed)
        except CloisterError as error:
            click.echo(f"{error.problem} Please {error.fix}")


def _show(output: CommandOutput, survey: Survey, made: Submission) -> None:
    output.heading("What the collector gets")
    rows = [[report["question"], report["level"], json.dumps(report["y"])] for report in made.reports]
    if rows:
        output.say("Your answers were changed at random. These are the changed ones, in the survey's code:")
        output.table(["question", "level", "report"], rows)
    left = [question.id for question in survey.questions if question.id not in {row[0] for row in rows}]
    if left:
        output.say(f"Not answered, which the collector sees: {', '.join(left)}.")
    output.say("All of it, exactly:")
    if not output.as_json:
        click.echo(json.dumps(made.to_dict(), ensure_ascii=False, indent=1))
