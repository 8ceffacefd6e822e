"""How problems reach the person: one status for each kind of error, as JSON for programs and as a page for people."""

from __future__ import annotations

import contextlib
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from cloister import errors
from cloister.hub.logs import facts_of, logger
from cloister.hub.use_cases import audit_log, notices
from cloister.hub.use_cases.authorization import Access

STATUS: dict[type[Exception], int] = {
    errors.NotSignedInError: 401,
    errors.ForbiddenError: 403,
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.BudgetExceededError: 409,
    errors.AuditDamagedError: 409,
    errors.TooLargeError: 413,
    errors.TooManyRequestsError: 429,
    errors.LedgerUnreachableError: 503,
    errors.HubUnavailableError: 503,
    errors.InternalError: 500,
    errors.LedgerDamagedError: 500,
    errors.DecryptionError: 500,
    errors.MissingExtraError: 501,
    errors.SandboxUnavailableError: 501,
    errors.CloisterError: 422,
}

_REFUSALS = (errors.ForbiddenError, errors.BudgetExceededError)


def status_of(problem: Exception) -> int:
    """Return the HTTP status of an error; the nearest class in its ancestry decides."""
    return next((STATUS[cls] for cls in type(problem).__mro__ if cls in STATUS), 500)


def install(app: FastAPI) -> None:
    """Make every failure of an application speak with one voice."""
    app.add_exception_handler(errors.CloisterError, _handle_known)
    app.add_exception_handler(RequestValidationError, _handle_malformed)
    app.add_exception_handler(HTTPException, _handle_http)
    app.add_exception_handler(Exception, _handle_unknown)


def answer(request: Request, status: int, problem: errors.CloisterError) -> Response:
    """Return an error as JSON, or as a page where a browser asked for one, with when to come back if it is known."""
    response = _render_problem(request, status, problem)
    wait_seconds: int | None = getattr(problem, "wait_seconds", None)
    if wait_seconds is not None:
        response.headers["Retry-After"] = str(wait_seconds)
    return response


def _render_problem(request: Request, status: int, problem: errors.CloisterError) -> Response:
    page = getattr(request.app.state, "error_page", None)
    is_program = request.url.path.startswith("/api/") and not request.headers.get("accept", "").startswith("text/html")
    if page is not None and not is_program:
        response: Response = page(request, status, problem)
        return response
    return JSONResponse(problem.to_dict(), status_code=status, headers={"Cache-Control": "no-store"})


def _handle_known(request: Request, problem: Any) -> Response:  # a CloisterError
    _record(request, problem)
    if isinstance(problem, errors.DecryptionError):
        _record_damage(request)
    return answer(request, status_of(problem), problem)


def _record_damage(request: Request) -> None:
    access: Access | None = getattr(request.state, "access", None)
    target = None if access is None else access.target
    about = None if target is None else audit_log.dataset_of(target.kind, target.id, target.item)
    name = "hub" if target is None else f"{target.kind}:{target.id}"
    with contextlib.suppress(errors.CloisterError), request.app.state.hub.store.writing() as session:
        notices.record_damage(session, target=name, dataset_id=about)


def _record(request: Request, problem: errors.CloisterError) -> None:
    """Keep a refusal that came after the guard: by a policy, for a purpose or an algorithm, or by a budget."""
    access: Access | None = getattr(request.state, "access", None)
    if access is None or not access.action.is_audited or not isinstance(problem, _REFUSALS):
        return
    target = None if access.target is None else access.target.id
    # An audit log that cannot be written must not hide the refusal itself.
    with contextlib.suppress(errors.CloisterError):
        audit_log.record_refusal(
            request.app.state.hub.store, access.action, subject=access.subject, target_id=target, problem=problem
        )


def _handle_malformed(request: Request, problem: Any) -> Response:  # a RequestValidationError
    # Places only, never what was sent there: it may be a password.
    places = sorted({".".join(str(part) for part in error["loc"][1:]) or "body" for error in problem.errors()})
    named = errors.ParameterError(
        f"The request is malformed in: {', '.join(places)[:300]}.", fix="see /api/v1/openapi.json for what is expected."
    )
    return answer(request, 422, named)


def _handle_http(request: Request, problem: Any) -> Response:  # an HTTPException
    kind = errors.NotFoundError if problem.status_code == 404 else errors.HubError
    return answer(request, problem.status_code, kind(f"{problem.detail}.", fix="check the address and the method."))


def _handle_unknown(request: Request, problem: Exception) -> Response:
    # The route and not the address, which holds names of people and data.
    route = getattr(request.scope.get("route"), "path", "")
    logger().error("request failed", method=request.method, route=route, **facts_of(problem))
    return answer(request, 500, errors.HubError("The hub failed.", fix="try again; if it stays, tell the operator."))
