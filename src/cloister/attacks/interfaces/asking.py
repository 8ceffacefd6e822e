"""An interface as the attacker sees it: a question goes in; a number, or a refusal, comes out.

Where the interface shows a range, the attacker takes its middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from cloister.attacks.auditing.outputs import plain
from cloister.core import exact
from cloister.data.bins import Interval
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Asked", "Interface", "Refusal"]

Refusal: TypeAlias = "type[Exception] | tuple[type[Exception], ...]"


class Asked(Protocol):
    """A tally of questions, and of refusals among them."""

    queries: int
    refused: int


@dataclass(slots=True, kw_only=True)
class Interface:
    """A function to ask, with a tally of what was asked and what was refused."""

    ask: Callable[[Any], Any]
    refusal: Refusal
    queries: int = 0
    refused: int = 0

    def number(self, question: Any) -> float | None:
        """Return the answer as a number, None if the interface refuses or has none."""
        self.queries += 1
        try:
            answer = plain(self.ask(question))
        except self.refusal:
            self.refused += 1
            return None
        if isinstance(answer, Interval):
            answer = _middle(answer)
        return None if answer is None or _is_nan(answer) else _float(answer)


def _is_nan(answer: Any) -> bool:
    return isinstance(answer, float) and math.isnan(answer)


def _middle(answer: Interval) -> Any:
    """Return the middle of a range, or its one end."""
    ends = [end for end in (answer.low, answer.high) if math.isfinite(end)]
    return sum(ends) / len(ends) if ends else None


def _float(answer: Any) -> float:
    try:
        return float(exact.number(answer, name="the answer"))
    except (ParameterError, ParameterTypeError):
        raise ParameterTypeError(
            "An answer of the interface is not a number.",
            fix="pass a function that returns one number, or a result with a value, for a question.",
        ) from None
