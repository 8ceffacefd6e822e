"""Whether a policy fits its dataset: mode, columns, conditions, measures, and terms that cannot be taken away."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ConflictError, PolicyError
from cloister.hub.domain.policy import Policy
from cloister.hub.domain.views import check_policy
from cloister.hub.services.datasets.modes import check_mode
from cloister.hub.services.datasets.schemas import newest_version, types_of
from cloister.hub.services.running.reserving import account_of
from cloister.hub.store.database import Store
from cloister.hub.store.models import Dataset
from cloister.hub.store.sealed_schemas import schema_of
from cloister.hub.store.sealed_tables import empty_table

__all__ = ["check_fits", "check_mode"]


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
