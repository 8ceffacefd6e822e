"""What makes a hierarchy a tree: one parent per name, one meaning per name, intervals that tell the truth."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.data.hierarchy_building import Layers
from cloister.data.interval_labels import Interval, first_overlap, interval_in, number_in
from cloister.data.values import Codes, text_of_number
from cloister.errors import HierarchyError

_Numbers: TypeAlias = "list[Fraction | int | None]"
_EVERYTHING = Interval(None, None)


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
