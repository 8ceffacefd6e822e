"""What every algorithm is given and gives back.

An algorithm is a function ``(task) -> Outcome``. It need not be trusted: `cloister.anonymize` checks every class of the
outcome against every model again, and that check decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from cloister.anonymize.cells import Cells
from cloister.anonymize.models import Check
from cloister.anonymize.partition import Partition
from cloister.anonymize.regions import Values

Progress = Callable[[float, str], None]


def no_progress(share: float, what: str) -> None:
    """Say nothing."""
    del share, what


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """What is to be anonymized.

    Attributes:
        cells: the frequency table.
        checks: what every class must satisfy.
        suppression_limit: the share of rows that may be suppressed.
        loss: the name of the loss to minimize.
        values: how classes are written down.
        options: what else the algorithm was told.
        progress: called with the share that is done and what is being done.
    """

    cells: Cells
    checks: tuple[Check, ...]
    suppression_limit: Fraction = Fraction(0)
    loss: str = "ncp"
    values: Values = Values.HIERARCHY
    options: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = no_progress

    @property
    def allowed(self) -> int:
        """Return how many rows may be suppressed: never all, since a table without rows is no release."""
        return max(0, min(int(self.suppression_limit * self.cells.total), self.cells.total - 1))

    @property
    def k(self) -> int:
        """Return a number of rows that every class needs at least (persons are at most rows, values too)."""
        models = [check.model for check in self.checks if not check.needs_population]
        needed = [max(int(getattr(model, "k", 1)), ceil(getattr(model, "l", 1))) for model in models]
        return max(needed, default=1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """What an algorithm found.

    Attributes:
        partition: the classes.
        values: how they are written down.
        notes: what a reader of the release should know, such as whether the result is proven best.
        facts: numbers about the search, such as how many nodes were looked at.
    """

    partition: Partition
    values: Values = Values.HIERARCHY
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
