"""A release: the protected table, what is promised about it, what it risks and what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.anonymize._partition import Partition
from cloister.anonymize._roles import Roles
from cloister.anonymize.models import EquivalenceClasses, ModelCheck, classes_of, settings_of
from cloister.anonymize.models.settings import plain
from cloister.anonymize.operations.recipe import Recipe
from cloister.anonymize.pitfalls import Pitfall, find_pitfalls, silence
from cloister.anonymize.regions import Regions
from cloister.core import markers
from cloister.core.provenance import ANONYMIZED
from cloister.core.result import Result
from cloister.core.wordings import percent
from cloister.crypto.certificates import certify
from cloister.data.table import Table
from cloister.errors import DataError

if TYPE_CHECKING:
    from cloister.anonymize.assessment import Assessment
    from cloister.anonymize.risk.disclosure_risk import Risk
    from cloister.anonymize.utility.losses import Losses
    from cloister.crypto.signatures import SigningKey
    from cloister.plotting import Figure
    from cloister.report import Report


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
        choice: why that way, and what others would lose; empty where the caller named the algorithm.
        suppression_limit: the share of rows that could have been left out.
        loss_name: the loss that was minimized.
        options: what else the algorithm was told.
        weights: how much the precision of columns mattered, where it was said.
        notes: what a reader should know about how it was made.
        facts: numbers about the search.
    """

    schema: ClassVar[str] = markers.RELEASE

    table: Table
    original: Table = field(repr=False)
    roles: Roles = field(repr=False)
    regions: Regions = field(repr=False)
    checks: tuple[ModelCheck, ...] = field(repr=False)
    algorithm: str
    suppression_limit: Fraction
    loss_name: str
    options: Mapping[str, Any]
    weights: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    choice: str = ""

    @property
    def partition(self) -> Partition:
        """Return which rows are in which class."""
        return self.regions.partition

    @cached_property
    def classes(self) -> EquivalenceClasses:
        """Return the counts of the released classes."""
        return classes_of(self.partition, values=self.regions.values)

    @cached_property
    def pitfalls(self) -> tuple[Pitfall, ...]:
        """Return what the release may still give away."""
        return find_pitfalls(self)

    @cached_property
    def assessment(self) -> Assessment:
        """Return everything measured about the release, beside its original."""
        from cloister.anonymize.assessment import assess

        return assess(self)

    @property
    def risk(self) -> Risk:
        """Return what the release gives away."""
        return self.assessment.risk

    @property
    def loss(self) -> Losses:
        """Return how much less the release says than its original.

        Raises:
            DataError: if a column has too many different values for all measures; `ncp` is always known.
        """
        utility = self.assessment.utility
        if utility is None:
            raise DataError(
                "A quasi-identifier has too many different values to hold them against what is shown.",
                fix="use release.ncp; or round the column or give it a hierarchy first.",
            )
        return utility.losses

    @property
    def ncp(self) -> float:
        """Return the mean loss of precision over rows and quasi-identifiers, between 0 and 1."""
        return self.regions.loss()

    @property
    def column_losses(self) -> dict[str, float]:
        """Return the mean loss of precision of each quasi-identifier."""
        names = self.partition.cells.names
        return dict(zip(names, map(float, self.regions.attribute_losses()), strict=True))

    @property
    def silent_columns(self) -> tuple[str, ...]:
        """Return the quasi-identifiers that say nothing any more: every released row shows ``*``."""
        says_nothing = np.atleast_1d((self.regions.losses >= 1).all(axis=0))
        return tuple(
            name for name, is_silent in zip(self.partition.cells.names, says_nothing, strict=True) if is_silent
        )

    @property
    def original_with_roles(self) -> Table:
        """Return the original under the roles that the release was made with."""
        return self.original.with_schema(self.roles.schema)

    def plot(self) -> Figure:
        """Return a chart of what the release gives away."""
        return self.assessment.plot()

    def report(self, path: str | Path | None = None, *, title: str = "Release of a protected table") -> Report:
        """Return the report; with a path that ends in .html, .md or .json it is written there as well."""
        from cloister.anonymize.release_report import report_of

        report = report_of(self, title=title)
        if path is not None:
            report.write(path)
        return report

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        warnings = tuple(("mind", str(pitfall)) for pitfall in self.pitfalls)
        chosen = (("choice", self.choice),) if self.choice else ()
        return (("release", str(self)), *chosen, *self.assessment.summary(), *warnings)

    @property
    def suppressed(self) -> int:
        """Return how many rows were left out."""
        return self.partition.suppressed

    def __repr__(self) -> str:
        return f"Release({self})"

    def __str__(self) -> str:
        silent = silence(self.silent_columns)
        return (
            f"{silent}{' ' if silent else ''}{self.partition.size:,} classes, loss {self.ncp:.4f}, "
            f"{percent(self.suppressed / self.partition.cells.total)} of the rows suppressed; {self.guarantee.brief()}"
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "algorithm": self.algorithm,
            "choice": self.choice,
            "silent_columns": list(self.silent_columns),
            "values": str(self.regions.values),
            "suppression_limit": str(self.suppression_limit),
            "suppressed": self.suppressed,
            "rows": self.partition.cells.total,
            "classes": self.partition.size,
            "loss": self.ncp,
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
            "suppression_limit": plain(self.suppression_limit),
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

    def store(self, name: str) -> None:
        """Write the protected table into the database or Spark session that holds the original, as a new table.

        Raises:
            DataError: if the engine has no tables of its own, the name is taken, or the original has changed.
        """
        self.table.store(name)

    def write(self, path: str | Path, *, overwrite: bool = False, signing_key: SigningKey | None = None) -> None:
        """Write the protected table as CSV or Parquet, by the ending of the path; whole or not at all.

        With a signing key a certificate is written beside it: the promise, the settings, and the digest of the file.
        """
        self.table.write(path, overwrite=overwrite)
        if signing_key is not None:
            certify(
                [path],
                kind=ANONYMIZED,
                guarantee=self.guarantee,
                recipe=self.settings,
                key=signing_key,
                overwrite=overwrite,
            )
