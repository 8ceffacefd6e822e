"""Uploads: sealed while they arrive, read by the rules of `cloister.open_table`, and kept as sealed Parquet.

They are read in a process of their own, so that no file holds up the hub. Nothing is written in plain. An upload that
breaks off or cannot be read leaves no version behind.
"""

from __future__ import annotations

from typing import Literal, Protocol

from sqlalchemy import func, select

from cloister.data.schema import Schema
from cloister.errors import ConflictError, NotFoundError
from cloister.hub.domain.actions import EDIT_DATASET
from cloister.hub.domain.roles import Subject
from cloister.hub.hub import Hub
from cloister.hub.services import auditing
from cloister.hub.services.datasets.modes import was_answered
from cloister.hub.services.datasets.schemas import newest_version
from cloister.hub.store.models import Dataset, DatasetVersion, new_id
from cloister.hub.store.sealed_schemas import keep_schema, working_schema
from cloister.hub.store.upload_parsing import ParsedUpload, ParsingLimits, parse_upload

Format = Literal["csv", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "parquet")


class Stream(Protocol):
    """Bytes that arrive."""

    def read(self, size: int, /) -> bytes:
        """Return at most that many more bytes, none at the end."""
        ...


def upload_version(
    hub: Hub, subject: Subject, dataset_id: str, stream: Stream, *, kind: Format, missing: tuple[str, ...] = ()
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
    except BaseException:
        hub.blobs.delete(parsed.blob)
        raise


def _add_version(
    hub: Hub, subject: Subject, dataset_id: str, parsed: ParsedUpload, known: Schema | None
) -> DatasetVersion:
    kept, layout = parsed.blob, parsed.layout
    with hub.store.writing() as session:
        dataset = session.get(Dataset, dataset_id)
        if dataset is None or dataset.state == "deleted":
            raise NotFoundError("There is no such dataset, or you may not see it.", fix="check the address.")
        last = session.scalar(select(func.max(DatasetVersion.number)).where(DatasetVersion.dataset_id == dataset_id))
        if dataset.state == "ready" and known is None:
            raise ConflictError("This dataset has no schema for a new version.", fix="describe its columns first.")
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
        auditing.append(
            session,
            EDIT_DATASET,
            by=subject,
            target=f"dataset:{dataset_id}",
            dataset_id=dataset_id,
            what="upload",
            version=version.number,
        )
    return version
