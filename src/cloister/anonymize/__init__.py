"""Release tables that can be defended: models, algorithms, risk, loss and reports.

The package is also the function of its name, `anonymizing.anonymize`; ``help(cloister.anonymize.anonymize)`` tells all
that it takes:

    release = cloister.anonymize(table, models=[cloister.KAnonymity(k=5)], suppression_limit=0.02)
    release.write("protected.csv")
    release.report("release.html")
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from cloister.anonymize import operations
from cloister.anonymize.anatomy_release import AnatomyRelease
from cloister.anonymize.anonymizing import PlannedRelease, anonymize, plan_release
from cloister.anonymize.assessing import assess
from cloister.anonymize.assessment import Assessment
from cloister.anonymize.frontier import Frontier, Point, frontier
from cloister.anonymize.operations.recipe import Recipe
from cloister.anonymize.pitfalls import Pitfall
from cloister.anonymize.release import Release
from cloister.anonymize.rule_hiding import HiddenRules, hide_rules
from cloister.anonymize.transactions import Rule, Transactions, mine_rules

__all__ = [
    "AnatomyRelease",
    "Assessment",
    "Frontier",
    "HiddenRules",
    "Pitfall",
    "PlannedRelease",
    "Point",
    "Recipe",
    "Release",
    "Rule",
    "Transactions",
    "anonymize",
    "assess",
    "frontier",
    "hide_rules",
    "mine_rules",
    "operations",
    "plan_release",
]


class _Package(ModuleType):
    """A package that can be called."""

    def __call__(self, *arguments: Any, **options: Any) -> Release | AnatomyRelease:
        """Anonymize a table; see `anonymize`."""
        return anonymize(*arguments, **options)


def __dir__() -> list[str]:
    return sorted(__all__)


_Package.__call__.__wrapped__ = anonymize  # type: ignore[attr-defined]  # what help() shows
__signature__ = inspect.signature(anonymize)
sys.modules[__name__].__class__ = _Package
