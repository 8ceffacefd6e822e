"""An owner and a data user in real browsers: from a template to access, and what the check boxes change."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.hub.domain.roles import AccountRole
from tests.hub.conftest import add_user
from tests.hub.live import login_cookies, serving
from tests.support.hub_datasets import ready_dataset, subject
from tests.support.playwright import chromium, phone


@pytest.mark.chromium
@pytest.mark.slow
def test_an_owner_shares_and_a_user_gets_access(tmp_path: Path) -> None:
    with serving(tmp_path / "hub") as (hub, address), chromium() as browser:
        olga = add_user(hub, "olga", AccountRole.DATA_OWNER)
        ada = add_user(hub, "ada", AccountRole.DATA_USER, of="south")
        place = f"{address}/datasets/{ready_dataset(hub, subject(hub, olga))}"
        with phone(browser) as owners, phone(browser) as users:
            owners.add_cookies(login_cookies(hub, olga, address))  # type: ignore[arg-type]  # plain dictionaries
            users.add_cookies(login_cookies(hub, ada, address))  # type: ignore[arg-type]  # plain dictionaries
            owner, user = owners.new_page(), users.new_page()

            owner.goto(f"{place}/policy")
            owner.get_by_role("button", name="Use this template").click()
            owner.get_by_role("heading", name="researchers").wait_for()
            hidden = owner.get_by_label("patient: see that it exists")
            assert not hidden.is_checked()
            owner.get_by_label("age: see that it exists").uncheck()
            assert not owner.get_by_label("age: measure it").is_checked()
            owner.get_by_label("age: measure it").check()
            assert owner.get_by_label("age: see that it exists").is_checked()
            owner.locator("form[data-change=columns] button").click()
            owner.get_by_text("Versions: 3").wait_for()
            assert not owner.get_by_label("age: group by it").is_checked()
            owner.get_by_text("The policy as JSON, for experts").click()
            owner.locator("#text").fill("{")
            owner.get_by_role("button", name="Save as version 4").click()
            owner.get_by_role("alert").filter(has_text="The policy is not JSON.").wait_for()

            user.goto(f"{place}/access")
            user.get_by_label("What for").fill("research.health")
            user.get_by_label("Budget that you need (epsilon)").fill("0.5")
            user.get_by_role("button", name="Ask the owner").click()
            user.wait_for_url("**/requests/*")

            owner.goto(f"{address}/requests")
            owner.get_by_role("link", name="Visits").first.click()
            assert owner.get_by_text("allows all of it").is_visible()
            owner.get_by_role("button", name="Approve").click()
            owner.get_by_role("button", name="End the access").wait_for()

            user.goto(f"{place}/access")
            assert user.get_by_text("epsilon 0.5", exact=True).is_visible()
            user.get_by_text("May I …?").click()
            user.get_by_label("For what").last.fill("commercial")
            user.get_by_role("button", name="Ask", exact=True).click()
            user.get_by_text("The owner has not allowed this purpose.").wait_for()

            owner.get_by_role("button", name="End the access").click()
            owner.get_by_text("ended by olga").wait_for()
            user.reload()
            assert user.get_by_text("You may not use this data yet.").is_visible()
