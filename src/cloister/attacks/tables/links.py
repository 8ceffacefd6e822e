"""Links between people and released rows: how sure the attacker is of each, and how likely each is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.tables.fitting import Fitting

__all__ = ["Links", "link_exactly"]

Shares = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """One link per person: a row chosen at random among equally good candidates.

    Attributes:
        candidates: how many rows are equally good for each person, 0 if none fits.
        risks: how sure the attacker is of the link.
        chance: returns, for people and the classes of their own rows, how likely the link is to the right row.
        ranks: returns, for the same, the shares of people whose row is among the nearest ones, where rows are ranked.
        people: the people, by their number among all that were linked.
        learned: what the attacker learned from the tables, if anything.
    """

    candidates: Counts
    risks: Shares
    chance: Callable[[Counts, Counts], Shares]
    ranks: Callable[[Counts, Counts], tuple[tuple[int, float], ...]] | None = None
    people: Counts
    learned: Any = None

    def __repr__(self) -> str:
        return f"Links({len(self.people)} people)"

    def only(self, chosen: NDArray[np.bool_]) -> Links:
        """Return the links of some people."""
        return Links(
            candidates=self.candidates[chosen],
            risks=self.risks[chosen],
            chance=self.chance,
            ranks=self.ranks,
            people=self.people[chosen],
            learned=self.learned,
        )

    def right(self, own: Counts) -> Shares:
        """Return how likely each link is to the right row, given the class of each person's own row."""
        return self.chance(self.people, own)

    def nearest(self, own: Counts) -> tuple[tuple[int, float], ...]:
        """Return (k, share of people whose own row is among the k nearest rows), where rows are ranked."""
        return () if self.ranks is None else self.ranks(self.people, own)


def link_exactly(fitting: Fitting) -> Links:
    """Return the links of an attacker who takes any row whose labels allow all that is known."""
    kinds = fitting.people.kinds
    candidates = fitting.candidates[kinds]
    risks = np.where(candidates > 0, 1 / np.maximum(candidates, 1), 0.0)

    def chance(people: Counts, own: Counts) -> Shares:
        everybody = np.full(len(kinds), -1, dtype=np.int64)
        everybody[people] = own
        return np.asarray(fitting.fits_class(everybody)[people] * risks[people])

    return Links(candidates=candidates, risks=risks, chance=chance, people=np.arange(len(kinds)))
