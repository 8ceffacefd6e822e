"""Services: what a user runs on data. Importing this package imports its modules, each of which registers its own."""

from __future__ import annotations

import importlib
import pkgutil

from cloister.hub.services.registry import service_registry

__all__ = ["service_registry"]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
