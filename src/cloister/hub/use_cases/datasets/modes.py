"""How answers about a dataset are protected: chosen before it is opened, and never changed afterwards.

Noisy answers are paid from a budget; under inference control answers are exact and paid from nothing. Together they
would tell more than either promises, and no price for that is known. So a dataset has one mode: whoever wants another
one makes another dataset. The policy states the mode as well, and both must agree.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.data.table import Table
from cloister.errors import ConflictError, PolicyError
from cloister.hub.domain.policy import Mode, Policy
from cloister.hub.store.models import AnswerHistory, Dataset
from cloister.queries.inference_control import ControlledTable, Controls

__all__ = [
    "MODE_WORDS",
    "adopt_mode",
    "check_agreement",
    "check_controllable",
    "check_mode",
    "check_servable",
    "controls_of",
    "was_answered",
]

MODE_WORDS = {"dp": "differential privacy", "sdc": "inference control", "exact": "nothing"}


def check_servable(policy: Policy) -> None:
    """Return nothing if services of the hub can serve a policy's mode, else raise.

    Raises:
        PolicyError: if none does, or the policy shows some rows only under inference control.
    """
    if policy.mode is Mode.EXACT:
        raise PolicyError(
            "No service of this hub gives exact answers, so that the mode exact would serve nobody.",
            fix='write mode "dp" or "sdc".',
        )
    if policy.mode is Mode.SDC and any(rows is not None for rows in (policy.rows, *(r.rows for r in policy.roles))):
        raise PolicyError(
            "Under inference control all questions are about the same rows, so that a policy cannot show some of them.",
            fix="leave the conditions on rows out, or make a dataset with only these rows.",
        )


def check_mode(dataset: Dataset, policy: Policy) -> None:
    """Return nothing if a policy can be the next one of a dataset, as far as its mode is concerned, else raise.

    Raises:
        PolicyError: if no service can serve the mode.
        ConflictError: if the dataset was opened in another mode.
    """
    check_servable(policy)
    if dataset.state == "ready" and policy.mode != dataset.mode:
        raise ConflictError(
            f"Answers about this dataset are protected by {MODE_WORDS[dataset.mode]}, from its opening on.",
            fix=f'write mode "{dataset.mode}", or make a new dataset.',
        )


def adopt_mode(dataset: Dataset, policy: Policy) -> None:
    """Take the mode of a policy that is about to be kept, as long as the dataset is not open; raises as `check_mode`.

    Whatever keeps a policy of a dataset calls this in the same transaction.
    """
    check_mode(dataset, policy)
    if dataset.state != "ready":
        dataset.mode = str(policy.mode)


def check_agreement(dataset: Dataset, policy: Policy) -> None:
    """Return nothing if a dataset and its policy say the same, else raise: nothing runs on a contradiction."""
    if policy.mode != dataset.mode:
        raise ConflictError(
            "The dataset and its policy disagree about how answers are protected.",
            fix=f'ask the owner to keep a policy with the mode "{dataset.mode}".',
        )
    check_mode(dataset, policy)


def controls_of(facts: dict[str, Any]) -> Controls:
    """Return the controls that the owner has set; those of the library where nothing is said."""
    stated = facts.get("controls")
    return Controls() if stated is None else Controls.from_dict(stated)


def check_controllable(table: Table, controls: Controls) -> None:
    """Return nothing if questions about a table can be answered under inference control, else raise.

    It looks at the rows, and is for their owner.

    Raises:
        ParameterError: if there are too few rows, or a person has several.
    """
    ControlledTable(table, controls=controls)


def was_answered(session: Session, dataset_id: str) -> bool:
    """Return whether anybody was answered about a dataset under inference control."""
    found = select(func.count()).where(AnswerHistory.dataset_id == dataset_id, AnswerHistory.revision > 0)
    return bool(session.scalar(found))
