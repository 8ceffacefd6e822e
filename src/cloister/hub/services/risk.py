"""Measuring what a table would give away if it were handed out as it is: for its owners, and for nobody else.

The figures are exact and about the people in the table. Nothing protects them, so they cost nothing and never leave the
circle of those who own the rows.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from cloister.anonymize.assessment import assess
from cloister.anonymize.release_report import report_of_risk
from cloister.anonymize.risk.table_classes import apply_roles
from cloister.data.columns import Role
from cloister.errors import SchemaError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import Mode
from cloister.hub.services.protected_tables import with_unit
from cloister.hub.services.registry import ServiceOutcome, ServiceParameters, ServicePlan, ServiceWork, service_registry

_FOR_OWNERS = (
    "The figures will be exact and about the people in the table: they are for its owners, not for publication."
)


class RiskQuestion(ServiceParameters):
    """What to measure."""

    quasi_identifiers: tuple[str, ...] = Field(
        default=(),
        max_length=50,
        title="What others may know",
        description="Columns, with commas between them; by default the quasi-identifiers of the schema.",
    )
    k: int = Field(
        default=5, ge=1, le=1_000_000, title="Smallest class", description="How many people should look alike."
    )
    threshold: float = Field(
        default=0.2,
        gt=0,
        le=1,
        title="Risk that is too high",
        description="Rows are counted whose risk is above this, between 0 and 1.",
    )
    population: int | None = Field(
        default=None,
        ge=1,
        title="Size of the population",
        description="How many people the table was drawn from, if it is a sample.",
    )


class AssessRisk:
    """The risk of a table as it is."""

    name: ClassVar[str] = "risk.assess"
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Measure the risk"
    summary: ClassVar[str] = "How many people could be singled out if the table were handed out as it is; for owners."
    operation: ClassVar[PolicyOperation] = PolicyOperation.RISK_ASSESS
    modes: ClassVar[frozenset[str]] = frozenset(str(mode) for mode in Mode)
    parameters: ClassVar[type[ServiceParameters]] = RiskQuestion
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = True
    page: ClassVar[str] = "service.html"

    def plan(self, work: ServiceWork, parameters: RiskQuestion) -> ServicePlan:
        """Check the columns; it costs nothing."""
        table = with_unit(work)
        schema = apply_roles(table, table.schema, quasi=parameters.quasi_identifiers or None, sensitive=None)
        quasi = schema.with_roles(Role.QUASI)
        if not quasi:
            raise SchemaError(
                "No column is a quasi-identifier, so nothing is known that could be linked.",
                fix="name the columns that others may know.",
            )
        return ServicePlan(
            guarantee=None,
            preview={
                "text": f"Measures how well people are hidden from somebody who knows {', '.join(quasi)}.",
                "quasi_identifiers": list(quasi),
                "sensitive": list(schema.with_roles(Role.SENSITIVE)),
            },
            warnings=(_FOR_OWNERS,),
        )

    def run(self, work: ServiceWork, parameters: RiskQuestion) -> ServiceOutcome:
        """Measure the rows."""
        work.progress(0.1, "counting")
        found = assess(
            with_unit(work),
            quasi_identifiers=parameters.quasi_identifiers or None,
            population=parameters.population,
            threshold=parameters.threshold,
            k=parameters.k,
        )
        work.progress(0.8, "writing the report")
        return ServiceOutcome(
            document=found.to_dict(),
            summary=tuple((str(name), str(text)) for name, text in found.summary()),
            guarantee=found.guarantee.to_dict(),
            figure=found.plot().to_svg(),
            report=report_of_risk(found).to_html(),
            is_report_for_owner=True,
        )


service_registry.register(AssessRisk.name)(AssessRisk())
