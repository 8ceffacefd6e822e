"""What the database really holds: its rows, its bytes on disk, its log."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from fastapi.testclient import TestClient

from cloister.crypto.blind_signatures import BlindPublicKey
from cloister.hub.app import create_app
from cloister.hub.domain.roles import AccountRole
from cloister.hub.hub import Hub
from cloister.hub.store import arrival_order
from cloister.hub.store.arrival_order import TABLES, forget_order
from cloister.hub.use_cases.surveys import submissions
from tests.hub.conftest import add_user, on_databases, sign_in
from tests.hub.use_cases.surveys.conftest import DOCUMENT, MOMENT, asked_in, raw_bytes, raw_rows, slug_of

AGENT = "Phone-of-Ada/17.3"
ADDRESS = "203.0.113.77"
TRUE_SLEEP = "7.34521"
PEOPLE = 12


class Scene:
    """A survey of one admission that some people have answered, and all that was secret or telling about them."""

    def __init__(self, hub: Hub, admission: str, people: int = PEOPLE) -> None:
        self.hub = hub
        app = create_app(hub)
        self.asker = TestClient(app, base_url="http://127.0.0.1:8080")
        sign_in(hub, self.asker, add_user(hub, "ada", AccountRole.DATA_USER))
        made = self._ask("POST", "", {"document": DOCUMENT, "admission": admission})
        self.survey = self._ask("POST", f"/{made['id']}/publish")
        self.tokens = [""] * people
        if admission != "everybody":
            links = self._ask("POST", f"/{made['id']}/tokens", {"count": people})["items"]
            self.tokens = [link.partition("#")[2] for link in links]
        self.before = raw_rows(hub)
        self.before_bytes = raw_bytes(hub)
        headers = {"user-agent": AGENT, "x-forwarded-for": ADDRESS, "forwarded": f"for={ADDRESS}"}
        self.arrivals: list[set[str]] = []
        with TestClient(app, base_url="http://127.0.0.1:8080", headers=headers) as phone:
            self.submissions = [self._answer(phone, admission, token) for token in self.tokens]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        found = self.asker.request(method, f"/api/v1/surveys{path}", json=body)
        assert found.status_code in (200, 201), found.text
        return found.json()

    def _answer(self, phone: TestClient, admission: str, token: str) -> dict[str, Any]:
        path = f"/api/v1/surveys/{slug_of(self.survey)}"
        answers = {"smoke": "yes", "job": "Teaching", "way": ["Car"], "sleep": TRUE_SLEEP}
        body: dict[str, Any] = {
            "submission": asked_in(self.survey).answer(answers, day=self.survey["opened"]).to_dict()
        }
        if admission == "links":
            body["token"] = token
        if admission == "blind":
            facts = phone.get(f"{path}/page").json()["key"]
            request = BlindPublicKey(int(facts["modulus"], 16), int(facts["exponent"], 16)).blind(b"message")
            signed = phone.post(f"{path}/tokens/sign", json={"token": token, "blinded": request.blinded.hex()}).json()
            signature = request.finish(bytes.fromhex(signed["signature"]))
            body |= {"message": request.message.hex(), "signature": signature.hex(), "blinded": request.blinded.hex()}
        sent = phone.post(f"{path}/submissions", json={key: body[key] for key in body if key != "blinded"})
        assert sent.status_code == 201, sent.text
        known = {key for keys in self.arrivals for key in keys}
        self.arrivals.append(self._keys() - known)
        return body | {"token": token}

    def _keys(self) -> set[str]:
        with self.hub.store.engine.connect() as connection:
            return {key for (key,) in connection.exec_driver_sql("SELECT key FROM survey_reports")}

    @property
    def secrets(self) -> list[str]:
        """Return what must not be found anywhere."""
        found = [AGENT, ADDRESS, TRUE_SLEEP]
        for body in self.submissions:
            found.append(body["submission"]["id"])
            if body["token"]:
                found += [body["token"], hashlib.sha256(body["token"].encode()).hexdigest()]
            found += [body[name] for name in ("message", "signature", "blinded") if name in body]
        return found


@pytest.mark.parametrize(
    ("any_hub", "admission"), on_databases(["everybody", "links", "blind"], postgres=["blind"]), indirect=["any_hub"]
)
def test_nothing_of_a_person_is_in_the_database(any_hub: Hub, admission: str) -> None:
    scene = Scene(any_hub, admission)
    for _ in range(2):
        content = raw_bytes(any_hub)
        for secret in scene.secrets:
            assert secret.encode() not in content
            assert bytes.fromhex(secret) not in content if re.fullmatch(r"(?:[0-9a-f]{2}){16,}", secret) else True
        assert set(MOMENT.findall(content)) <= set(MOMENT.findall(scene.before_bytes))
        forget_order(any_hub.store)
    after = raw_rows(any_hub)
    changed = {name for name in after if after[name] != scene.before[name]}
    pairs = zip(scene.before["surveys"][0], after["surveys"][0], strict=True)
    assert [pair for pair in pairs if pair[0] != pair[1]] == [(0, PEOPLE)], "of the survey, only the count changes"
    expected = {"survey_reports", "survey_used_ids", "surveys"}
    expected |= {"links": {"survey_invitations"}, "blind": {"survey_invitations", "survey_signatures"}}.get(
        admission, set()
    )
    assert changed == expected
    _check_rows(after, scene)


def _check_rows(after: dict[str, list[tuple[Any, ...]]], scene: Scene) -> None:
    survey_id = scene.survey["id"]
    sent = [report for body in scene.submissions for report in body["submission"]["reports"]]
    assert len(after["survey_reports"]) == len(sent) == 4 * PEOPLE
    places = {(report["question"], report["level"], json.dumps(report["y"], separators=(",", ":"))) for report in sent}
    for survey, key, question, level, value in after["survey_reports"]:
        assert survey == survey_id
        assert re.fullmatch("[0-9a-f]{32}", key)
        assert (question, level, value) in places
    for name in ("survey_used_ids", "survey_signatures"):
        for survey, digest in after[name]:
            assert survey == survey_id
            assert re.fullmatch("[0-9a-f]{64}", digest)
    columns = [set(map(str, column)) for column in zip(*after["survey_reports"], strict=True)]
    digests = {digest for _, digest in after["survey_used_ids"] + after["survey_signatures"]}
    digests |= {digest for _, digest, *_ in after["survey_invitations"]}
    assert not any(column & digests for column in columns)


def test_sqlite_keeps_no_order_of_arrival_and_no_log(hub: Hub) -> None:
    scene = Scene(hub, "links")
    forget_order(hub.store)
    folder = hub.settings.folder
    assert (folder / "hub.db-wal").stat().st_size == 0
    with sqlite3.connect(folder / "hub.db") as connection:
        for name in TABLES:
            with pytest.raises(sqlite3.OperationalError, match="no such column: rowid"):
                connection.execute(f"SELECT rowid FROM {name}")
        keys = [key for (key,) in connection.execute("SELECT key FROM survey_reports NOT INDEXED")]
    connection.close()
    assert keys == sorted(keys)
    assert len(keys) == 4 * PEOPLE
    assert scene.submissions


def _in_file_order(hub: Hub, keys: set[str]) -> list[list[str]]:
    """Return some keys page by page, as their cells lie in the file; each of them is there once."""
    content = (hub.settings.folder / "hub.db").read_bytes()
    size = int.from_bytes(content[16:18], "big") or 65536
    places = sorted((found.start(), key) for key in keys for found in re.finditer(key.encode(), content))
    pages: dict[int, list[str]] = {}
    for place, key in places:
        pages.setdefault(place // size, []).append(key)
    found = [key for page in pages.values() for key in page]
    assert sorted(found) == sorted(keys)
    return list(pages.values())


def _guesses_right(pages: list[list[str]], people: list[set[str]]) -> float:
    """Return how often "these two reports, which lie side by side, are one person's" is right."""
    pairs = [pair for page in pages for pair in pairwise(page)]
    return sum(any(keys >= set(pair) for keys in people) for pair in pairs) / len(pairs)


def _digests(hub: Hub) -> dict[str, set[str]]:
    names = ("survey_used_ids", "survey_signatures", "survey_invitations")
    return {name: {str(row[1]) for row in raw_rows(hub)[name]} for name in names}


def test_the_cells_of_the_file_show_neither_order_nor_who_sent_what(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "is_turn", lambda count, **_: False)
    scene = Scene(hub, "blind", people=8)
    keys = {key for keys in scene.arrivals for key in keys}
    with sqlite3.connect(hub.settings.folder / "hub.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    assert _guesses_right(_in_file_order(hub, keys), scene.arrivals) > 0.5, "the attack works on what is not rewritten"
    before = raw_rows(hub)
    forget_order(hub.store)
    assert raw_rows(hub) == before
    assert (hub.settings.folder / "hub.db-wal").stat().st_size == 0
    for found in (keys, *_digests(hub).values()):
        for page in _in_file_order(hub, found):
            assert page == sorted(page, reverse=True), "cells lie from the end of a page, in the order of their keys"
    assert _guesses_right(_in_file_order(hub, keys), scene.arrivals) < 0.5


def test_closing_forgets_the_order_of_what_stays(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "is_turn", lambda count, **_: False)
    scene = Scene(hub, "links")
    assert scene.asker.post(f"/api/v1/surveys/{scene.survey['id']}/close").status_code == 200
    assert (hub.settings.folder / "hub.db-wal").stat().st_size == 0
    pages = _in_file_order(hub, {key for keys in scene.arrivals for key in keys})
    assert all(page == sorted(page, reverse=True) for page in pages)


def test_many_reports_are_put_in_order_part_by_part(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival_order, "AT_ONCE", 7)
    monkeypatch.setattr(submissions, "is_turn", lambda count, **_: False)
    scene = Scene(hub, "everybody", people=8)
    before = raw_rows(hub)
    forget_order(hub.store, survey_id=scene.survey["id"])
    assert raw_rows(hub) == before
    pages = _in_file_order(hub, {key for keys in scene.arrivals for key in keys})
    assert _guesses_right(pages, scene.arrivals) < 0.5


def test_a_closed_survey_leaves_no_trace_of_invitations_in_the_file(hub: Hub) -> None:
    scene = Scene(hub, "blind")
    gone = {
        row[1] for name in ("survey_used_ids", "survey_signatures", "survey_invitations") for row in raw_rows(hub)[name]
    }
    gone |= {row[3] for row in raw_rows(hub)["survey_invitations"]}
    assert len(gone) == 4 * PEOPLE
    with hub.store.engine.connect() as connection:
        sealed = connection.exec_driver_sql("SELECT signing_key FROM surveys").scalar()
    forget_order(hub.store)
    assert bytes(sealed) in raw_bytes(hub)
    assert all(digest.encode() in raw_bytes(hub) for digest in gone)
    assert scene.asker.post(f"/api/v1/surveys/{scene.survey['id']}/close").status_code == 200
    content = raw_bytes(hub)
    assert not any(digest.encode() in content for digest in gone)
    assert bytes(sealed)[:64] not in content
    assert len(raw_rows(hub)["survey_reports"]) == 4 * PEOPLE


@pytest.mark.slow
def test_answers_that_come_while_the_order_is_forgotten_are_all_counted(any_hub: Hub) -> None:
    scene = Scene(any_hub, "everybody")
    app, people, threads = create_app(any_hub), 15, 4

    def answer_many() -> list[int]:
        with TestClient(app, base_url="http://127.0.0.1:8080") as phone:
            path = f"/api/v1/surveys/{slug_of(scene.survey)}/submissions"
            made = [
                asked_in(scene.survey).answer({"smoke": "no"}, day=scene.survey["opened"]).to_dict()
                for _ in range(people)
            ]
            return [phone.post(path, json={"submission": one}).status_code for one in made]

    with ThreadPoolExecutor(threads + 1) as pool:
        running = [pool.submit(answer_many) for _ in range(threads)]
        while not all(one.done() for one in running):
            forget_order(any_hub.store)
        assert [status for one in running for status in one.result()] == [201] * people * threads
    found = scene.asker.get(f"/api/v1/surveys/{scene.survey['id']}").json()
    assert found["submissions"] == PEOPLE + people * threads


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.parametrize("any_hub", ["postgres"], indirect=True)
def test_postgresql_is_written_anew_in_the_order_of_random_keys(any_hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "is_turn", lambda count, **_: False)
    scene = Scene(any_hub, "blind")
    assert _guesses_right([_by_place(any_hub)], scene.arrivals) > 0.5, "the attack works on what is not rewritten"
    with any_hub.store.engine.connect() as connection:
        marks = connection.exec_driver_sql("SELECT COUNT(DISTINCT xmin::text) FROM survey_reports").scalar()
    assert marks is not None
    assert marks > 1
    before = raw_rows(any_hub)
    forget_order(any_hub.store)
    assert raw_rows(any_hub) == before
    with any_hub.store.engine.connect() as connection:
        for name, key in TABLES.items():
            assert connection.exec_driver_sql(f"SELECT COUNT(DISTINCT xmin::text) FROM {name}").scalar() == 1
            assert connection.exec_driver_sql(f"SELECT COUNT(DISTINCT cmin::text) FROM {name}").scalar() == 1
            in_file = [tuple(row) for row in connection.exec_driver_sql(f"SELECT {key} FROM {name} ORDER BY ctid")]
            sorted_ = [tuple(row) for row in connection.exec_driver_sql(f"SELECT {key} FROM {name} ORDER BY {key}")]
            assert in_file == sorted_
    assert _guesses_right([_by_place(any_hub)], scene.arrivals) < 0.5


def _by_place(hub: Hub) -> list[str]:
    with hub.store.engine.connect() as connection:
        return [key for (key,) in connection.exec_driver_sql("SELECT key FROM survey_reports ORDER BY ctid")]
