from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from cloister.errors import InternalError
from cloister.plotting import Figure
from cloister.report import (
    Bars,
    Bullets,
    Chart,
    Code,
    Panels,
    Report,
    Section,
    Series,
    TableBlock,
    Text,
    Verdict,
)
from cloister.report._markdown import block_markdown
from cloister.report.blocks import Facts
from cloister.report.markup import clean, escape_text
from tests.support.reports import HOSTILE, figure, report_of

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30) | st.text(
    "<>&\"'`*_\\|-=+~\n #1.)a", max_size=30
)


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        found += [token, *(token.children or [])]
    return found


def _words(tokens: list[Token]) -> str:
    return "".join(token.content for token in tokens if token.type in {"text", "text_special", "code_inline", "fence"})


def _shown(text: str) -> str:
    return _words(_tokens(text))


def _shape(text: str) -> list[str]:
    inline = {"text", "text_special"}
    return [token.type for token in _tokens(text) if token.type not in inline]


def test_a_whole_report() -> None:
    text = report_of("Visits").to_markdown()
    assert text.startswith("# Visits\n\nVisits\n\n**! Attention: Visits**\n\nVisits\n\n| Figure |")
    assert "\n## 1. Visits\n" in text
    assert "\n### 1.1. Visits\n" in text
    assert text.endswith("| Created | 2026-11-16 06:20 UTC |\n| Software | Visits |\n| Visits | Visits |\n")


def test_hostile_text_makes_no_markup() -> None:
    kinds = {token.type for token in _tokens(report_of(HOSTILE).to_markdown())}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr"}


@given(NAMES)
def test_any_text_keeps_its_place(name: str) -> None:
    """Whatever the text, the document has the same structure as with plain words, and no markup of its own."""
    cells = Facts([(name, name), ("a", Verdict(name))])
    assert _shape(block_markdown(cells)) == _shape(block_markdown(Facts([("x", "x"), ("a", Verdict("x"))])))
    kinds = {token.type for token in _tokens(report_of(name, with_chart=False).to_markdown())}
    assert not kinds & {"html_block", "html_inline", "link_open", "image", "hr"}


@given(NAMES)
@example(" -")
def test_any_text_reads_as_it_is(name: str) -> None:
    expected = "".join(clean(name).split())
    for block in (Text(escape_text(name)), Bullets([escape_text(name)]), Code(name), TableBlock(["x"], [[name]])):
        heading = "x" if isinstance(block, TableBlock) else ""
        assert "".join(_shown(block_markdown(block)).split()).removeprefix(heading) == expected


def test_tables_carry_their_alignment() -> None:
    text = block_markdown(TableBlock(["a|b", "n"], [["x\ny", 1234.5]], caption="*All* of it"))
    assert text == "*All* of it\n\n| a\\|b | n |\n| :-- | --: |\n| x y | 1,234 |"


def test_charts_are_tables() -> None:
    text = block_markdown(Chart(figure("north"), "By region"))
    assert text.startswith("**north**\n\n| north | north |")
    assert "| north | 120 ± 12 |" in text
    assert text.endswith("\n\nBy region")
    assert block_markdown(Chart(Figure.from_dict({"mark": "bar"}))) == "The chart holds no numbers of its own."


def test_bars_and_panels_are_tables() -> None:
    bars = Bars(["a"], [Series("before", [1]), Series("after", [0.5])], caption="Sizes")
    assert block_markdown(Panels([bars, Text("end")])) == (
        "Sizes\n\n|  | before | after |\n| :-- | --: | --: |\n| a | 1 | 0.5 |\n\nend"
    )


def test_code_gets_a_fence_that_it_cannot_leave() -> None:
    assert block_markdown(Code("a\n```\nb", "ya`ml")) == "````yaml\na\n```\nb\n````"
    assert _shown(block_markdown(Text("use `a\\`b` here"))) == "use a`b here"
    assert block_markdown(Text("`a|b`")) == "`a\\|b`"


@pytest.mark.parametrize("start", ["- a", "+ a", "1. a", "12) a", "---", "===", "# a", "> a", "-", "* a"])
def test_a_paragraph_stays_a_paragraph(start: str) -> None:
    assert _shape(block_markdown(Text(escape_text(start)))) == _shape("word")
    assert _shown(block_markdown(Text(escape_text(start)))) == start


def test_numbers_are_not_disfigured() -> None:
    assert block_markdown(Text("0.2 of -1, 5.5%")) == "0.2 of -1, 5.5%"
    assert block_markdown(Text("-1 or 1.5")) == "-1 or 1.5"


def test_an_empty_report_is_a_title_and_its_provenance() -> None:
    text = Report("t", sections=[Section("Nothing")]).to_markdown()
    assert text.startswith("# t\n\n## 1. Nothing\n\n## Provenance\n\n")


def test_an_unknown_block_is_a_bug() -> None:
    with pytest.raises(InternalError, match="of type str"):
        block_markdown("text")
