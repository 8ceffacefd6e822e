"""What an output is made of: named leaves, whatever shape a mechanism answers in.

A number or a word is one leaf. A vector has one leaf per coordinate, a dictionary one per key, a grouped answer one per
group and measure. What is *there* counts as much as what it says: the keys that are present, their order, and how many
items there are, are leaves of their own, so that an audit sees groups that appear, or rank higher, only when somebody
is in the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np

from cloister.core.result import Result
from cloister.queries.answers import Frame

__all__ = ["Leaves", "leaves", "plain"]

Leaves: TypeAlias = dict[str, Any]

_WHOLE_AT_MOST = 64


def leaves(output: Any, *, keys: Collection[str] = ()) -> Leaves:
    """Return the leaves of an output by name.

    Args:
        output: a number, word, None, vector, tuple, dictionary, list of rows, table, or a result of cloister.
        keys: columns of a table that name its groups, besides those that hold words.

    >>> leaves({"north": 3.5})
    {'keys of output': "'north'", "output['north']": 3.5}
    >>> 3 in leaves([{"region": "north", "n": 3}]).values()
    True
    """
    found = dict(_walk(plain(output), "output", {*keys, *_key_columns(output)}))
    values = [value for name, value in found.items() if name.startswith("output")]
    if 1 < len(values) <= _WHOLE_AT_MOST and not any(isinstance(value, float | np.floating) for value in values):
        found["the whole output"] = repr(tuple(values))
    return found


def plain(output: Any) -> Any:
    """Return a result's value, a table's rows, or the output itself."""
    if isinstance(output, Result):
        return plain(_content(output))
    if hasattr(output, "to_pylist"):
        return output.to_pylist()
    if hasattr(output, "to_dicts"):
        return output.to_dicts()
    if hasattr(output, "itertuples"):
        return output.to_dict("records")
    return output.tolist() if isinstance(output, np.ndarray | np.generic) else output


def _content(result: Result) -> Any:
    """Return what a result of cloister says: its rows, its choices or its value."""
    if isinstance(result, Frame):
        columns = [(column.name, plain(column.values)) for column in result.columns]
        return [{name: values[row] for name, values in columns} for row in range(len(result))]
    for name in ("choices", "choice", "value"):
        if hasattr(result, name):
            return getattr(result, name)
    return {name: value for name, value in result.to_dict().items() if name not in {"schema", "guarantee", "event"}}


def _key_columns(output: Any) -> list[str]:
    return [column.name for column in output.columns if column.is_key] if isinstance(output, Frame) else []


def _walk(output: Any, name: str, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a container holds, after what is in it."""
    contents = _contents(output, keys)
    if contents is None:
        yield name, output
        return
    if isinstance(contents, Mapping):
        names = list(map(_key, contents))
        yield f"keys of {name}", ", ".join(sorted(names))
        if len(names) > 1 and not isinstance(output, Set):
            yield f"order of {name}", ", ".join(names)
        items = ((f"{name}[{_key(key)}]", value) for key, value in contents.items())
    else:
        yield f"length of {name}", len(contents)
        items = ((f"{name}[{index}]", value) for index, value in enumerate(contents))
    for inside, value in items:
        yield from _walk(plain(value), inside, keys)


def _contents(output: Any, keys: Collection[str]) -> Mapping[Any, Any] | Sequence[Any] | None:
    """Return what a container holds, with the rows of a table under the keys of their groups; None for a leaf."""
    if isinstance(output, Mapping):
        return _by_group(_rows_of_columns(output), keys) or output
    if isinstance(output, Set):
        return dict.fromkeys(output, True)
    if isinstance(output, Sequence) and not isinstance(output, str | bytes | bytearray):
        return _by_group(_rows_of_tuples(output), keys) or output
    return None


def _rows_of_columns(table: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    """Return the rows of a dictionary of columns, none if it is another dictionary."""
    columns = [plain(column) for column in table.values()]
    if not all(isinstance(column, list | tuple) for column in columns) or len({len(column) for column in columns}) != 1:
        return []
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def _rows_of_tuples(rows: Sequence[Any]) -> list[Mapping[Any, Any]]:
    """Return rows as dictionaries by column, none if the items are not rows of one width."""
    if all(isinstance(row, Mapping) for row in rows):
        return list(rows)
    if not all(isinstance(row, list | tuple) for row in rows) or len({len(row) for row in rows}) != 1:
        return []
    return [dict(enumerate(row)) for row in rows]


def _by_group(rows: list[Mapping[Any, Any]], keys: Collection[str]) -> Mapping[Any, Any]:
    """Return rows under what names them: words and the columns of ``keys``; nothing if no column does."""
    named = [column for column in dict.fromkeys(column for row in rows for column in row) if column in keys]
    worded = {column: None for row in rows for column, value in row.items() if isinstance(value, str)}
    columns = list(dict.fromkeys([*named, *worded]))
    if not columns:
        return {}
    groups: dict[Any, Any] = {}
    seen: Counter[Any] = Counter()
    for row in rows:
        key = tuple(_hashable(row.get(column)) for column in columns)
        name = key[0] if len(key) == 1 else key
        rest = {column: value for column, value in row.items() if column not in columns}
        groups[(name, "again", seen[name]) if seen[name] else name] = rest or True
        seen[name] += 1
    return groups


def _hashable(value: Any) -> Any:
    simple = plain(value)
    return simple if isinstance(simple, Hashable) else repr(simple)


def _key(key: Any) -> str:
    return repr(plain(key))
