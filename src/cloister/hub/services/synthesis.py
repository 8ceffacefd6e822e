"""Synthetic tables: measured with noise for a price, approved by the owner, and drawn from again for nothing.

A fit is planned on a table without rows, so that its price, its expected exactness and every refusal cannot depend on
anybody's data; a worker fits it from what was reserved in the ledger. The result is the model, rows that were drawn
from it, and a report of what is promised and what was measured. How the rows compare with the real ones is measured
without noise, and so it is for owners of the data, who decide.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from cloister.core import markers
from cloister.core.guarantees import DifferentialPrivacy
from cloister.core.provenance import SYNTHETIC
from cloister.data.columns import Role
from cloister.data.table import Table
from cloister.errors import ParameterError
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.services.protected_tables import (
    csv_file,
    describe_protection,
    free_columns,
    gate_of,
    parquet_file,
    person_table,
    run_gate,
)
from cloister.hub.services.registry import (
    ResultFile,
    ServiceOutcome,
    ServiceParameters,
    ServicePlan,
    ServiceWork,
    service_registry,
)
from cloister.report import Report
from cloister.synth import Synthesizer
from cloister.synth.constraints import (
    AtMost,
    Constraint,
    Determines,
    Impossible,
    SumOf,
    constraint_from_dict,
    derived_columns,
)
from cloister.synth.documents import document_of, make_synthesizer, methods
from cloister.synth.expectation import Expectation
from cloister.synth.row_comparison import compare_with_rows

__all__ = ["MODEL", "NAME", "Synthesis", "WantedRows"]

NAME = "synth.generate"
MODEL = "model.cloister"
_MOST_ROWS = 200_000
_NOT_PEOPLE = (
    "Rows are made up. One can equal a real row by chance, which tells nothing beyond the promise; what is true of "
    "everybody, the rows may show."
)
_APPROVAL = (
    "The hub attacks the rows first. The owner sees what that found and how the rows compare with the real ones, and "
    "decides whether they leave the hub."
)
_FREE = "More rows can be drawn later, for nothing. Measuring again, also a new version of the data, costs again."


class WantedRows(ServiceParameters):
    """What to synthesize, how, and at what price."""

    method: str = Field(
        default="adaptive",
        max_length=100,
        title="Method",
        description="Adaptive is best for most tables.",
        json_schema_extra={"enum": list(methods())},
    )
    epsilon: str | float = Field(title="Price (epsilon)", description="Smaller is more private.")
    delta: str | float = Field(
        default="0", title="Slack (delta)", description="Above zero, tables with many columns get less noise."
    )
    columns: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        title="Columns",
        description="With commas between them; by default all that may be handed out.",
    )
    rows: int | None = Field(
        default=None,
        ge=1,
        le=_MOST_ROWS,
        title="Rows",
        description="How many to draw now; by default about as many as the data have.",
    )
    bins: int = Field(
        default=32, ge=1, le=1_000, title="Bins", description="Into how many parts numbers and dates are cut."
    )
    complete: tuple[str, ...] = Field(
        default=(),
        max_length=200,
        title="Never missing",
        description="Columns that are publicly known to have no missing values, with commas between them.",
    )
    constraints: tuple[dict[str, Any], ...] = Field(
        default=(),
        max_length=50,
        title="What always holds",
        description='Public knowledge, such as [{"at_most": ["admitted", "discharged"]}].',
    )
    settings: tuple[str, ...] = Field(
        default=(),
        max_length=50,
        title="Settings",
        description="Of the method, such as degree=2, with commas between them.",
    )


class Synthesis:
    """A synthetic table."""

    name: ClassVar[str] = NAME
    version: ClassVar[str] = "1"
    title: ClassVar[str] = "Make synthetic data"
    summary: ClassVar[str] = "Made-up rows that look like the data, to use freely once the owner has approved them."
    operation: ClassVar[PolicyOperation] = PolicyOperation.SYNTH_GENERATE
    modes: ClassVar[frozenset[str]] = frozenset({"dp"})
    parameters: ClassVar[type[ServiceParameters]] = WantedRows
    needs_approval: ClassVar[bool] = True
    owners_only: ClassVar[bool] = False
    page: ClassVar[str] = "synthesize.html"

    def plan(self, work: ServiceWork, parameters: WantedRows) -> ServicePlan:
        """Plan the fit on a table without rows: what it costs, and how exact it will be."""
        found = _synthesizer(work, parameters).preview(person_table(work))
        guarantee = found.guarantee
        if not isinstance(guarantee, DifferentialPrivacy):
            raise ParameterError(
                "This method does not promise differential privacy.",
                fix="use another method, or make a protected table instead.",
            )
        return ServicePlan(
            guarantee=guarantee,
            event=found.event,
            preview={**found.to_dict(), "text": f"Columns: {', '.join(found.columns)}.\n\n{found.explain()}"},
            warnings=(_NOT_PEOPLE, _APPROVAL, _FREE),
        )

    def run(self, work: ServiceWork, parameters: WantedRows) -> ServiceOutcome:
        """Measure the rows from the reserved budget, draw made-up ones, and compare them for the owner."""
        made, table = _synthesizer(work, parameters), person_table(work)
        made.ledger, made.dataset = work.ledger, work.account
        made.progress = lambda share, stage: work.progress(0.6 * share, stage)
        made.fit(table)
        # What is saved with the model must not hold on to the ledger of this run.
        made.ledger = made.progress = None
        work.progress(0.6, "drawing rows")
        drawn = made.sample(parameters.rows or max(1, min(round(made.rows_), _MOST_ROWS)))
        work.progress(0.7, "comparing with the rows, for the owner")
        owner_report, owner_only = _compare_with_rows(work, made, table, drawn)
        work.progress(0.9, "writing")
        rows, document, expected = drawn.to_arrow(), document_of(made), made.expected(table)
        content = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode()
        return ServiceOutcome(
            document={
                "schema": markers.SYNTHETIC_TABLE,
                "method": parameters.method,
                "columns": list(drawn.columns),
                "rows": rows.num_rows,
                "expected": [item.to_dict() for item in expected],
                "steps": document["steps"],
                "facts": document["facts"],
            },
            summary=_summary(made, parameters, drawn, expected),
            guarantee=made.guarantee_.to_dict(),
            report=made.report(title="A synthetic table").to_html(),
            files=(
                csv_file("synthetic.csv", rows),
                parquet_file("synthetic.parquet", rows),
                ResultFile(name=MODEL, media_type="application/json", content=content),
            ),
            owner_report=owner_report,
            owner_only=owner_only,
        )


service_registry.register(Synthesis.name)(Synthesis())


def _synthesizer(work: ServiceWork, parameters: WantedRows) -> Synthesizer:
    """Return the synthesizer that is asked for, with what the owner states about the dataset."""
    whole, schema = describe_protection(work), work.table.schema
    given = [constraint_from_dict(item) for item in parameters.constraints]
    free = free_columns(work, (*(parameters.columns or ()), *_list_constrained(given)))
    apart = {whole["unit"], *schema.with_roles(Role.IDENTIFIER), *derived_columns(given)}
    columns = parameters.columns or [name for name in free if name not in apart and name in schema]
    return make_synthesizer(
        parameters.method,
        settings=parameters.settings,
        epsilon=parameters.epsilon,
        delta=parameters.delta,
        columns=list(columns),
        bins=parameters.bins,
        complete=list(parameters.complete),
        constraints=given,
        **whole,
    )


def _list_constrained(constraints: Sequence[Constraint]) -> list[str]:
    """Return the columns that constraints are about: those that follow from others are handed out, too."""
    named: list[str] = []
    for item in constraints:
        match item:
            case Impossible() | AtMost():
                named += item.columns
            case Determines():
                named += (item.by, item.column)
            case SumOf():
                named += (*item.parts, item.column)
    return named


def _compare_with_rows(work: ServiceWork, made: Synthesizer, table: Table, drawn: Table) -> tuple[str, dict[str, Any]]:
    """Return the page and the figures for owners: the comparison with the rows, and attacks, as far as can be done."""
    report, owner_only = _comparison(made, table, drawn)
    try:
        found = run_gate(
            work,
            drawn,
            report=report,
            begin=0.75,
            end=0.9,
            original=table,
            kind=SYNTHETIC,
            guarantee=made.guarantee_,
        )
    except Exception:  # noqa: BLE001  # what was paid for is not lost because it cannot be attacked
        return "" if report is None else report.to_html(), owner_only | gate_of(None)
    return found.report().to_html(), owner_only | gate_of(found)


def _comparison(made: Synthesizer, table: Table, drawn: Table) -> tuple[Report | None, dict[str, Any]]:
    try:
        found = compare_with_rows(made, table, drawn)
    except Exception:  # noqa: BLE001  # what was paid for is not lost because it cannot be compared
        return None, {"summary_compared": "this could not be done"}
    if found is None:
        return None, {}
    return found.report(), {"compared": found.to_dict(), "summary_compared": str(found)}


def _summary(
    made: Synthesizer, parameters: WantedRows, drawn: Table, expected: tuple[Expectation, ...]
) -> tuple[tuple[str, str], ...]:
    rows = drawn.count()
    return (
        ("rows", f"{rows:,}, made up; more can be drawn for nothing"),
        ("columns", ", ".join(drawn.columns)),
        ("method", parameters.method),
        ("measured", f"{len(made.steps_)} paid steps, listed in the report"),
        *((("exactness", f"counts that were measured are off by up to {_worst(expected)} (95%)"),) if expected else ()),
        ("promise", made.guarantee_.explain()),
    )


def _worst(expected: tuple[Expectation, ...]) -> str:
    margin = 1.96 * max(item.deviation for item in expected)
    return f"{margin:,.0f} rows" if margin >= 10 else f"{margin:.2g} rows"
