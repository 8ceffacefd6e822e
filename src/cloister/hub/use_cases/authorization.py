"""Authorization, the one place that decides whether somebody may do something: role, token scope, relation, policy.

Actions are about objects: who stands how to them, and which policy governs them. Each kind of object has one loader,
registered here; the gateway knows no object itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.core.registry import Registry
from cloister.core.wordings import a_or_an
from cloister.errors import ForbiddenError, NotFoundError, NotSignedInError
from cloister.hub.domain.actions import CHANGE_SELF, SEE_HOME, SEE_SELF, SIGN_OUT, Action, ObjectRelation
from cloister.hub.domain.decisions import Decision, RequestContext, decide
from cloister.hub.domain.operations import PolicyOperation
from cloister.hub.domain.policy import AlgorithmReference, Policy
from cloister.hub.domain.policy_file import policy_from_dict
from cloister.hub.domain.roles import AccessSubject, AccountRole
from cloister.hub.store.models import (
    AccessRequestRecord,
    AlgorithmVersion,
    Dataset,
    HubAlgorithm,
    HubSurvey,
    Job,
    PolicyVersion,
)
from cloister.hub.use_cases.sessions import SignedIn


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTarget:
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

    def relations(self, subject: AccessSubject) -> frozenset[ObjectRelation]:
        """Return what somebody is to the object. An institution's data owners own its data; algorithms have none."""
        found = set()
        is_theirs = self.organisation_id is not None and self.organisation_id == subject.organisation_id
        if is_theirs and self.provider_id is None and AccountRole.DATA_OWNER in subject.roles:
            found.add(ObjectRelation.OWNER)
        if self._is_provided_by(subject):
            found.add(ObjectRelation.PROVIDER)
        if is_theirs:
            found.add(ObjectRelation.MEMBER)
        if self.requester_id == subject.user_id:
            found.add(ObjectRelation.REQUESTER)
        return frozenset(found)

    def _is_provided_by(self, subject: AccessSubject) -> bool:
        if self.provider_id is None or AccountRole.ALGORITHM_PROVIDER not in subject.roles:
            return False
        if self.organisation_id is None:
            return self.provider_id == subject.user_id
        return self.organisation_id == subject.organisation_id


Loader = Callable[[Session, str], ActionTarget | None]
loaders: Registry[Loader] = Registry("kind of object")


def load_target(session: Session, kind: str, identifier: str) -> ActionTarget | None:
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
def _dataset(session: Session, identifier: str) -> ActionTarget | None:
    dataset = session.get(Dataset, identifier)
    if dataset is None or dataset.state == "deleted":
        return None
    return _of_dataset("dataset", identifier, session, dataset, dataset)


@loaders.register("request")
def _request(session: Session, identifier: str) -> ActionTarget | None:
    request = session.get(AccessRequestRecord, identifier)
    if request is None:
        return None
    return ActionTarget(
        kind="request",
        id=identifier,
        organisation_id=request.dataset.organisation_id,
        requester_id=request.requester_id,
        item=request,
    )


@loaders.register("job")
def _job(session: Session, identifier: str) -> ActionTarget | None:
    job = session.get(Job, identifier)
    if job is None:
        return None
    owner = None if job.dataset is None else job.dataset.organisation_id
    return ActionTarget(kind="job", id=identifier, organisation_id=owner, requester_id=job.requester_id, item=job)


@loaders.register("synthetic")
def _synthetic(session: Session, identifier: str) -> ActionTarget | None:
    """Return a synthetic table that was released, by its job; the policy of its dataset governs it."""
    job = session.get(Job, identifier)
    is_released = (
        job is not None and job.plan.get("operation") == PolicyOperation.SYNTH_GENERATE and job.state == "done"
    )
    if job is None or job.dataset is None or not is_released:
        return None
    return ActionTarget(
        kind="synthetic",
        id=identifier,
        organisation_id=job.dataset.organisation_id,
        requester_id=job.requester_id,
        policy=None if job.dataset.state == "deleted" else current_policy(session, "dataset", job.dataset.id),
        item=job,
    )


@loaders.register("survey")
def _survey(session: Session, identifier: str) -> ActionTarget | None:
    """Return a survey by its id, or by the part of its public address that cannot be guessed."""
    found = session.scalars(
        select(HubSurvey).where(or_(HubSurvey.id == identifier, HubSurvey.slug == identifier))
    ).one_or_none()
    if found is None:
        return None
    return ActionTarget(
        kind="survey", id=found.id, organisation_id=found.organisation_id, requester_id=found.author_id, item=found
    )


@loaders.register("algorithm")
def _algorithm(session: Session, identifier: str) -> ActionTarget | None:
    """Return an algorithm; everybody may see it once one of its versions was published."""
    found = session.get(HubAlgorithm, identifier)
    if found is None:
        return None
    published = select(AlgorithmVersion.id).where(
        AlgorithmVersion.algorithm_id == identifier, AlgorithmVersion.published.is_not(None)
    )
    is_public = session.scalars(published.limit(1)).first() is not None
    return ActionTarget(
        kind="algorithm",
        id=identifier,
        organisation_id=found.organisation_id,
        provider_id=found.provider_id,
        policy=Policy(object_id=identifier, discoverable=is_public),
        item=found,
    )


def _of_dataset(kind: str, identifier: str, session: Session, dataset: Dataset, item: Any) -> ActionTarget:
    return ActionTarget(
        kind=kind,
        id=identifier,
        organisation_id=dataset.organisation_id,
        policy=current_policy(session, "dataset", dataset.id),
        item=item,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Somebody who may do something: what the gateway hands to a route."""

    action: Action
    subject: AccessSubject | None
    target: ActionTarget | None = None
    decision: Decision | None = None
    reason: str = ""

    @property
    def person(self) -> AccessSubject:
        """Return who asks, where the action is not public."""
        if self.subject is None:
            raise NotSignedInError("Nobody is signed in.", fix="sign in first.")
        return self.subject

    @property
    def object(self) -> ActionTarget:
        """Return what the action is about, where it is about something."""
        if self.target is None:
            raise NotFoundError("This is about nothing.", fix="check the address.")
        return self.target


def authorize(
    session: Session, action: Action, *, subject: AccessSubject | None, target_id: str | None = None
) -> Access:
    """Return the access, or raise: unknown objects and hidden ones are refused alike."""
    if action.is_public and action.target is None:
        return Access(action=action, subject=subject, reason="public")
    if subject is None and not action.is_public:
        raise NotSignedInError("Nobody is signed in.", fix="sign in, or send a token: Authorization: Bearer …")
    if subject is not None:
        _check_scope(action, subject)
        _check_role(action, subject)
    if action.target is None:
        return Access(action=action, subject=subject, reason="role")
    target = None if target_id is None else load_target(session, action.target, target_id)
    if target is None:
        raise _unseen(action)
    return _about(action, subject, target)


_WITHOUT_FACTOR = frozenset({SEE_SELF, CHANGE_SELF, SEE_HOME, SIGN_OUT})
"""What a data owner may do before there is a second factor: set one up."""


def lacks_owners_factor(signed_in: SignedIn) -> bool:
    """Return whether somebody who decides about data came in with a password alone."""
    return signed_in.lacks_factor and AccountRole.DATA_OWNER in signed_in.subject.roles


def check_factor(action: Action, signed_in: SignedIn) -> None:
    """Raise where a data owner without a second factor does more than setting one up."""
    if lacks_owners_factor(signed_in) and not action.is_public and action not in _WITHOUT_FACTOR:
        raise ForbiddenError(
            "Data owners of this hub need a second factor before they do anything else.",
            fix="set one up on your account page (/account).",
        )


def decide_operation(
    target: ActionTarget,
    subject: AccessSubject,
    operation: PolicyOperation,
    *,
    purpose: str | None = None,
    algorithm: AlgorithmReference | None = None,
    cost: Budget | None = None,
) -> Decision:
    """Return what an object's policy says now; without a policy, only owners may do anything."""
    is_owner = ObjectRelation.OWNER in target.relations(subject)
    context = RequestContext(
        now=datetime.now(UTC),
        owners=frozenset({subject.user_id} if is_owner else ()),
        owner_organisation=target.organisation_id,
        purpose=purpose,
        algorithm=algorithm,
        cost=cost,
    )
    return decide(target.policy or Policy(object_id=target.id), subject, operation, context)


def _about(action: Action, subject: AccessSubject | None, target: ActionTarget) -> Access:
    if action.is_public and not action.relations and action.operation is None:
        return Access(action=action, subject=subject, target=target, reason="public")
    if subject is None:
        raise NotSignedInError("Nobody is signed in.", fix="sign in first.")
    held = target.relations(subject) & action.relations
    if held:
        return Access(action=action, subject=subject, target=target, reason=f"is the {min(held)}")
    if action.operation is not None:
        decision = decide_operation(target, subject, PolicyOperation(action.operation))
        if decision.allowed:
            return Access(action=action, subject=subject, target=target, decision=decision, reason=decision.reason)
        if not decide_operation(target, subject, PolicyOperation.DISCOVER).allowed:
            raise _unseen(action)
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")
    if target.policy is not None and decide_operation(target, subject, PolicyOperation.DISCOVER).allowed:
        raise ForbiddenError(f"Only its owner may {action.sentence}.", fix="ask the owner.")
    raise _unseen(action)


def _check_scope(action: Action, subject: AccessSubject) -> None:
    if subject.scopes is None or action.is_public:
        return
    if action.needs_sign_in:
        raise ForbiddenError("No token may do this.", fix="sign in yourself.")
    family = action.name.partition(".")[0]
    if not subject.scopes & {action.name, f"{family}.*", "*"}:
        raise ForbiddenError(
            f"This token is not for {action.name}.", fix=f"make a token with the scope {action.name} or {family}.*"
        )


def _check_role(action: Action, subject: AccessSubject) -> None:
    if action.roles and not action.roles & subject.roles:
        names = " or ".join(sorted(role.words for role in action.roles))
        raise ForbiddenError(
            f"Only {a_or_an(names)} may {action.sentence}.", fix="ask the hub's operator for the role."
        )


def _unseen(action: Action) -> NotFoundError:
    kind = action.target or "page"
    return NotFoundError(f"There is no such {kind}, or you may not see it.", fix="check the address.")
