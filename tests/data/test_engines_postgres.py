from __future__ import annotations

import datetime as dt
import io

import psycopg
import pyarrow as pa
import pytest

from cloister.data.engines import postgres
from cloister.data.measures import CountPresent, Sum
from cloister.data.profile import StorageType
from cloister.data.sources import open_table
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
CREATE OR REPLACE VIEW clinic.endless AS SELECT 'infinity'::date AS day;
CREATE OR REPLACE VIEW clinic.failing AS SELECT CAST(name AS int) AS n FROM (VALUES ('SECRET'), ('7')) AS v(name);
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
    assert table.frequencies(["tags", "padded"]).decoders == (("{1,2}",), ("a",))


def test_text_is_compared_exactly_whatever_its_collation(url: str) -> None:
    table = open_table(url, name='clinic.Odd "visits"')
    assert table.frequencies(["folded"]).decoders == (("Ab", "aB"),)
    assert table.count("folded = 'ab'") == 0
    assert table.count("folded < 'a'") == 1
    assert [profile.distinct for profile in table.profiles()][7] == 2


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
    with pytest.raises(DataError, match="infinite dates"):
        open_table(url, name="clinic.endless").to_arrow()


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
