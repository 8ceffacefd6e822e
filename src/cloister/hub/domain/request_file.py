"""Requests for access as JSON-ready values, and back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cloister.accounting.budget import Budget
from cloister.hub.domain.operations import Operation
from cloister.hub.domain.places import Place
from cloister.hub.domain.policy_parts import read_algorithm
from cloister.hub.domain.requests import AccessRequest, Approval, RequestState, Transition
from cloister.hub.domain.rules import Algorithm

__all__ = ["algorithms_from", "history_to_list", "request_from_dict", "request_to_dict"]


def request_to_dict(request: AccessRequest) -> dict[str, Any]:
    """Return what is asked for and approved, without the history."""
    return {
        "object": request.object_id,
        "purpose": request.purpose,
        "operations": [str(item) for item in Operation if item in request.operations],
        "algorithms": [str(item) for item in request.algorithms],
        "budget": _budget(request.budget),
        "two_person": request.two_person,
        "approvals": [
            {
                "by": item.by,
                "at": item.at.isoformat(),
                "role": item.role,
                "until": item.until.isoformat(),
                "budget": _budget(item.budget),
            }
            for item in request.approvals
        ],
    }


def history_to_list(request: AccessRequest) -> list[dict[str, Any]]:
    """Return every step of a request."""
    return [
        {"at": step.at.isoformat(), "by": step.by, "state": str(step.state), "note": step.note}
        for step in request.history
    ]


def request_from_dict(
    values: dict[str, Any], history: list[dict[str, Any]], *, request_id: str, requester: str, state: str
) -> AccessRequest:
    """Return the request that `request_to_dict` and `history_to_list` wrote."""
    return AccessRequest(
        request_id=request_id,
        object_id=values["object"],
        requester=requester,
        purpose=values["purpose"],
        operations=frozenset(Operation(item) for item in values["operations"]),
        algorithms=algorithms_from(values["algorithms"]),
        budget=_read_budget(values["budget"]),
        two_person=values["two_person"],
        state=RequestState(state),
        approvals=tuple(
            Approval(
                by=item["by"],
                at=datetime.fromisoformat(item["at"]),
                role=item["role"],
                until=datetime.fromisoformat(item["until"]),
                budget=_read_budget(item["budget"]),
            )
            for item in values["approvals"]
        ),
        history=tuple(
            Transition(
                at=datetime.fromisoformat(step["at"]),
                by=step["by"],
                state=RequestState(step["state"]),
                note=step["note"],
            )
            for step in history
        ),
    )


def algorithms_from(names: list[str]) -> tuple[Algorithm, ...]:
    """Return the algorithms that a request names, each once.

    Raises:
        PolicyError: if one is not ``name@version``.
    """
    return tuple(read_algorithm(Place(name, "algorithms")) for name in dict.fromkeys(names))


def _budget(budget: Budget | None) -> dict[str, Any] | None:
    return None if budget is None else budget.to_dict()


def _read_budget(values: dict[str, Any] | None) -> Budget | None:
    return None if values is None else Budget.from_dict(values)
