"""Outputs of any shape as columns to look for events in: their named leaves, and features made of these.

A number or a word is one leaf. A vector has one leaf per coordinate, a dictionary one per key, a grouped answer one per
group and measure. What is *there* counts as much as what it says: the keys that are present, their order, and how many
items there are, are leaves of their own, so that an audit sees groups that appear, or rank higher, only when somebody
is in the data.

A column has one value per output, numeric or in words, for the outputs of two neighbors. Besides the leaves themselves
there are sums, extremes and differences of their numbers, and the *evidence*: the sum over leaves of how much likelier
each value is on one neighbor than on the other, learned from the half of the outputs that chooses the event. It finds
leaks that are spread thinly over many leaves, as the classifier of Bichsel, Steffen, Bogunovic and Vechev (2021) does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.auditing.statistical_check import Column, Columns, Outputs, Reader
from cloister.core.confidence import Floats
from cloister.core.result import Result
from cloister.queries.answers import Frame

__all__ = ["Feature", "Leaves", "leaves", "plain", "reader"]


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
    # With a float in it every whole output would be one of a kind.
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


Feature: TypeAlias = Callable[[Any], Any]
_Pair: TypeAlias = tuple[Column, Column]

_MOST_LEAVES = 60
_MOST_DIFFERENCES = 6
_BINS = 12
_WORDS = 20
_NUMBERS = (int, float, np.number, np.bool_, Fraction, Decimal)
_ABSENT = object()


def reader(features: Mapping[str, Feature] | None, *, keys: Collection[str] = ()) -> Reader:
    """Return a function from the outputs of two neighbors to columns: the given features, or the built-in ones."""

    def read(first: Outputs, second: Outputs, half: int) -> Columns:
        if features is not None:
            return {name: _both(function(first), function(second)) for name, function in features.items()}
        return _derive_columns(first, second, half, keys)

    return read


def _derive_columns(first: Outputs, second: Outputs, half: int, keys: Collection[str]) -> Columns:
    columns = _leaf_columns(first, second, keys)
    columns = _most_different(columns, half, most=_MOST_LEAVES)
    if len(columns) == 1:
        return columns
    return {**columns, **_combinations(columns, half), "evidence": _evidence(columns, half)}


def _leaf_columns(first: Outputs, second: Outputs, keys: Collection[str]) -> dict[str, _Pair]:
    if _are_numbers(first) and _are_numbers(second) and first.shape[1:] == second.shape[1:]:
        if first.ndim == 1:
            return {"output": (first, second)}
        return {f"output[{i}]": (first[:, i], second[:, i]) for i in range(first.shape[1])}
    samples = [[leaves(output, keys=keys) for output in outputs] for outputs in (first, second)]
    names = dict.fromkeys(name for sample in samples for output in sample for name in output)
    columns: dict[str, _Pair] = {}
    for name in names:
        here, there = ([output.get(name, _ABSENT) for output in sample] for sample in samples)
        columns |= _type_leaf(name, here, there)
    return columns


def _are_numbers(outputs: Outputs) -> TypeGuard[Column]:
    return isinstance(outputs, np.ndarray) and outputs.dtype.kind in "iufb" and outputs.ndim in {1, 2}


def _type_leaf(name: str, first: list[Any], second: list[Any]) -> dict[str, _Pair]:
    """Return a leaf as numbers, as words, and, where it is not always the same, as what kind of thing it is."""
    kinds = [list(map(_kind, values)) for values in (first, second)]
    found = {*kinds[0], *kinds[1]}
    columns: dict[str, _Pair] = {}
    if "number" in found:
        columns[name] = _both(_numbers(first, kinds[0]), _numbers(second, kinds[1]))
    if "word" in found:
        words = _both(*([_word(value) for value in values] for values in (first, second)))
        columns[f"{name} in words" if "number" in found else name] = words
    if len(found) > 1 or not columns:
        columns[f"kind of {name}"] = _both(*kinds)
    return columns


def _kind(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    if value is None:
        return "none"
    return "number" if isinstance(value, _NUMBERS) else "word"


def _numbers(values: list[Any], kinds: list[str]) -> Column:
    """Return numbers, NaN where there is none; whole numbers stay whole where they fit."""
    if all(isinstance(value, int) and abs(value) < 2**62 for value in values):
        return np.array(values, dtype=np.int64)
    return np.array(
        [float(value) if kind == "number" else np.nan for value, kind in zip(values, kinds, strict=True)],
        dtype=np.float64,
    )


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None or value is _ABSENT or isinstance(value, _NUMBERS) else repr(value)


def _both(first: Any, second: Any) -> _Pair:
    """Return two samples as arrays of one type that can be sorted."""
    pair = np.asarray(first), np.asarray(second)
    if all(part.dtype.kind in "iufb" for part in pair):
        return pair
    here, there = ([str(item) for item in part.tolist()] for part in pair)
    return np.array(here, dtype=np.str_), np.array(there, dtype=np.str_)


def _most_different(columns: Mapping[str, _Pair], half: int, *, most: int) -> dict[str, _Pair]:
    """Return the columns that differ most between the neighbors, in their old order."""
    if len(columns) <= most:
        return dict(columns)
    apart = {name: _separation(here[:half], there[:half]) for name, (here, there) in columns.items()}
    chosen = set(sorted(columns, key=apart.__getitem__, reverse=True)[:most])
    return {name: pair for name, pair in columns.items() if name in chosen}


def _separation(first: Column, second: Column) -> float:
    """Return how far two samples are apart: in shares of words, or in means over the spread."""
    if not _is_numeric(first):
        words, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
        shares = [np.bincount(part, minlength=len(words)) / len(part) for part in np.split(codes, [len(first)])]
        return float(np.abs(shares[0] - shares[1]).sum() / 2)
    present = [part[np.isfinite(part)].astype(np.float64) for part in (first, second)]
    missing = abs(len(present[0]) / len(first) - len(present[1]) / len(second))
    if not all(len(part) for part in present):
        return missing
    spread = float(np.sqrt(present[0].var() + present[1].var()))
    distance = abs(float(present[0].mean() - present[1].mean()))
    return max(missing, distance / spread if spread else float(distance > 0) * len(first))


def _is_numeric(column: Column) -> bool:
    return column.dtype.kind in "iufb"


def _combinations(columns: Mapping[str, _Pair], half: int) -> dict[str, _Pair]:
    """Return the sum, least and largest of all numbers in an output, and differences of those that differ most."""
    numbers = {
        name: pair
        for name, pair in columns.items()
        if name.startswith("output") and all(map(_is_numeric, pair)) and not name.endswith(" in words")
    }
    if len(numbers) < 2:
        return {}
    tables = [np.column_stack([pair[side].astype(np.float64) for pair in numbers.values()]) for side in (0, 1)]
    chosen = _most_different(numbers, half, most=_MOST_DIFFERENCES)
    found: dict[str, _Pair] = {}
    for (name, pair), (other, second) in combinations(chosen.items(), 2):
        found[f"{name} - {other}"] = _minus(pair[0], second[0]), _minus(pair[1], second[1])
    for name, function in (("sum", np.sum), ("least", np.min), ("largest", np.max)):
        found[f"{name} of output"] = function(tables[0], axis=1), function(tables[1], axis=1)
    return found


def _minus(first: Column, second: Column) -> Column:
    return np.subtract(first, second, dtype=np.result_type(first, second, np.int64))


def _evidence(columns: Mapping[str, _Pair], half: int) -> tuple[Floats, Floats]:
    totals = [np.zeros(len(part)) for part in next(iter(columns.values()))]
    for here, there in columns.values():
        codes = _codes(here, there, half)
        size = max(int(part.max()) for part in codes) + 1
        # One more of each keeps a value that was never seen on one side from deciding alone.
        counts = [np.bincount(part[:half], minlength=size) + 1 for part in codes]
        weights = np.log(counts[0]) - np.log(counts[1])
        totals = [total + weights[part] for total, part in zip(totals, codes, strict=True)]
    return totals[0], totals[1]


def _codes(first: Column, second: Column, half: int) -> list[NDArray[np.int64]]:
    """Return a small number per value: its bin, or its place among the most common words."""
    # Nothing but the choosing half may shape the codes, or the test would not be independent of them.
    seen = np.concatenate([first[:half], second[:half]])
    if not _is_numeric(first):
        words, counts = np.unique(seen, return_counts=True)
        known = np.sort(words[np.argsort(-counts, kind="stable")[:_WORDS]])
        places = [np.clip(np.searchsorted(known, part), 0, len(known) - 1) for part in (first, second)]
        return [
            np.where(known[place] == part, place, len(known))
            for place, part in zip(places, (first, second), strict=True)
        ]
    finite = seen[np.isfinite(seen)]
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(finite) else np.zeros(0)
    return [np.where(np.isnan(part), len(edges) + 1, np.searchsorted(edges, part)) for part in (first, second)]
