"""The JSON API under ``/api/v1``: one module per noun, each with a ``router``."""

from __future__ import annotations

from cloister.hub.gateway import GuardedRouter, load_routers


def routers() -> list[GuardedRouter]:
    """Return the routers of all modules here, in the order of their names."""
    return load_routers(__name__, __path__)
