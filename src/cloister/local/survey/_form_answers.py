"""Answers as people and forms give them, read on the respondent's own device.

A form gives text: "7.5" for a number, "4" for the rating 4. What cannot be meant is refused in the respondent's words,
with the answers that can be given, and without repeating what was. Nothing here is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.core import exact
from cloister.core.exact import text_of_number
from cloister.data.columns import Category
from cloister.errors import CloisterError, OutsideDomainError
from cloister.local.survey.questions import SurveyQuestion

__all__ = ["note_of", "read_answer"]

_MOST_SHOWN = 30


def read_answer(question: SurveyQuestion, value: Any) -> Any:  # an answer as the question's protocol takes it
    """Return an answer as the protocol of its question takes it.

    Args:
        question: what was asked.
        value: an option, a number, or a list of picks; or the text of one.

    Raises:
        OutsideDomainError: if it cannot be an answer to the question; the answer is not repeated.

    >>> stars = SurveyQuestion(id="stars", kind="rating", text="How good?", options=(1, 2, 3))
    >>> read_answer(stars, "2")
    2
    """
    if question.is_number:
        low, high = question.bounds or (Fraction(0), Fraction(0))
        # Clamped as a rational: far outside of the bounds there may be no float at all.
        return question.encode_answers(float(min(max(_number(question, value), low), high)))
    options = _by_text(question)
    if question.most is None:
        return _option(question, options, value)
    return _picks(question, options, value)


def note_of(question: SurveyQuestion, value: Any) -> str | None:  # an answer
    """Return what a respondent should know about how an answer counts; None where it counts as it is."""
    if question.bounds is None:
        return None
    low, high = question.bounds
    if low <= _number(question, value) <= high:
        return None
    ends = f"{_format_number(low)} to {_format_number(high)}"
    return f"{_name(question)}: your answer is outside of {ends}, and counts as the nearer of the two."


def _number(question: SurveyQuestion, value: Any) -> Fraction:  # a number, or its text
    low, high = question.bounds or (Fraction(0), Fraction(0))
    kind = "a whole number" if question.whole else "a number"
    fix = f"answer with {kind} from {_format_number(low)} to {_format_number(high)}, in digits."
    try:
        found = exact.number(value, name="the answer")
    except CloisterError:
        raise OutsideDomainError(f"{_name(question)}: the answer is not {kind}.", fix=fix) from None
    if question.whole and found.denominator != 1:
        raise OutsideDomainError(f"{_name(question)}: the answer is not a whole number.", fix=fix)
    return found


def _by_text(question: SurveyQuestion) -> dict[str, Category]:
    return {_text(option): option for option in question.options}


def _option(
    question: SurveyQuestion, options: Mapping[str, Category], value: Any
) -> Category:  # an option, or its text
    text = _text(value)
    for spelled in (text, text.strip()):
        if spelled in options:
            return options[spelled]
    raise OutsideDomainError(
        f"{_name(question)}: the answer is not one of those that can be given.", fix=_describe_options(question)
    )


def _picks(question: SurveyQuestion, options: Mapping[str, Category], values: Any) -> list[Category]:  # picks, or one
    many = values if isinstance(values, Collection) and not isinstance(values, str | bytes | Mapping) else [values]
    found = [_option(question, options, value) for value in many]
    if len(found) > (question.most or 0) or len(set(found)) < len(found):
        raise OutsideDomainError(
            f"{_name(question)}: too many picks, or one of them twice.", fix=_describe_options(question)
        )
    return found


def _text(value: Any) -> str:  # an option, or what a form gives for one
    """Return the text of an option as forms have it; numbers that are equal have the same one."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else ""


def _describe_options(question: SurveyQuestion) -> str:
    shown = ", ".join(str(option) for option in question.options[:_MOST_SHOWN])
    more = ", ..." if len(question.options) > _MOST_SHOWN else ""
    how = "answer with one of" if question.most is None else f"pick at most {question.most}, each once, of"
    return f"{how}: {shown}{more}; or do not answer this question."


def _name(question: SurveyQuestion) -> str:
    return f'Question "{question.id}"'


def _format_number(value: Fraction) -> str:
    return text_of_number(value)
