from __future__ import annotations

import pyarrow as pa
import pytest

import cloister as cl
from cloister.anonymize.assessment import assess
from cloister.anonymize.risk._linkage import LinkageRate

SCHEMA = cl.Schema([cl.Column(name="x", kind="numeric"), cl.Column(name="y"), cl.Column(name="z", role="sensitive")])


def _linked(shown: dict[str, list[object]], raw: dict[str, list[object]]) -> LinkageRate | None:
    original = cl.open_table(pa.table(raw), schema=SCHEMA)
    utility = assess(cl.open_table(pa.table(shown)), original=original).utility
    return None if utility is None else utility.linkage


RAW = {"x": list(range(40)), "y": ["a", "b"] * 20, "z": ["?"] * 40}


def test_an_untouched_table_of_unique_rows_is_linked_rightly() -> None:
    found = _linked(RAW, RAW)
    assert found is not None
    assert (found.rate, found.sample, found.baseline) == (1, 40, 1 / 40)
    assert "100%" in str(found)
    assert found.to_dict()["margin"] == 0


def test_classes_of_four_are_linked_once_in_four() -> None:
    shown = {**RAW, "x": [f"[{4 * (number // 4)}, {4 * (number // 4) + 3}]" for number in range(40)], "y": ["*"] * 40}
    found = _linked(shown, RAW)
    assert found is not None
    assert found.rate == pytest.approx(0.25)


def test_suppressed_rows_are_never_linked() -> None:
    shown = {**RAW, "x": ["*" if number % 2 else str(number) for number in range(40)], "y": ["*", "*"] * 20}
    found = _linked(shown, RAW)
    assert found is not None
    assert found.rate == pytest.approx(0.5)


def test_rows_of_unknown_origin_are_not_linked() -> None:
    assert _linked({name: values[1:] for name, values in RAW.items()}, RAW) is None


def test_a_sample_of_many_rows_is_linked() -> None:
    raw = {"x": [number % 300 for number in range(900)], "y": ["a"] * 900, "z": ["?"] * 900}
    found = _linked(raw, raw)
    assert found is not None
    assert found.sample == 200
    assert found.rate == pytest.approx(1 / 3)
