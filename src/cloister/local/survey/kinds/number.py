"""A number between public bounds: its mean is estimated, or with bins the share of people in each."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import text_of_number
from cloister.core.random import RandomSource
from cloister.core.validation import check_bounds, check_count
from cloister.data.columns import Category
from cloister.errors import CloisterError, MissingBoundsError, OutsideDomainError, ParameterError, ParameterTypeError
from cloister.local.numeric.duchi import Duchi
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.numeric.piecewise import Piecewise
from cloister.local.survey.kinds._options import MOST_OPTIONS
from cloister.local.survey.kinds.base import QuestionKind, choice_protocols, register, uniform

if TYPE_CHECKING:
    from cloister.local.survey.questions import SurveyQuestion

__all__ = ["Number"]


@register
class Number(QuestionKind):
    """A number; answers outside of its bounds count as the nearer of them."""

    name, words, facts, rank = "number", "number", ("bounds", "whole", "bins"), 4
    usual = {"bounds": (0, 100)}  # noqa: RUF012
    pretend_example = "{mean: 40, spread: 15}"

    def clean(self, question: SurveyQuestion) -> Mapping[str, Any]:
        """Return the bounds, and the edges of the bins if there are any."""
        if question.bounds is None:
            raise MissingBoundsError(
                "The smallest and the largest answer are not declared, and reading them from answers would not be "
                "private.",
                fix="write for example bounds: [0, 120].",
            )
        bounds = check_bounds(question.bounds)
        return {"bounds": bounds, "bins": _check_bins(question.bins, bounds, whole=question.whole)}

    def answers(self, question: SurveyQuestion) -> tuple[Category, ...]:
        """Return the bins in words; nothing without bins."""
        pairs = list(pairwise(question.bins))
        return tuple(
            _bin_label(low, high, whole=question.whole, is_last=place == len(pairs) - 1)
            for place, (low, high) in enumerate(pairs)
        )

    def protocols(self, question: SurveyQuestion) -> tuple[str, ...]:
        """Return the protocols for a mean, or with bins those for one value of a domain."""
        return choice_protocols() if question.bins else (Hybrid.name, Piecewise.name, Duchi.name)

    def encode(self, question: SurveyQuestion, values: Any) -> Any:  # one number or many
        """Return numbers, or the bins that they are in."""
        if not question.bins:
            return values
        many = _as_numbers(values)
        inner = np.array([float(edge) for edge in question.bins[1:-1]])
        labels = np.array(self.answers(question), dtype=object)[np.searchsorted(inner, many, side="right")].tolist()
        return labels[0] if np.ndim(values) == 0 else labels

    def read_answer(self, question: SurveyQuestion, value: Any) -> Any:  # a number, or the label of its bin
        """Return a number within the bounds, or the label of its bin."""
        low, high = question.bounds or (Fraction(0), Fraction(0))
        # Clamped as a rational: far outside of the bounds there may be no float at all.
        return self.encode(question, float(min(max(_read_number(question, value), low), high)))

    def note(self, question: SurveyQuestion, value: Any) -> str | None:  # an answer
        """Return that a number counts as a bound, where it does."""
        low, high = question.bounds or (Fraction(0), Fraction(0))
        if low <= _read_number(question, value) <= high:
            return None
        ends = f"{text_of_number(low)} to {text_of_number(high)}"
        return f'Question "{question.id}": your answer is outside of {ends}, and counts as the nearer of the two.'

    def prompt(self, question: SurveyQuestion) -> str:
        """Return which numbers may be answered."""
        low, high = (f"{float(end):g}" for end in question.bounds or (0, 0))
        return f"A {'whole ' if question.whole else ''}number from {low} to {high}."

    def pretend_names(self, question: SurveyQuestion) -> tuple[Any, ...]:  # noqa: ARG002
        """Return the two numbers of a bell curve."""
        return "mean", "spread"

    def check_pretend(self, question: SurveyQuestion, stated: Mapping[str, float]) -> None:  # noqa: ARG002
        """Refuse half a bell curve."""
        if len(stated) != 2 or stated["spread"] < 0:
            raise ParameterError("A number needs a mean and a spread.", fix="write pretend: {mean: 40, spread: 15}.")

    def usual_pretend(self, question: SurveyQuestion) -> tuple[float, ...]:
        """Return a middling number, and a sixth of the range."""
        low, high = map(float, question.bounds or (0, 0))
        return (low + high) / 2, (high - low) / 6

    def draw(self, question: SurveyQuestion, count: int, source: RandomSource) -> list[Any]:
        """Return numbers of a bell curve, those outside of the bounds moved to the bounds."""
        from scipy import special

        mean, spread = self.stated_pretend(question)
        low, high = map(float, question.bounds or (0, 0))
        found = np.clip(mean + spread * special.ndtri(uniform(source, count)), low, high)
        drawn = np.clip(np.rint(found), np.ceil(low), np.floor(high)) if question.whole else found
        return list(drawn.tolist())


def _bin_label(low: Fraction, high: Fraction, *, whole: bool, is_last: bool) -> str:
    if not whole:
        return f"{text_of_number(low)} to {'' if is_last else 'under '}{text_of_number(high)}"
    last = int(high) if is_last else int(high) - 1
    return f"{int(low)} to {last}" if last > low else str(last)


def _read_number(question: SurveyQuestion, value: Any) -> Fraction:  # a number, or its text
    low, high = question.bounds or (Fraction(0), Fraction(0))
    kind = "a whole number" if question.whole else "a number"
    fix = f"answer with {kind} from {text_of_number(low)} to {text_of_number(high)}, in digits."
    try:
        found = exact.number(value, name="the answer")
    except CloisterError:
        raise OutsideDomainError(f'Question "{question.id}": the answer is not {kind}.', fix=fix) from None
    if question.whole and found.denominator != 1:
        raise OutsideDomainError(f'Question "{question.id}": the answer is not a whole number.', fix=fix)
    return found


def _as_numbers(values: Any) -> NDArray[Any]:  # one number or many
    try:
        found = np.atleast_1d(np.asarray(values))
    except (ValueError, OverflowError):
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "iuf" or not np.isfinite(found).all():
        raise OutsideDomainError("The answer is not a number.", fix="answer with a number within the bounds.")
    return found


def _check_bins(values: Any, bounds: tuple[Fraction, Fraction], *, whole: bool) -> tuple[Fraction, ...]:
    """Return the edges of bins, from a list of edges or from a number of equal bins."""
    if isinstance(values, int) and not isinstance(values, bool):
        count = check_count(values, name="bins", at_least=2)
        if count > MOST_OPTIONS:
            raise ParameterError("There are too many bins.", fix=f"use at most {MOST_OPTIONS:,}.")
        step = (bounds[1] - bounds[0]) / count
        return _check_bins([bounds[0] + step * place for place in range(count + 1)], bounds, whole=whole)
    if not isinstance(values, tuple | list):
        raise ParameterTypeError("bins are not a list of edges.", fix="write for example bins: [0, 18, 65, 120].")
    edges = tuple(exact.number(edge, name="each edge") for edge in values)
    if not edges:
        return ()
    if len(edges) < 3 or (edges[0], edges[-1]) != bounds or any(low >= high for low, high in pairwise(edges)):
        raise ParameterError(
            "The bins do not lead from the lower bound to the upper bound in at least two steps.",
            fix=f"write rising edges, the first {text_of_number(bounds[0])} and the last {text_of_number(bounds[1])}.",
        )
    if len(edges) > MOST_OPTIONS or (whole and any(edge.denominator != 1 for edge in edges)):
        raise ParameterError("There are too many bins, or edges that are not whole.", fix="use fewer, whole edges.")
    return edges
