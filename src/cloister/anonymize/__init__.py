"""Release tables that can be defended: models, algorithms, risk, loss and reports.

The package is also the function of its name, `anonymization.anonymize`; ``help(cloister.anonymize.anonymize)`` tells
all that it takes:

    release = cloister.anonymize(table, models=[cloister.KAnonymity(k=5)], suppression_limit=0.02)
    release.write("protected.csv")
    release.report("release.html")
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cloister.anonymize import operations
from cloister.anonymize.anatomy import AnatomyRelease
from cloister.anonymize.anonymization import PlannedRelease, anonymize, plan_release
from cloister.anonymize.assessment import Assessment, assess
from cloister.anonymize.frontier import Frontier, Point, frontier
from cloister.anonymize.hidden_rules import HiddenRules, hide_rules
from cloister.anonymize.operations.recipe import Recipe
from cloister.anonymize.pitfalls import Pitfall
from cloister.anonymize.release import Release
from cloister.anonymize.transactions import AssociationRule, Transactions, mine_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal, overload

    from cloister.anonymize import (
        anatomy as _anatomy,
        anonymization as _anonymization,
        assessment as _assessment,
        frontier as _frontier,
        hidden_rules as _hidden_rules,
        operations as _operations,
        pitfalls as _pitfalls,
        release as _release,
        transactions as _transactions,
    )
    from cloister.anonymize.algorithms._base import Progress
    from cloister.anonymize.operations import recipe as _recipe
    from cloister.core.exact import Number
    from cloister.core.guarantees import Guarantee
    from cloister.data.table import Table

__all__ = [
    "AnatomyRelease",
    "Assessment",
    "AssociationRule",
    "Frontier",
    "HiddenRules",
    "Pitfall",
    "PlannedRelease",
    "Point",
    "Recipe",
    "Release",
    "Transactions",
    "anonymize",
    "assess",
    "frontier",
    "hide_rules",
    "mine_rules",
    "operations",
    "plan_release",
]


class CallablePackage(ModuleType):
    """A package that can be called; what ``cloister.anonymize`` is, with its names, for type checkers as well."""

    if TYPE_CHECKING:
        AnatomyRelease = _anatomy.AnatomyRelease
        Assessment = _assessment.Assessment
        AssociationRule = _transactions.AssociationRule
        Frontier = _frontier.Frontier
        HiddenRules = _hidden_rules.HiddenRules
        Pitfall = _pitfalls.Pitfall
        PlannedRelease = _anonymization.PlannedRelease
        Point = _frontier.Point
        Recipe = _recipe.Recipe
        Release = _release.Release
        Transactions = _transactions.Transactions
        anonymize = staticmethod(_anonymization.anonymize)
        assess = staticmethod(_assessment.assess)
        frontier = staticmethod(_frontier.frontier)
        hide_rules = staticmethod(_hidden_rules.hide_rules)
        mine_rules = staticmethod(_transactions.mine_rules)
        operations = _operations
        plan_release = staticmethod(_anonymization.plan_release)

        @overload
        def __call__(
            self,
            table: Table,
            *,
            models: Sequence[Guarantee | Mapping[str, Any]],
            algorithm: Literal["anatomy"],
            suppression_limit: Number = 0,
            quasi_identifiers: Sequence[str] | None = None,
            sensitive: Sequence[str] | None = None,
            values: str | None = None,
            loss: str = "ncp",
            weights: Mapping[str, object] | None = None,
            population: Table | None = None,
            progress: Progress | None = None,
            **options: Any,
        ) -> _anatomy.AnatomyRelease: ...

        @overload
        def __call__(
            self,
            table: Table,
            *,
            models: Sequence[Guarantee | Mapping[str, Any]],
            algorithm: Literal["optimal", "mondrian", "top_down", "clustering", "mdav"] | None = None,
            suppression_limit: Number = 0,
            quasi_identifiers: Sequence[str] | None = None,
            sensitive: Sequence[str] | None = None,
            values: str | None = None,
            loss: str = "ncp",
            weights: Mapping[str, object] | None = None,
            population: Table | None = None,
            progress: Progress | None = None,
            **options: Any,
        ) -> _release.Release: ...

        @overload
        def __call__(
            self,
            table: Table,
            *,
            models: Sequence[Guarantee | Mapping[str, Any]],
            algorithm: str | None,
            suppression_limit: Number = 0,
            quasi_identifiers: Sequence[str] | None = None,
            sensitive: Sequence[str] | None = None,
            values: str | None = None,
            loss: str = "ncp",
            weights: Mapping[str, object] | None = None,
            population: Table | None = None,
            progress: Progress | None = None,
            **options: Any,
        ) -> _release.Release | _anatomy.AnatomyRelease: ...

        def __call__(self, table: Any, **options: Any) -> Any: ...
    else:

        def __call__(self, *arguments: Any, **options: Any) -> Release | AnatomyRelease:
            """Anonymize a table; see `anonymize`."""
            return anonymize(*arguments, **options)


def __dir__() -> list[str]:
    return sorted(__all__)


vars(CallablePackage)["__call__"].__wrapped__ = anonymize  # what help() shows
__signature__ = inspect.signature(anonymize)
sys.modules[__name__].__class__ = CallablePackage
