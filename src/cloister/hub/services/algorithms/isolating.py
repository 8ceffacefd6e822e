"""Whether this machine can confine foreign code, asked before anything is paid. Workers run on the hub's machine."""

from __future__ import annotations

import threading
import time

from cloister.hub.sandbox import runner
from cloister.hub.sandbox.isolation import Isolation

__all__ = ["require_isolation"]

_ASK_AGAIN_SECONDS = 60.0
_lock = threading.Lock()
_known: list[tuple[float, Isolation]] = []


def require_isolation() -> Isolation:
    """Return what the sandbox offers here; walls that stood once are not tried again, others after a minute.

    Raises:
        SandboxUnavailableError: if foreign code cannot be confined.
    """
    with _lock:
        moment = time.monotonic()
        if not _known or (not _known[0][1].is_enough and moment - _known[0][0] > _ASK_AGAIN_SECONDS):
            _known[:] = [(moment, runner.detect_isolation())]
        found = _known[0][1]
    found.require()
    return found
