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
            try:
                member = getattr(importlib.import_module(home), kind)
            except MissingExtraError:
                continue
            # Whatever else has taken the name is not passed over in silence: it would be trained in place of ours.
            if name not in list(estimators) or estimators.get(name) is not member:
                estimators.register(name)(member)
    return estimators
