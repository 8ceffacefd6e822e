"""Accounts and institutions, for operators, and the links by which people set their passwords."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from cloister.hub.domain import actions
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, GuardedRouter
from cloister.hub.use_cases.accounts import administration, enrolment, second_factor
from cloister.hub.use_cases.accounts.administration import Change

router = GuardedRouter(tags=["people"])

Limit = Annotated[int, Query(ge=1, le=administration.LONGEST_PAGE)]


class NewAccount(RequestBody):
    """A new account, without a password."""

    name: str = Field(max_length=64, description="What its holder types: small letters, digits, . _ -")
    display_name: str = Field("", max_length=200)
    organisation_id: str | None = Field(None, max_length=64)
    roles: list[str] = Field(default_factory=list, max_length=10)
    attributes: dict[str, str] = Field(default_factory=dict, max_length=administration.MOST_ATTRIBUTES)


class AccountChange(RequestBody):
    """What changes; what is left out stays."""

    display_name: str | None = Field(None, max_length=200)
    organisation_id: str | None = Field(None, max_length=64, description='"" takes the organisation away.')
    roles: list[str] | None = Field(None, max_length=10)
    attributes: dict[str, str] | None = Field(None, max_length=administration.MOST_ATTRIBUTES)
    is_disabled: bool | None = None


class OrganisationName(RequestBody):
    """The name of an institution."""

    name: str = Field(max_length=200)


class NewPassword(RequestBody):
    """The password that somebody sets by a link."""

    password: str = Field(max_length=1024)


@router.guarded("GET", "/people", actions.LIST_ACCOUNTS)
def list_people(hub: CurrentHub, limit: Limit = administration.PAGE, after: str = "") -> dict[str, Any]:
    """List the accounts, in the order of their names."""
    with hub.store.reading() as session:
        items, following = administration.list_accounts(session, after=after, limit=limit)
    return {"schema": "cloister.people/1", "items": items, "next": following}


@router.guarded("POST", "/people", actions.MANAGE_ACCOUNTS)
def create_account(hub: CurrentHub, access: CurrentAccess, given: NewAccount) -> dict[str, Any]:
    """Make an account; its holder sets the password by an enrolment link."""
    with hub.store.writing() as session:
        user = administration.create_account(
            session, by=access.person, separate=hub.settings.separate_duties, **given.model_dump()
        )
        return _person(administration.describe(user))


@router.guarded("GET", "/people/confirmations", actions.SEE_CONFIRMATIONS)
def list_confirmations(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """List the people who wait for one's confirmation as data owners, and those whose sign-in is to be reset."""
    with hub.store.reading() as session:
        items = administration.list_proposed(session, access.person)
        resets = enrolment.list_resets(session, access.person)
    return {"schema": "cloister.confirmations/1", "items": items, "resets": resets, "next": None}


@router.guarded("GET", "/people/{account_id}", actions.LIST_ACCOUNTS)
def see_account(hub: CurrentHub, account_id: str) -> dict[str, Any]:
    """Return one account."""
    with hub.store.reading() as session:
        return _person(administration.describe(administration.get_account(session, account_id)))


@router.guarded("PATCH", "/people/{account_id}", actions.MANAGE_ACCOUNTS)
def change_account(hub: CurrentHub, access: CurrentAccess, account_id: str, given: AccountChange) -> dict[str, Any]:
    """Change or close an account."""
    roles = None if given.roles is None else tuple(given.roles)
    change = Change(**{**given.model_dump(), "roles": roles})
    with hub.store.writing() as session:
        user = administration.change_account(
            session, account_id, change, by=access.person, separate=hub.settings.separate_duties
        )
        session.flush()
        session.refresh(user)
        return _person(administration.describe(user))


@router.guarded("POST", "/people/{account_id}/confirmation", actions.CONFIRM_ACCOUNT)
def confirm_owner(hub: CurrentHub, access: CurrentAccess, account_id: str) -> dict[str, Any]:
    """Let somebody join the data owners of one's own institution."""
    with hub.store.writing() as session:
        user = administration.confirm_owner(session, account_id, by=access.person)
        session.flush()
        session.refresh(user)
        return _person(administration.describe(user))


@router.guarded("POST", "/people/{account_id}/reset-confirmation", actions.CONFIRM_RESET)
def confirm_reset(hub: CurrentHub, access: CurrentAccess, account_id: str) -> dict[str, Any]:
    """Confirm as a second person that a password or second factor is set or reset."""
    with hub.store.writing() as session:
        enrolment.confirm_reset(session, account_id, by=access.person)
    return {"schema": "cloister.reset-confirmation/1", "id": account_id, "confirmed": True}


@router.guarded("POST", "/people/{account_id}/enrolment", actions.MANAGE_ACCOUNTS)
def make_link(hub: CurrentHub, access: CurrentAccess, account_id: str) -> dict[str, Any]:
    """Make a one-time link, shown once, by which the holder of an account sets the password."""
    with hub.store.writing() as session:
        link = enrolment.make_link(session, account_id, by=access.person)
    return {
        "schema": "cloister.enrolment-link/1",
        "account": link.account,
        "link": f"{hub.settings.address}/enrol/{link.token}",
        "expires": link.expires.isoformat(),
        "waits": link.waits,
    }


@router.guarded("POST", "/people/{account_id}/factor-reset", actions.MANAGE_ACCOUNTS)
def reset_factor(hub: CurrentHub, access: CurrentAccess, account_id: str) -> dict[str, Any]:
    """Take away a second factor that was lost; that of an owner, operator or auditor once a second person confirms."""
    with hub.store.writing() as session:
        enrolment.reset_factor(session, account_id, by=access.person)
        has_factor = second_factor.is_on(administration.get_account(session, account_id))
    return {"schema": "cloister.factor-reset/1", "id": account_id, "has_second_factor": has_factor}


@router.guarded("GET", "/organisations", actions.LIST_ACCOUNTS)
def list_organisations(hub: CurrentHub) -> dict[str, Any]:
    """List the institutions."""
    with hub.store.reading() as session:
        items = administration.list_organisations(session)
    return {"schema": "cloister.organisations/1", "items": items, "next": None}


@router.guarded("POST", "/organisations", actions.MANAGE_ACCOUNTS)
def create_organisation(hub: CurrentHub, access: CurrentAccess, given: OrganisationName) -> dict[str, Any]:
    """Make an institution."""
    with hub.store.writing() as session:
        made = administration.create_organisation(session, given.name, by=access.person)
    return {"schema": "cloister.organisation/1", "id": made.id, "name": made.name}


@router.guarded("PATCH", "/organisations/{organisation_id}", actions.MANAGE_ACCOUNTS)
def rename_organisation(
    hub: CurrentHub, access: CurrentAccess, organisation_id: str, given: OrganisationName
) -> dict[str, Any]:
    """Give an institution another name."""
    with hub.store.writing() as session:
        found = administration.rename_organisation(session, organisation_id, given.name, by=access.person)
    return {"schema": "cloister.organisation/1", "id": found.id, "name": found.name}


@router.guarded("GET", "/enrolments/{token}", actions.ENROL)
def see_link(hub: CurrentHub, token: str) -> dict[str, Any]:
    """Say whose link it is."""
    with hub.store.reading() as session:
        link, user = enrolment.find_link(session, token)
        return {"schema": "cloister.enrolment/1", "account": user.name, "expires": link.expires.isoformat()}


@router.guarded("POST", "/enrolments/{token}", actions.ENROL)
def enrol(hub: CurrentHub, token: str, given: NewPassword) -> dict[str, Any]:
    """Set the password of the link's account; then sign in with it."""
    return {"schema": "cloister.enrolled/1", "account": enrolment.enrol(hub, token, given.password)}


def _person(described: dict[str, Any]) -> dict[str, Any]:
    return {"schema": "cloister.person/1", **described}
