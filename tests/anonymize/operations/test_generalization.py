from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import cloister as cl
from cloister.anonymize.operations import BottomCode, Generalize, Round, TopCode
from cloister.errors import CloisterError, DataError, HierarchyError, ParameterError, ParameterTypeError
from tests.anonymize.operations.helpers import transformed

AGES = cl.Hierarchy.intervals((0, 110), widths=[5, 10, 20])


def column(operation: Any, values: Any, **options: Any) -> list[Any]:
    found: list[Any] = operation.apply(pa.table({"v": values}, **options)).to_arrow()["v"].to_pylist()
    return found


def test_a_level_of_a_hierarchy() -> None:
    assert column(Generalize("v", level=2, hierarchy=AGES), [39, None, 0]) == ["[30, 40)", None, "[0, 10)"]


def test_missing_cells_say_nothing_at_the_root() -> None:
    assert column(Generalize("v", level=AGES.height, hierarchy=AGES), [39, None]) == ["*", "*"]


def test_the_hierarchy_of_the_schema_is_used() -> None:
    schema = cl.Schema([cl.Column(name="v", kind="numeric", bounds=(0, 110), hierarchy=AGES)])
    table = cl.open_table(pa.table({"v": [39]}), schema=schema)
    after = Generalize("v", level=1).apply(table)
    assert after.to_arrow()["v"].to_pylist() == ["[35, 40)"]
    assert after.schema["v"].kind is cl.Kind.NOMINAL
    assert after.schema["v"].bounds is None
    assert after.schema["v"].hierarchy is None


def test_names_of_different_levels() -> None:
    jobs = cl.Hierarchy.taxonomy({"Government": ["State", "Local"], "Private": None})
    operation = Generalize("v", labels=["Government", "Private"], hierarchy=jobs)
    assert column(operation, ["Local", "Private", None]) == ["Government", "Private", None]


def test_names_must_cover_every_value_once() -> None:
    jobs = cl.Hierarchy.taxonomy({"Government": ["State", "Local"], "Private": None})
    with pytest.raises(ParameterError, match="cover every value once"):
        column(Generalize("v", labels=["Government"], hierarchy=jobs), ["Local"])
    with pytest.raises(ParameterError, match="drop one"):
        column(Generalize("v", labels=["Government", "State", "Private"], hierarchy=jobs), ["Local"])


@pytest.mark.parametrize("values", [[24, 30], [30.5], ["30"]])
def test_values_outside_are_refused_and_not_shown(values: list[Any]) -> None:
    narrow = cl.Hierarchy.intervals((25, 49), widths=[25])
    with pytest.raises(CloisterError) as caught:
        column(Generalize("v", intervals=["25-29"]), values)
    assert "30" not in str(caught.value).replace('"v"', "")
    if values == [24, 30]:
        with pytest.raises(HierarchyError, match="uncovered") as refused:
            column(Generalize("v", level=1, hierarchy=narrow), values)
        assert "24" not in str(refused.value)


def test_shared_ends_belong_to_the_upper_interval() -> None:
    assert column(Generalize("v", intervals=["0-50", "50-100"]), [49.9, 50, 100]) == ["0-50", "50-100", "50-100"]


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ({}, "one of level"),
        ({"level": 1, "intervals": ["0-1"]}, "one of level"),
        ({"intervals": ["young"]}, "write intervals as"),
        ({"intervals": ["0-10", "5-20"]}, "overlap"),
        ({"intervals": ["0-10"], "hierarchy": AGES}, "either"),
        ({"intervals": "0-10"}, "list of texts"),
        ({"level": -1}, "level"),
        ({"level": "1"}, "integer"),
    ],
)
def test_contradictory_settings_are_refused(options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        Generalize("v", **options)


def test_a_hierarchy_is_needed() -> None:
    with pytest.raises(ParameterError, match="give hierarchy="):
        column(Generalize("v", level=1), [1])
    with pytest.raises(ParameterError, match="above the root"):
        column(Generalize("v", level=9, hierarchy=AGES), [1])


def test_top_and_bottom_coding() -> None:
    assert column(TopCode("v", limit=90), [34, 101, None]) == [34, 90, None]
    assert column(BottomCode("v", limit=18), [17, 34]) == [18, 34]
    assert column(TopCode("v", limit=90.5), [34.0, float("inf")]) == [34.0, 90.5]
    assert column(TopCode("v", limit=90, label="90+"), [34, 90, 91]) == ["34", "90", "90+"]


def test_dates_are_coded_too() -> None:
    import datetime as dt

    days = [dt.date(1899, 1, 1), dt.date(1980, 5, 5)]
    assert column(BottomCode("v", limit="1900-01-01"), days) == [dt.date(1900, 1, 1), dt.date(1980, 5, 5)]
    times = [dt.datetime(2030, 1, 1, 5), dt.datetime(1980, 5, 5)]
    assert column(TopCode("v", limit=dt.date(2000, 1, 1)), times) == [dt.datetime(2000, 1, 1), times[1]]
    assert column(TopCode("v", limit="2000-01-01T12:00:00"), times) == [dt.datetime(2000, 1, 1, 12), times[1]]


@pytest.mark.parametrize(
    ("values", "limit", "fix"),
    [
        (["a"], 1, "numeric column"),
        ([1], "2020-01-01", "a number for numbers"),
        ([1], 1.5, "a whole number"),
        ([1], "soon", "dates as"),
        ([1], True, "number"),
    ],
)
def test_limits_that_do_not_fit(values: list[Any], limit: Any, fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        column(TopCode("v", limit=limit), values)


def test_coding_keeps_the_domain_and_a_label_does_not() -> None:
    schema = cl.Schema([cl.Column(name="v", kind="numeric", bounds=(0, 110))])
    table = cl.open_table(pa.table({"v": [39]}), schema=schema)
    assert TopCode("v", limit=90).apply(table).schema["v"].bounds == (0, 110)
    assert TopCode("v", limit=90, label="90+").apply(table).schema["v"].bounds is None
    with pytest.raises(ParameterTypeError, match="label"):
        TopCode("v", limit=1, label="")


def test_rounding_goes_to_the_nearest_multiple() -> None:
    assert column(Round("v", base=10), [14, 15, 16, 25, -15, None]) == [10, 20, 20, 20, -20, None]
    assert column(Round("v", base=0.5), [1.2, 1.3, None]) == [1.0, 1.5, None]
    assert column(Round("v", base="2.5"), [4]) == [5.0]
    assert column(Round("v", base=1e-300), [1e300]) == [1e300]


def test_rounding_refuses_what_it_cannot_do() -> None:
    with pytest.raises(DataError, match="smaller base"):
        column(Round("v", base=2**62), [1])
    with pytest.raises(DataError, match="smaller base"):
        column(Round("v", base=100), [2**63 - 2])
    with pytest.raises(DataError, match="infinite"):
        column(Round("v", base=1), [float("inf")])
    with pytest.raises(DataError, match="numeric column"):
        column(Round("v", base=1), ["1"])
    with pytest.raises(ParameterError, match="above 0"):
        Round("v", base=0)


@given(
    st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=1),
    st.fractions(min_value="1/1000", max_value=10**6, max_denominator=1000),
)
def test_rounding_is_idempotent_and_near(values: list[int | None], base: Any) -> None:
    found = transformed(Round("v", base=base), v=pa.array(values, pa.int64()))["v"]
    assert transformed(Round("v", base=base), v=pa.array(found, pa.float64()))["v"] == found
    for before, after in zip(values, found, strict=True):
        assert (before is None) == (after is None)
        if before is not None:  # the result is a double, so half a step and one unit in its last place
            assert abs(before - Fraction(after)) <= Fraction(base) / 2 + Fraction(math.ulp(after))


@given(st.lists(st.floats(-1e12, 1e12), min_size=1), st.fractions(min_value="1/1000", max_value=10**6))
def test_rounding_real_numbers_is_idempotent(values: list[float], base: Any) -> None:
    once = transformed(Round("v", base=base), v=values)["v"]
    assert transformed(Round("v", base=base), v=once)["v"] == once


@given(st.lists(st.integers(0, 110)), st.integers(0, 4))
def test_generalization_agrees_with_the_hierarchy(values: list[int], level: int) -> None:
    found = transformed(Generalize("v", level=level, hierarchy=AGES), v=pa.array(values, pa.int64()))["v"]
    assert found == [AGES.generalize(value, level=level) for value in values]
