from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.errors import InternalError
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.web.display import safe_svg
from tests.hub.conftest import ClientFor, add_user
from tests.support.hub_datasets import ready_dataset, subject, work


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/catalogue",
        "/datasets",
        "/jobs",
        "/datasets/{}",
        "/datasets/{}/services/query.sql",
        "/datasets/{}/services/query.build",
    ],
)
def test_an_owner_sees_the_pages(hub: Hub, client_for: ClientFor, path: str) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    made = ready_dataset(hub, subject(hub, add_user(hub, "otto", AccountRole.DATA_OWNER)))
    page = owner.get(path.format(made))
    assert page.status_code == 200, page.text
    assert "<h1>" in page.text
    assert 'rel="alternate"' in page.text


def test_the_page_of_an_answer_shows_it(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    dataset = ready_dataset(hub, subject(hub, add_user(hub, "otto", AccountRole.DATA_OWNER)))
    asked = {"parameters": {"sql": "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex", "epsilon": "0.5"}}
    job = owner.post(f"/api/v1/datasets/{dataset}/services/query.sql/runs", json=asked).json()["id"]
    assert "waiting for a worker" in owner.get(f"/jobs/{job}").text
    work(hub)
    page = owner.get(f"/jobs/{job}").text
    assert "19 times out of 20" in page
    assert "answer.csv" in page


def answered(hub: Hub, owner: TestClient, dataset: str, sql: str) -> dict[str, Any]:
    asked = {"parameters": {"sql": sql, "epsilon": "0.1"}}
    job = owner.post(f"/api/v1/datasets/{dataset}/services/query.sql/runs", json=asked).json()
    work(hub)
    return dict(job)


def test_a_repeated_question_is_free_and_one_that_is_shown_differently_is_not_the_same(
    hub: Hub, client_for: ClientFor
) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    dataset = ready_dataset(hub, subject(hub, add_user(hub, "otto", AccountRole.DATA_OWNER)))

    def columns(job: str) -> dict[str, list[float]]:
        found = owner.get(f"/api/v1/jobs/{job}/result").json()["document"]["columns"]
        return {column["name"]: column["values"] for column in found}

    first = answered(hub, owner, dataset, "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex")
    again = answered(hub, owner, dataset, "select sex,  count(*) AS n FROM data GROUP BY sex -- again")
    assert (first["is_repeated"], again["is_repeated"]) == (False, True)
    assert columns(first["id"]) == columns(again["id"])
    for sql, names, rows in (
        ("SELECT sex, COUNT(*) AS patients FROM data GROUP BY sex", ["sex", "patients"], 2),
        ("SELECT sex, COUNT(*) * 1000 AS n FROM data GROUP BY sex", ["sex", "n"], 2),
        ("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY n LIMIT 1", ["sex", "n"], 1),
        ("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING COUNT(*) > 1000000", ["sex", "n"], 0),
    ):
        other = columns(answered(hub, owner, dataset, sql)["id"])
        assert (list(other), len(other["sex"])) == (names, rows)
        assert other != columns(first["id"])


@pytest.mark.parametrize("name", ["visits, one = a day", "onload=x", "javascript: never", "<script>alert(1)</script>"])
def test_words_that_look_like_code_are_words_in_a_chart(hub: Hub, client_for: ClientFor, name: str) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    dataset = ready_dataset(hub, subject(hub, add_user(hub, "otto", AccountRole.DATA_OWNER)))
    job = answered(hub, owner, dataset, f'SELECT sex, COUNT(*) AS "{name}" FROM data GROUP BY sex')["id"]
    page = owner.get(f"/jobs/{job}")
    assert page.status_code == 200
    assert "<svg" in page.text
    assert "<script>alert" not in page.text


@pytest.mark.parametrize(
    "drawing",
    [
        "<p>no drawing</p>",
        "<svg><script>x</script></svg>",
        "<svg onload='x'></svg>",
        '<svg><g\nOnClick = "x"/></svg>',
        '<svg><a xlink:href="javascript:x">y</a></svg>',
        '<svg><image href="https://elsewhere.example/x.png"/></svg>',
        "<svg><foreignObject><p>x</p></foreignObject></svg>",
    ],
)
def test_a_chart_that_could_run_something_is_refused(drawing: str) -> None:
    with pytest.raises(InternalError, match="plain drawing"):
        safe_svg(drawing)


def test_the_line_about_work_says_what_was_asked(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    dataset = ready_dataset(hub, subject(hub, add_user(hub, "otto", AccountRole.DATA_OWNER)))
    made = owner.post(f"/api/v1/datasets/{dataset}/services/release.anonymize/runs", json={"parameters": {"k": 2}})
    page = owner.get(f"/jobs/{made.json()['id']}")
    assert "Make a protected table" in page.text
    assert "automatic" not in page.text.partition("Notes, and where this comes from")[0]


@pytest.mark.parametrize(("path", "status"), [("/people", 403), ("/datasets/ds_none", 404), ("/nowhere", 404)])
def test_an_error_page_knows_who_is_signed_in(client_for: ClientFor, path: str, status: int) -> None:
    page = client_for("ada", AccountRole.DATA_USER).get(path)
    assert page.status_code == status
    assert "To the start page" in page.text
    assert "Sign in" not in page.text
    assert "Sign in" in client_for().get("/nowhere").text


def test_a_list_that_is_empty_by_default_is_an_empty_field(hub: Hub, client_for: ClientFor) -> None:
    owner = client_for("olga", AccountRole.DATA_OWNER)
    made = ready_dataset(hub, subject(hub, add_user(hub, "otto", AccountRole.DATA_OWNER)))
    page = owner.get(f"/datasets/{made}/services/risk.assess")
    assert 'name="quasi_identifiers" value=""' in page.text
