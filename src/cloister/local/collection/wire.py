"""Reading what devices sent: one or many reports as text, dictionaries or objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cloister.errors import MalformedReportError, ParameterTypeError
from cloister.local.output_space import malformed
from cloister.local.reports import MOST_BYTES

__all__ = ["items_of"]


def items_of(source: Any) -> list[Any]:  # whatever holds reports; their JSON values, or objects as they were given
    """Return reports one by one, with JSON text read.

    Raises:
        MalformedReportError: if text is too long or not JSON; it is not shown.
        ParameterTypeError: if these are no reports at all.
    """
    if isinstance(source, str):
        source = [line for line in source.split("\n") if line.strip()]
    if isinstance(source, Mapping):
        source = [source]
    if not isinstance(source, Iterable) or isinstance(source, bytes | bytearray | memoryview):
        raise ParameterTypeError("These are not reports.", fix="give what randomize returned, or its JSON.")
    return [_read(item) if isinstance(item, str) else item for item in source]


def _read(text: str) -> Any:  # any JSON value
    if len(text) > MOST_BYTES:
        raise malformed()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedReportError("A report is not JSON.", fix="send reports as the client writes them.") from None
