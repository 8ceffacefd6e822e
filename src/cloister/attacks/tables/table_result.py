"""What attacks on tables report beyond what every attack reports: their own facts, also in a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.attacks.result import AttackResult

if TYPE_CHECKING:
    from cloister.report import Section

__all__ = ["TableAttackResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAttackResult(AttackResult):
    """The outcome of an attack on a table; what its summary adds stands in its report too."""

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack."""
        from cloister.attacks.reporting import section_of
        from cloister.report import Facts, escaped

        own = self.summary()[len(AttackResult.summary(self)) :]
        facts = [(escaped(name), escaped(text)) for name, text in own]
        return (section_of(self, level=level, further=(Facts(facts),) if facts else ()),)
