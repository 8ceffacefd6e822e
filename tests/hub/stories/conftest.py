"""A hub that listens, with an owner and a user in it, and their browsers; what a page complains about is a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from cloister.hub import queue
from cloister.hub.domain.policy import BudgetLimits, Member, Policy
from cloister.hub.domain.policy_edits import RESEARCHERS, research_by_request
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.use_cases.jobs.work import perform
from tests.hub.conftest import add_user
from tests.hub.live import login_cookies, serving
from tests.support.hub_datasets import ready_dataset, set_policy, subject
from tests.support.playwright import DESK, PHONE, chromium


@dataclass(frozen=True, slots=True)
class Town:
    """A hub with people in it."""

    hub: Hub
    address: str
    browser: Browser
    people: dict[str, str]

    @contextmanager
    def page(self, who: str, *, phone: bool = False, dark: bool = False) -> Iterator[Page]:
        """Open somebody's browser; errors in its console, and requests to elsewhere, are failures."""
        context = self.browser.new_context(
            viewport=PHONE if phone else DESK, color_scheme="dark" if dark else "light", base_url=self.address
        )
        context.set_default_timeout(20_000)
        context.add_cookies(login_cookies(self.hub, self.people[who], self.address))  # type: ignore[arg-type]
        complaints: list[str] = []
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: complaints.append(sent.url) if not _is_here(sent.url, self.address) else None)
        try:
            yield page
            expected = [said for said in complaints if "status of 4" not in said]
            assert expected == []
        finally:
            context.close()

    def work(self) -> None:
        """Do everything that waits, as a worker would."""
        while True:
            with self.hub.store.writing() as session:
                claim = queue.claim(session, "test", 60)
            if claim is None:
                return
            perform(self.hub, claim, lambda share, stage: None)

    def dataset(self, name: str, **changes: Any) -> str:
        """Return a dataset of the owner's that the user may query for research."""
        made = ready_dataset(self.hub, subject(self.hub, self.people["olga"]), name=name, **changes)
        self.let_in(made)
        return made

    def let_in(self, dataset: str, *, change: Callable[[Policy], Policy] = lambda policy: policy) -> None:
        """Let the user query a dataset, with nothing but its own budget as a limit."""
        policy = research_by_request(dataset, hidden=["patient"])
        role = policy.role(RESEARCHERS)
        unlimited = replace(role, rules=tuple(replace(rule, limits=BudgetLimits()) for rule in role.rules))
        policy = policy.next_version(roles=(unlimited,)).with_member(RESEARCHERS, Member(user_id=self.people["uma"]))
        set_policy(self.hub, dataset, change(policy))


def _is_here(url: str, address: str) -> bool:
    return url.startswith((f"{address}/", "data:", "blob:"))


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with ExitStack() as stack:
        hub, address = stack.enter_context(serving(tmp_path_factory.mktemp("town"), answer_seconds=0.0, demo=True))
        people = {
            "olga": add_user(hub, "olga", AccountRole.DATA_OWNER),
            "uma": add_user(hub, "uma", AccountRole.DATA_USER, of="university"),
            "petra": add_user(hub, "petra", AccountRole.ALGORITHM_PROVIDER, of="methods"),
        }
        yield Town(hub, address, stack.enter_context(chromium()), people)
