"""Synthetic tables that were released, over HTTP: their cards, their files and reports, and more rows for nothing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response

from cloister.hub.api._downloads import SANDBOXED, download
from cloister.hub.domain import actions
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.use_cases.jobs import synthetic_tables

router = GuardedRouter(tags=["synthetic data"])

Purpose = Annotated[str, Query(max_length=200, description="What it is for, where you did not ask for the table.")]


@router.guarded("GET", "/datasets/{dataset_id}/synthetics", actions.LIST_SYNTHETICS)
def list_synthetics(dataset_id: str, hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """List the synthetic tables that were made from a dataset and that you may have."""
    with hub.store.reading() as session:
        items = synthetic_tables.list_synthetics(session, access.person, dataset_id)
    return {"schema": "cloister.synthetics/1", "items": items, "next": None}


@router.guarded("GET", "/synthetics/{synthetic_id}", actions.READ_SYNTHETIC)
def see_card(synthetic_id: str, hub: CurrentHub, access: CurrentAccess, purpose: Purpose = "") -> dict[str, Any]:  # noqa: ARG001  # the guard reads it
    """Return the card of a synthetic table: from what and how it was made, its price, and until when to keep it."""
    return synthetic_tables.see_card(hub, access, purpose=purpose)


@router.guarded("GET", "/synthetics/{synthetic_id}/rows", actions.READ_SYNTHETIC, response_class=Response)
def draw_rows(
    *,
    synthetic_id: str,  # noqa: ARG001  # the guard reads it
    hub: CurrentHub,
    access: CurrentAccess,
    n: Annotated[int, Query(ge=1, le=100_000, description="How many.")] = 1_000,
    where: Annotated[list[str], Query(max_length=50, description="Conditions, such as sex=F or age=30..40.")] = [],  # noqa: B006  # FastAPI copies it
    seed: Annotated[int | None, Query(ge=0, le=2**63, description="A number that gives the same rows again.")] = None,
    purpose: Purpose = "",
) -> Response:
    """Draw made-up rows, as CSV. This costs nothing, as often as wanted."""
    conditions = [item for item in where if item]
    return download(synthetic_tables.draw_rows(hub, access, count=n, where=conditions, seed=seed, purpose=purpose))


@router.guarded("GET", "/synthetics/{synthetic_id}/files/{name}", actions.READ_SYNTHETIC, response_class=Response)
def read_synthetic_file(
    synthetic_id: str,  # noqa: ARG001  # the guard reads it
    name: str,
    hub: CurrentHub,
    access: CurrentAccess,
    purpose: Purpose = "",
) -> Response:
    """Return a file of a synthetic table, always as a download."""
    return download(synthetic_tables.read_synthetic(hub, access, purpose=purpose).file(name))


@router.guarded("GET", "/synthetics/{synthetic_id}/report", actions.READ_SYNTHETIC, response_class=Response)
def read_synthetic_report(synthetic_id: str, hub: CurrentHub, access: CurrentAccess, purpose: Purpose = "") -> Response:  # noqa: ARG001  # the guard reads it
    """Return what a synthetic table promises and from what it was drawn, as a page that can run nothing."""
    report = synthetic_tables.read_synthetic(hub, access, purpose=purpose).outcome.report
    return Response(report, media_type="text/html; charset=utf-8", headers=SANDBOXED)
