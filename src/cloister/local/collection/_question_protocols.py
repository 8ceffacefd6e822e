"""What may be asked: a domain, something that makes a protocol, or a protocol; and the records of collections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from cloister.core import exact
from cloister.errors import ForeignReportError, ParameterError, ParameterTypeError
from cloister.local.domain import Domain
from cloister.local.frequency.randomized_response import DirectEncoding
from cloister.local.frequency.support import FrequencyProtocol, SupportProtocol
from cloister.local.protocol import Protocol
from cloister.local.recommendation import recommend

__all__ = [
    "check_frequency_protocol",
    "check_questions",
    "check_state",
    "one_value",
    "protocol_by_size",
    "protocol_for",
    "support_protocol_by_size",
]


def protocol_by_size(*, domain: Domain, epsilon: Fraction) -> Protocol:
    """Return the recommended protocol for a domain."""
    return recommend(len(domain), epsilon).protocol(domain=domain, epsilon=epsilon)


def support_protocol_by_size(*, domain: Domain, epsilon: Fraction) -> Protocol:
    """Return the recommended protocol for a domain whose reports support values."""
    kind = recommend(len(domain), epsilon).protocol
    return (kind if issubclass(kind, SupportProtocol) else DirectEncoding)(domain=domain, epsilon=epsilon)


def protocol_for(
    question: Any,  # a domain in any form, a protocol, or what makes one
    *,
    epsilon: Fraction,
    kind: Callable[..., Protocol] = protocol_by_size,
) -> Protocol:
    """Return the protocol that asks a question at an epsilon.

    Args:
        question: a public domain; or what makes a protocol when it is called with ``epsilon=``, such as
            ``functools.partial(DirectEncoding, domain=["a", "b"])``; or a protocol of this very epsilon.
        epsilon: what one report costs.
        kind: the class of protocol for a domain; by default the recommended one for its size.
    """
    if isinstance(question, Protocol):
        return _check_protocol(question, epsilon)
    if callable(question):
        return _check_protocol(question(epsilon=epsilon), epsilon)
    return _check_protocol(kind(domain=Domain.of(question), epsilon=epsilon), epsilon)


def check_questions(questions: object) -> Mapping[str, Any]:
    """Return named questions.

    Raises:
        ParameterTypeError: if they are not a mapping from names.
    """
    named = isinstance(questions, Mapping) and questions and all(isinstance(name, str) and name for name in questions)
    if not isinstance(questions, Mapping) or not named:
        raise ParameterTypeError(
            "The questions are not named.", fix='give a mapping such as {"sex": ["f", "m"], "region": 12}.'
        )
    return questions


def one_value(protocol: Protocol, value: object) -> NDArray[Any]:
    """Return the code of one person's value, or raise if it is outside of the domain or of many people."""
    codes, is_single = protocol.encode(value)
    if not is_single:
        raise ParameterTypeError("A device reports one value at a time.", fix="give the value of one person.")
    return codes


def check_state(state: object, *, schema: str, fingerprint: str) -> Mapping[str, Any]:
    """Return the stored state of a device, or raise.

    Raises:
        ParameterTypeError: if it is no such state.
        ForeignReportError: if it is the state of another question.
    """
    if not isinstance(state, Mapping) or state.get("schema") != schema:
        raise ParameterTypeError(
            "This is not the state of such a device.", fix="give what to_dict of the device wrote."
        )
    if state.get("question") != fingerprint:
        raise ForeignReportError(
            "The state is that of another question.", fix="open it with the very question that the device enrolled for."
        )
    return state


def check_frequency_protocol(protocol: Protocol) -> FrequencyProtocol:
    """Return a protocol for values of a domain, or raise."""
    if not isinstance(protocol, FrequencyProtocol):
        raise ParameterTypeError("This question has no domain of values.", fix="ask for values of a public domain.")
    return protocol


def _check_protocol(protocol: object, epsilon: Fraction) -> Protocol:
    if not isinstance(protocol, Protocol):
        raise ParameterTypeError(
            "A question made no protocol.", fix="give a domain, or what returns a protocol when called with epsilon=."
        )
    # A protocol made elsewhere may cost more than this collection charges people for.
    if protocol.epsilon != epsilon:
        raise ParameterError(
            f"A protocol has epsilon {float(protocol.epsilon):g} where this collection needs {float(epsilon):g}.",
            fix=f'give its domain instead, or make it with epsilon="{exact.text(epsilon)}".',
        )
    return protocol
