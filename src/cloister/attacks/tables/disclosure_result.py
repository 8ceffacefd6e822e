"""What an attack on the sensitive values inside classes reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import Histogram
from cloister.attacks.result import AttackResult, percent
from cloister.attacks.tables.reading import Published
from cloister.attacks.tables.scoring import most_exposed
from cloister.attacks.tables.table_result import TableAttackResult

__all__ = ["DisclosureResult", "exposed_rows", "shows_one_value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosureResult(TableAttackResult):
    """The outcome of an attack on a sensitive column. Nobody is matched to a row: a person's class is enough.

    Attributes:
        column: the sensitive column.
        largest_posterior: how sure the attacker becomes of a value, at most.
        prior: how sure the attacker was, at most, knowing the whole table only.
        classes: how many classes the release has.
        disclosed_classes: how many of them give their people's value away.
        achieved: what the attacker achieves, in words.
        facts: further (name, number) pairs of this attack.
        certainty: the share of a class that counted as giving a value away.
        shows_one_value: whether all released rows have the same value, so that their classes hardly matter.
    """

    column: str
    largest_posterior: float
    prior: float
    classes: int
    disclosed_classes: int
    achieved: str
    facts: tuple[tuple[str, float], ...] = ()
    certainty: float = 1.0
    shows_one_value: bool = False

    @property
    def succeeded(self) -> bool:
        """Return whether more is disclosed, at the stated confidence, than by the whole table.

        The control is no excuse: what small classes give away by chance is given away.
        """
        return self.interval[0] > self.baseline

    @property
    def verdict(self) -> str:
        """Return a few sentences for a custodian."""
        told = "release" if self.shows_one_value and self.prior < 1 else "classes"
        without = f"{percent(self.baseline)} without the {told}"
        shares = f"{self.achieved} {percent(self.success)} of the people, {without}"
        if self.succeeded:
            return f"The attack works: it {shares}.{self._remark()}"
        return (
            f"This attack found no more than the whole table tells: it {shares}.{self._remark()} Others may find more."
        )

    def _remark(self) -> str:
        said = (
            f" All released rows have the same {self.column}: whoever sees them knows it."
            if self.shows_one_value
            else ""
        )
        if self.certainty < 1:
            said += f" Surest class: {percent(self.largest_posterior)}."
        if self.control is None:
            return said
        return f"{said} Values dealt out at random to the same classes would give {percent(self.control)} away."

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        return (
            *AttackResult.summary(self),
            ("sensitive column", self.column),
            ("largest belief", f"{percent(self.largest_posterior)}, before {percent(self.prior)}"),
            ("classes that give it away", f"{self.disclosed_classes:,} of {self.classes:,}"),
            *((name, f"{number:.4g}") for name, number in self.facts),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never anybody's value."""
        return {
            **AttackResult.to_dict(self),
            "column": self.column,
            "largest_posterior": self.largest_posterior,
            "prior": self.prior,
            "classes": self.classes,
            "disclosed_classes": self.disclosed_classes,
            "facts": dict(self.facts),
            "certainty": self.certainty,
            "shows_one_value": self.shows_one_value,
        }


def shows_one_value(histogram: Histogram) -> bool:
    """Return whether all released rows have the same value."""
    return len(np.unique(histogram.values)) == 1


def exposed_rows(published: Published, scores: NDArray[np.float64]) -> tuple[tuple[int, float], ...]:
    """Return the rows of the custodian's table whose classes have the highest scores."""
    return most_exposed(np.append(scores, 0.0)[published.row_classes])
