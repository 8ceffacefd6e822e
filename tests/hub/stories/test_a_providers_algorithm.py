"""A provider publishes k-means 1.0.0, the owner reads and allows it, a user runs it; 1.1.0 waits for the owner."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from cloister.hub.sandbox import execution as sandbox_running
from cloister.hub.sandbox.run_plan import Slots
from tests.hub.stories.conftest import Town
from tests.hub.use_cases.algorithms.conftest import k_means_version, policy
from tests.support.hub_datasets import set_policy
from tests.support.playwright import shot

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


@pytest.fixture(autouse=True)
def instant_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots as short as the blocks themselves."""
    monkeypatch.setattr(sandbox_running, "Slots", lambda seconds: Slots(0.01))


def publish(town: Town, page: Page, version: str, tmp_path: Path, *, button: str) -> None:
    """Upload a version, let it be checked, and publish it."""
    file = tmp_path / f"k-means-{version}.zip"
    file.write_bytes(k_means_version(version).to_zip())
    page.get_by_label("Zip").set_input_files(file)
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_url(f"**/versions/{version}")
    expect(page.get_by_text("There is no report yet")).to_be_visible()
    expect(page.get_by_role("button", name="Publish")).to_have_count(0)
    town.work()
    page.reload()
    expect(page.get_by_text("Passed.")).to_be_visible()
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".badge").first).to_have_text("published")


def allow(town: Town, dataset: str, version: str, tmp_path: Path) -> None:
    """Read a version as the owner, and allow it."""
    with town.page("olga") as page:
        page.goto("/")
        if version != "1.0.0":
            expect(page.get_by_text(re.compile(f"k-means.*{version}")).first).to_be_visible()
        page.goto(f"/datasets/{dataset}/algorithms")
        offer = page.locator("details", has_text=f"k-means@{version}")
        offer.locator("summary").click()
        shot(page, tmp_path, f"allow-{version}")
        offer.get_by_role("link", name="manifest, sources and checks").click()
        page.wait_for_url(f"**/versions/{version}")
        expect(page.get_by_text("def fit(")).to_be_visible()
        expect(page.get_by_text("Passed.")).to_be_visible()
        shot(page, tmp_path, f"read-{version}")
        page.go_back()
        offer.locator("summary").click()
        page.get_by_role("button", name="Allow on this data").click()
        expect(offer.get_by_role("checkbox")).to_be_focused()
        offer.get_by_role("checkbox").check()
        page.get_by_role("button", name="Allow on this data").click()
        expect(page.get_by_role("row", name=f"k-means@{version}")).to_contain_text("olga")


def test_from_the_provider_to_the_answer_and_the_next_version(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset("grouped")
    set_policy(town.hub, dataset, policy(dataset, town.people["uma"], hidden=("patient",)))
    with town.page("petra") as page:
        page.goto("/algorithms")
        publish(town, page, "1.0.0", tmp_path, button="Register")
        shot(page, tmp_path, "published")
        address = page.url.rpartition("/versions")[0]
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/algo.run")
        expect(page.get_by_text("allows no foreign algorithm")).to_be_visible()
    allow(town, dataset, "1.0.0", tmp_path)

    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/algo.run")
        shot(page, tmp_path, "choose")
        page.get_by_role("link", name="k-means@1.0.0").click()
        page.get_by_label("age", exact=True).check()
        page.get_by_label("Blocks").fill("10")
        page.get_by_role("button", name="See price and error").click()
        shown = page.locator("[data-shown]")
        expect(shown).to_contain_text("It costs epsilon 1.")
        expect(shown).to_contain_text("What is promised")
        shot(page, tmp_path, "price")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        town.work()
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        expect(page.get_by_text("centers 1, age")).to_be_visible()
        promised = page.get_by_role("region", name="What is promised")
        expect(promised).to_contain_text("epsilon = 1")
        shot(page, tmp_path, "answer")

    with town.page("petra") as page:
        page.goto(address)
        publish(town, page, "1.1.0", tmp_path, button="Upload")
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/algo.run")
        expect(page.get_by_role("link", name="k-means@1.0.0")).to_be_visible()
        expect(page.get_by_role("link", name="k-means@1.1.0")).to_have_count(0)
        page.goto(f"/datasets/{dataset}/algorithms/k-means/1.1.0")
        expect(page.get_by_role("button", name="Pay and run")).to_have_count(0)
        shot(page, tmp_path, "not-allowed")
    allow(town, dataset, "1.1.0", tmp_path)
    with town.page("uma", phone=True, dark=True) as page:
        page.goto(f"/datasets/{dataset}/services/algo.run")
        page.get_by_role("link", name="k-means@1.1.0").click()
        expect(page.get_by_role("button", name="Pay and run")).to_be_visible()
        shot(page, tmp_path, "form-on-a-phone")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
