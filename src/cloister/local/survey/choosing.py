"""Which protocol a question gets at which epsilon: a public rule, the same for every respondent.

| question | protocol |
|---|---|
| yes_no | randomized response |
| single_choice, number with bins | direct encoding for few answers, optimized unary encoding for many |
| multiple_choice | one coin for each option, with ``epsilon / (2 most)`` each |
| number | the hybrid of the piecewise mechanism and Duchi's |
| rating | as for a single choice; ``protocol: pram`` for a matrix in which lies stay near the truth |

The matrix for ratings makes the mean of ten steps about a sixth more precise at epsilon 1, and the shares about 1.7
times less precise, so that it is not the default.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from cloister.errors import ParameterError, a_or_an, did_you_mean
from cloister.local.frequency.pram import Pram
from cloister.local.frequency.randomized_response import RandomizedResponse
from cloister.local.frequency.recommending import recommend
from cloister.local.frequency.unary_set import UnarySet
from cloister.local.numeric.duchi import Duchi
from cloister.local.numeric.hybrid import Hybrid
from cloister.local.numeric.piecewise import Piecewise
from cloister.local.protocol import Protocol, protocols
from cloister.local.survey.questions import Question, QuestionKind

__all__ = ["protocol_for"]

_FREQUENCY = (
    "direct_encoding",
    "optimized_unary_encoding",
    "symmetric_unary_encoding",
    "optimized_local_hashing",
    "hadamard_response",
)
_ALLOWED: dict[QuestionKind, tuple[str, ...]] = {
    QuestionKind.YES_NO: ("randomized_response",),
    QuestionKind.SINGLE_CHOICE: _FREQUENCY,
    QuestionKind.MULTIPLE_CHOICE: ("unary_set",),
    QuestionKind.RATING: (*_FREQUENCY, "pram"),
}
_MEANS = (Hybrid.name, Piecewise.name, Duchi.name)


@lru_cache(maxsize=4096)
def protocol_for(question: Question, epsilon: Fraction) -> Protocol:
    """Return the protocol of a question at an epsilon.

    Raises:
        ParameterError: if the question names a protocol that does not fit it.
    """
    name = _name(question, epsilon)
    given: dict[str, Any] = {"epsilon": epsilon}
    if question.is_mean:
        given["bounds"] = question.bounds
    else:
        given["domain"] = question.answers
    if question.coins is not None:
        return RandomizedResponse(domain=question.options, truth=question.coins[0], second=question.coins[1])
    if question.most is not None:
        return UnarySet(**given, most=question.most)
    if name == Pram.name:
        return Pram(**given, kind="ordinal")
    return protocols.get(name)(**given)


def _name(question: Question, epsilon: Fraction) -> str:
    allowed = _MEANS if question.is_mean else _ALLOWED.get(question.kind, _FREQUENCY)
    if question.protocol not in ("auto", *allowed):
        raise ParameterError(
            f'Question "{question.id}": the protocol "{question.protocol[:40]}" is not for '
            f"{a_or_an(question.kind)} question.{did_you_mean(question.protocol, allowed)}",
            fix=f"leave protocol out, or use {', '.join(allowed)}.",
        )
    if question.protocol != "auto":
        return question.protocol
    if len(allowed) == 1 or question.is_mean:
        return allowed[0]
    return recommend(len(question.answers), epsilon).protocol.name
