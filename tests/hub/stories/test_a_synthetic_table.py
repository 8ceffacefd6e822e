"""A synthetic table leaves the hub: priced, paid, approved, downloaded with a certificate, and drawn from for free."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from cloister.crypto.certificates import check_certificate
from cloister.hub.domain.operations import PolicyOperation
from tests.hub.services.helpers import API, allow
from tests.hub.stories.conftest import Town
from tests.support.playwright import shot

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


def test_from_the_price_to_rows_for_nothing(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset("synthesized")
    allow(town.hub, dataset, town.people["uma"], hidden=("patient",), operations=(PolicyOperation.SYNTH_GENERATE,))
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/synth.generate")
        page.get_by_label("Method").select_option("spanning_tree")
        page.get_by_label("age", exact=True).uncheck()
        expect(page.locator("[data-shown]")).to_contain_text("How far each count may be off")
        expect(page.locator("[data-shown]")).to_contain_text("Columns: sex, diagnosis.")
        shot(page, tmp_path, "ask-for-synthetic-data")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        made = urlsplit(page.url).path
        town.work()
        page.goto(made)
        expect(page.get_by_text("nothing of it has left the hub", exact=False)).to_be_visible()
    with town.page("olga") as page:
        page.goto("/")
        page.get_by_role("link", name="Make synthetic data on Visits: a release waits", exact=False).first.click()
        expect(page.get_by_text("It cost epsilon 1", exact=False)).to_be_visible()
        page.get_by_label("Let it leave the hub").check()
        page.get_by_role("button", name="Decide").click()
        expect(page.get_by_role("heading", name="Your decision")).to_have_count(0)
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}")
        page.get_by_role("link", name="sex, diagnosis").click()
        expect(page.get_by_role("heading", name="What is promised")).to_be_visible()
        shot(page, tmp_path, "synthetic-table")
        files = {}
        for name in ("synthetic.csv", "model.cloister", "certificate.json"):
            with page.expect_download() as started:
                page.get_by_role("link", name=f"Download {name}").click()
            files[name] = Path(started.value.path()).read_bytes()
        certificate = json.loads(files.pop("certificate.json"))
        check_certificate(certificate, files)
        assert certificate["result"]["guarantee"]["epsilon"] == "1"
        assert certificate["source_digest"]
        assert page.request.get(certificate["verification"]).json()["is_genuine"] is True
        page.get_by_label("Rows", exact=True).fill("25")
        page.get_by_label("Only rows with").fill("sex=F")
        with page.expect_download() as started:
            page.get_by_role("button", name="Draw and download").click()
        rows = list(csv.DictReader(Path(started.value.path()).read_text("utf-8").splitlines()))
        assert [row["sex"] for row in rows] == ["F"] * 25
    with town.page("olga") as page:
        assert page.request.get(f"{API}/datasets/{dataset}/ledger").json()["spent"]["epsilon"] == "1"
