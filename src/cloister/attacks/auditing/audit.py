"""Is this release as private as it says? An audit by exact probabilities, or by many sampled outputs.

The exact way needs the probability of every output and decides the question for the neighbors that it is given:
``epsilon`` is true exactly if the hockey-stick divergence is at most delta for each pair, both ways. The statistical
way needs outputs only, and can refute a claim but never prove one. As an attack the audit is a game: the attacker sees
one output and says which of two neighbors it came from; a guess is right half of the time, and (epsilon, delta)
lets nobody be right more often than ``1/2 + (exp(epsilon) - 1 + 2 delta) / (2 exp(epsilon) + 2)`` (Kairouz, Oh and
Viswanath 2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from cloister.attacks.auditing.audit_result import AuditResult, from_probabilities, from_samples
from cloister.attacks.auditing.exact_check import check_exactly
from cloister.attacks.auditing.features import Feature, reader
from cloister.attacks.auditing.sampled import Outputs, audit_samples, neighbor_pairs, takes_size
from cloister.core import validation
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["audit_dp"]

_MODES = ("auto", "exact", "statistical")
_LOOKS = 10
_SAMPLES_AT_ONCE = 50_000
_SAMPLES_ONE_BY_ONE = 5_000


def audit_dp(
    mechanism: Any,
    neighbors: Iterable[Any],
    *,
    epsilon: object,
    delta: object = 0,
    mode: str = "auto",
    samples: int | None = None,
    confidence: float = 0.999,
    keys: Collection[str] = (),
    features: Mapping[str, Feature] | None = None,
    vectorized: bool | None = None,
) -> AuditResult:
    """Return whether a claim of (epsilon, delta)-differential privacy is refuted.

    Args:
        mechanism: what is audited. One of: a function ``mechanism(dataset)`` that returns one output; a function
            ``mechanism(dataset, size)`` that returns so many; an object with ``release(dataset)``; or, for the exact
            mode, an object with ``distribution(dataset)`` or a function that returns ``{output: probability}``.
            An output is a number, a word, None, a vector, a tuple, a dictionary, rows, a table or a result of cloister.
            Each output must be drawn afresh: a cache of answers makes the audit meaningless.
        neighbors: a pair (dataset, neighbor), or a list of pairs; each is looked at both ways.
        epsilon: the claim.
        delta: the claim.
        mode: "exact", "statistical" or "auto": exact where the mechanism gives rational probabilities or bounds.
        samples: how many outputs to draw on each neighbor; by default 5,000, or 50,000 where a function takes a size.
        confidence: the probability that a true claim is not refuted (statistical mode), over all pairs together.
        keys: columns of a grouped answer that name its groups, besides those that hold words.
        features: functions from all outputs to one value per output, by name, in place of the built-in ones.
        vectorized: whether a function takes a size; by default decided by its signature.

    >>> from fractions import Fraction
    >>> def two_coins(answer):
    ...     return {answer: Fraction(3, 4), not answer: Fraction(1, 4)}
    >>> print(audit_dp(two_coins, (True, False), epsilon=1))
    epsilon = 1 is refuted: by exact probabilities it is 1.09861
    """
    validation.check_choice(mode, name="mode", allowed=_MODES)
    pairs = neighbor_pairs(neighbors)
    law = None if mode == "statistical" else _law(mechanism, pairs, sure=mode == "exact")
    if law is not None:
        return from_probabilities(check_exactly(law, pairs, epsilon=epsilon, delta=delta))
    draw, many = _drawer(mechanism, vectorized=vectorized)
    size = (_SAMPLES_AT_ONCE if many else _SAMPLES_ONE_BY_ONE) if samples is None else samples
    report = audit_samples(
        draw,
        pairs,
        epsilon=epsilon,
        delta=delta,
        samples=size,
        confidence=confidence,
        read=reader(features, keys=keys),
    )
    return from_samples(report)


def _law(mechanism: Any, pairs: list[tuple[Any, Any]], *, sure: bool) -> Callable[[Any], Any] | None:
    """Return the function that gives probabilities, None if the mechanism gives outputs; a doubt is an error."""
    given = getattr(mechanism, "distribution", None)
    if sure or given is not None:
        return _checked(given or mechanism)
    if not callable(mechanism) or hasattr(mechanism, "release") or takes_size(mechanism):
        return None
    laws = [mechanism(dataset) for dataset in pairs[0]]
    if not all(map(_adds_up_to_one, laws)):
        return None
    if any(isinstance(value, Fraction | tuple) for law in laws for value in law.values()):
        return _checked(mechanism)
    if any(mechanism(dataset) != law for _ in range(_LOOKS) for dataset, law in zip(pairs[0], laws, strict=True)):
        return None
    raise ParameterError(
        "The mechanism returns numbers that add up to 1: probabilities of outputs, or an output of shares?",
        fix='say mode="exact" if they are probabilities, mode="statistical" if they are what is released.',
    )


def _checked(law: Any) -> Callable[[Any], Any]:
    def checked(dataset: Any) -> Any:
        found = law(dataset) if callable(law) else None
        if not isinstance(found, Mapping):
            raise ParameterTypeError(
                "An exact audit needs the probability of every output.",
                fix='return {output: probability, ...} for a dataset, or use mode="statistical".',
            )
        return found

    return checked


def _adds_up_to_one(output: Any) -> bool:
    if not isinstance(output, Mapping) or not output:
        return False
    ends = [value if isinstance(value, tuple) else (value, value) for value in output.values()]
    if any(len(pair) != 2 or not all(isinstance(end, int | float | Fraction) for end in pair) for pair in ends):
        return False
    low, high = (math.fsum(float(pair[side]) for pair in ends) for side in (0, 1))
    return low <= 1 + 1e-9 and high >= 1 - 1e-9 and all(pair[0] >= 0 for pair in ends)


def _drawer(mechanism: Any, *, vectorized: bool | None) -> tuple[Callable[[Any, int], Outputs], bool]:
    """Return a function that draws so many outputs, and whether it draws them all at once."""
    one = getattr(mechanism, "release", None) or mechanism
    if not callable(one):
        raise ParameterTypeError(
            "The mechanism is neither a function nor an object with release().",
            fix="pass a function of a dataset that returns one output.",
        )
    many = (one is mechanism and takes_size(one)) if vectorized is None else vectorized

    def draw(dataset: Any, size: int) -> Outputs:
        outputs = one(dataset, size) if many else [one(dataset) for _ in range(size)]
        if not hasattr(outputs, "__len__") or len(outputs) != size:
            raise ParameterError(
                f"The mechanism did not return {size} outputs.",
                fix="return a list or an array with one item per output.",
            )
        return outputs

    return draw, many
