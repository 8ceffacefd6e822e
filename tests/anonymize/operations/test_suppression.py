from __future__ import annotations

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.operations import DropColumn, SuppressCells, SuppressRecords
from cloister.errors import CloisterError, ParameterError, UnknownColumnError

TABLE = pa.table({"age": [24, 91, None], "city": ["Ulm", "Bonn", "Ulm"], "name": ["A", "B", "C"]})


def test_cells_become_missing_where_a_condition_holds() -> None:
    outcome = SuppressCells(["age", "city"], where="age > 89").run(TABLE)
    found = outcome.table.to_arrow()
    assert found["age"].to_pylist() == [24, None, None]
    assert found["city"].to_pylist() == ["Ulm", None, "Ulm"]
    assert outcome.log.cells_suppressed == {"age": 1, "city": 1}
    assert str(outcome.log) == 'suppress_cells: 1 of 3 cells suppressed in "age"; 1 of 3 cells suppressed in "city"'


def test_a_star_makes_the_column_text() -> None:
    outcome = SuppressCells("age", marker="*").run(TABLE)
    assert outcome.table.to_arrow()["age"].to_pylist() == ["*", "*", "*"]
    assert outcome.log.cells_suppressed == {"age": 3}


def test_an_invented_value_is_no_suppression() -> None:
    with pytest.raises(ParameterError, match='marker="\\*"'):
        SuppressCells("age", marker="33")


def test_records_are_dropped_and_counted() -> None:
    outcome = SuppressRecords(where="age > 89").run(TABLE)
    assert outcome.table.to_arrow()["name"].to_pylist() == ["A", "C"]
    assert outcome.log.rows_removed == 1
    assert outcome.log.suppression_rate == pytest.approx(1 / 3)
    assert str(outcome.log) == "suppress_records: 1 of 3 rows removed"


def test_all_records_may_go() -> None:
    outcome = SuppressRecords(where="name IS NOT NULL").run(TABLE)
    assert outcome.table.count() == 0
    assert SuppressRecords(where="age > 1").run(outcome.table).log.suppression_rate == 0


def test_columns_are_dropped_from_rows_and_schema() -> None:
    schema = cl.Schema([cl.Column(name="age", kind="numeric"), cl.Column(name="name", role="identifier")])
    outcome = DropColumn("name").run(cl.open_table(TABLE, schema=schema))
    assert outcome.table.columns == ("age", "city")
    assert outcome.table.schema.names == ("age",)
    assert outcome.log.columns_dropped == ("name",)
    assert str(outcome.log) == 'drop_column: column "name" dropped'
    only = cl.Schema([cl.Column(name="name", role="identifier")])
    assert DropColumn("name").apply(cl.open_table(TABLE, schema=only)).schema is None


def test_missing_cells_keep_the_domain_and_stars_do_not() -> None:
    schema = cl.Schema([cl.Column(name="city", categories=["Ulm", "Bonn"])])
    table = cl.open_table(TABLE, schema=schema)
    assert SuppressCells("city").apply(table).schema["city"].categories == ("Ulm", "Bonn")
    assert SuppressCells("city", marker="*").apply(table).schema["city"].categories is None


def test_suppressing_an_empty_cell_changes_nothing() -> None:
    outcome = SuppressCells("age", where="name = 'C'").run(TABLE)
    assert outcome.log.cells_changed == {}
    assert str(outcome.log) == "suppress_cells: nothing changed"


@pytest.mark.parametrize("where", ["age >", "salary > 5", "age > 'x'", "age = (SELECT 1)", '"\x00row" = 1', 5])
def test_broken_conditions_are_refused(where: str) -> None:
    with pytest.raises(CloisterError):
        SuppressRecords(where=where).run(TABLE)


def test_unknown_columns_are_refused() -> None:
    for operation in (SuppressCells("ages"), DropColumn("ages")):
        with pytest.raises(UnknownColumnError, match='Did you mean "age"'):
            operation.run(TABLE)


@pytest.mark.parametrize("columns", [[], ["age", "age"], 5, [5]])
def test_columns_are_names(columns: object) -> None:
    with pytest.raises(CloisterError, match="name|write"):
        DropColumn(columns)  # type: ignore[arg-type]


def test_something_must_be_left() -> None:
    with pytest.raises(ParameterError, match="at least one column"):
        DropColumn(["age", "city", "name"]).run(TABLE)


def test_the_log_is_json_ready() -> None:
    log = SuppressCells("age", where="age > 89").run(TABLE).log
    assert log.to_dict()["cells_suppressed"] == {"age": 1}
    assert log.share_changed("age") == pytest.approx(1 / 3)
    assert log.share_changed("city") == 0
