"""A report's section about an attack, with the numbers that only this kind of attack has."""

from __future__ import annotations

from cloister.attacks.reporting import section_of
from cloister.attacks.result import AttackResult
from cloister.report import Facts, Section

__all__ = ["section_with_own_facts"]


def section_with_own_facts(result: AttackResult, *, level: int = 1) -> Section:
    """Return one section about an attack, with what its summary has beyond that of every attack."""
    common = len(AttackResult.summary(result))
    rows = result.summary()[common:]
    return section_of(result, level=level, further=(Facts(rows),) if rows else ())
