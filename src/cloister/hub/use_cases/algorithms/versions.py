"""Versions of algorithms: their stored sources, and their life after the checks.

Sources are found by name, and opened only if they are the ones that were registered. After its checks a version is
published, deprecated, restored, revoked, each step kept in the audit log.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import CloisterError, ConflictError, NotFoundError, ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.algorithms import Artifact, VersionState, VersionStep, next_state
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.store.blobs import Blob
from cloister.hub.store.models import AlgorithmAllowance, AlgorithmVersion, Dataset, HubAlgorithm, now
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.notices import notify_owners

__all__ = [
    "OFFERED_STEPS",
    "AlgorithmSources",
    "find_version",
    "full_name",
    "load_version",
    "open_sources",
    "take_step",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmSources:
    """The sources of a version, and where the version is in its life."""

    artifact: Artifact
    state: VersionState


def full_name(version: AlgorithmVersion) -> str:
    """Return what a version is called, such as k-means@1.0.0."""
    return f"{version.algorithm.name}@{version.version}"


def find_version(session: Session, name: str) -> AlgorithmVersion | None:
    """Return a version by its full name, such as k-means@1.0.0, or None."""
    algorithm, _, version = name.partition("@")
    found = select(AlgorithmVersion).join(HubAlgorithm, HubAlgorithm.id == AlgorithmVersion.algorithm_id)
    return session.scalars(
        found.where(HubAlgorithm.name == algorithm, AlgorithmVersion.version == version)
    ).one_or_none()


def load_version(session: Session, algorithm_id: str, version: str, *, lock: bool = False) -> AlgorithmVersion:
    """Return a version of an algorithm, or raise.

    Raises:
        NotFoundError: if there is none.
    """
    found = select(AlgorithmVersion).where(
        AlgorithmVersion.algorithm_id == algorithm_id, AlgorithmVersion.version == version
    )
    if lock:
        found = found.with_for_update(of=AlgorithmVersion)
    stored = session.scalars(found).one_or_none()
    if stored is None:
        raise NotFoundError("There is no such version, or you may not see it.", fix="look at the algorithm's page.")
    return stored


def open_sources(hub: Hub, version: AlgorithmVersion) -> AlgorithmSources:
    """Return the sources of a version, if they are the ones that were registered.

    Raises:
        ConflictError: if the stored file was changed, replaced or lost.
    """
    try:
        with hub.blobs.open(blob_of(version)) as file:
            artifact = Artifact.read(file.read())
    except CloisterError:
        raise _refuse_changed(version) from None
    if not hmac.compare_digest(artifact.digest, version.digest):
        raise _refuse_changed(version)
    return AlgorithmSources(artifact=artifact, state=VersionState(version.state))


def blob_of(version: AlgorithmVersion) -> Blob:
    """Return the sealed file of a version."""
    return Blob(version.blob_id, version.wrapped_key, version.size, version.sealed_digest)


def _refuse_changed(version: AlgorithmVersion) -> ConflictError:
    return ConflictError(
        f"The stored sources of {full_name(version)} are not the ones that were registered; they do not run.",
        fix="tell the operator; the provider can register the sources again under a new version.",
    )


OFFERED_STEPS = (
    VersionStep.SEND_BACK,
    VersionStep.PUBLISH,
    VersionStep.DEPRECATE,
    VersionStep.RESTORE,
    VersionStep.REVOKE,
)
"""What a provider can do; only the checks themselves can let a version pass them."""

_WORDS = {
    VersionStep.PUBLISH: "is published. It runs on your data only after you have read and allowed it.",
    VersionStep.DEPRECATE: "is deprecated by its provider. It still runs where you allow it.",
    VersionStep.RESTORE: "is published again.",
    VersionStep.REVOKE: "was revoked by its provider. It does not run any more.",
}


def take_step(
    session: Session, subject: AccessSubject, algorithm_id: str, version: str, step: VersionStep
) -> AlgorithmVersion:
    """Move a version to its next state, and tell the owners whose datasets allow the algorithm.

    A revoked version stops at once: what waits in the queue is denied, and what runs gives no result.

    Raises:
        ConflictError: if the step is not possible now.
    """
    if step not in OFFERED_STEPS:
        raise ParameterError("Only the checks can do this.", fix="start the checks of the version.")
    stored = load_version(session, algorithm_id, version, lock=True)
    try:
        stored.state = next_state(VersionState(stored.state), step).value
    except ParameterError as error:
        raise ConflictError(error.problem, fix=error.fix) from None
    if step is VersionStep.SEND_BACK:
        stored.report = None
    if step is VersionStep.PUBLISH:
        stored.published = now()
    audit_log.append(
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


def _tell_owners(session: Session, stored: AlgorithmVersion, step: VersionStep) -> None:
    if step not in _WORDS:
        return
    allowing = (
        select(Dataset.organisation_id)
        .join(AlgorithmAllowance, AlgorithmAllowance.dataset_id == Dataset.id)
        .join(AlgorithmVersion, AlgorithmVersion.id == AlgorithmAllowance.version_id)
    )
    if step is VersionStep.PUBLISH:
        allowing = allowing.where(AlgorithmVersion.algorithm_id == stored.algorithm_id)
    else:
        allowing = allowing.where(AlgorithmVersion.id == stored.id)
    link = f"/algorithms/{stored.algorithm_id}/versions/{stored.version}"
    for organisation_id in session.scalars(allowing.distinct()):
        notify_owners(session, organisation_id, f"{full_name(stored)} {_WORDS[step]}", link=link)
