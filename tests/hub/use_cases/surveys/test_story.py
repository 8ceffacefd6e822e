"""A survey from beginning to end in real browsers: somebody asks, people answer on phones, the capture is clean."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Response, expect

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.arrival_order import forget_order
from cloister.hub.use_cases.surveys.browser_code import code_files, code_hash
from cloister.local.survey import Survey, simulate
from tests.hub.conftest import add_user
from tests.hub.live import login_cookies, serving
from tests.hub.use_cases.surveys.conftest import DOCUMENT, MOMENT, raw_bytes, raw_rows
from tests.support.playwright import DESK, chromium, phone
from tests.support.thoroughness import audited

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

TRUE_SLEEP = "7.34521"
AGENT, ADDRESS = "Phone-of-Ada/17.3", "203.0.113.77"
LIES_ONLY = """
// Words near 2**64 let every coin fall on the side of the lie; other randomness stays the browser's own.
const real = crypto.getRandomValues.bind(crypto);
let step = 1n;
crypto.getRandomValues = (block) => {
  if (!(block instanceof BigUint64Array)) return real(block);
  for (let place = 0; place < block.length; place += 1) {
    step = (step * 48271n) % 2147483647n;
    block[place] = 2n ** 64n - 1n - (step % 1024n);
  }
  return block;
};
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


class Place:
    """A running hub with somebody who asks."""

    def __init__(self, hub: Hub, address: str, browser: Browser) -> None:
        self.hub, self.address = hub, address
        self.cookies = login_cookies(hub, add_user(hub, "ada", AccountRole.DATA_USER), address)
        self.context = browser.new_context(viewport=DESK)
        self.context.set_default_timeout(20_000)
        self.context.add_cookies(self.cookies)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        proof = next(one["value"] for one in self.cookies if one["name"].endswith("csrf"))
        found = self.context.request.fetch(
            f"{self.address}/api/v1{path}", method=method, data=body, headers={"x-csrf-token": proof}
        )
        assert found.ok, found.text()
        return found.json()

    def publish(self, **options: Any) -> dict[str, Any]:
        made = self.api("POST", "/surveys", {"document": DOCUMENT, **options})
        found: dict[str, Any] = self.api("POST", f"/surveys/{made['id']}/publish")
        return found


@pytest.fixture
def place(tmp_path: Path, browser: Browser) -> Iterator[Place]:
    with serving(tmp_path / "hub") as (hub, address):
        made = Place(hub, address, browser)
        yield made
        made.context.close()


class Capture:
    """Everything that a browser asked for or sent, its service workers included."""

    def __init__(self, context: BrowserContext) -> None:
        self.requests: list[Request] = []
        self.problems: list[str] = []
        context.on("request", lambda request: self.requests.append(request))  # noqa: PLW0108
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        context.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)

    def everything(self) -> str:
        return "\n".join(
            f"{request.method} {request.url}\n{json.dumps(request.all_headers())}\n{request.post_data or ''}"
            for request in self.requests
        )

    def sent(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (request.url.rpartition("/")[2], json.loads(request.post_data or "{}"))
            for request in self.requests
            if request.method == "POST"
        ]


def _shot(page: Page, name: str, **options: Any) -> None:
    folder = os.environ.get("CLOISTER_SHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", **options)


def _group(page: Page, name: str) -> Any:
    return page.locator(f'[data-question="{name}"]')


def _fill(page: Page) -> None:
    _group(page, "smoke").get_by_label("Low", exact=True).check()
    _group(page, "smoke").get_by_label("yes", exact=True).check()
    _group(page, "job").get_by_label("Teaching").check()
    _group(page, "way").get_by_label("High", exact=True).check()
    _group(page, "way").get_by_label("Bicycle").check()
    _group(page, "way").get_by_label("Car").check()
    _group(page, "sleep").get_by_label(re.compile("hours")).fill(TRUE_SLEEP)


@pytest.mark.parametrize("dark", audited([False, True], but=[False]))
def test_four_questions_four_levels_and_no_true_answer_leaves_the_phone(
    place: Place, browser: Browser, dark: bool
) -> None:
    survey = place.publish()
    with phone(browser, dark=dark) as context:
        context.add_init_script(LIES_ONLY)
        capture, page = Capture(context), context.new_page()
        page.goto(place.address + survey["address"])
        expect(page.locator(".question")).to_have_count(4)
        expect(page.locator(".total")).to_have_text("Nothing answered yet.")
        _shot(page, f"form-{dark}")
        _fill(page)
        expect(_group(page, "smoke").locator(".told")).to_contain_text("sent with probability 98.3%")
        expect(_group(page, "job").locator(".told")).to_contain_text("sent with probability 40.5%")
        expect(page.locator(".total")).to_contain_text("at most a factor 519")
        _group(page, "job").get_by_label("Skip", exact=True).check()
        expect(_group(page, "job").get_by_label("Teaching")).to_be_hidden()
        expect(page.locator(".total")).to_contain_text("at most a factor 191")
        _group(page, "job").get_by_label("Medium", exact=True).check()
        _shot(page, f"filled-{dark}", full_page=True)
        page.get_by_role("button", name="Review").click()
        expect(page.get_by_role("heading", name="Before anything is sent")).to_be_focused()
        shown = json.loads(page.locator("#body").inner_text())
        _shot(page, f"review-{dark}", full_page=True)
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", name="Thank you")).to_be_focused()
        _shot(page, f"done-{dark}", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        everything, sent = capture.everything(), capture.sent()
    assert capture.problems == []
    assert sent == [("submissions", shown)]
    assert all(request.url.startswith(place.address) for request in capture.requests)
    assert TRUE_SLEEP not in everything
    assert "cookie" not in {name.lower() for request in capture.requests for name in request.headers}
    reports = {report["question"]: (report["level"], report["y"]) for report in shown["submission"]["reports"]}
    assert reports["smoke"] == ("low", 0)
    level, job = reports["job"]
    assert level == "medium"
    assert DOCUMENT["questions"][1]["options"][job] != "Teaching"
    assert reports["way"] == ("high", "0000")
    assert reports["sleep"][0] == "medium"
    assert set(shown) == {"submission"}
    assert shown["submission"]["day"] == survey["opened"]
    assert place.api("GET", f"/surveys/{survey['id']}")["submissions"] == 1


def test_a_phone_with_its_own_randomness_repeats_itself_and_forgets_on_demand(place: Place, browser: Browser) -> None:
    survey = place.publish()
    with phone(browser) as context:
        page = context.new_page()
        page.goto(place.address + survey["address"])
        bodies = []
        for _ in range(2):
            _fill(page)
            page.get_by_role("button", name="Review").click()
            bodies.append(json.loads(page.locator("#body").inner_text()))
            page.get_by_role("button", name="Back").click()
        page.get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#done")).to_be_visible()
        page.reload()
        expect(page.get_by_text("You answered this survey from this device")).to_be_visible()
        page.get_by_text("What stays on this device").click()
        expect(page.get_by_text("Life at work, 4 answered")).to_be_visible()
        page.get_by_role("button", name="Forget everything").click()
        expect(page.get_by_text("You answered this survey from this device")).to_have_count(0)
        assert page.evaluate("localStorage.length") == 0
    first, second = (body["submission"] for body in bodies)
    assert first["reports"] == second["reports"]
    assert first["id"] != second["id"]


def test_the_page_works_without_a_connection_and_sends_later(place: Place, browser: Browser) -> None:
    survey = place.publish()
    with phone(browser) as context:
        page = context.new_page()
        page.goto(place.address + survey["address"])
        expect(page.locator("#offline")).to_be_visible()
        context.set_offline(True)
        page.reload()
        expect(page.locator(".question")).to_have_count(4)
        _fill(page)
        page.get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", name="Kept on this device")).to_be_visible()
        _shot(page, "offline")
        assert place.api("GET", f"/surveys/{survey['id']}")["submissions"] == 0
        page.reload()
        expect(page.get_by_role("heading", name="Kept on this device")).to_be_visible()
        context.set_offline(False)
        expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert place.api("GET", f"/surveys/{survey['id']}")["submissions"] == 1


def test_an_invitation_is_exchanged_blindly_and_works_once(place: Place, browser: Browser) -> None:
    survey = place.publish(admission="blind")
    link = place.api("POST", f"/surveys/{survey['id']}/tokens", {"count": 1})["items"][0]
    token = link.partition("#")[2]
    with phone(browser) as context:
        capture, page = Capture(context), context.new_page()
        page.goto(link)
        expect(page.locator(".question")).to_have_count(4)
        assert "#" not in page.url
        _fill(page)
        page.get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#done")).to_have_text("Thank you")
        sent = capture.sent()
        urls = [request.url.partition("#")[0] for request in capture.requests]
    (first, exchange), (second, body) = sent
    assert (first, second) == ("sign", "submissions")
    assert exchange["token"] == token
    assert set(body) == {"submission", "message", "signature"}
    assert token not in json.dumps(body)
    assert not any(token in url for url in urls)
    assert exchange["blinded"] not in json.dumps(body)
    with phone(browser) as context:
        page = context.new_page()
        page.goto(link)
        expect(page.get_by_role("alert").first).to_contain_text("was used before")
        page.goto("about:blank")
    with phone(browser) as context:
        page = context.new_page()
        page.goto(place.address + survey["address"])
        expect(page.get_by_role("alert").first).to_contain_text("for invited people")
    assert place.api("GET", f"/surveys/{survey['id']}")["submissions"] == 1


@pytest.mark.parametrize("admission", audited(["everybody", "links", "blind"], but=["blind"]))
def test_the_database_file_holds_nothing_of_a_person_who_answered_in_a_browser(
    place: Place, browser: Browser, admission: str
) -> None:
    survey = place.publish(admission=admission)
    link, token = place.address + survey["address"], ""
    if admission != "everybody":
        link = place.api("POST", f"/surveys/{survey['id']}/tokens", {"count": 1})["items"][0]
        token = link.partition("#")[2]
    before, rows_before = raw_bytes(place.hub), raw_rows(place.hub)
    headers = {"x-forwarded-for": ADDRESS, "forwarded": f"for={ADDRESS}"}
    with phone(browser, user_agent=AGENT, extra_http_headers=headers) as context:
        context.add_init_script(LIES_ONLY)
        capture, page = Capture(context), context.new_page()
        page.goto(link)
        _fill(page)
        page.get_by_role("button", name="Review").click()
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", name="Thank you")).to_be_focused()
        bodies = [body for _, body in capture.sent()]
    secrets = {AGENT, ADDRESS, TRUE_SLEEP, bodies[-1]["submission"]["id"]}
    secrets |= {body[name] for body in bodies for name in ("token", "blinded", "message", "signature") if name in body}
    secrets |= {token, hashlib.sha256(token.encode()).hexdigest()} if token else set()
    assert len(secrets) == {"everybody": 4, "links": 6, "blind": 9}[admission]
    reports = bodies[-1]["submission"]["reports"]
    for _ in range(2):
        content = raw_bytes(place.hub)
        for secret in secrets:
            assert secret.encode() not in content
            if re.fullmatch(r"(?:[0-9a-f]{2}){16,}", secret):
                assert bytes.fromhex(secret) not in content
        assert set(MOMENT.findall(content)) <= set(MOMENT.findall(before)), "no precise time that was not there before"
        assert content.count(b"127.0.0.1") <= before.count(b"127.0.0.1"), "nor the address of the phone"
        forget_order(place.hub.store)
    rows = raw_rows(place.hub)
    changed = {name for name in rows if rows[name] != rows_before[name]}
    more = {"everybody": set(), "links": {"survey_invitations"}, "blind": {"survey_invitations", "survey_signatures"}}
    assert changed == {"survey_reports", "survey_used_ids", "surveys"} | more[admission]
    assert set(rows["surveys"][0]) - set(rows_before["surveys"][0]) <= {1}, "of the survey, only the count changes"
    kept = {(question, level, value) for _, _, question, level, value in rows["survey_reports"]}
    assert kept == {
        (report["question"], report["level"], json.dumps(report["y"], separators=(",", ":"))) for report in reports
    }
    assert {("smoke", "low", "1"), ("job", "medium", "1"), ("way", "high", '"0101"')} & kept == set(), "no true answer"
    keys = {str(value) for row in rows["survey_reports"] for value in row}
    named = {str(row[1]) for name in changed - {"survey_reports", "surveys"} for row in rows[name]}
    assert not keys & named, "no report is linked to who was let in"


def test_the_code_page_shows_exactly_what_runs(place: Place, browser: Browser) -> None:
    survey = place.publish()
    with phone(browser) as context:
        responses: list[Response] = []
        scripts = f"{place.address}/survey-code/{code_hash()}/"
        page = context.new_page()
        page.on("response", lambda response: responses.append(response))  # noqa: PLW0108
        document = page.goto(place.address + survey["address"])
        assert document is not None
        html = document.body()
        expect(page.locator("footer .hash")).to_have_text(code_hash())
        expect(page.locator("#offline")).to_be_visible()
        loaded: dict[str, str] = {}
        for response in responses:  # What comes from the cache a second time has no body here.
            name, content = response.url.removeprefix(scripts), response.body()
            if name != response.url and (content or name not in loaded):
                loaded[name] = hashlib.sha256(content).hexdigest()
        page.get_by_role("link", name="Read all of it").click()
        expect(page.locator("#hash")).to_have_text(code_hash())
        listed = dict(zip(*(page.locator(f"tbody td:nth-child({n})").all_inner_texts() for n in (1, 2)), strict=True))
        itself = page.locator("details").first
        itself.locator("summary").click()
        expect(itself.locator(".hash")).to_have_text(hashlib.sha256(html).hexdigest())
        assert page.locator("details pre").nth(1).text_content() == code_files()[0].content.decode()
        _shot(page, "code")
    assert listed == {file.name: file.sha256 for file in code_files()}
    assert loaded
    assert all(listed[name] == digest for name, digest in loaded.items())
    assert set(loaded) == set(listed) - {"worker.js"}
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(listed.items()))
    assert hashlib.sha256(lines.encode()).hexdigest() == code_hash()
    for name in listed:
        if name != "worker.js":
            assert f'/{name}" integrity="sha384-' in html.decode()


def test_a_changed_module_is_not_run(place: Place, browser: Browser) -> None:
    survey = place.publish()
    with phone(browser, service_workers="block") as context:
        page = context.new_page()
        context.route("**/words.js", lambda route: route.fulfill(body="export const systemWords = () => () => 0n;"))
        page.goto(place.address + survey["address"])
        page.wait_for_load_state("networkidle")
        expect(page.locator(".question")).to_have_count(0)


def test_the_survey_is_answered_with_the_keyboard_alone(place: Place, browser: Browser) -> None:
    survey = place.publish()
    with phone(browser) as context:
        page = context.new_page()
        page.goto(place.address + survey["address"])
        expect(page.locator(".question")).to_have_count(4)

        def focused() -> str:
            return str(page.evaluate("document.activeElement.id || document.activeElement.textContent"))

        def forward_to(wanted: str) -> None:
            for _ in range(60):
                page.keyboard.press("Tab")
                if focused() == wanted:
                    return
            raise AssertionError(wanted)

        forward_to("smoke-level-medium")
        page.keyboard.press("ArrowRight")
        expect(_group(page, "smoke").get_by_label("Low", exact=True)).to_be_checked()
        forward_to("smoke-0")
        page.keyboard.press("Space")
        forward_to("way-1")
        page.keyboard.press("Space")
        forward_to("sleep-number")
        page.keyboard.type("6")
        forward_to("Review")
        page.keyboard.press("Enter")
        expect(page.locator("#review")).to_be_focused()
        forward_to("send")
        page.keyboard.press("Enter")
        expect(page.locator("#done")).to_be_focused()
    assert place.api("GET", f"/surveys/{survey['id']}")["submissions"] == 1


def test_somebody_builds_publishes_and_reads_a_survey(place: Place) -> None:
    page = place.context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{place.address}/surveys/new")
    page.get_by_label("Title").fill("Life at work")
    page.get_by_label("Who asks").fill("Northern Institute")
    page.get_by_label("Question", exact=True).first.fill("Do you smoke?")
    for kind in ("single_choice", "multiple_choice", "number", "rating"):
        page.locator("#kind").select_option(kind)
        page.get_by_role("button", name="Add a question").click()
        box = page.locator("#questions > fieldset").last
        box.get_by_label("Question", exact=True).fill(f"A question, {kind}?")
        if kind.endswith("choice"):
            box.get_by_label("Options").fill("One\nTwo\nThree")
    expect(page.locator("#plan")).to_contain_text("people have to take part")
    expect(page.locator("#told")).to_contain_text("at most a factor")
    _shot(page, "builder", full_page=True)
    page.get_by_role("button", name="Keep as a draft").click()
    page.get_by_role("button", name="Publish").click()
    expect(page.locator("#link")).to_be_visible()
    survey_id = page.url.rpartition("/")[2]
    survey = place.api("GET", f"/surveys/{survey_id}")
    asked = Survey.from_dict(survey["document"])
    assert [str(question.kind) for question in asked.questions] == [
        "yes_no",
        "single_choice",
        "multiple_choice",
        "number",
        "rating",
    ]
    for one in simulate(asked, respondents=60, day=survey["opened"], mix={"low": 1}).submissions:
        place.api("POST", f"/surveys/{survey_id}/submissions", {"submission": one.to_dict()})
    page.reload()
    expect(page.locator("section svg")).to_have_count(5)
    expect(page.locator("section").first).to_contain_text("60 reports")
    _shot(page, "owner", full_page=True)
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Close the survey").click()
    expect(page.locator(".badge").first).to_have_text("closed")
    assert problems == []
