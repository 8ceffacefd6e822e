from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.crypto.blind_signatures import Blinded, BlindPublicKey
from cloister.errors import ConflictError
from cloister.hub.hub import Hub
from cloister.hub.use_cases.surveys.catalogue import find_survey
from cloister.hub.use_cases.surveys.submissions import is_turn, submit_many
from cloister.local.survey import simulate
from tests.hub.conftest import ClientFor
from tests.hub.use_cases.surveys.conftest import DOCUMENT, Publish, asked_in, slug_of


@pytest.fixture
def nobody(client_for: ClientFor) -> TestClient:
    return client_for()


def _answer(survey: dict[str, Any], **answers: Any) -> dict[str, Any]:
    return asked_in(survey).answer(answers or {"smoke": "yes", "sleep": 7}, day=survey["opened"]).to_dict()


def _send(person: TestClient, survey: dict[str, Any], submission: Any, **proof: str) -> Any:
    path = f"/api/v1/surveys/{slug_of(survey)}/submissions"
    return person.post(path, json={"submission": submission, **proof})


def _count(person: TestClient, survey: dict[str, Any]) -> int:
    return int(person.get(f"/api/v1/surveys/{survey['id']}").json()["submissions"])


def _tokens(asker: TestClient, survey: dict[str, Any], count: int) -> list[str]:
    made = asker.post(f"/api/v1/surveys/{survey['id']}/tokens", json={"count": count})
    assert made.status_code == 201
    return [link.partition("#")[2] for link in made.json()["items"]]


def _request(person: TestClient, survey: dict[str, Any]) -> Blinded:
    key = person.get(f"/api/v1/surveys/{slug_of(survey)}/page").json()["key"]
    found = BlindPublicKey(int(key["modulus"], 16), int(key["exponent"], 16))
    assert found.fingerprint == key["fingerprint"]
    return found.blind(b"a random message")


def _sign(person: TestClient, survey: dict[str, Any], token: str, blinded: bytes) -> Any:
    body = {"token": token, "blinded": blinded.hex()}
    return person.post(f"/api/v1/surveys/{slug_of(survey)}/tokens/sign", json=body)


def _proof(person: TestClient, survey: dict[str, Any], token: str) -> dict[str, str]:
    request = _request(person, survey)
    signed = _sign(person, survey, token, request.blinded)
    assert signed.status_code == 200, signed.text
    signature = request.finish(bytes.fromhex(signed.json()["signature"]))
    return {"message": request.message.hex(), "signature": signature.hex()}


def test_a_submission_counts_once_however_often_it_comes(
    asker: TestClient, nobody: TestClient, publish: Publish
) -> None:
    survey = publish()
    submission = _answer(survey)
    first = _send(nobody, survey, submission)
    assert (first.status_code, first.json()["state"]) == (201, "counted")
    assert "set-cookie" not in first.headers
    for _ in range(3):
        again = _send(nobody, survey, submission)
        assert (again.status_code, again.json()["state"]) == (200, "counted before")
    assert _send(nobody, survey, _answer(survey) | {"id": submission["id"]}).status_code == 200
    assert _count(asker, survey) == 1
    assert _send(nobody, survey, _answer(survey)).status_code == 201
    assert _count(asker, survey) == 2


def _changed(part: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda given: given | {part: value}


def _report(part: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda given: given | {"reports": [given["reports"][0] | {part: value}, *given["reports"][1:]]}


WRONG = [
    _changed("survey", "another"),
    _changed("fingerprint", "0" * 64),
    _changed("day", "2026-01-02"),
    _changed("day", "2026-01-02T10:00:00"),
    _changed("id", "short"),
    _changed("id", None),
    _changed("reports", "none"),
    _changed("schema", "cloister.submission/2"),
    _changed("time", "10:00"),
    _report("epsilon", "2"),
    _report("epsilon", 1),
    _report("protocol", "direct_encoding"),
    _report("version", 2),
    _report("version", True),
    _report("fingerprint", "0" * 64),
    _report("domain_hash", "0" * 64),
    _report("level", "plain"),
    _report("question", "other"),
    _report("y", "yes"),
    _report("y", 2),
    _report("y", -1),
    _report("y", None),
    _report("note", "I am Ada"),
    lambda given: given | {"reports": [given["reports"][0], given["reports"][0]]},
    lambda given: {key: value for key, value in given.items() if key != "day"},
    lambda given: {},
]


def test_whatever_the_devices_do_not_make_is_refused_and_not_kept(
    asker: TestClient, nobody: TestClient, publish: Publish
) -> None:
    survey = publish()
    submission = _answer(survey)
    for number, wrong in enumerate(WRONG):
        refused = _send(nobody, survey, wrong(submission))
        assert refused.status_code == 422, number
        assert "Ada" not in refused.text
    assert _count(asker, survey) == 0
    assert _send(nobody, survey, submission).status_code == 201


def test_what_is_no_answer_is_refused(nobody: TestClient, publish: Publish) -> None:
    path = f"/api/v1/surveys/{slug_of(publish())}/submissions"
    for body in ("", "[]", "null", "{", '{"submission": []}', '{"submission": {}, "more": 1}'):
        assert nobody.post(path, content=body, headers={"content-type": "application/json"}).status_code == 422


def test_what_is_too_long_is_refused(nobody: TestClient, publish: Publish) -> None:
    survey = publish()
    assert _send(nobody, survey, _answer(survey) | {"note": "x" * 2**20}).status_code == 413


def test_a_survey_that_is_not_open_takes_nothing(asker: TestClient, nobody: TestClient, publish: Publish) -> None:
    survey = publish()
    draft = asker.post("/api/v1/surveys", json={"document": DOCUMENT}).json()
    assert _send(nobody, draft, _answer(survey)).status_code == 409
    asker.post(f"/api/v1/surveys/{survey['id']}/close")
    assert _send(nobody, survey, _answer(survey)).status_code == 409
    assert nobody.post("/api/v1/surveys/unknown/submissions", json={"submission": {}}).status_code == 404


def test_a_survey_for_everybody_takes_no_invitations(asker: TestClient, nobody: TestClient, publish: Publish) -> None:
    survey = publish()
    assert asker.post(f"/api/v1/surveys/{survey['id']}/tokens", json={"count": 1}).status_code == 409
    assert _send(nobody, survey, _answer(survey), token="abc").status_code == 403
    assert _sign(nobody, survey, "abc", bytes(256)).status_code == 409


def test_a_link_is_for_one_answer(asker: TestClient, nobody: TestClient, publish: Publish) -> None:
    survey, other = publish(admission="links"), publish(admission="links")
    first, second = _tokens(asker, survey, 2)
    submission = _answer(survey)
    assert _send(nobody, survey, submission).status_code == 403
    assert _send(nobody, survey, submission, token="invented").status_code == 403
    assert _send(nobody, other, submission, token=first).status_code == 403
    assert _send(nobody, survey, submission, token=first).status_code == 201
    assert _send(nobody, survey, submission, token=first).json()["state"] == "counted before"
    reused = _send(nobody, survey, _answer(survey), token=first)
    assert reused.status_code == 403
    assert "used before" in reused.json()["problem"]
    assert _send(nobody, survey, _answer(survey), token=second.upper()).status_code == 201
    found = asker.get(f"/api/v1/surveys/{survey['id']}").json()
    assert (found["submissions"], found["invitations"]) == (2, {"made": 2, "used": 2})


def test_a_refused_answer_does_not_use_its_link_up(asker: TestClient, nobody: TestClient, publish: Publish) -> None:
    survey = publish(admission="links")
    (token,) = _tokens(asker, survey, 1)
    assert _send(nobody, survey, _answer(survey) | {"fingerprint": "0"}, token=token).status_code == 422
    assert _send(nobody, survey, _answer(survey), token=token).status_code == 201


def test_a_blind_signature_is_for_one_answer(asker: TestClient, nobody: TestClient, publish: Publish) -> None:
    survey = publish(admission="blind")
    first, second = _tokens(asker, survey, 2)
    proof = _proof(nobody, survey, first)
    submission = _answer(survey)
    assert _send(nobody, survey, submission).status_code == 403
    assert _send(nobody, survey, submission, token=second).status_code == 403
    assert _send(nobody, survey, submission, token=second, **proof).status_code == 403
    assert _send(nobody, survey, submission, message=proof["message"]).status_code == 403
    assert _send(nobody, survey, submission, **proof).status_code == 201
    assert _send(nobody, survey, submission, **proof).json()["state"] == "counted before"
    assert _send(nobody, survey, _answer(survey), **proof).status_code == 403
    assert _send(nobody, survey, _answer(survey), **_proof(nobody, survey, second)).status_code == 201
    assert _count(asker, survey) == 2


def test_forged_and_foreign_signatures_are_refused_alike(
    asker: TestClient, nobody: TestClient, publish: Publish
) -> None:
    survey, other = publish(admission="blind"), publish(admission="blind")
    proof = _proof(nobody, survey, _tokens(asker, survey, 1)[0])
    foreign = _proof(nobody, other, _tokens(asker, other, 1)[0])
    forged = [
        foreign,
        {"message": proof["message"], "signature": foreign["signature"]},
        {"message": foreign["message"], "signature": proof["signature"]},
        {"message": proof["message"] + "00", "signature": proof["signature"]},
        {"message": proof["message"], "signature": "00" * 256},
        {"message": proof["message"], "signature": "ff" * 256},
        {"message": proof["message"], "signature": "01"},
    ]
    answers = [_send(nobody, survey, _answer(survey), **one) for one in forged]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.text for answer in answers}) == 1
    assert _count(asker, survey) == 0
    assert _send(nobody, survey, _answer(survey), **proof).status_code == 201


def test_an_invitation_gives_one_signature_and_the_same_again(
    asker: TestClient, nobody: TestClient, publish: Publish
) -> None:
    survey, other = publish(admission="blind"), publish(admission="blind")
    (token,) = _tokens(asker, survey, 1)
    request = _request(nobody, survey)
    assert _sign(nobody, other, token, request.blinded).status_code == 403
    assert _sign(nobody, survey, "invented", request.blinded).status_code == 403
    assert _sign(nobody, survey, token, b"\x01").status_code == 422
    signed = _sign(nobody, survey, token, request.blinded)
    assert signed.status_code == 200
    assert _sign(nobody, survey, token, request.blinded).json() == signed.json()
    assert _sign(nobody, survey, token, _request(nobody, survey).blinded).status_code == 403
    request.finish(bytes.fromhex(signed.json()["signature"]))


def test_closing_deletes_whatever_could_connect_anything(
    asker: TestClient, nobody: TestClient, publish: Publish
) -> None:
    survey = publish(admission="blind")
    (token,) = _tokens(asker, survey, 1)
    assert _send(nobody, survey, _answer(survey), **_proof(nobody, survey, token)).status_code == 201
    closed = asker.post(f"/api/v1/surveys/{survey['id']}/close").json()
    assert (closed["state"], closed["submissions"]) == ("closed", 1)
    assert closed["invitations"] == {"made": 0, "used": 0}
    assert asker.post(f"/api/v1/surveys/{survey['id']}/tokens", json={"count": 1}).status_code == 409
    assert _sign(nobody, survey, token, bytes(256)).status_code == 409


def test_invitations_have_a_number(asker: TestClient, publish: Publish) -> None:
    path = f"/api/v1/surveys/{publish(admission='blind')['id']}/tokens"
    for count in (0, -1, 10_001, "many"):
        assert asker.post(path, json={"count": count}).status_code == 422


def test_somebody_who_is_signed_in_answers_like_everybody_else(asker: TestClient, publish: Publish) -> None:
    survey = publish()
    assert _send(asker, survey, _answer(survey)).status_code == 201


def test_the_order_is_forgotten_often() -> None:
    assert [count for count in range(1, 33) if is_turn(count, dialect="sqlite")] == [8, 16, 24, 32]
    turns = [count for count in range(1, 100_000) if is_turn(count, dialect="postgresql")]
    assert all(later <= earlier * 1.125 or later - earlier == 1 for earlier, later in pairwise(turns))
    assert len(turns) < 120


def test_made_up_people_are_counted_together_and_none_of_them_twice(
    asker: TestClient, publish: Publish, hub: Hub
) -> None:
    survey = publish()
    made = simulate(asked_in(survey), respondents=30, day=survey["opened"]).submissions
    with hub.store.writing() as session:
        submit_many(session, find_survey(session, survey["id"]), made[:20])
    assert _count(asker, survey) == 20
    for wrong in (made[10:], [*made[20:], made[20]]):
        with pytest.raises(ConflictError, match="the same id came twice"), hub.store.writing() as session:
            submit_many(session, find_survey(session, survey["id"]), wrong)
        assert _count(asker, survey) == 20
