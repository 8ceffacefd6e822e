"""A release in two tables: exact quasi-identifiers with a group number, and the sensitive values of each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.anonymize.algorithms.anatomy import ANATOMY, COUNT, GROUP, AnatomyTables, anatomize
from cloister.anonymize.models import Check, settings_of
from cloister.anonymize.roles import Roles
from cloister.core.guarantees import LDiversity
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.result import Result
from cloister.crypto.certificates import certify
from cloister.crypto.release_kinds import TWO_TABLES
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import InternalError, ParameterError

if TYPE_CHECKING:
    from cloister.crypto.signatures import SigningKey
    from cloister.report import Report

__all__ = ["AnatomyRelease"]

_KINDS = ("distinct", "frequency")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnatomyRelease(Result):
    """Two tables in place of one. It shows numbers about itself, never rows.

    Attributes:
        tables: both tables, as Arrow.
        original: the table that was taken apart.
        roles: which columns were taken for what.
        l: how many different sensitive values each group has at least.
    """

    schema: ClassVar[str] = "cloister.anatomy/1"

    tables: AnatomyTables = field(repr=False)
    original: Table = field(repr=False)
    roles: Roles = field(repr=False)
    l: int  # noqa: E741  # the literature's name

    @property
    def quasi(self) -> Table:
        """Return the quasi-identifiers of every row with the number of its group."""
        return open_table(self.tables.quasi)

    @property
    def sensitive(self) -> Table:
        """Return how often each sensitive value occurs in each group."""
        return open_table(self.tables.sensitive)

    def __str__(self) -> str:
        return f"{self.tables.groups:,} groups of at least {self.l} rows in two tables; {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "algorithm": "anatomy",
            "groups": self.tables.groups,
            "rows": int(self.tables.sizes.sum()),
            "l": self.l,
            "attribute": self.tables.attribute,
        }

    def write(
        self, path: str | Path, *, overwrite: bool = False, signing_key: SigningKey | None = None
    ) -> tuple[Path, Path]:
        """Write both tables beside each other, as ``NAME.quasi.csv`` and ``NAME.sensitive.csv``; return where.

        With a signing key a certificate of both is written beside the first.
        """
        target = Path(path)
        places = tuple(target.with_suffix(f".{part}{target.suffix}") for part in ("quasi", "sensitive"))
        self.quasi.write(places[0], overwrite=overwrite)
        self.sensitive.write(places[1], overwrite=overwrite)
        if signing_key is not None:
            recipe = {
                "algorithm": "anatomy",
                "models": [settings_of(self.guarantee)],
                "quasi_identifiers": list(self.roles.quasi),
                "sensitive": [self.tables.attribute],
            }
            certify(
                places, kind=TWO_TABLES, guarantee=self.guarantee, recipe=recipe, key=signing_key, overwrite=overwrite
            )
        return places[0], places[1]

    def report(self, path: str | Path | None = None, *, title: str = "Release in two tables") -> Report:
        """Return the report; with a path that ends in .html, .md or .json it is written there as well."""
        from cloister.anonymize.anatomy_reporting import report_of_anatomy

        report = report_of_anatomy(self, title=title)
        if path is not None:
            report.write(path)
        return report


def anatomized(table: Table, roles: Roles, checks: Sequence[Check], random_state: RandomState) -> AnatomyRelease:
    """Return a table taken apart, checked group by group.

    Raises:
        ParameterError: if the models are not the one that anatomy can promise.
    """
    model = _only_model(checks)
    source = random_source(random_state)
    wanted = -(-model.l.numerator // model.l.denominator)
    tables = anatomize(
        table.to_arrow(),
        quasi=[name for name in table.columns if name in (*roles.quasi, *roles.insensitive)],
        sensitive=model.attribute,
        l=wanted,
        random_state=source,
    )
    _verify(tables, model.l)
    known = f"others know at most these columns: {', '.join(roles.quasi)}, and look at one group by itself"
    promise = model.with_assumption(known).with_caveat(ANATOMY, *caveats_of(source))
    return AnatomyRelease(guarantee=promise, tables=tables, original=table, roles=roles, l=wanted)


def _only_model(checks: Sequence[Check]) -> LDiversity:
    models = [check.model for check in checks]
    if len(models) == 1 and isinstance(models[0], LDiversity) and models[0].variant in _KINDS:
        return models[0]
    raise ParameterError(
        "Anatomy promises distinct or frequency l-diversity of one column, and nothing else.",
        fix='give models=[cl.LDiversity("disease", l=3, kind="frequency")].',
    )


def _verify(tables: AnatomyTables, l: Fraction) -> None:  # noqa: E741
    """Check that in no group a value has more than one in l of the rows, and that both tables count the same."""
    groups, counts = tables.sensitive[GROUP].to_numpy(), tables.sensitive[COUNT].to_numpy()
    totals = np.bincount(groups, weights=counts, minlength=tables.groups)
    largest = np.zeros(tables.groups)
    np.maximum.at(largest, groups, counts)
    if not np.array_equal(totals, tables.sizes) or (largest * float(l) > totals).any():
        raise InternalError("a group of the anatomized table does not satisfy its model.")
