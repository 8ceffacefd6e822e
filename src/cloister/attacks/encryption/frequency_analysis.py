"""Frequency analysis: equal values have equal ciphertexts, so that the commonest ciphertext is the commonest value.

Deterministic encryption keeps equality, which is what makes it searchable, and with it the whole histogram of a column.
Whoever knows roughly how frequent each value is, from a census or from last year's statistics, matches the two (Naveed,
Kamara and Wright, "Inference attacks on property-preserving encrypted databases", 2015). By frequencies alone, sorting
both sides is the best match. With a second column that is not encrypted, the match is an assignment problem: every
ciphertext gets the value whose company it shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import optimize

from cloister.attacks.confidence import Floats
from cloister.attacks.encryption.columns import Auxiliary, EncryptedColumn
from cloister.attacks.encryption.result import EncryptionAttackResult, scored
from cloister.attacks.reading_columns import values_of
from cloister.core import validation
from cloister.errors import ParameterError

__all__ = ["frequency_analysis"]

_METHODS = ("rank", "assignment")
_UNSEEN = 0.5


def frequency_analysis(
    ciphertexts: Any,
    *,
    auxiliary: Any,
    truth: Any,
    method: str = "rank",
    beside: Any = None,
    auxiliary_beside: Any = None,
    confidence: object = 0.95,
) -> EncryptionAttackResult:
    """Return how much of a deterministically encrypted column is read by matching frequencies.

    Args:
        ciphertexts: the encrypted column: equal values have equal ciphertexts.
        auxiliary: what the attacker knows about the values: frequencies by value, or a sample of values.
        truth: the true value of each row; used for scoring only.
        method: "rank" matches the commonest with the commonest, and so on; "assignment" finds the likeliest match of
            all ciphertexts at once, and can use a column beside.
        beside: a column of the same rows that is not encrypted, for the assignment.
        auxiliary_beside: the same column for the sample in ``auxiliary``.
        confidence: the confidence of the interval of the success.

    >>> column = ["x7", "q2", "x7", "x7", "q2", "f9"]
    >>> plain = ["flu", "cold", "flu", "flu", "cold", "cancer"]
    >>> print(frequency_analysis(column, auxiliary={"flu": 0.6, "cold": 0.3, "cancer": 0.1}, truth=plain))
    frequency analysis: success 100% (95% interval 54.07% to 100%), baseline 50%
    """
    validation.check_choice(method, name="method", allowed=_METHODS)
    column, known = EncryptedColumn.of(ciphertexts), Auxiliary.of(auxiliary)
    _check_beside(method, beside, auxiliary_beside)
    if method == "rank":
        order, ranked = (np.argsort(-given, kind="stable") for given in (column.counts, known.shares))
        matches = dict(zip(order.tolist(), ranked.tolist(), strict=False))
    else:
        gains = _gains(column, known, auxiliary, beside, auxiliary_beside)
        rows, places = optimize.linear_sum_assignment(gains, maximize=True)
        matches = dict(zip(rows.tolist(), places.tolist(), strict=True))
    guesses = [
        known.values[matches[code]] if code in matches else known.commonest for code in range(len(column.counts))
    ]
    company = " and a column beside it in the clear" if beside is not None else ""
    return EncryptionAttackResult(
        attack="frequency analysis",
        assumption=f"has the encrypted column{company}, no key, and knows about how frequent each value is",
        mitigation=(
            "encrypt equal values differently, and search by a keyed index of few rows",
            "do not store columns of few different values deterministically encrypted",
        ),
        **scored(column, guesses, truth=truth, guess=known.commonest, confidence=confidence),
    )


def _check_beside(method: str, beside: Any, auxiliary_beside: Any) -> None:
    if (beside is None) != (auxiliary_beside is None):
        raise ParameterError(
            "A column beside is of use only with the same one for the sample.",
            fix="give both beside= and auxiliary_beside=, or neither.",
        )
    if beside is not None and method != "assignment":
        raise ParameterError("Ranks use no column beside.", fix='write method="assignment".')


def _gains(column: EncryptedColumn, known: Auxiliary, auxiliary: Any, beside: Any, auxiliary_beside: Any) -> Floats:
    """Return for each ciphertext and value how likely they belong together, as a logarithm."""
    if beside is None:
        shares = np.maximum(known.shares, known.shares[known.shares > 0].min() * _UNSEEN)
        return np.asarray(column.counts[:, None] * np.log(shares), dtype=np.float64)
    here, there = values_of(beside, name="beside"), values_of(auxiliary_beside, name="auxiliary_beside")
    sample = None if isinstance(auxiliary, Mapping) else values_of(auxiliary, name="auxiliary")
    if len(here) != len(column) or sample is None or len(sample) != len(there):
        raise ParameterError(
            "A column beside has another length than what it stands beside.",
            fix="give beside= for every ciphertext, and auxiliary= as a sample with auxiliary_beside= for every value.",
        )
    kinds = {value: place for place, value in enumerate(dict.fromkeys([*here, *there]))}
    values = {value: place for place, value in enumerate(known.values)}
    seen, expected = np.zeros((len(column.counts), len(kinds))), np.full((len(values), len(kinds)), _UNSEEN)
    for code, value in zip(column.codes.tolist(), here, strict=True):
        seen[code, kinds[value]] += 1
    for value, other in zip(sample, there, strict=True):
        expected[values[value], kinds[other]] += 1
    return np.asarray(seen @ np.log(expected / expected.sum()).T, dtype=np.float64)
