from __future__ import annotations

import re
from importlib import resources

import pytest

from cloister.errors import ParameterError
from cloister.hub.use_cases.surveys.lifecycle import read_document
from cloister.local import DirectEncoding, protocols

STATIC = resources.files("cloister.hub") / "web" / "static" / "survey"


def test_the_page_has_a_sentence_for_every_protocol_of_browsers() -> None:
    text = (STATIC / "chances.js").read_text("utf-8").partition("const SENTENCES = {")[2]
    known = {name for name, kind in protocols.items() if kind.in_browsers}
    assert set(re.findall(r"^  (\w+):", text.partition("\n};")[0], re.MULTILINE)) == known


def test_a_survey_that_browsers_cannot_ask_is_refused_before_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DirectEncoding, "in_browsers", False)
    question = {"id": "q", "kind": "single_choice", "text": "?", "options": ["a", "b", "c"], "levels": {"low": 4}}
    head = {"schema": "cloister.survey/1", "id": "s", "title": "?", "collector": "Example Institute"}
    with pytest.raises(ParameterError, match='browsers do not know the protocol "direct_encoding"'):
        read_document({**head, "questions": [question]})
