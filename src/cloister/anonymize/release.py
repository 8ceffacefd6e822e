"""A release: the protected table, what is promised about it, what it risks and what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from cloister.anonymize.models import Check, Classes, classes_of, settings_of
from cloister.anonymize.operations.recipe import Recipe
from cloister.anonymize.partition import Partition
from cloister.anonymize.pitfalls import Pitfall, find_pitfalls
from cloister.anonymize.regions import Regions
from cloister.anonymize.roles import Roles
from cloister.core.result import Result
from cloister.data.table import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Result):
    """A protected table with its promise. It shows numbers about itself, never rows.

    Attributes:
        table: the protected rows, still in their engine.
        original: the table that was protected.
        roles: which columns were taken for what.
        regions: the classes, and what each shows.
        checks: the models that every class satisfies.
        algorithm: how the classes were found.
        suppression_limit: the share of rows that could have been left out.
        loss_name: the loss that was minimized.
        options: what else the algorithm was told.
        weights: how much the precision of columns mattered, where it was said.
        notes: what a reader should know about how it was made.
        facts: numbers about the search.
    """

    schema: ClassVar[str] = "cloister.release/1"

    table: Table
    original: Table = field(repr=False)
    roles: Roles = field(repr=False)
    regions: Regions = field(repr=False)
    checks: tuple[Check, ...] = field(repr=False)
    algorithm: str
    suppression_limit: Fraction
    loss_name: str
    options: Mapping[str, Any]
    weights: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def partition(self) -> Partition:
        """Return which rows are in which class."""
        return self.regions.partition

    @cached_property
    def classes(self) -> Classes:
        """Return the counts of the released classes."""
        return classes_of(self.partition, values=self.regions.values)

    @cached_property
    def pitfalls(self) -> tuple[Pitfall, ...]:
        """Return what the release may still give away."""
        return find_pitfalls(self)

    @property
    def suppressed(self) -> int:
        """Return how many rows were left out."""
        return self.partition.suppressed

    def __str__(self) -> str:
        return (
            f"{self.partition.size:,} classes, loss {self.regions.loss():.4f}, "
            f"{self.suppressed / self.partition.cells.total:.2%} of the rows suppressed; {self.guarantee.brief()}"
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "values": str(self.regions.values),
            "suppression_limit": str(self.suppression_limit),
            "suppressed": self.suppressed,
            "rows": self.partition.cells.total,
            "classes": self.partition.size,
            "loss": self.regions.loss(),
            "notes": list(self.notes),
            "facts": dict(self.facts),
            "pitfalls": [pitfall.to_dict() for pitfall in self.pitfalls],
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Return what `cloister.anonymize` must be told to make the same release again, JSON-ready."""
        chosen: dict[str, Any] = {
            "models": [settings_of(check.model) for check in self.checks],
            "algorithm": self.algorithm,
            "suppression_limit": float(self.suppression_limit),
            "quasi_identifiers": list(self.roles.quasi),
            "sensitive": list(self.roles.sensitive),
            "values": str(self.regions.values),
            "loss": self.loss_name,
            **self.options,
        }
        return chosen | ({"weights": dict(self.weights)} if self.weights else {})

    @property
    def recipe(self) -> Recipe:
        """Return the recipe of one step that makes the same release again."""
        return Recipe((), anonymize=self.settings)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the protected table as CSV or Parquet, by the ending of the path; whole or not at all."""
        self.table.write(path, overwrite=overwrite)
