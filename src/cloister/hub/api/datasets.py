"""Datasets over HTTP: made, uploaded, described, opened for questions, listed and deleted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import Field

from cloister.core import markers
from cloister.core.exact import number
from cloister.errors import ParameterError
from cloister.hub.api._terms import BudgetBody
from cloister.hub.domain import actions
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.gateway.bodies import allow_upload, arriving
from cloister.hub.use_cases import datasets
from cloister.hub.use_cases.jobs import decide
from cloister.queries.inference_control import Controls, Rounded

router = GuardedRouter(tags=["datasets"])
allow_upload("/api/v1/datasets/{}/versions")

_TYPES = {
    "text/csv": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
}
Limit = Annotated[int, Query(ge=1, le=200)]
After = Annotated[str | None, Query(max_length=100)]


class NewDataset(RequestBody):
    """A dataset to be made."""

    name: str = Field(min_length=1, max_length=200, examples=["hospital-2026"])
    title: str = Field(default="", max_length=300)
    description: str = Field(default="", max_length=10_000)


class ChangedDataset(RequestBody):
    """What to change of a dataset."""

    title: str | None = Field(default=None, max_length=300)
    description: str | None = Field(default=None, max_length=10_000)


class SchemaBody(RequestBody):
    """A schema, as YAML or as the same in JSON."""

    text: str | None = Field(default=None, max_length=500_000, description="As YAML.")
    document: dict[str, Any] | None = Field(default=None, description="As JSON, in place of the YAML.")
    confirm: bool = Field(default=False, description="Whether you have checked every guess.")

    def content(self) -> str | dict[str, Any]:
        """Return the one that was given."""
        if self.text is None and self.document is not None:
            return self.document
        if self.text is None or self.document is not None:
            raise ParameterError("A schema is YAML or JSON, one of them.", fix="send text, or send document.")
        return self.text


class ControlsBody(RequestBody):
    """Which questions inference control refuses, and how numbers are shown."""

    min_size: int | None = Field(default=10, ge=2, description="The fewest rows a question may be about or leave out.")
    max_overlap: int | None = Field(default=None, ge=0, description="How many rows two questions may share.")
    audit: bool = Field(default=True, description="Refuse sums from which somebody's value would follow.")
    pairs: bool = Field(default=True, description="Also refuse sums from which a difference of two would follow.")
    max_questions: int = Field(
        default=2000,
        ge=1,
        le=10_000,
        description="How many numbers an organization may ask for; refused and repeated ones count.",
    )
    cut_points: dict[str, list[bool | int | float | str]] = Field(
        default={},
        description="Where conditions may cut sensitive columns, for everybody to see; without any, nowhere.",
        examples=[{"salary": [2000, 5000], "illness": ["flu"]}],
    )
    round_to: str | float | None = Field(default=None, description="Round all numbers to multiples of this.")

    def to_controls(self) -> Controls:
        """Return the controls."""
        shown = None if self.round_to is None else Rounded(to=number(self.round_to, name="round_to"))
        stated = self.model_dump(exclude={"round_to"})
        return Controls(**stated, counts=shown, sums=shown, means=shown)


class Opening(RequestBody):
    """How a dataset is opened for questions: with a budget, or under inference control, which has none."""

    mode: Literal["dp", "sdc"] = Field(default="dp", description="dp: noisy answers; sdc: exact ones about groups.")
    budget: BudgetBody | None = Field(default=None, description="What all answers together may cost; only with dp.")
    controls: ControlsBody | None = Field(default=None, description="Only with sdc.")
    unit: str | None = Field(default=None, max_length=200, description='"row", or the column that names persons.')
    max_rows_per_unit: int | None = Field(default=None, ge=1, le=1_000_000)


class AnalystLimit(RequestBody):
    """What one person may spend."""

    analyst: str = Field(min_length=1, max_length=200)
    budget: BudgetBody


@router.guarded("GET", "/catalogue", actions.LIST_CATALOGUE)
def list_catalogue(
    hub: CurrentHub,
    access: CurrentAccess,
    search: Annotated[str, Query(max_length=200)] = "",
    after: After = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List the datasets that you may know of, with what their owners made public."""
    with hub.store.reading() as session:
        items, following = datasets.list_catalogue(session, access.person, search=search, after=after, limit=limit)
    return {"schema": "cloister.datasets/1", "items": items, "next": following}


@router.guarded("GET", "/datasets", actions.LIST_CATALOGUE)
def list_datasets(hub: CurrentHub, access: CurrentAccess, after: After = None, limit: Limit = 50) -> dict[str, Any]:
    """List the datasets of your own institution that you may see."""
    with hub.store.reading() as session:
        items, following = datasets.list_own(session, access.person, after=after, limit=limit)
    return {"schema": "cloister.datasets/1", "items": items, "next": following}


@router.guarded("POST", "/datasets", actions.CREATE_DATASET, status_code=201)
def create_dataset(hub: CurrentHub, access: CurrentAccess, body: NewDataset) -> dict[str, Any]:
    """Make a dataset, without rows yet."""
    with hub.store.writing() as session:
        made = datasets.create_dataset(session, access.person, **body.model_dump())
        return {"schema": markers.DATASET, "id": made.id, "name": made.name, "state": made.state}


@router.guarded("GET", "/datasets/{dataset_id}", actions.SEE_DATASET)
def see_dataset(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Describe a dataset as far as you may know it."""
    with hub.store.reading() as session:
        return decide.describe_offers(session, access.person, access.object)


@router.guarded("PATCH", "/datasets/{dataset_id}", actions.EDIT_DATASET)
def change_dataset(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: ChangedDataset) -> dict[str, Any]:
    """Change the public title and description."""
    with hub.store.writing() as session:
        changed = datasets.change_dataset(
            session, access.person, datasets.get_dataset(session, dataset_id), **body.model_dump(exclude_none=True)
        )
        return {"schema": markers.DATASET, "id": changed.id, "name": changed.name, "state": changed.state}


@router.guarded("DELETE", "/datasets/{dataset_id}", actions.DELETE_DATASET, status_code=204)
def delete_dataset(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> Response:
    """Delete rows, keys and description for good; the ledger and the audit log stay."""
    datasets.delete_dataset(hub, access.person, dataset_id)
    return Response(status_code=204)


@router.guarded(
    "POST",
    "/datasets/{dataset_id}/versions",
    actions.EDIT_DATASET,
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _TYPES},
        }
    },
)
def upload_version(
    hub: CurrentHub,
    access: CurrentAccess,
    dataset_id: str,
    request: Request,
    missing: Annotated[list[str] | None, Query(max_length=20)] = None,
) -> dict[str, Any]:
    """Upload rows as CSV or Parquet, as the body of the request."""
    kind = _TYPES.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if kind is None:
        raise ParameterError("A table is uploaded as CSV or Parquet.", fix="set Content-Type: text/csv.")
    with arriving(request) as stream:
        version = datasets.upload_version(
            hub,
            access.person,
            dataset_id,
            stream,
            kind="csv" if kind == "csv" else "parquet",
            missing=tuple(missing or ()),
        )
    return datasets.describe_version(version)


@router.guarded("GET", "/datasets/{dataset_id}/versions", actions.EDIT_DATASET)
def list_versions(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> dict[str, Any]:  # noqa: ARG001
    """List the versions of your dataset."""
    with hub.store.reading() as session:
        stored = datasets.get_dataset(session, dataset_id)
        return {
            "schema": "cloister.versions/1",
            "items": [datasets.describe_version(item) for item in stored.versions],
            "next": None,
        }


@router.guarded("GET", "/datasets/{dataset_id}/schema", actions.EDIT_DATASET)
def see_schema(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Show your dataset's schema, with what is still a guess."""
    with hub.store.reading() as session:
        return datasets.read_schema(hub.blobs, datasets.get_newest_version(session, dataset_id))


@router.guarded("PUT", "/datasets/{dataset_id}/schema", actions.EDIT_DATASET)
def save_schema(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: SchemaBody) -> dict[str, Any]:
    """Correct and confirm what the columns are."""
    with hub.store.writing() as session:
        version = datasets.save_schema(
            hub.blobs,
            session,
            access.person,
            datasets.get_newest_version(session, dataset_id),
            body.content(),
            confirm=body.confirm,
        )
        return datasets.read_schema(hub.blobs, version)


@router.guarded("POST", "/datasets/{dataset_id}/opening", actions.EDIT_BUDGET)
def open_for_questions(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: Opening) -> dict[str, Any]:
    """Say how answers are protected, for good, and open the dataset for questions."""
    if (body.mode == "dp") != (body.budget is not None) or (body.mode == "dp" and body.controls is not None):
        raise ParameterError(
            "Noisy answers (dp) have a budget, inference control (sdc) has controls and no budget.",
            fix='give mode "dp" with a budget, or mode "sdc" with controls.',
        )
    if body.budget is None:
        controls = (body.controls or ControlsBody()).to_controls()
        made = datasets.open_under_control(hub, access.person, dataset_id, controls=controls)
        return {"schema": markers.DATASET, "id": made.id, "name": made.name, "state": made.state}
    with hub.store.writing() as session:
        opened = datasets.open_for_questions(
            hub.store,
            session,
            access.person,
            datasets.get_dataset(session, dataset_id),
            budget=body.budget.to_budget(),
            unit=body.unit,
            max_rows_per_unit=body.max_rows_per_unit,
        )
        return {"schema": markers.DATASET, "id": opened.id, "name": opened.name, "state": opened.state}


@router.guarded("PUT", "/datasets/{dataset_id}/budget", actions.EDIT_BUDGET)
def raise_budget(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: BudgetBody) -> dict[str, Any]:
    """Raise the budget."""
    with hub.store.writing() as session:
        datasets.raise_budget(
            hub.store, session, access.person, datasets.get_dataset(session, dataset_id), budget=body.to_budget()
        )
    return see_ledger(hub, access, dataset_id)


@router.guarded("PUT", "/datasets/{dataset_id}/limits", actions.EDIT_BUDGET)
def set_limit(hub: CurrentHub, access: CurrentAccess, dataset_id: str, body: AnalystLimit) -> dict[str, Any]:
    """Limit what one person may spend."""
    with hub.store.writing() as session:
        datasets.set_limit(
            hub.store,
            session,
            access.person,
            datasets.get_dataset(session, dataset_id),
            analyst=body.analyst,
            budget=body.budget.to_budget(),
        )
    return see_ledger(hub, access, dataset_id)


@router.guarded("GET", "/datasets/{dataset_id}/ledger", actions.SEE_LEDGER)
def see_ledger(hub: CurrentHub, access: CurrentAccess, dataset_id: str) -> dict[str, Any]:  # noqa: ARG001
    """Show what was spent of the budget, when, by whom and for what."""
    with hub.store.reading() as session:
        return datasets.spending(hub.store, session, dataset_id)
