from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.use_cases.surveys.browser_code import code_hash
from cloister.local.survey import EXAMPLE, Survey, example_survey
from tests.hub.conftest import ClientFor
from tests.hub.use_cases.surveys.conftest import DOCUMENT, Publish, asked_in, slug_of


def test_a_survey_file_becomes_a_draft_in_any_form(asker: TestClient) -> None:
    ids = set()
    for document in (DOCUMENT, json.dumps(DOCUMENT), EXAMPLE, example_survey().to_dict()):
        made = asker.post("/api/v1/surveys", json={"document": document})
        assert made.status_code == 201
        found = made.json()
        assert found["state"] == "draft"
        assert asker.get(f"/api/v1/surveys/{found['id']}").json() == found
        assert Survey.from_dict(found["document"]).fingerprint == found["fingerprint"]
        ids.add(found["id"])
    assert {one["id"] for one in asker.get("/api/v1/surveys").json()["items"]} == ids


def test_levels_keep_their_order_and_numbers_stay_exact(asker: TestClient) -> None:
    document = DOCUMENT | {"levels": {"off": None, "zealous": 0.1, "a": "1/3"}, "default_level": "zealous"}
    found = asker.post("/api/v1/surveys", json={"document": document}).json()
    assert list(found["document"]["levels"]) == ["off", "zealous", "a"]
    assert found["fingerprint"] == Survey.from_dict(found["document"]).fingerprint
    assert Survey.from_dict(found["document"]).levels_of("smoke")["zealous"].epsilon * 10 == 1


def test_what_cannot_be_asked_is_refused_with_a_fix(asker: TestClient) -> None:
    changes: list[tuple[dict[str, Any], str]] = [
        ({"questions": []}, "from 1 to 200 questions"),
        ({"questions": [{"id": "x", "kind": "text", "text": "Your name?"}]}, "single_choice"),
        ({"questions": [{"id": "x", "kind": "number", "text": "Age?"}]}, "bounds"),
        ({"levels": {"plain": 50}}, "smaller protects more"),
        ({"secret": 1}, "unknown part"),
        ({"schema": "other/1"}, "cloister.survey/1"),
    ]
    for change, words in changes:
        for path, body in (("/api/v1/surveys", {}), ("/api/v1/surveys/check", {"margin": 2})):
            refused = asker.post(path, json={"document": DOCUMENT | change, **body})
            assert refused.status_code == 422
            assert words in refused.json()["problem"] + refused.json()["fix"]


def test_a_check_says_what_respondents_are_told_and_how_many_are_needed(asker: TestClient) -> None:
    found = asker.post("/api/v1/surveys/check", json={"document": DOCUMENT, "margin": 2}).json()
    survey = Survey.from_dict(DOCUMENT)
    assert found["statement"] == str(survey.total())
    assert found["questions"][0]["levels"][1]["statement"] == str(survey.statement("smoke", "low"))
    tighter = asker.post("/api/v1/surveys/check", json={"document": DOCUMENT, "margin": 1}).json()
    assert tighter["plan"]["respondents"] == pytest.approx(4 * found["plan"]["respondents"], rel=1e-3)
    other = asker.post("/api/v1/surveys/check", json={"document": DOCUMENT, "respondents": 2000}).json()
    assert all(row["margin"].startswith("±") for row in other["plan"]["rows"])
    assert asker.get("/api/v1/surveys").json()["items"] == []
    both = asker.post("/api/v1/surveys/check", json={"document": DOCUMENT, "margin": 1, "respondents": 5})
    assert both.status_code == 422


def test_a_draft_is_changed_a_published_survey_is_not(asker: TestClient, publish: Publish) -> None:
    made = asker.post("/api/v1/surveys", json={"document": DOCUMENT}).json()
    changed = asker.put(
        f"/api/v1/surveys/{made['id']}", json={"document": DOCUMENT | {"title": "Another"}, "least": 50}
    ).json()
    assert (changed["title"], changed["least"]) == ("Another", 50)
    published = publish()
    assert published["published_code_hash"] == code_hash()
    refused = asker.put(f"/api/v1/surveys/{published['id']}", json={"document": DOCUMENT})
    assert refused.status_code == 409
    assert "make a new survey" in refused.json()["fix"]
    assert asker.post(f"/api/v1/surveys/{published['id']}/publish").status_code == 409


def test_estimates_from_a_handful_of_reports_cannot_be_asked_for(asker: TestClient) -> None:
    for least in (9, 100_001):
        refused = asker.post("/api/v1/surveys", json={"document": DOCUMENT, "least": least})
        assert refused.status_code == 422
        assert "for example 30" in refused.json()["fix"]


def test_only_the_organisation_sees_a_survey_and_only_its_askers_change_it(
    publish: Publish, client_for: ClientFor
) -> None:
    survey = publish()
    path = f"/api/v1/surveys/{survey['id']}"
    colleague, owner = client_for("ben", AccountRole.AUDITOR), client_for("ola", AccountRole.DATA_OWNER)
    stranger, nobody = client_for("eve", AccountRole.DATA_OWNER, of="south"), client_for()
    for person in (colleague, owner):
        assert person.get(path).status_code == 200
        assert person.get(f"{path}/estimates").status_code == 200
    for person, status in ((stranger, 404), (nobody, 401)):
        assert person.get(path).status_code == status
        assert person.get(f"{path}/estimates").status_code == status
        assert person.post(f"{path}/close").status_code == status
        assert person.delete(path).status_code == status
    assert colleague.post(f"{path}/close").status_code == 404
    assert colleague.post("/api/v1/surveys", json={"document": DOCUMENT}).status_code == 403
    assert owner.post(f"{path}/close").status_code == 200
    assert owner.post(f"{path}/close").status_code == 409
    assert stranger.get("/api/v1/surveys").json()["items"] == []


def test_lists_are_read_in_parts(asker: TestClient) -> None:
    made = [asker.post("/api/v1/surveys", json={"document": DOCUMENT}).json()["id"] for _ in range(5)]
    seen: list[str] = []
    after: str | None = None
    while True:
        page = asker.get("/api/v1/surveys", params={"limit": 2} | ({} if after is None else {"after": after})).json()
        seen += [one["id"] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert sorted(seen) == sorted(made)


def test_a_draft_is_not_shown_to_respondents_and_a_closed_survey_asks_nothing(
    asker: TestClient, publish: Publish, client_for: ClientFor
) -> None:
    nobody = client_for()
    draft = asker.post("/api/v1/surveys", json={"document": DOCUMENT}).json()
    for name in (slug_of(draft), draft["id"]):
        assert nobody.get(f"/api/v1/surveys/{name}/page").status_code == 404
        assert nobody.get(f"/s/{name}").status_code == 404
        assert nobody.get(f"/api/v1/surveys/{name}/public-estimates").status_code == 404
    survey = publish()
    page = nobody.get(f"/api/v1/surveys/{slug_of(survey)}/page")
    assert page.status_code == 200
    assert page.json()["page"]["fingerprint"] == survey["fingerprint"]
    assert "set-cookie" not in page.headers
    asker.post(f"/api/v1/surveys/{survey['id']}/close")
    assert nobody.get(f"/api/v1/surveys/{slug_of(survey)}/page").json()["page"] is None


def test_deleting_deletes_everything(asker: TestClient, publish: Publish, hub: Hub, client_for: ClientFor) -> None:
    survey = publish()
    body = {"submission": asked_in(survey).answer({"smoke": "yes"}).to_dict()}
    assert client_for().post(f"/api/v1/surveys/{slug_of(survey)}/submissions", json=body).status_code == 201
    assert asker.delete(f"/api/v1/surveys/{survey['id']}").status_code == 200
    assert asker.get(f"/api/v1/surveys/{survey['id']}").status_code == 404
    with hub.store.engine.connect() as connection:
        for table in ("surveys", "survey_reports", "survey_used_ids", "survey_signatures", "survey_invitations"):
            assert connection.exec_driver_sql(f"SELECT COUNT(*) FROM {table}").scalar() == 0


def test_pages_of_those_who_ask_name_their_twin(asker: TestClient) -> None:
    for path in ("/surveys", "/surveys/new"):
        page = asker.get(path)
        assert page.status_code == 200
        assert '<link rel="alternate" type="application/json" href="/api/v1/surveys' in page.text


def test_texts_of_a_survey_are_shown_as_text(asker: TestClient, publish: Publish) -> None:
    nasty = "<script>alert(1)</script>"
    document = DOCUMENT | {"title": nasty, "questions": [{"id": "x", "kind": "yes_no", "text": nasty}]}
    survey = publish(document)
    for path in ("/surveys", f"/surveys/{survey['id']}", survey["address"], f"{survey['address']}/code"):
        assert nasty not in asker.get(path).text
        assert "&lt;script&gt;" in asker.get(path).text


def test_odd_requests_are_refused_and_break_nothing(asker: TestClient, publish: Publish) -> None:
    path, json_ = f"/api/v1/surveys/{publish(admission='blind')['id']}", {"content-type": "application/json"}
    deep = "[" * 900 + "]" * 900
    documents = [r'{"\ud800": 1}', r'{"schema": "cloister.survey/1", "id": "\ud800"}', r'"\ud800"', '{"a": NaN}', deep]
    documents += [
        '"a: &a [*a]"',
        '"!!python/object:os.system x"',
        f'{{"a": {deep}}}',
        '{"schema": [], "questions": {}}',
    ]
    for document in documents:
        for place in ("/api/v1/surveys", "/api/v1/surveys/check"):
            refused = asker.post(place, content=f'{{"document": {document}}}', headers=json_)
            assert refused.status_code == 422, document
    answers = [
        r'{"submission": {"\ud800": 1}}',
        r'{"submission": {}, "token": "\ud800"}',
        f'{{"submission": {{"a": {deep}}}}}',
    ]
    for answer in answers:
        assert asker.post(f"{path}/submissions", content=answer, headers=json_).status_code == 422
    for address in ("/s/%00", "/api/v1/surveys/%00", f"{path}/estimates/%00.svg", "/survey-code/x/%2e%2e/style.css"):
        assert asker.get(address).status_code == 404, address
    for address in ("/api/v1/surveys?after=%00", "/surveys?after=%00", "/api/v1/surveys?limit=many"):
        assert asker.get(address).status_code == 422, address


def test_the_fingerprint_covers_who_may_answer_by_which_key_and_the_day(asker: TestClient, publish: Publish) -> None:
    found = [publish(admission=kind) for kind in ("everybody", "links", "blind", "blind")]
    assert len({one["fingerprint"] for one in found}) == 4, "each blind survey has a key of its own"
    draft = asker.post("/api/v1/surveys", json={"document": found[2]["document"]}).json()
    assert "terms" not in draft["document"], "a copy has no terms before it is published"
    for one in found:
        page = asker.get(f"/api/v1/surveys/{slug_of(one)}/page").json()
        terms = page["page"]["terms"]
        assert page["page"]["fingerprint"] == one["fingerprint"] == asked_in(one).fingerprint
        assert [terms["admission"], terms["sentence"]] == [page["admission"]["kind"], page["admission"]["sentence"]]
        assert terms["day"] == page["day"] == one["opened"]
        assert terms["key"] == (page["key"] or {}).get("fingerprint")
