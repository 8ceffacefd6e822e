"""Made-up answers for rehearsals: the distribution that a survey file states, and draws from it.

Nothing here is private and nothing needs to be: nobody gave these answers. They are only as good as the guess that was
stated, and serve to see beforehand how near the estimates come to a truth that is known for once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.random import RandomSource, integers_below
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.local.survey.questions import SurveyQuestion

__all__ = ["distribution_of", "draw_answers", "read_pretend", "uniform"]

Floats: TypeAlias = NDArray[np.float64]

_STEPS = 2**53


def read_pretend(question: SurveyQuestion, values: Any) -> tuple[float, ...]:  # from a file
    """Return what to pretend: a weight for each answer, or the mean and the spread of a number.

    For picks of several options, numbers of at most 1 are the shares of people who pick each option.

    Raises:
        ParameterError: if it does not fit the question.
    """
    if not values:
        return ()
    if isinstance(values, tuple):
        return values
    names: tuple[Any, ...] = ("mean", "spread") if question.bounds is not None else question.options
    if not isinstance(values, Mapping) or not {str(key) for key in values} <= {str(name) for name in names}:
        example = "{mean: 40, spread: 15}" if question.bounds is not None else "{first option: 0.3, second option: 0.7}"
        raise ParameterError("pretend does not fit the question.", fix=f"write for example pretend: {example}.")
    by_text = {str(key): float(exact.number(value, name="pretend")) for key, value in values.items()}
    found = tuple(by_text.get(str(name), 0.0) for name in names)
    if not question.is_number and (min(found) < 0 or not 0 < sum(found) < float("inf")):
        raise ParameterError(
            "The shares to pretend are negative, all 0 or too large.", fix="write shares between 0 and 1."
        )
    if question.most is not None and _are_shares(found) and sum(found) > question.most + 1e-9:
        raise ParameterError(
            f"By the shares to pretend, people pick more than {question.most} options on average.",
            fix="write smaller shares or a larger most; or weights, with at least one of them above 1.",
        )
    if question.is_number and (len(by_text) != 2 or found[1] < 0):
        raise ParameterError("A number needs a mean and a spread.", fix="write pretend: {mean: 40, spread: 15}.")
    return found


def distribution_of(question: SurveyQuestion) -> tuple[float, ...]:
    """Return what is pretended: as stated, or else shares that fall from option to option, or a middling number."""
    if question.pretend:
        return question.pretend
    if question.bounds is not None:
        low, high = map(float, question.bounds)
        return (low + high) / 2, (high - low) / 6
    return tuple(1 / (place + 1) for place in range(len(question.options)))


def draw_answers(
    question: SurveyQuestion, count: int, source: RandomSource
) -> Any:  # as the question's protocol takes them
    """Return made-up answers of so many people."""
    stated = distribution_of(question)
    if question.bounds is not None:
        return _numbers(question, stated, uniform(source, count))
    weights = np.asarray(stated) / np.sum(stated)
    if question.most is not None and question.pretend and _are_shares(stated):
        return _pick_by_shares(question, np.asarray(stated), count, source)
    if question.most is None:
        places = np.searchsorted(np.cumsum(weights)[:-1], uniform(source, count), side="right")
        return np.array(question.options, dtype=object)[places].tolist()
    return _picks(question, weights, count, source)


def _numbers(question: SurveyQuestion, stated: tuple[float, ...], uniform: Floats) -> list[float]:
    """Return numbers of a bell curve, those outside of the bounds moved to the bounds."""
    from scipy import special

    low, high = map(float, question.bounds or (0, 0))
    found = np.clip(stated[0] + stated[1] * special.ndtri(uniform), low, high)
    return (np.clip(np.rint(found), np.ceil(low), np.floor(high)) if question.whole else found).tolist()  # type: ignore[no-any-return]  # a list of floats


def _picks(question: SurveyQuestion, weights: Floats, count: int, source: RandomSource) -> list[list[Any]]:
    """Return for each person from 0 to most different picks, the likelier ones of larger weights."""
    size, most = len(weights), question.most or 1
    with np.errstate(divide="ignore"):
        # Logarithms of weights plus Gumbel noise, ranked, draw without replacement in proportion to the weights.
        keys = np.log(weights) - np.log(-np.log(uniform(source, count * size))).reshape(count, size)
    ranked = np.argsort(-keys, axis=1)[:, :most]
    # An option of weight zero is never picked, so that nobody can want more than the others.
    wanted = np.minimum(integers_below(source, most + 1, count), int((weights > 0).sum()))
    named = np.array(question.options, dtype=object)[ranked].tolist()
    return [picks[:number] for picks, number in zip(named, wanted.tolist(), strict=True)]


def _pick_by_shares(question: SurveyQuestion, shares: Floats, count: int, source: RandomSource) -> list[list[Any]]:
    """Return picks such that each option is picked by its share of people.

    The shares of a person, in random order, are laid end to end, and whatever covers one of the points u, u + 1, ... is
    picked (systematic sampling, Madow 1949): never more than the sum of all shares, rounded up.
    """
    size = len(shares)
    order = np.argsort(uniform(source, count * size).reshape(count, size), axis=1)
    ends = np.cumsum(shares[order], axis=1) - uniform(source, count)[:, np.newaxis]
    # A rounded sum may pass a whole number by a hair, and nobody may pick more than is allowed.
    passed = np.ceil(np.minimum(ends, question.most or 1))
    picked = np.diff(passed, axis=1, prepend=0.0) > 0
    options = np.array(question.options, dtype=object)[order]
    return [row[chosen].tolist() for row, chosen in zip(options, picked, strict=True)]


def _are_shares(stated: Sequence[float]) -> bool:
    """Return whether what is stated of picks are shares of people; larger numbers are weights."""
    return max(stated) <= 1


def uniform(source: RandomSource, count: int) -> Floats:
    """Return numbers strictly between 0 and 1."""
    # Half a step keeps 0 and 1 out, where logarithms and quantiles are infinite.
    return np.asarray((integers_below(source, _STEPS, count) + 0.5) / _STEPS)
