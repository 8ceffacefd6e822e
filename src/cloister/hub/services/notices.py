"""Lines on people's start pages."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.hub.domain.roles import Role
from cloister.hub.store.models import Notice, User, new_id

__all__ = ["notify", "notify_owners"]


def notify(session: Session, user_id: str, text: str, *, link: str = "") -> None:
    """Leave a line for one person."""
    session.add(Notice(id=new_id("notice"), user_id=user_id, text=text, link=link))


def notify_owners(session: Session, organisation_id: str, text: str, *, link: str = "", but: str = "") -> None:
    """Leave a line for every data owner of an institution, but not for the one who knows already."""
    members = session.scalars(
        select(User).where(User.organisation_id == organisation_id, User.is_disabled.is_(False)).order_by(User.id)
    )
    for user in members:
        if Role.DATA_OWNER in user.roles and user.id != but:
            notify(session, user.id, text, link=link)
