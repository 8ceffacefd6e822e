"""The JSON API under ``/api/v1``: one module per noun, each with a ``router``."""

from __future__ import annotations

import importlib
import pkgutil

from cloister.hub.gateway import GuardedRouter


def routers() -> list[GuardedRouter]:
    """Return the routers of all modules here, in the order of their names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return [value for module in modules for value in vars(module).values() if isinstance(value, GuardedRouter)]
