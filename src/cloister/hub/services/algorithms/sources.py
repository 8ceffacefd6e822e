"""The stored sources of a version: found by name, and opened only if they are the ones that were registered."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import CloisterError, ConflictError, NotFoundError
from cloister.hub.domain.algorithms import Artifact, State
from cloister.hub.hub import Hub
from cloister.hub.store.blobs import Blob
from cloister.hub.store.models import AlgorithmVersion, HubAlgorithm

__all__ = ["Sources", "find_version", "full_name", "open_sources", "stored_version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of a version, and where the version is in its life."""

    artifact: Artifact
    state: State


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


def stored_version(session: Session, algorithm_id: str, version: str, *, lock: bool = False) -> AlgorithmVersion:
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


def open_sources(hub: Hub, version: AlgorithmVersion) -> Sources:
    """Return the sources of a version, if they are the ones that were registered.

    Raises:
        ConflictError: if the stored file was changed, replaced or lost.
    """
    try:
        with hub.blobs.open(blob_of(version)) as file:
            artifact = Artifact.read(file.read())
    except CloisterError:
        raise _changed(version) from None
    if not hmac.compare_digest(artifact.digest, version.digest):
        raise _changed(version)
    return Sources(artifact=artifact, state=State(version.state))


def blob_of(version: AlgorithmVersion) -> Blob:
    """Return the sealed file of a version."""
    return Blob(version.blob_id, version.wrapped_key, version.size, version.sealed_digest)


def _changed(version: AlgorithmVersion) -> ConflictError:
    return ConflictError(
        f"The stored sources of {full_name(version)} are not the ones that were registered; they do not run.",
        fix="tell the operator; the provider can register the sources again under a new version.",
    )
