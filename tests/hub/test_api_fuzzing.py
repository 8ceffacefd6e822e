"""Requests that nobody planned for, made from the hub's own description of its API, by people of several roles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from tests.hub.test_routes import listed
from tests.support.hub_access import YES
from tests.support.hub_world import (
    ADDRESS,
    HIDDEN_MARK,
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

pytestmark = pytest.mark.slow

EXAMPLES = examples(4, usual=2)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance]
MARKS = {ROW_MARK: frozenset(), HIDDEN_MARK: frozenset({OWNER}), NAME_MARK: frozenset({OWNER, REQUESTER})}
"""Words that may be told to these people only."""


@schemathesis.serializer("application/zip", "application/vnd.apache.parquet", "application/x-parquet", "text/csv")
def as_it_is(context: Any, value: Any) -> bytes:
    """Send an upload as the bytes that were made up."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with populated(tmp_path_factory.mktemp("world")) as made:
        yield made


def operations(world: World) -> Iterator[Any]:
    described = world.client(NOBODY).get("/api/v1/openapi.json").json()
    schema = schemathesis.openapi.from_dict(described)
    for found in schema.get_all_operations():
        yield found.ok()


def people(operation: Any) -> st.SearchStrategy[str]:
    """Return people to ask as: mostly those whom the door lets in, so that what is behind it is tried too."""
    row = next(row for door, row in listed().items() if (door.method.lower(), door.path) == _door(operation))
    inside = [who for who in (OWNER, REQUESTER, *STRANGERS) if row[who] == YES and who in row] or [OWNER]
    return st.sampled_from([*inside, *inside, *inside, NOBODY, STRANGERS[2]])


def _door(operation: Any) -> tuple[str, str]:
    return operation.method.lower(), operation.path


def send(world: World, case: Any, who: str, *, is_token: bool, are_real: bool) -> Any:
    """Send a generated request as somebody, about a thing that is there or not."""
    if are_real:
        for name in case.path_parameters or {}:
            if name in world.things:
                case.path_parameters[name] = world.things[name]
    client = world.client(NOBODY if is_token else who)
    headers = world.bearer(who) if is_token and who != NOBODY else {}
    prepared = requests.Request(**case.as_transport_kwargs(base_url=ADDRESS, headers=headers)).prepare()
    sent = {name: value for name, value in prepared.headers.items() if name.lower() not in ("cookie", "content-length")}
    return client.request(str(prepared.method), str(prepared.url), content=prepared.body, headers=sent)


def check(case: Any, answer: Any, who: str) -> None:
    """Raise if the answer is not as described, or tells what it must not."""
    case.validate_response(answer, checks=CHECKS)
    sent = str(case.as_curl_command()).lower()
    told = answer.text.lower()
    for mark, people in MARKS.items():
        is_error = answer.status_code >= 400
        assert mark not in told or mark in sent or (who in people and not is_error), (case.method, case.path, who)


def test_no_request_breaks_the_hub_or_makes_it_talk(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    tried = 0
    for operation in operations(world):

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(), people(operation), st.booleans(), st.sampled_from([True, True, True, False]))
        def attempt(case: Any, who: str, is_token: bool, are_real: bool) -> None:
            answer = send(world, case, who, is_token=is_token, are_real=are_real)
            check(case, answer, who)
            if case.method not in ("GET", "HEAD") and answer.status_code < 400:
                world.put_back()

        attempt()
        tried += 1
    assert tried > 80
    logged = "".join(capsys.readouterr()).lower()
    assert all(mark not in logged for mark in MARKS)
