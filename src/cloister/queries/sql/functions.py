"""The resolver with all functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from cloister.queries.sql.choices import OTHERS
from cloister.queries.sql.numeric import NUMERIC
from cloister.queries.sql.rows import Function, RowResolver

__all__ = ["FullResolver"]


class FullResolver(RowResolver):
    """Resolves row expressions with every function that is known."""

    functions: ClassVar[Mapping[str, Function]] = NUMERIC | OTHERS
