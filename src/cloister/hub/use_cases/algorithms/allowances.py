"""An owner's decision that exactly these sources may run on one dataset. A new version needs a new decision."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, ForbiddenError, NotFoundError, ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.algorithms import Version, VersionAllowance, VersionState, require_runnable
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.store.models import AlgorithmAllowance, AlgorithmVersion, new_id
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.algorithms.versions import find_version, full_name

__all__ = ["allow", "check_runnable", "disallow", "list_allowed", "list_to_allow"]

RUNNABLE = (VersionState.PUBLISHED, VersionState.DEPRECATED)


def allow(
    session: Session,
    subject: AccessSubject,
    dataset_id: str,
    *,
    algorithm: str,
    digest: str,
    has_read: bool,
    until: datetime | None = None,
) -> AlgorithmAllowance:
    """Allow a version for a dataset, or change until when it is allowed.

    Args:
        session: a writing session.
        subject: the owner.
        dataset_id: the dataset.
        algorithm: the version, such as k-means@1.0.0.
        digest: of the sources that the owner has read.
        has_read: whether the owner has read the manifest, the sources and the report of the checks.
        until: when the permission ends.

    Raises:
        NotFoundError: if no such version was published.
        ConflictError: if it is revoked, or the digest is of other sources.
        ParameterError: if the owner has not read it, or the end has passed.
    """
    version = _find_published(session, algorithm)
    if not has_read:
        raise ParameterError(
            "Whoever allows foreign code must have read what it is.",
            fix="read the manifest, the sources and the report of the checks, then say so.",
        )
    if VersionState(version.state) not in RUNNABLE:
        raise ConflictError(f"{algorithm} is {version.state}.", fix="choose a published version.")
    # The owner says what was read by its digest: a version that was replaced meanwhile is not what was read.
    if not hmac.compare_digest(version.digest, digest):
        raise ConflictError("The digest is of other sources.", fix="read the version again, and send its digest.")
    if until is not None and _aware(until) <= datetime.now(UTC):
        raise ParameterError("The permission would have ended already.", fix="choose a later day, or none.")
    found = _of(session, dataset_id, version)
    if found is None:
        found = AlgorithmAllowance(id=new_id("alw"), dataset_id=dataset_id, version=version)
        session.add(found)
    found.digest, found.owner_id = version.digest, subject.user_id
    found.until = None if until is None else _aware(until)
    session.flush()
    session.refresh(found)
    _note(session, subject, dataset_id, what="allow", algorithm=algorithm, digest=digest)
    return found


def disallow(session: Session, subject: AccessSubject, dataset_id: str, allowance_id: str) -> None:
    """Stop allowing a version; what waits in the queue is denied, and what runs gives no result."""
    found = session.get(AlgorithmAllowance, allowance_id)
    if found is None or found.dataset_id != dataset_id:
        raise NotFoundError("There is no such permission.", fix="look at the dataset's algorithms again.")
    _note(session, subject, dataset_id, what="disallow", algorithm=full_name(found.version), digest=found.digest)
    session.delete(found)


def list_allowed(session: Session, dataset_id: str, *, is_owner: bool) -> list[dict[str, Any]]:
    """Return the versions that a dataset takes; owners also see who allowed each, and what does not run any more."""
    found = session.scalars(
        select(AlgorithmAllowance)
        .where(AlgorithmAllowance.dataset_id == dataset_id)
        .order_by(AlgorithmAllowance.created, AlgorithmAllowance.id)
    )
    items = [_describe_allowance(item, is_owner=is_owner) for item in found]
    return [item for item in items if is_owner or item["is_runnable"]]


def list_to_allow(session: Session, dataset_id: str) -> list[AlgorithmVersion]:
    """Return the published versions that a dataset's owner could allow, the newest first."""
    allowed = select(AlgorithmAllowance.version_id).where(AlgorithmAllowance.dataset_id == dataset_id)
    found = select(AlgorithmVersion).where(
        AlgorithmVersion.state == VersionState.PUBLISHED.value, AlgorithmVersion.id.not_in(allowed)
    )
    return list(session.scalars(found.order_by(AlgorithmVersion.published.desc(), AlgorithmVersion.id).limit(200)))


def check_runnable(session: Session, dataset_id: str, version: AlgorithmVersion | None) -> None:
    """Return nothing if a version may run on a dataset now, else raise.

    Raises:
        ForbiddenError: if it is not published, or not exactly what the owner allowed.
    """
    if version is None:
        raise ForbiddenError(
            "The data owner has not allowed this algorithm and version.",
            fix="see the dataset's page for what is allowed, or ask the data owner.",
        )
    found = _of(session, dataset_id, version)
    number = Version.parse(version.version)
    allowance = (
        VersionAllowance(algorithm=version.algorithm.name, version=number, digest=found.digest)
        if found is not None and _is_current(found)
        else None
    )
    try:
        require_runnable(
            algorithm=version.algorithm.name,
            version=number,
            digest=version.digest,
            state=VersionState(version.state),
            allowance=allowance,
        )
    except ParameterError as error:
        raise ForbiddenError(error.problem, fix=error.fix) from None


def _find_published(session: Session, algorithm: str) -> AlgorithmVersion:
    version = find_version(session, algorithm)
    if version is None or version.published is None:
        raise NotFoundError("No such version was published.", fix="write it as on its page, such as k-means@1.0.0.")
    return version


def _of(session: Session, dataset_id: str, version: AlgorithmVersion) -> AlgorithmAllowance | None:
    return session.scalars(
        select(AlgorithmAllowance).where(
            AlgorithmAllowance.dataset_id == dataset_id, AlgorithmAllowance.version_id == version.id
        )
    ).one_or_none()


def _is_current(allowance: AlgorithmAllowance) -> bool:
    return allowance.until is None or datetime.now(UTC) < allowance.until


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _describe_allowance(allowance: AlgorithmAllowance, *, is_owner: bool) -> dict[str, Any]:
    version = allowance.version
    described = {
        "id": allowance.id,
        "algorithm": full_name(version),
        "algorithm_id": version.algorithm_id,
        "version": version.version,
        "title": version.manifest["title"],
        "digest": allowance.digest,
        "state": version.state,
        "until": None if allowance.until is None else allowance.until.isoformat(),
        "is_runnable": VersionState(version.state) in RUNNABLE
        and _is_current(allowance)
        and allowance.digest == version.digest,
    }
    if is_owner:
        described |= {"allowed_by": allowance.owner.name, "allowed": allowance.created.isoformat()}
    return described


def _note(session: Session, subject: AccessSubject, dataset_id: str, **details: Any) -> None:
    audit_log.append(
        session,
        actions.ALLOW_ALGORITHM,
        by=subject,
        target=f"dataset:{dataset_id}",
        dataset_id=dataset_id,
        **details,
    )
