"""Sorting and cumulative attacks: ciphertexts in the order of their values can be read off by their ranks.

Order-preserving encryption lets a server sort and compare. If every possible value occurs, the smallest ciphertext is
the smallest value, the next the next, and no key is needed. If some are missing, the share of rows up to a ciphertext
is compared with what is known about such columns, together with its own share (Naveed, Kamara and Wright, 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize

from cloister.attacks.encryption.columns import Auxiliary, EncryptedColumn
from cloister.attacks.encryption.result import EncryptionAttackResult, scored
from cloister.attacks.reading_columns import values_of

__all__ = ["cumulative_attack", "sorting_attack"]

_MITIGATION = (
    "do not store order-preserving ciphertexts where the server may be read",
    "encrypt, and sort at the client; or answer ranges with noise",
)


def sorting_attack(
    ciphertexts: Any, *, domain: Sequence[Any], truth: Any, confidence: object = 0.95
) -> EncryptionAttackResult:
    """Return how much of an order-preserving encrypted column is read by ranks.

    Args:
        ciphertexts: the encrypted column: ciphertexts in the order of their values.
        domain: the values that are possible, which are public, in any order. If fewer occur, ranks are spread evenly.
        truth: the true value of each row; used for scoring only.
        confidence: the confidence of the interval of the success.

    >>> print(sorting_attack([907, 12, 55, 907], domain=[1, 2, 3], truth=[3, 1, 2, 3]))
    sorting attack: success 100% (95% interval 39.76% to 100%), baseline 50%
    """
    column = EncryptedColumn.of(ciphertexts, ordered=True)
    values = Auxiliary.of(dict.fromkeys(values_of(domain, name="domain"), 1)).in_order().values
    ranks = np.linspace(0, len(values) - 1, len(column.counts)).round().astype(int)
    return EncryptionAttackResult(
        attack="sorting attack",
        assumption="has the encrypted column, no key, and knows which values are possible",
        mitigation=_MITIGATION,
        **scored(column, [values[rank] for rank in ranks], truth=truth, confidence=confidence),
    )


def cumulative_attack(
    ciphertexts: Any, *, auxiliary: Any, truth: Any, confidence: object = 0.95
) -> EncryptionAttackResult:
    """Return how much of an order-preserving encrypted column is read by frequencies and ranks together.

    Args:
        ciphertexts: the encrypted column: ciphertexts in the order of their values, equal ones for equal values.
        auxiliary: what the attacker knows about the values: frequencies by value, or a sample of values.
        truth: the true value of each row; used for scoring only.
        confidence: the confidence of the interval of the success.

    >>> print(cumulative_attack([907, 12, 12, 907], auxiliary={1: 0.5, 2: 0.1, 3: 0.4}, truth=[3, 1, 1, 3]))
    cumulative attack: success 100% (95% interval 39.76% to 100%), baseline 50%
    """
    column, known = EncryptedColumn.of(ciphertexts, ordered=True), Auxiliary.of(auxiliary).in_order()
    shares = column.counts / column.counts.sum()
    apart = np.abs(shares[:, None] - known.shares) + np.abs(np.cumsum(shares)[:, None] - np.cumsum(known.shares))
    rows, places = optimize.linear_sum_assignment(apart)
    matches = dict(zip(rows.tolist(), places.tolist(), strict=True))
    guesses = [
        known.values[matches[code]] if code in matches else known.commonest for code in range(len(column.counts))
    ]
    return EncryptionAttackResult(
        attack="cumulative attack",
        assumption="has the encrypted column, no key, and knows about how the values are distributed",
        mitigation=_MITIGATION,
        **scored(column, guesses, truth=truth, guess=known.commonest, confidence=confidence),
    )
