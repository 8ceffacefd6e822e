"""Charts of a survey's results, with their margins. Drawing costs nothing: only estimates are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.local.estimates import MeanEstimate
from cloister.local.survey.results import TOO_FEW, mended_of, values_of
from cloister.local.survey.statements import counted
from cloister.plotting import Figure, bars_with_errors, points_with_errors

if TYPE_CHECKING:
    from cloister.local.survey.results import QuestionResult

__all__ = ["levels_chart", "question_chart"]


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


def _mean_chart(result: QuestionResult, title: str, *, raw: bool) -> Figure:
    """Return the mean of all levels together, and of each."""
    found = [("everybody", result.estimate)]
    found += [(f"level {level.name}", level.estimate) for level in result.levels if level.estimate is not None]
    means = [(name, estimate) for name, estimate in found if isinstance(estimate, MeanEstimate)]
    return points_with_errors(
        [name for name, _ in means],
        [(values_of if raw else mended_of)(estimate)["mean"] for _, estimate in means],
        [estimate.margin() for _, estimate in means],
        title=title,
        x="estimated mean",
        subtitle=_subtitle(result, raw=raw),
    )


def _subtitle(result: QuestionResult, *, raw: bool) -> str:
    kind = "raw estimates" if raw else "estimates"
    words = "" if any(result.telling().values()) else f"; {TOO_FEW}"
    return f"{kind} from {counted(result.reports, 'report')}; lines show 95% margins{words}"
