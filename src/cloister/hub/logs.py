"""Structured logs that hold no data: names of events, kinds of errors, identifiers of objects; never addresses.

Messages of libraries and the words of exceptions can quote what somebody sent or what is stored, so that neither is
written: only which library it was, which kind of error, and by which lines of code it came.
"""

from __future__ import annotations

import logging
import sys
import traceback
from typing import Any

import structlog

__all__ = ["configure", "facts_of", "logger"]

_LONGEST_WAY = 12
_TALKERS = ("uvicorn", "uvicorn.error", "uvicorn.access")
"""Libraries that would write their own words, past what is written here."""


def configure(level: str = "info") -> None:
    """Write one JSON object per line to the error output."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    if not any(isinstance(handler, _WithoutWords) for handler in root.handlers):
        root.addHandler(_WithoutWords())
    for name in _TALKERS:
        talker = logging.getLogger(name)
        talker.handlers, talker.propagate = [], True
        talker.setLevel(logging.NOTSET)


def logger() -> Any:  # a structlog logger
    """Return the hub's log."""
    return structlog.get_logger("cloister.hub")


def facts_of(error: BaseException) -> dict[str, Any]:
    """Return what may be logged about an error: its kind, and the last lines of code on its way, the innermost last."""
    way = [f"{frame.f_globals.get('__name__', '')}:{line}" for frame, line in traceback.walk_tb(error.__traceback__)]
    return {"kind": type(error).__name__, "way": way[-_LONGEST_WAY:]}


class _WithoutWords(logging.Handler):
    """Passes on that a library logged something."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        facts = {} if error is None else facts_of(error)
        logger().log(record.levelno, "library", library=record.name, line=f"{record.module}:{record.lineno}", **facts)
