"""GROUP BY: expressions, positions and names of output columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sqlglot import exp

from cloister.data.engines.predicates import Family, quoted, shortened
from cloister.data.profile import StorageType
from cloister.errors import CloisterError, UnsafeQueryError
from cloister.queries.question import Key
from cloister.queries.sql.aggregates import is_aggregate
from cloister.queries.sql.rows import RowResolver
from cloister.queries.sql.terms import Term

__all__ = ["Grouping"]


class Grouping:
    """The keys of a query, and which expressions are one of them."""

    def __init__(
        self,
        resolver: RowResolver,
        group: exp.Expression | None,
        outputs: Sequence[exp.Expression],
        aliases: Mapping[str, exp.Expression],
        *,
        allow_person: bool = False,
    ) -> None:
        self._resolver = resolver
        self._allow_person = allow_person
        _check(group)
        given = [] if group is None else group.expressions
        keys: dict[str, tuple[exp.Expression, Term]] = {}
        for node in (self._meant(node, outputs, aliases) for node in given):
            term = self._term(node)
            keys.setdefault(_text(term), (node, term))
        self.nodes = [node for node, _ in keys.values()]
        self.terms = [term for _, term in keys.values()]
        self._texts = {text: index for index, text in enumerate(keys)}
        self._has_expressions = any(type(node) is not exp.Column for node in self.nodes)

    @property
    def keys(self) -> tuple[Key, ...]:
        """Return the keys of the question."""
        return tuple(term.key(self._name(node, term)) for node, term in zip(self.nodes, self.terms, strict=True))

    def position(self, node: exp.Expression) -> int | None:
        """Return which key an expression is; None if it is none."""
        if not self.terms or (type(node) is not exp.Column and not self._has_expressions):
            return None
        if type(node) is exp.Column and not self._resolver.scope.has(node):
            return None
        if node.find(exp.Column) is None or any(is_aggregate(part) for part in node.walk()):
            return None
        try:
            return self._texts.get(_text(self._resolver.term(node)))
        except CloisterError:
            return None

    def storage(self, index: int) -> StorageType:
        """Return the type of the values that are shown for a key."""
        term = self.terms[index]
        return StorageType.DATE if term.family is Family.PERIOD else term.storage

    def check_known(self, node: exp.Column) -> None:
        """Raise an error for a column that does not exist."""
        self._resolver.scope.find(node)

    def _meant(
        self, node: exp.Expression, outputs: Sequence[exp.Expression], aliases: Mapping[str, exp.Expression]
    ) -> exp.Expression:
        """Return the expression that a position or the name of an output column stands for."""
        while type(node) is exp.Paren:
            node = node.this
        if isinstance(node, exp.Literal):
            node = position(node, outputs, clause="GROUP BY")
        elif type(node) is exp.Column and node.args.get("table") is None and not self._resolver.scope.has(node):
            node = aliases.get(node.name.lower(), node)
        return node

    def _term(self, node: exp.Expression) -> Term:
        term = self._resolver.term(node)
        if term.is_person and not self._allow_person:
            raise UnsafeQueryError(
                f"{quoted(node)} names the persons: a group for each would show single persons.",
                fix="group by another column, or count the persons: COUNT(DISTINCT "
                f"{node.sql(comments=False, copy=False)}); one row for each person belongs in a subquery in FROM.",
            )
        if term.family is Family.NULL or isinstance(term.numeric, Fraction):
            raise UnsafeQueryError(f"{quoted(node)} is not a column.", fix="group by a column or an expression.")
        return term

    def _name(self, node: exp.Expression, term: Term) -> str:
        """Return how the key is called, whatever the query calls the columns in it."""
        if type(node) is exp.Column:
            return term.label
        named = node.copy()
        for column in list(named.find_all(exp.Column)):
            column.set("table", None)
            column.set("this", exp.to_identifier(self._resolver.term(column).label, quoted=False))
        return shortened(named.sql(comments=False, copy=False))


def position(node: exp.Literal, outputs: Sequence[exp.Expression], *, clause: str) -> exp.Expression:
    """Return the output column at a position, counted from 1."""
    number = node.this if not node.is_string else ""
    if not number.isdigit() or not 1 <= int(number) <= len(outputs):
        raise UnsafeQueryError(
            f"{clause} {quoted(node)[1:-1]} is not the position of an output column.",
            fix=f"use a position from 1 to {len(outputs)}, or name the column.",
        )
    return outputs[int(number) - 1]


def _text(term: Term) -> str:
    return term.settled().text


def _check(group: exp.Expression | None) -> None:
    if group is not None and any(part for name, part in group.args.items() if name != "expressions"):
        raise UnsafeQueryError(
            "GROUP BY ALL and its like do not say what to group by.", fix="list the columns after GROUP BY."
        )
