from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from cloister.report.markup import escape_text, paragraphs, spans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("plain", [("", "plain")]),
        ("**a** *b* `c`", [("strong", "a"), ("", " "), ("emphasis", "b"), ("", " "), ("code", "c")]),
        ("2 * 3 * 4", [("", "2 * 3 * 4")]),
        ("**open", [("", "**open")]),
        (r"**a\*b**", [("strong", "a*b")]),
        (r"`a\`b`", [("code", "a`b")]),
        ("`**a**`", [("code", "**a**")]),
        ("<b>&", [("", "<b>&")]),
    ],
)
def test_emphasis(text: str, expected: list[tuple[str, str]]) -> None:
    assert [tuple(span) for span in spans(text)] == expected


@given(st.text() | st.text("*`\\ a"))
def test_escaped_text_is_plain(text: str) -> None:
    found = list(spans(escape_text(text)))
    assert {span.style for span in found} <= {""}
    assert "".join(span.text for span in found) == text


@pytest.mark.no_cover  # tracing would double its time; the examples above reach the same lines
@given(st.text() | st.text("*`\\ a"))
def test_every_letter_stays(text: str) -> None:
    kept = "".join(span.text for span in spans(text))
    assert [letter for letter in kept if letter not in "*`\\"] == [letter for letter in text if letter not in "*`\\"]


@given(st.text("*`\\ a\n", min_size=1, max_size=20).filter(str.strip))
def test_escaped_text_may_be_emphasized(text: str) -> None:
    name = text.strip()
    assert [tuple(span) for span in spans(f"**{escape_text(name)}**")] == [("strong", name)]


def test_an_empty_line_begins_a_paragraph() -> None:
    assert paragraphs("one\ntwo\n \n\nthree\n") == ["one two", "three"]
    assert paragraphs(" ") == []
