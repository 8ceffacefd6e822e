"""Uploads are read elsewhere, within limits, and without the hub's key."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from cloister.crypto.keys import DataKey, MasterKey
from cloister.data.schema import Schema
from cloister.data.values import StorageType
from cloister.errors import DataError, DecryptionError, ParameterError, TooManyRequestsError, UnknownColumnError
from cloister.hub.store import upload_process
from cloister.hub.store._upload_checks import UploadLimits
from cloister.hub.store.blobs import Blob, BlobStore
from cloister.hub.store.sealed_tables import ingest, layout_of
from cloister.hub.store.upload_process import ParsedUpload, ParsingLimits, parse_upload

PLENTY = ParsingLimits(seconds=300, memory_bytes=6 * 2**30)


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs", MasterKey.generate())


def sealed(store: BlobStore, content: bytes) -> Blob:
    return store.write(io.BytesIO(content), limit_bytes=2**30)


def parsed(store: BlobStore, content: bytes, **options: Any) -> ParsedUpload:
    given: dict[str, Any] = {"format": "csv", "schema": None, "missing": (), "limits": PLENTY} | options
    return parse_upload(store, sealed(store, content), **given)


def test_what_is_read_elsewhere_is_what_is_read_here(store: BlobStore) -> None:
    found = parsed(store, b"age,sex\n1,f\n2,m\n", missing=("m",))
    here = ingest(store, sealed(store, b"age,sex\n1,f\n2,m\n"), format="csv", missing=("m",))
    assert found.layout == layout_of(store, found.blob) == layout_of(store, here)
    assert found.layout.columns == {"age": StorageType.INTEGER, "sex": StorageType.TEXT}
    assert found.schema["age"].guessed
    store.verify(found.blob)


def test_a_stated_schema_is_kept_as_it_is(store: BlobStore) -> None:
    stated = Schema.from_dict({"columns": {"age": {"kind": "numeric", "bounds": [0, 9]}}}, folder=None)
    assert parsed(store, b"age\n1\n", schema=stated).schema is stated


@pytest.mark.parametrize(
    ("content", "format", "problem"),
    [(b"", "csv", "empty"), (b"a,a\n1,2\n", "csv", "same name"), (b"a\n1\n", "parquet", "not a Parquet file")],
)
def test_what_is_wrong_is_told_as_it_is_here(store: BlobStore, content: bytes, format: str, problem: str) -> None:  # noqa: A002
    with pytest.raises(DataError, match=problem):
        parsed(store, content, format=format)


def test_a_file_that_unfolds_too_far_is_refused(store: BlobStore) -> None:
    limits = UploadLimits(growth=10, always_unpacked=1_000)
    packed = gzip.compress(b"a\n" + b"1\n" * 50_000)
    with pytest.raises(DataError, match="without gzip"):
        ingest(store, sealed(store, packed), format="csv", limits=limits)
    assert ingest(store, sealed(store, packed), format="csv")


def test_a_file_that_takes_too_long_is_given_up(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_process, "_work", _stay)
    limits = ParsingLimits(seconds=0.0, memory_bytes=2**30)
    with pytest.raises(DataError, match="an operator can raise the limits") as refused:
        parsed(store, b"age\n1\n", limits=limits)
    assert "more time" in refused.value.problem


def _vanish(task: Any, answer: Connection) -> None:
    os._exit(1)


def _stay(task: Any, answer: Connection) -> None:
    time.sleep(600)


def _tell(task: Any, answer: Connection) -> None:
    answer.send_bytes(json.dumps(task).encode())


def test_a_reader_that_vanishes_is_told_of_in_words() -> None:
    with pytest.raises(DataError, match="an operator can raise the limits") as refused:
        upload_process._answer(_vanish, None, 300)
    assert "broke off" in refused.value.problem


def test_a_reader_that_stays_is_ended() -> None:
    with pytest.raises(DataError, match="an operator can raise the limits"):
        upload_process._answer(_stay, None, 0.01)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("ParameterError", ParameterError), ("UnknownColumnError", DataError), ("os", DataError), ("x", DataError)],
)
def test_errors_come_back_as_they_are_where_they_can(kind: str, expected: type[Exception]) -> None:
    assert UnknownColumnError is not DataError
    with pytest.raises(expected, match="mend it") as refused:
        upload_process._answer(_tell, {"kind": kind, "problem": "It is wrong.", "fix": "mend it."}, 300)
    assert type(refused.value) is expected


def test_a_reader_has_no_key_of_the_hub(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []

    def listen(work: Any, task: Any, seconds: float) -> dict[str, Any]:
        told.append(task)
        raise DataError("stop", fix="stop")

    monkeypatch.setattr(upload_process, "_answer", listen)
    secret = sealed(store, b"another file")
    with pytest.raises(DataError, match="stop"):
        parsed(store, b"age\n1\n")
    (task,) = told
    assert task.key != store.master_key.to_text()
    theirs = BlobStore(store.folder, MasterKey.from_text(task.key))
    assert theirs.open(task.upload).read() == b"age\n1\n"
    with pytest.raises(DecryptionError):
        theirs.open(secret)


def _leave_a_draft(task: Any, answer: Connection) -> None:
    """Stand for a reader that is ended while it writes, and after it has written something whole."""
    theirs = BlobStore(task.folder, MasterKey.from_text(task.key))
    writer = theirs.writer(limit_bytes=2**20)
    writer.write(b"a piece")
    theirs.write(io.BytesIO(b"whole"), limit_bytes=2**20)
    if len(list(theirs.folder.iterdir())) != 3:  # the upload, the draft and the whole file
        _tell({"kind": "DataError", "problem": "Nothing was left.", "fix": "mend the test."}, answer)
    os._exit(1)


def test_a_reader_that_is_ended_leaves_nothing(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_process, "_work", _leave_a_draft)
    upload = sealed(store, b"age\n1\n")
    with pytest.raises(DataError, match="broke off"):
        parse_upload(store, upload, format="csv", schema=None, missing=(), limits=PLENTY)
    assert list(store.folder.rglob("*")) == [store.path(upload.id)]
    store.verify(upload)


def test_a_reader_never_takes_the_place_of_another_file(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a reader that was taken over says is the name of its table cannot be that of somebody else's."""
    other = sealed(store, b"another file")

    def claim(work: Any, task: Any, seconds: float) -> dict[str, Any]:
        theirs = BlobStore(task.folder, MasterKey.from_text(task.key))
        found = theirs.write(io.BytesIO(b"rows"), limit_bytes=2**20)
        theirs.path(found.id).rename(theirs.path(other.id))
        wrapped = theirs.master_key.wrap(DataKey.generate(), purpose="blob", object_id=other.id).hex()
        return {"blob": {"id": other.id, "wrapped_key": wrapped, "size": 4, "sha256": found.sha256}}

    monkeypatch.setattr(upload_process, "_answer", claim)
    with pytest.raises(FileExistsError):
        parsed(store, b"age\n1\n")
    store.verify(other)


def test_few_uploads_are_read_at_a_time(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = threading.BoundedSemaphore(1)
    monkeypatch.setattr(upload_process, "_slots", taken)
    monkeypatch.setattr(upload_process, "WAITING_SECONDS", 0.0)
    with taken, pytest.raises(TooManyRequestsError, match="try again in some minutes") as refused:
        parsed(store, b"age\n1\n")
    assert refused.value.wait_seconds == 60


def test_reading_in_this_process_gives_the_same_and_cleans_up(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other process does, done here, where it can be watched."""

    def here(work: Any, task: Any, seconds: float) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(upload_process._parse(task)))
        return found

    monkeypatch.setattr(upload_process, "_answer", here)
    assert parsed(store, b"age\n1\n").layout.columns == {"age": StorageType.INTEGER}

    def fail(*_: Any) -> None:
        raise DataError("no layout", fix="mend it")

    before = set(store.folder.iterdir())
    monkeypatch.setattr(upload_process, "layout_of", fail)
    with pytest.raises(DataError, match="mend it"):
        parsed(store, b"age\n2\n")
    assert len(set(store.folder.iterdir()) - before) == 1, "the upload itself, which the caller deletes"
