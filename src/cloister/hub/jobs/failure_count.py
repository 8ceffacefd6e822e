"""How often work has failed that was paid for: a number for operators, which names no work, person or dataset.

It is the length of a file in the hub's folder, which all machines of a hub share: every worker adds a byte for each
failure, in one call that a local file system does not interleave, so that nothing has to be locked or read first. On a
network file system two machines that fail at the same moment may be counted once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["FailureCount"]


class FailureCount:
    """The count of all workers that share a hub's folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "failures"

    def add(self, failures: int) -> None:
        """Count some failures; a folder that cannot be written loses the count, not the work."""
        if failures < 1:
            return
        with suppress(OSError):
            number = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(number, b"." * failures)
            finally:
                os.close(number)

    @property
    def value(self) -> int:
        """Return the count."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0
