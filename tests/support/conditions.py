"""Random conditions: their SQL text, and their truth on one row by Kleene's three-valued logic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from cloister.data.values import StorageType
from tests.support.reference import Columns

Condition = tuple[str, Callable[[dict[str, Any]], bool | None]]

_COMPARISONS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def sql_literal(item: Any) -> str:
    if isinstance(item, bool):
        return str(item).upper()
    if isinstance(item, int | float):
        return repr(item)
    escaped = str(item).replace("'", "''")
    return f"'{escaped}'"


def conditions(data: Columns, literals: dict[StorageType, st.SearchStrategy[Any]]) -> st.SearchStrategy[Condition]:
    leaves = [_leaf(name, storage, literals[storage]) for name, (storage, _) in data.items()]
    return st.recursive(st.one_of(leaves), _combined, max_leaves=4)


def _leaf(name: str, storage: StorageType, literals: st.SearchStrategy[Any]) -> st.SearchStrategy[Condition]:
    operators = ["=", "<>"] if storage is StorageType.BOOLEAN else list(_COMPARISONS)
    comparisons = st.builds(lambda sign, item: _comparison(name, sign, item), st.sampled_from(operators), literals)
    memberships = st.lists(literals, min_size=1, max_size=3).map(lambda items: _membership(name, items))
    null = (f"{quoted(name)} IS NULL", lambda row: row[name] is None)
    present = (f"{quoted(name)} IS NOT NULL", lambda row: row[name] is not None)
    choices = [comparisons, memberships, st.sampled_from([null, present])]
    if storage is not StorageType.BOOLEAN:
        choices.append(st.tuples(literals, literals).map(lambda ends: _between(name, *ends)))
    return st.one_of(choices)


def _comparison(name: str, sign: str, item: Any) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        return None if row[name] is None else bool(_COMPARISONS[sign](row[name], item))

    return f"{quoted(name)} {sign} {sql_literal(item)}", holds


def _membership(name: str, items: list[Any]) -> Condition:
    listing = ", ".join(map(sql_literal, items))
    return f"{quoted(name)} IN ({listing})", lambda row: None if row[name] is None else row[name] in items


def _between(name: str, low: Any, high: Any) -> Condition:
    sql = f"{quoted(name)} BETWEEN {sql_literal(low)} AND {sql_literal(high)}"
    return sql, lambda row: None if row[name] is None else low <= row[name] <= high


def _combined(children: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    return st.one_of(
        st.tuples(children, children).map(lambda pair: _both(*pair)),
        st.tuples(children, children).map(lambda pair: _either(*pair)),
        children.map(_opposite),
    )


def _both(left: Condition, right: Condition) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        sides = left[1](row), right[1](row)
        if False in sides:
            return False
        return None if None in sides else True

    return f"({left[0]}) AND ({right[0]})", holds


def _either(left: Condition, right: Condition) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        sides = left[1](row), right[1](row)
        if True in sides:
            return True
        return None if None in sides else False

    return f"({left[0]}) OR ({right[0]})", holds


def _opposite(inner: Condition) -> Condition:
    def holds(row: dict[str, Any]) -> bool | None:
        truth = inner[1](row)
        return None if truth is None else not truth

    return f"NOT ({inner[0]})", holds
