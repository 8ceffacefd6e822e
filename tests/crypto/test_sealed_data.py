from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.core import atomic_files
from cloister.core.random import SeededRandomSource
from cloister.crypto.keys import DataKey
from cloister.crypto.sealed_data import HEADER_BYTES, SealedReader, SealedWriter
from cloister.errors import CryptoError, DecryptionError, ParameterError

CHUNK = 2**16
SEALED_CHUNK = CHUNK + 16
KEY = DataKey.generate()
CONTENT = SeededRandomSource(1).random_bytes(3 * CHUNK + 1234)
REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def sealed(path: Path, content: bytes = CONTENT, *, key: DataKey = KEY, associated: bytes = b"file 1") -> bytes:
    with SealedWriter(path, key=key, associated=associated, chunk_bytes=CHUNK) as writer:
        writer.write(content)
    return path.read_bytes()


def read(path: Path, *, key: DataKey = KEY, associated: bytes = b"file 1") -> bytes:
    with SealedReader(path, key=key, associated=associated) as reader:
        return reader.read()


def refuses(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    with pytest.raises(DecryptionError):
        read(path)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 1234])
def test_every_length_comes_back(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a"
    raw = sealed(path, CONTENT[:size])
    assert read(path) == CONTENT[:size]
    assert len(raw) == HEADER_BYTES + size + 16 * max(1, -(-size // CHUNK))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


@REUSED
@given(sizes=st.lists(st.integers(0, 2 * CHUNK + 5), max_size=6), exponent=st.integers(16, 20))
def test_the_pieces_in_which_it_is_written_do_not_matter(tmp_path: Path, sizes: list[int], exponent: int) -> None:
    path = tmp_path / "a"
    path.unlink(missing_ok=True)
    content = b""
    with SealedWriter(path, key=KEY, chunk_bytes=1 << exponent) as writer:
        for number, size in enumerate(sizes):
            content += bytes([number]) * size
            assert writer.write(memoryview(content)[len(content) - size :]) == size
        assert writer.tell() == writer.size == len(content)
    assert read(path, associated=b"") == content
    assert writer.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@REUSED
@given(data=st.data())
def test_any_place_can_be_read(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a"
    if not path.exists():
        sealed(path)
    plain = io.BytesIO(CONTENT)
    with SealedReader(path, key=KEY, associated=b"file 1") as reader:
        assert reader.readable()
        assert reader.seekable()
        assert reader.size == len(CONTENT)
        for _ in range(5):
            start = data.draw(st.integers(0, len(CONTENT) + 10))
            count = data.draw(st.integers(-1, 2 * CHUNK))
            whence = data.draw(st.sampled_from([io.SEEK_SET, io.SEEK_END]))
            offset = start if whence == io.SEEK_SET else start - len(CONTENT) - 10
            with contextlib.suppress(ValueError):
                assert reader.seek(offset, whence) == plain.seek(offset, whence)
            assert reader.read(count) == plain.read(count)
            assert reader.tell() == plain.tell()


def test_it_is_a_file_to_the_standard_library(tmp_path: Path) -> None:
    path = tmp_path / "a"
    sealed(path, gzip.compress(CONTENT))
    with SealedReader(path, key=KEY, associated=b"file 1") as reader, gzip.open(reader) as unpacked:
        assert unpacked.read() == CONTENT
    with SealedReader(path, key=KEY, associated=b"file 1") as reader:
        buffer = bytearray(10)
        assert (reader.readinto(buffer), reader.seek(-5, io.SEEK_CUR)) == (10, 5)
        assert len(reader.readall()) == reader.size - 5
        with pytest.raises(ValueError, match="before the first byte"):
            reader.seek(-1)
    with pytest.raises(ValueError, match="closed"):
        reader.readline()


def test_threads_may_share_a_reader(tmp_path: Path) -> None:
    sealed(tmp_path / "a")
    with SealedReader(tmp_path / "a", key=KEY, associated=b"file 1") as reader, ThreadPoolExecutor(8) as pool:
        places = [(start * 977) % len(CONTENT) for start in range(400)]
        pieces = pool.map(lambda start: reader.read_at(start, 3000), places)
        assert list(pieces) == [CONTENT[start : start + 3000] for start in places]


@REUSED
@given(data=st.data())
def test_any_changed_bit_is_found(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a"
    raw = path.read_bytes() if path.exists() else sealed(path)
    regions = [(0, HEADER_BYTES)]
    for number in range(4):
        start = HEADER_BYTES + number * SEALED_CHUNK
        end = min(start + SEALED_CHUNK, len(raw))
        regions += [(start, start + 16), (start, end), (end - 16, end)]
    first, last = data.draw(st.sampled_from(regions))
    damaged = bytearray(raw)
    damaged[data.draw(st.integers(first, last - 1))] ^= 1 << data.draw(st.integers(0, 7))
    refuses(tmp_path / "damaged", bytes(damaged))


@pytest.mark.parametrize("byte", range(HEADER_BYTES))
def test_every_bit_of_the_header_counts(tmp_path: Path, byte: int) -> None:
    raw = sealed(tmp_path / "a")
    for bit in range(8):
        damaged = bytearray(raw)
        damaged[byte] ^= 1 << bit
        refuses(tmp_path / "damaged", bytes(damaged))


@pytest.mark.parametrize("chunks", range(4))
@pytest.mark.parametrize("more", [-17, -16, -1, 0, 1, 15, 16, 17, 500])
def test_a_shortened_file_is_refused_when_it_is_opened(tmp_path: Path, chunks: int, more: int) -> None:
    raw = sealed(tmp_path / "a")
    (tmp_path / "cut").write_bytes(raw[: max(HEADER_BYTES + chunks * SEALED_CHUNK + more, 0)])
    with pytest.raises(DecryptionError):
        SealedReader(tmp_path / "cut", key=KEY, associated=b"file 1")


@pytest.mark.parametrize("size", [0, CHUNK, 2 * CHUNK, 3 * CHUNK + 1234])
@pytest.mark.parametrize("added", [1, 16, 17, SEALED_CHUNK])
def test_a_lengthened_file_is_refused_when_it_is_opened(tmp_path: Path, size: int, added: int) -> None:
    raw = sealed(tmp_path / "a", CONTENT[:size])
    (tmp_path / "long").write_bytes(raw + (raw[HEADER_BYTES:] + bytes(added))[:added])
    with pytest.raises(DecryptionError):
        SealedReader(tmp_path / "long", key=KEY, associated=b"file 1")


def test_chunks_in_another_order_twice_or_from_another_file_are_found(tmp_path: Path) -> None:
    one = sealed(tmp_path / "a")
    other = sealed(tmp_path / "b")
    head, tail = one[:HEADER_BYTES], one[HEADER_BYTES + 3 * SEALED_CHUNK :]
    first, second, third = (one[HEADER_BYTES + n * SEALED_CHUNK :][:SEALED_CHUNK] for n in range(3))
    refuses(tmp_path / "c", head + second + first + third + tail)
    refuses(tmp_path / "c", head + first + first + third + tail)
    refuses(tmp_path / "c", head + first + third + tail)
    refuses(tmp_path / "c", head + first + second + third + third + tail)
    refuses(tmp_path / "c", head + first + second + third + other[HEADER_BYTES + 3 * SEALED_CHUNK :])
    refuses(tmp_path / "c", head + other[HEADER_BYTES:][:SEALED_CHUNK] + second + third + tail)
    refuses(tmp_path / "c", other[:HEADER_BYTES] + one[HEADER_BYTES:])


def test_a_file_opens_with_its_key_and_for_its_object_only(tmp_path: Path) -> None:
    sealed(tmp_path / "a")
    with pytest.raises(DecryptionError):
        read(tmp_path / "a", key=DataKey.generate())
    with pytest.raises(DecryptionError):
        read(tmp_path / "a", associated=b"file 2")


def test_equal_files_look_unrelated(tmp_path: Path) -> None:
    one, other = sealed(tmp_path / "a"), sealed(tmp_path / "b")
    same = sum(left == right for left, right in zip(one[HEADER_BYTES:], other[HEADER_BYTES:], strict=True))
    assert same < len(one) / 100
    zeros = sealed(tmp_path / "c", bytes(2 * CHUNK))
    assert zeros[HEADER_BYTES:][:CHUNK] != zeros[HEADER_BYTES + SEALED_CHUNK :][:CHUNK]


def test_an_error_or_a_bare_close_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), SealedWriter(tmp_path / "a", key=KEY) as writer:
        writer.write(CONTENT + "text")  # type: ignore[operator]
    with SealedWriter(tmp_path / "a", key=KEY) as writer:
        writer.write(CONTENT)
        writer.flush()
        assert writer.writable()
        assert len(list(tmp_path.iterdir())) == 1
        writer.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"more")


KILLED = """
import os, signal, sys
from pathlib import Path
from cloister.crypto.keys import DataKey
from cloister.crypto.sealed_data import SealedWriter
writer = SealedWriter(Path(sys.argv[1]), key=DataKey.generate(), chunk_bytes=2**16)
for _ in range(40):
    writer.write(b"PLAINTEXT-MARKER" * 1000)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_leaves_nothing_that_can_be_read(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a")], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(atomic_files.DRAFT_ENDING)
    raw = left.read_bytes()
    assert len(raw) > 4 * CHUNK
    assert b"MARKER" not in raw
    with pytest.raises(DecryptionError):
        SealedReader(left, key=KEY)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SealedWriter(tmp_path / "a", key=KEY, chunk_bytes=CHUNK)

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files.os, "write", refuse)
    with pytest.raises(CryptoError, match="make room") as caught:
        writer.write(CONTENT)
    assert "No space left" in caught.value.problem
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(atomic_files.os, "write", lambda descriptor, content: whole(descriptor, content[:1000]))
    sealed(tmp_path / "a")
    assert read(tmp_path / "a") == CONTENT


def test_short_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed(tmp_path / "a")
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, count, start: whole(descriptor, min(count, 1000), start))
    assert read(tmp_path / "a") == CONTENT


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    sealed(tmp_path / "a")
    with pytest.raises(CryptoError, match="cannot be written"):
        sealed(tmp_path / "a", b"other")
    assert read(tmp_path / "a") == CONTENT
    assert len(list(tmp_path.iterdir())) == 1


def test_missing_files_folders_and_odd_chunks(tmp_path: Path) -> None:
    with pytest.raises(CryptoError, match="backup"):
        SealedReader(tmp_path / "none", key=KEY)
    with pytest.raises(CryptoError, match="cannot be written"):
        SealedWriter(tmp_path / "none" / "a", key=KEY)
    for size in (2**15, 2**21, 2**17 - 1, 0):
        with pytest.raises(ParameterError, match="leave chunk_bytes out"):
            SealedWriter(tmp_path / "a", key=KEY, chunk_bytes=size)
