from __future__ import annotations

import datetime as dt
import gzip
import math
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as arrow_dataset
import pyarrow.parquet as pq
import pytest

from cloister.core.random import SeededRandomSource
from cloister.data.engines import csv_input, files
from cloister.data.measures import CountPresent, Sum
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import (
    DataError,
    DataWarning,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    SchemaError,
    SourceNotFoundError,
)
from tests.support.thoroughness import audited

ROWS = pa.table({"sex": ["F", "M", None], "age": [30, 41, 30], "cost": [1.5, math.nan, None]})


def write(folder: Path, content: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def types_of(folder: Path, *cells: str) -> StorageType:
    lines = "\n".join(f"{cell};x" for cell in cells)
    return open_table(write(folder, f"value;other\n{lines}\n")).types["value"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-20", ""], StorageType.INTEGER),
        ([" 1", "2 "], StorageType.INTEGER),
        (["9223372036854775807"], StorageType.INTEGER),
        (["9223372036854775808"], StorageType.REAL),
        (["1", "2.5"], StorageType.REAL),
        (["1e3", ".5", "-inf", "NaN"], StorageType.REAL),
        (["07620", "90210"], StorageType.TEXT),
        (["1_000"], StorageType.TEXT),
        (["0x1A"], StorageType.TEXT),
        (["true", "False"], StorageType.BOOLEAN),
        (["yes", "no"], StorageType.TEXT),
        (["2020-02-29"], StorageType.DATE),
        (["2020-02-30"], StorageType.TEXT),
        (["2020-02-29 10:00", "2020-03-01T11:30:15.25"], StorageType.TIMESTAMP),
        (["1", "a"], StorageType.TEXT),
        (["2020-01-01", "7"], StorageType.TEXT),
        (["", ""], StorageType.TEXT),
    ],
)
def test_types_of_csv_cells(tmp_path: Path, cells: list[str], expected: StorageType) -> None:
    assert types_of(tmp_path, *cells) is expected


@pytest.mark.parametrize(("last", "expected"), [("x", StorageType.TEXT), ("2.5", StorageType.REAL)])
def test_cells_far_down_decide_too(tmp_path: Path, last: str, expected: StorageType) -> None:
    path = write(tmp_path, "n,empty\n" + "1,\n" * 50_000 + f"{last},\n")
    assert open_table(path).types == {"n": expected, "empty": StorageType.TEXT}


def test_empty_cells_are_missing_and_markers_only_if_asked(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n?,""\n7,\n8,x\n')
    assert open_table(path).frequencies(["a", "b"]).decoders == (("7", "8", "?"), ("x", None))
    marked = open_table(path, missing=("?",))
    assert marked.types["a"] is StorageType.INTEGER
    assert marked.count("a IS NULL") == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_the_header(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path, f'"a,;b"{delimiter}c\r\n1{delimiter}"x\ny"\r\n')
    assert open_table(path).to_arrow().to_pylist() == [{"a,;b": 1, "c": "x\ny"}]


def test_gzip_glob_and_parquet_give_the_same_rows(tmp_path: Path) -> None:
    write(tmp_path, gzip.compress(b"n\n1\n2\n"), "one.csv.gz")
    write(tmp_path, gzip.compress(b"n\n3\n"), "two.csv.gz")
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "all.parquet")
    from_csv = open_table(str(tmp_path / "*.csv.gz")).frequencies(["n"])
    assert from_csv.equals(open_table(tmp_path / "all.parquet").frequencies(["n"]))
    assert from_csv.decoders == ((1, 2, 3),)


def test_large_files_stay_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_IN_MEMORY", 3)
    path = write(tmp_path, "n\n1\n2\n")
    table = open_table(path)
    path.write_text("n\n5\nx\n")
    with pytest.raises(DataError, match="unchanged since it was opened"):
        table.to_arrow()


def test_odd_names_are_kept_and_bad_ones_are_repaired(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,"select ""x""",A,,a,column_4\n1,2,3,4,5,6\n')
    with pytest.warns(DataWarning, match='column 4 is now "column_4_2", column 5 is now "a_2"'):
        table = open_table(path)
    assert table.columns == ("a", 'select "x"', "A", "column_4_2", "a_2", "column_4")
    assert table.frequencies(["a_2", "A"]).decoders == ((5,), (3,))
    assert table.count('"select ""x""" = 2 AND A = 3 AND a = 1') == 1


def test_repaired_names_avoid_taken_ones(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match='column 4 is now "a_4"'):
        assert open_table(write(tmp_path, "a,a_2,a_3,a\n1,2,3,4\n")).columns == ("a", "a_2", "a_3", "a_4")


def test_a_header_may_have_line_breaks_in_quotes(tmp_path: Path) -> None:
    assert open_table(write(tmp_path, '"a\nb",c\n1,2\n')).columns == ("a\nb", "c")


def test_header_only_has_no_rows(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, "a,b"))
    assert (table.columns, table.count()) == (("a", "b"), 0)


def test_latin_1_and_utf_16_are_read_when_named(tmp_path: Path) -> None:
    for encoding in ("latin-1", "UTF-16", "latin1"):
        path = write(tmp_path, "größe,x\ncafé,1\n".encode(encoding))
        assert open_table(path, encoding=encoding).to_arrow().to_pylist() == [{"größe": "café", "x": 1}]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert open_table(write(tmp_path, b"\xef\xbb\xbfage\n3\n")).columns == ("age",)


@pytest.mark.parametrize(
    ("name", "content", "problem", "fix"),
    [
        ("empty.csv", b"", "is empty", "header line"),
        ("blank.csv", b"\n\n", "is empty", "header line"),
        ("ragged.csv", b"a,b\n1,2\nSECRET\n", "line 3, has more or fewer cells", "one cell per column"),
        ("wide.csv", b"a,b\n1,2\n1,2,SECRET\n", "line 3, has more or fewer cells", "one cell per column"),
        ("latin.csv", b"a,b\n1,SECR\xe9T\n", "is not UTF-8 text", 'encoding="latin-1"'),
        ("header.csv", b"a,SECR\xe9T\n1,2\n", "is not UTF-8 text", 'encoding="latin-1"'),
        ("open.csv", b'a,b\n1,"SECRET\n', "never closed", "close it"),
        ("after.csv", b'a,b\n1,"2"SECRET\n', "quote in the wrong place", "the whole cell"),
        ("mixed.csv", b"a,b\r\n1,2\n3,SECRET\r\n", "in one way and some in another", "line ends"),
        ("mixed.csv", b'a,b\n1,"2\r\n3"\r\n3,SECRET\n', "in one way and some in another", "line ends"),
        ("long.csv", b"a,b\n1,SECRET" + b"x" * 2_100_000 + b"\n3,4\n", "line 2, is longer", "shorten"),
        ("wide.csv", b"SECRET" * 50_000 + b",b\n1,2\n", "far too long", "header line"),
        ("huge.csv", b"SECRET" * 200_000 + b",b\n1,2\n", "far too long", "header line"),
        ("excel.csv", b"PK\x03\x04SECRET", "Excel workbook", "save the sheet"),
        ("old.csv", b"\xd0\xcf\x11\xe0SECRET", "Excel workbook", "save the sheet"),
        ("packed.csv", gzip.compress(b"a\nSECRET\n", mtime=0), "compressed with gzip", ".csv.gz"),
        ("named.csv", b"PAR1SECRET", "is a Parquet file", ".parquet"),
        ("wide16.csv", "a,b\n1,SECRET\n".encode("utf-16"), "is UTF-16 text", 'encoding="utf-16"'),
        ("big16.csv", b"\xfe\xff" + "a,b\n".encode("utf-16-be"), "larger byte first", "UTF-8"),
        ("data.csv", b"39,SECRET,2019-05-01,a@b.org\n40,x,2019-05-02,c@d.org\n", "to be no header", "names"),
        ("bad.csv.gz", b"SECRET", "not a complete gzip", "copy it again"),
        (
            "cut.csv.gz",
            gzip.compress(b"a,b\n" + SeededRandomSource(1).random_bytes(9000).hex().encode(), mtime=0)[:5000],
            "not a complete gzip",
            "copy it",
        ),
        ("bad.parquet", b"SECRET", "damaged or not a Parquet file", "copied completely"),
        ("data.xlsx", b"SECRET", "kind that is not known", "save spreadsheets as CSV"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: bytes, problem: str, fix: str) -> None:
    with pytest.raises(DataError) as caught:
        open_table(write(tmp_path, content, name))
    assert problem in caught.value.problem
    assert fix in caught.value.fix
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_lines_may_end_in_carriage_returns(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,"b\rc"\r1,x\r2,y\r')
    assert open_table(path).to_arrow().to_pylist() == [{"a": 1, "b\rc": "x"}, {"a": 2, "b\rc": "y"}]


def test_windows_text_that_is_none_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="not CP1252 text"):
        open_table(write(tmp_path, b"a\n" * 100_000 + b"SECR\x81T\n"), encoding="cp1252")
    monkeypatch.setattr(files, "_IN_MEMORY", 3)
    with pytest.raises(DataError, match="too large to be read as CP1252"):
        open_table(write(tmp_path, b"a\nx\n"), encoding="cp1252")


def test_windows_text_is_read_when_named(tmp_path: Path) -> None:
    path = write(tmp_path, "größe,€\n“café”,-1 €\n".encode("cp1252"))
    for encoding in ("cp1252", "Windows-1252"):
        assert open_table(path, encoding=encoding).to_arrow().to_pylist() == [{"größe": "“café”", "€": "-1 €"}]


@pytest.mark.parametrize("header", ["country,2019,2020,2021", "0,1,2,3", "1,2,3", "id,q1,q2", "a"])
def test_years_and_counted_columns_are_names(tmp_path: Path, header: str) -> None:
    row = ",".join("x" for _ in header.split(","))
    assert open_table(write(tmp_path, f"{header}\n{row}\n")).columns == tuple(header.split(","))


def test_a_header_with_many_values_gets_a_warning_that_does_not_quote_them(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="look like values") as caught:
        open_table(write(tmp_path, "39,SECRET,77516,Bachelors,never\n1,2,3,4,5\n"))
    assert not any("SECRET" in str(warning.message) or "77516" in str(warning.message) for warning in caught)


def test_a_file_that_vanishes_while_it_is_explained_gets_a_general_answer(tmp_path: Path) -> None:
    error = csv_input.explain_failure([tmp_path / "gone.csv"], "an invalid state", "utf-8")
    assert "could not be read as CSV" in error.problem


def test_other_csv_troubles_get_a_general_answer() -> None:
    error = csv_input.explain_failure([Path("a.csv"), Path("b.csv")], "something about SECRET", "utf-8")
    assert "one of the 1 files beside it) could not be read as CSV" in error.problem


def test_a_wrong_path_suggests_a_near_one(tmp_path: Path) -> None:
    write(tmp_path, "a\n1\n", "patients.csv")
    with pytest.raises(SourceNotFoundError, match=r'Did you mean "patients\.csv"\?'):
        open_table(tmp_path / "patient.csv")
    with pytest.raises(SourceNotFoundError, match="There is no file"):
        open_table(tmp_path / "nowhere" / "patient.csv")
    with pytest.raises(SourceNotFoundError, match="No file matches"):
        open_table(f"{tmp_path}/*.parquet")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/\*\.csv"):
        open_table(tmp_path)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a\n1\n")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(DataError, match="ask its owner"):
        open_table(path)


def test_files_of_several_kinds_or_layouts_are_not_one_table(tmp_path: Path) -> None:
    write(tmp_path, "a\n1\n", "one.csv")
    write(tmp_path, "b\n1\n", "two.csv")
    with pytest.raises(DataError, match="another header"):
        open_table(f"{tmp_path}/*.csv")
    pq.write_table(ROWS, tmp_path / "x.parquet")
    with pytest.raises(DataError, match="several kinds"):
        open_table(f"{tmp_path}/*")


def test_data_frames_arrow_and_relations_agree() -> None:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    sources: list[Any] = [
        ROWS,
        ROWS.to_batches()[0],
        ROWS.to_reader(),
        arrow_dataset.dataset(ROWS),
        ROWS.to_pandas(),
        pl.from_arrow(ROWS),
        pl.from_arrow(ROWS).lazy(),
        connection.sql("SELECT * FROM rows"),
    ]
    measures = {"cost": Sum("cost", bounds=(0, 10), granularity=0.5)}
    expected = open_table(sources[0]).frequencies(["sex", "age", "cost"], measures=measures)
    assert expected.total == 3
    for source in sources[1:]:
        assert open_table(source).frequencies(["sex", "age", "cost"], measures=measures).equals(expected)


def test_pandas_of_mixed_and_unusual_columns() -> None:
    stamp = dt.datetime(2020, 1, 1, 12)
    frame = pd.DataFrame(
        {
            "mixed": ["a", 1, None],
            "category": pd.Categorical(["x", "y", "x"]),
            "number": pd.Categorical([3, 3, 4]),
            "nothing": [None, None, None],
            "zoned": pd.to_datetime([stamp] * 3).tz_localize("Europe/Paris"),
            "small": np.array([1, 2, 3], dtype=np.int8),
            "wide": np.array([2**64 - 1, 0, 1], dtype=np.uint64),
            7: [1.5, 2.5, 3.5],
        }
    )
    table = open_table(frame)
    assert list(table.types.items()) == [
        ("mixed", StorageType.TEXT),
        ("category", StorageType.TEXT),
        ("number", StorageType.INTEGER),
        ("nothing", StorageType.TEXT),
        ("zoned", StorageType.TIMESTAMP),
        ("small", StorageType.INTEGER),
        ("wide", StorageType.TEXT),
        ("7", StorageType.REAL),
    ]
    assert table.frequencies(["mixed"]).decoders == (("1", "a", None),)
    assert table.frequencies(["zoned"]).decoders == ((dt.datetime(2020, 1, 1, 11),),)
    assert table.frequencies(["wide"]).decoders == (("0", "1", "18446744073709551615"),)


def test_decimals_are_real_or_integer_or_text() -> None:
    connection = duckdb.connect()
    relation = connection.sql(
        "SELECT 1.25::DECIMAL(9, 2) AS a, 7::DECIMAL(10, 0) AS b, 9::DECIMAL(30, 0) AS c, 5::HUGEINT AS d"
    )
    table = open_table(relation)
    assert table.frequencies(["a", "b", "c", "d"]).decoders == ((1.25,), (7,), ("9",), ("5",))


def test_a_relation_with_repeated_names_is_repaired() -> None:
    relation = duckdb.connect().sql("SELECT 1 AS a, 2 AS a")
    with pytest.warns(DataWarning, match="a_2"):
        table = open_table(relation)
    assert table.frequencies(["a", "a_2"]).decoders == ((1,), (2,))


def test_a_duckdb_file_is_opened_by_url(tmp_path: Path) -> None:
    path = tmp_path / "store.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            'CREATE TABLE visits AS SELECT 3 AS n; CREATE SCHEMA s; CREATE TABLE s."t 2" AS SELECT 4 AS n'
        )
    assert open_table(f"duckdb:///{path}?table=visits").frequencies(["n"]).decoders == ((3,),)
    assert open_table(f"duckdb:///{path}", name="s.t 2").frequencies(["n"]).decoders == ((4,),)
    with pytest.raises(SourceNotFoundError, match='Did you mean "visits"'):
        open_table(f"duckdb:///{path}?table=visit")
    with pytest.raises(SourceNotFoundError, match="There is no file"):
        open_table(f"duckdb:///{path}x?table=visits")
    with pytest.raises(DataError, match="not a DuckDB database"):
        open_table(f"duckdb:///{write(tmp_path, 'x' * 5000)}?table=visits")


@pytest.mark.parametrize(
    ("source", "options", "fix"),
    [
        ("postgresql://host/db", {}, r"\?table="),
        ("sqlite:///x.db?table=t", {}, "CSV or Parquet"),
        ("https://example.org/a.csv", {}, "download files"),
        (3, {}, "give a path"),
        (None, {}, "give a path"),
        (pd.Series([1]), {}, "give a path"),
        (pl.Series([1]), {}, "give a path"),
        (pa.array([1]), {}, "give a path"),
        (duckdb.connect, {}, "give a path"),
        (duckdb.Error(), {}, "give a path"),
        (pa.table({}), {}, "at least one column"),
        (ROWS, {"encoding": "utf-8"}, "leave encoding out"),
        (ROWS, {"missing": "?"}, r'missing=\("\?"'),
        (ROWS, {"missing": (3,)}, r'missing=\("\?"'),
    ],
)
def test_what_cannot_be_a_table(source: Any, options: dict[str, Any], fix: str) -> None:
    with pytest.raises((ParameterError, ParameterTypeError, DataError), match=f"Fix: .*{fix}"):
        open_table(source, **options)


def test_an_unknown_encoding_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="utf-8, latin-1, cp1252, utf-16"):
        open_table(write(tmp_path, "a\n1\n"), encoding="cp1250")


@pytest.mark.parametrize(("package", "url"), [("psycopg", "postgresql://h/d?table=t"), ("pyspark", None)])
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, package: str, url: str | None) -> None:
    for module in [package, "pyspark.errors"]:
        monkeypatch.setitem(sys.modules, module, None)
    source: Any = url or type("DataFrame", (), {"__module__": "pyspark.sql", "sparkSession": None})()
    with pytest.raises(MissingExtraError, match="pip install"):
        open_table(source)


def test_a_schema_for_other_columns_is_refused() -> None:
    schema = SimpleNamespace(columns={"sex": None, "height": None})
    with pytest.raises(SchemaError, match='does not have: "height"'):
        open_table(ROWS, schema)


def test_a_schema_or_its_path_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path, "columns: {sex: {role: quasi, categories: [M, F]}}\n", "schema.yaml")
    for given in (path, str(path), Schema.read(path)):
        table = open_table(ROWS, given)
        assert table.schema == Schema.read(path)
        assert table.frequencies(["sex"]).decoders == (("M", "F", None),)


NASTY = [
    "a[1]",
    "b*",
    "q?",
    "o'clock",
    'say "x"',
    "größe 日本",
    "[[]]",
    "**",
    "[!x]",
    "{a,b}",
    "x]y",
    "~",
    "back\\slash",
]


ENDINGS = [(stem, ending) for stem in NASTY for ending in (".csv", ".csv.gz", ".parquet")]
# The way of a name is the same with and without compression.
USUAL = [
    (stem, ending) for stem, ending in ENDINGS if ending != ".csv.gz" or stem in ("a[1]", "o'clock", "back\\slash")
]


@pytest.mark.parametrize(("stem", "ending"), audited(ENDINGS, but=USUAL))
def test_a_file_that_exists_is_that_file_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stem: str, ending: str
) -> None:
    for number, name in enumerate([stem, "a1", "b1", "q1", "[", "x", "a"]):
        path = tmp_path / f"{name}{ending}"
        if ending == ".parquet":
            pq.write_table(pa.table({"n": [number]}), path)
        else:
            content = f"n\n{number}\n".encode()
            path.write_bytes(gzip.compress(content) if ending == ".csv.gz" else content)
    monkeypatch.chdir(tmp_path)
    for source in (f"{stem}{ending}", tmp_path / f"{stem}{ending}"):
        assert open_table(source).frequencies(["n"]).decoders == ((0,),)


def test_folders_with_nasty_names_and_globs_still_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in [("~", "n\n1\n"), ("[x]", "n\n2\n"), ("x", "n\n3\n")]:
        (tmp_path / name).mkdir()
        write(tmp_path / name, content)
    monkeypatch.chdir(tmp_path)
    assert open_table("~/data.csv").frequencies(["n"]).decoders == ((1,),)
    assert open_table("[x]/data.csv").frequencies(["n"]).decoders == ((2,),)
    assert open_table("*/data.csv").frequencies(["n"]).decoders == ((1, 2, 3),)


def test_a_folder_that_looks_like_a_value_changes_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "age=99"
    folder.mkdir()
    pq.write_table(pa.table({"age": [1], "sex": ["f"]}), folder / "f.parquet")
    (folder / "f.csv").write_text("age,sex\n1,f\n")
    for name in ("f.parquet", "f.csv"):
        assert open_table(folder / name).to_arrow().to_pydict() == {"age": [1], "sex": ["f"]}


def test_a_relative_path_that_looks_like_an_address_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.csv"
    other.write_text("v\n999\n")
    local = Path(f"file:{other}")
    monkeypatch.chdir(tmp_path)
    local.parent.mkdir(parents=True)
    local.write_text("v\n7\n")
    assert open_table(local).to_arrow().to_pydict() == {"v": [7]}


def test_nan_in_a_parquet_file_is_missing_whatever_its_statistics_say(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"x": [1.5, math.nan, 2.5, -1.0], "group": ["a", "a", "b", "b"]}), path)
    table = open_table(path)
    assert table.to_arrow().column("x").to_pylist() == [1.5, None, 2.5, -1.0]
    counted = table.frequencies(["group"], measures={"sum": Sum("x", bounds=(-10, 10)), "present": CountPresent("x")})
    arrow = open_table(pq.read_table(path))
    expected = arrow.frequencies(["group"], measures={"sum": Sum("x", bounds=(-10, 10)), "present": CountPresent("x")})
    assert counted.equals(expected)
    assert (table.count("x IS NULL"), table.count("x > 2"), table.count("x <= 100")) == (1, 1, 3)


def test_numbers_too_large_for_any_type_are_text() -> None:
    table = open_table(pd.DataFrame({"a": [10**30, 1]}))
    assert table.to_arrow()["a"].to_pylist() == [str(10**30), "1"]
