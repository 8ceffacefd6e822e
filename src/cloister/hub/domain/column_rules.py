"""Which columns a policy shows, and what each may be used for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from cloister.hub.domain.sticky import NEUTRAL, Terms, inherit

__all__ = ["ALL_USES", "ColumnRule", "ColumnRules", "Use"]


class Use(StrEnum):
    """What a column may be used for."""

    VISIBLE = "visible"
    FILTER = "filter"
    GROUP_BY = "group_by"
    MEASURE = "measure"


ALL_USES = frozenset(Use)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """Uses of one column; no use at all means that the column is forbidden and, for its user, does not exist."""

    uses: frozenset[Use] = frozenset()
    terms: Terms = NEUTRAL

    def __post_init__(self) -> None:
        if self.uses:
            object.__setattr__(self, "uses", self.uses | {Use.VISIBLE})

    @property
    def is_visible(self) -> bool:
        """Return whether the column exists for its user."""
        return Use.VISIBLE in self.uses

    def __and__(self, other: ColumnRule) -> ColumnRule:
        return ColumnRule(uses=self.uses & other.uses, terms=inherit([self.terms, other.terms]))


FORBIDDEN = ColumnRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules:
    """A rule for each column, and one for all the others, which are forbidden unless stated."""

    named: tuple[tuple[str, ColumnRule], ...] = ()
    others: ColumnRule = FORBIDDEN

    def of(self, column: str) -> ColumnRule:
        """Return the rule of a column."""
        return dict(self.named).get(column, self.others)

    def visible(self, columns: Iterable[str], *, purpose: str | None = None) -> tuple[str, ...]:
        """Return those of some columns that exist for a user who acts for a purpose."""
        return tuple(name for name in columns if self._exists(self.of(name), purpose))

    def __and__(self, other: ColumnRules) -> ColumnRules:
        names = dict.fromkeys([*dict(self.named), *dict(other.named)])
        named = tuple((name, self.of(name) & other.of(name)) for name in names)
        return ColumnRules(named=named, others=self.others & other.others)

    @staticmethod
    def _exists(rule: ColumnRule, purpose: str | None) -> bool:
        return rule.is_visible and (purpose is None or rule.terms.purposes.allows(purpose))


EVERY_COLUMN = ColumnRules(others=ColumnRule(uses=ALL_USES))
"""Shows and allows everything: for owners, and for a role that keeps its policy's own rules."""

NO_COLUMN = ColumnRules()
"""Shows nothing."""
