"""The report of a survey: what came out, how sure it is, and what the collector could learn about each respondent.

It has charts with their margins, and a part about fake people: whether reports look genuine, and what fake ones could
do. Drawing costs nothing: only estimates are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.core.wordings import format_count, format_points, percent
from cloister.data.columns import Category
from cloister.local.estimates import MeanEstimate
from cloister.local.survey._fake_reports import FALSE_ALARM
from cloister.local.survey.levels import LEVELS_ARE_VISIBLE, Statement, format_factor, took_part
from cloister.local.survey.results import TOO_FEW, format_mean, margins_of, mend_estimate, values_of
from cloister.plotting import Figure, bars_with_errors, points_with_errors
from cloister.report import (
    Bars,
    Block,
    Bullets,
    Cell,
    Chart,
    Facts,
    KeyFigure,
    Notice,
    NoticeKind,
    Report,
    ReportProvenance,
    Section,
    Series,
    TableBlock,
    Text,
    escape_text,
)

if TYPE_CHECKING:
    from cloister.local.survey.levels import SurveyLevel
    from cloister.local.survey.results import LevelResult, QuestionResult, SurveyResult

__all__ = ["genuine_section", "question_chart", "report_of"]


def question_chart(result: QuestionResult, *, title: str | None = None, raw: bool = False) -> Figure:
    """Return the shares of all answers as bars, or a mean as a dot, with 95% margins.

    The numbers are those of the table beside it: mended, and left out where the margin leaves nothing to say; if it
    does so for all of them, all are drawn, and the chart says that they say nothing.

    Args:
        result: what is drawn.
        title: the question's text by default.
        raw: draw the unbiased estimates instead, which may be impossible, such as shares below 0.
    """
    title = result.question.text if title is None else title
    if isinstance(result.estimate, MeanEstimate):
        return _mean_chart(result, title, raw=raw)
    margins, telling = result.margins(), result.telling()
    shares, draws_all = (result.raw if raw else result.mended), raw or not any(telling.values())
    shown = {name: share if draws_all or telling[name] else None for name, share in shares.items()}
    return bars_with_errors(
        list(shown),
        [None if share is None else 100 * share for share in shown.values()],
        [None if share is None else 100 * margins[name] for name, share in shown.items()],
        title=title,
        x="",
        y="percent of the people who answered",
        subtitle=_subtitle(result, raw=raw),
    )


def _mean_chart(result: QuestionResult, title: str, *, raw: bool) -> Figure:
    """Return the mean of all levels together, and of each."""
    found = [("everybody", result.estimate)]
    found += [(f"level {level.name}", level.estimate) for level in result.levels if level.estimate is not None]
    means = [(name, estimate) for name, estimate in found if isinstance(estimate, MeanEstimate)]
    return points_with_errors(
        [name for name, _ in means],
        [(values_of if raw else mend_estimate)(estimate)["mean"] for _, estimate in means],
        [estimate.margin() for _, estimate in means],
        title=title,
        x="estimated mean",
        subtitle=_subtitle(result, raw=raw),
    )


def _subtitle(result: QuestionResult, *, raw: bool) -> str:
    kind = "raw estimates" if raw else "estimates"
    words = "" if any(result.telling().values()) else f"; {TOO_FEW}"
    return f"{kind} from {format_count(result.reports, 'report')}; lines show 95% margins{words}"


_SURVEYS = f"{round(1 / FALSE_ALARM):,}"
_ODD = (
    "Some reports do not look like those that the survey's devices send; the table says which and why. Fewer than "
    f"one in {_SURVEYS} surveys with genuine reports look like this. Find out where the reports come from before you "
    "use the estimates of these questions."
)
_NOTHING_ODD = (
    "All reports look like those that the survey's devices send. Fewer than one in "
    f"{_SURVEYS} surveys with genuine reports would be suspected by this check."
)
_UNSEEN = (
    "**What cannot be seen.** Nobody can compare a report with its sender's answer; that is the protection. So fake "
    "people who follow the rules with an answer of their choice look like everybody else, and a few who do not are "
    "lost among many. The table says what they could do at most: if 1 in 100 of those who answered were fake and sent "
    "whatever moves a raw estimate most. Compare it with the effect that you want to claim. Stronger protection lets "
    "them move more. One-time invitations keep their number small."
)


def genuine_section(result: SurveyResult) -> Section:
    """Return the section."""
    blocks: list[Block] = [_alarms(result)] if not result.is_plausible else [Text(_NOTHING_ODD)]
    if not result.is_plausible:
        blocks.insert(0, Notice(NoticeKind.WARNING, _ODD))
    rows: list[list[Cell]] = [
        [one.question.id, _format_movement(one, one.poisoning.up, "+"), _format_movement(one, one.poisoning.down, "-")]
        for one in result.questions
    ]
    table = TableBlock(
        ["Question", "Upwards at most", "Downwards at most"],
        rows,
        align=["left", "right", "right"],
        caption="How far 1 fake person in 100 could move a share, or a mean",
    )
    return Section("Whether the reports look genuine", [*blocks, Text(_UNSEEN), table])


def _alarms(result: SurveyResult) -> TableBlock:
    rows: list[list[Cell]] = [
        [one.question.id, level, escape_text(reason)] for one in result.questions for level, reason in one.alarms
    ]
    return TableBlock(["Question", "Level", "What is odd"], rows, caption="Reports that do not look genuine")


def _format_movement(one: QuestionResult, value: float, sign: str) -> str:
    if one.is_mean:
        return f"{sign}{value:.2g}"
    return f"{sign}{format_points(value, rounding='up')} points"


_UNLIKELY = 0.01
_HOW_TO_READ = (
    "**How to read the numbers.** The *estimate* is the best guess that is possible: no share is below 0%, and where "
    "everybody gave one answer the shares add up to 100%. The *raw estimate* is right on average and may be below 0% "
    "or above 100%; the margin belongs to it. In 95 of 100 surveys the truth about the people who answered lies "
    "within the margin of the raw estimate. Where the margin is wider than half of what is possible, too few people "
    "answered to say anything. The *wider margin* is for everybody whom they stand for, if they are a "
    "random sample of them; no margin covers that some people rather take part than others."
)
_CHART = "The chart shows the mended estimates with their margins; the table has them beside the raw ones."
_LEVELS_DIFFER = (
    "People at different levels answered differently, more than chance explains. The estimate above stays right, "
    "since it counts each level for as many people as chose it. But the choice of a level tells something about the "
    "answer: next time, let people choose before they read the question."
)
_SHARPER = (
    "The *sharper guess* weighs levels by their precision. It is right only if the choice of a level has nothing to do "
    "with the answer."
)
_PROMISE = (
    "Whatever you answered: a report makes any answer of yours at most so many times likelier or less likely, compared "
    "with any other answer, as the table says. That holds for every collector, also a dishonest one, and whatever else "
    "they know about you. It holds because your device changed the answer before it was sent."
)
_IF_SHUFFLED = (
    "**If somebody else shuffles.** Where a party that the collector cannot bribe takes the reports first and passes "
    "them on in random order, without ids, nobody can tell whose report is whose, and each person is hidden among the "
    "others as well. The last column is the epsilon that then holds against the collector for this question, with a "
    "probability of one in a million left open; several questions add up. This collector received the reports itself: "
    "the epsilon of the report is what you can rely on."
)
_NOT_HIDDEN = (
    "**That somebody took part.** Whoever runs the network or the server sees who sends something.",
    "**Levels and missing answers.** The collector sees at which level a question was answered, and whether it was.",
    "**What everybody together answered.** That is the purpose. It may also tell about a person who took no part.",
    "**Lies.** Somebody who sends invented reports moves the estimates, as somebody who lies in any survey does.",
    "**Further surveys.** Each one adds to what can be learned about the same person: the epsilons add up.",
)


def report_of(result: SurveyResult) -> Report:
    """Return the report of a survey's results."""
    survey = result.survey
    return Report(
        survey.title,
        subtitle=f"Collected by {survey.collector}",
        summary=_summary(result),
        figures=_figures(result),
        sections=[
            Section("What was answered", [Text(_HOW_TO_READ)]),
            *(_question(one) for one in result.questions),
            *_missing(result),
            genuine_section(result),
            _describe_knowledge(result),
            Section("What is not hidden", [Bullets(_NOT_HIDDEN)]),
            _describe_making(result),
        ],
        provenance=ReportProvenance(details=[("Survey", survey.id), ("Fingerprint of the survey", survey.fingerprint)]),
    )


def _summary(result: SurveyResult) -> str:
    purpose = f"{escape_text(result.survey.purpose)}\n\n" if result.survey.purpose else ""
    return (
        f"{purpose}{took_part(result.submissions)} Every answer was changed at random on the respondent's own "
        "device before it was sent: the collector never had the true answers, and this report is made from the changed "
        "reports alone. That protects each person, and it is why every number here has a margin of error."
    )


def _figures(result: SurveyResult) -> list[KeyFigure]:
    refused = sum(result.refused.values())
    figures = [
        KeyFigure(
            "People who took part",
            result.submissions,
            f"{refused:,} further submission{'s were' if refused != 1 else ' was'} refused",
        ),
        KeyFigure("Questions answered", len(result.questions), f"of {len(result.survey.questions)}"),
    ]
    if result.questions:
        losses = [level.protocol.epsilon for one in result.questions for level in one.levels if level.reports]
        words = [format_factor(Statement(loss).factor) for loss in (min(losses), max(losses))]
        figures.append(
            KeyFigure(
                "Odds about one answer change by at most",
                f"a factor {words[0]}" if words[0] == words[1] else f"{words[0]} to {words[1]}",
                "depending on the level that the respondent chose" if words[0] != words[1] else "for one question",
            )
        )
    figures.append(
        KeyFigure(
            "Odds about all answers together change by at most",
            f"a factor {format_factor(result.survey.total().factor)}",
            "for somebody who answers every question at its preselected level",
        )
    )
    return figures


def _question(result: QuestionResult) -> Section:
    blocks: list[Block] = [Chart(question_chart(result), caption=_CHART), _values(result)]
    if result.mean is not None:
        blocks.append(Text(f"**Mean rating:** {format_mean(result.mean)} (wider margin)."))
    blocks += [_levels(result), *_differences(result)]
    return Section(result.question.text, blocks, level=2, anchor=f"question-{result.question.id.replace('_', '-')}")


def _values(result: QuestionResult) -> TableBlock:
    margins, wider, estimated = result.margins(), result.wider(), result.estimated()
    sharper = _sharper(result)
    rows: list[list[Cell]] = [
        [
            str(name),
            estimated[name],
            *(f"{sign}{text}" for sign, text in zip(("", "± "), result.parts(raw, margins[name]), strict=True)),
            f"± {result.parts(raw, wider[name])[1]}",
            *([sharper[name]] if sharper else []),
        ]
        for name, raw in result.raw.items()
    ]
    columns = ["Answer", "Estimate", "Raw estimate", "Margin", "Wider margin", *(["Sharper guess"] if sharper else [])]
    return TableBlock(
        columns,
        rows,
        align=["left", *(["right"] * (len(columns) - 1))],  # type: ignore[list-item]  # known alignments
        caption=f"From {format_count(result.reports, 'report')}; margins hold in 95 of 100 surveys",
    )


def _sharper(result: QuestionResult) -> dict[Category, str]:
    """Return the estimates that weigh levels by precision, where there are several levels."""
    if result.difference is None:
        return {}
    pooled = result.together.pooled
    margins = margins_of(pooled)
    return {name: result.format_value(value, margins[name]) for name, value in values_of(pooled).items()}


def _levels(result: QuestionResult) -> Bars:
    names = [
        "did not answer",
        *(f"{level.name} (epsilon {float(level.protocol.epsilon):g})" for level in result.levels),
    ]
    counts = [result.off, *(level.reports for level in result.levels)]
    return Bars(names, [Series("people", counts)], caption="Which level people chose")


def _differences(result: QuestionResult) -> list[Block]:
    if result.difference is None:
        return []
    if result.difference < _UNLIKELY:
        return [Notice(NoticeKind.WARNING, _LEVELS_DIFFER)]
    return [Text(f"{_SHARPER} Between the levels there is no more difference than chance explains here.")]


def _missing(result: SurveyResult) -> list[Section]:
    if not result.unanswered:
        return []
    texts = [escape_text(result.survey.question(name).text) for name in result.unanswered]
    return [Section("Questions that nobody answered", [Bullets(texts)], level=2)]


def _describe_knowledge(result: SurveyResult) -> Section:
    survey = result.survey
    asked: dict[SurveyLevel, list[str]] = {}
    for question in survey.questions:
        for level in survey.levels_of(question.id).values():
            if level.epsilon is not None:
                asked.setdefault(level, []).append(question.id)
    rows: list[list[Cell]] = [
        [
            level.name,
            *_belief(Statement(level.loss)),
            "all" if len(names) == len(survey.questions) else ", ".join(names),
        ]
        for level, names in asked.items()
    ]
    table = TableBlock(
        ["Level", "Epsilon", "Odds change by at most", "10% becomes at most", "or at least", "Questions"],
        rows,
        align=["left", "right", "right", "right", "right", "left"],
        caption="What one report can tell somebody who gave an answer of yours a chance of 10% before",
    )
    together = Text(
        f"**All questions together.** At the preselected levels: {_lower_first(survey.total())} Answering everything "
        f"at the level that protects least: {_lower_first(result.statement())}"
    )
    promise, visible = Notice(NoticeKind.PROMISE, _PROMISE), Notice(NoticeKind.WARNING, LEVELS_ARE_VISIBLE)
    return Section(
        "What the collector could learn about you", [promise, table, together, visible, *_describe_shuffling(result)]
    )


def _belief(statement: Statement) -> list[Cell]:
    low, high = statement.posterior("0.1")
    return [
        f"{float(statement.epsilon):g}",
        f"a factor {format_factor(statement.factor)}",
        percent(high, rounding="up"),
        percent(low, rounding="down"),
    ]


def _lower_first(statement: Statement) -> str:
    text = str(statement)
    return text[0].lower() + text[1:]


def _describe_shuffling(result: SurveyResult) -> list[Block]:
    rows: list[list[Cell]] = [
        [one.question.id, level.name, level.reports, f"{float(level.protocol.epsilon):g}", _central(level)]
        for one in result.questions
        for level in one.levels
        if level.reports
    ]
    if not rows:
        return []
    columns = ["Question", "Level", "Reports", "Epsilon of the report", "Epsilon if shuffled"]
    return [Text(_IF_SHUFFLED), TableBlock(columns, rows, align=["left", "left", "right", "right", "right"])]


def _central(level: LevelResult) -> str:
    if level.shuffled is None:
        return "too few reports"
    return f"{float(level.shuffled.epsilon):.3g}"


def _describe_making(result: SurveyResult) -> Section:
    rows: list[list[Cell]] = [
        [one.question.id, level.name, level.protocol.name, level.protocol.fingerprint[:16]]
        for one in result.questions
        for level in one.levels
    ]
    facts: list[tuple[str, Cell]] = [("Accepted submissions", result.submissions)]
    facts += [(f"Refused: {reason}", count) for reason, count in sorted(result.refused.items())]
    facts += [("First and last day", f"{min(result.days)} to {max(result.days)}")]
    caption = "What devices did; anybody can compare the fingerprints with those of the published survey"
    table = TableBlock(["Question", "Level", "Protocol", "Fingerprint begins with"], rows, caption=caption)
    return Section("How it was made", [Facts(facts), table])
