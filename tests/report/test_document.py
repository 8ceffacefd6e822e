from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.errors import DataError, ParameterError
from cloister.report import Report, ReportProvenance, Section, Text, render
from tests.support.reports import HOSTILE, report_of


@given(st.text(st.characters(), max_size=20))
def test_json_keeps_everything(name: str) -> None:
    report = report_of(name, with_chart=False)
    values = report.to_dict()
    assert json.loads(report.to_json()) == values
    assert Report.from_dict(json.loads(json.dumps(values))) == report


def test_charts_survive_json_too() -> None:
    report = report_of(HOSTILE)
    assert next(iter(report.to_dict())) == "schema"
    assert report.to_dict()["schema"] == "cloister.report_page/1"
    back = Report.from_dict(json.loads(report.to_json()))
    assert back == report
    assert back.to_html() == report.to_html()
    assert back.to_markdown() == report.to_markdown()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "cloister.report/9"},
        {"sections": 3},
        {"sections": [{"title": "a", "blocks": [{"block": "poem"}]}]},
        {"sections": [{"title": "a", "blocks": [{"block": "text", "verse": "x"}]}]},
        {"provenance": None},
        {"extra": 1},
        {"title": 3},
    ],
)
def test_other_values_are_no_report(change: dict[str, Any]) -> None:
    values = Report("t").to_dict() | change
    with pytest.raises(ParameterError, match="Fix: give the values that Report.to_dict"):
        Report.from_dict(values)
    with pytest.raises(ParameterError, match="Fix: give the values that Report.to_dict"):
        Report.from_dict({})


def test_further_sections_are_appended() -> None:
    report = Report("t", sections=[Section("Promise")])
    longer = report.with_sections(Section("Attacks", [Text("Three were tried.")]), Section("Linkage", level=2))
    assert [section.title for section in longer.sections] == ["Promise", "Attacks", "Linkage"]
    assert repr(report) == "Report('t', 1 section)"
    assert repr(longer) == "Report('t', 3 sections)"


def test_a_report_says_when_and_with_what_it_was_made() -> None:
    made = Report("t").provenance
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.created)
    assert re.fullmatch(r"cloister \d+\.\d+\.\d+", made.software)
    assert ReportProvenance(created="2026-11-16").moment == "2026-11-16"
    assert ReportProvenance(created="2026-11-16T08:30:01Z").moment == "2026-11-16 08:30 UTC"


@pytest.mark.parametrize(
    ("name", "begins"), [("r.html", "<!DOCTYPE"), ("r.HTM", "<!"), ("r.md", "# "), ("r.json", "{")]
)
def test_every_kind_of_file(tmp_path: Path, name: str, begins: str) -> None:
    report = report_of("Visits")
    assert report.write(tmp_path / name) == tmp_path / name
    assert (tmp_path / name).read_text("utf-8").startswith(begins)
    report.write(str(tmp_path / name))  # replaces it
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ParameterError, match=r'Did you mean "\.html"\?(.|\n)*Fix: use a name that ends in \.html, \.md'
    ):
        Report("t").write(tmp_path / "report.xhtml")
    with pytest.raises(ParameterError, match="Fix: use a name"):
        Report("t").write(tmp_path / "report")
    with pytest.raises(ParameterError, match="use one of html, markdown, json"):
        render(Report("t"), "pdf")


def test_a_file_is_kept_when_asked(tmp_path: Path) -> None:
    (tmp_path / "r.md").write_text("mine", "utf-8")
    with pytest.raises(DataError, match="is there already"):
        Report("t").write(tmp_path / "r.md", overwrite=False)
    assert (tmp_path / "r.md").read_text("utf-8") == "mine"


def test_a_report_that_cannot_be_rendered_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Report("old").write(tmp_path / "r.html")
    before = place.read_text("utf-8")

    def broken(_: Report) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr("cloister.report._html._cover", broken)
    with pytest.raises(ZeroDivisionError):
        Report("new").write(place)
    assert place.read_text("utf-8") == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Fix: choose a folder you may write to"):
        Report("t").write(tmp_path / "none" / "r.html")
