"""Tables without rows that wait for the next plan on the same view: making one costs more than planning on it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cloister.data.table import Table

__all__ = ["IdleTables"]


class IdleTables:
    """Tables by the digest of their view, each lent to one plan at a time; those of an old view are let go."""

    def __init__(self, *, limit: int = 32) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._idle: OrderedDict[int, tuple[str, Table]] = OrderedDict()
        self._count = 0

    @contextmanager
    def lent(self, view: str, opener: Callable[[], Table]) -> Iterator[Table]:
        """Lend a table of a view, opened if none is idle; after an error it is not used again."""
        found = self._take(view)
        table = opener() if found is None else found
        yield table
        with self._lock:
            self._count += 1
            self._idle[self._count] = (view, table)
            while len(self._idle) > self._limit:
                self._idle.popitem(last=False)

    def _take(self, view: str) -> Table | None:
        with self._lock:
            number = next((number for number, (name, _) in self._idle.items() if name == view), None)
            return None if number is None else self._idle.pop(number)[1]
