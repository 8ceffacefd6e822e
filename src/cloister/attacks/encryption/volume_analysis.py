"""Volumes: how many rows an encrypted search returns may tell what was searched for.

Encryption hides the question and the rows, not how many rows go over the wire. Whoever knows about how many rows each
value has, from statistics or an older copy, takes the value whose number is nearest (the count attack of Cash, Grubbs,
Perry and Ristenpart, "Leakage-abuse attacks against searchable encryption", 2015). Padding all answers to a few sizes,
or noise that adds rows, takes this away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cloister.attacks.encryption.columns import EncryptedColumn
from cloister.attacks.encryption.result import EncryptionAttackResult, scored
from cloister.attacks.reading_columns import values_of
from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["volume_attack"]


def volume_attack(volumes: Any, *, auxiliary: Any, truth: Any, confidence: object = 0.95) -> EncryptionAttackResult:
    """Return how many encrypted searches are recognized by the number of rows that they return.

    Args:
        volumes: for each search, how many rows came back.
        auxiliary: what the attacker knows: about how many rows each value has.
        truth: the value that each search was for; used for scoring only.
        confidence: the confidence of the interval of the success.

    Returns:
        The outcome, whose different ciphertexts are different volumes. Of values with equally near numbers the first is
        taken, and the baseline is the best single guess in hindsight.

    >>> print(volume_attack([98, 11, 11], auxiliary={"flu": 100, "cancer": 10}, truth=["flu", "cancer", "cancer"]))
    volume attack: success 100% (95% interval 29.24% to 100%), baseline 66.67%
    """
    if not isinstance(auxiliary, Mapping) or not auxiliary:
        raise ParameterTypeError(
            "The auxiliary numbers are not given by value.", fix='write for example auxiliary={"flu": 100}.'
        )
    seen = [float(exact.number(volume, name="each volume")) for volume in values_of(volumes, name="volumes")]
    sizes = np.array([float(exact.number(size, name="each number")) for size in auxiliary.values()])
    if min(seen) < 0 or sizes.min() < 0:
        raise ParameterError("A number of rows is negative.", fix="give numbers of rows from 0.")
    column = EncryptedColumn.of(seen)
    values = list(auxiliary)
    nearest = np.abs(np.array(column.ciphertexts)[:, None] - sizes).argmin(axis=1)
    return EncryptionAttackResult(
        attack="volume attack",
        assumption="sees how many rows each encrypted search returns, and knows about how many rows each value has",
        mitigation=("pad answers to a few sizes", "add rows by a noisy number that hides one person"),
        **scored(column, [values[place] for place in nearest.tolist()], truth=truth, confidence=confidence),
    )
