"""The life of a version after its checks: published, deprecated, restored, revoked, each step kept in the audit log."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.algorithms import State, Step, after
from cloister.hub.domain.roles import Subject
from cloister.hub.services import auditing
from cloister.hub.services.algorithms.sources import full_name, stored_version
from cloister.hub.services.notices import notify_owners
from cloister.hub.store.models import AlgorithmAllowance, AlgorithmVersion, Dataset, now

__all__ = ["OFFERED_STEPS", "take_step"]

OFFERED_STEPS = (Step.SEND_BACK, Step.PUBLISH, Step.DEPRECATE, Step.RESTORE, Step.REVOKE)
"""What a provider can do; only the checks themselves can let a version pass them."""

_WORDS = {
    Step.PUBLISH: "is published. It runs on your data only after you have read and allowed it.",
    Step.DEPRECATE: "is deprecated by its provider. It still runs where you allow it.",
    Step.RESTORE: "is published again.",
    Step.REVOKE: "was revoked by its provider. It does not run any more.",
}


def take_step(session: Session, subject: Subject, algorithm_id: str, version: str, step: Step) -> AlgorithmVersion:
    """Move a version to its next state, and tell the owners whose datasets allow the algorithm.

    A revoked version stops at once: what waits in the queue is denied, and what runs gives no result.

    Raises:
        ConflictError: if the step is not possible now.
    """
    if step not in OFFERED_STEPS:
        raise ParameterError("Only the checks can do this.", fix="start the checks of the version.")
    stored = stored_version(session, algorithm_id, version, lock=True)
    try:
        stored.state = after(State(stored.state), step).value
    except ParameterError as error:
        raise ConflictError(error.problem, fix=error.fix) from None
    if step is Step.SEND_BACK:
        stored.report = None
    if step is Step.PUBLISH:
        stored.published = now()
    auditing.append(
        session,
        actions.EDIT_ALGORITHM,
        by=subject,
        target=f"algorithm:{algorithm_id}",
        what=str(step),
        version=version,
        digest=stored.digest,
    )
    _tell_owners(session, stored, step)
    return stored


def _tell_owners(session: Session, stored: AlgorithmVersion, step: Step) -> None:
    if step not in _WORDS:
        return
    allowing = (
        select(Dataset.organisation_id)
        .join(AlgorithmAllowance, AlgorithmAllowance.dataset_id == Dataset.id)
        .join(AlgorithmVersion, AlgorithmVersion.id == AlgorithmAllowance.version_id)
    )
    if step is Step.PUBLISH:
        allowing = allowing.where(AlgorithmVersion.algorithm_id == stored.algorithm_id)
    else:
        allowing = allowing.where(AlgorithmVersion.id == stored.id)
    link = f"/algorithms/{stored.algorithm_id}/versions/{stored.version}"
    for organisation_id in session.scalars(allowing.distinct()):
        notify_owners(session, organisation_id, f"{full_name(stored)} {_WORDS[step]}", link=link)
