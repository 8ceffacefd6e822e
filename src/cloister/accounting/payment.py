"""Payment before anybody looks at the rows, and finishing the work that was paid for, whatever the rows are.

`pay` charges a ledger first. After that, a failure of the work must not tell more than the answer would have told.

Whether a computation on protected rows fails, warns or ends may depend on a single row, and no noise covers that. Code
is written so that no row can make it fail; this is the second wall, for what was overlooked. `finish` runs what looks
at rows. Where that raises, the same work is done about nobody: noise on an empty table, which ends in the same state
and looks like any other answer. Warnings of the work are dropped. How often that happened is counted for whoever runs
the process, and nothing else is kept.

What it does not do: make a failure private. An answer about nobody can be told from an answer about many people, so a
row that makes work fail still shows where the answer is exact enough. It hides the failure of work whose noise is
large, and its kind, place and words always.

Problems of the machine, such as no memory left, cannot be told from those that a row caused, and are treated alike. A
file that is gone or a database that does not answer fails about nobody, too: `finish` raises that, and callers may say
it. `KeyboardInterrupt`, `SystemExit` and whatever else is no `Exception` goes through.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from cloister.accounting.events import Event
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.core.guarantees import DifferentialPrivacy
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["failure_count", "finish", "pay", "show_failures"]


def pay(
    guarantee: DifferentialPrivacy,
    event: Event,
    *,
    ledger: Any,  # a ledger, its address, or None
    dataset: str | None,
    analyst: str | None,
    purpose: str,
) -> None:
    """Charge a ledger, or raise and charge nothing; without a ledger, do nothing.

    A seed breaks the promise but not the price: it is charged all the same.
    """
    if ledger is None:
        if dataset is not None:
            raise ParameterError(
                "There is a dataset, but no ledger.", fix='give ledger="sqlite:///budget.db", or neither.'
            )
        return
    if dataset is None:
        raise ParameterError(
            "The ledger does not know which dataset this is.", fix='name its account: dataset="hospital-2026".'
        )
    spent: dict[str, Any] = {"guarantee": guarantee, "event": event, "analyst": analyst, "purpose": purpose}
    if isinstance(ledger, str):
        # A misspelled address must not become a new ledger of which nothing is spent.
        with open_ledger(ledger, create=False) as opened:
            opened.spend(str(dataset), **spent)
    elif isinstance(ledger, Ledger):
        ledger.spend(str(dataset), **spent)
    else:
        raise ParameterTypeError("ledger is not a ledger or its address.", fix='write ledger="sqlite:///budget.db".')


Answer = TypeVar("Answer")

_lock = threading.Lock()
_failures = 0
_shown: ContextVar[bool] = ContextVar("shown", default=False)


def finish(work: Callable[[], Answer], *, nothing: Callable[[], Answer]) -> Answer:
    """Return what work gives that was paid for or, where it fails, what it gives about nobody.

    Args:
        work: looks at protected rows. The budget must have been charged before.
        nothing: does the same where there are no rows, with the same noise. What it raises is about no row, such as
            that a database does not answer, and may be told.
    """
    with _quiet():
        try:
            return work()
        except Exception:
            if _shown.get():
                raise
            _count_failure()
        # Out here no exception is being handled: nothing of the failure hangs on to what is raised or returned now.
        return nothing()


def failure_count() -> int:
    """Return how often paid work has failed in this process: for whoever runs it, not for those who ask.

    >>> before = failure_count()
    >>> finish(lambda: 41 + 1, nothing=lambda: 0)
    42
    >>> failure_count() - before
    0
    """
    return _failures


@contextmanager
def show_failures() -> Iterator[None]:
    """Let failures of paid work be seen inside of the block, to find their cause.

    For the owner of the rows alone: what is raised and warned of may depend on a single row and may quote it.

    >>> with show_failures():
    ...     pass  # model.fit(table)
    """
    before = _shown.set(True)
    try:
        yield
    finally:
        _shown.reset(before)


def _count_failure() -> None:
    global _failures  # noqa: PLW0603  # a count of the whole process
    with _lock:
        _failures += 1


# Warnings ------------------------------------------------------------------------------------------------------------


class _Filters:
    """The process's filters of warnings as they were before the first of several threads dropped them."""

    inside = 0
    kept: warnings.catch_warnings[None] | None = None


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop warnings: filters belong to the process, so the last thread that leaves puts them back."""
    if _shown.get():
        yield
        return
    with _lock:
        if not _Filters.inside:
            _Filters.kept = warnings.catch_warnings()
            _Filters.kept.__enter__()
            warnings.simplefilter("ignore")
        _Filters.inside += 1
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        with _lock:
            _Filters.inside -= 1
            if not _Filters.inside and _Filters.kept is not None:
                _Filters.kept.__exit__(None, None, None)
                _Filters.kept = None
