"""Every page, as everybody who may see it: sound HTML, names for everything, a JSON twin, and no dead links."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from cloister.hub.web import shell
from tests.support.html_checks import links, problems
from tests.support.hub_access import COLUMNS, Door, address
from tests.support.hub_world import AUTHOR, NOBODY, OWNER, PROVIDER, REQUESTER, ROWS, World, populated

pytestmark = pytest.mark.slow

PEOPLE = (*COLUMNS, AUTHOR, PROVIDER)
_WITHOUT_OBJECTS = ("/login", "/surveys/new")
_GROWING = ("/audit",)
"""The log has more entries by the time its twin is read, since reading is logged too."""
_ELSEWHERE = re.compile(r"^(#|/api/v1/oidc/)")


@dataclass(frozen=True, slots=True)
class Shown:
    """A page as somebody saw it, and what its twin said right after."""

    path: str
    text: str
    policy: str
    twin: httpx2.Response


Seen = dict[tuple[str, str], Shown]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with populated(tmp_path_factory.mktemp("world"), demo=True) as made:
        yield made


@pytest.fixture(scope="module")
def seen(world: World) -> Seen:
    """Return every page that is shown, by its route and who looks."""
    found: Seen = {}
    for route, twin in shell.TWINS.items():
        path, twin_path = (address(world, Door("GET", one, "")) for one in (route, twin))
        for who in PEOPLE:
            if (page := _look(world, who, path, twin_path)) is not None:
                found[route, who] = page
    for who, path in _further(world):
        page = _look(world, who, path, path)
        assert page is not None, path
        found[path, who] = page
    return found


def _look(world: World, who: str, path: str, twin: str) -> Shown | None:
    answer = world.client(who).get(path)
    assert answer.status_code < 500, f"{path} as {who}: {answer.text[:300]}"
    if answer.status_code != 200:
        return None
    beside = world.client(who).get(f"/api/v1{twin}")
    return Shown(path, answer.text, answer.headers["content-security-policy"], beside)


def _further(world: World) -> list[tuple[str, str]]:
    """Return pages in other states: a dataset that is being prepared, work in all states, every service."""
    owner = world.client(OWNER)
    draft = f"/datasets/{owner.post('/api/v1/datasets', json={'name': 'draft'}).json()['id']}"
    empty = f"/datasets/{owner.post('/api/v1/datasets', json={'name': 'empty'}).json()['id']}"
    sent = owner.post(f"/api/v1{draft}/versions", content=ROWS, headers={"content-type": "text/csv"})
    assert sent.status_code == 201, sent.text
    jobs = [f"/jobs/{world.things[kind]}" for kind in ("job_id", "released_job_id", "queued_job_id", "waiting_job_id")]
    jobs.append(f"/jobs/{world.things['synthetic_id']}")
    services = [
        f"/datasets/{world.things['dataset_id']}/services/{name}"
        for name in (
            "query.sql",
            "query.build",
            "release.anonymize",
            "risk.assess",
            "learn.train",
            "learn.evaluate",
            "learn.predict",
            "synth.generate",
        )
    ]
    drafts = [empty, draft, f"{draft}/schema"]
    return [*((OWNER, path) for path in (*drafts, *jobs, *services)), *((REQUESTER, path) for path in jobs)]


def test_every_page_is_shown_to_somebody(seen: Seen) -> None:
    assert {route for route, _ in seen} >= set(shell.TWINS)


def test_every_page_is_sound(seen: Seen) -> None:
    wrong = {f"{page.path} as {who}": problems(page.text) for (_, who), page in seen.items()}
    assert {page: found for page, found in wrong.items() if found} == {}


def test_every_page_forbids_foreign_code(seen: Seen) -> None:
    for page in seen.values():
        assert "default-src 'none'" in page.policy, page.path
        assert "unsafe" not in page.policy, page.path
        assert "http" not in page.policy, page.path


def test_every_page_has_a_twin_with_the_same_objects(seen: Seen) -> None:
    for (route, who), page in seen.items():
        answer = page.twin
        if who == NOBODY and answer.status_code == 401:
            continue
        assert answer.status_code == 200, f"the twin of {page.path} as {who}: {answer.text[:200]}"
        assert "schema" in answer.json(), page.path
        if route in _WITHOUT_OBJECTS:
            continue
        objects = _objects(answer.json())
        lost = [item for item in objects if not _is_shown(item, page.text)]
        most = len(objects) // 2 if route in _GROWING else 0
        assert len(lost) <= most, f"{page.path} as {who} does not show {lost[0]}"


def test_no_link_is_dead(world: World, seen: Seen) -> None:
    for who in PEOPLE:
        pages = [page for (_, person), page in seen.items() if person == who]
        found = {link.partition("#")[0] for page in pages for link in links(page.text) if not _ELSEWHERE.match(link)}
        # What this person was shown before is there.
        for link in sorted(found - {page.path for page in pages}):
            answer = world.client(who).get(link)
            assert answer.status_code in (200, 303), f"{link} as {who}: {answer.status_code}"


def test_the_checks_see_what_is_wrong() -> None:
    bad = """<html lang="en"><title>t</title><body><main><h1>A</h1><h3 id="a" style="color:red">B</h3>
    <input id="a"><button onclick="x()"></button><a href="https://elsewhere.example/">out</a><img src="//x/y.png">
    <table><tr><th>n</th></tr></table><p aria-describedby="none"></p><script>1</script></main></body></html>"""
    found = "\n".join(problems(bad))
    for part in (
        "h1 is followed by h3",
        "id a is there 2 times",
        "without a label",
        "without words",
        "without alt",
        "without scope",
        "names none",
        "script inside",
        "style=",
        "onclick=",
        "https://elsewhere",
        "//x/y.png",
    ):
        assert part in found


def _objects(document: dict[str, Any]) -> list[dict[str, Any]]:
    items = document.get("items")
    return list(items) if isinstance(items, list) else [document]


_TELLING = ("id", "title", "name", "digest", "number", "algorithm", "code")


def _is_shown(item: dict[str, Any], text: str) -> bool:
    """Return whether something that tells an object from others is on the page; its parts count where it has none."""
    known = [str(item[key]) for key in _TELLING if isinstance(item.get(key), str | int) and item[key] != ""]
    if known:
        return any(html.escape(one) in text or one in text for one in known)
    inside = [value for value in item.values() if isinstance(value, dict)]
    inside += [one for value in item.values() if isinstance(value, list) for one in value if isinstance(one, dict)]
    return not inside or any(_is_shown(one, text) for one in inside)
