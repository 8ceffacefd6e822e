from __future__ import annotations

import datetime as dt
import io

import psycopg
import pyarrow as pa
import pytest

from cloister.data.engines import _postgres as postgres
from cloister.data.measures import CountPresent, Sum
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import DataError, DataWarning, SourceNotFoundError, SourceUnreachableError

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

SETUP = '''
CREATE SCHEMA IF NOT EXISTS clinic;
CREATE COLLATION IF NOT EXISTS folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE IF NOT EXISTS clinic."Odd ""visits""" (
    small smallint, amount numeric(9, 2), whole numeric(10, 0), wide numeric(30, 0), free numeric, single real,
    padded char(3), folded text COLLATE folded, id uuid, zoned timestamptz, tags int[], day date
);
TRUNCATE clinic."Odd ""visits""";
INSERT INTO clinic."Odd ""visits"""
SELECT n, 1.25, 7, 9, free, 0.1, 'a', folded, '00000000-0000-0000-0000-000000000001', '2020-01-01 12:00+02', '{1,2}',
       '2020-01-01'
FROM (VALUES (1, 'NaN'::numeric, 'Ab'), (2, 2.5, 'aB')) AS v(n, free, folded);
DROP VIEW IF EXISTS clinic.endless, clinic.fine, clinic.unusable;
DROP TYPE IF EXISTS clinic.pair, clinic.kind;
CREATE TYPE clinic.pair AS (a int, b int);
CREATE TYPE clinic.kind AS ENUM ('a', 'b');
CREATE VIEW clinic.endless AS SELECT day, day::timestamp AS at, day::timestamp AT TIME ZONE 'UTC' AS zoned
FROM (VALUES ('infinity'::date), ('-infinity'), ('12000-01-01'), ('2020-01-01')) AS v(day);
CREATE VIEW clinic.fine AS SELECT '10:00'::time AS at, 'a'::clinic.kind AS kind;
CREATE VIEW clinic.unusable AS SELECT 1 AS n, '{1}'::int[] AS tags, ''::bytea AS bytes, '1 day'::interval AS span,
       '10:00+02'::timetz AS zoned, '101'::bit(3) AS bits, (1, 2)::clinic.pair AS pair, '[1,2)'::int4range AS between;
CREATE OR REPLACE VIEW clinic.failing AS SELECT CAST(name AS int) AS n FROM (VALUES ('SECRET'), ('7')) AS v(name);
CREATE OR REPLACE VIEW clinic.folding AS SELECT folded FROM clinic."Odd ""visits""";
CREATE OR REPLACE VIEW clinic.nameless AS SELECT 1 AS " ";
CREATE OR REPLACE VIEW clinic.blank AS SELECT * FROM (VALUES (''), (NULL), (E'x\\n,"')) AS v(t);
CREATE OR REPLACE VIEW clinic.many AS SELECT generate_series(1, 200000) AS n
'''


@pytest.fixture(scope="module")
def url(postgres_server: str) -> str:
    with psycopg.connect(postgres_server) as connection:
        connection.execute(SETUP)
    return postgres_server


def test_unusual_types_follow_the_common_rules(url: str) -> None:
    table = open_table(f'{url}&table=clinic.Odd "visits"')
    kinds = ["integer", "real", "integer", "text", "real", "real", "text", "text", "text", "timestamp", "text", "date"]
    assert list(table.types.values()) == [StorageType(kind) for kind in kinds]
    assert table.frequencies(["free", "single"]).decoders == ((2.5, None), (0.10000000149011612,))
    assert table.frequencies(["zoned"]).decoders == ((dt.datetime(2020, 1, 1, 10),),)
    assert table.frequencies(["amount", "whole", "wide"]).decoders == ((1.25,), (7,), ("9",))
    assert table.frequencies(["id", "padded"]).decoders == (("00000000-0000-0000-0000-000000000001",), ("a",))
    assert open_table(url, name="clinic.fine").frequencies(["at", "kind"]).decoders == (("10:00:00",), ("a",))


@pytest.mark.parametrize("name", ["tags", "bytes", "span", "zoned", "bits", "pair", "between"])
def test_types_that_engines_spell_differently_are_refused(url: str, name: str) -> None:
    table = open_table(url, name="clinic.unusable")
    assert table.count("n = 1") == 1
    with pytest.raises(DataError, match=f'Column "{name}" holds .* engines spell differently'):
        table.frequencies([name])


def test_dates_outside_the_calendar_are_missing(url: str) -> None:
    table = open_table(url, name="clinic.endless")
    found = table.frequencies(["day", "at"])
    assert found.decoders == ((dt.date(2020, 1, 1), None), (dt.datetime(2020, 1, 1), None))
    assert found.weights.tolist() == [1, 3]
    assert table.count("day IS NULL AND at IS NULL AND zoned IS NULL") == 3
    assert table.frequencies(["day"], bins={"day": ["0001-01-01", "9999-12-31"]}).weights.tolist() == [1, 3]
    assert [profile.missing for profile in table.profiles()] == [3, 3, 3]
    assert table.frequencies(["zoned"]).decoders == ((dt.datetime(2020, 1, 1), None),)
    assert table.to_arrow().column("day").null_count == 3


def test_only_tables_and_views_are_found(url: str) -> None:
    for name in ("/etc/passwd", "clinic.pair", "clinic.bad\0name", "clinic.\ud800", "generate_series(1,2)"):
        with pytest.raises(DataError, match="Fix: "):
            open_table(url, name=name)


def test_text_is_compared_exactly_whatever_its_collation(url: str) -> None:
    table = open_table(url, name="clinic.folding")
    assert table.frequencies(["folded"]).decoders == (("Ab", "aB"),)
    assert table.count("folded = 'ab'") == 0
    assert table.count("folded < 'a'") == 1
    assert table.profiles()[0].distinct == 2


def test_an_unknown_table_suggests_a_near_one(url: str) -> None:
    with pytest.raises(SourceNotFoundError, match=r'Did you mean "clinic\.failing"'):
        open_table(url, name="clinic.fail")
    with pytest.raises(SourceNotFoundError, match="with its schema"):
        open_table(url, name="nowhere.at all")


def test_a_table_that_may_not_be_read(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN")
    with pytest.raises(DataError, match="right to select"):
        open_table(url.replace("cloister@", "guest@"), name="pg_catalog.pg_authid")


def test_the_servers_words_are_withheld(url: str) -> None:
    table = open_table(url, name="clinic.failing")
    with pytest.raises(DataError, match="server's log") as caught:
        table.frequencies(["n"])
    assert "SECRET" not in str(caught.value)


def test_queries_cannot_write(url: str) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), postgres._reading(url, guard=False) as cursor:
        cursor.execute("CREATE TABLE clinic.new (n int)")


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with pytest.raises(SourceUnreachableError, match="does not answer") as caught:
        open_table("postgresql://user:SECRET@127.0.0.1:1/db?table=t")
    assert '"127.0.0.1/db"' in caught.value.problem
    assert "SECRET" not in str(caught.value)
    with pytest.raises(SourceUnreachableError, match="does not answer"):
        open_table("postgresql:///db?host=/nonexistent&table=t")


def test_empty_names_are_repaired(url: str) -> None:
    with pytest.warns(DataWarning, match="column_1"):
        assert open_table(url, name="clinic.nameless").columns == ("column_1",)


def test_empty_text_and_null_stay_different(url: str) -> None:
    table = open_table(url, name="clinic.blank")
    assert table.frequencies(["t"], measures={"n": CountPresent("t")}).decoders == (("", 'x\n,"', None),)
    assert table.to_arrow().column("t").to_pylist() == ["", None, 'x\n,"']


def test_results_of_many_blocks_are_parsed_whole(url: str) -> None:
    table = open_table(url, name="clinic.many")
    assert table.frequencies(["n"], measures={"n": Sum("n", bounds=(0, 1))}).total == 200_000


def test_no_output_is_an_empty_table() -> None:
    schema = pa.schema([("a", pa.int64())])
    assert postgres._parse(io.BytesIO().getvalue(), schema).equals(schema.empty_table())
