"""Keeping the next version of a policy. No version is ever changed, and the one that was edited must be the newest.

A policy must fit its dataset: mode, columns, conditions, measures, and terms that cannot be taken away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError, PolicyError
from cloister.hub.domain import requests
from cloister.hub.domain.actions import EDIT_POLICY, Action
from cloister.hub.domain.policy import Member, Policy
from cloister.hub.domain.policy_file import digest_policy, policy_to_dict
from cloister.hub.domain.requests import RequestState
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.domain.views import check_policy
from cloister.hub.store.database import Store
from cloister.hub.store.models import AccessRequestRecord, Dataset, PolicyVersion, exact_now, new_id
from cloister.hub.store.sealed_schemas import schema_of
from cloister.hub.store.sealed_tables import empty_table
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases._spending_limits import account_of
from cloister.hub.use_cases.access.records import store_request, value_of
from cloister.hub.use_cases.authorization import current_policy
from cloister.hub.use_cases.datasets.modes import check_mode
from cloister.hub.use_cases.datasets.versions import newest_version, types_of
from cloister.hub.use_cases.notices import notify

__all__ = ["check_fits", "check_mode", "keep", "newest"]


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
    by: AccessSubject | None,
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
    audit_log.append(
        session,
        action,
        by=audit_log.HUB if by is None else by,
        target=f"dataset:{dataset.id}",
        dataset_id=dataset.id,
        what=what,
        policy_version=policy.version,
        policy_digest=digest_policy(policy),
        **details,
    )
    # In the same transaction: a request that says approved must not outlive the membership that it gave.
    ended = _end_requests(session, dataset, policy, by)
    _tell(session, dataset, before, policy, but={*told, *ended, "" if by is None else by.user_id})
    return policy


def _end_requests(session: Session, dataset: Dataset, policy: Policy, by: AccessSubject | None) -> set[str]:
    """Mark approved requests as revoked whose membership the policy does not have any more; return whose they were."""
    approved = session.scalars(
        select(AccessRequestRecord).where(
            AccessRequestRecord.dataset_id == dataset.id, AccessRequestRecord.state == "approved"
        )
    )
    told = set()
    for row in approved:
        request = value_of(row)
        # What the hub does by itself ends memberships whose requests it marks on its own.
        if by is None or _is_member(policy, request.approvals[-1].role, request.requester):
            continue
        note = "The owner changed the policy."
        owners = {by.user_id}
        store_request(row, requests.revoke(request, by=by.user_id, owners=owners, at=exact_now(), note=note))
        audit_log.append(
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


def check_fits(store: Store, session: Session, dataset: Dataset, policy: Policy, *, before: Policy | None) -> None:
    """Raise where a policy does not fit its dataset. Only the schema is looked at, never a row.

    Args:
        store: the hub's database.
        session: a transaction of it.
        dataset: what the policy is for.
        policy: the policy.
        before: the version before it.
    """
    if policy.object_id != dataset.id:
        raise PolicyError("object: this policy is for another object.", fix=f'write "{dataset.id}".')
    check_mode(dataset, policy)
    _check_columns(session, dataset, policy)
    _check_measure(store, session, dataset, policy)
    if before is not None and policy.terms.policies != before.terms.policies:
        raise PolicyError(
            "terms.policies: where the data comes from cannot be changed.", fix="leave this field as it was."
        )


def _check_columns(session: Session, dataset: Dataset, policy: Policy) -> None:
    version = newest_version(session, dataset.id)
    if version is not None:
        # A table without rows has all that a policy can be held against.
        check_policy(policy, empty_table(types_of(version), schema_of(version)))
        return
    named = any(rules.named for rules in (policy.columns, *(role.columns for role in policy.roles)))
    if named or any(rows is not None for rows in (policy.rows, *(role.rows for role in policy.roles))):
        raise ConflictError(
            "The dataset has no rows yet, so nobody knows whether it has these columns.",
            fix="upload a CSV or Parquet file first.",
        )


def _check_measure(store: Store, session: Session, dataset: Dataset, policy: Policy) -> None:
    account = account_of(store.ledger(session), dataset.id)
    if account is None:
        return
    for place, budget in _budgets(policy):
        if budget.measure != account.budget.measure:
            raise PolicyError(
                f"{place}: the limit is in {budget.measure}, but the dataset's budget is in {account.budget.measure}.",
                fix="leave the limit out, and limit people in the ledger instead (PUT /datasets/…/limits).",
            )


def _budgets(policy: Policy) -> Iterator[tuple[str, Budget]]:
    for place, role in enumerate(policy.roles):
        for member in role.members.users:
            if member.budget is not None:
                yield f"roles[{place}].members", member.budget
        for number, rule in enumerate(role.rules):
            for name, budget in rule.limits:
                yield f"roles[{place}].rules[{number}].limits.{name}", budget
