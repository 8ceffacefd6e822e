"""How large the SQL becomes that a query stands for: names stand for expressions, so that it can grow fast."""

from __future__ import annotations

from sqlglot import exp

from cloister.errors import UnsafeQueryError

__all__ = ["Sizes"]

_LARGEST, _DEEPEST = 200_000, 150


class Sizes:
    """Counts nodes, each shared part once for every place where it will be written."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[exp.Expression, int, int]] = {}

    def check(self, node: exp.Expression) -> None:
        """Refuse what is too large to be written out.

        Raises:
            UnsafeQueryError: if it is too large or too deep.
        """
        size, depth = self._measured(node)
        if size > _LARGEST or depth > _DEEPEST:
            raise UnsafeQueryError(
                "The expressions that names stand for make the query too large.",
                fix="use fewer nested expressions or values, or prepare a column in the source.",
            )

    def _measured(self, node: exp.Expression) -> tuple[int, int]:
        known = self._known.get(id(node))
        if known is not None:
            return known[1], known[2]
        parts = [self._measured(part) for part in node.iter_expressions()]
        size, depth = 1 + sum(size for size, _ in parts), 1 + max((depth for _, depth in parts), default=0)
        self._known[id(node)] = node, size, depth
        return size, depth
