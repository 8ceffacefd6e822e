"""What is wrong with a page, for people who use a keyboard or a screen reader, and for the rules of the hub."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

_VOID = frozenset({"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
_REFERENCES = ("for", "aria-labelledby", "aria-describedby")
_NAMED = ("aria-label", "aria-labelledby", "title")


@dataclass(slots=True)
class Element:
    """One element, with the text inside of it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[Element, ...] = field(repr=False)
    text: str = ""

    def is_in(self, tag: str) -> bool:
        """Return whether an element of this kind is around it."""
        return any(parent.tag == tag for parent in self.parents)


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open)))

    def handle_endtag(self, tag: str) -> None:
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, *tags: str) -> list[Element]:
        """Return the elements of some kinds."""
        return [element for element in self.elements if element.tag in tags]


def problems(text: str) -> list[str]:
    """Return everything that is wrong with a page."""
    page = Page(text)
    return [*_structure(page), *_ids(page), *_names(page), *_tables(page), *_foreign(page)]


def links(text: str) -> set[str]:
    """Return where the links of a page lead to."""
    return {element.attributes["href"] for element in Page(text).all("a") if "href" in element.attributes}


def _structure(page: Page) -> list[str]:
    found = [f"{len(page.all(tag))} <{tag}>" for tag in ("h1", "main", "title") if len(page.all(tag)) != 1]
    found += ["no language"] if not page.all("html")[0].attributes.get("lang") else []
    levels = [int(element.tag[1]) for element in page.all("h1", "h2", "h3", "h4")]
    found += [f"h{low} is followed by h{high}" for low, high in pairwise(levels) if high > low + 1]
    around = [element for element in page.all("p", "h1", "h2", "form", "table") if not _in_landmark(element)]
    return found + [f"<{element.tag}> outside of landmarks: {element.text.strip()[:40]}" for element in around]


def _in_landmark(element: Element) -> bool:
    return any(element.is_in(tag) for tag in ("main", "header", "footer", "nav", "noscript"))


def _ids(page: Page) -> list[str]:
    counts = Counter(element.attributes["id"] for element in page.elements if "id" in element.attributes)
    found = [f"id {name} is there {count} times" for name, count in counts.items() if count > 1]
    for element in page.elements:
        for name in _REFERENCES:
            wanted = element.attributes.get(name, "").split()
            found += [f"{name} names {one}, which is not there" for one in wanted if one not in counts]
    return found


def _names(page: Page) -> list[str]:
    labels = {element.attributes.get("for") for element in page.all("label")}
    found = []
    for element in page.all("input", "select", "textarea", "progress", "meter"):
        facts = element.attributes
        is_unseen = facts.get("type") in ("hidden", "submit") or "hidden" in facts
        is_named = facts.get("id") in labels or element.is_in("label") or any(facts.get(name) for name in _NAMED)
        if not is_unseen and not is_named:
            found.append(f"<{element.tag}> without a label: {facts}")
    found += [
        f"<{element.tag}> without words: {element.attributes}"
        for element in page.all("button", "a", "summary", "legend")
        if not element.text.strip() and not any(element.attributes.get(name) for name in _NAMED)
    ]
    found += [
        f"<img> without alt: {element.attributes}" for element in page.all("img") if "alt" not in element.attributes
    ]
    scrolled = [e for e in page.elements if "tabindex" in e.attributes and e.attributes.get("role") == "region"]
    return found + [f"a region without a name: {e.attributes}" for e in scrolled if not e.attributes.get("aria-label")]


def _tables(page: Page) -> list[str]:
    return [
        f"<th> without scope: {element.text.strip()}" for element in page.all("th") if "scope" not in element.attributes
    ]


def _foreign(page: Page) -> list[str]:
    found = [f"<{element.tag}> inside the page" for element in page.all("style")]
    found += ["a script inside the page" for element in page.all("script") if "src" not in element.attributes]
    for element in page.elements:
        for name, value in element.attributes.items():
            if name == "style" or name.startswith("on"):
                found.append(f'{name}="{value}" on <{element.tag}>')
            if name in ("href", "src", "action") and (":" in value.split("/")[0] or value.startswith("//")):
                found += [f"{name} leads out of the hub: {value}"] if value != "data:," else []
    return found
