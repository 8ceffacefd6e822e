"""Taking in a version: a zip that is read with suspicion, sealed, and handed to the automated checks."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, ManifestError, NotFoundError
from cloister.hub.domain import actions
from cloister.hub.domain.algorithms import Artifact, Manifest, VersionState
from cloister.hub.domain.algorithms.artifact import MOST_PACKED
from cloister.hub.domain.roles import AccessSubject
from cloister.hub.hub import Hub
from cloister.hub.queue import Bell
from cloister.hub.sandbox.run_plan import slot_seconds
from cloister.hub.store.blobs import Blob
from cloister.hub.store.models import AlgorithmVersion, HubAlgorithm, new_id, now
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.algorithms.sandbox_checks import queue_check
from cloister.hub.use_cases.algorithms.versions import blob_of

__all__ = ["MOST_CHECK_SECONDS", "Registered", "add_version", "register"]

MOST_CHECK_SECONDS = 1800
"""How long the automated checks of one version may take at worst: they keep other foreign algorithms waiting."""

_PLAIN_TRIALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What became of an upload."""

    algorithm_id: str
    name: str
    version: str
    digest: str
    job_id: str


def register(hub: Hub, subject: AccessSubject, packed: bytes) -> Registered:
    """Register a new algorithm with its first version, and queue its checks.

    Raises:
        ArtifactError: if the zip holds anything but a few plain source files.
        ManifestError: if the manifest is wrong.
        ConflictError: if the name is taken.
    """
    artifact = read_artifact(packed)

    def algorithm(session: Session) -> HubAlgorithm:
        name = artifact.manifest.id
        if session.scalars(select(HubAlgorithm.id).where(HubAlgorithm.name == name)).first() is not None:
            raise ConflictError(
                f"There is an algorithm called {name} already.",
                fix="add a version on its page if it is yours; else choose another id in the manifest.",
            )
        made = HubAlgorithm(
            id=new_id("alg"), name=name, provider_id=subject.user_id, organisation_id=subject.organisation_id
        )
        session.add(made)
        session.flush()
        return made

    return _take_in(hub, subject, packed, artifact, algorithm, action=actions.REGISTER_ALGORITHM)


def add_version(hub: Hub, subject: AccessSubject, algorithm_id: str, packed: bytes) -> Registered:
    """Add a version to an algorithm, or replace one that was not published yet, and queue its checks.

    Raises:
        ArtifactError: if the zip holds anything but a few plain source files.
        ManifestError: if the manifest is wrong, or of another algorithm.
        ConflictError: if the version was published, and so never changes.
    """
    artifact = read_artifact(packed)

    def algorithm(session: Session) -> HubAlgorithm:
        found = session.get(HubAlgorithm, algorithm_id)
        if found is None:
            raise NotFoundError("There is no such algorithm, or you may not see it.", fix="check the address.")
        if found.name != artifact.manifest.id:
            raise ManifestError(
                f"The manifest is of {artifact.manifest.id}, but this is {found.name}.",
                fix=f"write id: {found.name}, or register a new algorithm.",
            )
        return found

    return _take_in(hub, subject, packed, artifact, algorithm, action=actions.EDIT_ALGORITHM)


def read_artifact(packed: bytes) -> Artifact:
    """Return the sources in a zip, if the hub can check them in a reasonable time."""
    artifact = Artifact.read(packed)
    manifest = artifact.manifest
    if check_seconds(manifest) > MOST_CHECK_SECONDS:
        raise ManifestError(
            f"Checking this could take longer than {MOST_CHECK_SECONDS // 60} minutes.",
            fix="declare a shorter resources.wall_seconds, or fewer parameters.",
        )
    return artifact


def check_seconds(manifest: Manifest) -> Fraction:
    """Return how long the automated checks take at worst."""
    trials = _PLAIN_TRIALS + sum(len(parameter.corners()) for parameter in manifest.parameters)
    return trials * slot_seconds(manifest.resources.wall_seconds)


def _take_in(
    hub: Hub,
    subject: AccessSubject,
    packed: bytes,
    artifact: Artifact,
    algorithm_of: Callable[[Session], HubAlgorithm],
    *,
    action: actions.Action,
) -> Registered:
    """Seal the sources and keep them with the queued checks, all or nothing."""
    kept = hub.blobs.write(io.BytesIO(packed), limit_bytes=MOST_PACKED)
    try:
        with hub.store.writing() as session:
            algorithm = algorithm_of(session)
            version, before = _version(session, algorithm, artifact, kept)
            job = queue_check(session, subject, version)
            audit_log.append(
                session,
                action,
                by=subject,
                target=f"algorithm:{algorithm.id}",
                what="upload",
                version=version.version,
                digest=version.digest,
            )
    # Without its row nobody could ever open the sealed file.
    except BaseException:
        hub.blobs.delete(kept)
        raise
    # The earlier sources go only when the new ones are kept.
    if before is not None:
        hub.blobs.delete(before)
    Bell(hub.settings.folder).ring()
    return Registered(
        algorithm_id=algorithm.id,
        name=algorithm.name,
        version=version.version,
        digest=version.digest,
        job_id=job.id,
    )


def _version(
    session: Session, algorithm: HubAlgorithm, artifact: Artifact, kept: Blob
) -> tuple[AlgorithmVersion, Blob | None]:
    """Return the row of a version as a draft with new sources, and the sealed file that it had before."""
    number, before = str(artifact.manifest.version), None
    found = select(AlgorithmVersion).where(
        AlgorithmVersion.algorithm_id == algorithm.id, AlgorithmVersion.version == number
    )
    version = session.scalars(found.with_for_update(of=AlgorithmVersion)).one_or_none()
    if version is None:
        version = AlgorithmVersion(id=new_id("algv"), algorithm_id=algorithm.id, version=number)
        session.add(version)
    elif version.published is not None or version.state not in (VersionState.DRAFT, VersionState.CHECKED):
        raise ConflictError(
            f"Version {number} of {algorithm.name} is {version.state}, and such a version never changes.",
            fix="give the manifest a higher version.",
        )
    else:
        before = blob_of(version)
    version.state, version.report, version.created = VersionState.DRAFT.value, None, now()
    version.manifest, version.digest = artifact.manifest.to_dict(), artifact.digest
    version.blob_id, version.wrapped_key = kept.id, kept.wrapped_key
    version.size, version.sealed_digest = kept.size, kept.sha256
    version.algorithm = algorithm
    session.flush()
    return version, before
