"""The budget ledger: who spent what on which dataset, exact, append-only and hash-chained."""

from cloister.accounting.ledger.opening import open_ledger
from cloister.accounting.ledger.protocol import Ledger
from cloister.accounting.ledger.values import Account, Entry, EntryKind, Receipt, StoredAnswer

__all__ = ["Account", "Entry", "EntryKind", "Ledger", "Receipt", "StoredAnswer", "open_ledger"]
