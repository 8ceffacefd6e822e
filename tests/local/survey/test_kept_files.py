"""What is kept at rest is read with suspicion, and written so that nothing can come in twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import DataError, MalformedReportError, ParameterError
from cloister.local import Collector, Survey, SurveyQuestion
from cloister.local.survey import token_id

SURVEY = Survey(
    id="kept",
    title="Kept",
    collector="Example Institute",
    questions=[SurveyQuestion(id="married", kind="yes_no", text="Married?")],
)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    collector = Collector(SURVEY)
    for answer in ("yes", "no", "yes"):
        collector.add(SURVEY.answer({"married": answer}))
    collector.save(tmp_path / "deep" / "folder")
    return tmp_path / "deep" / "folder"


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "reports.json"
    values = json.loads(path.read_text("utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def test_what_was_kept_is_read_again(kept: Path) -> None:
    assert len(Collector.load(SURVEY, kept)) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.update(days={}),
        lambda values: values.update(days={"2026-05-04": -1}),
        lambda values: values.update(days={"2026-05-04": 1.5}),
        lambda values: values.update(days={"2026-05-04": 10**400}),
        lambda values: values.update(days={"<script>": 3}),
        lambda values: values.update(days={"0001-01-01": 3}),
        lambda values: values["bags"].pop(),
        lambda values: values["bags"].append(values["bags"][0]),
    ],
)
def test_damaged_files_are_refused(kept: Path, change: Callable[[dict[str, Any]], None]) -> None:
    changed(kept, change)
    with pytest.raises(DataError, match="backup"):
        Collector.load(SURVEY, kept)


def test_missing_ids_are_noticed(kept: Path) -> None:
    path = kept / "used-ids.json"
    values = json.loads(path.read_text("utf-8"))
    values["used"] = values["used"][:1]
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(DataError, match="backup"):
        Collector.load(SURVEY, kept)


def test_a_file_in_the_way_leaves_both_as_they_were(tmp_path: Path) -> None:
    collector = Collector(SURVEY)
    collector.add(SURVEY.answer({"married": "yes"}))
    (tmp_path / "used-ids.json").write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match="overwrite=True"):
        collector.save(tmp_path)
    assert not (tmp_path / "reports.json").exists()
    collector.save(tmp_path, overwrite=True)
    assert len(Collector.load(SURVEY, tmp_path)) == 1
    with pytest.raises(DataError, match="may write"):
        collector.save(tmp_path / "used-ids.json" / "folder")


@pytest.mark.parametrize("admitted", [["fern-otter-41"], "fern-otter-41", [], [7]])
def test_tokens_themselves_are_not_admitted(admitted: Any) -> None:
    with pytest.raises(ParameterError, match="token_id"):
        Collector(SURVEY, admitted=admitted)
    Collector(SURVEY, admitted=[token_id("fern-otter-41")])


@pytest.mark.parametrize("day", ["0001-01-01", "1999-12-31", "9999-12-31"])
def test_days_on_which_nobody_can_have_answered_are_refused(day: str) -> None:
    with pytest.raises(MalformedReportError):
        Collector(SURVEY).add({**SURVEY.answer({"married": "yes"}).to_dict(), "day": day})
