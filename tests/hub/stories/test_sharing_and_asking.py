"""From a file to answers, in real browsers: sharing, asking with and without SQL, an empty budget, a revoked role."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.hub.stories.conftest import Town
from tests.support.hub_datasets import VISITS

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


def ask_in_sql(page: Page, dataset: str, sql: str, level: str = "fair") -> None:
    """Fill in a question and wait until its price is shown."""
    page.goto(f"/datasets/{dataset}/services/query.sql")
    page.get_by_label("Question in SQL").fill(sql)
    page.get_by_role("button", name=level).click()
    expect(page.locator("[data-shown]")).to_contain_text("It costs epsilon")


def test_an_owner_shares_data_from_the_file_to_the_budget(town: Town, tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text(VISITS)
    with town.page("olga") as page:
        page.goto("/datasets")
        page.get_by_label("Short name").fill("ward-visits")
        page.get_by_label("Title").fill("Visits to a ward")
        page.get_by_role("button", name="Make the dataset").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Visits to a ward")
        page.get_by_label("File").set_input_files(file)
        page.get_by_role("button", name="Upload", exact=True).click()
        page.wait_for_url("**/schema")

        age = page.get_by_role("group", name="age", exact=True)
        expect(age.locator("[data-guess=bounds]")).to_be_visible()
        page.get_by_role("button", name="Confirm", exact=True).click()
        expect(page.get_by_role("alert").filter(has_text="Tick that")).to_be_visible()
        age.get_by_label("Smallest").fill("110")
        age.get_by_label("Largest").fill("0")
        page.get_by_label("I have checked every column", exact=False).first.check()
        page.get_by_role("button", name="Confirm", exact=True).click()
        expect(page.get_by_role("alert").filter(has_text='Column "age"')).to_be_visible()
        expect(age.get_by_label("What it gives away")).to_be_focused()
        age.get_by_label("Smallest").fill("0")
        age.get_by_label("Largest").fill("110")
        expect(age.locator("[data-guess=bounds]")).to_be_hidden()
        page.get_by_role("group", name="sex", exact=True).get_by_label("All values").fill("F\nM\nX")
        page.get_by_role("group", name="patient", exact=True).get_by_label("says which person").check()
        page.get_by_role("button", name="Confirm", exact=True).click()
        page.wait_for_url(lambda url: "/schema" not in url)

        page.get_by_label("What is protected").select_option("patient")
        page.get_by_label("Rows of a person that count").fill("3")
        page.get_by_role("button", name="Open for questions").click()
        expect(page.get_by_text("open for questions", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="Budget")).to_be_visible()
        expect(page.get_by_role("cell", name="F, M, X")).to_be_visible()
        expect(page.get_by_role("cell", name="0 to 110")).to_be_visible()


def test_a_user_asks_by_parts_and_reads_the_answer(town: Town, tmp_path: Path) -> None:
    dataset = town.dataset("parts")
    with town.page("uma", phone=True, dark=True) as page:
        page.goto(f"/datasets/{dataset}")
        page.get_by_role("link", name="Ask without SQL").click()
        column = page.get_by_label("Of which column")
        expect(column).to_be_hidden()
        page.get_by_label("What to find").select_option("mean")
        expect(column).to_be_visible()
        page.get_by_label("sex", exact=False).check()
        page.get_by_role("button", name="Add a condition").click()
        page.get_by_label("Column", exact=True).select_option("diagnosis")
        page.get_by_label("Value of diagnosis").select_option("asthma")
        page.get_by_role("button", name="Add a condition").click()
        page.get_by_role("button", name="Remove this condition").nth(1).click()
        page.get_by_role("button", name="fine").click()
        shown = page.locator("[data-shown]")
        expect(shown).to_contain_text("It costs epsilon 1.")
        expect(shown).to_contain_text("in each of 2 groups")
        expect(shown).to_contain_text("What is promised")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        town.work()
        expect(page.get_by_role("heading", name="Answer")).to_be_visible()
        expect(page.get_by_text("The mean of age, by sex, where diagnosis is asthma")).to_be_visible()
        expect(page.locator(".table tbody tr")).to_have_count(2)
        expect(page.locator(".table")).to_contain_text("±")
        expect(page.get_by_role("heading", name="What is promised")).to_be_visible()
        expect(page.locator(".picture svg")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        with page.expect_download() as started:
            page.get_by_role("link", name="Download answer.csv").click()
        started.value.save_as(tmp_path / "answer.csv")
    rows = list(csv.reader((tmp_path / "answer.csv").read_text().splitlines()))
    assert len(rows) == 3


def test_the_keyboard_alone_is_enough_to_ask(town: Town) -> None:
    dataset = town.dataset("keyboard")
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/query.sql")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        for _ in range(30):
            page.keyboard.press("Tab")
            focused = page.evaluate("document.activeElement.textContent.trim()")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", focused
            if focused.startswith("good"):
                page.keyboard.press("Space")
            if focused == "Pay and run":
                break
        expect(page.get_by_label("Price (epsilon)")).to_have_value("0.3")
        expect(page.locator("[data-shown]")).to_contain_text("It costs epsilon 0.3.")
        page.keyboard.press("Enter")
        page.wait_for_url("**/jobs/*")
        town.work()
        expect(page.locator(".figures")).to_contain_text("±")


def test_a_question_that_is_not_allowed_is_explained_before_paying(town: Town) -> None:
    dataset = town.dataset("explained")
    with town.page("uma") as page:
        page.goto(f"/datasets/{dataset}/services/query.sql")
        page.get_by_label("Question in SQL").fill("SELECT patient FROM data")
        shown = page.locator("[data-shown]")
        expect(shown).to_contain_text("What to do:")
        page.get_by_role("button", name="a count in groups").click()
        expect(shown).to_contain_text("It costs epsilon 0.1.")


def test_an_empty_budget_is_told_to_both_sides(town: Town) -> None:
    dataset = town.dataset("small", epsilon="0.5")
    with town.page("uma") as page:
        ask_in_sql(page, dataset, "SELECT COUNT(*) AS n FROM data", "good")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        town.work()
        expect(page.get_by_role("heading", name="Answer")).to_be_visible()
        ask_in_sql(page, dataset, "SELECT AVG(age) AS age FROM data", "good")
        expect(page.locator("[data-shown]")).to_contain_text("too little")
        page.get_by_role("button", name="Pay and run").click()
        expect(page.get_by_role("alert")).to_contain_text("0.2")
        assert page.url.endswith("query.sql")
        ask_in_sql(page, dataset, "SELECT COUNT(*) AS n FROM data", "good")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        expect(page.get_by_text("so this was free", exact=False)).to_be_visible()
    with town.page("olga") as page:
        page.goto(f"/datasets/{dataset}")
        expect(page.get_by_text("60% of epsilon 0.5 is spent.")).to_be_visible()
        page.goto("/jobs")
        page.get_by_role("link", name="SELECT COUNT(*) AS n FROM data").first.click()
        expect(page.get_by_text("The answer is shown only to uma")).to_be_visible()


def test_a_role_that_is_revoked_stops_work_that_waits(town: Town) -> None:
    dataset = town.dataset("revoked")
    with town.page("uma") as page:
        ask_in_sql(page, dataset, "SELECT COUNT(*) AS n FROM data")
        page.get_by_role("button", name="Pay and run").click()
        page.wait_for_url("**/jobs/*")
        expect(page.get_by_text("waiting for a worker")).to_be_visible()
        town.let_in(dataset, change=lambda policy: policy.without_member("researchers", town.people["uma"]))
        town.work()
        expect(page.get_by_text("denied", exact=True)).to_be_visible()
        expect(page.get_by_role("heading", name="Answer")).to_be_hidden()
        page.goto(f"/datasets/{dataset}")
        expect(page.get_by_role("link", name="Ask the owner for access")).to_be_visible()


def test_the_tour_shows_the_way_and_remembers_that_it_was_hidden(town: Town) -> None:
    town.dataset("toured")
    with town.page("uma") as page:
        page.goto("/")
        tour = page.get_by_role("region", name="A short tour")
        tour.get_by_role("link", name="Ask in SQL").click()
        page.wait_for_url("**/query.sql")
        page.go_back()
        expect(tour.locator(".seen:visible")).to_have_count(1)
        tour.get_by_role("button", name="Hide the tour").click()
        page.reload()
        expect(tour).to_be_hidden()
        page.get_by_role("button", name="Show the tour").click()
        expect(tour).to_be_visible()
