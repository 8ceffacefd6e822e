"""Several choices: up to so many of the declared options, each reported through a coin of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.core.random import RandomSource, integers_below
from cloister.core.validation import check_count
from cloister.errors import OutsideDomainError, ParameterError
from cloister.local.frequency.unary import UnarySet
from cloister.local.protocol import Protocol
from cloister.local.survey.kinds._options import OptionsKind
from cloister.local.survey.kinds.base import Floats, register, uniform

if TYPE_CHECKING:
    from cloister.local.survey.questions import SurveyQuestion

__all__ = ["MultipleChoice"]


@register
class MultipleChoice(OptionsKind):
    """Up to ``most`` of the declared options."""

    name, words, facts, rank = "multiple_choice", "multiple choice", ("options", "most"), 3
    usual = {"most": 2}  # noqa: RUF012

    def clean(self, question: SurveyQuestion) -> Mapping[str, Any]:
        """Return the options, and how many of them a person may pick."""
        found = super().clean(question)
        if question.most is None:
            raise ParameterError(
                "Nothing says how many options a person may pick, and protection has to be shared among them.",
                fix="write for example most: 3.",
            )
        size = len(found["options"])
        if check_count(question.most, name="most", at_least=1) > size:
            raise ParameterError("most is larger than the number of options.", fix=f"write most: {size} or less.")
        return found

    def protocols(self, question: SurveyQuestion) -> tuple[str, ...]:  # noqa: ARG002
        """Return the protocol that shares the protection among the picks."""
        return (UnarySet.name,)

    def make_protocol(self, question: SurveyQuestion, name: str, epsilon: Fraction) -> Protocol:  # noqa: ARG002
        """Return the protocol for so many picks."""
        return UnarySet(domain=question.options, epsilon=epsilon, most=question.most or 1)

    def read_answer(self, question: SurveyQuestion, value: Any) -> Any:  # options
        """Return the options that were picked; one by itself is a list of one."""
        many = value if isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping) else [value]
        found = [super(MultipleChoice, self).read_answer(question, one) for one in many]
        if len(found) > (question.most or 0) or len(set(found)) < len(found):
            raise OutsideDomainError(
                f'Question "{question.id}": too many picks, or one of them twice.', fix=self.describe_options(question)
            )
        return found

    def describe_options(self, question: SurveyQuestion, how: str = "") -> str:
        """Return what to do instead of picks that cannot be given."""
        return super().describe_options(question, how or f"pick at most {question.most}, each once, of")

    def read_typed(self, question: SurveyQuestion, text: str) -> Any:  # options
        """Return picks that were typed with commas between them; "none" is none of them, unless an option says so."""
        names = {str(option).casefold() for option in question.options}
        parts = [] if text.casefold() == "none" and "none" not in names else text.split(",")
        return self.spell(question, [part for part in map(str.strip, parts) if part], numbered=True)

    def prompt(self, question: SurveyQuestion) -> str:
        """Return the options, and how many of them may be named."""
        several = f'Up to {question.most} of them, separated by commas, or "none".'
        return f"{super().prompt(question)}\n{several}"

    def check_pretend(self, question: SurveyQuestion, stated: Mapping[str, float]) -> None:
        """Refuse shares by which people would pick more than they may."""
        super().check_pretend(question, stated)
        if _are_shares(stated.values()) and sum(stated.values()) > (question.most or 0) + 1e-9:
            raise ParameterError(
                f"By the shares to pretend, people pick more than {question.most} options on average.",
                fix="write smaller shares or a larger most; or weights, with at least one of them above 1.",
            )

    def draw(self, question: SurveyQuestion, count: int, source: RandomSource) -> list[Any]:
        """Return picks: numbers of at most 1 are the shares of people who pick each option, larger ones weights."""
        stated = np.asarray(self.stated_pretend(question))
        if question.pretend and _are_shares(question.pretend):
            return _pick_by_shares(question, stated, count, source)
        return _pick_by_weights(question, stated / stated.sum(), count, source)

    def single_answers(self, question: SurveyQuestion, answers: list[Any]) -> list[Any]:  # noqa: ARG002
        """Return the picks of all people."""
        return [pick for picks in answers for pick in picks]


def _pick_by_weights(question: SurveyQuestion, weights: Floats, count: int, source: RandomSource) -> list[Any]:
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


def _pick_by_shares(question: SurveyQuestion, shares: Floats, count: int, source: RandomSource) -> list[Any]:
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


def _are_shares(stated: Collection[float] | Sequence[float]) -> bool:
    """Return whether what is stated of picks are shares of people; larger numbers are weights."""
    return max(stated) <= 1
