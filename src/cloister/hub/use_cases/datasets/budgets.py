"""Opening a dataset for questions: its unit, its budget, and limits below it. The account is the dataset's id.

Owners see what was spent of the budget: every charge, and how the budget burns down.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Entry
from cloister.core.guarantees import Adjacency
from cloister.core.validation import check_count
from cloister.data.schema import Schema
from cloister.errors import ConflictError, ParameterError, UnconfirmedSchemaError, UnknownColumnError
from cloister.hub.domain.actions import EDIT_BUDGET
from cloister.hub.domain.policy import Mode, Policy
from cloister.hub.domain.policy_file import policy_to_dict
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store.database import Store
from cloister.hub.store.models import Dataset, DatasetVersion, PolicyVersion, new_id
from cloister.hub.store.sealed_schemas import blob_of, schema_of
from cloister.hub.store.sealed_tables import open_sealed_table
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.authorization import current_policy
from cloister.hub.use_cases.datasets.lifecycle import get_dataset
from cloister.hub.use_cases.datasets.modes import adopt_mode, check_controllable
from cloister.hub.use_cases.datasets.versions import newest_version
from cloister.queries.inference_control import Controls

ROW = "row"


def open_for_questions(
    store: Store,
    session: Session,
    subject: AccessSubject,
    dataset: Dataset,
    *,
    budget: Budget,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
) -> Dataset:
    """Open the dataset's account and let people who are allowed to ask questions of its newest version.

    Args:
        store: the hub's database.
        session: a writing session of it.
        subject: the owner.
        dataset: a draft with a version whose schema is confirmed.
        budget: what all answers together may cost, ever.
        unit: what is protected: "row", or the column that names persons; by default the schema's subject.
        max_rows_per_unit: how many rows of a person count.
    """
    version, schema = _draft(session, dataset)
    if dataset.mode != Mode.DP:
        raise ConflictError(
            "The policy of this dataset says inference control, which has no budget.",
            fix='open it with the mode "sdc", or keep a policy with the mode "dp" first.',
        )
    protected = unit or schema.subject or ROW
    is_person = protected != ROW
    if is_person and protected not in schema:
        raise UnknownColumnError(protected, schema.names)
    if is_person:
        if max_rows_per_unit is None:
            raise ParameterError(
                "The rows of a person are protected together, so how many of them count must be known.",
                fix="say how many rows of a person count, such as 5.",
            )
        check_count(max_rows_per_unit, name="max_rows_per_unit", at_least=1)
    store.ledger(session).open_account(
        dataset.id,
        budget=budget,
        unit=protected,
        adjacency=Adjacency.USER if is_person else Adjacency.ADD_REMOVE,
    )
    dataset.facts = {
        **dataset.facts,
        "unit": protected,
        "adjacency": "add_remove",
        "max_rows_per_unit": max_rows_per_unit if is_person else None,
    }
    dataset.state, version.state = "ready", "ready"
    _record(session, subject, dataset, what="open", budget=budget.to_dict())
    return dataset


def open_under_control(hub: Hub, subject: AccessSubject, dataset_id: str, *, controls: Controls) -> Dataset:
    """Open a dataset for questions under inference control, which is not differential privacy and has no budget.

    Args:
        hub: the hub.
        subject: the owner.
        dataset_id: a draft with a version whose schema is confirmed, with one row for each person.
        controls: which questions are refused, and how numbers are shown.

    Raises:
        ParameterError: if there are too few rows, or a person has several; the owner may know.
    """
    with hub.store.reading() as session:
        version, schema = _draft(session, get_dataset(session, dataset_id))
    # The rows are looked at outside of any transaction, since reading them takes its time.
    check_controllable(open_sealed_table(hub.blobs, blob_of(version), schema), controls)
    with hub.store.writing() as session:
        dataset = get_dataset(session, dataset_id)
        again, _ = _draft(session, dataset)
        # So what was looked at may have been replaced in the meantime.
        if again.id != version.id or again.schema_text != version.schema_text:
            raise ConflictError("The rows or their schema were changed at this moment.", fix="look again, then repeat.")
        _keep_mode(session, subject, dataset, Mode.SDC)
        dataset.facts = {**dataset.facts, "unit": schema.subject or ROW, "controls": controls.to_dict()}
        dataset.state, again.state = "ready", "ready"
        _record(session, subject, dataset, what="open", mode=str(Mode.SDC), controls=controls.to_dict())
        return dataset


def raise_budget(store: Store, session: Session, subject: AccessSubject, dataset: Dataset, *, budget: Budget) -> None:
    """Let more be spent; the ledger keeps the decision."""
    store.ledger(session).raise_budget(dataset.id, budget=budget)
    _record(session, subject, dataset, what="raise", budget=budget.to_dict())


def set_limit(
    store: Store, session: Session, subject: AccessSubject, dataset: Dataset, *, analyst: str, budget: Budget
) -> None:
    """Set how much of the budget one person may spend."""
    store.ledger(session).limit_analyst(dataset.id, analyst=analyst, budget=budget)
    _record(session, subject, dataset, what="limit", analyst=analyst, budget=budget.to_dict())


def _draft(session: Session, dataset: Dataset) -> tuple[DatasetVersion, Schema]:
    """Return the newest version of a dataset that is not open yet, with its confirmed schema."""
    if dataset.state == "ready":
        raise ConflictError("This dataset is open already.", fix="raise its budget instead, if that is meant.")
    version = newest_version(session, dataset.id)
    if version is None:
        raise ConflictError("This dataset has no rows yet.", fix="upload a CSV or Parquet file first.")
    schema = schema_of(version)
    if schema is None:
        raise UnconfirmedSchemaError(
            "The schema holds guesses read from the data, which no question may use.",
            fix="look at the columns, replace what you would not tell everybody, and confirm them.",
        )
    return version, schema


def _keep_mode(session: Session, subject: AccessSubject, dataset: Dataset, mode: Mode) -> None:
    """Make the policy say the mode, by its next version where it says another one."""
    before = current_policy(session, "dataset", dataset.id) or Policy(object_id=dataset.id)
    policy = before if before.mode is mode else before.next_version(mode=mode, acknowledgement=None)
    adopt_mode(dataset, policy)
    if policy is not before:
        session.add(
            PolicyVersion(
                id=new_id("pol"),
                object_kind="dataset",
                object_id=dataset.id,
                number=policy.version,
                document=policy_to_dict(policy),
                author_id=subject.user_id,
            )
        )


def _record(session: Session, subject: AccessSubject, dataset: Dataset, **details: Any) -> None:
    audit_log.append(session, EDIT_BUDGET, by=subject, target=f"dataset:{dataset.id}", dataset_id=dataset.id, **details)


_SHOWN = frozenset({"open", "spend", "raise", "limit"})


def spending(store: Store, session: Session, dataset_id: str) -> dict[str, Any]:
    """Return the account of a dataset with its entries; stored answers are not told."""
    ledger = store.ledger(session)
    account = ledger.account(dataset_id)
    return {
        "schema": "cloister.dataset-ledger/1",
        "budget": account.budget.to_dict(),
        "spent": account.spent.to_dict(),
        "share": float(account.spent.amount / account.budget.amount) if account.budget.amount else 1.0,
        "unit": account.unit,
        "adjacency": str(account.adjacency),
        "head": account.head,
        "items": [_describe_charge(entry) for entry in ledger.entries(dataset_id) if str(entry.kind) in _SHOWN],
        "next": None,
    }


def _describe_charge(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "kind": str(entry.kind),
        "time": entry.time,
        "analyst": entry.analyst,
        "purpose": entry.details.get("purpose", ""),
        "cost": entry.details.get("cost"),
        "budget": entry.details.get("budget"),
        "spent": entry.spent.to_dict(),
    }
