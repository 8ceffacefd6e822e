"""Charts of a survey's results, with their margins. Drawing costs nothing: only estimates are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.local.estimates import MeanEstimate
from cloister.local.survey.statements import counted
from cloister.plotting import Figure, bars_with_errors, points_with_errors

if TYPE_CHECKING:
    from cloister.local.survey.results import QuestionResult

__all__ = ["levels_chart", "question_chart"]


def question_chart(result: QuestionResult, *, title: str | None = None) -> Figure:
    """Return the shares of all answers as bars, or a mean as a dot, with 95% margins."""
    title = result.question.text if title is None else title
    if isinstance(result.estimate, MeanEstimate):
        return _mean_chart(result, title)
    margins = result.margins()
    return bars_with_errors(
        list(result.raw),
        [100 * share for share in result.raw.values()],
        [100 * margins[name] for name in result.raw],
        title=title,
        x="",
        y="percent of the people who answered",
        subtitle=f"raw estimates from {counted(result.reports, 'report')}; lines show 95% margins",
    )


def levels_chart(result: QuestionResult) -> Figure:
    """Return how many people chose which level."""
    counts = {"off": result.off} | {level.name: level.reports for level in result.levels}
    return bars_with_errors(
        list(counts),
        list(counts.values()),
        [None] * len(counts),
        title=f"Levels chosen: {result.question.id}",
        x="level",
        y="people",
    )


def _mean_chart(result: QuestionResult, title: str) -> Figure:
    """Return the mean of all levels together, and of each."""
    found = [("everybody", result.estimate)]
    found += [(f"level {level.name}", level.estimate) for level in result.levels if level.estimate is not None]
    means = [(name, estimate) for name, estimate in found if isinstance(estimate, MeanEstimate)]
    return points_with_errors(
        [name for name, _ in means],
        [estimate.value for _, estimate in means],
        [estimate.margin() for _, estimate in means],
        title=title,
        x="estimated mean",
        subtitle=f"raw estimates from {counted(result.reports, 'report')}; lines show 95% margins",
    )
