"""A bound on memory: kept by writing to private files, and lifted where it could make a question fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from cloister.data.engines import duckdb as engine_module, duckdb as engines_duckdb
from cloister.data.engines.base import select_all
from cloister.data.engines.duckdb import DuckDBEngine, connect
from cloister.data.sources import open_table
from cloister.errors import DataError

ROWS = pa.table({"a": [1, 2, 2]})


def limit_of(engine: Any) -> int:
    """Return the bound of an engine's database, in bytes."""
    text = engine._connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0]
    number, unit = text.split()
    return round(float(number) * 1024 ** ["bytes", "KiB", "MiB", "GiB", "TiB"].index(unit))


def bound_of(engine: Any) -> int:
    return (
        int(engine._connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
        * engines_duckdb.PER_THREAD
    )


def failing_once(engine: Any, error: Exception) -> list[str]:
    """Let the next query of an engine fail, and return what was run."""
    run: Callable[[str], pa.Table] = engine._run
    asked: list[str] = []

    def answer(sql: str) -> pa.Table:
        asked.append(sql)
        if len(asked) == 1:
            raise error
        return run(sql)

    engine._run = answer
    return asked


def test_questions_have_a_bound_for_each_thread() -> None:
    engine = open_table(ROWS).engine
    assert limit_of(engine) == pytest.approx(bound_of(engine), rel=0.05)


def test_what_the_database_holds_comes_on_top(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a\n" + "\n".join(f"some text {number}" for number in range(200_000)))
    engine = open_table(path).engine
    assert limit_of(engine) > bound_of(engine) + 2_000_000


def test_a_question_that_does_not_fit_goes_through_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines_duckdb, "PER_THREAD", 6_000_000)
    texts = np.char.add("a text that needs some room ", np.arange(150_000).astype(str))
    table = open_table(pa.table({"t": pa.array(texts.tolist()), "n": np.arange(150_000) % 7}))
    assert len(table.frequencies(["t"])) == 150_000
    assert table.frequencies(["n"]).total == 150_000
    assert limit_of(table.engine) == pytest.approx(bound_of(table.engine), rel=0.05), "the bound was lifted"


@pytest.mark.parametrize("error", [duckdb.OutOfMemoryException("memory"), duckdb.IOException("no space left")])
def test_a_question_that_cannot_be_done_within_the_bound_is_done_without_it(error: Exception) -> None:
    table = open_table(ROWS)
    asked = failing_once(table.engine, error)
    assert table.frequencies(["a"]).weights.tolist() == [1, 2]
    assert asked[0] == asked[1]
    assert limit_of(table.engine) > bound_of(table.engine)
    failing_once(table.engine, duckdb.OutOfMemoryException("SECRET"))
    with pytest.raises(DataError, match="more memory than it may use") as caught:
        table.frequencies(["a"])
    assert "SECRET" not in str(caught.value)


def test_rows_that_are_handed_over_piece_by_piece_have_no_bound() -> None:
    engine = open_table(ROWS).engine
    assert sum(batch.num_rows for batch in engine.stream(*select_all(engine))) == 3
    assert limit_of(engine) > bound_of(engine)
    assert sum(batch.num_rows for batch in engine.stream(*select_all(engine))) == 3


def test_without_a_folder_there_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound without a way around it would let rows decide whether a question fails."""
    monkeypatch.setattr(engine_module, "_CONFIGURATION", dict(engine_module._CONFIGURATION))
    engine_module.forbid_spilling()
    engine = open_table(ROWS).engine
    assert isinstance(engine, DuckDBEngine)
    assert limit_of(engine) > bound_of(engine)
    asked = failing_once(engine, duckdb.OutOfMemoryException("memory"))
    with pytest.raises(DataError, match="more memory than it may use"):
        engine.execute(*select_all(engine))
    assert len(asked) == 1


def test_folders_are_private_and_databases_do_not_share_them(tmp_path: Path) -> None:
    folders = [Path(engines_duckdb.spill_folder()) for _ in range(2)]
    assert folders[0] != folders[1]
    assert folders[0].parent == folders[1].parent
    assert folders[0].parent.stat().st_mode & 0o777 == 0o700
    assert (
        engines_duckdb.spill_folder("a.db")
        == engines_duckdb.spill_folder("a.db")
        != engines_duckdb.spill_folder("b.db")
    )
    used = connect().execute("SELECT current_setting('temp_directory')").fetchall()[0][0]
    assert Path(used).parent == folders[0].parent


def test_a_database_file_can_be_opened_twice(tmp_path: Path) -> None:
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS a FROM range(9)")
    tables = [open_table(f"duckdb:///{path}", name="t") for _ in range(2)]
    assert [table.count() for table in tables] == [9, 9]
