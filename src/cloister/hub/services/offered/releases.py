"""Protected tables: made by the hub, looked at and approved by the owner, and handed out with a certificate.

What is promised is a property of the table (k-anonymity and the like), not differential privacy, and nothing is taken
from the budget for it. That is why no such table leaves the hub before its owner has seen the report and agreed.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from cloister.anonymize import AnatomyRelease, Release, anonymize, assess, plan_release
from cloister.core.guarantees import Guarantee, KAnonymity, LDiversity, TCloseness
from cloister.data.columns import Role
from cloister.data.table import Table
from cloister.errors import InternalError
from cloister.hub.domain.policy import Mode, Operation
from cloister.hub.services.exporting import csv_file
from cloister.hub.services.offered.gating import attacked, gate_of
from cloister.hub.services.offered.tables import free_columns, parquet_file, with_unit
from cloister.hub.services.registry import Outcome, Parameters, Plan, Work, algorithms

_NOT_DP = (
    "This is anonymization of a table, not differential privacy: it protects against somebody who knows the columns "
    "named above, and not against other knowledge or other tables about the same people."
)
_APPROVAL = (
    "The hub attacks the table first. The owner sees the report and what the attacks found, and decides whether it "
    "leaves the hub."
)
_LISTED = "Some quasi-identifier has no hierarchy, so that its values can only be listed, or not shown at all."


class Diversity(Parameters):
    """How varied a sensitive column is in every class."""

    attribute: str = Field(max_length=200, title="Sensitive column")
    l: str | float = Field(title="l", description="How many well-represented values each class has.")  # noqa: E741
    kind: Literal["distinct", "frequency", "entropy", "recursive"] = Field(default="distinct", title="Kind")
    c: str | float | None = Field(default=None, title="c", description="Only with the kind recursive.")


class Closeness(Parameters):
    """How close a sensitive column is, in every class, to the whole table."""

    attribute: str = Field(max_length=200, title="Sensitive column")
    t: str | float = Field(title="t", description="The largest distance, between 0 and 1.")
    kind: Literal["equal", "ordered", "hierarchical"] = Field(default="equal", title="Kind")


class WantedRelease(Parameters):
    """What the table must satisfy, and which columns it has."""

    k: int = Field(
        default=5,
        ge=2,
        le=1_000_000,
        title="People who look alike (k)",
        description="5 is usual between institutions, 11 for the public.",
    )
    diversity: tuple[Diversity, ...] = Field(default=(), max_length=20, title="l-diversity of sensitive columns")
    closeness: tuple[Closeness, ...] = Field(default=(), max_length=20, title="t-closeness of sensitive columns")
    algorithm: Literal["automatic", "optimal", "mondrian", "top_down", "clustering", "mdav"] = Field(
        default="automatic", title="Algorithm", description="Automatic takes the one that loses least."
    )
    suppression_limit: str | float = Field(
        default="0", title="Rows that may be left out", description="A share, such as 0.02."
    )
    columns: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        title="Columns",
        description="With commas between them; by default all that may be released.",
    )

    def models(self) -> list[Guarantee]:
        """Return the models."""
        return [
            KAnonymity(k=self.k),
            *(LDiversity(item.attribute, l=item.l, kind=item.kind, c=item.c) for item in self.diversity),
            *(TCloseness(item.attribute, t=item.t, kind=item.kind) for item in self.closeness),
        ]

    def settings(self) -> dict[str, Any]:
        """Return what the library is told."""
        return {
            "models": self.models(),
            "algorithm": None if self.algorithm == "automatic" else self.algorithm,
            "suppression_limit": self.suppression_limit,
        }


class AnonymizedRelease:
    """A protected table."""

    name: ClassVar[str] = "release.anonymize"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Make a protected table"
    summary: ClassVar[str] = "A table in which people look alike (k-anonymity); the owner approves it before it leaves."
    operation: ClassVar[Operation] = Operation.RELEASE_ANONYMIZE
    modes: ClassVar[frozenset[str]] = frozenset(str(mode) for mode in Mode)
    parameters: ClassVar[type[Parameters]] = WantedRelease
    needs_approval: ClassVar[bool] = True
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "release.html"

    def plan(self, work: Work, parameters: WantedRelease) -> Plan:
        """Check models, columns and algorithm on the schema, and say what the table would promise."""
        planned = plan_release(_chosen(work, parameters), **parameters.settings())
        roles, promise = planned.roles, planned.guarantee.explain()
        shown = (*roles.quasi, *roles.sensitive, *roles.insensitive)
        return Plan(
            guarantee=None,
            preview={
                "text": f"{promise}\n\nReleased columns: {', '.join(shown)}. Algorithm: {planned.algorithm}.",
                "promise": planned.guarantee.to_dict(),
                "algorithm": planned.algorithm,
                "quasi_identifiers": list(roles.quasi),
                "sensitive": list(roles.sensitive),
                "columns": list(shown),
            },
            warnings=(_NOT_DP, _APPROVAL, *((_LISTED,) if planned.lacks_hierarchies else ())),
        )

    def run(self, work: Work, parameters: WantedRelease) -> Outcome:
        """Make the table, its report, and the figures that only the owner sees."""
        release = made_release(work, parameters)
        work.progress(0.6, "measuring")
        before = assess(release.original_with_roles, k=release.risk.reidentification.k)
        report = release.report(title="Release of a protected table")
        found = attacked(work, release, report=report, begin=0.7, end=0.9)
        work.progress(0.9, "writing")
        rows = release.table.to_arrow()
        return Outcome(
            document=_document(release),
            summary=tuple((str(name), str(text)) for name, text in release.summary()),
            guarantee=release.guarantee.to_dict(),
            figure=release.plot().to_svg(),
            report=found.report().to_html(),
            is_report_for_owner=True,
            files=(csv_file("protected.csv", rows), parquet_file("protected.parquet", rows)),
            owner_only={"risk_before": before.to_dict()["risk"], "summary_before": str(before), **gate_of(found)},
        )


algorithms.register(AnonymizedRelease.name)(AnonymizedRelease())


def made_release(work: Work, parameters: WantedRelease) -> Release:
    """Return the protected table, which is the first 60% of the work."""
    release = anonymize(
        _chosen(work, parameters),
        **parameters.settings(),
        progress=lambda share, stage: work.progress(0.6 * share, stage),
    )
    if isinstance(release, AnatomyRelease):
        raise InternalError("a release in two tables was made where one was asked for")
    return release


def _chosen(work: Work, parameters: WantedRelease) -> Table:
    """Return the rows with only the chosen columns in a role that is released."""
    table = with_unit(work)
    free = free_columns(work, parameters.columns or ())
    schema = table.schema
    for name in schema:
        if name not in (parameters.columns or free):
            schema = schema.with_role(name, Role.IDENTIFIER)
    return table.with_schema(schema)


def _document(release: Release) -> dict[str, Any]:
    utility = release.assessment.utility
    return {
        **release.to_dict(),
        "recipe": release.recipe.to_dict(),
        "risk": release.risk.to_dict(),
        "column_losses": release.column_losses,
        "losses": None if utility is None else utility.losses.to_dict(),
    }
