"""How many refusals each person had in this minute, so that asking for what is refused does not fill the disk."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from cloister.hub.store.database import Store

ANONYMOUS = "anonymous"
WINDOW = 60.0
ALLOWANCE = 10
"""How many refusals of one person in one window have an entry of their own."""

Counts = dict[str, dict[str, int]]
"""Actor to kind of refusal to how often."""


@dataclass(slots=True)
class _Window:
    ends: float
    kept: int = 0
    more: Counter[str] = field(default_factory=Counter)


class RefusalCounts:
    """Counts in memory, for each database; a crash forgets at most what was counted in the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows: WeakKeyDictionary[Store, dict[str, _Window]] = WeakKeyDictionary()

    def note(self, store: Store, actor: str, kind: str) -> tuple[Counts, bool]:
        """Count a refusal; return the counts of windows that are over, and whether this one gets its own entry."""
        moment = self._clock()
        with self._lock:
            windows = self._windows.setdefault(store, {})
            finished = _take(windows, [name for name, window in windows.items() if window.ends <= moment])
            window = windows.setdefault(actor, _Window(ends=moment + WINDOW))
            is_kept = window.kept < (1 if actor == ANONYMOUS else ALLOWANCE)
            if is_kept:
                window.kept += 1
            else:
                window.more[kind] += 1
            return finished, is_kept

    def take_all(self, store: Store) -> Counts:
        """Return what was counted, of unfinished windows too; those keep their allowance used."""
        with self._lock:
            windows = self._windows.get(store, {})
            counts = {actor: dict(window.more) for actor, window in windows.items() if window.more}
            for window in windows.values():
                window.more.clear()
            return counts


def _take(windows: dict[str, _Window], names: list[str]) -> Counts:
    taken = {name: windows.pop(name) for name in names}
    return {name: dict(window.more) for name, window in taken.items() if window.more}
