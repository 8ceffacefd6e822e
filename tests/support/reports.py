"""A report with every kind of block, and readers that check what came out of it."""

from __future__ import annotations

import html.parser

from cloister.plotting import Figure, bars_with_errors
from cloister.report import (
    Bars,
    Bullets,
    Chart,
    Check,
    Checklist,
    Code,
    Facts,
    KeyFigure,
    KeyFigures,
    Notice,
    Panels,
    Report,
    ReportProvenance,
    Section,
    Series,
    Status,
    TableBlock,
    Text,
    Verdict,
    escape_text,
)

HOSTILE = "</svg></style><script>alert('x')</script>|\"&amp;`*a*`\n\n- # [b](javascript:c) ${d} \\"
VOID = {"meta"}
# What HTML allows inside a picture without an end: vl-convert writes <path .../>.
LOADING = {"src", "srcset", "href", "xlink:href", "data", "action", "poster", "background", "style"}


def figure(text: str = "north") -> Figure:
    """Return a chart that shows a text wherever it can."""
    return bars_with_errors([text, "other"], [120, 95], [12, None], title=text, x=text, y=text, subtitle=text)


def report_of(text: str, *, with_chart: bool = True) -> Report:
    """Return a report with every kind of block and a text in every place."""
    charts = [Chart(figure(text), text), Chart(figure(text), text)] if with_chart else []
    plain = escape_text(text)
    blocks = (
        Text(plain),
        Bullets([plain, f"**{plain}**"]),
        Facts([(text, text), ("k", 5), ("models", Verdict(text, Status.GOOD))]),
        KeyFigures([KeyFigure(text, text, plain, status) for status in Status]),
        TableBlock([text, "second"], [[text, 1], [Verdict(text, Status.BAD), None]], caption=plain),
        TableBlock(["only"], []),
        *charts,
        Bars([text], [Series(text, [0.5], [text])], caption=plain),
        Panels([Bars(["a", "b"], [Series(text, [1, 2]), Series("after", [None, 3])], caption=plain), Text(plain)]),
        *(Notice(kind, plain, text) for kind in ("promise", "warning", "danger", "info")),
        Code(text, text, plain),
        Checklist([Check(plain, status, plain) for status in Status]),
    )
    return Report(
        text,
        subtitle=text,
        summary=plain,
        verdict=Verdict(text, Status.ATTENTION),
        figures=[KeyFigure(text, 5, plain)],
        sections=[Section(text, blocks), Section(text, [Text(plain)], level=2), Section("Contents", [])],
        provenance=ReportProvenance(created="2026-11-16T06:20:00Z", software=text, details=[(text, text)]),
    )


class PageReader(html.parser.HTMLParser):
    """Reads a page and refuses tags that do not match, ids that are there twice, and anything that is loaded or run."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == [], f"not closed: {self.open}"
        assert len(self.ids) == len(set(self.ids)), "an id is there twice"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> was never opened"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError("a comment")

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in {
            "script",
            "iframe",
            "object",
            "embed",
            "img",
            "link",
            "base",
            "form",
            "foreignobject",
            "image",
        }
        self.tags.append(tag)
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of <{tag}> is there twice"
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag} {name}>"
            if name == "id":
                self.ids.append(value or "")
            if name in LOADING:
                assert tag == "a", f"<{tag} {name}>"
                assert (value or "").startswith("#"), value
                self.links.append((value or "")[1:])
            self.attributes.append((name, value or ""))

    def text(self, *inside: str) -> str:
        """Return the text of the page, or of elements of some names."""
        return "".join(data for tag, data in self.words if not inside or tag in inside)
