"""One's own account: password, second factor, tokens and sign-ins; and one's own start page as JSON."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from cloister.hub.domain import actions
from cloister.hub.domain.untrusted_input import RequestBody
from cloister.hub.gateway import CurrentAccess, CurrentHub, CurrentSignIn, GuardedRouter, identity
from cloister.hub.use_cases import home
from cloister.hub.use_cases.accounts import oidc_login, own_account, second_factor
from cloister.hub.use_cases.authorization import lacks_owners_factor

router = GuardedRouter(tags=["account"])

Password = Annotated[str, Field(max_length=1024)]
Code = Annotated[str, Field(max_length=64)]


class PasswordChange(RequestBody):
    """The present password and the next."""

    current: Password
    new: Password


class FactorStart(RequestBody):
    """The present password, again, and a code of the authenticator that the new one would replace."""

    password: Password
    code: Code = ""


class FactorCode(RequestBody):
    """A code from the new authenticator."""

    code: Code


class FactorEnd(RequestBody):
    """The present password, again, and a code."""

    password: Password
    code: Code


class LinkStart(RequestBody):
    """The present password, again, where the account has one, and a code where it has a second factor."""

    password: Password = ""
    code: Code = ""


class TokenRequest(RequestBody):
    """What a token is for."""

    name: str = Field(max_length=200)
    scopes: list[str] = Field(max_length=100, description="Names of actions, families such as jobs.*, or *.")
    days: int = Field(90, ge=1, le=own_account.MOST_DAYS)


@router.guarded("GET", "/account", actions.SEE_SELF)
def see_account(hub: CurrentHub, signed_in: CurrentSignIn) -> dict[str, Any]:
    """Return everything that the hub knows about one's own account."""
    with hub.store.reading() as session:
        return {"schema": "cloister.account/1", **own_account.describe_own(session, signed_in)}


@router.guarded("PUT", "/account/password", actions.CHANGE_SELF)
def change_password(hub: CurrentHub, signed_in: CurrentSignIn, given: PasswordChange) -> dict[str, Any]:
    """Change one's own password; all other sign-ins end."""
    own_account.change_password(hub, signed_in, current=given.current, new=given.new)
    return {"schema": "cloister.password-change/1", "changed": "password"}


@router.guarded("POST", "/account/totp", actions.CHANGE_SELF)
def begin_factor(hub: CurrentHub, access: CurrentAccess, given: FactorStart) -> dict[str, Any]:
    """Make the secret of a new authenticator, shown once."""
    made = own_account.propose_factor(hub, access.person, password=given.password, code=given.code)
    return {
        "schema": "cloister.totp/1",
        "secret": made.secret,
        "address": made.address,
        "picture": second_factor.qr_picture(made.address),
    }


@router.guarded("POST", "/account/totp/confirmation", actions.CHANGE_SELF)
def confirm_factor(hub: CurrentHub, access: CurrentAccess, given: FactorCode) -> dict[str, Any]:
    """Begin to use the new authenticator; the answer holds the recovery codes, shown once."""
    return {
        "schema": "cloister.recovery-codes/1",
        "recovery_codes": own_account.confirm_factor(hub, access.person, code=given.code),
    }


@router.guarded("POST", "/account/totp/removal", actions.CHANGE_SELF)
def remove_factor(hub: CurrentHub, access: CurrentAccess, given: FactorEnd) -> dict[str, Any]:
    """Stop using a second factor."""
    own_account.remove_factor(hub, access.person, password=given.password, code=given.code)
    return {"schema": "cloister.totp-removal/1", "removed": True}


@router.guarded("GET", "/account/tokens", actions.SEE_SELF)
def list_tokens(hub: CurrentHub, access: CurrentAccess) -> dict[str, Any]:
    """List one's own tokens, without their secrets."""
    with hub.store.reading() as session:
        found = [own_account.describe_token(token) for token in own_account.list_tokens(session, access.person.user_id)]
    return {"schema": "cloister.api-tokens/1", "items": found, "next": None}


@router.guarded("POST", "/account/tokens", actions.CHANGE_SELF)
def make_token(hub: CurrentHub, access: CurrentAccess, given: TokenRequest) -> dict[str, Any]:
    """Make a token; the answer holds its secret, shown once."""
    with hub.store.writing() as session:
        made = own_account.make_token(session, by=access.person, name=given.name, scopes=given.scopes, days=given.days)
        described = own_account.describe_token(made.token)
    return {"schema": "cloister.api-token/1", **described, "secret": made.secret}


@router.guarded("DELETE", "/account/tokens/{token_id}", actions.CHANGE_SELF)
def revoke_token(hub: CurrentHub, access: CurrentAccess, token_id: str) -> dict[str, Any]:
    """End a token."""
    with hub.store.writing() as session:
        own_account.revoke_token(session, token_id, by=access.person)
    return {"schema": "cloister.api-token-end/1", "id": token_id, "revoked": True}


@router.guarded("GET", "/account/sign-ins", actions.SEE_SELF)
def list_sign_ins(hub: CurrentHub, signed_in: CurrentSignIn) -> dict[str, Any]:
    """List one's own open sign-ins."""
    with hub.store.reading() as session:
        return {"schema": "cloister.sign-ins/1", "items": own_account.list_sign_ins(session, signed_in), "next": None}


@router.guarded("DELETE", "/account/sign-ins/{login_id}", actions.CHANGE_SELF)
def end_sign_in(hub: CurrentHub, signed_in: CurrentSignIn, login_id: str) -> dict[str, Any]:
    """End one of one's own sign-ins."""
    with hub.store.writing() as session:
        own_account.end_sign_in(session, signed_in, login_id)
    return {"schema": "cloister.sign-ins-end/1", "ended": 1}


@router.guarded("DELETE", "/account/sign-ins", actions.CHANGE_SELF)
def end_all_sign_ins(response: Response, hub: CurrentHub, signed_in: CurrentSignIn) -> dict[str, Any]:
    """Sign out everywhere, here too."""
    with hub.store.writing() as session:
        ended = own_account.end_all_sign_ins(session, signed_in)
    identity.clear_cookies(response, hub.settings, identity.COOKIE, identity.CSRF_COOKIE)
    return {"schema": "cloister.sign-ins-end/1", "ended": ended}


@router.guarded("POST", "/account/identities", actions.CHANGE_SELF)
def begin_link(hub: CurrentHub, signed_in: CurrentSignIn, given: LinkStart | None = None) -> dict[str, Any]:
    """Get a ticket, good for two minutes, to link the account with another sign-in service."""
    said = given or LinkStart()
    own_account.prove_again(hub, signed_in, password=said.password, code=said.code)
    return {"schema": "cloister.identity/1", "ticket": oidc_login.link_ticket(hub, signed_in.subject)}


home_router = GuardedRouter(tags=["home"])


@home_router.guarded("GET", "/home", actions.SEE_HOME)
def see_home(hub: CurrentHub, signed_in: CurrentSignIn) -> dict[str, Any]:
    """Show what waits for you."""
    lacks_factor = hub.settings.owner_second_factor and lacks_owners_factor(signed_in)
    with hub.store.reading() as session:
        return home.start(session, signed_in.subject, is_demo=hub.settings.demo, lacks_factor=lacks_factor)


@home_router.guarded("POST", "/notices/read", actions.SEE_HOME, status_code=204)
def read_notices(hub: CurrentHub, access: CurrentAccess) -> Response:
    """Mark your notices as read."""
    with hub.store.writing() as session:
        home.read_notices(session, access.person)
    return Response(status_code=204)
