"""The layers of a hierarchy: names and integer codes per level, how they are built, and what makes them a tree.

Each rule of building (rows, intervals, cuts, orderings, masks, dates) returns names and integer codes per level. They
are a tree when there is one parent per name, one meaning per name, and intervals that tell the truth.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import text_of_number
from cloister.core.validation import check_count
from cloister.data.interval_labels import LabelInterval, first_overlap, interval_in, interval_name, number_in
from cloister.data.values import Codes, is_missing, is_single, text_of
from cloister.errors import HierarchyError, ParameterError, ParameterTypeError

ROOT = "*"
LARGEST = 2_000_000
"""The most leaves that a rule may make."""


class Layers(NamedTuple):
    """The names at each level, and for each leaf its code at each level."""

    labels: tuple[tuple[str, ...], ...]
    codes: tuple[Codes, ...]


def layers_from_rows(rows: Iterable[Sequence[object]]) -> Layers:
    """Return the layers of rows that go from a raw value to the root, padded where they are short."""
    return layers_from_texts(_texts(rows))


def layers_from_texts(rows: Iterable[tuple[str, ...]]) -> Layers:
    """Return the layers of rows that are texts without empty names above the value."""
    padded = _pad_rows(_distinct_rows(rows))
    return _layers([list(column) for column in zip(*padded, strict=True)])


def rows_of_tree(tree: Mapping[Any, Any] | Sequence[Any]) -> list[tuple[str, ...]]:
    """Return the rows of nested mappings."""
    return [tuple(path) for path in _paths(tree, above=(), open_ids=frozenset())]


def interval_layers(bounds: Sequence[object], *, widths: Sequence[object], step: object, origin: object) -> Layers:
    """Return half-open intervals of growing widths over public bounds, both of which are values."""
    low, high = _check_range(bounds)
    sizes = _check_nested([exact.number(width, name="each width") for width in _many(widths, "widths")], "width")
    start = low if origin is None else exact.number(origin, name="origin")
    if step is not None:
        pace = exact.number(step, name="step")
        if pace <= 0:
            raise ParameterError("step must be above 0.", fix="use step=1 for whole numbers, step=None for any number.")
        values = _grid(low, high, pace)
        return _layers([[text_of_number(value) for value in values], *_interval_columns(values, sizes, start)])
    # Intervals are counted from the origin, so that the first one may begin below the lower bound.
    first = start + (low - start) // sizes[0] * sizes[0]
    return _layers(list(_interval_columns(_grid(first, high, sizes[0]), sizes, start)))


def cut_layers(bounds: Sequence[object], *, cuts: Sequence[Sequence[object]]) -> Layers:
    """Return intervals between public cut points; coarser levels keep a part of the finer cuts."""
    low, high = _check_range(bounds)
    points = [_check_cuts(level, low, high) for level in _many(cuts, "cuts")]
    for fine, coarse in itertools.pairwise(points):
        if not set(coarse) <= set(fine):
            raise HierarchyError(
                "The cuts of a level are not all among the cuts of the finer level before it.",
                fix="list the finest cuts first, and only drop cuts from level to level.",
            )
    lows = (low, *points[0])
    return _layers([[_cut_name(value, level, low, high) for value in lows] for level in points])


def ordering_layers(values: Sequence[object], *, sizes: Sequence[int]) -> Layers:
    """Return groups of neighbors among ordered values, named after their first and last member."""
    names = [text_of(value) for value in values]
    if not names or len(set(names)) != len(names):
        raise HierarchyError("The ordered values are empty or repeat.", fix="list every value once, in order.")
    counts = [Fraction(check_count(size, name="each size", at_least=2)) for size in _many(sizes, "sizes")]
    columns = [names]
    for size in map(int, _check_nested(counts, "size")):
        groups = [names[start : start + size] for start in range(0, len(names), size)]
        titles = [group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups]
        columns.append([titles[place // size] for place in range(len(names))])
    return _layers(columns)


def masking_layers(values: Iterable[object] | int, *, mask: str) -> Layers:
    """Return values whose characters are masked from the right, one more at each level."""
    if len(mask) != 1:
        raise ParameterError("mask must be one character.", fix='use for example mask="*".')
    names = _all_numbers(values) if is_single(values) else [text_of(value) for value in values]  # type: ignore[union-attr]  # is_single decides
    names = list(dict.fromkeys(names))
    if not names or any(mask in name for name in names):
        raise HierarchyError(
            "There is nothing to mask, or a value holds the mask character itself.",
            fix="give at least one value, and a mask character that no value holds.",
        )
    width = max(map(len, names))
    shown = range(width - 1, 0, -1)
    return _layers([names, *([name[:count].ljust(width, mask) for name in names] for count in shown)])


def date_layers(first: date | str, last: date | str) -> Layers:
    """Return day, month, quarter, year and decade for every day of a range."""
    start, end = (_check_date(day) for day in (first, last))
    if start > end:
        raise ParameterError("The first date is after the last.", fix="give the earlier date first.")
    days = np.arange(np.datetime64(start), np.datetime64(end) + 1)
    months = days.astype("datetime64[M]").astype(np.int64) + 1970 * 12
    texts = days.astype(str)
    years = [str(year).zfill(4) for year in (months // 12).tolist()]
    quarters = [f"{year}-Q{quarter}" for year, quarter in zip(years, (months % 12 // 3 + 1).tolist(), strict=True)]
    return _layers(
        [texts.tolist(), [text[:7] for text in texts.tolist()], quarters, years, [f"{y[:3]}0s" for y in years]]
    )


def _layers(columns: list[list[str]]) -> Layers:
    """Return the layers of label columns, with the root on top."""
    if len(columns) == 1 or any(label != ROOT for label in columns[-1]):
        columns = [*columns, [ROOT] * len(columns[0])]
    labels, codes = zip(*(_factorize(column) for column in columns), strict=True)
    return Layers(labels, codes)


def _factorize(column: list[str]) -> tuple[tuple[str, ...], Codes]:
    index: dict[str, int] = {}
    codes = np.array([index.setdefault(label, len(index)) for label in column], dtype=np.int64)
    return tuple(index), codes


def _texts(rows: Iterable[object]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence) or not row:
            raise HierarchyError(
                "A row of the hierarchy is not a list of names.", fix='write each row as ["39", "30-39", "*"].'
            )
        if any(is_missing(name) for name in row):
            raise HierarchyError(
                "A row of the hierarchy holds a missing name.", fix="leave missing values out; they need no row."
            )
        texts = tuple(text_of(name) for name in row)
        if "" in texts[1:]:
            raise HierarchyError("A row of the hierarchy holds an empty name above its value.", fix="name the group.")
        yield texts


def _distinct_rows(rows: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    by_leaf: dict[str, tuple[str, ...]] = {}
    for row in rows:
        # The same row twice is no contradiction; two different ones are.
        if by_leaf.setdefault(row[0], row) != row:
            raise HierarchyError(
                f'"{row[0]}" has two different rows, so it stands under two parents.',
                fix=f'keep one row for "{row[0]}".',
            )
    if not by_leaf:
        raise HierarchyError("The hierarchy is empty.", fix='write one row per value, such as "39;30-39;*".')
    return list(by_leaf.values())


def _pad_rows(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return rows of equal length: a short row repeats its last name below the root."""
    width = max(map(len, rows))
    rooted = {row[-1] == ROOT for row in rows if len(row) == width}
    if len(rooted) == 2 and width > 1:
        raise HierarchyError(
            "The hierarchy has more than one root: some rows end in * and others of the same length do not.",
            fix="end every row in *.",
        )
    return [row if len(row) == width else _stretch_row(row, width, rooted == {True}) for row in rows]


def _stretch_row(row: tuple[str, ...], width: int, rooted: bool) -> tuple[str, ...]:  # noqa: FBT001  # private helper
    body = row
    while len(body) > 1 and body[-1] == ROOT:
        body = body[:-1]
    room = width - 1 if rooted else width
    return (*body, *[body[-1]] * (room - len(body)), *[ROOT] * (width - room))


def _paths(tree: Any, *, above: tuple[str, ...], open_ids: frozenset[int]) -> Iterator[tuple[str, ...]]:
    if id(tree) in open_ids:
        raise HierarchyError("The taxonomy contains itself: the hierarchy has a cycle.", fix="write a tree.")
    inner = open_ids | {id(tree)}
    if isinstance(tree, Mapping):
        for name, below in tree.items():
            label = text_of(name)
            # A name without anything below it is a raw value.
            if below is None or below in ({}, []):
                yield (label, *above)
            else:
                yield from _paths(below, above=(label, *above), open_ids=inner)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for item in tree:
            if isinstance(item, Mapping):
                yield from _paths(item, above=above, open_ids=inner)
            else:
                yield from _texts([(item, *above)])
    else:
        raise HierarchyError(
            "A taxonomy holds something that is neither a mapping nor a list of values.",
            fix='write for example {"Government": ["State", "Local"], "Private": None}.',
        )


def _many(values: Sequence[Any], name: str) -> list[Any]:
    if is_single(values) or not list(values):
        raise ParameterTypeError(f"{name} must be a list with at least one entry.", fix=f"write {name}=[...].")
    return list(values)


def _check_range(bounds: Sequence[object]) -> tuple[Fraction, Fraction]:
    if is_single(bounds) or len(bounds) != 2:
        raise ParameterTypeError("bounds must be a pair (lowest, highest).", fix="write for example (0, 110).")
    low, high = (exact.number(end, name="each end of bounds") for end in bounds)
    if low > high:
        raise ParameterError("bounds are reversed.", fix="write the smaller number first.")
    return low, high


def _check_nested(sizes: list[Fraction], what: str) -> list[Fraction]:
    if sizes[0] <= 0:
        raise ParameterError(f"Each {what} must be above 0.", fix=f"give a positive {what}.")
    for small, large in itertools.pairwise(sizes):
        if large <= small or large % small:
            low, high = text_of_number(small), text_of_number(large)
            raise HierarchyError(
                f"The {what} {high} is not a multiple of the {what} {low} before it, so the groups do not nest.",
                fix=f"use growing multiples, for example {low} and {text_of_number(2 * small)}.",
            )
    return sizes


def _check_cuts(cuts: Sequence[object], low: Fraction, high: Fraction) -> tuple[Fraction, ...]:
    points = tuple(exact.number(cut, name="each cut") for cut in _many(cuts, "each level of cuts"))
    if any(a >= b for a, b in itertools.pairwise((low, *points))) or points[-1] > high:
        raise ParameterError(
            "Cuts must grow and lie above the lower bound, up to the upper bound.",
            fix="write them in order, for example (18, 40, 65).",
        )
    return points


def _cut_name(value: Fraction, cuts: tuple[Fraction, ...], low: Fraction, high: Fraction) -> str:
    edges = (low, *cuts)
    place = max(index for index, edge in enumerate(edges) if edge <= value)
    if place == len(cuts):
        return f"[{text_of_number(edges[place])}, {text_of_number(high)}]"
    return interval_name(edges[place], edges[place + 1])


def _grid(low: Fraction, high: Fraction, pace: Fraction) -> list[Fraction | int]:
    count = (high - low) // pace + 1
    if count > LARGEST:
        raise ParameterError(
            f"The hierarchy would have {count} leaves.", fix=f"use wider steps; at most {LARGEST} leaves are built."
        )
    # Whole numerators over one denominator: fractions would take many times as long.
    scale = math.lcm(low.denominator, pace.denominator)
    start, stride = int(low * scale), int(pace * scale)
    numerators = range(start, start + int(count) * stride, stride)
    return list(numerators) if scale == 1 else [Fraction(numerator, scale) for numerator in numerators]


def _interval_columns(values: list[Fraction | int], sizes: list[Fraction], start: Fraction) -> Iterator[list[str]]:
    zero = _plain(start)
    for size in map(_plain, sizes):
        places = [(value - zero) // size for value in values]
        names = {place: interval_name(zero + place * size, zero + (place + 1) * size) for place in set(places)}
        yield [names[place] for place in places]


def _plain(value: Fraction) -> Fraction | int:
    """Return a whole number as an int, which is much faster to compute with."""
    return int(value) if value.denominator == 1 else value


def _all_numbers(length: object) -> list[str]:
    digits = check_count(length, name="the number of digits", at_least=1)
    if 10**digits > LARGEST:
        raise ParameterError(
            f"All numbers of {digits} digits are too many.", fix="give the public list of values instead."
        )
    return [str(number).zfill(digits) for number in range(10**digits)]


def _check_date(day: object) -> date:
    if isinstance(day, date):
        return date(day.year, day.month, day.day)
    if isinstance(day, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", day):
        try:
            return date.fromisoformat(day)
        except ValueError:
            pass
    raise ParameterError("A date is not written as year-month-day.", fix='write for example "2020-12-31".')


_Numbers: TypeAlias = "list[Fraction | int | None]"
_EVERYTHING = LabelInterval(None, None)


def check_tree(layers: Layers) -> None:
    """Return nothing for a tree, else raise.

    Raises:
        HierarchyError: if a name has two parents, two meanings or is above itself, or intervals overlap or do not
            hold their values.
    """
    parents = [_parents(layers, level) for level in range(len(layers.labels) - 1)]
    _check_meanings(layers, parents)
    levels = _interval_levels(layers)
    numbers = _numbers(layers) if levels else []
    for level in levels:
        _check_overlap(layers, level, numbers)
        _check_inside(layers, level, numbers)


def truthful(layers: Layers) -> tuple[Layers, bool]:
    """Return the same tree with intervals that do not hold their values renamed, and whether there were any.

    The new name is the range of the values below: "95-99" above 96 .. 100 becomes "96-100".
    """
    names = list(layers.labels)
    levels = _interval_levels(layers)
    numbers = _numbers(layers) if levels else []
    for level in levels:
        labels = list(names[level])
        for code, name in _ranges_below(layers, level, numbers).items():
            labels[code] = name
        names[level] = tuple(labels)
    return Layers(tuple(names), layers.codes), tuple(names) != layers.labels


def _check_overlap(layers: Layers, level: int, numbers: _Numbers) -> None:
    numeric = np.array([number is not None for number in numbers])
    pair = first_overlap(layers.labels[level][code] for code in np.unique(layers.codes[level][numeric]))
    if pair is not None:
        raise HierarchyError(
            f'The intervals "{pair[0]}" and "{pair[1]}" at one level overlap.',
            fix="let each number belong to one interval per level, for example [20, 30) and [30, 40).",
        )


def _check_inside(layers: Layers, level: int, numbers: _Numbers) -> None:
    wrong = np.flatnonzero(_outside(layers, level, numbers))
    if wrong.size:
        leaf = layers.labels[0][wrong[0]]
        interval = layers.labels[level][layers.codes[level][wrong[0]]]
        raise HierarchyError(
            f'The value "{leaf}" lies outside "{interval}", which the hierarchy puts above it.',
            fix=f'put "{leaf}" under an interval that contains it, or rename the interval.',
        )


def _ranges_below(layers: Layers, level: int, numbers: _Numbers) -> dict[int, str]:
    """Return the range of the values below each interval of a level that does not hold them."""
    codes = layers.codes[level].tolist()
    wrong = np.flatnonzero(_outside(layers, level, numbers)).tolist()
    below: dict[int, list[Fraction | int]] = {codes[leaf]: [] for leaf in wrong}
    for number, code in zip(numbers, codes, strict=True):
        if number is not None and code in below:
            below[code].append(number)
    return {code: f"{text_of_number(min(held))}-{text_of_number(max(held))}" for code, held in below.items()}


def _outside(layers: Layers, level: int, numbers: _Numbers) -> NDArray[np.bool_]:
    """Return which leaves are outside their interval at a level: by floats, and exactly where those tie."""
    intervals = [interval_in(label) or _EVERYTHING for label in layers.labels[level]]
    codes = layers.codes[level]
    low = np.array([-np.inf if part.low is None else float(part.low) for part in intervals])[codes]
    high = np.array([np.inf if part.high is None else float(part.high) for part in intervals])[codes]
    values = np.array([np.nan if number is None else float(number) for number in numbers])
    outside = np.asarray((values < low) | (values > high))
    # Floats decide all but ties, where an end may be open or closed, or have been rounded.
    for leaf in np.flatnonzero((values == low) | (values == high)):
        number = numbers[leaf]
        outside[leaf] = number is not None and not intervals[codes[leaf]].contains(number)
    return outside


def _interval_levels(layers: Layers) -> list[int]:
    """Return the levels above the leaves at which some name is an interval."""
    named = enumerate(layers.labels[1:], start=1)
    return [level for level, labels in named if any(interval_in(label) is not None for label in labels)]


def _numbers(layers: Layers) -> _Numbers:
    return [number_in(label) for label in layers.labels[0]]


def _parents(layers: Layers, level: int) -> Codes:
    """Return the code above each code of a level, refusing a name with two parents."""
    here, above = layers.codes[level], layers.codes[level + 1]
    parents = np.zeros(len(layers.labels[level]), dtype=np.int64)
    parents[here] = above
    # Each name has kept its last parent; where a row has another, there are two.
    wrong = np.flatnonzero(parents[here] != above)
    if wrong.size:
        label = layers.labels[level][here[wrong[0]]]
        raise HierarchyError(
            f'"{label}" stands under two parents at level {level + 1}.',
            fix=f'give "{label}" the same parent in every row, or two different names.',
        )
    return parents


def _check_meanings(layers: Layers, parents: list[Codes]) -> None:
    """Refuse a name that returns at another level, except for padding, where it is its own parent."""
    seen: dict[str, tuple[int, int]] = {}
    for level, labels in enumerate(layers.labels):
        for code, label in enumerate(labels):
            if label in seen and not _is_padding(seen[label], level, code, parents):
                raise _second_meaning(label, seen[label], level, code, layers)
            seen[label] = (level, code)


def _is_padding(before: tuple[int, int], level: int, code: int, parents: list[Codes]) -> bool:
    return before[0] == level - 1 and parents[level - 1][before[1]] == code


def _second_meaning(label: str, before: tuple[int, int], level: int, code: int, layers: Layers) -> HierarchyError:
    below = layers.codes[before[0]] == before[1]
    if (layers.codes[level][below] == code).all():
        return HierarchyError(
            f'"{label}" is above itself: the hierarchy has a cycle.',
            fix="let every name on the way from a value to * be different, or repeated only in a row.",
        )
    return HierarchyError(
        f'"{label}" stands for different values at levels {before[0]} and {level}.',
        fix="use different names, so that a published name has one meaning.",
    )
