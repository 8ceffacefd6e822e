"""A table leaves the hub: its risk is measured, it is protected, approved, downloaded, and carries a certificate."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from cloister.crypto.certificates import check_certificate
from cloister.hub.store.models import DatasetVersion
from tests.hub.services.helpers import allow
from tests.hub.stories.conftest import Town
from tests.support.playwright import shot

pytestmark = [pytest.mark.chromium, pytest.mark.slow]
FILES = ("protected.csv", "protected.parquet", "certificate.json")


def download(page: Page, name: str, folder: Path) -> bytes:
    """Download a file of a result by its button."""
    with page.expect_download() as started:
        page.get_by_role("link", name=f"Download {name}").click()
    started.value.save_as(folder / name)
    return (folder / name).read_bytes()


def test_from_the_risk_to_the_certificate(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset("released")
    allow(town.hub, dataset, town.people["uma"], hidden=("patient",))
    with town.page("olga") as page:
        page.goto(f"/datasets/{dataset}/services/risk.assess")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/jobs/*")
        town.work()
        expect(page.get_by_role("heading", name="Result")).to_be_visible()
        expect(page.get_by_text("k-anonymity").first).to_be_visible()
        expect(page.locator(".picture svg")).to_be_visible()
        shot(page, tmp_path, "risk")
        risk = page.url
    with town.page("uma") as page:
        page.goto(risk)
        expect(page.get_by_role("heading", name="Result")).to_have_count(0)
        page.goto(f"/datasets/{dataset}/services/release.anonymize")
        page.get_by_label("People who look alike (k)").fill("6")
        page.get_by_role("button", name="Check").click()
        expect(page.locator("[data-shown]")).to_contain_text("not differential privacy")
        shot(page, tmp_path, "ask-for-a-release")
        page.get_by_role("button", name="Run", exact=True).click()
        page.wait_for_url("**/jobs/*")
        town.work()
        release = page.url
        page.goto(release)
        expect(page.get_by_text("nothing of it has left the hub", exact=False)).to_be_visible()
        expect(page.get_by_role("link", name="Download protected.csv")).to_have_count(0)
        shot(page, tmp_path, "waiting")
    with town.page("olga") as page:
        page.goto("/")
        page.get_by_role("link", name="a release waits for your decision", exact=False).first.click()
        expect(page.get_by_role("heading", name="Before you decide")).to_be_visible()
        expect(page.get_by_text("No other table about these people has left the hub.")).to_be_visible()
        shot(page, tmp_path, "decide")
        page.get_by_label("Let it leave the hub").check()
        page.get_by_label("Note for the one who asked").fill("For the paper only.")
        page.get_by_role("button", name="Decide").click()
        expect(page.get_by_role("heading", name="Your decision")).to_have_count(0)
    with town.page("uma") as page:
        page.goto("/")
        page.locator(f'main a[href="{urlsplit(release).path}"]').first.click()
        expect(page.get_by_role("heading", name="What is promised")).to_be_visible()
        shot(page, tmp_path, "released")
        files = {name: download(page, name, tmp_path) for name in FILES}
        certificate = json.loads(files.pop("certificate.json"))
        digest = check_certificate(certificate, files)
        told = page.request.get(certificate["verification"]).json()
        assert told["is_genuine"] is True
        page.get_by_text("Notes, and where this comes from").click()
        expect(page.get_by_text(digest)).to_be_visible()
    rows = list(csv.DictReader(files["protected.csv"].decode().splitlines()))
    assert set(rows[0]) == {"age", "sex", "diagnosis"}
    assert min(Counter((row["age"], row["sex"]) for row in rows).values()) >= 6


def test_a_changed_file_is_found_and_nothing_is_answered(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset("damaged")
    with town.hub.store.reading() as session:
        blob = session.query(DatasetVersion).filter_by(dataset_id=dataset).one().blob_id
    path = town.hub.blobs.path(str(blob))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/query.sql")
        page.get_by_label("Question in SQL").fill("SELECT AVG(age) AS age FROM data")
        expect(page.locator("[data-shown]")).to_contain_text("It costs epsilon")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        town.work()
        expect(page.get_by_role("alert").filter(has_text="is not as it was kept")).to_be_visible()
        expect(page.get_by_role("heading", name="Answer")).to_have_count(0)
        shot(page, tmp_path, "damaged")
    with town.page("olga") as page:
        page.goto("/")
        page.get_by_role("link", name="is damaged", exact=False).first.click()
        page.wait_for_url("**/audit")
        expect(page.get_by_role("row", name="hub.integrity")).to_contain_text("not as it was kept")
        shot(page, tmp_path, "incident")
