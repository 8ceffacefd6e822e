"""Schemas beside their rows: in plain once a person has confirmed them, sealed as long as some of it is a guess.

A guess holds values of the rows: categories that occur, and the extremes of numbers. So it is sealed by the key of the
rows, and goes when that key goes.
"""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import select

from cloister.data.schema import Schema
from cloister.data.schema_file import dump_yaml, load_yaml
from cloister.errors import ConflictError
from cloister.hub.store.blobs import Blob, BlobStore
from cloister.hub.store.database import Store
from cloister.hub.store.models import DatasetVersion

__all__ = ["blob_of", "keep_schema", "schema_of", "seal_guesses", "working_schema"]


def schema_of(version: DatasetVersion) -> Schema | None:
    """Return the schema of a version that its owner has confirmed, or None."""
    return _parse_schema(version.schema_text) if version.schema_text else None


def working_schema(blobs: BlobStore, version: DatasetVersion) -> Schema | None:
    """Return the schema of a version for its owner, guesses included, or None."""
    if version.sealed_schema is None:
        return schema_of(version)
    return Schema.from_dict(load_yaml(blobs.open_note(blob_of(version), version.sealed_schema)), folder=None)


def keep_schema(blobs: BlobStore, version: DatasetVersion, schema: Schema) -> None:
    """Keep a schema with its version: sealed as long as some of it is a guess."""
    text = dump_yaml(schema.to_dict())
    if any(column.guessed for column in schema.columns.values()):
        version.schema_text, version.sealed_schema = "", blobs.seal_note(blob_of(version), text)
    else:
        version.schema_text, version.sealed_schema = text, None


def seal_guesses(store: Store, blobs: BlobStore) -> None:
    """Seal guesses that a hub of an earlier version has kept in plain; the database overwrites them."""
    in_plain = select(DatasetVersion).where(DatasetVersion.schema_text.contains("guessed"))
    with store.reading() as session:
        if session.scalars(in_plain.limit(1)).first() is None:
            return
    with store.writing() as session:
        for version in session.scalars(in_plain):
            keep_schema(blobs, version, _parse_schema(version.schema_text))


def blob_of(version: DatasetVersion) -> Blob:
    """Return the sealed file of a version.

    Raises:
        ConflictError: if it was deleted.
    """
    if version.blob_id is None or version.wrapped_key is None or version.state == "deleted":
        raise ConflictError("The rows of this version were deleted.", fix="use a newer version.")
    return Blob(version.blob_id, version.wrapped_key, version.size or 0, version.source_digest or "")


@lru_cache(maxsize=256)
def _parse_schema(text: str) -> Schema:
    return Schema.from_dict(load_yaml(text), folder=None)
