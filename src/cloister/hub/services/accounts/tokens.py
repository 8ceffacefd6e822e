"""Tokens for programs: for some actions, for some time, shown once, kept as digests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.errors import ConflictError, NotFoundError, ParameterError, did_you_mean
from cloister.hub.domain import actions
from cloister.hub.domain.names import check_title
from cloister.hub.domain.roles import Subject
from cloister.hub.services import auditing
from cloister.hub.services.sessions import digest_of
from cloister.hub.store.models import ApiToken, new_id, now
from cloister.hub.store.models.base import random_text

PREFIX = "clst_"
MOST_DAYS = 365
MOST_TOKENS = 50


@dataclass(frozen=True, slots=True)
class NewToken:
    """A new token and its secret, which is shown once."""

    token: ApiToken
    secret: str


def known_scopes() -> list[str]:
    """Return every scope: each action that a token may do, each family of them, and everything."""
    names = [action.name for action in actions.all_actions() if not action.is_public and not action.needs_sign_in]
    return [*sorted({f"{name.partition('.')[0]}.*" for name in names} | set(names)), "*"]


def make_token(session: Session, *, by: Subject, name: str, scopes: Iterable[str], days: int) -> NewToken:
    """Make a token of one's own; it can never do more than the account can at that moment."""
    clean = check_title(name, what="name of the token")
    wanted, known = sorted(set(scopes)), known_scopes()
    for scope in wanted:
        if scope not in known:
            raise ParameterError(
                f'There is no scope "{scope[:60]}".{did_you_mean(scope, known)}', fix="use the names of actions."
            )
    if not wanted or not 1 <= days <= MOST_DAYS:
        raise ParameterError(
            "A token is for something and ends some day.", fix=f"give a scope, and 1 to {MOST_DAYS} days."
        )
    _check_number(session, by)
    secret = PREFIX + random_text(32)
    token = ApiToken(
        id=new_id("tok"),
        user_id=by.user_id,
        name=clean,
        digest=digest_of(secret),
        scopes=wanted,
        expires=now() + timedelta(days=days),
    )
    session.add(token)
    session.flush()
    _log(session, by, token, change="token made", scopes=wanted[:20], days=days)
    return NewToken(token, secret)


def list_tokens(session: Session, user_id: str) -> list[ApiToken]:
    """Return the tokens of somebody that are not revoked, the newest first."""
    return list(
        session.scalars(
            select(ApiToken)
            .where(ApiToken.user_id == user_id, ApiToken.revoked.is_(None))
            .order_by(ApiToken.created.desc(), ApiToken.id)
        )
    )


def revoke_token(session: Session, token_id: str, *, by: Subject) -> None:
    """End a token of one's own."""
    token = session.get(ApiToken, token_id)
    if token is None or token.user_id != by.user_id or token.revoked is not None:
        raise NotFoundError("There is no such token of yours.", fix="look at the list of your tokens.")
    token.revoked = now()
    _log(session, by, token, change="token revoked")


def _check_number(session: Session, by: Subject) -> None:
    counted = select(func.count()).where(
        ApiToken.user_id == by.user_id, ApiToken.revoked.is_(None), ApiToken.expires > now()
    )
    if int(session.scalar(counted) or 0) >= MOST_TOKENS:
        raise ConflictError(f"You have {MOST_TOKENS} tokens.", fix="revoke those that you do not use.")


def _log(session: Session, by: Subject, token: ApiToken, **details: Any) -> None:
    auditing.append(session, actions.CHANGE_SELF, by=by, target=f"token:{token.id}", **details)
