from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.anonymize.cells import cells_from_arrays, group_lines
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.errors import DataError, HierarchyError
from tests.anonymize.tables import cells_of, coded

TABLE = {
    "age": [30, 30, 41, None, 30],
    "city": ["a", "a", "b", "b", "a"],
    "disease": ["flu", "cold", "flu", None, "flu"],
    "id": ["p", "q", "q", "r", "p"],
}
COLUMNS = [Column(name="age", kind="numeric")]


def test_rows_are_counted_by_cell_and_by_record() -> None:
    cells = cells_of(TABLE, COLUMNS, quasi=["age", "city"], sensitive=["disease"])
    assert (len(cells), cells.total) == (3, 5)
    assert cells.codes.tolist() == [[0, 0], [1, 1], [2, 1]]
    assert cells.weights.tolist() == [3, 1, 1]
    assert cells.record_cells.tolist() == [0, 0, 1, 2]
    assert cells.record_weights.tolist() == [1, 2, 1, 1]
    assert cells.sensitive[0].values == ("cold", "flu", None)
    assert cells.record_values.tolist() == [[0], [1], [1], [2]]
    assert cells.record_subjects is None
    assert cells.names == ("age", "city")


def test_persons_make_records_finer() -> None:
    cells = cells_of(TABLE, COLUMNS, quasi=["city"], sensitive=["disease"], subject="id")
    assert cells.record_weights.tolist() == [1, 2, 1, 1]
    assert cells.record_subjects is not None
    assert len(cells.record_subjects) == 4


def test_a_column_may_be_quasi_identifier_and_looked_at_as_sensitive() -> None:
    cells = cells_of(TABLE, COLUMNS, quasi=["city", "disease"], sensitive=["disease"])
    assert cells.names == ("city", "disease")
    assert cells.sensitive[0].name == "disease"


def test_sensitive_hierarchies_are_cut_down_to_what_occurs() -> None:
    tree = Hierarchy.taxonomy({"lungs": ["flu", "cold", "cough"], "skin": ["rash"]})
    column = Column(name="disease", role="sensitive", hierarchy=tree)
    cells = cells_of({"q": ["a", "a"], "disease": ["cold", "rash"]}, [column], quasi=["q"], sensitive=["disease"])
    attribute = cells.sensitive[0].attribute
    assert attribute.leaves == ("cold", "rash")
    assert [codes.tolist() for codes in attribute.ancestors] == [[0, 1], [0, 1], [0, 0]]


def test_values_outside_a_hierarchy_and_empty_tables_are_refused() -> None:
    column = Column(name="city", hierarchy=Hierarchy.taxonomy({"*": ["a"]}))
    with pytest.raises(HierarchyError, match="uncovered"):
        cells_of(TABLE, [column], quasi=["city"])
    with pytest.raises(DataError, match="with data"):
        cells_of({"city": np.array([], dtype=str)}, quasi=["city"])


def test_attribute_weights_are_shares_and_can_be_changed() -> None:
    cells = cells_of(TABLE, COLUMNS, quasi=["age", "city"])
    assert cells.weights_of_attributes.tolist() == [0.5, 0.5]
    assert cells.with_weights({"age": 3}).weights_of_attributes.tolist() == [0.75, 0.25]


def test_sources_say_how_stored_values_became_codes() -> None:
    cells = cells_of(TABLE, COLUMNS, quasi=["age"], sensitive=["disease"], subject="id")
    assert [source.name for source in cells.sources] == ["age", "disease", "id"]
    assert cells.sources[0].values == (30, 41, None)
    assert cells.sources[0].codes.tolist() == [0, 1, 2]


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xyz"), st.sampled_from("uv")), min_size=1))
def test_counts_agree_with_a_counter(rows: Any) -> None:
    columns = [Column(name="a", kind="numeric"), Column(name="b"), Column(name="s", role="sensitive")]
    cells = coded(rows, columns)
    shown = Counter(
        {
            (*(item.leaves[code] for item, code in zip(cells.attributes, codes, strict=True)),): int(weight)
            for codes, weight in zip(cells.codes, cells.weights, strict=True)
        }
    )
    assert shown == Counter(row[:2] for row in rows)
    assert sorted(cells.record_weights) == sorted(Counter(rows).values())
    assert (np.bincount(cells.record_cells, weights=cells.record_weights) == cells.weights).all()


@given(lines=st.lists(st.tuples(*[st.integers(0, 2)] * 3), max_size=30), size=st.sampled_from([3, 2**31]))
def test_grouping_is_the_same_with_and_without_room_for_one_key(lines: Any, size: int) -> None:
    codes = np.array(lines, dtype=np.int64).reshape(-1, 3)
    order, starts, group = group_lines(codes, (size,) * 3)
    distinct = sorted(set(lines))
    assert [tuple(codes[place]) for place in order[starts]] == distinct
    assert [distinct[number] for number in group] == lines


def test_no_lines_are_no_cells() -> None:
    cells = coded([(1, "x")], [Column(name="a", kind="numeric"), Column(name="b")])
    none = cells_from_arrays(cells.attributes, cells.codes[:0], cells.weights[:0])
    assert (len(none), none.total, len(none.record_weights)) == (0, 0, 0)


def test_passing_looks_show_names_only() -> None:
    cells = cells_of(TABLE, COLUMNS, quasi=["age"], sensitive=["disease"])
    assert repr(cells) == "Cells(['age'], sensitive=['disease'])"
