from __future__ import annotations

import base64
import builtins
import hashlib
import importlib.resources
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.errors import InternalError
from cloister.report import Bars, Chart, Notice, Report, Section, Series, Status, TableBlock, Verdict
from cloister.report._html import Drawing, style_sheet, tag
from cloister.report.markup import one_line
from tests.support import tools
from tests.support.reports import HOSTILE, PageReader, figure, report_of

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30) | st.text("<>&\"'`*\\|-\n #a", max_size=30)


def _html(block: Any) -> str:
    return Drawing().block(block)


def _seen(text: str) -> str:
    return " ".join(text.split())


def test_a_page_is_well_formed_and_loads_nothing() -> None:
    page = PageReader(report_of("Visits").to_html())
    assert page.tags[0] == "html"
    assert set(page.links) <= set(page.ids)
    assert "style" in page.tags
    assert ("lang", "en") in page.attributes
    assert "url(" not in style_sheet()
    assert "@import" not in style_sheet()


def test_hostile_text_stays_text() -> None:
    text = report_of(HOSTILE).to_html()
    page = PageReader(text)
    assert page.tags.count("svg") == 2 + 1 + 4
    assert one_line(HOSTILE) in page.text("h1")
    assert one_line(HOSTILE) in _seen(page.text("th"))
    assert HOSTILE in page.text("code")


@given(NAMES)
def test_any_text_is_shown_as_it_is(name: str) -> None:
    report = report_of(name, with_chart=False)
    page = PageReader(report.to_html())
    shown = _seen(page.text())
    for part in report.sections[0].blocks[4].rows[0][0].split():  # type: ignore[union-attr]  # a table of text
        assert part in shown
    assert page.tags.count("section") == 3


def test_only_the_style_sheet_of_the_page_is_allowed() -> None:
    text = Report("Visits").to_html()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    inside = re.search("<style>(.*?)</style>", text, re.DOTALL)
    assert inside is not None
    digest = base64.b64encode(hashlib.sha256(inside[1].encode()).digest()).decode()
    assert policy[1].replace("&#x27;", "'").split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_the_style_sheet_is_part_of_the_package() -> None:
    assert importlib.resources.files("cloister.report").joinpath("page.css").is_file()
    assert "</" not in style_sheet()


def test_headings_follow_each_other_and_are_numbered() -> None:
    sections = [Section("A"), Section("B", level=2), Section("C", level=3), Section("D", level=2), Section("E")]
    text = Report("Title", sections=sections).to_html()
    found = re.findall(r"<h(\d)>(?:<span class=\"number\">([\d.]*)</span> )?(\w+)", text)
    assert found == [
        ("1", "", "Title"),
        ("2", "1", "A"),
        ("3", "1.1", "B"),
        ("4", "1.1.1", "C"),
        ("3", "1.2", "D"),
        ("2", "2", "E"),
        ("2", "", "Provenance"),
    ]


def test_sections_of_one_name_have_anchors_of_their_own() -> None:
    page = PageReader(Report("t", sections=[Section("Risk"), Section("Risk"), Section("Top"), Section("数")]).to_html())
    assert page.ids == ["contents", "top", "risk", "risk-2", "top-2", "section", "provenance"]
    assert page.links == ["top", "risk", "risk-2", "top-2", "section", "provenance"]


@pytest.mark.parametrize("status", [Status.GOOD, Status.ATTENTION, Status.BAD])
def test_a_status_is_a_word_and_a_sign_beside_its_color(status: Status) -> None:
    text = Report("t", verdict=Verdict("outcome", status)).to_html()
    assert f"{status.word}: outcome" in text
    assert status.sign in text
    cell = _html(TableBlock(["a"], [[Verdict("x", status)]]))
    assert status.word in PageReader(cell).text()


def test_a_chart_is_a_picture_with_its_numbers() -> None:
    text = _html(Chart(figure(), "Where **people** went"))
    page = PageReader(text)
    assert "svg" in page.tags
    assert "details" in page.tags
    assert "120 ± 12" in page.text("td")
    assert "<strong>people</strong>" in text
    assert ("role", "img") in page.attributes


def test_without_the_extra_a_chart_is_a_table_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fake(name: str, *rest: Any, **more: Any) -> Any:
        if name == "vl_convert":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", fake)
    page = PageReader(report_of("north").to_html())
    assert 'pip install "cloister[plot]"' in page.text("code")
    assert "120 ± 12" in page.text("td")
    assert "details" not in page.tags


def test_a_chart_without_numbers_says_so() -> None:
    from cloister.plotting import Figure

    empty = Figure.from_dict({"data": {"values": []}, "mark": "bar", "encoding": {}})
    assert "no numbers of its own" in _html(Chart(empty))


def test_long_charts_list_their_first_numbers() -> None:
    from cloister.plotting import lines

    long = lines({"a": [(x, x) for x in range(700)]}, title="t", x="x", y="y")
    assert "The first 500 of 700 rows." in _html(Chart(long))


def test_numbers_stand_on_the_right() -> None:
    text = _html(TableBlock(["name", "count", "mixed"], [["a", 30162, 1], ["b", None, "x"]]))
    assert '<td class="right">30,162</td><td class="left">1</td>' in text
    assert '<th scope="row" class="left">a</th>' in text


def test_a_table_without_rows_says_so() -> None:
    assert "No rows." in _html(TableBlock(["a", "b"], []))


def test_bars_are_as_long_as_their_share_of_the_longest() -> None:
    text = _html(Bars(["a", "b"], [Series("n", [50, 200])]))
    assert re.findall(r'class="filled-1" width="([\d.]+%)"', text) == ["25.00%", "100.00%"]
    shares = _html(Bars(["a"], [Series("n", [0.25])], percent=True))
    assert 'width="25.00%"' in shares
    assert ">25%<" in shares


def test_bars_of_several_series_name_each() -> None:
    text = _html(Bars(["a"], [Series("before", [1]), Series("after", [None])]))
    assert 'rowspan="2"' in text
    assert PageReader(text).text("td") == "before1after\N{EN DASH}"


def test_notices_say_what_they_are() -> None:
    assert "Danger" in _html(Notice("danger", "Free text."))  # type: ignore[arg-type]  # a name of a kind
    assert "Keep out" in _html(Notice("danger", "Free text.", "Keep out"))  # type: ignore[arg-type]  # a name of a kind


def test_an_unknown_block_is_a_bug() -> None:
    with pytest.raises(InternalError, match="of type str"):
        _html("text")


def test_elements() -> None:
    assert tag("p", "a<b", class_="x", hidden=True, title=None, id=3) == '<p class="x" hidden id="3">a&lt;b</p>'
    assert tag("meta", http_equiv="a") == '<meta http-equiv="a">'


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(first: str, second: str) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(scheme: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", style_sheet(), re.DOTALL)
    colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if scheme == "light" else dark))
    pairs = [(ink, paper) for ink in ("ink", "quiet", "accent") for paper in ("paper", "tint")]
    pairs += [
        (tone, ground) for tone in ("good", "attention", "bad", "neutral") for ground in ("paper", f"{tone}-tint")
    ]
    pairs += [("ink", f"{tone}-tint") for tone in ("good", "attention", "bad", "neutral")]
    assert {
        pair: _contrast(colors[pair[0]], colors[pair[1]])
        for pair in pairs
        if _contrast(colors[pair[0]], colors[pair[1]]) < 4.5
    } == {}
    assert all(_contrast(colors[f"fill-{n}"], colors["paper"]) >= 3 for n in (1, 2, 3, 4))


def test_charts_fit_a_phone_and_wide_tables_show_that_they_scroll() -> None:
    style = style_sheet()
    small = style.partition("(max-width: 34rem)")[2].partition("@media print")[0]
    least = [float(width) for width in re.findall(r"svg \{[^}]*min-width: ([\d.]+)rem", small)]
    assert least
    assert max(least) * 16 <= 360
    scroll = re.search(r"^\.scroll \{(.*?)^\}", style, re.DOTALL | re.MULTILINE)
    assert scroll is not None
    assert "var(--shade)" in scroll[1]
    dark = style.partition("prefers-color-scheme: dark")[2].partition("* { box-sizing")[0]
    assert ".picture { filter: brightness(" in dark


@pytest.mark.chromium
@pytest.mark.slow
def test_a_browser_shows_the_page_without_a_complaint(tmp_path: Path) -> None:
    path = tools.chromium()
    assert path is not None
    place = report_of(HOSTILE).write(tmp_path / "report.html")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path}/p",
    ]
    done = subprocess.run(
        [path, *options, "--dump-dom", place.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    assert "CONSOLE" not in done.stderr
    assert "Content Security Policy" not in done.stderr
    assert done.stdout.count("<section") == 3
