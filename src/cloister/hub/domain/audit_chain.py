"""Entries of the audit log, each sealed with SHA-256 over itself and the digest of the entry before it.

A chain shows every edit, insertion, move and deletion up to its newest entry. That the newest entries were not cut
off shows only somebody who knows an earlier head; so auditors note the head, and `check_chain` takes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from cloister.core.digests import GENESIS, chain_digest, chain_text
from cloister.errors import AuditDamagedError

__all__ = ["GENESIS", "AuditHead", "AuditOutcome", "AuditRecord", "chain_text", "check_chain"]

FORMAT = "cloister.audit/1"


class AuditOutcome(StrEnum):
    """How it went: allowed at the door, refused there or inside, or done."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead:
    """The newest entry of a log: what an auditor notes."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """One entry; ``details`` is canonical JSON text."""

    number: int
    time: str
    actor: str
    action: str
    target: str
    dataset_id: str | None
    outcome: str
    details: str
    previous: str
    digest: str = ""

    def sealed(self) -> AuditRecord:
        """Return the entry with its digest."""
        return replace(self, digest=self.computed_digest())

    def computed_digest(self) -> str:
        """Return SHA-256 over everything but the digest."""
        hashed = [value for name, value in asdict(self).items() if name != "digest"]
        return chain_digest([FORMAT, *hashed])


def check_chain(records: Iterable[AuditRecord], *, known: AuditHead | None = None) -> AuditHead:
    """Return the head of a log read from its first entry on, or raise where it is not what was written.

    Args:
        records: all entries in order.
        known: an earlier head that must still be part of the log.
    """
    head = AuditHead(number=0, digest=GENESIS)
    for record in records:
        if record.number != head.number + 1:
            raise AuditDamagedError(
                f"The audit log is damaged: entry {head.number + 1} is missing", entry=head.number + 1
            )
        if record.previous != head.digest:
            raise AuditDamagedError(
                f"The audit log is damaged: entry {record.number} does not follow the one before it.",
                entry=record.number,
            )
        if record.digest != record.computed_digest():
            raise AuditDamagedError(
                f"The audit log is damaged: entry {record.number} was changed after it was written.",
                entry=record.number,
            )
        head = AuditHead(number=record.number, digest=record.digest)
        if known is not None and head.number == known.number and head.digest != known.digest:
            raise AuditDamagedError(
                f"The audit log is damaged: entry {known.number} is not the one that was noted", entry=known.number
            )
    if known is not None and known.number > head.number:
        raise AuditDamagedError(
            f"The audit log is damaged: entries after {head.number} are missing", entry=head.number + 1
        )
    return head
