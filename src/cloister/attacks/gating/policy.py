"""When a release may be published: the limits that its custodian sets beforehand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cloister.core.validation import check_confidence, check_positive, check_probability
from cloister.errors import ParameterError

__all__ = ["GatePolicy"]

_EXCUSED = 1.0
"""The largest epsilon that excuses what is seen, whatever is promised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """What attackers may achieve at most, and how long they may try.

    The limits are conventions of this library, not facts about what is safe: 1 in 5 is usual between institutions, and
    5 points beyond guessing are hard to tell from nothing in a table of a few hundred people.

    Attributes:
        max_match: the largest probability with which anybody may be matched with one released row.
        max_certain: the largest share of people whose sensitive value may follow from their class with certainty.
        max_belief: how sure of somebody's sensitive value an attacker may become by their class; more is allowed only
            where the whole table already says as much.
        max_excess: by how much an attack may be right more often than guessing.
        max_residual: how much of what an attack on a synthetic table fails to find about others it may find about the
            people in the data.
        max_epsilon: the largest epsilon that counts as a promise.
        max_delta: the largest delta that counts as a promise.
        confidence: how sure the measured limits are.
        time_limit: how many seconds may pass until the last attack is begun.

    >>> GatePolicy(max_match=0.1).max_excess
    0.05
    """

    max_match: float = 0.2
    max_certain: float = 0.0
    max_belief: float = 0.9
    max_excess: float = 0.05
    max_residual: float = 0.01
    max_epsilon: float = 10.0
    max_delta: float = 1e-4
    confidence: float = 0.99
    time_limit: float = 300.0

    def __post_init__(self) -> None:
        for name in ("max_match", "max_certain", "max_belief", "max_excess", "max_residual", "max_delta"):
            object.__setattr__(self, name, float(check_probability(getattr(self, name), name=name)))
        object.__setattr__(self, "confidence", float(check_confidence(self.confidence)))
        for name in ("max_epsilon", "time_limit"):
            object.__setattr__(self, name, float(check_positive(getattr(self, name), name=name)))

    def allowed_share(self, chance: float, *, rows: int = 1) -> float:
        """Return the largest share of people of whom epsilon 1 lets something show that chance shows of a share.

        Args:
            chance: the share that chance shows.
            rows: on how many rows of the original it rests; the promise of a row is that much weaker for them together.
        """
        excused = _EXCUSED * rows
        most = min(math.exp(excused) * chance, 1 - math.exp(-excused) * (1 - chance))
        return min(1.0, most + self.max_residual)

    def to_dict(self) -> dict[str, float]:
        """Return the limits by their names."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GatePolicy:
        """Return the policy of some named limits; the others are as by default.

        Raises:
            ParameterError: if a name is not that of a limit.
        """
        known = [field.name for field in fields(cls)]
        unknown = [name for name in values if name not in known]
        if unknown:
            raise ParameterError(f'There is no limit "{unknown[0]}".', fix=f"use {', '.join(known)}.")
        return cls(**values)
