"""Institutions and accounts, made, changed and listed by operators.

An operator gives roles but gets no data by it: nobody changes their own account; who runs or audits the hub holds no
other role; and whoever is to join the data owners of an institution must be confirmed by one of them, or by an auditor
where none is left, and until then their account stays as it was. Roles never replace a policy. Whoever runs the machine
itself can read what the hub can read: these rules bind operators of the application, and leave a trace for all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cloister.core.wordings import a_or_an
from cloister.errors import ConflictError, ForbiddenError, NotFoundError, ParameterError
from cloister.hub.domain import actions
from cloister.hub.domain.roles import AccessSubject, AccountRole, check_roles
from cloister.hub.domain.untrusted_input import check_account_name, check_title, fold_name
from cloister.hub.store.models import (
    ApiToken,
    Dataset,
    Enrolment,
    HubSurvey,
    Identity,
    NoticeRecord,
    Organisation,
    User,
    new_id,
    now,
)
from cloister.hub.use_cases import audit_log
from cloister.hub.use_cases.accounts.second_factor import is_on
from cloister.hub.use_cases.sessions import close_logins

GUARDS = frozenset({AccountRole.OPERATOR, AccountRole.AUDITOR})
"""Who runs or audits the hub, and may be the second person that a reset needs."""

MOST_ATTRIBUTES = 20
LONGEST_ATTRIBUTE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changes about an account; None leaves it as it is. An organisation of "" takes it away."""

    display_name: str | None = None
    organisation_id: str | None = None
    roles: tuple[str, ...] | None = None
    attributes: Mapping[str, str] | None = None
    is_disabled: bool | None = None


def create_organisation(session: Session, name: str, *, by: AccessSubject | None) -> Organisation:
    """Make an institution whose name is not only another spelling of one that is there."""
    clean = check_title(name, what="name of the organisation")
    _check_new_organisation(session, clean)
    made = Organisation(id=new_id("org"), name=clean)
    session.add(made)
    session.flush()
    _log(session, by, f"organisation:{made.id}", change="created")
    return made


def rename_organisation(session: Session, organisation_id: str, name: str, *, by: AccessSubject | None) -> Organisation:
    """Give an institution another name."""
    found = _organisation(session, organisation_id)
    clean = check_title(name, what="name of the organisation")
    if fold_name(clean) != found.folded:
        _check_new_organisation(session, clean)
    found.name, found.folded = clean, fold_name(clean)
    _log(session, by, f"organisation:{found.id}", change="renamed")
    return found


def create_account(
    session: Session,
    name: str,
    *,
    by: AccessSubject | None,
    roles: Iterable[str] = (),
    organisation_id: str | None = None,
    display_name: str = "",
    attributes: Mapping[str, str] | None = None,
    separate: bool = True,
) -> User:
    """Make an account without a password: its holder sets one by an enrolment link.

    Args:
        session: a writing session.
        name: what its holder types; small letters and digits.
        by: the operator, or None for whoever sets up the hub at its own machine, who needs no confirmation.
        roles: what it may try.
        organisation_id: the institution, if any.
        display_name: how it is shown.
        attributes: facts that policies may use.
        separate: the setting ``separate_duties``.
    """
    clean = check_account_name(name)
    # Folded names are compared, so that nobody gets a name that looks like another one.
    if session.scalar(select(User.id).where(User.folded == fold_name(clean))) is not None:
        raise ConflictError("This name is taken.", fix="choose another name for the account.")
    user = User(id=new_id("usr"), name=clean)
    session.add(user)
    session.flush()
    change = Change(
        display_name=display_name,
        organisation_id=organisation_id or "",
        roles=tuple(roles),
        attributes=attributes or {},
    )
    _log(session, by, f"account:{user.id}", change="created")
    _apply(session, user, change, by=by, separate=separate)
    return user


def change_account(
    session: Session, account_id: str, change: Change, *, by: AccessSubject, separate: bool = True
) -> User:
    """Change an account; its sign-ins and tokens see that at once, and end when it is disabled."""
    user = get_account(session, account_id)
    if user.id == by.user_id:
        raise ForbiddenError("Nobody changes their own account.", fix="ask another operator.")
    _apply(session, user, change, by=by, separate=separate)
    return user


def confirm_owner(session: Session, account_id: str, *, by: AccessSubject) -> User:
    """Let somebody join the data owners of an institution, as one of them, or as an auditor where none is left."""
    user = get_account(session, account_id)
    proposed = user.proposed
    if proposed is None:
        raise NotFoundError("There is nothing to confirm for this account.", fix="look at the list of people again.")
    organisation_id = proposed["organisation_id"]
    owners = owners_of(session, organisation_id)
    is_owner = any(owner.id == by.user_id for owner in owners)
    # An auditor speaks only where no owner is left, or operators and auditors could make owners by themselves.
    if user.id == by.user_id or not (is_owner or (not owners and AccountRole.AUDITOR in by.roles)):
        raise ForbiddenError(
            "Only a data owner of that institution may confirm this, or an auditor where it has none left.",
            fix="ask one of them.",
        )
    _give(session, user, list(proposed["roles"]), organisation_id)
    user.proposed = None
    _log(session, by, f"account:{user.id}", action=actions.CONFIRM_ACCOUNT, change="confirmed", roles=user.roles)
    return user


def get_account(session: Session, account_id: str) -> User:
    """Return an account, or raise."""
    found = session.get(User, account_id)
    if found is None:
        raise NotFoundError("There is no such account.", fix="look at the list of people.")
    return found


def owners_of(session: Session, organisation_id: str) -> list[User]:
    """Return the data owners of an institution who can sign in."""
    there = session.scalars(select(User).where(User.organisation_id == organisation_id, User.is_disabled.is_(False)))
    return [user for user in there if AccountRole.DATA_OWNER in user.roles]


def _apply(session: Session, user: User, change: Change, *, by: AccessSubject | None, separate: bool) -> None:
    changed: dict[str, Any] = {}
    if change.display_name is not None:
        user.display_name = check_title(change.display_name, what="shown name") if change.display_name else ""
    if change.attributes is not None:
        user.attributes = changed["attributes"] = _check_attributes(change.attributes)
    if change.roles is not None or change.organisation_id is not None:
        changed |= _place(session, user, change, by=by, separate=separate)
    if change.is_disabled is not None:
        user.is_disabled = changed["is_disabled"] = change.is_disabled
        # What is open ends now, and not when it would have run out.
        if change.is_disabled:
            end_everything(session, user.id)
    if changed:
        _log(session, by, f"account:{user.id}", change="changed", **changed)


def _place(session: Session, user: User, change: Change, *, by: AccessSubject | None, separate: bool) -> dict[str, Any]:
    roles = check_roles(user.roles if change.roles is None else change.roles, separate=separate)
    organisation_id = user.organisation_id if change.organisation_id is None else change.organisation_id or None
    if organisation_id is not None:
        _organisation(session, organisation_id)
    if AccountRole.DATA_OWNER in roles and organisation_id is None:
        raise ParameterError("A data owner belongs to an institution.", fix="choose the organisation too.")
    names = sorted(role.value for role in roles)
    joins_guards = (roles & GUARDS) - {AccountRole(name) for name in user.roles}
    if by is not None and joins_guards and has_way_in(session, user):
        # Whoever made the account may know its password; one without a way in is opened by two, see `enrolment`.
        raise ForbiddenError(
            f"Nobody who can sign in already becomes {a_or_an(min(joins_guards).words)}.",
            fix="make a new account with that role; a second person confirms its link.",
        )
    # Whatever was asked for before was asked about the account as it was then.
    user.proposed = None
    if by is not None and organisation_id is not None and _joins_owners(session, user, roles, organisation_id):
        user.proposed = {"roles": names, "organisation_id": organisation_id}
        _ask_owners(session, user, organisation_id)
        return {"proposed": user.proposed}
    _give(session, user, names, organisation_id)
    return {"roles": names, "organisation_id": organisation_id}


def _give(session: Session, user: User, roles: list[str], organisation_id: str | None) -> None:
    """Give roles and a place; what was asked for and confirmed for the account as it was before is void then."""
    # A link that was confirmed for another role or institution must not open this one.
    if (sorted(user.roles), user.organisation_id) != (sorted(roles), organisation_id):
        ending = update(Enrolment).where(Enrolment.user_id == user.id, Enrolment.used.is_(None))
        session.execute(ending.values(used=now()))
        user.factor_reset_asked_by = None
    user.roles, user.organisation_id = roles, organisation_id


def _joins_owners(session: Session, user: User, roles: frozenset[AccountRole], organisation_id: str) -> bool:
    is_one = user.organisation_id == organisation_id and AccountRole.DATA_OWNER in user.roles
    return AccountRole.DATA_OWNER in roles and not is_one and _has_something_to_own(session, organisation_id)


def _has_something_to_own(session: Session, organisation_id: str) -> bool:
    there = session.scalars(select(User).where(User.organisation_id == organisation_id))
    # Owners who cannot sign in count as well: their institution is not free for the taking.
    return any(AccountRole.DATA_OWNER in user.roles for user in there) or has_data(session, organisation_id)


def has_way_in(session: Session, user: User) -> bool:
    """Return whether somebody can sign in to an account: by a password, or through another service."""
    identities = select(Identity.subject).where(Identity.user_id == user.id).limit(1)
    return user.password_hash is not None or user.totp_sealed is not None or session.scalar(identities) is not None


def has_data(session: Session, organisation_id: str) -> bool:
    """Return whether an institution has datasets or surveys."""
    datasets = select(Dataset.id).where(Dataset.organisation_id == organisation_id, Dataset.state != "deleted").limit(1)
    surveys = select(HubSurvey.id).where(HubSurvey.organisation_id == organisation_id).limit(1)
    return session.scalar(datasets) is not None or session.scalar(surveys) is not None


def _ask_owners(session: Session, user: User, organisation_id: str) -> None:
    for owner in owners_of(session, organisation_id):
        text = f"An operator asks you to confirm {user.name} as a data owner of your institution."
        session.add(NoticeRecord(id=new_id("ntc"), user_id=owner.id, text=text, link="/people/confirmations"))


def end_everything(session: Session, user_id: str) -> None:
    """End all sign-ins of somebody and revoke all their tokens."""
    close_logins(session, user_id)
    for token in session.scalars(select(ApiToken).where(ApiToken.user_id == user_id, ApiToken.revoked.is_(None))):
        token.revoked = now()


def _check_attributes(attributes: Mapping[str, str]) -> dict[str, str]:
    if len(attributes) > MOST_ATTRIBUTES or any(
        not name.isidentifier() or len(name) > 64 or len(value) > LONGEST_ATTRIBUTE
        for name, value in attributes.items()
    ):
        raise ParameterError(
            "The attributes are too many, too long, or not named by a word.",
            fix=f"give at most {MOST_ATTRIBUTES}, such as branch = oncology.",
        )
    return dict(attributes)


def _organisation(session: Session, organisation_id: str) -> Organisation:
    found = session.get(Organisation, organisation_id)
    if found is None:
        raise NotFoundError("There is no such organisation.", fix="look at the list of organisations.")
    return found


def _check_new_organisation(session: Session, name: str) -> None:
    if session.scalar(select(Organisation.id).where(Organisation.folded == fold_name(name))) is not None:
        raise ConflictError(
            "There is an organisation of this name, perhaps in another spelling.", fix="use it, or choose another name."
        )


def _log(
    session: Session,
    by: AccessSubject | None,
    target: str,
    *,
    action: actions.Action = actions.MANAGE_ACCOUNTS,
    **details: Any,
) -> None:
    audit_log.append(session, action, by=audit_log.HUB if by is None else by, target=target, **details)


PAGE = 100
LONGEST_PAGE = 500


def describe(user: User) -> dict[str, Any]:
    """Return an account as operators see it: no secrets, no sign-ins."""
    return {
        "id": user.id,
        "name": user.name,
        "display_name": user.display_name,
        "organisation_id": user.organisation_id,
        "organisation": None if user.organisation is None else user.organisation.name,
        "roles": sorted(user.roles),
        "attributes": dict(user.attributes),
        "is_disabled": user.is_disabled,
        "has_password": user.password_hash is not None,
        "has_second_factor": is_on(user),
        "proposed": user.proposed,
    }


def list_accounts(session: Session, *, after: str = "", limit: int = PAGE) -> tuple[list[dict[str, Any]], str | None]:
    """Return accounts in the order of their names, and the name to go on after, or None at the end."""
    size = min(limit, LONGEST_PAGE)
    found = list(session.scalars(select(User).where(User.name > after).order_by(User.name).limit(size + 1)))
    page = found[:size]
    return [describe(user) for user in page], page[-1].name if len(found) > size else None


def list_organisations(session: Session) -> list[dict[str, Any]]:
    """Return the institutions in the order of their names."""
    found = session.scalars(select(Organisation).order_by(Organisation.folded))
    return [{"id": item.id, "name": item.name, "since": item.created.isoformat()} for item in found]


def list_proposed(session: Session, subject: AccessSubject) -> list[dict[str, Any]]:
    """Return the people whom somebody may confirm as data owners."""
    waiting = [user for user in session.scalars(select(User).order_by(User.name)) if user.proposed is not None]
    return [
        {"id": user.id, "name": user.name, "display_name": user.display_name, "roles": (user.proposed or {})["roles"]}
        for user in waiting
        if _may_confirm(session, subject, (user.proposed or {})["organisation_id"])
    ]


def _may_confirm(session: Session, subject: AccessSubject, organisation_id: str) -> bool:
    owners = owners_of(session, organisation_id)
    if any(owner.id == subject.user_id for owner in owners):
        return True
    return not owners and AccountRole.AUDITOR in subject.roles
