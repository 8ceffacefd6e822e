"""Who may do what at a hub, found out by asking every route as everybody; ``python -m`` writes the page of the docs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from cloister.hub import web
from cloister.hub.domain.actions import Action, all_actions
from cloister.hub.gateway.guard import SAFE_METHODS
from cloister.hub.use_cases.surveys.browser_code import ENTRY, code_hash
from tests.support.hub_world import (
    AUTHOR,
    COUNT,
    MEMBER,
    NOBODY,
    OWNER,
    PROVIDER,
    REQUESTER,
    STRANGERS,
    World,
    populated,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "hub-access.md"
COLUMNS = (NOBODY, *STRANGERS, MEMBER, REQUESTER, OWNER)
YES, SIGN_IN, NO, HIDDEN = "yes", "sign in", "no", "hidden"
_SHORT = {YES: "**yes**", SIGN_IN: "sign in", NO: "no", HIDDEN: "hidden"}

BODIES = {"/datasets/{dataset_id}/services/{name}/": COUNT}
"""What is sent to routes that decide about the body too, by a part of their path; to all others {}."""
UNCONFIGURED = "/oidc/{provider}/"
"""Routes that find nothing on a hub without other sign-in services: let in is who is not refused at the door."""

_INTRODUCTION = """# Who may do what at a hub

This page is written by a test that asks every route of a hub as everybody, and fails when an answer changes
(`python -m tests.support.hub_access` writes it anew). A route that is not here does not exist.

Everybody is a stranger to the object in question, a dataset, job, survey or account of another institution, except in
the last three columns. *Member* works where the object belongs to, without being a data owner; *requester* asked for
the job or the access, wrote the survey or provided the algorithm, and is in the dataset's policy; *owner* is a data
owner of the institution.

**yes**: the request is let in. *no*: refused, with the reason. *hidden*: answered as if there were no such thing.
*sign in*: refused, because nobody is signed in. What is let in can still be refused for what it says: a query without
budget, a form with mistakes.

Every change needs more than an account: the proof that the hub's own page sent it, no page of another site as its
origin, and, for programs, a token made for that action. The same test tries each change without.
"""


@dataclass(frozen=True, slots=True)
class Door:
    """One route and method of a hub."""

    method: str
    path: str
    action: str

    @property
    def is_safe(self) -> bool:
        """Return whether it only reads."""
        return self.method in SAFE_METHODS

    @property
    def is_page(self) -> bool:
        """Return whether it is for people rather than for programs."""
        return not self.path.startswith("/api/")

    @property
    def definition(self) -> Action | None:
        """Return the action that the route names."""
        web.routers()  # a page may define its action beside itself
        return next((action for action in all_actions() if action.name == self.action), None)


def doors(app: FastAPI) -> list[Door]:
    """Return every route of an application with each of its methods, and the folders that it serves."""
    found: list[Door] = []
    for route in _routes(app):
        extra = getattr(route, "openapi_extra", None) or {}
        if getattr(route, "methods", None):
            action = str(extra.get("x-cloister-action", "none"))
            found.extend(Door(method, str(route.path), action) for method in sorted(route.methods))
        else:
            found.append(Door("GET", f"{route.path}/{{file}}", "served folder"))
    return sorted(found, key=lambda door: (door.is_page, door.path, door.method))


def _routes(app: FastAPI) -> Iterator[Any]:
    try:
        from fastapi.routing import iter_route_contexts
    except ImportError:
        return iter(app.routes)
    return iter(iter_route_contexts(app.routes))


Heard = Callable[[Door, str, httpx2.Response], None]
"""Looks at each answer: the door, who asked, and what came back."""


def check_whole(door: Door, who: str, answer: httpx2.Response) -> None:
    """Raise if the hub broke at a request."""
    if answer.status_code >= 500:
        raise AssertionError(f"{door.method} {door.path} as {who}: {answer.status_code} {answer.text[:300]}")


def table(world: World, *, heard: Heard = check_whole) -> dict[Door, dict[str, str]]:
    """Return the answer of every door to everybody."""
    return {door: {who: decision(world, door, who, heard=heard) for who in COLUMNS} for door in doors(world.app)}


def decision(world: World, door: Door, who: str, *, heard: Heard = check_whole) -> str:
    """Ask as somebody, and return what was decided."""
    answer = ask(world, door, who)
    heard(door, who, answer)
    if UNCONFIGURED in door.path and answer.status_code == 404:
        return YES
    if answer.status_code == 303 and answer.headers["location"].startswith("/login"):
        return SIGN_IN
    return {401: SIGN_IN, 403: NO, 404: HIDDEN}.get(answer.status_code, YES)


def ask(
    world: World, door: Door, who: str, *, client: TestClient | None = None, headers: dict[str, str] | None = None
) -> httpx2.Response:
    """Send a request to a door, and put everything back if it changed something."""
    person = who if who != REQUESTER else requester(door)
    sender = client or world.client(person)
    body = next((body for part, body in BODIES.items() if part in door.path), {})
    sent: dict[str, Any] = {} if door.is_safe else {"json": body}
    answer = sender.request(door.method, address(world, door), headers=headers, **sent)
    if not door.is_safe and answer.status_code < 400:
        world.put_back()
    return answer


def requester(door: Door) -> str:
    """Return who asked for, wrote or provided what a door is about."""
    made = {"{survey_id}": AUTHOR, "{algorithm_id}": PROVIDER}
    return next((who for part, who in made.items() if part in door.path), REQUESTER)


def address(world: World, door: Door) -> str:
    """Return the path of a door with the world's things in it."""
    things = {
        "name": "query.sql",
        "provider": "nowhere",
        "code_hash": code_hash(),
        "file": "style.css",
        **world.things,
    }
    if "{synthetic_id}" in door.path:
        things["name"] = "synthetic.csv"
    if "{job_id}" in door.path:
        things |= _job(world, door)
    if door.path.endswith("/confirmation"):
        things["account_id"] = world.things["joining_id"]
    if door.path.endswith("/reset-confirmation"):
        things["account_id"] = world.things["locked_out_id"]
    if "/algorithms/{name}" in door.path:
        things["name"] = "k-means"
    if "{code_hash}" in door.path:
        things["name"] = ENTRY
    return re.sub(r"\{(\w+)(?::path)?\}", lambda match: things[match[1]], door.path)


def _job(world: World, door: Door) -> dict[str, str]:
    """Return a job for which there is what the door is about."""
    kinds = {"decision": "waiting", "cancel": "queued", "report": "released", "owner-report": "released"}
    kind = kinds.get(door.path.rpartition("/")[2])
    return {"name": "answer.csv"} if kind is None else {"job_id": world.things[f"{kind}_job_id"]}


def written(found: dict[Door, dict[str, str]]) -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for title, is_page in (("The API", False), ("Pages", True)):
        head = ["method", "path", "action", *(who.removeprefix("stranger ") for who in COLUMNS)]
        lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
        for door, row in found.items():
            if door.is_page == is_page:
                cells = [door.method, f"`{door.path}`", door.action, *(_SHORT[row[who]] for who in COLUMNS)]
                lines.append(f"| {' | '.join(cells)} |")
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder, populated(Path(folder)) as world:
        PAGE.write_text(written(table(world)), "utf-8")


if __name__ == "__main__":
    main()
