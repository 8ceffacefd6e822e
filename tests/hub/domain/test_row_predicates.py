from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from cloister import open_table
from cloister.errors import PolicyError
from cloister.hub.domain._row_predicates import RowPredicate, bind_all

BRANCHES = open_table(pa.table({"branch": ["north", "south"], "ward": [1, 2], "year": [2019, 2021]}))


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_an_attribute_is_only_ever_compared(value: str) -> None:
    bound = RowPredicate("branch = :branch AND year > 2000").bind({"branch": value})
    assert bound.this.expression.is_string
    assert bound.this.expression.this == value
    assert RowPredicate("branch = :branch").attributes == {"branch"}


@pytest.mark.parametrize("value", ["' OR 1=1 --", "north' OR 'a'='a", "'; DROP TABLE x; --", ":branch", "%"])
def test_no_attribute_reaches_other_rows(value: str) -> None:
    assert BRANCHES.count(RowPredicate("branch = :branch").bind({"branch": value})) == 0


def test_attributes_are_put_in_by_the_type_that_the_condition_states() -> None:
    ward = RowPredicate("ward = CAST(:ward AS BIGINT) OR ward = :other::INT")
    assert ward.attributes == {"ward", "other"}
    assert BRANCHES.count(ward.bind({"ward": "2", "other": "-7"})) == 1
    born = RowPredicate("born >= CAST(:since AS DATE)").bind({"since": "2020-01-31"})
    assert born.sql() == "born >= CAST('2020-01-31' AS DATE)"


@pytest.mark.parametrize("value", ["", "1.5", "2 OR 1=1", "1e3", "9" * 30, "٣"])
def test_an_attribute_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(PolicyError, match="as a whole number"):
        RowPredicate("ward = CAST(:ward AS BIGINT)").bind({"ward": value})


def test_an_attribute_that_is_missing_is_refused() -> None:
    with pytest.raises(PolicyError, match="have the operator"):
        RowPredicate("branch = :branch").bind({})


@pytest.mark.parametrize("value", ["north\0", "north\ud800"])
def test_an_attribute_that_databases_cannot_hold_is_refused(value: str) -> None:
    with pytest.raises(PolicyError, match="without NUL"):
        RowPredicate("branch = :branch").bind({"branch": value})


def test_conditions_are_joined_by_and_whatever_they_hold() -> None:
    either = (RowPredicate("branch = 'north' OR branch = 'south'"), RowPredicate("year > 2020 OR FALSE"))
    assert BRANCHES.count(bind_all(either, {})) == 1
    assert bind_all((), {}) is None


def test_binding_leaves_the_predicate_as_it_is() -> None:
    predicate = RowPredicate("branch = :branch")
    first, second = predicate.bind({"branch": "a"}), predicate.bind({"branch": "b"})
    assert (first.sql(), second.sql()) == ("branch = 'a'", "branch = 'b'")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "branch",
        "SELECT 1",
        "branch = (SELECT 1)",
        "branch IN (SELECT x FROM y)",
        "EXISTS (SELECT 1)",
        "branch = :branch; DROP TABLE x",
        "other.branch = 'a'",
        "read_csv('x') = 'a'",
        "branch || :branch = 'a'",
        "ward + 1 = 2",
        "CAST(ward AS TEXT) = 'a'",
        "branch = ?",
        "CURRENT_DATE > year",
        "branch = CAST(:x AS TEXT)",
        "branch COLLATE nocase = 'a'",
        "1 = 1",
    ],
)
def test_only_plain_conditions_are_taken(text: str) -> None:
    with pytest.raises(PolicyError):
        RowPredicate(text)


def test_a_date_may_be_written_as_one() -> None:
    assert RowPredicate("born > DATE '2000-01-01'").bind({}).sql() == "born > CAST('2000-01-01' AS DATE)"
    with pytest.raises(PolicyError, match="cast attributes only"):
        RowPredicate("born > CAST('7' AS BIGINT)")


def test_the_columns_of_a_condition_are_known() -> None:
    assert RowPredicate("branch = :branch AND (year > 2000 OR ward IN (1, 2))").columns == {"branch", "year", "ward"}
