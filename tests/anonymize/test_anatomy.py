from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings, strategies as st

import cloister as cl
from cloister.anonymize.anatomy import ANATOMY, AnatomyTables, anatomize
from cloister.errors import (
    DataError,
    ParameterError,
    SeededRandomnessWarning,
    StatisticalError,
    UnknownColumnError,
    UnsatisfiableError,
)
from cloister.testing import check_distribution, distributions

PATIENTS = pa.table(
    {
        "age": [25, 31, 38, 45, 24, 30, 41, 49, 40, 40, 45, 50],
        "zip": ["90210"] * 4 + ["33109"] * 4 + ["07620"] * 4,
        "disease": ["AIDS", "Cancer", "Flu", "None"] * 3,
    }
)


def run(table: pa.Table, l: int, **others: Any) -> AnatomyTables:  # noqa: E741
    quasi = [name for name in table.column_names if name != "disease"]
    return anatomize(table, quasi=quasi, sensitive="disease", l=l, **others)


def values_of(tables: AnatomyTables) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for line in tables.sensitive.to_pylist():
        found.setdefault(line["GroupID"], []).extend([line["disease"]] * line["Count"])
    return found


def test_twelve_patients_are_three_groups_with_each_disease_once() -> None:
    tables = run(PATIENTS, 4)
    assert tables.groups == 3
    assert list(values_of(tables).values()) == [["AIDS", "Cancer", "Flu", "None"]] * 3
    assert tables.sizes.tolist() == [4, 4, 4]


@settings(max_examples=200)
@given(
    diseases=st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=1, max_size=40), l=st.integers(1, 4)
)
def test_every_group_has_at_least_l_rows_and_no_value_twice(diseases: Any, l: int) -> None:  # noqa: E741
    assume(max(Counter(diseases).values()) * l <= len(diseases))
    table = pa.table({"row": range(len(diseases)), "disease": pa.array(diseases, pa.string())})
    tables = run(table, l)
    groups = values_of(tables)
    assert len(groups) == tables.groups == len(diseases) // l
    assert all(len(values) == len(set(values)) >= l for values in groups.values())
    assert [len(groups[number]) for number in range(tables.groups)] == tables.sizes.tolist()
    assert sorted(tables.quasi["row"].to_pylist()) == list(range(len(diseases)))
    assert Counter(value for values in groups.values() for value in values) == Counter(diseases)
    for row, group in zip(tables.quasi["row"].to_pylist(), tables.quasi["GroupID"].to_pylist(), strict=True):
        assert diseases[row] in groups[group]


def test_the_sensitive_table_is_sorted_by_group_and_value() -> None:
    tables = run(PATIENTS, 2)
    lines = [(line["GroupID"], line["disease"]) for line in tables.sensitive.to_pylist()]
    assert lines == sorted(lines)


@pytest.mark.statistical
def test_the_position_of_a_row_tells_nothing_about_its_value() -> None:
    table = pa.table({"row": range(4), "disease": ["a", "b", "a", "b"]})
    first, partners, numbers = [], [], []
    for _ in range(3000):
        tables = run(table, 2)
        rows, groups = tables.quasi["row"].to_numpy(), tables.quasi["GroupID"].to_numpy()
        first.append(int(rows[0]))
        mine = groups[np.argsort(rows)]
        partners.append(int(mine[0] == mine[1]))
        numbers.append(int(mine[0]))
    check_distribution(first, _even(4))
    check_distribution(partners, _even(2))
    check_distribution(numbers, _even(2))
    with pytest.raises(StatisticalError):
        check_distribution(np.where(np.arange(len(first)) % 4 == 0, 0, first), _even(4))


def test_equally_frequent_values_meet_at_random_whatever_their_names() -> None:
    table = pa.table({"row": range(1200), "disease": ["a", "b", "c", "d"] * 300})
    met = Counter(frozenset(values) for values in values_of(run(table, 2)).values())
    assert sum(met.values()) == 600
    assert len(met) == 6
    assert max(met.values()) < 250


def test_positions_say_where_a_row_came_from() -> None:
    tables = run(PATIENTS, 4)
    assert tables.positions is not None
    assert tables.quasi["age"].to_pylist() == PATIENTS["age"].take(pa.array(tables.positions)).to_pylist()


def _even(size: int) -> distributions.Distribution:
    return distributions.categorical(dict.fromkeys(range(size), 1 / size))


def test_the_default_randomness_differs_from_run_to_run() -> None:
    table = pa.table({"row": range(400), "disease": ["a", "b"] * 200})
    first, second = (run(table, 2).quasi["row"].to_pylist() for _ in range(2))
    assert first != second
    assert first != sorted(first)


def test_a_seed_repeats_and_warns() -> None:
    with pytest.warns(SeededRandomnessWarning):
        first = run(PATIENTS, 2, random_state=1)
    with pytest.warns(SeededRandomnessWarning):
        assert run(PATIENTS, 2, random_state=1).quasi.equals(first.quasi)


def test_counts_are_estimated_from_shares_of_groups() -> None:
    tables = AnatomyTables(
        quasi=pa.table({"age": [20, 30, 40, 50, 60], "GroupID": [0, 0, 1, 1, 1]}),
        sensitive=pa.table({"GroupID": [0, 0, 1, 1], "disease": ["flu", None, "cold", "flu"], "Count": [1, 1, 1, 2]}),
        attribute="disease",
        groups=2,
    )
    assert tables.estimate_count(pc.field("age") >= 30, "flu") == pytest.approx(1 / 2 + 3 * 2 / 3)
    assert tables.estimate_count(np.array([True, False, False, False, True]), "cold") == pytest.approx(1 / 3)
    assert tables.estimate_count(pc.field("age") < 99, None) == pytest.approx(1)
    assert tables.estimate_count(pc.field("age") < 99, "plague") == 0


def test_totals_of_a_value_are_exact() -> None:
    tables = run(PATIENTS, 3)
    assert tables.estimate_count(pc.field("age") > 0, "Flu") == pytest.approx(3)


def test_a_value_that_is_too_frequent_is_refused_with_the_l_that_works() -> None:
    table = pa.table({"row": range(10), "disease": ["flu"] * 4 + list("abcdef")})
    assert run(table, 2).groups == 5
    with pytest.raises(UnsatisfiableError, match="l <= 2"):
        run(table, 3)


def test_few_rows_and_none_are_refused() -> None:
    with pytest.raises(UnsatisfiableError, match="l <= 2"):
        run(PATIENTS.slice(0, 2), 3)
    with pytest.raises(DataError, match="with data"):
        run(PATIENTS.slice(0, 0), 2)


def test_columns_must_exist_and_not_be_named_like_the_new_ones() -> None:
    with pytest.raises(UnknownColumnError, match='Did you mean "age"'):
        anatomize(PATIENTS, quasi=["agee"], sensitive="disease", l=2)
    renamed = PATIENTS.rename_columns(["GroupID", "zip", "disease"])
    with pytest.raises(ParameterError, match="rename"):
        run(renamed, 2)


def test_the_caveat_names_membership_and_attacks_and_does_not_deny_the_bound() -> None:
    guarantee = cl.LDiversity("disease", l=2, kind="frequency").with_caveat(ANATOMY)
    assert guarantee.holds
    assert "deFinetti" in guarantee.explain()
    assert "who is in the table" in guarantee.explain()


def test_nothing_about_rows_is_shown_in_passing() -> None:
    assert repr(run(PATIENTS, 2)) == "AnatomyTables(['age', 'zip', 'GroupID'], sensitive='disease')"
