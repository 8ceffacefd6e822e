"""Choosing categories privately: the most common one, the first k, the winner of a vote.

Scores are how many units have a category. A person counts once for a category, however many rows say so, and one
person more or less moves every score by at most 1, whatever the number of categories per person; no limit on rows is
needed. Only the choice is released, not its score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.random import RandomSource
from cloister.core.result import Result
from cloister.errors import MissingBoundsError, ParameterError
from cloister.mechanisms.selection import Select
from cloister.queries.answers import plain
from cloister.queries.contribution import Contribution
from cloister.queries.exact import ExactCore
from cloister.queries.question import CountRows, Key, Question, Rows

__all__ = ["Choice", "Chooser"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Result):
    """Categories that were chosen, the most common first.

    Attributes:
        name: the column.
        choices: the categories, in the order in which they were chosen.
        shortfall: how far below the best one the count of a choice may be, at 95%.
        cost: what was taken from the budget; nothing for a repeat.
        event: what ran, for the accountants.
    """

    schema: ClassVar[str] = "cloister.query_choice/1"

    name: str
    choices: tuple[Any, ...]
    shortfall: float
    cost: Budget
    event: Event = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> Any:
        """Return the first choice."""
        return self.choices[0]

    def margin(self, confidence: object = 0.95) -> float:
        """Return how far below the best one the count of the choice may be, at 95%."""
        if validation.check_confidence(confidence) != Fraction(19, 20):
            raise ParameterError("A choice knows its shortfall at 95% only.", fix="leave the confidence out.")
        return self.shortfall

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.choices))
        return f"{listed} (each within {self.shortfall:,.0f} of the best count, 95%), {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "choices": [plain(choice) for choice in self.choices],
            "shortfall": {"confidence": 0.95, "count": self.shortfall},
            "cost": self.cost.to_dict(),
            "event": self.event.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """A choice of k categories, each at an equal share of epsilon, without putting any back."""

    rows: Rows
    key: Key
    k: int
    epsilon: Fraction
    method: str
    contribution: Contribution

    def __post_init__(self) -> None:
        if self.key.values is None:
            raise MissingBoundsError(
                f'The categories of "{self.key.name}" are not public, and taking them from the data would reveal rare '
                "ones.",
                fix=f'state them: schema.with_categories("{self.key.name}", [...]) or values=[...].',
            )
        size = len(self.key.values)
        if self.k > size:
            raise ParameterError(
                f'"{self.key.name}" has {size} categories, fewer than k = {self.k}.', fix=f"ask for k <= {size}."
            )
        self.mechanism(size)  # refuses a method or price that cannot be, before anything is paid

    @property
    def labels(self) -> tuple[Any, ...]:
        """Return the candidates."""
        return self.key.shown or ()

    def mechanism(self, candidates: int) -> Select:
        """Return one round of the choice."""
        return Select(
            candidates=tuple(range(candidates)),
            score_sensitivity=exact.number(1),
            epsilon=self.epsilon / self.k,
            monotone=self.contribution.adjacency != "replace",
            method=self.method,
            adjacency=self.contribution.adjacency,
            unit=self.contribution.unit,
        )

    @property
    def shortfall(self) -> float:
        """Return how far below the best one the count of a choice may be, each at 95%."""
        return self.mechanism(len(self.labels)).shortfall(0.05)

    def canonical(self) -> str:
        """Return a text that is the same for the same choice."""
        return f"{self.rows} || {self.key} || {self.k} {self.method}"

    def measure(self, source: RandomSource) -> list[int]:
        """Return the positions of the choices. The budget must have been charged before."""
        question = Question(rows=self.rows, aggregates=(CountRows(),), keys=(self.key,))
        core = ExactCore(question, self.contribution, self.contribution.reach(question))
        scores = core.units()
        left = list(range(len(scores)))
        chosen = []
        for _ in range(self.k):
            index = self.mechanism(len(left)).release(np.asarray(scores)[left], random_state=source).index
            chosen.append(left.pop(index))
        return chosen
