"""The objects that actions are about: who stands how to them, and which policy governs them.

Each kind of object has one loader, registered here; the gateway knows no object itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from cloister.core.registry import Registry
from cloister.hub.domain.actions import Relation
from cloister.hub.domain.policy import Operation, Policy
from cloister.hub.domain.policy_file import policy_from_dict
from cloister.hub.domain.roles import Role, Subject
from cloister.hub.store.models import (
    AccessRequest,
    AlgorithmVersion,
    Dataset,
    HubAlgorithm,
    HubSurvey,
    Job,
    PolicyVersion,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An object that an action is about.

    Attributes:
        kind: "dataset", "job" and so on.
        id: its identifier.
        organisation_id: the institution that owns it.
        requester_id: who asked for it.
        provider_id: who provides it, for algorithms, which have no owner.
        policy: what governs it, or None where only relations count.
        item: the stored object.
    """

    kind: str
    id: str
    organisation_id: str | None = None
    requester_id: str | None = None
    provider_id: str | None = None
    policy: Policy | None = None
    item: Any = None

    def relations(self, subject: Subject) -> frozenset[Relation]:
        """Return what somebody is to the object. An institution's data owners own its data; algorithms have none."""
        found = set()
        is_theirs = self.organisation_id is not None and self.organisation_id == subject.organisation_id
        if is_theirs and self.provider_id is None and Role.DATA_OWNER in subject.roles:
            found.add(Relation.OWNER)
        if self._is_provided_by(subject):
            found.add(Relation.PROVIDER)
        if is_theirs:
            found.add(Relation.MEMBER)
        if self.requester_id == subject.user_id:
            found.add(Relation.REQUESTER)
        return frozenset(found)

    def _is_provided_by(self, subject: Subject) -> bool:
        if self.provider_id is None or Role.ALGORITHM_PROVIDER not in subject.roles:
            return False
        if self.organisation_id is None:
            return self.provider_id == subject.user_id
        return self.organisation_id == subject.organisation_id


Loader = Callable[[Session, str], Target | None]
loaders: Registry[Loader] = Registry("kind of object")


def load_target(session: Session, kind: str, identifier: str) -> Target | None:
    """Return an object by its kind and identifier, or None; no identifier holds what a database cannot store."""
    return None if "\x00" in identifier else loaders.get(kind)(session, identifier)


def current_policy(session: Session, kind: str, identifier: str) -> Policy | None:
    """Return the newest policy of an object, or None."""
    newest = session.scalars(
        select(PolicyVersion)
        .where(PolicyVersion.object_kind == kind, PolicyVersion.object_id == identifier)
        .order_by(PolicyVersion.number.desc())
        .limit(1)
    ).first()
    return None if newest is None else policy_from_dict(newest.document)


@loaders.register("dataset")
def _dataset(session: Session, identifier: str) -> Target | None:
    dataset = session.get(Dataset, identifier)
    if dataset is None or dataset.state == "deleted":
        return None
    return _of_dataset("dataset", identifier, session, dataset, dataset)


@loaders.register("request")
def _request(session: Session, identifier: str) -> Target | None:
    request = session.get(AccessRequest, identifier)
    if request is None:
        return None
    return Target(
        kind="request",
        id=identifier,
        organisation_id=request.dataset.organisation_id,
        requester_id=request.requester_id,
        item=request,
    )


@loaders.register("job")
def _job(session: Session, identifier: str) -> Target | None:
    job = session.get(Job, identifier)
    if job is None:
        return None
    owner = None if job.dataset is None else job.dataset.organisation_id
    return Target(kind="job", id=identifier, organisation_id=owner, requester_id=job.requester_id, item=job)


@loaders.register("synthetic")
def _synthetic(session: Session, identifier: str) -> Target | None:
    """Return a synthetic table that was released, by its job; the policy of its dataset governs it."""
    job = session.get(Job, identifier)
    is_released = job is not None and job.plan.get("operation") == Operation.SYNTH_GENERATE and job.state == "done"
    if job is None or job.dataset is None or not is_released:
        return None
    return Target(
        kind="synthetic",
        id=identifier,
        organisation_id=job.dataset.organisation_id,
        requester_id=job.requester_id,
        policy=None if job.dataset.state == "deleted" else current_policy(session, "dataset", job.dataset.id),
        item=job,
    )


@loaders.register("survey")
def _survey(session: Session, identifier: str) -> Target | None:
    """Return a survey by its id, or by the part of its public address that cannot be guessed."""
    found = session.scalars(
        select(HubSurvey).where(or_(HubSurvey.id == identifier, HubSurvey.slug == identifier))
    ).one_or_none()
    if found is None:
        return None
    return Target(
        kind="survey", id=found.id, organisation_id=found.organisation_id, requester_id=found.author_id, item=found
    )


@loaders.register("algorithm")
def _algorithm(session: Session, identifier: str) -> Target | None:
    """Return an algorithm; everybody may see it once one of its versions was published."""
    found = session.get(HubAlgorithm, identifier)
    if found is None:
        return None
    published = select(AlgorithmVersion.id).where(
        AlgorithmVersion.algorithm_id == identifier, AlgorithmVersion.published.is_not(None)
    )
    is_public = session.scalars(published.limit(1)).first() is not None
    return Target(
        kind="algorithm",
        id=identifier,
        organisation_id=found.organisation_id,
        provider_id=found.provider_id,
        policy=Policy(object_id=identifier, discoverable=is_public),
        item=found,
    )


def _of_dataset(kind: str, identifier: str, session: Session, dataset: Dataset, item: Any) -> Target:
    return Target(
        kind=kind,
        id=identifier,
        organisation_id=dataset.organisation_id,
        policy=current_policy(session, "dataset", dataset.id),
        item=item,
    )
