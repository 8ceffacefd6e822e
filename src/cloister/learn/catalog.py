"""Every private estimator that there is, by the name under which it is registered."""

from __future__ import annotations

import importlib
from typing import Any

from cloister.core.registry import Registry
from cloister.errors import MissingExtraError
from cloister.learn import homes

__all__ = ["load_all"]


def load_all() -> Registry[type[Any]]:
    """Import the homes of all estimators, and return the registry that they have filled.

    What needs an extra that is not installed is left out.

    >>> "gaussian_nb" in list(load_all())
    True
    """
    from cloister.learn.base import estimators

    for home in sorted(set(homes().values())):
        try:
            importlib.import_module(home)
        except MissingExtraError:
            continue
    return estimators
