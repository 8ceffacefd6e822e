"""What kinds share whose answers are declared options: how options are checked, read, typed and rehearsed."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.core.random import RandomSource
from cloister.data.columns import Category, clean_categories
from cloister.errors import CloisterError, MissingBoundsError, OutsideDomainError, ParameterError
from cloister.local.survey._texts import MOST_CHARACTERS, has_commands, is_written
from cloister.local.survey.kinds.base import QuestionKind, choice_protocols, uniform

if TYPE_CHECKING:
    from cloister.local.survey.questions import SurveyQuestion

__all__ = ["MOST_OPTIONS", "OptionsKind", "check_options"]

MOST_OPTIONS = 1000
_MOST_SHOWN = 30


class OptionsKind(QuestionKind):
    """A kind whose answers are declared options, of which a person gives one."""

    def clean(self, question: SurveyQuestion) -> Mapping[str, Any]:
        """Return the checked options."""
        return {"options": check_options(question.options)}

    def answers(self, question: SurveyQuestion) -> tuple[Category, ...]:
        """Return the options."""
        return question.options

    def protocols(self, question: SurveyQuestion) -> tuple[str, ...]:  # noqa: ARG002
        """Return the protocols for one value of a domain."""
        return choice_protocols()

    def read_answer(self, question: SurveyQuestion, value: Any) -> Any:  # an option
        """Return the option that an answer means: itself, or the one of that text."""
        text, options = _text_of(value), {_text_of(option): option for option in self.answers(question)}
        for spelled in (text, text.strip()):
            if spelled in options:
                return options[spelled]
        raise OutsideDomainError(
            f'Question "{question.id}": the answer is not one of those that can be given.',
            fix=self.describe_options(question),
        )

    def describe_options(self, question: SurveyQuestion, how: str = "answer with one of") -> str:
        """Return what to do instead of an answer that cannot be given."""
        options = self.answers(question)
        shown = ", ".join(str(option) for option in options[:_MOST_SHOWN])
        return f"{how}: {shown}{', ...' if len(options) > _MOST_SHOWN else ''}; or do not answer this question."

    def spell(self, question: SurveyQuestion, given: Any, *, numbered: bool = False) -> Any:  # an option, or several
        """Return the text of an option as the question spells it, or what was given where no option is meant."""
        if isinstance(given, list):
            return [self.spell(question, one, numbered=numbered) for one in given]
        if isinstance(given, Decimal):
            return float(given)
        return self._spell_text(question, given, numbered=numbered) if isinstance(given, str) else given

    def _spell_text(self, question: SurveyQuestion, text: str, *, numbered: bool) -> str:
        names = [str(option) for option in self.answers(question)]
        if text in names:
            return text
        folded = [name for name in names if name.casefold() == text.casefold()]
        if len(folded) == 1:
            return folded[0]
        is_place = numbered and self._has_words(question) and text.isascii() and text.isdecimal() and len(text) < 5
        return names[int(text) - 1] if is_place and 1 <= int(text) <= len(names) else text

    def _has_words(self, question: SurveyQuestion) -> bool:
        return all(isinstance(option, str) for option in self.answers(question))

    def prompt(self, question: SurveyQuestion) -> str:
        """Return the options, numbered where they are words."""
        has_words = self._has_words(question)
        options = enumerate(self.answers(question), start=1)
        return "\n".join(f"  {place}  {name}" if has_words else f"  {name}" for place, name in options)

    def pretend_names(self, question: SurveyQuestion) -> tuple[Any, ...]:
        """Return the options."""
        return self.answers(question)

    def check_pretend(self, question: SurveyQuestion, stated: Mapping[str, float]) -> None:  # noqa: ARG002
        """Refuse weights that are no shares of anything."""
        if min(stated.values()) < 0 or not 0 < sum(stated.values()) < float("inf"):
            raise ParameterError(
                "The shares to pretend are negative, all 0 or too large.", fix="write shares between 0 and 1."
            )

    def usual_pretend(self, question: SurveyQuestion) -> tuple[float, ...]:
        """Return shares that fall from option to option."""
        return tuple(1 / (place + 1) for place in range(len(self.answers(question))))

    def draw(self, question: SurveyQuestion, count: int, source: RandomSource) -> list[Any]:
        """Return options by their weights."""
        weights = np.asarray(self.stated_pretend(question)) / np.sum(self.stated_pretend(question))
        places = np.searchsorted(np.cumsum(weights)[:-1], uniform(source, count), side="right")
        found: list[Any] = np.array(self.answers(question), dtype=object)[places].tolist()
        return found


def check_options(values: Any) -> tuple[Category, ...]:  # a list from a file
    """Return declared options, each once, as people should read them."""
    if not values:
        raise MissingBoundsError(
            "The possible answers are not declared, and reading them from answers would not be private.",
            fix='write for example options: ["nurse", "teacher", "something else"].',
        )
    found = _categories(values)
    if not 2 <= len(found) <= MOST_OPTIONS or not all(is_written(str(option)) for option in found):
        raise ParameterError(
            f"A question has from 2 to {MOST_OPTIONS:,} options of up to {MOST_CHARACTERS:,} characters.",
            fix="list every possible answer once.",
        )
    if any(str(option) != str(option).strip() or has_commands(str(option)) for option in found):
        raise ParameterError(
            "An option is blank, begins or ends with a space, or holds characters that command a terminal.",
            fix="write options as people should read them.",
        )
    return found


def _categories(values: Any) -> tuple[Category, ...]:  # a list from a file
    try:
        return clean_categories(values)
    except CloisterError as error:
        problem, fix = (
            text.replace("categories", "options").replace("a category", "an option").replace("category", "option")
            for text in (error.problem, error.fix)
        )
        raise ParameterError(problem, fix=fix) from None


def _text_of(value: Any) -> str:  # an option, or what a form gives for one
    """Return the text of an option as forms have it; numbers that are equal have the same one."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else ""
