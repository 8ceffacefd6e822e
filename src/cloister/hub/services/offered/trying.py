"""Attacking a protected table that nobody has asked for yet: for its owners, to find out what would hold.

The table is made as it would be for somebody else, attacked with the rows at hand, and thrown away. What attacks found
is exact and about the people in the table, so it never leaves the circle of those who own the rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from cloister.core.guarantees import NoGuarantee
from cloister.hub.domain.policy import Operation
from cloister.hub.services.offered.gating import attacked
from cloister.hub.services.offered.releases import AnonymizedRelease, WantedRelease, made_release
from cloister.hub.services.registry import Outcome, Plan, Work, algorithms

__all__ = ["TriedRelease"]

_FOR_OWNERS = (
    "What the attacks find is exact and about the people in the table: it is for its owners. No table is kept."
)
_EXACT = "it was computed from protected rows as they are, and is for their owners"


class TriedRelease(AnonymizedRelease):
    """A protected table that is attacked and thrown away."""

    name: ClassVar[str] = "attack.release"
    title: ClassVar[str] = "Attack a protected table"
    summary: ClassVar[str] = "What attackers would find in a protected table, before anybody asks for it; for owners."
    operation: ClassVar[Operation] = Operation.RISK_ASSESS
    needs_approval: ClassVar[bool] = False
    owners_only: ClassVar[bool] = True
    page: ClassVar[str] = "service.html"

    def plan(self, work: Work, parameters: WantedRelease) -> Plan:
        """Check models, columns and algorithm on the schema; it costs nothing."""
        return replace(super().plan(work, parameters), warnings=(_FOR_OWNERS,))

    def run(self, work: Work, parameters: WantedRelease) -> Outcome:
        """Make the table, attack it, and keep what the attacks found."""
        release = made_release(work, parameters)
        found = attacked(work, release, report=release.report(title="A protected table, attacked"), begin=0.6, end=0.9)
        return Outcome(
            document=found.to_dict(),
            summary=found.summary(),
            guarantee=NoGuarantee(reason=_EXACT).to_dict(),
            figure=found.plot().to_svg() if any(item.result for item in found.findings) else "",
            report=found.report().to_html(),
            is_report_for_owner=True,
        )


algorithms.register(TriedRelease.name)(TriedRelease())
