"""Documents of the hub, byte for byte: what was written is written again, and what was refused stays refused.

Digests of policies are stored and compared, so that a document must never be written in another way. The corpus in
``tests/golden/hub`` was made by the first reader and writer of these documents, which checked each part by hand.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cloister.errors import CloisterError
from cloister.hub.domain.algorithms import Manifest
from cloister.hub.domain.policy_file import digest_policy, policy_from_dict, policy_to_dict
from cloister.hub.domain.requests import history_to_list, request_from_dict, request_to_dict
from tests.support.thoroughness import examples

CORPUS = json.loads((Path(__file__).parents[2] / "golden" / "hub" / "documents.json").read_text())


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


ODD: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "one": 1,
    "minus one": -1,
    "seven": 7,
    "huge": 10**400,
    "half": 0.5,
    "one as a float": 1.0,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "decimal": Decimal("0.5"),
    "fraction": Fraction(1, 3),
    "no text": "",
    "blank": " ",
    "a letter": "a",
    "a number in quotes": "1/3",
    "an exponent in quotes": "1e999999",
    "spaces around": " x ",
    "two lines": "a\nb",
    "10,000 letters": "x" * 10_000,
    "10,001 letters": "x" * 10_001,
    "half a character": "\ud800",
    "star": "*",
    "forbidden": "forbidden",
    "a purpose": "research.health",
    "a wildcard": "query.*",
    "a wildcard of what governs": "policy.*",
    "a moment": "2027-01-01T12:00:00+02:00",
    "a moment of zulu": "2027-01-01T12:00:00Z",
    "a moment without an offset": "2027-01-01T12:00:00",
    "the first moment": "0001-01-01T00:00:00+23:59",
    "a span over midnight": "22:00-06:00",
    "a day": date(2027, 1, 1),
    "bytes": b"a",
    "no items": [],
    "a list of null": [None],
    "a list of texts": ["b", "a", "b"],
    "a list of numbers": [1, 2],
    "a pair of truth values": [False, True],
    "a list of lists": [["a"]],
    "a list of objects": [{}],
    "a list of deny": [{"effect": "deny", "operations": ["*"]}],
    "a tuple": ("a", "b"),
    "a set": {"a"},
    "no fields": {},
    "unknown fields": {"surprise": 1},
    "an empty name": {"": 1},
    "a name that is a number": {1: ["a"]},
    "names with lists": {"b": ["y", "x"], "a": ["z"]},
    "a budget": {"epsilon": 0.1, "delta": "1/7"},
    "a budget in rho": {"rho": 1},
    "a budget without an amount": {"epsilon": None},
    "a budget of true": {"epsilon": True},
    "uses of null": {"uses": None},
    "uses and terms": {"uses": ["measure"], "terms": {"purposes": [], "retention_days": 0, "regions": []}},
    "a norm": {"l2": 0.5},
    "two norms": {"l1": 1, "l2": None},
    "deep": deep(50_000),
}
"""Values that are put in place of every part of a document, one at a time."""


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from places(part, (*path, name))


def changed(document: Any, path: tuple[str | int, ...], change: Callable[[Any, Any], object]) -> Any:
    """Return a document with one change, which shares all else with the original."""
    values = document.copy()
    if len(path) == 1:
        change(values, path[0])
    else:
        values[path[0]] = changed(values[path[0]], path[1:], change)
    return values


def variants(document: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield every document with one part replaced, removed or doubled, or with a field too many."""
    for path, part in places(document):
        where = "/".join(map(str, path))
        if isinstance(part, dict):
            yield (
                where,
                "one field more",
                changed(document, (*path, "surprise"), lambda place, key: place.update({key: None})),
            )
        if not path:
            yield from ((where, name, odd) for name, odd in ODD.items())
            continue
        for name, odd in ODD.items():
            yield where, name, changed(document, path, lambda place, key, odd=odd: place.__setitem__(key, odd))
        yield where, "removed", changed(document, path, lambda place, key: place.pop(key))
        if isinstance(path[-1], int):
            yield where, "doubled", changed(document, path, lambda place, key: place.append(place[key]))


def write_policy(values: Any) -> str:
    return json.dumps(policy_to_dict(policy_from_dict(values)))


def write_manifest(values: Any) -> str:
    return json.dumps(Manifest.from_dict(values).to_dict())


def write_request(values: Any) -> str:
    parts = {name: values[name] for name in ("request_id", "requester", "state")}
    request = request_from_dict(values["document"], values["history"], **parts)
    assert {name: str(getattr(request, name)) for name in parts} == parts
    return json.dumps({**parts, "document": request_to_dict(request), "history": history_to_list(request)})


WRITERS: dict[str, Callable[[Any], str]] = {
    "policy": write_policy,
    "manifest": write_manifest,
    "request": write_request,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_documents_are_written_as_they_always_were(kind: str) -> None:
    assert CORPUS["written"][kind]
    for case in CORPUS["written"][kind]:
        assert WRITERS[kind](json.loads(case["read"])) == case["written"]


def test_the_digests_of_policies_stay() -> None:
    for case in CORPUS["written"]["policy"]:
        assert digest_policy(policy_from_dict(json.loads(case["read"]))) == case["digest"]


def attempt(kind: str, values: Any) -> str | CloisterError:
    """Return the digest of what is written, or the refusal; anything else that is raised is a bug."""
    try:
        return hashlib.sha256(WRITERS[kind](values).encode()).hexdigest()[:16]
    except CloisterError as error:
        return error


EVERY = 3 // examples(3, usual=1)
"""Each variant, or each third one, which are still all values, and some at each part."""
REFUSED_SINCE = {("highest_risk", "not a number"), ("highest_risk", "infinity")}
"""A limit that no score passes is none, and what is no JSON has no digest."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["policy", "manifest"])
def test_odd_parts_are_taken_or_refused_as_they_always_were(kind: str) -> None:
    for case in CORPUS["variants"][kind]:
        for where, name, values in itertools.islice(variants(json.loads(case["document"])), None, None, EVERY):
            found = attempt(kind, values)
            before = case["accepted"].get(where, {}).get(name)
            if isinstance(found, CloisterError):
                assert before is None or (where.rpartition("/")[2], name) in REFUSED_SINCE, (where, name, found.problem)
                assert found.problem.endswith((".", "?"))
                assert found.fix.endswith(".")
                assert "pydantic" not in str(found)
            else:
                assert found == before, (where, name)
