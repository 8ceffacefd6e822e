"""Processes that start at once: a server process has the hub imported already, and forks them off; and plain forks."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path

import cloister

ROOT = Path(__file__).parents[2]


@contextmanager
def garbage_left_alone() -> Iterator[None]:
    """Keep processes that are forked in the block from collecting what other tests have left in this one.

    Databases among it are taken down by threads of theirs, which a forked process does not have: it would crash.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@cache
def fork_context() -> ForkServerContext:
    """Return the context whose processes know `tests.support.hub_worker`."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{Path(cloister.__file__).parents[1]}:{ROOT}"
    try:
        context = multiprocessing.get_context("forkserver")
        # The first query would load the dialect in each process anew.
        context.set_forkserver_preload(
            ["tests.support.hub_worker", "sqlglot.dialects.duckdb", "sqlglot.generators.duckdb"]
        )
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return context
