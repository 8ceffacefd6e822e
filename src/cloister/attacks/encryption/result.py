"""What an attack on an encrypted column reports: how many rows, and how many different values, were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.attacks.confidence import binomial_interval
from cloister.attacks.encryption.columns import EncryptedColumn
from cloister.attacks.reading_columns import values_of
from cloister.attacks.result import AttackResult, percent
from cloister.core import validation
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.report import Section

__all__ = ["EncryptionAttackResult", "scored"]

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionAttackResult(AttackResult):
    """The outcome of an attack on an encrypted column; the trials are its rows.

    Attributes:
        distinct: how many different ciphertexts the column has.
        values_read: the share of these of which the attacker has the right value.
    """

    distinct: int
    values_read: float

    def _remark(self) -> str:
        if not self.succeeded:
            return f" The column has {self.distinct:,} different ciphertexts."
        return f" Of {self.distinct:,} different ciphertexts, {percent(self.values_read)} were read, without a key."

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        read = f"{percent(self.values_read)} of {self.distinct:,}"
        return (*AttackResult.summary(self), ("different ciphertexts read", read))

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack."""
        from cloister.attacks.own_facts import section_with_own_facts

        return (section_with_own_facts(self, level=level),)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never what was read."""
        return {**AttackResult.to_dict(self), "distinct": self.distinct, "values_read": self.values_read}


def scored(
    column: EncryptedColumn, guesses: Sequence[Any], *, truth: Any, guess: Any = None, confidence: object
) -> dict[str, Any]:
    """Return the fields that compare the guess for each ciphertext with the truth of each row.

    The baseline is to guess one value for all rows: the given one, or without it the best in hindsight.
    """
    level = float(validation.check_confidence(confidence))
    true = values_of(truth, name="truth")
    if len(true) != len(column):
        raise ParameterError(
            f"There are {len(column):,} ciphertexts and {len(true):,} true values.",
            fix="give one true value for every row.",
        )
    right = np.array([guesses[code] == value for code, value in zip(column.codes.tolist(), true, strict=True)])
    hits = int(right.sum())
    rare = 1 / column.counts[column.codes]
    order = [int(place) for place in np.argsort(-rare * right, kind="stable")[:_SHOWN] if right[place]]
    return {
        "success": hits / len(true),
        "baseline": (Counter(true).most_common(1)[0][1] if guess is None else true.count(guess)) / len(true),
        "interval": binomial_interval(hits, len(true), confidence=level),
        "confidence": level,
        "trials": len(true),
        "queries": len(true),
        "worst": tuple((place, float(rare[place])) for place in order),
        "distinct": len(column.counts),
        "values_read": float(np.bincount(column.codes, weights=right).astype(bool).mean()),
    }
