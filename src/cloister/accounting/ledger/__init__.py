"""The budget ledger: who spent what on which dataset, exact, append-only and hash-chained."""

from cloister.accounting.ledger.protocol import Account, Entry, EntryKind, Ledger, Receipt, StoredAnswer, open_ledger

__all__ = ["Account", "Entry", "EntryKind", "Ledger", "Receipt", "StoredAnswer", "open_ledger"]
