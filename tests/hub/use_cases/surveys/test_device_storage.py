"""What a respondent's device keeps: after every step all storages are searched, and at the end the profile on disk."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from cloister.hub.domain.lifecycles import Admission
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import User
from cloister.hub.use_cases.sessions import subject_of
from cloister.hub.use_cases.surveys import catalogue, lifecycle
from tests.hub.conftest import add_user
from tests.hub.live import serving
from tests.hub.use_cases.surveys.conftest import DOCUMENT
from tests.support import tools
from tests.support.browser import OPTIONS
from tests.support.playwright import PATIENCE, PHONE

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

TRUE_SLEEP = "7.34521"
SPELLINGS = (
    TRUE_SLEEP,
    "7,34521",
    "734521",
    "7.34521".encode("utf-16-le").decode("latin-1"),
    base64.b64encode(TRUE_SLEEP.encode()).decode().rstrip("=")[:-1],
    TRUE_SLEEP.encode().hex(),
    struct.pack("<d", float(TRUE_SLEEP)).hex(),
    struct.pack(">d", float(TRUE_SLEEP)).hex(),
)
"""The answer as text, with a comma, as digits of a fraction, in UTF-16, base64 and hexadecimal, and as a float."""

ANSWERS = (*SPELLINGS, "Teaching", "Bicycle")

DUMP = """
async () => {
  const entries = (storage) => Object.fromEntries(Object.keys(storage).map((name) => [name, storage.getItem(name)]));
  const databases = {};
  for (const { name } of await indexedDB.databases()) {
    const opened = await new Promise((done, fail) => {
      const asked = indexedDB.open(name);
      asked.onsuccess = () => done(asked.result);
      asked.onerror = fail;
    });
    for (const store of opened.objectStoreNames) {
      databases[`${name}/${store}`] = await new Promise((done) => {
        const asked = opened.transaction(store).objectStore(store).getAll();
        asked.onsuccess = () => done(asked.result);
      });
    }
    opened.close();
  }
  const cached = {};
  for (const name of await caches.keys()) {
    const store = await caches.open(name);
    for (const request of await store.keys()) cached[request.url] = await (await store.match(request)).text();
  }
  return {
    kept: { local: entries(localStorage), session: entries(sessionStorage), databases, cookies: document.cookie },
    page: { address: location.href, state: history.state, name: window.name, title: document.title },
    cached,
    markup: document.documentElement.outerHTML,
    fields: Array.from(document.querySelectorAll("input"), ({ type, value, checked }) => [type, value, checked]),
  };
}
"""


@contextmanager
def _profile(folder: Path) -> Iterator[BrowserContext]:
    """Open a browser whose profile stays on disk."""
    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            folder,
            executable_path=tools.chromium(),
            args=[option for option in OPTIONS if option != "--headless"],
            viewport=PHONE,
        )
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        try:
            yield context
        finally:
            context.close()


def _publish(hub: Hub, person: str, **changes: Any) -> str:
    """Open a survey and return its address."""
    with hub.store.writing() as session:
        subject = subject_of(session.get_one(User, person))
        survey = lifecycle.create_survey(
            session, subject, document=DOCUMENT | changes, admission=Admission.EVERYBODY, results_are_public=False
        )
        lifecycle.publish(survey, key=hub.key)
        session.flush()
        return f"/s/{catalogue.describe(session, survey)['address'].removeprefix('/s/')}"


def _fill(page: Page, sleep: str = TRUE_SLEEP) -> None:
    page.locator('[data-question="job"]').get_by_label("Teaching").check()
    page.locator('[data-question="way"]').get_by_label("Bicycle").check()
    page.locator("#sleep-number").fill(sleep)


def _review(page: Page) -> list[dict[str, Any]]:
    page.get_by_role("button", name="Review").click()
    expect(page.locator("#review")).to_be_visible()
    reports: list[dict[str, Any]] = json.loads(page.locator("#body").inner_text())["submission"]["reports"]
    return reports


def _look(page: Page) -> dict[str, Any]:
    """Return all that is kept, and insist that no answer is in it; the cache holds what everybody gets."""
    found: dict[str, Any] = page.evaluate(DUMP)
    kept = json.dumps([found["kept"], found["page"], page.context.cookies()], ensure_ascii=False)
    assert not [answer for answer in ANSWERS if answer in kept]
    assert not [answer for answer in SPELLINGS if answer in json.dumps(found["cached"], ensure_ascii=False)]
    return found


def _reports_in(kept: dict[str, Any]) -> set[str]:
    """Return the reports that are kept for the case that they are sent again, as text."""
    sent = json.loads(kept["local"].get("cloister/sent", "{}"))
    return {json.dumps(y) for y in sent.values()}


def test_no_storage_ever_holds_an_answer_or_what_it_could_be_derived_from(tmp_path: Path) -> None:
    with serving(tmp_path / "hub") as (hub, address), _profile(tmp_path / "profile") as context:
        person = add_user(hub, "ada", AccountRole.DATA_USER)
        first, second = _publish(hub, person), _publish(hub, person, id="again", title="Asked again")
        page = context.new_page()
        page.goto(address + first)
        expect(page.locator("#offline")).to_be_visible()
        loaded = _look(page)
        _fill(page)
        assert _look(page)["kept"] == loaded["kept"]
        reports = _review(page)
        reviewed = _look(page)
        assert reviewed["kept"] == loaded["kept"], "before anything is sent, nothing about the answers is kept"
        page.get_by_role("button", name="Back").click()
        _fill(page, "7.345210")
        assert _review(page) == reports, "another spelling of the same answer gives the same report"
        assert _look(page)["kept"] == loaded["kept"]
        page.reload()
        expect(page.locator("#sleep-number")).to_have_value("")
        assert ["radio", "1", True] not in _look(page)["fields"]
        _fill(page)
        reports = _review(page)
        context.set_offline(True)
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", name="Kept on this device")).to_be_visible()
        waiting = _look(page)
        assert set(waiting["kept"]["local"]) == {"cloister/sent", f"cloister/outbox{first.removeprefix('/s')}"}
        assert waiting["kept"]["session"] == waiting["kept"]["databases"] == {}
        assert not [answer for answer in ANSWERS if answer in waiting["markup"]]
        context.set_offline(False)
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        done = _look(page)
        assert set(done["kept"]["local"]) == {"cloister/sent", "cloister/history"}
        assert _reports_in(done["kept"]) == {json.dumps(one["y"]) for one in reports}, "what was sent, and no more"
        assert not [answer for answer in ANSWERS if answer in done["markup"]]
        page.goto(address + second)
        expect(page.locator("#offline")).to_be_visible()
        _fill(page)
        assert [one["y"] for one in _review(page)] == [one["y"] for one in reports], "asking twice teaches nothing new"
        page.get_by_role("button", name="Back").click()
        page.locator('[data-question="job"]').get_by_label("Office").check()
        page.locator("#sleep-number").fill("2")
        assert [one["y"] for one in _review(page)] == [one["y"] for one in reports], "whatever is answered"
        expect(page.get_by_text("the same report as before").first).to_be_visible()
        page.get_by_role("button", name="Make new reports").click()
        expect(page.get_by_text("the same report as before")).to_have_count(0)
        assert _look(page)["kept"] == done["kept"]
        page.goto("about:blank")
    on_disk = [path.read_bytes() for path in (tmp_path / "profile").rglob("*") if path.is_file()]
    assert len(on_disk) > 10
    assert not [name for name in SPELLINGS[:2] if any(name.encode() in content for content in on_disk)]
    assert not any(TRUE_SLEEP.encode("utf-16-le") in content for content in on_disk)


def test_what_an_older_version_of_the_page_kept_is_deleted(tmp_path: Path) -> None:
    with serving(tmp_path / "hub") as (hub, address), _profile(tmp_path / "profile") as context:
        page = context.new_page()
        page.goto(f"{address}/login")
        old = '["How many hours?",[],["0","16"],null,"f","' + TRUE_SLEEP + '"]'
        page.evaluate("(key) => localStorage.setItem('cloister/repeat', JSON.stringify({[key]: [1, 2]}))", old)
        page.goto(address + _publish(hub, add_user(hub, "ada", AccountRole.DATA_USER)))
        expect(page.locator(".question")).to_have_count(4)
        assert page.evaluate("localStorage.length") == 0
