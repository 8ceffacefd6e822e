from __future__ import annotations

import io
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from cloister.crypto.keys import MasterKey, wrapping_version
from cloister.errors import DataError, DecryptionError, InternalError, SourceNotFoundError, TooLargeError
from cloister.hub.store.blobs import Blob, BlobStore

MARKER = b"PLAINTEXT-MARKER "
CONTENT = MARKER * 40_000


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs", MasterKey.generate())


def put(store: BlobStore, content: bytes = CONTENT) -> Blob:
    return store.write(io.BytesIO(content), limit_bytes=2**20)


def read(store: BlobStore, blob: Blob) -> bytes:
    with store.open(blob) as reader:
        return reader.read()


def files(store: BlobStore) -> list[Path]:
    return sorted(store.path("0" * 32).parent.iterdir())


def test_a_blob_comes_back(store: BlobStore) -> None:
    blob = put(store)
    assert read(store, blob) == CONTENT
    assert blob.size == len(CONTENT)
    assert store.path(blob.id).stat().st_mode & 0o777 == 0o600
    assert stat.S_IMODE(store.path(blob.id).parent.stat().st_mode) == 0o700
    store.verify(blob)
    assert "wrapped_key" not in repr(blob)


def test_names_are_random_and_nothing_is_in_the_clear(store: BlobStore) -> None:
    one, other = put(store), put(store)
    assert len({one.id, other.id}) == 2
    assert len({one.sha256, other.sha256}) == 2
    assert all(b"MARKER" not in path.read_bytes() for path in files(store))


def test_a_blob_piece_by_piece(store: BlobStore) -> None:
    with store.writer(limit_bytes=10) as writer:
        writer.write(b"12345")
        with pytest.raises(InternalError):
            _ = writer.blob
        writer.write(b"67890")
        assert (writer.tell(), writer.writable(), writer.closed) == (10, True, False)
        writer.flush()
    assert read(store, writer.blob) == b"1234567890"


@pytest.mark.parametrize(("limit", "words"), [(10, "10 bytes"), (2**16, "64 KiB"), (3 * 2**19, "1.5 MiB")])
def test_too_much_leaves_nothing(store: BlobStore, limit: int, words: str) -> None:
    assert store.write(io.BytesIO(bytes(limit)), limit_bytes=limit).size == limit
    with pytest.raises(TooLargeError, match="ask the operator") as caught:
        store.write(io.BytesIO(bytes(limit + 1)), limit_bytes=limit)
    assert words in caught.value.problem
    assert len(files(store)) == 1


def test_a_stream_that_breaks_leaves_nothing(store: BlobStore) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise ConnectionResetError
            return super().read(100)

    with pytest.raises(ConnectionResetError):
        store.write(Broken(CONTENT), limit_bytes=2**20)
    assert files(store) == []


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "a/b", "A" * 32, "0" * 31, "0" * 33, "0" * 31 + "\n", "0" * 32 + "\n"]
)
def test_ids_from_elsewhere_have_no_place(store: BlobStore, name: str) -> None:
    blob = put(store)
    with pytest.raises(DataError, match="the database has"):
        store.path(name)
    with pytest.raises(DataError, match="the database has"):
        store.open(replace(blob, id=name))
    with pytest.raises(DataError, match="the database has"):
        store.delete(replace(blob, id=name))


def test_a_deleted_blob_is_gone(store: BlobStore) -> None:
    blob = put(store)
    store.delete(blob)
    store.delete(blob)
    assert files(store) == []
    for ask in (store.open, store.verify):
        with pytest.raises(SourceNotFoundError, match="backup"):
            ask(blob)


def test_a_copy_of_a_deleted_blob_opens_with_no_other_key(store: BlobStore) -> None:
    blob, other = put(store), put(store)
    copied = store.path(blob.id).read_bytes()
    store.delete(blob)
    store.path(blob.id).write_bytes(copied)
    with pytest.raises(DecryptionError):
        store.open(replace(blob, wrapped_key=other.wrapped_key))


def test_swapped_files_and_rows_are_found(store: BlobStore) -> None:
    one, other = put(store), put(store)
    for swapped in (
        replace(one, id=other.id),
        replace(one, wrapped_key=other.wrapped_key),
        replace(other, id=one.id, sha256=one.sha256),
        replace(one, size=one.size - 1),
    ):
        with pytest.raises(DecryptionError):
            store.open(swapped)
    content = store.path(one.id).read_bytes()
    store.path(one.id).write_bytes(store.path(other.id).read_bytes())
    with pytest.raises(DecryptionError):
        store.open(one)
    with pytest.raises(DataError, match="backup"):
        store.verify(one)
    store.path(one.id).write_bytes(content)
    assert read(store, one) == CONTENT


def test_another_master_key_opens_nothing(store: BlobStore, tmp_path: Path) -> None:
    blob = put(store)
    with pytest.raises(DecryptionError):
        BlobStore(tmp_path / "blobs", MasterKey.generate()).open(blob)


def test_rotation_leaves_the_files_alone(store: BlobStore, tmp_path: Path) -> None:
    blob = put(store)
    raw = store.path(blob.id).read_bytes()
    rotated = store.master_key.rotate()
    newer = BlobStore(tmp_path / "blobs", rotated)
    assert read(newer, blob) == CONTENT
    renewed = newer.rewrap(blob)
    assert (wrapping_version(renewed.wrapped_key), renewed.sha256) == (2, blob.sha256)
    newest = BlobStore(tmp_path / "blobs", rotated.without(1))
    assert read(newest, renewed) == CONTENT
    assert store.path(blob.id).read_bytes() == raw
    with pytest.raises(DecryptionError):
        newest.open(blob)


def test_drafts_that_nobody_finishes_are_swept_when_they_are_old(store: BlobStore) -> None:
    kept = put(store)
    draft, young = (store.folder / f".{kept.id}.{number}.draft" for number in ("0011", "0022"))
    abandoned, busy = (store.folder / f".{number}.draft" for number in ("0033", "0044"))
    foreign = store.folder / "README"
    for folder in (abandoned, busy):
        folder.mkdir()
    inside = [abandoned / "piece", busy / "piece"]
    for path in (draft, young, foreign, *inside):
        path.write_bytes(b"")
    for path in (store.path(kept.id), draft, foreign, inside[0], abandoned, busy):
        os.utime(path, (0, 0))
    assert store.sweep() == 2
    assert set(files(store)) == {store.path(kept.id), young, busy, foreign}
    assert store.sweep(older_than=-60) == 2
    assert set(files(store)) == {store.path(kept.id), foreign}, "finished files stay, whatever a database knows"
    assert read(store, kept) == CONTENT


def test_a_draft_that_another_worker_removes_meanwhile_is_no_problem(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = store.folder / ".0011.draft"
    monkeypatch.setattr(Path, "glob", lambda _self, _pattern: iter([gone]))
    assert store.sweep() == 1


def test_what_is_made_in_a_folder_of_drafts_is_adopted_or_gone(store: BlobStore) -> None:
    upload = put(store)
    with store.drafting() as drafts:
        store.lend(upload, drafts)
        assert read(drafts, upload) == CONTENT
        kept, lost = put(drafts), put(drafts)
        store.adopt(kept, drafts)
        with pytest.raises(SourceNotFoundError):
            store.adopt(kept, drafts)
        store.lend(kept, drafts)
        with pytest.raises(FileExistsError):
            store.adopt(kept, drafts)
    assert set(files(store)) == {store.path(upload.id), store.path(kept.id)}
    assert read(store, kept) == read(store, upload) == CONTENT
    with pytest.raises(SourceNotFoundError):
        store.open(lost)
