"""Packages that take long to load, loaded when they are first used."""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ["late_module"]


def late_module(name: str) -> Any:  # a module, which is not known before it is loaded
    """Return a module that is loaded at the first use of one of its names.

    >>> late_module("statistics").mean([1, 3])
    2
    """
    if name in sys.modules:
        return sys.modules[name]
    return _Late(name)


class _Late:
    """Stands for a module until it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<module {self._name!r}, loaded when it is used>"
