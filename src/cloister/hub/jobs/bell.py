"""A bell beside the database: whoever adds work rings it, so that idle workers on this machine look at once.

Ringing changes the times of a file, and looking at them is cheap. A missed ring costs a moment only, because workers
look into the queue from time to time anyway.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["Bell"]


class Bell:
    """A file whose time of change says when work was last added."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "bell"
        self._heard = self._rung()

    def ring(self) -> None:
        """Tell the workers that there is work; a folder that cannot be written only makes them slower."""
        with suppress(OSError):
            self._path.touch(mode=0o600)

    def has_rung(self) -> bool:
        """Return whether somebody has rung since the last look."""
        rung, before = self._rung(), self._heard
        self._heard = rung
        return rung != before

    def _rung(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0
