from __future__ import annotations

import gzip
import io
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.core.random import SeededRandomSource
from cloister.crypto.keys import MasterKey
from cloister.data.columns import Column
from cloister.data.measures import Sum
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.data.values import StorageType
from cloister.errors import CloisterError, DataError, DataWarning, DecryptionError, ParameterError, SourceNotFoundError
from cloister.hub.store._upload_checks import UploadLimits, plain_text
from cloister.hub.store.blobs import Blob, BlobStore
from cloister.hub.store.sealed_tables import empty_table, ingest, layout_of, open_sealed_table
from tests.support.thoroughness import examples

SECRET = "SECRETCELL"
Format = Literal["csv", "parquet"]


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs", MasterKey.generate())


def put(store: BlobStore, content: bytes | str) -> Blob:
    raw = content.encode() if isinstance(content, str) else content
    return store.write(io.BytesIO(raw), limit_bytes=2**30)


def sealed(store: BlobStore, content: bytes | str, kind: Format = "csv", **options: Any) -> Table:
    return open_sealed_table(store, ingest(store, put(store, content), format=kind, **options))


def packed(table: pa.Table, **options: Any) -> bytes:
    output = io.BytesIO()
    pq.write_table(table, output, **options)
    return output.getvalue()


def files(store: BlobStore) -> list[Path]:
    return sorted(store.path("0" * 32).parent.iterdir())


def refused(store: BlobStore, content: bytes | str, kind: Format = "csv", **options: Any) -> DataError:
    upload = put(store, content)
    with pytest.raises(DataError) as caught:
        ingest(store, upload, format=kind, **options)
    assert SECRET not in str(caught.value)
    assert [path.name for path in files(store)] == [upload.id]
    store.delete(upload)
    return caught.value


def assert_alike(one: Table, other: Table, *, sniffed: bool = True) -> None:
    assert one.columns == other.columns
    assert one.types == other.types
    assert one.engine.sniffed == other.engine.sniffed or not sniffed
    assert one.to_arrow().equals(other.to_arrow())
    for name in one.columns:
        assert one.frequencies([name]).equals(other.frequencies([name]))


CSVS = {
    "quotes": 'a,b\n"x ""y"" z",1\n",",2\n',
    "newlines in cells": 'a,b\n"one\ntwo",1\n"three\r\nfour",2\n',
    "byte-order mark": "\ufeffa,b\nx,1\n",
    "semicolons": "a;b;c\n1,5;x;2020-01-31\n2,5;;2021-02-28\n",
    "windows line ends": "a,b\r\nx,1\r\ny,2\r\n",
    "types": "i,r,b,d,t,z,e\n1,1.5,true,2020-01-31,2020-01-31 10:00:00,007,\n-2,nan,FALSE,1999-12-31,"
    "2020-01-31T10:00:00.123456Z,010,\n,inf,,,,,\n",
    "header only": "a,b\n",
    "one column": "a\n1\n2\n",
    "names that differ in case": "a,A,select,ä b\n1,2,3,4\n",
    "unicode": "näme,日本\nÅsa,☃\n\U0001f600,x\n",
}


@pytest.mark.parametrize("name", CSVS)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_sealed_table_is_the_table_that_open_table_opens(
    store: BlobStore, tmp_path: Path, name: str, is_packed: bool
) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(CSVS[name].encode())
    content = gzip.compress(path.read_bytes()) if is_packed else path.read_bytes()
    assert_alike(open_table(path), sealed(store, content))
    assert len(files(store)) == 2


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16"])
def test_other_encodings(store: BlobStore, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\nÅsa,1\nJosé,2\n", encoding=encoding)
    expected = open_table(path, encoding=encoding)
    assert_alike(expected, sealed(store, path.read_bytes(), encoding=encoding))
    assert_alike(expected, sealed(store, gzip.compress(path.read_bytes()), encoding=encoding))


def test_missing_markers_and_stated_types(store: BlobStore, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("zip,age,x\n07620,44,?\n90210,?,b\n1,none,?\n")
    described = Schema([Column(name="zip", storage=StorageType.TEXT), Column(name="age", storage=StorageType.INTEGER)])
    upload = put(store, path.read_bytes())
    blob = ingest(store, upload, format="csv", schema=described, missing=("?",))
    table = open_sealed_table(store, blob, described)
    assert_alike(open_table(path, described, missing=("?",)), table)
    assert table.engine.sniffed == {"x"}
    assert table.types["age"] is StorageType.INTEGER
    assert table.schema is described


def test_parquet_of_many_types(store: BlobStore, tmp_path: Path) -> None:
    import datetime as dt

    stamps = [dt.datetime(2020, 1, 31, 10, 0, 0, 5), None]
    rows = pa.table(
        {
            "i": pa.array([1, None], pa.int8()),
            "u": pa.array([2**63, 1], pa.uint64()),
            "f": pa.array([1.5, float("nan")], pa.float32()),
            "s": pa.array(["x", None]).dictionary_encode(),
            "ns": pa.array(stamps, pa.timestamp("ns")),
            "utc": pa.array(stamps, pa.timestamp("us", tz="UTC")),
            "d": pa.array([dt.date(2020, 1, 31), None]),
            "b": pa.array([True, None]),
            "c": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
            "n": pa.nulls(2),
            "A": [1, 2],
            "a": [3, 4],
        }
    )
    path = tmp_path / "data.parquet"
    path.write_bytes(packed(rows))
    got = sealed(store, path.read_bytes(), "parquet")
    expected = open_table(path)
    assert expected.columns[-1] != "a"
    assert got.columns == tuple(rows.column_names)
    assert tuple(got.types.values()) == tuple(expected.types.values())
    assert got.to_arrow().rename_columns(expected.columns).equals(expected.to_arrow())
    assert got.to_arrow().column("f").to_pylist() == [1.5, None]
    assert got.engine.sniffed == frozenset()


@pytest.mark.parametrize("name", ["adult.csv", "adult_complete_9.csv"])
def test_adult_has_the_same_frequencies_sealed(store: BlobStore, shared_data: Path, name: str) -> None:
    path = shared_data / "adult" / name
    plain = open_table(path, missing=("?",))
    table = sealed(store, path.read_bytes(), missing=("?",))
    assert_alike(plain, table)
    columns, measures = ["sex", "education", "salary-class"], {"age": Sum("age", bounds=(0, 100))}
    one, other = (
        opened.frequencies(columns, where="age > 30 AND race <> 'White'", measures=measures)
        for opened in (plain, table)
    )
    assert one.equals(other)
    assert 0 < one.total < plain.count()
    assert_alike(plain, sealed(store, packed_table(plain), "parquet"), sniffed=False)


def packed_table(table: Table) -> bytes:
    return packed(table.to_arrow(), row_group_size=5_000)


# Nothing in the clear ------------------------------------------------------------------------------------------------


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder and a folder for temporary files, in which nothing readable may ever be."""
    working, temporary = tmp_path / "working", tmp_path / "temporary"
    working.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(working)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(temporary))
    return tmp_path


@pytest.mark.parametrize("how", ["plain", "gzip", "cp1252", "parquet"])
def test_no_cell_is_ever_on_the_disk(apart: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    seen: list[bytes] = []
    removed = Path.unlink

    def look_and_remove(path: Path, missing_ok: bool = False) -> None:
        if path.exists():
            seen.append(path.read_bytes())
        removed(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", look_and_remove)
    store = BlobStore(apart / "blobs", MasterKey.generate())
    text = "name,number\n" + "".join(f"{SECRET}{number % 1000},{number}\n" for number in range(60_000))
    content = {
        "plain": text.encode(),
        "gzip": gzip.compress(text.encode()),
        "cp1252": text.encode("cp1252"),
        "parquet": packed(pa.table({"name": [f"{SECRET}{number}" for number in range(60_000)]}), compression="none"),
    }[how]
    kind: Format = "parquet" if how == "parquet" else "csv"
    table = sealed(store, content, kind, encoding="cp1252" if how == "cp1252" else "utf-8")
    assert table.frequencies(["name"]).total == 60_000
    assert table.to_arrow().num_rows == 60_000
    written = [path.read_bytes() for path in apart.rglob("*") if path.is_file()]
    assert len(seen) >= (4 if how in ("gzip", "cp1252") else 2)
    assert len(written) == 2
    assert all(SECRET.encode() not in raw for raw in (*written, *seen))
    assert list((apart / "working").iterdir()) == list((apart / "temporary").iterdir()) == []


@pytest.mark.slow
def test_a_query_that_would_spill_fails_instead(apart: Path) -> None:
    store = BlobStore(apart / "blobs", MasterKey.generate())
    rows = pa.table({"name": [f"{SECRET}{number}" * 10 for number in range(300_000)]})
    blob = ingest(store, put(store, packed(rows)), format="parquet")
    table = open_sealed_table(store, blob, limits=UploadLimits(memory="24MiB"))
    with pytest.raises(DataError, match="have the limit raised"):
        table.frequencies(["name"])
    assert list((apart / "working").iterdir()) == list((apart / "temporary").iterdir()) == []
    assert open_sealed_table(store, blob).frequencies(["name"]).total == 300_000


def test_a_process_can_keep_all_its_databases_in_memory(apart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.data.engines import duckdb

    monkeypatch.setattr(duckdb, "_CONFIGURATION", dict(duckdb._CONFIGURATION))
    asked = "SELECT current_setting('temp_directory')"
    [(usual,)] = duckdb.connect().sql(asked).fetchall()
    assert Path(usual).is_absolute()  # a folder of its own for each database, elsewhere than where it was started
    duckdb.forbid_spilling()
    assert duckdb.connect().sql(asked).fetchall() == [("",)]


def test_the_connection_reads_this_file_only(store: BlobStore, tmp_path: Path) -> None:
    import duckdb

    (tmp_path / "other.csv").write_text("a\n1\n")
    table = sealed(store, "a,b\n1,2\n")
    connection = table.engine._connection  # type: ignore[attr-defined]
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
        f"SELECT * FROM sniff_csv('{tmp_path}/other.csv')",
        f"SELECT * FROM read_text('{tmp_path}/other.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/leak.csv'",
        f"ATTACH '{tmp_path}/leak.db'",
        "SELECT * FROM read_parquet('sealed://other')",
        "COPY (SELECT 1) TO 'sealed://file'",
        "SET temp_directory = '.'",
        "SET enable_external_access = true",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(sql)
    assert connection.execute("SELECT current_setting('temp_directory')").fetchall() == [("",)]
    assert {path.name for path in tmp_path.iterdir()} == {"other.csv", "blobs"}
    assert table.count() == 1


# Damage --------------------------------------------------------------------------------------------------------------


def wide(rows: int = 200_000) -> pa.Table:
    noise = SeededRandomSource(3).words(rows)
    return pa.table({"number": noise.astype("int64"), "group": (noise % 7).astype("int64")})


def test_damage_is_called_damage_by_whatever_query_meets_it(store: BlobStore) -> None:
    blob = ingest(store, put(store, packed(wide())), format="parquet")
    table = open_sealed_table(store, blob)
    derived = table.engine.derive(*_all_columns(table), {})
    path = store.path(blob.id)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 1
    path.write_bytes(raw)
    for one in (table, Table(derived), open_sealed_table(store, blob)):
        with pytest.raises(DecryptionError):
            one.frequencies([], measures={"s": Sum(one.columns[0], bounds=(0, 1))})
        with pytest.raises(DecryptionError):
            one.to_arrow()
        with pytest.raises(DecryptionError):
            one.write(path.with_name("copy.parquet"))


def _all_columns(table: Table) -> tuple[Any, Any]:
    from cloister.data.engines.base import select_all

    return select_all(table.engine)


def test_damage_to_an_upload_is_found_when_it_is_read(store: BlobStore) -> None:
    lines = "number,text\n" + "".join(f"{number},some words\n" for number in range(100_000))
    for content, kind in (
        (lines.encode(), "csv"),
        (gzip.compress(lines.encode(), 1), "csv"),
        (packed(wide()), "parquet"),
    ):
        upload = put(store, content)
        path = store.path(upload.id)
        raw = bytearray(path.read_bytes())
        raw[300_000 if len(raw) > 600_000 else len(raw) // 2] ^= 1
        path.write_bytes(raw)
        with pytest.raises(DecryptionError):
            ingest(store, upload, format=kind)  # type: ignore[arg-type]
        store.delete(upload)
    assert files(store) == []


def test_a_shortened_or_swapped_table_does_not_open(store: BlobStore) -> None:
    one = ingest(store, put(store, packed(wide())), format="parquet")
    other = ingest(store, put(store, packed(wide())), format="parquet")
    with pytest.raises(DecryptionError):
        open_sealed_table(store, replace(one, wrapped_key=other.wrapped_key))
    with pytest.raises(DecryptionError):
        open_sealed_table(BlobStore(store.path(one.id).parent, MasterKey.generate()), one)
    path = store.path(one.id)
    path.write_bytes(path.read_bytes()[: -(2**18 + 16)])
    with pytest.raises(DecryptionError):
        open_sealed_table(store, one)


def test_a_blob_that_is_no_table_does_not_open(store: BlobStore) -> None:
    for content in (b"a,b\n1,2\n", packed(wide(10)), b""):
        with pytest.raises(DecryptionError):
            layout_of(store, put(store, content))


def test_a_deleted_table_answers_no_more_questions(store: BlobStore) -> None:
    blob = ingest(store, put(store, packed(wide())), format="parquet")
    table = open_sealed_table(store, blob)
    assert table.count() == 200_000
    store.delete(blob)
    with pytest.raises(SourceNotFoundError, match="backup"):
        table.frequencies(["group"])


def test_a_disk_that_is_full_leaves_no_table(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.core import atomic_files
    from cloister.errors import CryptoError

    upload = put(store, packed(wide()))

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    real, calls = os.write, itertools.count()

    def write(descriptor: int, content: bytes) -> int:
        return refuse() if next(calls) > 1 else real(descriptor, content)

    monkeypatch.setattr(atomic_files.os, "write", write)
    with pytest.raises(CryptoError, match="make room"):
        ingest(store, upload, format="parquet")
    assert [path.name for path in files(store)] == [upload.id]


def test_queries_close_what_they_open(store: BlobStore) -> None:
    table = sealed(store, packed(wide(), row_group_size=10_000), "parquet")
    table.frequencies(["group"])
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        table.frequencies(["group"])
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


# Bad uploads ---------------------------------------------------------------------------------------------------------

RAGGED = f"a,b\n1,2\n{SECRET},2,3\n"


@pytest.mark.parametrize(
    ("content", "problem", "fix"),
    [
        (b"", "is empty", "header line"),
        (b"\n\n", "is empty", "header line"),
        (RAGGED, "line 3, has more or fewer cells", "one cell per column"),
        (f"a,b\n1,2\n{SECRET}\n", "line 3, has more or fewer cells", "one cell per column"),
        (f'a,b\n1,2\n"{SECRET},2\n', "quote that is never closed", "close it"),
        (b"a,b\n" + SECRET.encode() + b"\xff\xfe,2\n", "is not UTF-8 text", "latin-1"),
        (packed(pa.table({"a": [SECRET]})), "Parquet file, not CSV", "choose Parquet"),
        (b"PK\x03\x04" + SECRET.encode(), "zip archive", "unpack it"),
        (b"\xd0\xcf\x11\xe0" + SECRET.encode(), "Excel workbook", "save the sheet"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16", "utf-16"),
        (gzip.compress(RAGGED.encode(), mtime=0), "line 3, has more or fewer cells", "one cell per column"),
        (gzip.compress(RAGGED.encode() * 100, mtime=0)[:-9], "not a complete gzip file", "copy it again"),
        (gzip.compress(RAGGED.encode() * 100, mtime=0)[:40], "not a complete gzip file", "copy it again"),
        (gzip.compress(RAGGED.encode(), mtime=0) + b"garbage", "not a complete gzip file", "copy it again"),
        (gzip.compress(gzip.compress(b"a,b\n1,2\n", mtime=0), mtime=0), "compressed with gzip", "csv.gz"),
        (gzip.compress(b"", mtime=0), "is empty", "header line"),
        (f"a,a\n{SECRET},2\n", "Column 1 of the upload has the same name", "its own name"),
        (f"a,\n{SECRET},2\n", "Column 2 of the upload has no name", "every column a name"),
        (f"a, \n{SECRET},2\n", "Column 2 of the upload has no name", "every column a name"),
        (f"{SECRET * 30},b\n1,2\n", "name of column 1", "shorten it"),
        (f"10,20,30\n4,5,{SECRET}\n", "seems to be no header", "names of the columns"),
        (",".join(f"c{number}" for number in range(2_001)) + "\n", "2,001 columns; at most 2,000", "leave columns out"),
        ("a\n" + SECRET * 300_000 + "\n", "longer than two million", "shorten"),
    ],
)
def test_bad_csv_is_refused_in_our_own_words(store: BlobStore, content: bytes | str, problem: str, fix: str) -> None:
    error = refused(store, content)
    assert problem in error.problem
    assert fix in error.fix


PARQUET = packed(pa.table({"a": [SECRET] * 1000, "b": range(1000)}))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a Parquet file"),
        (RAGGED.encode(), "not a Parquet file"),
        (gzip.compress(PARQUET), "a gzip file"),
        (b"PAR1", "not a complete Parquet file"),
        (b"PAR1PAR1", "not a complete Parquet file"),
        (PARQUET[:-1], "not a complete Parquet file"),
        (PARQUET[: len(PARQUET) // 2], "not a complete Parquet file"),
        (PARQUET[:-8] + b"\xff\xff\xff\x7fPAR1", "not a complete Parquet file"),
        (PARQUET[:-8] + b"\0\0\0\0PAR1", "not a complete Parquet file"),
        (PARQUET[:4] + PARQUET[500:], "could not be read to its end"),
        (packed(pa.table([[SECRET], [1]], names=["a", "a"])), "Column 1 of the upload has the same name"),
        (packed(pa.table([[SECRET], [1]], names=["a", ""])), "Column 2 of the upload has no name"),
        (packed(pa.table({"a": [[1, 2]]})), "which engines spell differently"),
        (packed(pa.table({"a": [SECRET.encode()]})), "which engines spell differently"),
    ],
)
def test_bad_parquet_is_refused_in_our_own_words(store: BlobStore, content: bytes, problem: str) -> None:
    assert problem in refused(store, content, "parquet").problem


def test_a_format_that_is_not_known(store: BlobStore) -> None:
    with pytest.raises(ParameterError, match='format="csv"'):
        ingest(store, put(store, "a\n1\n"), format="xlsx")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="use one of"):
        ingest(store, put(store, "a\n1\n"), format="csv", encoding="ebcdic")


def test_text_of_another_encoding_is_refused(store: BlobStore) -> None:
    content = "a,b\n".encode("utf-16") + b"\x00\xd8x"
    assert "is not UTF-16 text" in refused(store, content, encoding="utf-16").problem
    assert "is not CP1252 text" in refused(store, b"a,b\n\x81,1\n", encoding="cp1252").problem


def test_parquet_without_columns_is_refused(store: BlobStore) -> None:
    assert "no columns" in refused(store, packed(pa.table({})), "parquet").problem


# Bombs ---------------------------------------------------------------------------------------------------------------

SMALL = UploadLimits(rows=1000, decoded_bytes=2**20, cell_bytes=1000)


def test_texts_that_unfold_are_stopped(store: BlobStore) -> None:
    bomb = gzip.compress(b"a\n" + b"1\n" * 2**25)
    assert len(bomb) < 2**17
    assert "larger when it is unpacked" in refused(store, bomb, limits=SMALL).problem
    assert "larger when it is unpacked" in refused(store, b"a\n" + b"1\n" * 2**20, limits=SMALL).problem


@pytest.mark.parametrize("size", [2**20 - 2, 2**20, 5 * 2**20 + 7])
def test_gzip_comes_out_whole_whatever_its_length(store: BlobStore, size: int) -> None:
    text = b"a,b\n" + b"1,2\n" * (size // 4)
    for level in (1, 9):
        packed_text = io.BytesIO(gzip.compress(text, level))
        assert (
            b"".join(plain_text(packed_text, Path("upload.csv"), "utf-8", UploadLimits(), packed_bytes=2**20)) == text
        )


def test_gzip_in_many_members_is_one_text(store: BlobStore) -> None:
    members = gzip.compress(b"a,b\n") + b"".join(gzip.compress(b"%d,x\n" % number) for number in range(500))
    assert sealed(store, members).count() == 500
    for path in files(store):
        path.unlink()
    bomb = gzip.compress(b"a\n") + gzip.compress(b"1\n" * 2**20) * 5
    assert "larger when it is unpacked" in refused(store, bomb, limits=SMALL).problem


def test_too_many_rows_are_stopped(store: BlobStore) -> None:
    assert "1,000 rows" in refused(store, "a\n" + "1\n" * 1001, limits=SMALL).problem
    bomb = packed(pa.table({"a": pa.array([1]).take(pa.array([0] * 5_000_000))}))
    assert len(bomb) < 2**18
    assert "1,000 rows" in refused(store, bomb, "parquet", limits=SMALL).problem
    assert "1,000,000 rows" in refused(store, bomb, "parquet", limits=UploadLimits(rows=10**6)).problem


def test_a_long_text_that_is_repeated_by_reference_is_stopped_before_it_is_copied(store: BlobStore) -> None:
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), pa.array([SECRET * 100_000]))
    bomb = packed(pa.table({"a": long}))
    assert len(bomb) < 2**20
    assert "larger when it is unpacked" in refused(store, bomb, "parquet").problem
    roomy = UploadLimits(decoded_bytes=2**50, cell_bytes=10**5)
    assert "A cell of the upload" in refused(store, bomb, "parquet", limits=roomy).problem


def test_numbers_that_unfold_are_stopped(store: BlobStore) -> None:
    zeros = pa.array([0]).take(pa.array([0] * 100_000))
    bomb = packed(pa.table({f"c{number}": zeros for number in range(20)}))
    limits = UploadLimits(decoded_bytes=10 * 2**20)
    assert "larger when it is unpacked" in refused(store, bomb, "parquet", limits=limits).problem


# Whatever is uploaded ------------------------------------------------------------------------------------------------

FUZZ = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(150, usual=50))
FUZZED = packed(pa.table({"a": [f"{SECRET}{n % 9}" for n in range(300)], "b": range(300), "c": [0.5] * 300}))


def failure_of(opening: Callable[[], Table]) -> CloisterError | None:
    try:
        opening().to_arrow()
    except CloisterError as error:
        return error
    return None


def survives(store: BlobStore, content: bytes, kind: Format) -> None:
    limits = UploadLimits(rows=10_000, decoded_bytes=2**24, memory="256MiB")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        error = failure_of(
            lambda: open_sealed_table(store, ingest(store, put(store, content), format=kind, limits=limits))
        )
    assert type(error) in (NoneType, DataError)
    assert SECRET not in str(error)
    for path in files(store):
        path.unlink()


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_damaged_parquet_is_read_or_refused(store: BlobStore, data: st.DataObject) -> None:
    damaged = bytearray(FUZZED)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    survives(store, bytes(damaged), "parquet")


@pytest.mark.slow
@FUZZ
@given(
    content=st.one_of(st.binary(max_size=200), st.text(alphabet='ab,;"\n\r\t 01\ufeffä\0', max_size=80).map(str.encode))
)
def test_any_bytes_are_read_as_csv_or_refused(store: BlobStore, content: bytes) -> None:
    survives(store, content, "csv")


@pytest.mark.slow
@FUZZ
@given(data=st.data())
def test_damaged_gzip_is_read_or_refused(store: BlobStore, data: st.DataObject) -> None:
    damaged = bytearray(gzip.compress(b"a,b\n" + b"x,1\n" * 50))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    survives(store, bytes(damaged), "csv")


# Empty twins ---------------------------------------------------------------------------------------------------------


def test_an_empty_table_has_everything_but_rows(store: BlobStore) -> None:
    blob = ingest(store, put(store, CSVS["types"]), format="csv")
    described = Schema([Column(name="i", kind="numeric", bounds=(0, 10))])
    table, layout = open_sealed_table(store, blob, described), layout_of(store, blob)
    empty = empty_table(layout.columns, described, sniffed=layout.sniffed)
    assert empty.columns == table.columns
    assert empty.types == table.types == layout.columns
    assert empty.engine.sniffed == table.engine.sniffed == set("irbdtze")
    assert empty.schema is described
    assert empty.count() == 0
    assert empty.to_arrow().schema == table.to_arrow().schema
    assert empty.frequencies(["i"], where="r > 1").total == 0


def test_an_empty_table_of_odd_names() -> None:
    columns = {"a": StorageType.TEXT, "A": StorageType.INTEGER, 'se"lect': StorageType.DATE}
    assert empty_table(columns).types == columns
