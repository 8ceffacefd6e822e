from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from cloister.hub.app import create_app
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store.models import Dataset, User
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.accounts import enrolment
from tests.hub.conftest import ClientFor, add_user

FIELD = re.compile(r"<(input|select|textarea)\b([^>]*)>")


def _check(page: str) -> str:
    """Return a page after checking that each of its fields has a label, and that nothing in it is inline."""
    for _, attributes in FIELD.findall(page):
        if " hidden" in attributes:
            continue
        found = re.search(r'\bid="([^"]+)"', attributes)
        assert found is not None, attributes
        assert f'for="{found[1]}"' in page, attributes
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=", page)
    assert len(re.findall(r"<h1>", page)) == 1
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    return page


def _get(client: TestClient, path: str) -> str:
    answer = client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return _check(answer.text)


def test_the_sign_in_page_leads_only_to_pages_of_the_hub(client_for: ClientFor) -> None:
    client = client_for()
    assert 'data-next="/jobs?x=1"' in _get(client, "/login?next=/jobs%3Fx%3D1")
    for wanted in ("https://evil.example", "//evil.example", "javascript:alert(1)", "/%5Cevil.example"):
        assert 'data-next="/"' in _get(client, f"/login?next={wanted}")


def test_pages_send_strangers_to_the_sign_in_page(client_for: ClientFor) -> None:
    answer = client_for().get("/people?after=x", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/people%3Fafter%3Dx")
    assert client_for().get("/people", headers={"authorization": "Bearer clst_wrong"}).status_code == 401
    assert client_for().get("//evil.example/people").headers.get("location", "/").startswith("/")


def test_other_services_are_on_the_sign_in_page(hub: Hub) -> None:
    campus = {"issuer": "https://campus.example", "client_id": "x", "title": "The <campus>"}
    settings = replace(hub.settings, oidc={"campus": campus})
    app = create_app(Hub(settings, hub.store, hub.key, hub.blobs))
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        page = _get(client, "/login?next=/jobs")
    assert "/api/v1/oidc/campus/start?next=/jobs" in page
    assert "The &lt;campus&gt;" in page


def test_the_page_of_ones_own_account(client_for: ClientFor) -> None:
    client = client_for("ada", AccountRole.DATA_USER)
    client.post("/api/v1/account/tokens", json={"name": "<script>", "scopes": ["*"]})
    page = _get(client, "/account")
    assert "&lt;script&gt;" in page
    assert "data user" in page
    assert 'href="/api/v1/account"' in page, "its JSON twin"


def test_the_pages_of_operators(hub: Hub, client_for: ClientFor) -> None:
    operator = client_for("oper", AccountRole.OPERATOR)
    ada = add_user(hub, "ada", AccountRole.DATA_USER)
    with hub.store.writing() as session:
        session.get_one(User, ada).totp_sealed = b"wrapped"
        session.get_one(User, ada).attributes = {"branch": "oncology"}
    assert f'href="/people/{ada}"' in _get(operator, "/people")
    page = _get(operator, f"/people/{ada}")
    assert "branch = oncology" in page
    assert 'value="data_user" data-type="list" checked' in page
    assert operator.get("/people/usr_none").status_code == 404
    assert client_for("eve", AccountRole.DATA_USER).get("/people").status_code == 403


def test_the_page_of_confirmations(hub: Hub, client_for: ClientFor) -> None:
    operator, owner = client_for("oper", AccountRole.OPERATOR, of="hub"), client_for("olga", AccountRole.DATA_OWNER)
    assert "Nobody waits" in _get(owner, "/people/confirmations")
    organisation = owner.get("/api/v1/session").json()["account"]["organisation_id"]
    made = operator.post(
        "/api/v1/people", json={"name": "puppet", "roles": ["data_owner"], "organisation_id": organisation}
    ).json()
    assert f"/api/v1/people/{made['id']}/confirmation" in _get(owner, "/people/confirmations")
    assert "waits until" in _get(operator, f"/people/{made['id']}")


def test_the_page_of_a_link(hub: Hub, client_for: ClientFor) -> None:
    ada = add_user(hub, "ada")
    with hub.store.writing() as session:
        link = enrolment.make_link(session, ada, by=None)
    assert "<strong>ada</strong>" in _get(client_for(), f"/enrol/{link.token}")
    assert client_for().get("/enrol/invented").status_code == 404


def test_the_pages_of_the_audit_log(hub: Hub, client_for: ClientFor) -> None:
    auditor, owner = client_for("tom", AccountRole.AUDITOR), client_for("olga", AccountRole.DATA_OWNER)
    with hub.store.writing() as session:
        olga = session.query(User).filter_by(name="olga").one()
        session.add(Dataset(id="ds_1", name="d", organisation_id=str(olga.organisation_id), creator_id=olga.id))
        for number in range(120):
            audit_log.append(session, "test.done", by=olga.id, dataset_id="ds_1", text=f"<b>{number}</b>")
    page = _get(auditor, "/audit?action=test.done")
    assert "&lt;b&gt;119&lt;/b&gt;" in page
    older = re.search(r'href="(\?[^"]+)">Older', page)
    assert older is not None
    assert "text: &lt;b&gt;0&lt;/b&gt;" in _get(auditor, "/audit" + older[1].replace("&amp;", "&"))
    assert "olga" in _get(owner, "/datasets/ds_1/audit")
    assert owner.get("/audit").status_code == 403


@pytest.mark.parametrize("path", ["/login", "/account", "/people", "/audit"])
def test_pages_cannot_be_framed_or_kept(client_for: ClientFor, path: str) -> None:
    answer = client_for().get(path)
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
