"""What every page shares: the frame, the navigation of the person's roles, security headers, and error pages.

Pages only show. Whatever changes something is a call of the JSON API, made by ``static/forms.js`` with the proof
against cross-site requests; so there is one door for changes, and every page has a JSON twin. A page and its twin may
be made from one function, see `twin_page`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

import jinja2
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import StrictUndefined

from cloister import _version, errors
from cloister.hub.domain.actions import Action
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.domain.untrusted_input import local_path
from cloister.hub.gateway import GuardedRouter, identity
from cloister.hub.hub import Hub
from cloister.hub.web import display

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

TWINS: dict[str, str] = {}
"""The API path that shows the same as each page."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link to a page in the navigation.

    Attributes:
        place: where it stands among the others, the smallest first.
        text: what it says.
        roles: whose navigation it is in; empty for everybody who is signed in.
    """

    place: int
    text: str
    roles: tuple[AccountRole, ...] = ()


MENU: dict[str, MenuEntry] = {}
"""The pages of the navigation, by their path."""

_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("cloister.hub.web"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters.update(display.FILTERS)


def page(
    router: GuardedRouter, path: str, action: Action, *, twin: str, menu: MenuEntry | None = None
) -> Callable[[Any], Any]:
    """Return a decorator that adds a page, with the API path that gives the same as JSON."""
    TWINS[path] = twin
    if menu is not None:
        MENU[path] = menu
    return router.guarded("GET", path, action, response_class=HTMLResponse)


def twin_page(
    router: GuardedRouter,
    path: str,
    action: Action,
    *,
    template: str,
    title: str,
    tag: str,
    menu: MenuEntry | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator for a function that gives JSON-ready values: a page shows them, and the API returns them.

    Args:
        router: of the page.
        path: of the page, and below ``/api/v1`` of its twin.
        action: what both do.
        template: it gets the values as ``found``.
        title: of the page.
        tag: the group of the twin in the description of the API.
        menu: the link in the navigation, if there is one.
    """

    def add(find: Callable[..., Any]) -> Callable[..., Any]:
        def show(request: Request, **given: Any) -> Response:
            return render(request, template, title=title, found=find(**given), **request.path_params)

        # FastAPI reads what a page takes from its signature: the request, and whatever the function takes.
        taken = inspect.signature(find, eval_str=True).parameters.values()
        asked = inspect.Parameter("request", inspect.Parameter.KEYWORD_ONLY, annotation=Request)
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in taken]
        vars(show)["__signature__"] = inspect.Signature([asked, *keywords], return_annotation=Response)
        show.__doc__ = find.__doc__
        page(router, path, action, twin=path, menu=menu)(show)
        return twin_router().guarded("GET", path, action, tags=[tag])(find)

    return add


@cache
def twin_router() -> GuardedRouter:
    """Return the router of twins that were made with their pages; it belongs below ``/api/v1``."""
    return GuardedRouter()


def render(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page from a template and values."""
    access = getattr(request.state, "access", None)
    route = request.scope.get("route")
    twin = TWINS.get(getattr(route, "path", ""), "").format(**request.path_params)
    person = getattr(request.state, "reader", None) if access is None else access.subject
    frame = {
        "person": person,
        "menu": _menu_of(person),
        "twin": f"/api/v1{twin}" if twin else "",
        "path": request.url.path,
        "version": _version.__version__,
        "is_demo": request.app.state.hub.settings.demo,
    }
    return HTMLResponse(_templates.get_template(template).render(**frame, **values), status_code=status)


def _menu_of(person: AccessSubject | None) -> list[tuple[str, str]]:
    """Return the addresses and texts of the navigation of somebody."""
    roles = frozenset() if person is None else frozenset(person.roles)
    shown = [
        (entry.place, path, entry.text)
        for path, entry in MENU.items()
        if not entry.roles or roles.intersection(entry.roles)
    ]
    return [(path, text) for _, path, text in sorted(shown)]


def install(app: FastAPI) -> None:
    """Add the style and the modules of the pages, the security headers and the error page."""
    app.mount("/static", StaticFiles(packages=[("cloister.hub.web", "static")]), name="static")
    app.state.error_page = _error_page

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Callable[[Request], Any]) -> Response:
        response: Response = await call_next(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        if not request.url.path.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


def _reader(request: Request) -> AccessSubject | None:
    """Return who reads an error page, where the request was refused before it was known what it may do."""
    hub: Hub = request.app.state.hub
    try:
        with hub.store.reading() as session:
            found = identity.identify(session, request)
    except Exception:  # noqa: BLE001  # an error page never fails, whatever broke
        return None
    return None if found is None else found.subject


def _error_page(request: Request, status: int, problem: errors.CloisterError) -> Response:
    is_page = request.method == "GET" and not request.url.path.startswith("/api/")
    if is_page and isinstance(problem, errors.NotSignedInError) and "authorization" not in request.headers:
        wanted = local_path(f"{request.url.path}?{request.url.query}".rstrip("?"))
        return RedirectResponse(f"/login?next={quote(wanted, safe='/')}", status_code=303)
    request.state.reader = _reader(request)
    return render(request, "error.html", status=status, title="Something is in the way", problem=problem, code=status)
