"""The one place that decides whether somebody may do something: role, token scope, relation, then policy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from cloister.accounting.budget import Budget
from cloister.errors import ForbiddenError, NotFoundError, NotSignedInError, a_or_an
from cloister.hub.domain.actions import CHANGE_SELF, SEE_HOME, SEE_SELF, SIGN_OUT, Action, Relation
from cloister.hub.domain.decisions import Context, Decision, decide
from cloister.hub.domain.policy import Algorithm, Operation, Policy
from cloister.hub.domain.roles import Role, Subject
from cloister.hub.services.sessions import SignedIn
from cloister.hub.services.targets import Target, load_target


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Somebody who may do something: what the gateway hands to a route."""

    action: Action
    subject: Subject | None
    target: Target | None = None
    decision: Decision | None = None
    reason: str = ""

    @property
    def person(self) -> Subject:
        """Return who asks, where the action is not public."""
        if self.subject is None:
            raise NotSignedInError("Nobody is signed in.", fix="sign in first.")
        return self.subject

    @property
    def object(self) -> Target:
        """Return what the action is about, where it is about something."""
        if self.target is None:
            raise NotFoundError("This is about nothing.", fix="check the address.")
        return self.target


def authorize(session: Session, action: Action, *, subject: Subject | None, target_id: str | None = None) -> Access:
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
    return signed_in.lacks_factor and Role.DATA_OWNER in signed_in.subject.roles


def check_factor(action: Action, signed_in: SignedIn) -> None:
    """Raise where a data owner without a second factor does more than setting one up."""
    if lacks_owners_factor(signed_in) and not action.is_public and action not in _WITHOUT_FACTOR:
        raise ForbiddenError(
            "Data owners of this hub need a second factor before they do anything else.",
            fix="set one up on your account page (/account).",
        )


def decide_operation(
    target: Target,
    subject: Subject,
    operation: Operation,
    *,
    purpose: str | None = None,
    algorithm: Algorithm | None = None,
    cost: Budget | None = None,
) -> Decision:
    """Return what an object's policy says now; without a policy, only owners may do anything."""
    is_owner = Relation.OWNER in target.relations(subject)
    context = Context(
        now=datetime.now(UTC),
        owners=frozenset({subject.user_id} if is_owner else ()),
        owner_organisation=target.organisation_id,
        purpose=purpose,
        algorithm=algorithm,
        cost=cost,
    )
    return decide(target.policy or Policy(object_id=target.id), subject, operation, context)


def _about(action: Action, subject: Subject | None, target: Target) -> Access:
    if action.is_public and not action.relations and action.operation is None:
        return Access(action=action, subject=subject, target=target, reason="public")
    if subject is None:
        raise NotSignedInError("Nobody is signed in.", fix="sign in first.")
    held = target.relations(subject) & action.relations
    if held:
        return Access(action=action, subject=subject, target=target, reason=f"is the {min(held)}")
    if action.operation is not None:
        decision = decide_operation(target, subject, Operation(action.operation))
        if decision.allowed:
            return Access(action=action, subject=subject, target=target, decision=decision, reason=decision.reason)
        if not decide_operation(target, subject, Operation.DISCOVER).allowed:
            raise _unseen(action)
        raise ForbiddenError(decision.public_reason, fix="ask the owner for access on the dataset's page.")
    if target.policy is not None and decide_operation(target, subject, Operation.DISCOVER).allowed:
        raise ForbiddenError(f"Only its owner may {action.sentence}.", fix="ask the owner.")
    raise _unseen(action)


def _check_scope(action: Action, subject: Subject) -> None:
    if subject.scopes is None or action.is_public:
        return
    if action.needs_sign_in:
        raise ForbiddenError("No token may do this.", fix="sign in yourself.")
    family = action.name.partition(".")[0]
    if not subject.scopes & {action.name, f"{family}.*", "*"}:
        raise ForbiddenError(
            f"This token is not for {action.name}.", fix=f"make a token with the scope {action.name} or {family}.*"
        )


def _check_role(action: Action, subject: Subject) -> None:
    if action.roles and not action.roles & subject.roles:
        names = " or ".join(sorted(role.words for role in action.roles))
        raise ForbiddenError(
            f"Only {a_or_an(names)} may {action.sentence}.", fix="ask the hub's operator for the role."
        )


def _unseen(action: Action) -> NotFoundError:
    kind = action.target or "page"
    return NotFoundError(f"There is no such {kind}, or you may not see it.", fix="check the address.")
