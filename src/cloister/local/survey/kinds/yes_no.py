"""Yes or no: two answers, reported by randomized response, perhaps with the two coins of a classical design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.protocol import Protocol
from cloister.local.survey.kinds._options import OptionsKind, check_options
from cloister.local.survey.kinds.base import register
from cloister.local.survey.sample_size import AnswerVariance

if TYPE_CHECKING:
    from cloister.local.survey.questions import SurveyQuestion

__all__ = ["YesNo"]


@register
class YesNo(OptionsKind):
    """Two answers."""

    name, words, facts, rank = "yes_no", "yes or no", ("options", "coins"), 1

    @property
    def form_facts(self) -> tuple[str, ...]:
        """Return nothing: the usual two answers are all that a form offers."""
        return ()

    def clean(self, question: SurveyQuestion) -> Mapping[str, Any]:
        """Return two options, and the coins if there are any."""
        options = check_options(question.options or ("no", "yes"))
        if len(options) != 2:
            raise ParameterError(
                "A yes_no question has two options.", fix='write options: ["no", "yes"], or leave it out.'
            )
        return {"options": options, "coins": None if question.coins is None else _check_coins(question.coins)}

    def protocols(self, question: SurveyQuestion) -> tuple[str, ...]:  # noqa: ARG002
        """Return randomized response."""
        return (RandomizedResponse.name,)

    def make_protocol(self, question: SurveyQuestion, name: str, epsilon: Fraction) -> Protocol:
        """Return randomized response; with coins these are all there is to choose."""
        if question.coins is None:
            return super().make_protocol(question, name, epsilon)
        truth, second = question.coins
        return RandomizedResponse(domain=question.options, truth=truth, second=second)

    def variance(self, question: SurveyQuestion, protocol: Protocol) -> AnswerVariance:
        """Return the largest variance: neither of two answers is one that hardly anybody gives."""
        found = super().variance(question, protocol)
        return replace(found, usual=found.worst)


def _check_coins(values: Any) -> tuple[Fraction, Fraction]:  # a mapping or a pair
    if isinstance(values, Mapping) and set(values) == {"truth", "second"}:
        values = (values["truth"], values["second"])
    if not isinstance(values, tuple | list) or len(values) != 2:
        raise ParameterTypeError("coins are not two probabilities.", fix="write coins: {truth: 0.5, second: 0.5}.")
    truth, second = (exact.number(value, name="each coin") for value in values)
    RandomizedResponse(truth=truth, second=second)
    return truth, second
