"""A column of a CSV file whose storage is stated has that type, whatever its rows hold."""

from __future__ import annotations

import datetime as dt
import gzip
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cloister.data.columns import Column
from cloister.data.engines import files
from cloister.data.schema import Schema
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import DataError, DataWarning, SchemaError


def stating(**storage: str) -> Schema:
    return Schema([Column(name=name, storage=StorageType(kind)) for name, kind in storage.items()])


def read(folder: Path, storage: str, *cells: str) -> list[Any]:
    path = folder / "data.csv"
    path.write_text("".join(f"{cell};\n" for cell in ("value", *cells)), "utf-8")
    with pytest.warns(DataWarning, match="replaced"):
        table = open_table(path, schema=stating(value=storage))
    assert table.types["value"] is StorageType(storage)
    assert table.engine.sniffed == {"column_2"}
    return table.to_arrow()["value"].to_pylist()


@pytest.mark.parametrize(
    ("storage", "cells", "expected"),
    [
        ("integer", ["1", " 2 ", "+3", "-4", "007", "7.0", "8."], [1, 2, 3, -4, 7, 7, 8]),
        ("integer", ["1.5", "abc", "1e3", "1_000", "0x1A", "inf", "true"], [None] * 7),
        ("integer", ["9223372036854775807", "9223372036854775808"], [2**63 - 1, None]),
        ("integer", ["-9223372036854775808.0", "9" * 400], [-(2**63), None]),
        ("real", ["1", "2.5", "007.5", "1e3", ".5", "-inf"], [1, 2.5, 7.5, 1000, 0.5, -math.inf]),
        ("real", ["abc", "1_000", "0x1A", "NaN", "1,5"], [None] * 5),
        ("real", ["1e400", "-1e400", "1e-400", "9" * 400], [math.inf, -math.inf, 0, math.inf]),
        ("text", ["1", " x", "nan", ""], ["1", " x", "nan", None]),
        ("boolean", ["true", "FALSE", "t", "1", "yes"], [True, False, None, None, None]),
        ("date", ["2020-02-29", "2020-02-30", "29.02.2020", "2020-02-29 10:00"], [dt.date(2020, 2, 29), *[None] * 3]),
        ("date", ["0000-01-01", "99999-01-01"], [None, None]),
        (
            "timestamp",
            ["2020-02-29 10:00", "2020-02-29T10:00:01.5Z", "2020-02-29", "2020-02-29 25:00"],
            [dt.datetime(2020, 2, 29, 10), dt.datetime(2020, 2, 29, 10, 0, 1, 500_000), None, None],
        ),
    ],
)
def test_cells_that_do_not_fit_are_missing(tmp_path: Path, storage: str, cells: list[str], expected: list[Any]) -> None:
    assert read(tmp_path, storage, *cells) == expected


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    storage=st.sampled_from(list(StorageType)),
    cell=st.text(st.characters(codec="utf-8", exclude_characters='";\r\n\0'), max_size=12)
    | st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]*)?(e[0-9]{1,4})?", fullmatch=True, alphabet="+-.e0123456789"),
)
def test_no_cell_changes_a_type_or_is_an_error(tmp_path: Path, storage: StorageType, cell: str) -> None:
    assert len(read(tmp_path, storage, cell, "x")) == 2


def test_cells_of_an_inferred_type_are_read_alike_when_it_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "i,r,b,d,t,x\n1,2.5,true,2020-01-01,2020-01-01 10:00,a\n-7,1e3,False,2020-12-31,2020-01-01T11:00Z,\n"
    )
    sniffed = open_table(path)
    stated = open_table(path, schema=Schema.infer(sniffed).confirm())
    assert sniffed.engine.sniffed == set(sniffed.columns)
    assert stated.engine.sniffed == frozenset()
    assert stated.types == sniffed.types
    assert stated.to_arrow().equals(sniffed.to_arrow())


def test_missing_markers_hold_in_stated_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n-1,?\n2,x\n")
    table = open_table(path, schema=stating(a="integer", b="text"), missing=("?", "-1"))
    assert table.to_arrow().to_pylist() == [{"a": None, "b": None}, {"a": 2, "b": "x"}]


def test_several_and_gzipped_files_follow_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"n,m\n1,1\nabc,2\n"))
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"n,m\n1.5,x\n"))
    table = open_table(str(tmp_path / "*.csv.gz"), schema=stating(n="integer"))
    assert table.types == {"n": StorageType.INTEGER, "m": StorageType.TEXT}
    assert table.engine.sniffed == {"m"}
    assert table.count("n IS NULL") == 2


def test_a_schema_file_states_storage(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("n\n1\nabc\n")
    stating(n="integer").write(tmp_path / "schema.yaml")
    assert open_table(tmp_path / "data.csv", tmp_path / "schema.yaml").types == {"n": StorageType.INTEGER}


def test_guessed_storage_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("n\n1\n")
    draft = Schema.infer(open_table(path))
    path.write_text("n\n1.5\n")
    table = open_table(path, schema=draft)
    assert table.types == {"n": StorageType.REAL}
    assert table.engine.sniffed == {"n"}


def test_large_files_follow_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_IN_MEMORY", 3)
    path = tmp_path / "data.csv"
    path.write_text("n,m\n1,a\nabc,b\n")
    table = open_table(path, schema=stating(n="integer", m="text"))
    assert table.to_arrow()["n"].to_pylist() == [1, None]
    path.write_text("n,m\n1,a\n1.5,b\n2,c\n")
    assert table.to_arrow()["n"].to_pylist() == [1, None, 2]


def test_large_damaged_files_are_found_when_they_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_IN_MEMORY", 3)
    (tmp_path / "data.csv").write_text("n,m\n1,a\n2\n")
    with pytest.raises(DataError, match="more or fewer cells"):
        open_table(tmp_path / "data.csv", schema=stating(n="integer", m="text"))


def test_other_sources_are_not_sniffed_and_keep_their_types(tmp_path: Path) -> None:
    rows = pa.table({"n": [1.0, 2.0]})
    pq.write_table(rows, tmp_path / "data.parquet")
    assert open_table(rows).engine.sniffed == frozenset()
    with pytest.warns(DataWarning, match='"n" is called integer and stored as real'):
        table = open_table(tmp_path / "data.parquet", schema=stating(n="integer"))
    assert table.types == {"n": StorageType.REAL}
    assert table.engine.sniffed == frozenset()


def test_a_table_beside_another_stays_sniffed(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("n\n1\n")
    sniffed, other = open_table(tmp_path / "data.csv"), open_table(pa.table({"m": [1]}))
    assert sniffed.beside(other).engine.sniffed == {"n"}


# The schema ----------------------------------------------------------------------------------------------------------


def test_storage_is_proposed_as_a_guess_and_confirmed() -> None:
    draft = Schema.infer(open_table(pa.table({"age": [30, 41], "empty": pa.array([None, None], pa.int64())})))
    assert draft["age"].storage is StorageType.INTEGER
    assert draft["age"].stated_storage is None
    assert "storage: the type that the values have" in draft["age"].evidence
    assert draft["empty"].storage is None
    assert draft.confirm()["age"].stated_storage is StorageType.INTEGER


def test_storage_is_stated_and_withdrawn() -> None:
    draft = Schema.infer(open_table(pa.table({"age": [30, 41]})))
    stated = draft.with_storage("age", "real")
    assert stated["age"].stated_storage is StorageType.REAL
    assert "storage" not in stated["age"].evidence
    assert stated.with_storage("age", None)["age"].storage is None


def test_storage_survives_files_and_old_files_have_none(tmp_path: Path) -> None:
    schema = Schema.infer(open_table(pa.table({"age": [30, 41], "day": [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]})))
    schema.write(tmp_path / "schema.yaml")
    assert "storage: integer" in (tmp_path / "schema.yaml").read_text()
    assert Schema.read(tmp_path / "schema.yaml") == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert Schema.from_dict({"columns": {"age": {"kind": "numeric"}}})["age"].storage is None


def test_storage_fits_the_kind() -> None:
    with pytest.raises(SchemaError, match=r"numeric column is not stored as text(.|\n)*write storage: integer or real"):
        Column(name="age", kind="numeric", storage="text")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="storage"):
        Column(name="age", storage="float")  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "kept"), [("nominal", StorageType.INTEGER), ("datetime", None)])
def test_another_kind_keeps_storage_that_fits(kind: str, kept: StorageType | None) -> None:
    draft = Schema.infer(open_table(pa.table({"age": [30, 41]}))).with_kind("age", kind)
    assert draft["age"].storage is kept
    assert ("storage" in draft["age"].guessed) is (kept is not None)


@pytest.mark.parametrize(
    ("stated", "cells", "finds"),
    [
        ("integer", "1.5", True),
        ("integer", "abc", True),
        ("integer", "7", False),
        ("real", "7", False),
        ("real", "abc", True),
        ("text", "7", False),
        ("integer", "", False),
        ("timestamp", "2020-01-01", True),
    ],
)
def test_the_owner_can_ask_whether_cells_fit(tmp_path: Path, stated: str, cells: str, *, finds: bool) -> None:
    (tmp_path / "data.csv").write_text(f"n,m\n{cells},1\n")
    found = stating(n=stated, m="integer").check(open_table(tmp_path / "data.csv"))
    about = [finding for finding in found.about("n") if "do not fit" in finding.sentence]
    assert bool(about) is finds
    assert all("; if" in finding.fix and "with_storage" in finding.fix for finding in about)


def test_only_a_storage_that_fits_the_kind_is_suggested_and_identifiers_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("n,id\nabc,p1\n")
    columns = [
        Column(name="n", kind="numeric", storage="integer", bounds=(0, 9)),  # type: ignore[arg-type]
        Column(name="id", role="identifier", storage="integer"),  # type: ignore[arg-type]
    ]
    report = Schema(columns).check(open_table(tmp_path / "data.csv"))
    lost = [finding for finding in report.findings if "do not fit" in finding.sentence]
    assert [finding.column for finding in lost] == ["n", "id"]
    assert ["with_storage" in finding.fix for finding in lost] == [False, True]
