"""What ``cloister survey`` says: plans, rehearsals and results, in plain words."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from cloister.cli.output import Output
from cloister.errors import DataWarning

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


def show_plan(output: Output, plan: SurveyPlan) -> None:
    """Print a plan."""
    if plan.margin is not None:
        _show_needed(output, plan, plan.margin)
    else:
        _show_margins(output, plan, plan.respondents or 1)
    _show_lacking(output, plan)
    output.say(f"\n{_FEW}")
    output.say("More protection (a smaller factor) takes more people: half the epsilon takes about four times as many.")


def _show_needed(output: Output, plan: SurveyPlan, margin: float) -> None:
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


def _show_margins(output: Output, plan: SurveyPlan, people: int) -> None:
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


def _show_lacking(output: Output, plan: SurveyPlan) -> None:
    """Print which questions the mix does not fit."""
    planned = {row.question: row.level for row in plan.expected}
    for place, (question, levels) in enumerate(plan.lacking.items()):
        names = f"level{'s' * (len(levels) > 1)} {' and '.join(levels)}"
        output.say(
            f'{chr(10) * (place == 0)}The question "{question}" does not have the {names} of the mix: it is planned at '
            f'"{planned[question]}".'
        )


def _supposing(plan: SurveyPlan) -> str:
    return "If people choose levels as in the mix" if plan.mix is not None else "If everybody keeps what is preselected"


def _head(row: PlanRow) -> list[str]:
    from cloister.local.survey import Statement
    from cloister.local.survey.statements import written_factor

    name = f"{row.level} (preselected)" if row.preselected else row.level
    factor = "" if row.epsilon is None else f"at most {written_factor(Statement(row.epsilon).factor)}"
    return [row.question, name, factor]


def show_simulation(output: Output, made: Simulation, result: SurveyResult) -> None:
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
            [str(name), _plain(one, truth[name]), one.written(raw, margins[name]), "" if hits[name] else "outside"]
            for name, raw in one.raw.items()
        ]
        output.table(["answer", "truth", "estimate", ""], rows)
        inside, total = inside + sum(hits.values()), total + len(hits)
    output.say(f"\n{inside} of {total} truths lie within the margins; on average 95 of 100 do.")


def show_result(output: Output, result: SurveyResult) -> None:
    """Print the estimates."""
    from cloister.local.survey.results import written_mean
    from cloister.local.survey.statements import took_part, written_factor

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
            output.say(f"Mean rating: {written_mean(one.mean)}")
    for name in result.unanswered:
        output.say(f'\nNobody answered "{name}".')
    _show_genuineness(output, result)
    output.heading("What the collector could learn about one person")
    output.say(str(result.survey.total()))
    output.say("That is for all questions at the preselected levels, whatever the collector does with the reports.")
    output.say(f"At the weakest level of every question: at most a factor {written_factor(result.statement().factor)}.")


def _show_genuineness(output: Output, result: SurveyResult) -> None:
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
    rows = [[one.question.id, _moved(one)] for one in result.questions]
    output.table(["question", "by at most"], rows)


def _moved(one: QuestionResult) -> str:
    most = one.poisoning.most
    return f"{most:.2g} (the mean)" if one.is_mean else f"{100 * most:.1f} points (a share)"


def note_suspicious(result: SurveyResult) -> None:
    """Warn of reports that do not look genuine."""
    names = [f'"{one.question.id}"' for one in result.questions if one.alarms]
    if names:
        told = f"Reports do not look like those of the survey's devices: {', '.join(names)}."
        warnings.warn(told, DataWarning, stacklevel=2)


def note_refused(collector: Collector) -> None:
    """Warn of submissions that were left out."""
    for reason, count in sorted(collector.refused.items()):
        warnings.warn(f"{count:,} submission{'s' * (count != 1)} left out: {reason}.", DataWarning, stacklevel=2)


def _plain(one: QuestionResult, value: float) -> str:
    return f"{value:.4g}" if one.is_mean else f"{100 * value:.1f}%"
