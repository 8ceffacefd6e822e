"""Distances to the closest record, by hand and beside a control."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from cloister.attacks import distance_to_closest_record
from cloister.core.random import SeededRandomSource
from cloister.errors import DataError, ParameterError
from tests.attacks.synthetic.populations import people, with_copies

ORIGINAL, CONTROL, FRESH = (people(1_000, seed=seed) for seed in (11, 12, 13))


def test_distances_by_hand() -> None:
    original = pa.table({"age": [0, 50], "job": ["nurse", "clerk"]})
    made = pa.table({"age": [0, 100], "job": ["nurse", "clerk"]})
    found = distance_to_closest_record(original, made)
    # The second row is half of the range from (50, clerk): (0.5 + 0) / 2; from the other one (1 + 1) / 2.
    assert found.to_original.mean == pytest.approx(0.125)
    assert found.to_original.identical == 0.5
    assert found.to_original.ratio_median == pytest.approx(0.125)
    assert found.to_control is None
    assert not found.succeeded
    assert "There was no control, so nothing is compared" in found.verdict
    assert found.worst == ((0, 1.0), (1, 0.75))


def test_without_a_control_no_success_is_told() -> None:
    found = distance_to_closest_record(ORIGINAL, FRESH)
    assert found.trials == 0
    assert (found.success, found.interval) == (0.5, (0.0, 1.0))
    assert not found.is_telling
    assert dict(found.summary())["success"] == "no control, so nothing is compared"
    assert found.comparisons() == {}
    told = [str(found), found.verdict, str(found.summary()), found.report().to_markdown()]
    assert all("no control, so nothing is compared" in text and "50%" not in text for text in told)
    assert not any("guess" in text for text in told)
    assert "no control" in str(found.plot().to_dict())


def test_public_bounds_scale_the_distances() -> None:
    tables = (pa.table({"age": [0]}), pa.table({"age": [50]}))
    assert distance_to_closest_record(*tables).to_original.mean == 1
    assert distance_to_closest_record(*tables, bounds={"age": (0, 100)}).to_original.mean == 0.5


def test_copied_rows_are_nearer_to_the_original() -> None:
    made = with_copies(FRESH, ORIGINAL, 0.3)
    found = distance_to_closest_record(ORIGINAL, made, control=CONTROL, random_state=SeededRandomSource(1))
    assert found.succeeded
    assert found.success == pytest.approx(0.65, abs=0.05)
    assert found.to_original.identical == pytest.approx(0.3)
    assert found.to_control is not None
    assert found.to_control.identical == 0
    told = found.to_dict()
    assert told["schema"] == "cloister.closest_records/1"
    assert "town" not in json.dumps(told)
    assert "distance to control" in dict(found.summary())
    assert "nearer to its people" in found.report().to_markdown()


def test_fresh_rows_are_not() -> None:
    found = distance_to_closest_record(ORIGINAL, FRESH, control=CONTROL, random_state=SeededRandomSource(1))
    assert not found.succeeded
    assert found.interval[0] < 0.5 < found.interval[1]


def test_few_control_rows_or_few_synthetic_rows_tell_nothing() -> None:
    assert distance_to_closest_record(ORIGINAL, FRESH, control=CONTROL, random_state=SeededRandomSource(1)).is_telling
    for made, others in ((FRESH, CONTROL.slice(0, 3)), (FRESH.slice(0, 1), CONTROL)):
        found = distance_to_closest_record(ORIGINAL, made, control=others, random_state=SeededRandomSource(1))
        assert not found.is_telling
        assert found.verdict.startswith("There are too few rows to tell")


def test_few_rows_that_are_all_equally_near_tell_nothing() -> None:
    same = pa.table({"a": ["x"] * 500})
    assert not distance_to_closest_record(same, same, control=same.slice(0, 3)).is_telling


def test_copies_are_counted_among_all_rows_of_the_original() -> None:
    made = with_copies(FRESH, ORIGINAL, 0.3)
    found = distance_to_closest_record(
        ORIGINAL, made, control=CONTROL.slice(0, 100), random_state=SeededRandomSource(1)
    )
    assert found.copies == pytest.approx(0.3)
    assert found.to_original.identical < 0.1
    assert "30% of the synthetic rows equal an original row" in found.verdict
    assert found.to_dict()["copies"] == found.copies
    assert dict(found.summary())["synthetic rows equal to original rows"] == "30%"


def test_a_few_copies_are_found_by_counting_them() -> None:
    made = with_copies(FRESH, ORIGINAL, 0.02)
    found = distance_to_closest_record(ORIGINAL, made, control=CONTROL, random_state=SeededRandomSource(1))
    assert found.interval[0] < 0.5
    assert found.succeeded
    assert found.copies_interval == pytest.approx((0.8316, 1), abs=1e-4)
    assert found.verdict.startswith("The synthetic table repeats rows of its people")


def test_one_row_that_is_copied_often_is_one_copy() -> None:
    made = pa.concat_tables([FRESH, *[ORIGINAL.slice(0, 1)] * 50])
    found = distance_to_closest_record(ORIGINAL, made, control=CONTROL, random_state=SeededRandomSource(1))
    assert found.copies == pytest.approx(50 / 1050)
    assert not found.succeeded


def test_rows_that_are_often_equal_by_chance_are_no_copies() -> None:
    few = [table.select(["job", "ill", "town"]) for table in (ORIGINAL, FRESH, CONTROL)]
    found = distance_to_closest_record(*few[:2], control=few[2], random_state=SeededRandomSource(1))
    assert found.copies > 0.9
    assert not found.succeeded


def test_ties_count_half() -> None:
    table = pa.table({"a": ["x", "y"]})
    found = distance_to_closest_record(table, table, control=table)
    assert found.success == 0.5
    assert found.to_original.ratio_smallest == 0


def test_rows_with_the_same_closest_row_count_as_one() -> None:
    crowd = pa.table({"a": [1.0 + place / 10**6 for place in range(400)]})
    found = distance_to_closest_record(pa.table({"a": [1.0, 9.0]}), crowd, control=pa.table({"a": [0.0, 8.0]}))
    assert found.success == 1
    assert not found.succeeded


def test_fewer_rows_may_be_compared() -> None:
    found = distance_to_closest_record(
        ORIGINAL, FRESH, control=CONTROL, most_rows=50, random_state=SeededRandomSource(1)
    )
    assert found.trials == 50


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="Fix: give a table with rows"):
        distance_to_closest_record(ORIGINAL, FRESH, control=CONTROL.slice(0, 0))
    with pytest.raises(ParameterError, match="Fix: use for example most_rows"):
        distance_to_closest_record(ORIGINAL, FRESH, most_rows=1)
