"""Routes that name their action, and the guard that runs before each of them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from cloister.errors import ErrorMarker, ForbiddenError, HubError, NotSignedInError
from cloister.hub.domain.actions import HEALTH, Action
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.gateway import identity
from cloister.hub.hub import Hub
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.authorization import Access, authorize, check_factor
from cloister.hub.use_cases.sessions import SignedIn, touch_login

Route = TypeVar("Route", bound=Callable[..., Any])

_PARTS = re.compile(r"\{(\w+)(?::\w+)?\}")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Problem(BaseModel):
    """What is wrong, and what to do about it: the shape of every error."""

    model_config = ConfigDict(extra="allow")

    version: ErrorMarker = Field(alias="schema")
    error: str = Field(description="The kind of error, for programs.")
    problem: str = Field(description="What is wrong, in a sentence.")
    fix: str = Field(description="What to do about it.")


def _problems(description: str) -> dict[str, Any]:
    """Return how an error is described, whatever else the route answers with."""
    schema = Problem.model_json_schema(by_alias=True)
    return {"description": description, "content": {"application/json": {"schema": schema}}}


PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": _problems("Refused: what is wrong, and what to do about it."),
    "5XX": _problems("The hub cannot do this now."),
}


class GuardedRouter(APIRouter):
    """A router whose routes cannot exist without an action; a target's id is the path's ``{<kind>_id}``."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route with its guard."""
        extra = options.get("openapi_extra") or {}
        action = options.pop("action", None) or getattr(endpoint, "__action__", None)
        if not isinstance(action, Action):
            raise TypeError(f"the route {path} has no action")
        if action.target is not None and f"{{{action.target}_id}}" not in path:
            raise TypeError(f"the route {path} does not say which {action.target} it is about")
        guard = _open_guard(action) if action is HEALTH else _guard(action)
        options["dependencies"] = [Depends(guard), *(options.get("dependencies") or ())]
        options["responses"] = {**PROBLEMS, **(options.get("responses") or {})}
        options["openapi_extra"] = {**extra, **_describe_undeclared(path, endpoint), "x-cloister-action": action.name}
        super().add_api_route(path, endpoint, **options)

    def guarded(self, method: str, path: str, action: Action, **options: Any) -> Callable[[Route], Route]:
        """Return a decorator that adds a route for one method."""

        def add(endpoint: Route) -> Route:
            self.add_api_route(path, endpoint, methods=[method], action=action, **options)
            return endpoint

        return add


def load_routers(package: str, places: Iterable[str]) -> list[GuardedRouter]:
    """Return the routers of all modules of a package, which is found at these places, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(places))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    return [value for module in modules for value in vars(module).values() if isinstance(value, GuardedRouter)]


def _describe_undeclared(path: str, endpoint: Callable[..., Any]) -> dict[str, Any]:
    """Return the parts of a path that only the guard reads, as the description of the API needs them."""
    names = [name for name in _PARTS.findall(path) if name not in inspect.signature(endpoint).parameters]
    described = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    return {"parameters": described} if described else {}


def _guard(action: Action) -> Callable[[Request], None]:
    def check(request: Request) -> None:
        hub: Hub = request.app.state.hub
        target_id = None if action.target is None else str(request.path_params[f"{action.target}_id"])
        with hub.store.reading() as session:
            signed_in: SignedIn | None = None
            subject: AccessSubject | None = None
            refusal: HubError | None = None
            try:
                # Asked of strangers, too: signing in is a change that a page of another site could bring about.
                if request.method not in SAFE_METHODS:
                    identity.check_origin(request)
                signed_in = identity.identify(session, request)
                subject = None if signed_in is None else signed_in.subject
                if signed_in is not None and hub.settings.owner_second_factor:
                    check_factor(action, signed_in)
                access = authorize(session, action, subject=subject, target_id=target_id)
                if signed_in is not None and request.method not in SAFE_METHODS:
                    identity.check_proof(request, signed_in)
            except HubError as error:
                refusal = error
        # Written down in a transaction of its own, after the reading one, and before the request fails.
        if refusal is not None:
            audit_log.record_refusal(hub.store, action, subject=subject, target_id=target_id, problem=refusal)
            raise refusal
        if action.is_audited:
            audit_log.record_access(hub.store, access)
        if signed_in is not None and signed_in.login_id is not None and signed_in.is_due:
            with hub.store.writing() as session:
                touch_login(session, signed_in.login_id)
        request.state.access = access
        request.state.signed_in = signed_in

    return check


def _open_guard(action: Action) -> Callable[[Request], Awaitable[None]]:
    """Return a guard of what everybody may do: without a token there is nothing to look up, and no thread is needed."""
    guard = _guard(action)

    async def check(request: Request) -> None:
        if "authorization" in request.headers:
            await run_in_threadpool(guard, request)

    return check


async def _current_access(request: Request) -> Access:
    access: Access | None = getattr(request.state, "access", None)
    if access is None:
        raise ForbiddenError("This request was not authorized.", fix="report this as a bug.")
    return access


async def _current_sign_in(request: Request) -> SignedIn:
    signed_in: SignedIn | None = getattr(request.state, "signed_in", None)
    if signed_in is None:
        raise NotSignedInError("Nobody is signed in.", fix="sign in first.")
    return signed_in


async def _current_hub(request: Request) -> Hub:
    hub: Hub = request.app.state.hub
    return hub


CurrentAccess = Annotated[Access, Depends(_current_access)]
CurrentHub = Annotated[Hub, Depends(_current_hub)]
CurrentSignIn = Annotated[SignedIn, Depends(_current_sign_in)]
