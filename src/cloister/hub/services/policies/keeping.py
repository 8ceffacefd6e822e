"""Keeping the next version of a policy. No version is ever changed, and the one that was edited must be the newest."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError
from cloister.hub.domain import requests
from cloister.hub.domain.actions import EDIT_POLICY, Action
from cloister.hub.domain.policy import Member, Policy
from cloister.hub.domain.policy_file import digest_of, policy_to_dict
from cloister.hub.domain.requests import RequestState
from cloister.hub.domain.roles import Subject
from cloister.hub.services import auditing
from cloister.hub.services.access.stored import moment, put, value_of
from cloister.hub.services.notices import notify
from cloister.hub.services.targets import current_policy
from cloister.hub.store.models import AccessRequest, Dataset, PolicyVersion, new_id

__all__ = ["keep", "newest"]


def newest(session: Session, dataset: Dataset, *, based_on: int | None = None) -> Policy:
    """Return the newest policy of a dataset.

    Args:
        session: a transaction.
        dataset: the dataset.
        based_on: the version that somebody looked at before changing it.

    Raises:
        ConflictError: if somebody else has changed the policy since.
    """
    policy = current_policy(session, "dataset", dataset.id) or Policy(object_id=dataset.id)
    if based_on is not None and based_on != policy.version:
        raise ConflictError(
            f"The policy was changed in the meantime: version {policy.version} is the newest, not {based_on}.",
            fix="look at the newest version, then make your change again.",
        )
    return policy


def keep(
    session: Session,
    dataset: Dataset,
    policy: Policy,
    *,
    by: Subject | None,
    before: Policy,
    what: str,
    action: Action = EDIT_POLICY,
    told: Collection[str] = (),
    **details: Any,
) -> Policy:
    """Keep a policy as the next version; people whom it names or names no longer get a notice.

    Args:
        session: a writing session.
        dataset: what it is for.
        policy: the policy, with identifiers; its version is the next one.
        by: who changed it; None for the clock.
        before: the version before it.
        what: what was done, for the audit log.
        action: the action that it was part of.
        told: people who get to know in another way.
        details: for the audit log.
    """
    session.add(
        PolicyVersion(
            id=new_id("pol"),
            object_kind="dataset",
            object_id=dataset.id,
            number=policy.version,
            document=policy_to_dict(policy),
            author_id=None if by is None else by.user_id,
        )
    )
    session.flush()
    auditing.append(
        session,
        action,
        by=auditing.HUB if by is None else by,
        target=f"dataset:{dataset.id}",
        dataset_id=dataset.id,
        what=what,
        policy_version=policy.version,
        policy_digest=digest_of(policy),
        **details,
    )
    ended = _end_requests(session, dataset, policy, by)
    _tell(session, dataset, before, policy, but={*told, *ended, "" if by is None else by.user_id})
    return policy


def _end_requests(session: Session, dataset: Dataset, policy: Policy, by: Subject | None) -> set[str]:
    """Mark approved requests as revoked whose membership the policy does not have any more; return whose they were."""
    approved = session.scalars(
        select(AccessRequest).where(AccessRequest.dataset_id == dataset.id, AccessRequest.state == "approved")
    )
    told = set()
    for row in approved:
        request = value_of(row)
        if by is None or _is_member(policy, request.approvals[-1].role, request.requester):
            continue
        note = "The owner changed the policy."
        owners = {by.user_id}
        put(row, requests.revoke(request, by=by.user_id, owners=owners, at=moment(), note=note))
        auditing.append(
            session,
            "access.revoked",
            by=by,
            target=f"request:{row.id}",
            dataset_id=dataset.id,
            state=str(RequestState.REVOKED),
        )
        if request.requester != by.user_id:
            notify(
                session, request.requester, f"Your access to {title(dataset)} was ended.", link=f"/requests/{row.id}"
            )
        told.add(request.requester)
    return told


def title(dataset: Dataset) -> str:
    """Return how a dataset is called."""
    return dataset.title or dataset.name


def _is_member(policy: Policy, role: str, user_id: str) -> bool:
    return any(item.name == role and item.members.entry(user_id) is not None for item in policy.roles)


def _tell(session: Session, dataset: Dataset, before: Policy, after: Policy, *, but: Collection[str]) -> None:
    old, new = _people(before), _people(after)
    for person in sorted({*old, *new} - set(but)):
        if person not in new:
            notify(session, person, f"Your access to {title(dataset)} was ended.", link="/requests")
        elif old.get(person) != new[person]:
            notify(
                session,
                person,
                f"The owner of {title(dataset)} has changed what you may do.",
                link=f"/datasets/{dataset.id}/access",
            )


def _people(policy: Policy) -> dict[str, list[tuple[str, Member]]]:
    found: dict[str, list[tuple[str, Member]]] = {}
    for role in policy.roles:
        for member in role.members.users:
            found.setdefault(member.user_id, []).append((role.name, member))
    return found
