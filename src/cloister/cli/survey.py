"""``cloister survey``: write, plan, rehearse and evaluate a survey whose collector need not be trusted."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import CommandOutput, HelpfulGroup, command, program
from cloister.cli.options import check_target, output_options
from cloister.core.wordings import format_count, format_points, join_words, percent
from cloister.errors import DataWarning, ForeignReportError, ParameterError

if TYPE_CHECKING:
    from cloister.local.survey import Collector, PlanRow, QuestionResult, Simulation, SurveyPlan, SurveyResult


_FEW = (
    '"Any answer" is for the share that is hardest to estimate, "rare answer" for an answer that hardly anybody\n'
    "gives. Both hold for everybody whom the people stand for, if they are a random sample of them."
)
_MENDING = (
    '"Before mending" is what the reports say: right on average, but perhaps below 0% or not adding up to 100%. The\n'
    "estimate is the nearest that is possible. The margin is that of the number before mending."
)


def show_plan(output: CommandOutput, plan: SurveyPlan) -> None:
    """Print a plan."""
    if plan.margin is not None:
        _show_needed(output, plan, plan.margin)
    else:
        _show_margins(output, plan, plan.respondents or 1)
    _show_lacking(output, plan)
    output.say(f"\n{_FEW}")
    output.say("More protection (a smaller factor) takes more people: half the epsilon takes about four times as many.")


def _show_needed(output: CommandOutput, plan: SurveyPlan, margin: float) -> None:
    hardest = plan.hardest
    people, few = hardest.respondents(margin, worst=True), hardest.respondents(margin)
    output.say(f"{_supposing(plan)}, {people:,} people have to take part for a margin of")
    points = f"± {margin:g} point{'s' * (margin != 1)}"
    output.say(f'{points}, whatever they answer. The question "{hardest.question}" takes the most.')
    if few < people:
        output.say(f"There {few:,} are enough for answers that hardly anybody gives.")
    output.heading("People needed, for each question and level")
    rows = [
        [*_head(row), row.in_units(margin), *(f"{row.respondents(margin, worst=worst):,}" for worst in (True, False))]
        for row in plan.rows
    ]
    output.table(["question", "level", "odds change by", "margin", "any answer", "rare answer"], rows)


def _show_margins(output: CommandOutput, plan: SurveyPlan, people: int) -> None:
    hardest = plan.hardest
    widest, rare = (hardest.margin(people, worst=worst) for worst in (True, False))
    part = "" if hardest.unit else f" ({widest:.3g}% of its range)"
    output.say(f"{_supposing(plan)}, {people:,} people give margins of {hardest.in_units(widest)}{part} or better,")
    output.say(f'whatever they answer: the question "{hardest.question}" has the widest one. In 95 of 100 surveys the')
    output.say("truth lies within it.")
    if rare < widest:
        output.say(f"There it is {hardest.in_units(rare)} for answers that hardly anybody gives.")
    output.heading("Margins, for each question and level")
    rows = [
        [*_head(row), *(row.in_units(row.margin(people, worst=worst)) for worst in (True, False))] for row in plan.rows
    ]
    output.table(["question", "level", "odds change by", "any answer", "rare answer"], rows)


def _show_lacking(output: CommandOutput, plan: SurveyPlan) -> None:
    """Print which questions the mix does not fit."""
    planned = {row.question: row.level for row in plan.expected}
    for place, (question, levels) in enumerate(plan.lacking.items()):
        names = f"level{'s' * (len(levels) > 1)} {join_words(levels)}"
        output.say(
            f'{chr(10) * (place == 0)}The question "{question}" does not have the {names} of the mix: it is planned at '
            f'"{planned[question]}".'
        )


def _supposing(plan: SurveyPlan) -> str:
    return "If people choose levels as in the mix" if plan.mix is not None else "If everybody keeps what is preselected"


def _head(row: PlanRow) -> list[str]:
    from cloister.local.survey import Statement
    from cloister.local.survey.levels import format_factor

    name = f"{row.level} (preselected)" if row.preselected else row.level
    factor = "" if row.epsilon is None else f"at most {format_factor(Statement(row.epsilon).factor)}"
    return [row.question, name, factor]


def show_simulation(output: CommandOutput, made: Simulation, result: SurveyResult) -> None:
    """Print the truth beside the estimates."""
    output.say(
        f"Made-up people who took part: {result.submissions:,}. Their answers were changed at random by their devices;"
    )
    output.say("the estimates below come from the changed reports alone.")
    inside = total = 0
    for one in result.questions:
        truth, margins = made.truth[one.question.id], one.margins()
        output.heading(one.question.text)
        hits = {name: abs(raw - truth[name]) <= margins[name] for name, raw in one.raw.items()}
        rows = [
            [str(name), _plain(one, truth[name]), one.format_value(raw, margins[name]), "" if hits[name] else "outside"]
            for name, raw in one.raw.items()
        ]
        output.table(["answer", "truth", "estimate", ""], rows)
        inside, total = inside + sum(hits.values()), total + len(hits)
    output.say(f"\n{inside} of {total} truths lie within the margins; on average 95 of 100 do.")


def show_result(output: CommandOutput, result: SurveyResult) -> None:
    """Print the estimates."""
    from cloister.local.survey.levels import format_factor, took_part
    from cloister.local.survey.results import format_mean

    output.say(f"{took_part(result.submissions)} Their devices changed the answers before sending them, so that")
    output.say("every estimate has a margin: in 95 of 100 surveys the truth about these people lies within it.")
    output.say(_MENDING)
    for one in result.questions:
        margins, estimated = one.margins(), one.estimated()
        output.heading(f"{one.question.text} ({one.reports:,} answered, {one.off:,} did not)")
        parts = {name: one.parts(raw, margins[name]) for name, raw in one.raw.items()}
        rows = [[str(name), estimated[name], f"± {around}", raw] for name, (raw, around) in parts.items()]
        output.table(["answer", "estimate", "margin", "before mending"], rows)
        if one.mean is not None:
            output.say(f"Mean rating: {format_mean(one.mean)}")
    for name in result.unanswered:
        output.say(f'\nNobody answered "{name}".')
    _show_genuineness(output, result)
    output.heading("What the collector could learn about one person")
    output.say(str(result.survey.total()))
    output.say("That is for all questions at the preselected levels, whatever the collector does with the reports.")
    output.say(f"At the weakest level of every question: at most a factor {format_factor(result.statement().factor)}.")


def _show_genuineness(output: CommandOutput, result: SurveyResult) -> None:
    output.heading("Whether the reports look genuine")
    alarms = [(one.question.id, *alarm) for one in result.questions for alarm in one.alarms]
    if alarms:
        output.say("No: these reports do not look like those that the survey's devices send.")
        for name, level, reason in alarms:
            output.say(f'- "{name}" at level {level}: {reason}')
        output.say(
            "Fewer than 1 in a million surveys with genuine reports look like this. Find out where the reports come"
        )
        output.say("from before you use these estimates.")
    else:
        output.say(
            "Nothing odd: they look like those that the survey's devices send. Fewer than 1 in a million surveys"
        )
        output.say("with genuine reports would be suspected here.")
    output.say(
        "Few fake people, or clever ones, cannot be seen. If 1 in 100 people were fake, they could move estimates"
    )
    output.say("as far as this:")
    rows = [[one.question.id, _describe_shift(one)] for one in result.questions]
    output.table(["question", "by at most"], rows)


def _describe_shift(one: QuestionResult) -> str:
    most = one.poisoning.most
    if one.is_mean:
        return f"{most:.2g} (the mean)"
    # A bound from above: what fake people could do must not be understated.
    return f"{format_points(most, digits=2, rounding='up')} points (a share)"


def note_suspicious(result: SurveyResult) -> None:
    """Warn of reports that do not look genuine."""
    names = [f'"{one.question.id}"' for one in result.questions if one.alarms]
    if names:
        told = f"Reports do not look like those of the survey's devices: {', '.join(names)}."
        warnings.warn(told, DataWarning, stacklevel=2)


def note_refused(collector: Collector) -> None:
    """Warn of submissions that were left out."""
    for reason, count in sorted(collector.refused.items()):
        warnings.warn(f"{format_count(count, 'submission')} left out: {reason}.", DataWarning, stacklevel=2)


def _plain(one: QuestionResult, value: float) -> str:
    return f"{value:.4g}" if one.is_mean else percent(value)


_SURVEYS = (".yaml", ".yml")
_SUBMISSIONS = (".jsonl",)
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
@output_options()
def new(output: CommandOutput, *, file: str, force: bool) -> None:
    """Write an example of a survey, for you to change.

    FILE ends in .yaml. Every part is explained in it.
    """
    from cloister.core.atomic_files import write_text
    from cloister.local.survey import EXAMPLE, example_survey

    check_target(file, inputs=(), force=force, endings=_SURVEYS)
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
def plan(output: CommandOutput, *, file: str, respondents: int | None, margin: str | None, mix: str | None) -> None:
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
    show_plan(output, found)


@command("simulate", example="cloister survey simulate survey.yaml --respondents 5000 -o made-up.jsonl", group=survey)
@click.argument("file", metavar="FILE")
@click.option("--respondents", metavar="N", type=click.IntRange(1, 1_000_000), required=True, help="How many people.")
@_mix
@output_options("the submissions", endings=_SUBMISSIONS, required=True)
def simulate(
    output: CommandOutput, *, file: str, respondents: int, output_file: str, mix: str | None, force: bool
) -> None:
    """Rehearse a survey with made-up people.

    FILE is a survey. You see the estimates beside the truth. The people's true answers are made up from the shares that
    FILE states under "pretend"; their devices then change them for real, and nobody but this rehearsal knows the truth.
    """
    from cloister.local.survey import Collector, Survey, simulate as run
    from cloister.local.survey.submissions import read_lines

    check_target(output_file, inputs=(file,), force=force, endings=_SUBMISSIONS)
    asked = Survey.read(file)
    with output.progress("Asking made-up people") as tell:
        made = run(asked, respondents=respondents, mix=_shares(mix))
        _write(_watch(made.lines(), respondents, tell, "writing submissions"), output_file, force=force)
        collector = Collector(asked)
        collector.add_lines(_watch(read_lines(output_file), respondents, tell, "reading submissions"))
        result = collector.estimate()
    truth = {
        name: [{"value": value, "truth": share} for value, share in shares.items()]
        for name, shares in made.truth.items()
    }
    output.document(
        {
            "schema": "cloister.survey_simulation/1",
            "submissions": output_file,
            "truth": truth,
            "result": result.to_dict(),
        }
    )
    show_simulation(output, made, result)
    output.say(f"\nThe submissions are in {output_file}. To evaluate them as you would real ones:")
    output.say(f"  {_run('aggregate', file, output_file, '--report', 'results.html')}")


@command(
    "aggregate",
    example="cloister survey aggregate survey.yaml submissions.jsonl --report results.html",
    group=survey,
)
@click.argument("file", metavar="FILE")
@click.argument("submissions", metavar="SUBMISSIONS", nargs=-1, required=True)
@output_options(report="Write a report with charts")
def aggregate(output: CommandOutput, *, file: str, submissions: Sequence[str], report: str | None, force: bool) -> None:
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
            collector.add_lines(_watch(lines, size, tell, path, each=len))
    note_refused(collector)
    _check_asked(collector, file)
    result = collector.estimate()
    note_suspicious(result)
    if report is not None:
        with output.progress("Writing the report"):
            result.report(report, overwrite=force)
    output.document({**result.to_dict(), "report": report})
    show_result(output, result)
    if report is not None:
        output.say(f"\nThe report is in {report}.")


def _check_asked(collector: Collector, file: str) -> None:
    """Refuse to go on where every submission is for something else: the survey was changed, or is another one."""
    from cloister.local.survey.intake import FOREIGN

    refused = collector.refused.total()
    if not len(collector) and refused and refused == collector.refused[FOREIGN]:
        raise ForeignReportError(
            f"Of {refused:,} submissions none is for the survey in {file}.",
            fix="use the very file that was published: with another word or number in it, it is another survey.",
        )


def _write(lines: Iterable[str], target: str, *, force: bool) -> None:
    from cloister.core.atomic_files import write_with

    encoded = (f"{line}\n".encode() for line in lines)
    write_with(target, lambda stream: stream.writelines(encoded), overwrite=force)


def _watch(
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
