"""Datasets and versions as they are stored, or an error that says what to do."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.errors import ConflictError, NotFoundError
from cloister.hub.services.datasets.schemas import newest_version
from cloister.hub.store.models import Dataset, DatasetVersion


def stored(session: Session, dataset_id: str) -> Dataset:
    """Return a dataset that was not deleted."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None or dataset.state == "deleted":
        raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
    return dataset


def newest(session: Session, dataset_id: str) -> DatasetVersion:
    """Return the newest version of a dataset."""
    version = newest_version(session, dataset_id)
    if version is None:
        raise ConflictError("This dataset has no rows yet.", fix="upload a CSV or Parquet file first.")
    return version


def describe_version(version: DatasetVersion) -> dict[str, Any]:
    """Return what an owner sees of a version."""
    return {
        "schema": "cloister.version/1",
        "id": version.id,
        "dataset": version.dataset_id,
        "number": version.number,
        "state": version.state,
        "size": version.size,
        "columns": version.columns,
        "digest": version.source_digest,
    }
