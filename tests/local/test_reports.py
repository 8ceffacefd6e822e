from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.guarantees import SEEDED_RANDOMNESS
from cloister.core.random import SeededRandomSource
from cloister.errors import (
    ForeignReportError,
    MalformedReportError,
    ParameterTypeError,
    SourceNotFoundError,
    TooFewReportsError,
)
from cloister.local import DirectEncoding, LocalReport, OptimizedUnaryEncoding, Reports, open_protocol
from cloister.local._output_space import Bits, Integer, Integers, OutputSpace

PROTOCOL = DirectEncoding(domain=["a", "b", "c"], epsilon=1)
REPORTS = PROTOCOL.randomize(["a", "b", "c", "a"] * 20)


def test_one_value_gives_one_report() -> None:
    report = PROTOCOL.randomize("a")
    assert isinstance(report, LocalReport)
    assert report.y in (0, 1, 2)
    assert list(report) == [report]
    assert json.loads(report.to_json()) == report.to_dict()


@pytest.mark.parametrize(
    "form",
    [
        lambda reports: reports,
        list,
        lambda reports: reports.to_bytes(),
        lambda reports: reports.to_dicts(),
        lambda reports: reports.to_json_lines(),
        lambda reports: [report.to_json() for report in reports],
        lambda reports: [reports[:7], reports[7:]],
        lambda reports: reports[:7] + reports[7:],
    ],
)
def test_every_form_gives_the_same_estimate(form: Any) -> None:
    assert PROTOCOL.estimate(form(REPORTS)).counts == PROTOCOL.estimate(REPORTS).counts


def test_a_single_dictionary_is_a_report() -> None:
    assert PROTOCOL.estimate(REPORTS[0].to_dict()).reports == 1


@pytest.mark.parametrize(
    "other",
    [
        DirectEncoding(domain=["a", "b", "c"], epsilon=2),
        DirectEncoding(domain=["a", "c", "b"], epsilon=1),
        DirectEncoding(domain=["a", "b", "c", "d"], epsilon=1),
    ],
)
def test_reports_of_other_protocols_are_refused(other: DirectEncoding) -> None:
    foreign = other.randomize(["a", "b"])
    for form in (foreign, foreign.to_bytes(), foreign.to_dicts(), [foreign[0]]):
        with pytest.raises(ForeignReportError, match="by themselves"):
            PROTOCOL.estimate(form)
    with pytest.raises(ForeignReportError):
        REPORTS + foreign


def test_another_version_is_refused() -> None:
    with pytest.raises(ForeignReportError):
        PROTOCOL.estimate({**REPORTS[0].to_dict(), "version": 2})
    data = bytearray(REPORTS.to_bytes())
    data[4] = 9
    with pytest.raises(ForeignReportError):
        PROTOCOL.estimate(bytes(data))


@pytest.mark.parametrize("y", [3, -1, "a", "0", True, 1.0, None, [0], {"y": 0}])
def test_values_outside_of_the_output_space_are_refused_without_quoting_them(y: object) -> None:
    """LDP-19."""
    with pytest.raises(MalformedReportError, match="never send plain answers"):
        PROTOCOL.estimate([{**REPORTS[0].to_dict(), "y": y}])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"\x00",
        lambda data: data[:10],
        lambda data: b"XXXX" + data[4:],
        lambda data: data[:-1] + b"\x07",
        lambda data: b"",
    ],
)
def test_damaged_bytes_are_refused(damage: Any) -> None:
    with pytest.raises(MalformedReportError):
        PROTOCOL.estimate(damage(REPORTS.to_bytes()))


def test_what_is_not_json_or_too_long_is_refused() -> None:
    for bad in ("{", "[" * 100_000, '{"y": ' + "1" * 2**21 + "}", "{}", "7"):
        with pytest.raises(MalformedReportError):
            PROTOCOL.estimate([bad])
    with pytest.raises(ParameterTypeError, match="randomize returned"):
        PROTOCOL.estimate(7)


def test_files_are_read_in_both_forms(tmp_path: Path) -> None:
    binary, lines = tmp_path / "reports.bin", tmp_path / "reports.jsonl"
    binary.write_bytes(REPORTS.to_bytes())
    lines.write_text(REPORTS.to_json_lines(), encoding="utf-8")
    for source in (binary, lines, binary.open("rb"), lines.open("rb"), lines.open(encoding="utf-8")):
        assert PROTOCOL.estimate(source).counts == PROTOCOL.estimate(REPORTS).counts
        if not isinstance(source, Path):
            source.close()
    with pytest.raises(SourceNotFoundError, match="check the path"):
        PROTOCOL.estimate(tmp_path / "nothing")
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(MalformedReportError):
        PROTOCOL.estimate(binary)


def test_a_bad_report_is_located() -> None:
    good = REPORTS.to_dicts()
    with pytest.raises(MalformedReportError, match="Report 3 is not one"):
        PROTOCOL.estimate([good[0], good[1], {**good[2], "y": 9}])
    with pytest.raises(MalformedReportError, match="Report 2 is not JSON"):
        PROTOCOL.estimate([json.dumps(good[0]), "{"])


def test_forms_may_be_mixed() -> None:
    mixed = [REPORTS[0], REPORTS[1].to_dict(), REPORTS[2].to_json(), REPORTS[3:]]
    assert PROTOCOL.estimate(mixed).counts == PROTOCOL.estimate(REPORTS).counts


def test_what_is_sent_beside_a_report_is_refused() -> None:
    good = REPORTS[0].to_dict()
    PROTOCOL.estimate({**good, "survey": "s", "question": "q", "level": "low"})
    with pytest.raises(MalformedReportError, match="nothing beside it"):
        PROTOCOL.estimate({**good, "answer": "a"})
    for version in (True, 1.0):
        with pytest.raises(ForeignReportError):
            PROTOCOL.estimate({**good, "version": version})


def test_long_reports_are_read_if_the_protocol_makes_them() -> None:
    protocol = OptimizedUnaryEncoding(domain=2**21, epsilon=1)
    assert protocol.read([protocol.randomize(5)[0].to_json()]).payload.size == 1


def test_no_reports_give_no_estimate() -> None:
    for empty in ([], "", PROTOCOL.randomize([])):
        with pytest.raises(TooFewReportsError, match="collect more"):
            PROTOCOL.estimate(empty)


def test_seeded_reports_break_their_promise() -> None:
    reports = PROTOCOL.randomize(["a"], random_state=SeededRandomSource(1))
    assert reports.caveats == (SEEDED_RANDOMNESS,)
    assert not PROTOCOL.estimate(reports + REPORTS).guarantee.holds
    assert not PROTOCOL.estimate([reports, REPORTS]).guarantee.holds
    assert PROTOCOL.estimate(REPORTS).guarantee.holds


def test_a_repr_shows_no_report() -> None:
    assert repr(REPORTS) == "Reports(80 of DirectEncoding(domain of 3, epsilon=1), 80 bytes)"


def test_records_open_again_and_changed_ones_are_refused() -> None:
    record = PROTOCOL.to_dict()
    assert open_protocol(record) == PROTOCOL == open_protocol(json.dumps(record))
    assert hash(open_protocol(record)) == hash(PROTOCOL)
    with pytest.raises(ForeignReportError, match="same version"):
        open_protocol({**record, "params": {"truth": "1"}})
    with pytest.raises(ParameterTypeError, match="Protocol.to_dict"):
        open_protocol({})


def test_fields_of_every_kind_make_the_round_trip() -> None:
    space = OutputSpace((Integer("a", -3, 3), Bits("b", 11), Bits("c", 4, ones=2), Integers("d", 3, 0, 300)))
    values = [[-3, "10000000001", "0110", [0, 300, 7]], [3, "0" * 11, "1001", [1, 2, 3]]]
    rows = space.check(space.parse(values))
    assert [space.show(row) for row in rows] == space.shown(rows) == values
    assert space.dtype.itemsize == 1 + 2 + 1 + 6
    assert [field["kind"] for field in space.to_dict()["fields"]] == ["integer", "bits", "bits", "integers"]


@pytest.mark.parametrize(
    "value",
    [
        [4, "10000000001", "0110", [0, 300, 7]],
        [3, "1000000000", "0110", [0, 300, 7]],
        [3, "1000000000x", "0110", [0, 300, 7]],
        [3, "10000000001", "0111", [0, 300, 7]],
        [3, "10000000001", "0110", [0, 301, 7]],
        [3, "10000000001", "0110", [0, 300]],
        [3, "10000000001", "0110", "abc"],
        [3, "10000000001", "0110"],
        7,
    ],
)
def test_fields_refuse_what_does_not_fit(value: object) -> None:
    space = OutputSpace((Integer("a", -3, 3), Bits("b", 11), Bits("c", 4, ones=2), Integers("d", 3, 0, 300)))
    with pytest.raises(MalformedReportError):
        space.parse([value])


FIELDS = (
    Integer("a", -3, 3),
    Integer("b", 0, 2**64 - 1),
    Integers("c", 2, 0, 300),
    Bits("d", 9),
    Bits("e", 4, ones=2),
)
JSON_VALUES = st.one_of(
    st.integers(-5, 5),
    st.sampled_from(
        [
            2**63,
            2**64 - 1,
            2**64,
            -(10**30),
            True,
            None,
            1.0,
            "1010",
            "1\N{ARABIC-INDIC DIGIT ONE}10",
            "10 1",
            "110010011",
            "x",
        ]
    ),
    st.text("01", min_size=4, max_size=9),
    st.lists(st.integers(-1, 301), max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(field=st.sampled_from(FIELDS), values=st.lists(JSON_VALUES, min_size=1, max_size=6))
def test_many_values_are_read_as_each_of_them_is(field: Any, values: list[Any]) -> None:
    space, each = OutputSpace((field,)), []
    for value in values:
        try:
            each.append(np.array([(field.parse(value),)], dtype=space.dtype))
        except MalformedReportError:
            with pytest.raises(MalformedReportError):
                space.parse(values)
            return
    rows = space.parse(values)
    assert rows.tobytes() == np.concatenate(each).tobytes()
    assert space.shown(rows) == [space.show(row) for row in rows] == values


def test_rows_are_checked_field_by_field() -> None:
    space = OutputSpace((Bits("b", 11), Bits("c", 4, ones=2), Integers("d", 2, 0, 300)))
    good = space.parse([["1" * 11, "0110", [1, 2]]])
    for field, bad in (("b", [255, 255]), ("c", [15]), ("d", [1, 301])):
        rows = good.copy()
        rows[field] = bad
        with pytest.raises(MalformedReportError):
            space.check(rows)
    with pytest.raises(MalformedReportError):
        space.check(np.zeros(3))


def test_reports_are_a_sequence() -> None:
    assert len(REPORTS[2:5]) == 3
    assert isinstance(REPORTS[2:5], Reports)
    assert len(list(REPORTS)) == 80


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"unknown": 1}},
        {"options": [1]},
        {"bounds": ["0", "1"]},
        {"name": "duchi"},
    ],
)
def test_records_with_other_parts_are_no_records(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterTypeError, match="not a protocol record"):
        open_protocol({**PROTOCOL.to_dict(), **change})


def test_options_cannot_replace_the_stated_epsilon() -> None:
    with pytest.raises(ForeignReportError):
        open_protocol({**PROTOCOL.to_dict(), "options": {"epsilon": "2"}})


def test_records_without_parts_or_nested_too_deeply_are_no_records() -> None:
    record = PROTOCOL.to_dict()
    del record["domain"]
    for wrong in (record, "[" * 100_000):
        with pytest.raises(ParameterTypeError, match="not a protocol record"):
            open_protocol(wrong)
