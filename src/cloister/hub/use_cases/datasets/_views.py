"""What a person may see of a dataset: a table with the columns and rows that a decision leaves, and nothing else."""

from __future__ import annotations

import hashlib
import json

from cloister.data.schema import Schema
from cloister.data.table import Table
from cloister.errors import ConflictError, ForbiddenError
from cloister.hub.domain.decisions import Constraints, Decision
from cloister.hub.domain.views import ColumnRights, View, view_of
from cloister.hub.hub import Hub
from cloister.hub.store.models import DatasetVersion
from cloister.hub.store.sealed_schemas import blob_of, schema_of
from cloister.hub.store.sealed_tables import empty_table, open_sealed_table
from cloister.hub.use_cases.datasets.versions import guessed_types, types_of

__all__ = ["constraints_of", "empty_view", "open_view", "rights_of", "view_digest", "visible_columns"]


def empty_view(version: DatasetVersion, decision: Decision) -> Table:
    """Return a table without rows that looks like what the person may see; hidden columns do not exist in it."""
    table = empty_table(types_of(version), _schema(version), sniffed=guessed_types(version))
    return _view(version, decision).apply(table)


def open_view(hub: Hub, version: DatasetVersion, decision: Decision) -> Table:
    """Return the rows and columns of a version that the person may see."""
    table = open_sealed_table(hub.blobs, blob_of(version), _schema(version), sniffed=guessed_types(version))
    return _view(version, decision).apply(table)


def rights_of(version: DatasetVersion, decision: Decision) -> ColumnRights:
    """Return the columns that exist for the person, with what each may be used for."""
    return _view(version, decision).rights


def visible_columns(version: DatasetVersion, decision: Decision) -> tuple[str, ...]:
    """Return the columns that exist for the person."""
    return rights_of(version, decision).names


def view_digest(version: DatasetVersion, decision: Decision) -> str:
    """Return what tells this view of this version from others: columns, their uses, rows, schema."""
    constraints, view = constraints_of(decision), _view(version, decision)
    described = {
        "version": version.id,
        "source": version.source_digest,
        "schema": hashlib.sha256(version.schema_text.encode()).hexdigest(),
        "mode": str(constraints.mode),
        "view": view.fingerprint,
        "uses": [[name, sorted(str(use) for use in uses)] for name, uses in view.rights.uses],
    }
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def constraints_of(decision: Decision) -> Constraints:
    """Return what an allowed decision binds the run to."""
    if decision.constraints is None:
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")
    return decision.constraints


def _view(version: DatasetVersion, decision: Decision) -> View:
    unit = version.dataset.facts.get("unit")
    # The column that names persons stays, hidden or not: without it nobody could be protected as a person.
    return view_of(constraints_of(decision), _schema(version), unit=None if unit == "row" else unit)


def _schema(version: DatasetVersion) -> Schema:
    schema = schema_of(version)
    if schema is None:
        raise ConflictError("This version has no schema.", fix="ask the owner to describe its columns.")
    return schema
