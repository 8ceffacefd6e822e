"""Tables that a worker keeps open between runs, because unsealing them takes time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

from cloister.data.table import Table

__all__ = ["OpenTables"]


class OpenTables:
    """The views used last, by their digest. The right to use one is decided anew for every run, before it is asked for.

    Args:
        limit: how many are kept.
        idle_seconds: how long one is kept that nobody uses, so that deleted data does not stay in memory.
    """

    def __init__(self, *, limit: int = 4, idle_seconds: float = 300.0) -> None:
        self._limit, self._idle_seconds = limit, idle_seconds
        self._tables: OrderedDict[str, tuple[Table, float]] = OrderedDict()

    def __call__(self, view: str, opener: Callable[[], Table]) -> Table:
        """Return the table of a view, opening it if it is not open."""
        found = self._tables.pop(view, None)
        table = opener() if found is None else found[0]
        self._tables[view] = (table, time.monotonic())
        while len(self._tables) > self._limit:
            self._tables.popitem(last=False)
        return table

    def __len__(self) -> int:
        return len(self._tables)

    def forget_idle(self) -> None:
        """Let go of what nobody has used for a while."""
        oldest = time.monotonic() - self._idle_seconds
        for view in [view for view, (_, used) in self._tables.items() if used < oldest]:
            del self._tables[view]
