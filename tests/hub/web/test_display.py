from __future__ import annotations

from typing import Any

import pytest

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.use_cases import audit_log
from cloister.hub.web.display import describe_detail
from tests.hub.conftest import ClientFor


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (["auditor"], "auditor"),
        (["auditor", "operator"], "auditor, operator"),
        ([], "none"),
        ({}, "none"),
        (None, "none"),
        (True, "yes"),
        (False, "no"),
        (3, "3"),
        ("open", "open"),
        ({"epsilon": "1/2", "delta": "0"}, "epsilon 0.5"),
        ({"max_rows": None, "kinds": ["a", "b"]}, "max rows none, kinds a, b"),
        ([{"epsilon": "1"}, False], "epsilon 1, no"),
    ],
)
def test_details_are_told_in_words(value: Any, words: str) -> None:
    assert describe_detail(value) == words


def test_the_audit_page_shows_words_and_no_code(hub: Hub, client_for: ClientFor) -> None:
    auditor = client_for("ann", AccountRole.AUDITOR)
    with hub.store.writing() as session:
        audit_log.append(session, "test.entry", by=None, roles=["auditor"], is_new=False, limits={"most": None})
    page = auditor.get("/audit").text
    assert "is new: no; limits: most none; roles: auditor" in page
    for code in ("[&#39;", "{&#39;", "False", "None"):
        assert code not in page
