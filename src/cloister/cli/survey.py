"""``cloister survey``: write, plan, rehearse and evaluate a survey whose collector need not be trusted."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli import survey_text
from cloister.cli.commands import HelpfulGroup, command
from cloister.cli.output import Output, program
from cloister.cli.targets import check_target
from cloister.errors import ForeignReportError, ParameterError

if TYPE_CHECKING:
    from cloister.local.survey import Collector

_FILES = (".yaml", ".yml", ".json")
_HELP = "Ask people questions without having to be trusted with their answers."

_NOW_AND_THEN = 1000

survey = HelpfulGroup(name="survey", help=_HELP)


def _one(_line: Any) -> int:
    return 1


def _mix(function: Any) -> Any:  # a command
    text = (
        "What share of people chooses which level, such as off=0.1,low=0.2,medium=0.7. By default, what is preselected."
    )
    return click.option("--mix", metavar="LEVEL=SHARE,...", help=text)(function)


@command("new", example="cloister survey new survey.yaml", group=survey)
@click.argument("file", metavar="FILE")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
def new(output: Output, *, file: str, force: bool) -> None:
    """Write an example of a survey, for you to change.

    FILE ends in .yaml. Every part is explained in it.
    """
    from cloister.core.files import write_text
    from cloister.local.survey import EXAMPLE, example_survey

    check_target(file, inputs=(), force=force, endings=(".yaml", ".yml"))
    write_text(file, EXAMPLE, overwrite=force)
    made = example_survey()
    output.document({"schema": "cloister.survey_file/1", "file": file, "survey": made.to_dict()})
    output.say(f"An example with {len(made.questions)} questions is in {file}. What to do now:")
    output.say("1. Open it, and put your own questions in place of the examples. Every part is explained there.")
    output.say(f"2. See how many people you need:  {_run('plan', file, '--margin', '2')}")
    output.say(
        f"3. Rehearse with made-up people:  {_run('simulate', file, '--respondents', '5000', '-o', 'made-up.jsonl')}"
    )


@command("plan", example="cloister survey plan survey.yaml --margin 2", group=survey)
@click.argument("file", metavar="FILE")
@click.option("--respondents", metavar="N", type=click.IntRange(1), help="How many people will take part.")
@click.option("--margin", metavar="POINTS", help="The margin of error that you want, in percentage points.")
@_mix
def plan(output: Output, *, file: str, respondents: int | None, margin: str | None, mix: str | None) -> None:
    """Say how many people a survey needs, or how sure it is.

    FILE is a survey. Give --margin to learn how many people a margin of error takes, or --respondents to learn what
    margins a number of people gives. A margin of 2 means: in 95 of 100 surveys the estimate is
    at most 2 percentage points off. For the mean of a number it means 2% of the range between its bounds.
    """
    from cloister.local.survey import Survey, plan_survey

    if (respondents is None) == (margin is None):
        raise ParameterError(
            "Nothing, or too much, says what to plan for.",
            fix="give --margin 2 to learn how many people you need, or --respondents 2000 to learn the margins.",
        )
    asked = Survey.read(file)
    found = plan_survey(asked, respondents=respondents, margin=margin, mix=_shares(mix))
    output.document(found.to_dict())
    survey_text.show_plan(output, found)


@command("simulate", example="cloister survey simulate survey.yaml --respondents 5000 -o made-up.jsonl", group=survey)
@click.argument("file", metavar="FILE")
@click.option("--respondents", metavar="N", type=click.IntRange(1, 1_000_000), required=True, help="How many people.")
@click.option("-o", "--output", "target", metavar="FILE", required=True, help="Where to write the submissions: .jsonl.")
@_mix
@click.option("--force", is_flag=True, help="Replace the submissions if they are there.")
def simulate(output: Output, *, file: str, respondents: int, target: str, mix: str | None, force: bool) -> None:
    """Rehearse a survey with made-up people.

    FILE is a survey. You see the estimates beside the truth. The people's true answers are made up from the shares that
    FILE states under "pretend"; their devices then change them for real, and nobody but this rehearsal knows the truth.
    """
    from cloister.local.survey import Collector, Survey, simulate as run
    from cloister.local.survey.submissions import read_lines

    check_target(target, inputs=(file,), force=force, endings=(".jsonl",))
    asked = Survey.read(file)
    with output.progress("Asking made-up people") as tell:
        made = run(asked, respondents=respondents, mix=_shares(mix))
        _write(_watched(made.lines(), respondents, tell, "writing submissions"), target, force=force)
        collector = Collector(asked)
        collector.add_lines(_watched(read_lines(target), respondents, tell, "reading submissions"))
        result = collector.estimate()
    truth = {
        name: [{"value": value, "truth": share} for value, share in shares.items()]
        for name, shares in made.truth.items()
    }
    output.document(
        {"schema": "cloister.survey_simulation/1", "submissions": target, "truth": truth, "result": result.to_dict()}
    )
    survey_text.show_simulation(output, made, result)
    output.say(f"\nThe submissions are in {target}. To evaluate them as you would real ones:")
    output.say(f"  {_run('aggregate', file, target, '--report', 'results.html')}")


@command(
    "aggregate",
    example="cloister survey aggregate survey.yaml submissions.jsonl --report results.html",
    group=survey,
)
@click.argument("file", metavar="FILE")
@click.argument("submissions", metavar="SUBMISSIONS", nargs=-1, required=True)
@click.option("--report", metavar="FILE", help="Write a report with charts: .html, .md or .json.")
@click.option("--force", is_flag=True, help="Replace the report if it is there.")
def aggregate(output: Output, *, file: str, submissions: Sequence[str], report: str | None, force: bool) -> None:
    """Estimate what everybody together answered.

    FILE is the survey exactly as it was published. SUBMISSIONS are one or more files with one submission per line, or
    the folder that Collector.save wrote.
    Submissions that no device can have made from this survey, and those that come twice, are left out and counted.
    The others are checked together: whether they look like what devices send, and how far fake people could move them.
    """
    from cloister.local.survey import Collector, Survey
    from cloister.local.survey.submissions import read_lines

    check_target(report, inputs=(file, *submissions), force=force)
    asked = Survey.read(file)
    folder = submissions[0] if len(submissions) == 1 and Path(submissions[0]).is_dir() else None
    collector = Collector(asked) if folder is None else Collector.load(asked, folder)
    with output.progress("Reading submissions") as tell:
        for path in submissions if folder is None else ():
            lines, size = read_lines(path), Path(path).stat().st_size if Path(path).is_file() else 0
            collector.add_lines(_watched(lines, size, tell, path, each=len))
    survey_text.note_refused(collector)
    _check_asked(collector, file)
    result = collector.estimate()
    survey_text.note_suspicious(result)
    if report is not None:
        with output.progress("Writing the report"):
            result.report(report, overwrite=force)
    output.document({**result.to_dict(), "report": report})
    survey_text.show_result(output, result)
    if report is not None:
        output.say(f"\nThe report is in {report}.")


def _check_asked(collector: Collector, file: str) -> None:
    """Refuse to go on where every submission is for something else: the survey was changed, or is another one."""
    from cloister.local.survey.collector import FOREIGN

    refused = collector.refused.total()
    if not len(collector) and refused and refused == collector.refused[FOREIGN]:
        raise ForeignReportError(
            f"Of {refused:,} submissions none is for the survey in {file}.",
            fix="use the very file that was published: with another word or number in it, it is another survey.",
        )


def _write(lines: Iterable[str], target: str, *, force: bool) -> None:
    from cloister.core.files import write_with

    encoded = (f"{line}\n".encode() for line in lines)
    write_with(target, lambda stream: stream.writelines(encoded), overwrite=force)


def _watched(
    lines: Iterable[Any],
    total: int,
    tell: Callable[[float, str], None],
    what: str,
    *,
    each: Callable[[Any], int] = _one,
) -> Iterator[Any]:
    """Return lines as they are, and tell now and then how far they are."""
    done = 0
    for number, line in enumerate(lines):
        if number % _NOW_AND_THEN == 0:
            tell(done / max(total, 1), what)
        done += each(line)
        yield line


def _shares(text: str | None) -> dict[str, str] | None:
    """Return what was typed after --mix; numbers are still text, so that they stay exact."""
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",")]
    if any(not sign for _, sign, _ in pairs) or len({name.strip() for name, _, _ in pairs}) < len(pairs):
        raise ParameterError(
            "--mix is not a list of levels with shares.", fix="write --mix off=0.1,low=0.2,medium=0.7."
        )
    return {name.strip(): share.strip() for name, _, share in pairs}


def _run(*words: str) -> str:
    return f"{program()} survey {shlex.join(words)}"
