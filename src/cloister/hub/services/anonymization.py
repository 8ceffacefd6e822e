"""Protected tables: made by the hub, looked at and approved by the owner, and handed out with a certificate.

What is promised is a property of the table (k-anonymity and the like), not differential privacy, and nothing is taken
from the budget for it. That is why no such table leaves the hub before its owner has seen the report and agreed.

Owners can also have a protected table attacked that nobody has asked for yet, to find out what would hold. The table is
made as it would be for somebody else, attacked with the rows at hand, and thrown away. What attacks found is exact and
about the people in the table, so it never leaves the circle of those who own the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from cloister.anonymize import AnatomyRelease, Release, anonymize, assess, plan_release
from cloister.anonymize.models import parse_model
from cloister.core.guarantees import Guarantee, KAnonymity, LDiversity, NoGuarantee, TCloseness
from cloister.data.columns import Role
from cloister.data.table import Table
from cloister.errors import InternalError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Mode
from cloister.hub.services.protected_tables import csv_file, free_columns, gate_of, parquet_file, run_gate, with_unit
from cloister.hub.services.registry import ServiceOutcome, ServiceParameters, ServicePlan, ServiceWork, service_registry

__all__ = ["TriedRelease"]


_NOT_DP = (
    "This is anonymization of a table, not differential privacy: it protects against somebody who knows the columns "
    "named above, and not against other knowledge or other tables about the same people."
)
_APPROVAL = (
    "The hub attacks the table first. The owner sees the report and what the attacks found, and decides whether it "
    "leaves the hub."
)
_LISTED = "Some quasi-identifier has no hierarchy, so that its values can only be listed, or not shown at all."


class Diversity(ServiceParameters):
    """How varied a sensitive column is in every class."""

    attribute: str = Field(max_length=200, title="Sensitive column")
    l: str | float = Field(title="l", description="How many well-represented values each class has.")  # noqa: E741
    kind: Literal["distinct", "frequency", "entropy", "recursive"] = Field(default="distinct", title="Kind")
    c: str | float | None = Field(default=None, title="c", description="Only with the kind recursive.")


class Closeness(ServiceParameters):
    """How close a sensitive column is, in every class, to the whole table."""

    attribute: str = Field(max_length=200, title="Sensitive column")
    t: str | float = Field(title="t", description="The largest distance, between 0 and 1.")
    kind: Literal["equal", "ordered", "hierarchical"] = Field(default="equal", title="Kind")


class WantedRelease(ServiceParameters):
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
    further_models: tuple[Annotated[str, Field(max_length=500)], ...] = Field(
        default=(),
        max_length=20,
        title="Further models",
        description="Each by its name, such as p_sensitivity(attribute=diagnosis, p=2, k=5).",
    )
    algorithm: Literal["automatic", "optimal", "mondrian", "top_down", "clustering", "mdav"] = Field(
        default="automatic",
        title="Algorithm",
        description="Automatic takes the one that loses least inside the hierarchies.",
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
            *map(parse_model, self.further_models),
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
    operation: ClassVar[PolicyOperation] = PolicyOperation.RELEASE_ANONYMIZE
    modes: ClassVar[frozenset[str]] = frozenset(str(mode) for mode in Mode)
    parameters: ClassVar[type[ServiceParameters]] = WantedRelease
    needs_approval: ClassVar[bool] = True
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "release.html"

    def plan(self, work: ServiceWork, parameters: WantedRelease) -> ServicePlan:
        """Check models, columns and algorithm on the schema, and say what the table would promise."""
        planned = plan_release(_choose_columns(work, parameters), **parameters.settings())
        roles, promise = planned.roles, planned.guarantee.explain()
        shown = (*roles.quasi, *roles.sensitive, *roles.insensitive)
        return ServicePlan(
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

    def run(self, work: ServiceWork, parameters: WantedRelease) -> ServiceOutcome:
        """Make the table, its report, and the figures that only the owner sees."""
        release = make_release(work, parameters)
        work.progress(0.6, "measuring")
        before = assess(release.original_with_roles, k=release.risk.reidentification.k)
        report = release.report(title="Release of a protected table")
        found = run_gate(work, release, report=report, begin=0.7, end=0.9)
        work.progress(0.9, "writing")
        rows = release.table.to_arrow()
        return ServiceOutcome(
            document=_document(release),
            summary=tuple((str(name), str(text)) for name, text in release.summary()),
            guarantee=release.guarantee.to_dict(),
            figure=release.plot().to_svg(),
            report=found.report().to_html(),
            is_report_for_owner=True,
            files=(csv_file("protected.csv", rows), parquet_file("protected.parquet", rows)),
            owner_only={"risk_before": before.to_dict()["risk"], "summary_before": str(before), **gate_of(found)},
        )


service_registry.register(AnonymizedRelease.name)(AnonymizedRelease())


def make_release(work: ServiceWork, parameters: WantedRelease) -> Release:
    """Return the protected table, which is the first 60% of the work."""
    release: Release | AnatomyRelease = anonymize(
        _choose_columns(work, parameters),
        **parameters.settings(),
        progress=lambda share, stage: work.progress(0.6 * share, stage),
    )
    if isinstance(release, AnatomyRelease):
        raise InternalError("a release in two tables was made where one was asked for")
    return release


def _choose_columns(work: ServiceWork, parameters: WantedRelease) -> Table:
    """Return the rows with only the chosen columns in a role that is released."""
    table = with_unit(work)
    free = free_columns(work, parameters.columns or ())
    schema = table.schema
    for name in schema:
        if name not in (parameters.columns or free):
            # Identifiers are never released, so that this role keeps a column out whatever the algorithm is.
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


_FOR_OWNERS = (
    "What the attacks find is exact and about the people in the table: it is for its owners. No table is kept."
)
_EXACT = "it was computed from protected rows as they are, and is for their owners"


class TriedRelease(AnonymizedRelease):
    """A protected table that is attacked and thrown away."""

    name: ClassVar[str] = "attack.release"
    title: ClassVar[str] = "Attack a protected table"
    summary: ClassVar[str] = "What attackers would find in a protected table, before anybody asks for it; for owners."
    operation: ClassVar[PolicyOperation] = PolicyOperation.RISK_ASSESS
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = True

    def plan(self, work: ServiceWork, parameters: WantedRelease) -> ServicePlan:
        """Check models, columns and algorithm on the schema; it costs nothing."""
        return replace(super().plan(work, parameters), warnings=(_FOR_OWNERS,))

    def run(self, work: ServiceWork, parameters: WantedRelease) -> ServiceOutcome:
        """Make the table, attack it, and keep what the attacks found."""
        release = make_release(work, parameters)
        found = run_gate(work, release, report=release.report(title="A protected table, attacked"), begin=0.6, end=0.9)
        return ServiceOutcome(
            document=found.to_dict(),
            summary=found.summary(),
            guarantee=NoGuarantee(reason=_EXACT).to_dict(),
            figure=found.plot().to_svg() if any(item.result for item in found.findings) else "",
            report=found.report().to_html(),
            is_report_for_owner=True,
        )


service_registry.register(TriedRelease.name)(TriedRelease())
