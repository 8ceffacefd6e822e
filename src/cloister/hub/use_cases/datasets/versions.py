"""Versions of a dataset: uploaded rows, and the schema that is proposed from them and confirmed by the owner.

Uploads are sealed while they arrive, read by the rules of `cloister.open_table`, and kept as sealed Parquet. They are
read in a process of their own, so that no file holds up the hub. Nothing is written in plain. An upload that breaks off
or cannot be read leaves no version behind.

What is proposed from the rows is shown to the owner alone, and sealed like the rows; only what the owner has confirmed
is public, and is kept in plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.data.schema import Schema
from cloister.data.schema_file import dump_yaml, load_yaml
from cloister.data.sources import stated_storage
from cloister.data.values import StorageType
from cloister.errors import ConflictError, NotFoundError, SchemaError
from cloister.hub.domain.actions import EDIT_DATASET
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store.blobs import BlobStore
from cloister.hub.store.models import Dataset, DatasetVersion, new_id
from cloister.hub.store.sealed_schemas import keep_schema, schema_of, working_schema
from cloister.hub.store.sealed_tables import empty_table
from cloister.hub.store.upload_process import ParsedUpload, ParsingLimits, parse_upload
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.datasets.modes import was_answered


def newest_version(session: Session, dataset_id: str, *, state: str | None = None) -> DatasetVersion | None:
    """Return the newest version of a dataset that still has its rows, or None."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.state != "deleted")
    if state is not None:
        query = query.where(DatasetVersion.state == state)
    return session.scalars(query.order_by(DatasetVersion.number.desc()).limit(1)).first()


def types_of(version: DatasetVersion) -> dict[str, StorageType]:
    """Return the columns of a version with their types."""
    return {str(column["name"]): StorageType(column["type"]) for column in version.columns}


def guessed_types(version: DatasetVersion) -> frozenset[str]:
    """Return the columns whose types were read from the rows and that the owner has not stated to be of these types."""
    schema = schema_of(version)
    columns = {} if schema is None else schema.columns
    stated = {name: column.stated_storage for name, column in columns.items()}
    types = types_of(version)
    return frozenset(
        str(column["name"])
        for column in version.columns
        if column.get("is_guessed") and stated.get(str(column["name"])) is not types[str(column["name"])]
    )


def is_confirmed(version: DatasetVersion) -> bool:
    """Return whether the owner has confirmed everything that is said about the columns."""
    return schema_of(version) is not None


def read_schema(blobs: BlobStore, version: DatasetVersion) -> dict[str, Any]:
    """Return the schema for its owner, with what is still a guess and what is wrong with it."""
    schema = working_schema(blobs, version)
    if schema is None:
        raise ConflictError("This version has no schema.", fix="upload it again.")
    return {
        "schema": "cloister.dataset-schema/1",
        "version": version.number,
        "text": dump_yaml(schema.to_dict()),
        "document": schema.to_dict(),
        "is_confirmed": is_confirmed(version),
        "types": {name: str(storage) for name, storage in types_of(version).items()},
    }


def save_schema(
    blobs: BlobStore,
    session: Session,
    subject: AccessSubject,
    version: DatasetVersion,
    said: str | Mapping[str, Any],
    *,
    confirm: bool = False,
) -> DatasetVersion:
    """Keep what the owner says about the columns; a schema in use can be made stricter only by a new version.

    Args:
        blobs: the sealed files, whose keys seal what is still a guess.
        session: a writing transaction.
        subject: the owner.
        version: of a draft, whose columns they are.
        said: the schema as YAML, or as the plain values that `Schema.to_dict` gives.
        confirm: whether the owner has checked every guess.
    """
    dataset = version.dataset
    if dataset.state == "ready":
        raise ConflictError(
            "People already ask questions under this schema.", fix="upload a new version, or make a new dataset."
        )
    schema = Schema.from_dict(load_yaml(said) if isinstance(said, str) else said, folder=None)
    if confirm:
        _check_types(schema, types_of(version))
    # A table without rows shows whether the schema can be used at all, and tells nothing about the data.
    empty_table(types_of(version) | stated_storage(schema), schema)
    missing = [name for name in types_of(version) if name not in schema]
    if missing:
        raise SchemaError(
            f'The schema does not describe "{missing[0]}".', fix="describe every column, or upload a file without it."
        )
    keep_schema(blobs, version, schema.confirm() if confirm else schema)
    audit_log.append(
        session, EDIT_DATASET, by=subject, target=f"dataset:{dataset.id}", dataset_id=dataset.id, what="schema"
    )
    return version


def _check_types(schema: Schema, types: Mapping[str, StorageType]) -> None:
    """Raise where what is said about a column cannot be true of the rows as they are kept."""
    for name, stored in types.items():
        column = schema.columns.get(name)
        if column is None:
            continue
        if column.storage not in (None, stored):
            raise SchemaError(
                f'Column "{name}" is to be read as {column.storage}, and was read as {stored}.',
                fix=f"save without confirming and upload the file again, so that it is read so; or choose {stored}.",
            )
        if not column.fits(stored):
            raise SchemaError(
                f'Column "{name}" is called {column.kind}, and holds {stored} values.', fix="choose another kind."
            )


Format = Literal["csv", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "parquet")


class UploadStream(Protocol):
    """Bytes that arrive."""

    def read(self, size: int, /) -> bytes:
        """Return at most that many more bytes, none at the end."""
        ...


def upload_version(
    hub: Hub,
    subject: AccessSubject,
    dataset_id: str,
    stream: UploadStream,
    *,
    kind: Format,
    missing: tuple[str, ...] = (),
) -> DatasetVersion:
    """Keep an upload as the next version of a dataset, with a proposed schema or that of the version before."""
    with hub.store.reading() as session:
        before = newest_version(session, dataset_id)
        known = None if before is None else working_schema(hub.blobs, before)
    limits = ParsingLimits(seconds=hub.settings.parsing_seconds, memory_bytes=hub.settings.parsing_memory_bytes)
    with hub.blobs.drafting() as drafts:
        upload = drafts.write(stream, limit_bytes=hub.settings.upload_limit)
        parsed = parse_upload(drafts, upload, format=kind, schema=known, missing=missing, limits=limits)
        hub.blobs.adopt(parsed.blob, drafts)
    try:
        return _add_version(hub, subject, dataset_id, parsed, known)
    # A file whose key no row keeps could never be opened again.
    except BaseException:
        hub.blobs.delete(parsed.blob)
        raise


def _add_version(
    hub: Hub, subject: AccessSubject, dataset_id: str, parsed: ParsedUpload, known: Schema | None
) -> DatasetVersion:
    kept, layout = parsed.blob, parsed.layout
    with hub.store.writing() as session:
        dataset = session.get(Dataset, dataset_id)
        if dataset is None or dataset.state == "deleted":
            raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
        last = session.scalar(select(func.max(DatasetVersion.number)).where(DatasetVersion.dataset_id == dataset_id))
        if dataset.state == "ready" and known is None:
            raise ConflictError("This dataset has no schema for a new version.", fix="describe its columns first.")
        # Asked in the transaction that adds the version: a question may have been answered while the upload was read.
        if was_answered(session, dataset_id):
            raise ConflictError(
                "Questions about these rows were answered under inference control; new rows would tell more.",
                fix="make a new dataset.",
            )
        version = DatasetVersion(
            id=new_id("ver"),
            dataset_id=dataset_id,
            number=(last or 0) + 1,
            state="ready" if dataset.state == "ready" else "uploaded",
            blob_id=kept.id,
            wrapped_key=kept.wrapped_key,
            size=kept.size,
            source_digest=kept.sha256,
            columns=[
                {"name": name, "type": str(storage), "is_guessed": name in layout.sniffed}
                for name, storage in layout.columns.items()
            ],
        )
        keep_schema(hub.blobs, version, parsed.schema)
        session.add(version)
        audit_log.append(
            session,
            EDIT_DATASET,
            by=subject,
            target=f"dataset:{dataset_id}",
            dataset_id=dataset_id,
            what="upload",
            version=version.number,
        )
    return version
