"""Tables that hold the worst values of every type of an engine, and questions about all of them.

Each row has an `id` of its own, so that a question in groups of `id` shows what every single value adds.
Values are written in the SQL of an engine, since most have no form in Arrow; `cloister.testing.hostile` has those that
have one, as tables for anything that takes rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import duckdb
import psycopg

import cloister as cl
from tests.support.thoroughness import is_thorough

_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Native:
    """A column: its kind for cloister, its type in the engine, and values as SQL of the engine."""

    kind: str
    type: str
    values: tuple[str, ...]


def _whole(kind: str, bits: int, *, signed: bool = True) -> Native:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return Native("number", kind, tuple(f"'{item}'" for item in (low, high, 0, 1, 7)))


_REALS = ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "'1e300'", "'-1e300'", "'5e-324'", "'-1e-320'", "'0.5'")
_SINGLES = ("'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "'3e38'", "'1e-45'", "'0.1'")
_ODD = ("\u00e9", "e\u0301", "\U0001f642", "\ufeff")
_TEXTS = (
    "''",
    "' '",
    "'a'",
    "'NaN'",
    "'1e999'",
    "'2020-13-45'",
    "'a\\'",
    "'%_\\%'",
    "'o''x'",
    "repeat('ab', 3000)",
    *(f"'{text}'" for text in _ODD),
)
_UUIDS = ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'")
_WIDE = ("'99999999999999999999999999999'", "'-99999999999999999999999999999'", "'0'")
_TENTHS = ("'999999999999999.999'", "'-999999999999999.999'", "'0.001'", "'-0.000'")

DUCKDB = {
    "tiny": _whole("TINYINT", 8),
    "small": _whole("SMALLINT", 16),
    "medium": _whole("INTEGER", 32),
    "big": _whole("BIGINT", 64),
    "unsigned": _whole("UINTEGER", 32, signed=False),
    "single": Native("number", "FLOAT", _SINGLES),
    "amount": Native("number", "DOUBLE", _REALS),
    "whole": Native("number", "DECIMAL(18, 0)", ("'999999999999999999'", "'-999999999999999999'", "'0'")),
    "tenths": Native("number", "DECIMAL(18, 3)", _TENTHS),
    "fine": Native("number", "DECIMAL(38, 37)", ("'9.9999999999999999999999999999999999999'", "'-0.1'")),
    "truth": Native("truth", "BOOLEAN", ("true", "false")),
    "note": Native("text", "VARCHAR", (*_TEXTS, "chr(0)", "'a' || chr(0) || 'b'")),
    "wide": Native("text", "DECIMAL(38, 0)", _WIDE),
    "huge": Native("text", "HUGEINT", ("'-170141183460469231731687303715884105728'", "'0'")),
    "lengthy": Native("text", "UBIGINT", ("'18446744073709551615'", "'0'")),
    "code": Native("text", "UUID", _UUIDS),
    "item": Native("text", "JSON", ("'null'", "'{}'", """'{"a": NaN}'""", """'"\\u0000"'""")),
    "clock": Native("text", "TIME", ("'24:00:00'", "'00:00:00'", "'23:59:59.999999'")),
    "day": Native(
        "date",
        "DATE",
        (
            "'infinity'",
            "'-infinity'",
            "'0001-01-01'",
            "'9999-12-31'",
            "'10000-01-01'",
            "'0044-03-15 (BC)'",
            "'5881580-07-10'",
            "'5877642-06-25 (BC)'",
        ),
    ),
    "moment": Native(
        "time",
        "TIMESTAMP",
        (
            "'infinity'",
            "'-infinity'",
            "'0001-01-01'",
            "'9999-12-31 23:59:59.999999'",
            "'294247-01-10 04:00:54.775806'",
            "'290309-12-22 (BC) 00:00:00'",
        ),
    ),
    "seconds": Native("time", "TIMESTAMP_S", ("'infinity'", "'-infinity'", "'2020-01-01'")),
    "nano": Native("time", "TIMESTAMP_NS", ("'infinity'", "'2262-04-11 23:47:16.854775806'", "'1677-09-22'")),
    "zoned": Native(
        "time",
        "TIMESTAMPTZ",
        (
            "'infinity'",
            "'-infinity'",
            "'294247-01-10 04:00:54.775806+00'",
            "'290309-12-22 (BC) 00:00:00+00'",
            "'9999-12-31 23:59:59-12'",
            "'0001-01-01 00:00:00+14'",
        ),
    ),
}
POSTGRES = {
    "small": _whole("smallint", 16),
    "medium": _whole("integer", 32),
    "big": _whole("bigint", 64),
    "single": Native("number", "real", _SINGLES),
    "amount": Native("number", "double precision", _REALS),
    "whole": Native("number", "numeric(18, 0)", ("'NaN'", "'999999999999999999'", "'-999999999999999999'", "'0'")),
    "tenths": Native("number", "numeric(18, 3)", (*_TENTHS, "'NaN'")),
    "rounded": Native("number", "numeric(5, -3)", ("'NaN'", "'99999000'", "'-99999000'", "'0'")),
    "fraction": Native("number", "numeric(3, 5)", ("'NaN'", "'0.00999'", "'-0.00999'")),
    "free": Native(
        "number",
        "numeric",
        (
            "'NaN'",
            "'Infinity'",
            "'-Infinity'",
            "'1e131071'",
            "'-1e131071'",
            "'1e-16383'",
            "'1e308'",
            "'-1.0000001e308'",
            "'1e-307'",
            "'2.50'",
        ),
    ),
    "truth": Native("truth", "boolean", ("true", "false")),
    "note": Native("text", "text", (*_TEXTS, "E'\\\\.'", "E'x\\r\\ny'", "E'\\uFFFE'")),
    "padded": Native("text", "char(5)", ("''", "'a'", "'  b  '", "'\u00e9'")),
    "limited": Native("text", "varchar(3)", ("''", "'a  '", "'%'")),
    "letter": Native("text", '"char"', ("''", "'a'")),
    "wide": Native("text", "numeric(30, 0)", (*_WIDE, "'NaN'")),
    "code": Native("text", "uuid", _UUIDS),
    "item": Native("text", "jsonb", ("'null'", "'{}'", """'{"a": 1.00}'""")),
    "page": Native("text", "json", ("'null'", """'"\\u0000"'""")),
    "clock": Native("text", "time", ("'24:00:00'", "'00:00:00'", "'23:59:59.999999'")),
    "address": Native("text", "inet", ("'::1'", "'10.0.0.1/8'")),
    "pay": Native("text", "money", ("'-92233720368547758.08'", "'92233720368547758.07'")),
    "day": Native(
        "date",
        "date",
        (
            "'infinity'",
            "'-infinity'",
            "'0001-01-01'",
            "'9999-12-31'",
            "'10000-01-01'",
            "'0044-03-15 BC'",
            "'5874897-12-31'",
            "'4714-11-24 BC'",
        ),
    ),
    "moment": Native(
        "time",
        "timestamp",
        (
            "'infinity'",
            "'-infinity'",
            "'0001-01-01'",
            "'9999-12-31 23:59:59.999999'",
            "'294276-12-31 23:59:59.999999'",
            "'4714-11-24 00:00:00 BC'",
        ),
    ),
    "zoned": Native(
        "time",
        "timestamptz",
        (
            "'infinity'",
            "'-infinity'",
            "'294276-12-31 23:59:59.999999+00'",
            "'4714-11-24 00:00:00+00 BC'",
            "'9999-12-31 23:59:59-12'",
            "'0001-01-01 00:00:00+14'",
        ),
    ),
}
SPARK = {
    "tiny": _whole("TINYINT", 8),
    "small": _whole("SMALLINT", 16),
    "medium": _whole("INT", 32),
    "big": _whole("BIGINT", 64),
    "single": Native("number", "FLOAT", _SINGLES),
    "amount": Native("number", "DOUBLE", _REALS),
    "whole": Native("number", "DECIMAL(18, 0)", ("'999999999999999999'", "'-999999999999999999'", "'0'")),
    "tenths": Native("number", "DECIMAL(18, 3)", _TENTHS),
    "fine": Native("number", "DECIMAL(38, 37)", ("'9.9999999999999999999999999999999999999'", "'-0.1'")),
    "truth": Native("truth", "BOOLEAN", ("true", "false")),
    "note": Native(
        "text", "STRING", (*(item for item in _TEXTS if "\\" not in item), "X'00'", "X'ff61'", "X'c3'", "X'eda080'")
    ),
    "wide": Native("text", "DECIMAL(38, 0)", _WIDE),
    "folded": Native("text", "STRING COLLATE UTF8_LCASE", ("'a'", "'A'", "X'ff61'")),
    "day": Native(
        "date",
        "DATE",
        (
            "date_from_unix_date(2147483647)",
            "date_from_unix_date(-2147483648)",
            "'0001-01-01'",
            "'9999-12-31'",
            "make_date(10000, 1, 1)",
            "make_date(-43, 3, 15)",
        ),
    ),
    "moment": Native(
        "time",
        "TIMESTAMP_NTZ",
        (
            "timestamp_micros(9223372036854775807)",
            "timestamp_micros(-9000000000000000000)",
            "'0001-01-01'",
            "'9999-12-31 23:59:59.999999'",
        ),
    ),
    "zoned": Native(
        "time",
        "TIMESTAMP",
        (
            "timestamp_micros(9223372036854775807)",
            "timestamp_micros(-9223372036854775807 - 1)",
            "'9999-12-31 23:59:59-12:00'",
            "'0001-01-01 00:00:00+14:00'",
        ),
    ),
}

_WIDEST = "CLAMP({x}, -9007199254740992, 9007199254740992)"
NUMBERS = {
    "number": (
        "{x}",
        "-{x}",
        "ABS({x})",
        "{x} * {x}",
        "{x} * -3 + 1",
        "MOD({x}, 3)",
        "FLOOR({x} / 2)",
        "CEIL({x} / 7)",
        "ROUND({x} / 3, 1)",
        "TRUNC({x})",
        "POWER({x}, 3)",
        "LEAST({x}, 2)",
        "GREATEST({x}, -1, {x} * 2)",
        "CLAMP({x}, -1e-9, 1e-9)",
        "WIDTH_BUCKET({x}, -4, 4, 8)",
        "COALESCE({x}, 0)",
        "NULLIF({x}, 1)",
        "CASE WHEN {x} > 1 THEN {x} ELSE 0 END",
        "CASE WHEN note = 'a' THEN {x} END",
        "CAST({x} AS DOUBLE)",
        "IF({x} = 1e300, 1, 0)",
        *(
            form.replace("{x}", _WIDEST)
            for form in ("-{x}", "ABS({x})", "FLOOR({x} / 2)", "ROUND({x}, -2)", "MOD({x}, 7)")
        ),
    ),
    "text": (
        "CLAMP(LENGTH({x}), 0, 10)",
        "CLAMP(LENGTH(SUBSTRING({x}, 1, 0)), 0, 10)",
        "CLAMP(LENGTH(SUBSTRING({x}, 1000000)), 0, 10)",
        "CLAMP(LENGTH(LEFT({x}, 2)), 0, 10)",
        "CLAMP(LENGTH(COALESCE({x}, 'a')), 0, 10)",
    ),
    "date": ("YEAR({x})", "MONTH({x})", "DAY({x})", "QUARTER({x})", "EXTRACT(YEAR FROM {x})"),
    "time": ("YEAR({x})", "MONTH({x})", "DAY({x})", "QUARTER({x})", "EXTRACT(DAY FROM {x})"),
    "truth": ("CAST({x} AS INT)", "CASE WHEN {x} THEN 1 ELSE 0 END"),
}
"""Numbers to add, for each kind of column."""

_MOMENTS = (
    "{x} > '2020-01-01'",
    "{x} BETWEEN '0001-01-01' AND '9999-12-31'",
    "{x} <> '9999-12-31'",
    "CAST({x} AS DATE) = '2020-01-01'",
    "COALESCE({x}, day) > day",
    "{x} IS NULL",
    "{x} >= day",
)
CONDITIONS = {
    "number": (
        "{x} > 1",
        "{x} = 0",
        "{x} <> 1e300",
        "{x} BETWEEN -1 AND 9e18",
        "{x} IN (0, 1.5)",
        "{x} IS NULL",
        "{x} * 2 > 3",
        "{x} < 99999999999999999999",
        "{x} < amount",
    ),
    "text": (
        "{x} = 'a'",
        "{x} < 'm'",
        "{x} LIKE '%\u00e9_%'",
        "{x} LIKE ''",
        "{x} NOT LIKE '%%_'",
        "{x} IN ('', 'NaN')",
        "SUBSTRING({x}, 2, 3) = ''",
        "NULLIF({x}, 'a') IS NULL",
        "CASE WHEN {x} = 'a' THEN {x} ELSE 'b' END = 'b'",
        "{x} = note",
        "LENGTH({x}) > 3",
    ),
    "date": _MOMENTS,
    "time": _MOMENTS,
    "truth": ("{x}", "NOT {x}", "{x} IS TRUE", "{x} IS NOT FALSE"),
}
"""Conditions on rows, for each kind of column."""

THOROUGH = ("big", "amount", "tenths", "note", "day", "zoned", "truth", *(("whole", "moment") if is_thorough() else ()))
"""The columns that are asked everything: what a function does to a value is the same whatever type it was read from."""
IN_SHORT = {
    "number": ("SUM({x})", f"SUM({_WIDEST})", "VAR_POP({x})", "COUNT(*) FILTER (WHERE {x} > 1)", "COUNT(DISTINCT {x})"),
    "text": ("SUM(CLAMP(LENGTH({x}), 0, 9))", "COUNT(*) FILTER (WHERE {x} < note)", "COUNT(DISTINCT {x})"),
    "date": ("SUM(YEAR({x}))", "COUNT(*) FILTER (WHERE {x} > '2020-01-01')", "COUNT(DISTINCT {x})"),
    "time": ("SUM(YEAR({x}))", "COUNT(*) FILTER (WHERE CAST({x} AS DATE) > day)", "COUNT(DISTINCT {x})"),
    "truth": ("COUNT(*) FILTER (WHERE {x})", "COUNT(DISTINCT {x})"),
}
"""What the other columns are asked."""


def rows_of(columns: dict[str, Native]) -> list[list[str]]:
    """Return the rows as SQL: one for each value of the column that has most, and one in which all are missing."""
    longest = max(len(column.values) for column in columns.values())
    return [
        [column.values[place] if place < len(column.values) else "NULL" for column in columns.values()]
        for place in range(longest + 1)
    ]


def schema_of(columns: dict[str, Native]) -> cl.Schema:
    """Return what is public: the groups, persons, narrow bounds of numbers and the years of dates."""
    described = [
        cl.Column(name="id", kind="numeric", bounds=(0, len(rows_of(columns)))),
        cl.Column(name="who", role="identifier", kind="numeric"),
    ]
    for name, column in columns.items():
        facts: dict[str, Any] = {"name": name}
        if column.kind == "number":
            facts |= {"kind": "numeric", "bounds": (-5, 5)}
        elif column.kind in ("date", "time"):
            facts |= {"kind": "datetime", "bounds": ("1999-01-01", "2001-12-31")}
        described.append(cl.Column(**facts))
    return cl.Schema(described)


def _listed(columns: dict[str, Native]) -> str:
    return ", ".join(f"{name} {column.type}" for name, column in columns.items())


def in_duckdb(columns: dict[str, Native], *, rows: list[list[str]]) -> cl.Table:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t (id BIGINT, who BIGINT, {_listed(columns)})")
    for number, row in enumerate(rows):
        connection.execute(f"INSERT INTO t SELECT {number}, {number % 3}, {', '.join(row)}")
    return cl.open_table(connection.table("t"), schema=schema_of(columns))


def in_postgres(url: str, columns: dict[str, Native], *, rows: list[list[str]]) -> cl.Table:
    name = f"hostile_{next(_NUMBERS)}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE {name} (id bigint, who bigint, {_listed(columns)})")
        for number, row in enumerate(rows):
            connection.execute(f"INSERT INTO {name} VALUES ({number}, {number % 3}, {', '.join(row)})")
    return cl.open_table(url, name=name, schema=schema_of(columns))


def in_spark(session: Any, columns: dict[str, Native], *, rows: list[list[str]]) -> cl.Table:
    """Return a table whose values are computed once, so that questions meet them in rows and not in the plan."""
    names, types = list(columns), [column.type for column in columns.values()]
    selects = [
        f"SELECT CAST({number} AS BIGINT) AS id, CAST({number % 3} AS BIGINT) AS who, "
        + ", ".join(f"CAST({item} AS {kind}) AS {name}" for item, kind, name in zip(row, types, names, strict=True))
        for number, row in enumerate(rows)
    ]
    return cl.open_table(session.sql(" UNION ALL ".join(selects)).localCheckpoint(), schema=schema_of(columns))
