"""What the hub does by itself now and then: note what expired, point out unusual days, remove what nobody finished."""

from __future__ import annotations

from datetime import timedelta

from cloister.hub.hub import Hub
from cloister.hub.services import profiling
from cloister.hub.services.access.deciding import expire_due

__all__ = ["EVERY", "do_upkeep"]

EVERY = timedelta(minutes=15)
"""How often upkeep is done."""


def do_upkeep(hub: Hub) -> None:
    """Do what is due; doing it twice changes nothing."""
    with hub.store.writing() as session:
        expire_due(session)
    with hub.store.writing() as session:
        profiling.alert(session)
    hub.blobs.sweep()
