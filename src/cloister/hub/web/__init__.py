"""The pages: one module per area, each with a ``router``; templates and native ES modules, no build step."""

from __future__ import annotations

from cloister.hub.gateway import GuardedRouter, load_routers


def routers() -> list[GuardedRouter]:
    """Return the routers of all modules here, in the order of their names."""
    return load_routers(__name__, __path__)
