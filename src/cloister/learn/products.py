"""The exact products of columns, from rows of steps, or from rows in which a category is one position.

Both ways give the same whole numbers. Of two indicators the product counts the rows that have both values; of a number
and an indicator it sums the number over the rows that have the value. So a category of many values costs one count
instead of many columns, and categories of few values are counted together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.learn.grid import Grid
from cloister.learn.rows import Coded, Floats, exact_product

__all__ = ["Products", "column_sums", "products_of", "products_of_coded"]

_EXACT = 2.0**52
_COMBINATIONS = 2**12
"""How many combinations are counted together: few beside the rows, so that adding them up costs little."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The sums of products of each two columns, the sums of columns and the number of rows, in steps. Protected."""

    products: NDArray[Any]
    sums: NDArray[Any]
    count: int

    def __repr__(self) -> str:
        return f"Products(columns={len(self.sums)})"


def products_of(steps: Floats, weights: NDArray[np.int64], *, most: int) -> Products:
    """Return the products of columns of whole steps, each at most ``most``."""
    return Products(
        exact_product(steps, steps, weights, most=most**2),
        column_sums(steps, weights, most=most),
        int(weights.sum()),
    )


def column_sums(columns: Floats, weights: NDArray[np.int64], *, most: int) -> NDArray[Any]:
    """Return the exact sums of columns of whole numbers, each at most ``most``, as Python's own integers."""
    return exact_product(columns, np.ones((len(columns), 1)), weights, most=most)[:, 0].astype(object)


def products_of_coded(grid: Grid, rows: Coded) -> Products | None:
    """Return the products of columns of rows in which categories are positions.

    Args:
        grid: whose indicators are counted from 0.
        rows: whose categories are whole numbers; all else are numbers.

    Returns:
        The products, or nothing if the rows are too many for numbers of 64 bits.
    """
    most, weights = grid.row_bounds.largest, rows.weights
    if float(weights.sum(dtype=np.float64)) * most**2 >= _EXACT:
        return None
    numbers = [place for place, part in enumerate(rows.parts) if part.dtype.kind == "f"]
    categories = [place for place in range(len(rows.parts)) if place not in numbers]
    width = len(grid.origins)
    found = Products(np.zeros((width, width), dtype=np.int64), np.zeros(width, dtype=np.int64), int(weights.sum()))
    times = None if (weights == 1).all() else weights.astype(np.float64)
    steps = _among_numbers(grid, rows, numbers, found, most)
    weighted = {number: step if times is None else step * times for number, step in steps.items()}
    groups = _groups(grid, rows, categories)
    for group in groups:
        _among_categories(grid, group, group.sums(times), found)
        for number, step in weighted.items():
            table = group.sums(step)
            for place in group.places:
                part = grid.parts[place]
                _set(found, part, grid.parts[number], grid.highs[part.start] * group.margin(table, place)[:, None])
    for first, second in combinations(groups, 2):
        for one, other in product(first.places, second.places):
            pair = _group(grid, rows, (one, other))
            _set_pair(grid, pair, pair.sums(times), found, (one, other))
    return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Group:
    """Some categories, how many positions each has, and which combination each row has."""

    places: tuple[int, ...]
    sizes: tuple[int, ...]
    cells: NDArray[np.int64]

    def sums(self, weights: Floats | None) -> NDArray[np.int64]:
        """Return the sum of weights, or the number of rows, of each combination."""
        sums = np.bincount(self.cells, weights, minlength=math.prod(self.sizes))
        return sums.astype(np.int64, copy=False).reshape(self.sizes)

    def margin(self, table: NDArray[np.int64], *places: int) -> NDArray[np.int64]:
        """Return the sums of one or two categories, for their declared values alone."""
        others = tuple(axis for axis, place in enumerate(self.places) if place not in places)
        declared = tuple(slice(0, -1) for _ in places)
        return np.asarray(table.sum(axis=others)[declared])


def _group(grid: Grid, rows: Coded, places: tuple[int, ...]) -> _Group:
    sizes = tuple(_size(grid, place) for place in places)
    cells = rows.parts[places[0]]
    for place, size in zip(places[1:], sizes[1:], strict=True):
        cells = cells * size + rows.parts[place]
    return _Group(places, sizes, cells)


def _size(grid: Grid, place: int) -> int:
    """Return how many positions a category has: its values, and one for what is none of them."""
    part = grid.parts[place]
    return int(part.stop - part.start) + 1


def _groups(grid: Grid, rows: Coded, categories: list[int]) -> list[_Group]:
    """Return the categories in groups of few combinations."""
    groups: list[list[int]] = []
    room = 0
    for place in categories:
        size = _size(grid, place)
        if groups and size <= room:
            groups[-1].append(place)
            room //= size
        else:
            groups.append([place])
            room = _COMBINATIONS // size
    return [_group(grid, rows, tuple(places)) for places in groups]


def _among_numbers(grid: Grid, rows: Coded, numbers: list[int], found: Products, most: int) -> dict[int, Floats]:
    """Set what the numbers have among themselves, and return their steps."""
    if not numbers:
        return {}
    columns = [grid.parts[place].start for place in numbers]
    steps = np.empty((len(numbers), len(rows.weights)))
    for step, place, column in zip(steps, numbers, columns, strict=True):
        step[:] = grid.column_steps(column, rows.parts[place])
    inner = products_of(steps.T, rows.weights, most=most)
    found.products[np.ix_(columns, columns)] = inner.products
    found.sums[columns] = inner.sums
    return dict(zip(numbers, steps, strict=True))


def _among_categories(grid: Grid, group: _Group, table: NDArray[np.int64], found: Products) -> None:
    """Set what the categories of a group have among themselves."""
    for place in group.places:
        part, counts = grid.parts[place], group.margin(table, place)
        found.sums[part] = grid.highs[part.start] * counts
        found.products[part, part] = np.diag(grid.highs[part.start] ** 2 * counts)
    for one, other in combinations(group.places, 2):
        _set_pair(grid, group, table, found, (one, other))


def _set_pair(grid: Grid, group: _Group, table: NDArray[np.int64], found: Products, pair: tuple[int, int]) -> None:
    left, right = (grid.parts[place] for place in pair)
    _set(found, left, right, grid.highs[left.start] * grid.highs[right.start] * group.margin(table, *pair))


def _set(found: Products, left: slice, right: slice, products: NDArray[np.int64]) -> None:
    found.products[left, right], found.products[right, left] = products, products.T
