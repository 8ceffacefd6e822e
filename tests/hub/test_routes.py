"""Every door of the hub, tried by everybody; `docs/reference/hub-access.md` is the table of what must come out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import httpx2
import pytest

from cloister.hub.domain import actions
from cloister.hub.gateway import GuardedRouter, guard
from cloister.hub.gateway.identity import CSRF_HEADER
from cloister.hub.use_cases import authorization
from tests.support.hub_access import (
    COLUMNS,
    HIDDEN,
    NO,
    PAGE,
    YES,
    Door,
    address,
    ask,
    check_whole,
    decision,
    doors,
    requester,
    table,
    written,
)
from tests.support.hub_world import (
    ADDRESS,
    HIDDEN_MARK,
    MEMBER,
    NAME_MARK,
    NOBODY,
    OWNER,
    REQUESTER,
    ROW_MARK,
    STRANGERS,
    World,
    populated,
)
from tests.support.thoroughness import examples

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
MOST_METHODS = examples(len(METHODS), usual=3)
LISTED = re.compile(
    r"^\| (?P<method>[A-Z]+) \| `(?P<path>[^`]+)` \| (?P<action>[\w. ]+) \| (?P<cells>.*) \|$", re.MULTILINE
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with populated(tmp_path_factory.mktemp("world")) as made:
        yield made


@cache
def listed() -> dict[Door, dict[str, str]]:
    """Return the table of the page."""
    found = {}
    for row in LISTED.finditer(PAGE.read_text("utf-8")):
        cells = [cell.strip("* ") for cell in row["cells"].split("|")]
        found[Door(row["method"], row["path"], row["action"])] = dict(zip(COLUMNS, cells, strict=True))
    return found


def unsafe(world: World) -> list[Door]:
    return [door for door in doors(world.app) if not door.is_safe]


def allowed(door: Door) -> str:
    """Return somebody whom a door lets in, the owner if possible."""
    row = listed()[door]
    found = next(who for who in (OWNER, *COLUMNS) if row[who] == YES and who != NOBODY)
    return requester(door) if found == REQUESTER else found


def test_every_route_is_listed_and_nothing_else(world: World) -> None:
    assert set(doors(world.app)) == set(listed()), "python -m tests.support.hub_access writes the page anew"


def test_a_new_route_would_not_go_unnoticed(world: World) -> None:
    router = GuardedRouter()
    router.add_api_route("/extra", lambda: None, methods=["PUT"], action=actions.READ_PUBLIC)
    world.app.include_router(router)
    try:
        assert set(doors(world.app)) - set(listed()) == {Door("PUT", "/extra", "hub.read")}
    finally:
        world.app.router.routes.pop()


def test_every_door_names_a_known_action_and_lets_somebody_in() -> None:
    for door, row in listed().items():
        assert door.action == "served folder" or door.definition is not None
        assert YES in row.values(), door


def test_public_doors_are_those_of_public_actions() -> None:
    for door, row in listed().items():
        if door.definition is not None and door.path != "/":
            assert (row[NOBODY] == YES) == door.definition.is_public, door


def look(door: Door, who: str, answer: httpx2.Response) -> None:
    """Raise if somebody was told what they may not know."""
    check_whole(door, who, answer)
    told = answer.text.lower()
    assert ROW_MARK not in told, f"a row at {door} for {who}"
    if who != OWNER:
        assert HIDDEN_MARK not in told, f"a hidden column at {door} for {who}"
    if who not in (OWNER, REQUESTER):
        assert NAME_MARK not in told, f"a hidden dataset at {door} for {who}"


@pytest.mark.slow
def test_every_answer_is_as_listed_and_tells_nobody_too_much(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert written(table(world, heard=look)) == PAGE.read_text("utf-8")
    logged = "".join(capsys.readouterr()).lower()
    assert all(mark not in logged for mark in (ROW_MARK, HIDDEN_MARK, NAME_MARK))


@pytest.mark.slow
def test_what_strangers_ask_for_looks_the_same_whether_it_exists_or_not(world: World) -> None:
    """Ids of datasets, jobs, surveys and requests cannot be told from invented ones."""
    hidden = ("{dataset_id}", "{job_id}", "{synthetic_id}")
    asked = [door for door in doors(world.app) if any(part in door.path for part in hidden)]
    assert asked
    for door in asked:
        for who in (*STRANGERS, MEMBER):
            real = ask(world, door, who)
            path = re.sub(r"(ds|job|srv|req)_[a-z0-9]+", r"\1_" + "a" * 24, address(world, door))
            sent = {} if door.is_safe else {"json": {}}
            invented = world.client(who).request(door.method, path, **sent)
            assert (real.status_code, _plain(real)) == (invented.status_code, _plain(invented)), door
            assert real.status_code in (403, 404)


def _plain(answer: httpx2.Response) -> tuple[str, list[tuple[str, str]]]:
    body = re.sub(r"(ds|job|srv|req)_[a-z0-9]+", r"\1", answer.text)
    return body, sorted((name, value) for name, value in answer.headers.items() if name != "content-length")


@pytest.mark.slow
def test_changes_need_the_proof_of_the_hubs_own_page(world: World) -> None:
    for door in unsafe(world):
        if door.definition is not None and door.definition.is_public:
            continue
        client = world.client(allowed(door))
        del client.headers[CSRF_HEADER]
        for proof in ({}, {CSRF_HEADER: "wrong"}, {CSRF_HEADER: world.cookies[MEMBER][1]}):
            answer = ask(world, door, allowed(door), client=client, headers=proof)
            assert (answer.status_code, "on purpose" in answer.text) == (403, True), door


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
        {"origin": f"{ADDRESS}.elsewhere.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": ADDRESS},
    ],
)
def test_changes_from_other_sites_are_refused(world: World, headers: dict[str, str]) -> None:
    for door in unsafe(world):
        row = listed()[door]
        for who in (allowed(door), *((NOBODY,) if row[NOBODY] == YES else ())):
            answer = ask(world, door, who, headers=headers)
            assert (answer.status_code, "another site" in answer.text) == (403, True), door


@pytest.mark.slow
def test_wrong_tokens_are_refused_everywhere_and_small_ones_wherever_they_are_not_for(world: World) -> None:
    for door, row in listed().items():
        if door.definition is None:
            continue
        who = allowed(door)
        wrong = ask(world, door, who, headers={"authorization": "Bearer clst_wrong"})
        assert wrong.status_code == 401, door
        if door.definition.is_public:
            continue
        little = {"authorization": f"Bearer {world.secrets[f'{who}, little']}"}
        answer = ask(world, door, who, client=world.client(NOBODY), headers=little)
        is_for_it = door.action == "home.see"
        assert (answer.status_code == 403) != is_for_it, (door, row)


@pytest.mark.slow
def test_a_token_for_everything_opens_what_its_holder_may_open_and_no_more(world: World) -> None:
    for door, row in listed().items():
        if door.definition is None:
            continue
        for who in (REQUESTER, OWNER, STRANGERS[4]):
            if who == REQUESTER and requester(door) != who:
                continue
            answer = ask(world, door, who, client=world.client(NOBODY), headers=world.bearer(who))
            if door.definition.needs_sign_in:
                assert answer.status_code == 403, (door, who)
            else:
                expected = {NO: 403, HIDDEN: 404}.get(row[who])
                refused = answer.status_code if answer.status_code in (401, 403, 404) else None
                assert refused == expected or "{provider}" in door.path, (door, who, answer.text[:200])


@pytest.mark.slow
def test_methods_that_no_route_has_are_refused(world: World) -> None:
    by_path: dict[str, set[str]] = {}
    known = doors(world.app)
    for door in known:
        by_path.setdefault(address(world, door), set()).add(door.method)
    taken: dict[str, list[re.Pattern[str]]] = {}
    for door in known:
        taken.setdefault(door.method, []).append(_pattern(door))
    for place, (path, methods) in enumerate(by_path.items()):
        tried = [method for method in METHODS if method not in methods]
        # Some at each path, beginning with another one each time.
        first = place % len(tried)
        for method in (tried[first:] + tried[:first])[:MOST_METHODS]:
            if path.startswith("/static") and method == "HEAD":
                continue
            # Another route, such as /people/{account_id}, may take the path too.
            if any(pattern.fullmatch(path) for pattern in taken.get(method, ())):
                continue
            answer = world.client(OWNER).request(method, path)
            assert answer.status_code in (404, 405), (method, path)


def _pattern(door: Door) -> re.Pattern[str]:
    """Return which paths a door takes."""
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", re.sub(r"\{\w+:path\}", ".+", door.path)))


@pytest.mark.parametrize(
    ("name", "path", "who"),
    [
        ("_check_role", "/api/v1/audit", OWNER),
        ("_check_role", "/api/v1/people", STRANGERS[0]),
    ],
)
def test_a_hub_that_forgot_to_look_would_be_noticed(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, path: str, who: str
) -> None:
    door = next(door for door in doors(world.app) if door.path == path and door.is_safe)
    assert decision(world, door, who) == NO == listed()[door][who]
    monkeypatch.setattr(authorization, name, lambda action, subject: None)
    assert decision(world, door, who) == YES


def test_a_hub_that_forgot_the_proof_would_be_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    door = next(door for door in unsafe(world) if door.path == "/api/v1/notices/read")
    client = world.client(OWNER)
    del client.headers[CSRF_HEADER]
    assert ask(world, door, OWNER, client=client).status_code == 403
    monkeypatch.setattr(guard.identity, "check_proof", lambda request, signed_in: None)
    assert ask(world, door, OWNER, client=client).status_code == 204


def test_marked_words_would_be_noticed(world: World) -> None:
    door = next(door for door in doors(world.app) if door.path == "/api/v1/datasets/{dataset_id}" and door.is_safe)
    answer = ask(world, door, OWNER)
    assert HIDDEN_MARK in answer.text
    look(door, OWNER, answer)
    for who in (REQUESTER, MEMBER):
        with pytest.raises(AssertionError, match="hidden"):
            look(door, who, answer)
