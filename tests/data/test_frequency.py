from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister.data.frequency import FrequencyTable, build
from cloister.data.measures import Sum
from cloister.data.sources import open_table
from cloister.data.values import StorageType
from cloister.errors import ParameterError, UnknownColumnError

ROWS = pa.table({"a": [1, 2, 2, None], "b": ["x", "y", "x", "x"], "c": [1.5, 2.5, 3.5, 4.5]})
MEASURES = {"sum": Sum("c", bounds=(0, 10), granularity=0.5), "all": Sum("a")}


@pytest.fixture
def table() -> FrequencyTable:
    return open_table(ROWS).frequencies(["a", "b"], measures=MEASURES)


def test_groups_are_sorted_and_decode(table: FrequencyTable) -> None:
    assert table.codes.tolist() == [[0, 0], [1, 0], [1, 1], [2, 0]]
    assert table.decode() == {"a": [1, 2, 2, None], "b": ["x", "x", "y", "x"]}
    assert (table.codes.dtype, table.weights.dtype) == (np.int32, np.int64)
    assert (len(table), table.total, table.shape) == (4, 4, (3, 2))


def test_arrays_are_read_only(table: FrequencyTable) -> None:
    for array in (table.codes, table.weights, table.measures["sum"].values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_marginal_is_the_same_as_counting_anew(table: FrequencyTable) -> None:
    source = open_table(ROWS)
    assert table.marginal(["b"]).equals(source.frequencies(["b"], measures=MEASURES))
    assert table.marginal(["b", "a"]).equals(source.frequencies(["b", "a"], measures=MEASURES))
    assert table.marginal([]).equals(source.frequencies([], measures=MEASURES))
    with pytest.raises(UnknownColumnError):
        table.marginal(["c"])


def test_arrow_has_types_and_measures(table: FrequencyTable) -> None:
    arrow = table.to_arrow()
    assert arrow.schema.names == ["a", "b", "count", "sum", "all"]
    assert arrow.column("all").type == pa.decimal128(38, 0)
    assert arrow.column("sum").to_pylist() == [3, 7, 5, 9]
    named = open_table(ROWS.rename_columns(["count", "b", "c"])).frequencies(["count"])
    assert named.to_arrow().schema.names == ["count", "count (total)"]


def test_bins_become_text_in_arrow() -> None:
    found = open_table(ROWS).frequencies(["c"], bins={"c": [0, 2, 4]})
    assert found.to_arrow().to_pylist() == [
        {"c": "[0, 2)", "count": 1},
        {"c": "[2, 4)", "count": 2},
        {"c": None, "count": 1},
    ]


def test_any_number_of_columns_is_counted() -> None:
    table = open_table(
        pa.table({f"c{place}": ["same", "same", "other" if place == 99 else "same"] for place in range(100)})
    )
    counted = table.frequencies(table.columns)
    assert counted.weights.tolist() == [1, 2]


def test_dense_has_a_cell_for_every_combination(table: FrequencyTable) -> None:
    assert table.dense().tolist() == [[1, 0], [1, 1], [1, 0]]
    large = FrequencyTable(
        columns=("a", "b"),
        codes=np.zeros((1, 2), dtype=np.int32),
        weights=np.ones(1, dtype=np.int64),
        decoders=(tuple(range(20_000)),) * 2,
        types=(StorageType.INTEGER,) * 2,
        declared=(True, True),
        measures={},
    )
    with pytest.raises(ParameterError, match="wider bins"):
        large.dense()


def test_equality_sees_every_part(table: FrequencyTable) -> None:
    source = open_table(ROWS)
    assert table.equals(source.frequencies(["a", "b"], measures=MEASURES))
    others = [
        source.frequencies(["a"], measures=MEASURES),
        source.frequencies(["a", "b"]),
        source.frequencies(["a", "b"], measures=MEASURES, where="c < 4 OR a IS NULL AND b = 'y'"),
        source.frequencies(["a", "b"], measures=MEASURES | {"sum": Sum("c", bounds=(0, 9), granularity=0.5)}),
        source.frequencies(["a", "b"], measures=MEASURES | {"sum": Sum("c", bounds=(0, 2), granularity=0.5)}),
        open_table(pa.concat_tables([ROWS, ROWS])).frequencies(["a", "b"], measures=MEASURES),
    ]
    assert not any(table.equals(other) for other in others)


@settings(max_examples=50)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=20), st.booleans())
def test_equal_groups_are_added_in_any_order(rows: list[tuple[int, ...]], huge: bool) -> None:
    size = 3_000_000 if huge else 4
    codes = np.array(rows, dtype=np.int32).reshape(-1, 3)
    decoders = (range(size),) * 3
    table = build(
        columns=("a", "b", "c"),
        codes=codes,
        weights=np.arange(len(rows), dtype=np.int64),
        decoders=decoders,  # type: ignore[arg-type]
        types=(StorageType.INTEGER,) * 3,
        declared=(True,) * 3,
        measures={},
    )
    expected: dict[tuple[int, ...], int] = {}
    for weight, row in enumerate(rows):
        expected[row] = expected.get(row, 0) + weight
    assert [tuple(row) for row in table.codes.tolist()] == sorted(expected)
    assert table.weights.tolist() == [expected[row] for row in sorted(expected)]


def test_the_benchmark_compares_equal_work(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks import frequencies

    rows = frequencies.main(rows=2000, repeats=1)
    assert {row["target"] for row in rows} == {1.3}
    assert all(row["ratio"] > 0 for row in rows)
    assert "clamped real sum" in capsys.readouterr().out
