"""Packages that take long to load, loaded when they are first used, and those that may not be installed."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from cloister.errors import MissingExtraError

__all__ = ["late_module", "need_learning"]


def late_module(name: str) -> Any:  # a module, which is not known before it is loaded
    """Return a module that is loaded at the first use of one of its names.

    >>> late_module("statistics").mean([1, 3])
    2
    """
    if name in sys.modules:
        return sys.modules[name]
    return _Late(name)


def need_learning(what: str) -> None:
    """Return nothing if scikit-learn is there.

    Raises:
        MissingExtraError: if it is not.
    """
    try:
        import sklearn  # noqa: F401  # whether it is there
    except ImportError:
        raise MissingExtraError(what=what, package="scikit-learn", extra="learn") from None


class _Late:
    """Stands for a module until it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<module {self._name!r}, loaded when it is used>"
