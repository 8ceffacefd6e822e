"""Release tables that can be defended: models, algorithms, risk, loss and reports.

The package is also the function of its name: ``cloister.anonymize(table, models=[...])`` is `anonymizing.anonymize`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from cloister.anonymize.anonymizing import anonymize
from cloister.anonymize.release import Release

__all__ = ["Release", "anonymize"]


class _Package(ModuleType):
    """A package that can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Release:
        """Anonymize a table; see `anonymize`."""
        return anonymize(*arguments, **options)


_Package.__call__.__wrapped__ = anonymize  # type: ignore[attr-defined]  # what help() and signature() show
sys.modules[__name__].__class__ = _Package
