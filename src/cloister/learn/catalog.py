"""Every private estimator that there is, by the name under which it is registered."""

from __future__ import annotations

import importlib
import threading
from typing import Any

from cloister.core.registry import Registry
from cloister.errors import MissingExtraError
from cloister.learn import estimator_homes

__all__ = ["load_all", "names"]

_LOADING = threading.Lock()


def names() -> tuple[str, ...]:
    """Return the names of all estimators, none of which is loaded for it.

    >>> names()[0]
    'categorical_nb'
    """
    return tuple(estimator_homes())


def load_all() -> Registry[type[Any]]:
    """Load all estimators, and return the registry that holds them.

    What needs an extra that is not installed is left out.

    >>> "gaussian_nb" in list(load_all())
    True
    """
    from cloister.learn.base import estimators

    # Importing takes long, and several requests to a hub may be the first ones at once.
    with _LOADING:
        for name, (kind, home) in estimator_homes().items():
            if name in list(estimators):
                continue
            try:
                estimators.register(name)(getattr(importlib.import_module(home), kind))
            except MissingExtraError:
                continue
    return estimators
