"""Conditions on rows in a policy, such as ``branch = :branch``, with attributes of the subject in place of names.

A condition is parsed when the policy is read. Attributes are put into the parsed tree as literals; no text is ever
pasted into text, so an attribute can hold any characters and still only be compared. An attribute is a text; where
a number or a date is meant, the condition says so: ``ward = CAST(:ward AS BIGINT)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, reduce
from typing import Any

from sqlglot import exp

from cloister.data.engines.predicates import parse_condition
from cloister.errors import CloisterError, PolicyError

__all__ = ["RowPredicate", "bind_all"]

_KINDS: tuple[type[exp.Expression], ...] = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.Paren,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.In,
    exp.Between,
    exp.Is,
    exp.Like,
    exp.Null,
    exp.Boolean,
    exp.Literal,
    exp.Neg,
    exp.Column,
    exp.Identifier,
    exp.Placeholder,
    exp.Cast,
    exp.DataType,
)
_WHOLE = (exp.DataType.Type.BIGINT, exp.DataType.Type.INT)
_CASTS = (*_WHOLE, exp.DataType.Type.DATE)
_TRUTHS = (exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Is)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FIX = "write a condition on the row's own columns, such as branch = :branch AND year >= 2020."


@dataclass(frozen=True, slots=True)
class RowPredicate:
    """A condition that the rows which a subject may use fulfill.

    >>> RowPredicate("branch = :branch").bind({"branch": "it's"}).sql()
    "branch = 'it''s'"
    """

    text: str

    def __post_init__(self) -> None:
        _parse(self.text)

    @property
    def attributes(self) -> frozenset[str]:
        """Return the attributes of the subject that the condition needs."""
        return frozenset(node.name for node in _parse(self.text).find_all(exp.Placeholder))

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns that the condition names."""
        return frozenset(node.name for node in _parse(self.text).find_all(exp.Column))

    def examples(self) -> dict[str, str]:
        """Return some value of the right type for each attribute, to try the condition with."""
        nodes = _parse(self.text).find_all(exp.Placeholder)
        return {node.name: _example(node) for node in nodes}

    def bind(self, attributes: Mapping[str, str]) -> exp.Expression:
        """Return the condition with the attributes of a subject as literals.

        Raises:
            PolicyError: if an attribute is missing, or is not of the type that the condition states.
        """
        bound = _parse(self.text).copy()
        for node in list(bound.find_all(exp.Placeholder)):
            if node.name not in attributes:
                raise PolicyError(
                    f'The condition on rows needs the attribute "{node.name}".',
                    fix="have the operator or the organisation state it for this account.",
                )
            typed = isinstance(node.parent, exp.Cast)
            # The cast goes together with its attribute, since the literal has the right type already.
            (node.parent if typed and node.parent is not None else node).replace(_literal(node, attributes[node.name]))
        return bound


@lru_cache(maxsize=1024)
def _parse(text: str) -> exp.Expression:
    """Return the tree of a condition, which is shared: copy it before changing it."""
    try:
        condition = parse_condition(text)
    except CloisterError as error:
        raise PolicyError("The condition on rows is not a SQL condition.", fix=_FIX) from error
    inner = condition.unnest()
    if not isinstance(inner, (*_TRUTHS, exp.Like, exp.Boolean)) or not inner.find(exp.Column, exp.Boolean):
        raise PolicyError("The condition on rows is not a SQL condition.", fix=_FIX)
    for node in condition.walk():
        _check(node)
    return condition


def bind_all(predicates: tuple[RowPredicate, ...], attributes: Mapping[str, str]) -> exp.Expression | None:
    """Return the conjunction of some conditions, None when there are none."""
    bound = [predicate.bind(attributes) for predicate in predicates]
    return reduce(_both, bound) if bound else None


def _both(left: exp.Expression, right: exp.Expression) -> exp.Expression:
    # In parentheses, so that an OR within one condition cannot reach into the other.
    return exp.And(this=exp.paren(left, copy=False), expression=exp.paren(right, copy=False))


def _check(node: Any) -> None:  # a node of any kind
    # By exact type: what inherits from an allowed kind may do something else.
    if type(node) not in _KINDS:
        raise PolicyError(f"The condition on rows uses {type(node).__name__}, which is not allowed there.", fix=_FIX)
    if isinstance(node, exp.Placeholder) and not _NAME.fullmatch(node.name or ""):
        raise PolicyError("The condition on rows has a nameless attribute.", fix="write :name for an attribute.")
    if isinstance(node, exp.Cast) and not _is_known_cast(node):
        raise PolicyError(
            "The condition on rows casts something that is no attribute.",
            fix="cast attributes only, AS BIGINT or AS DATE, such as ward = CAST(:ward AS BIGINT).",
        )
    if isinstance(node, exp.Column) and any(node.args.get(part) for part in ("table", "db", "catalog")):
        raise PolicyError("The condition on rows names a table.", fix="name columns alone, such as branch.")
    if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest") or not node.expressions):
        raise PolicyError("The condition on rows has a subquery.", fix=_FIX)


def _is_known_cast(node: exp.Cast) -> bool:
    inner_is_text = isinstance(node.this, exp.Literal) and node.this.is_string
    if inner_is_text:
        return node.to.this is exp.DataType.Type.DATE
    return isinstance(node.this, exp.Placeholder) and node.to.this in _CASTS


def _literal(node: exp.Placeholder, value: str) -> exp.Expression:
    cast = node.parent
    if not isinstance(cast, exp.Cast):
        return _text(value, node.name)
    try:
        if cast.to.this in _WHOLE:
            return _whole(value)
        return exp.cast(exp.Literal.string(date.fromisoformat(value).isoformat()), "DATE")
    except ValueError:
        raise PolicyError(
            f'The attribute "{node.name}" is not what the condition on rows takes it for.',
            fix="have it stated as a whole number, or as a date such as 2026-01-31.",
        ) from None


def _example(node: exp.Placeholder) -> str:
    if not isinstance(node.parent, exp.Cast):
        return "text"
    return "1" if node.parent.to.this in _WHOLE else "2000-01-01"


def _text(value: str, name: str) -> exp.Expression:
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise PolicyError(
            f'The attribute "{name}" has a character that databases cannot hold.',
            fix="have it stated without NUL and lone surrogates.",
        )
    return exp.Literal.string(value)


def _whole(value: str) -> exp.Expression:
    # Eighteen digits always fit the integers of a database, and only plain digits are numbers to it.
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        raise ValueError
    number = exp.Literal.number(value.lstrip("-"))
    return exp.Neg(this=number) if value.startswith("-") else number
