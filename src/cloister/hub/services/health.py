"""Whether a hub can do its work."""

from __future__ import annotations

from sqlalchemy import text

from cloister.hub.hub import Hub


def check_health(hub: Hub) -> None:
    """Raise `HubUnavailableError` if the database does not answer."""
    with hub.store.reading() as session:
        session.execute(text("SELECT 1"))
