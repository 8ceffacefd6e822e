"""The part of a survey's report about fake people: whether reports look genuine, and what fake ones could do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.report import Block, Cell, Notice, NoticeKind, Section, TableBlock, Text, escaped

if TYPE_CHECKING:
    from cloister.local.survey.results import QuestionResult, SurveyResult

__all__ = ["genuine_section"]

_ODD = (
    "Some reports do not look like those that the survey's devices send; the table says which and why. Fewer than one "
    "in a million surveys with genuine reports look like this. Find out where the reports come from before you use the "
    "estimates of these questions."
)
_NOTHING_ODD = (
    "All reports look like those that the survey's devices send. Fewer than one in a million surveys with genuine "
    "reports would be suspected by this check."
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
        [one.question.id, _written(one, one.poisoning.up, "+"), _written(one, one.poisoning.down, "-")]
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
        [one.question.id, level, escaped(reason)] for one in result.questions for level, reason in one.alarms
    ]
    return TableBlock(["Question", "Level", "What is odd"], rows, caption="Reports that do not look genuine")


def _written(one: QuestionResult, value: float, sign: str) -> str:
    return f"{sign}{value:.2g}" if one.is_mean else f"{sign}{100 * value:.1f} points"
