"""The noisy number of rows, their mean and their covariance, from one release of all products of columns.

Dwork, Talwar, Thakurta and Zhang (2014, "Analyze Gauss") put Gaussian noise on the upper triangle of X'X. Here a
constant column stands before X, so that the number of rows and the sums of columns are in the same release.

The exact products of columns come from rows of steps, or from rows in which a category is one position. Both ways give
the same whole numbers. Of two indicators the product counts the rows that have both values; of a number and an
indicator it sums the number over the rows that have the value. So a category of many values costs one count instead of
many columns, and categories of few values are counted together.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed. A row z of whole steps,
constant included, moves the upper triangle by exactly (|z|_1**2 + |z|_2**2) / 2 in L1 and by
(|z|_2**4 + |z|_4**4) / 2 in squared L2, which is at most |z|_2**4, the squared Frobenius norm of zz'. Both grow with
every entry of z, so the largest row gives the bound. Products of two indicators of one category are 0 in every row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.learn._row_grid import RowBounds, RowGrid
from cloister.learn._rows import CompactRows
from cloister.mechanisms.calibration import NoiseCalibration, StepNoise

__all__ = [
    "Products",
    "ReleasedMoments",
    "SecondMoments",
    "column_sums",
    "plan_moments",
    "products_of",
    "products_of_coded",
    "weight_of_count",
]


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


def products_of_coded(grid: RowGrid, rows: CompactRows) -> Products | None:
    """Return the products of columns of rows in which categories are positions.

    Args:
        grid: whose indicators are counted from 0.
        rows: whose categories are whole numbers; all else are numbers.

    Returns:
        The products, or nothing if the rows are too many for numbers of 64 bits.
    """
    most, weights = grid.row_bounds.largest, rows.weights
    # Beyond this, sums in floats would round; the caller then takes the slower way, with wider numbers.
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
                # An indicator is worth the steps of one unit.
                _set(found, part, grid.parts[number], grid.highs[part.start] * group.margin(table, place)[:, None])
    # Across groups categories are counted pair by pair, since all combinations of both would be too many.
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
        # The last position is for what is no declared value, and has no column.
        declared = tuple(slice(0, -1) for _ in places)
        return np.asarray(table.sum(axis=others)[declared])


def _group(grid: RowGrid, rows: CompactRows, places: tuple[int, ...]) -> _Group:
    sizes = tuple(_size(grid, place) for place in places)
    cells = rows.parts[places[0]]
    for place, size in zip(places[1:], sizes[1:], strict=True):
        cells = cells * size + rows.parts[place]
    return _Group(places, sizes, cells)


def _size(grid: RowGrid, place: int) -> int:
    """Return how many positions a category has: its values, and one for what is none of them."""
    part = grid.parts[place]
    return int(part.stop - part.start) + 1


def _groups(grid: RowGrid, rows: CompactRows, categories: list[int]) -> list[_Group]:
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


def _among_numbers(
    grid: RowGrid, rows: CompactRows, numbers: list[int], found: Products, most: int
) -> dict[int, Floats]:
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


def _among_categories(grid: RowGrid, group: _Group, table: NDArray[np.int64], found: Products) -> None:
    """Set what the categories of a group have among themselves."""
    for place in group.places:
        part, counts = grid.parts[place], group.margin(table, place)
        found.sums[part] = grid.highs[part.start] * counts
        found.products[part, part] = np.diag(grid.highs[part.start] ** 2 * counts)
    for one, other in combinations(group.places, 2):
        _set_pair(grid, group, table, found, (one, other))


def _set_pair(grid: RowGrid, group: _Group, table: NDArray[np.int64], found: Products, pair: tuple[int, int]) -> None:
    left, right = (grid.parts[place] for place in pair)
    _set(found, left, right, grid.highs[left.start] * grid.highs[right.start] * group.margin(table, *pair))


def _set(found: Products, left: slice, right: slice, products: NDArray[np.int64]) -> None:
    found.products[left, right], found.products[right, left] = products, products.T


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """Released: the number of rows, their mean, and their mean product of columns, in steps; and the noise of these."""

    count: float
    mean: Floats
    products: Floats
    deviation: float

    @property
    def covariance(self) -> Floats:
        """Return the mean product of columns around the mean."""
        return np.asarray(self.products - np.outer(self.mean, self.mean))


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """A planned release."""

    grid: RowGrid
    largest: int
    constant: int
    centered: bool
    noise: StepNoise

    def release(self, steps: Floats, weights: NDArray[np.int64], source: RandomSource) -> ReleasedMoments:
        """Return the moments of rows of steps, with noise."""
        return self.release_products(products_of(steps, weights, most=self.largest), source)

    def release_products(self, exactly: Products, source: RandomSource) -> ReleasedMoments:
        """Return the moments that follow from products of columns, with noise."""
        width = len(self.grid.origins)
        is_wide = exactly.count * max(self.largest, self.constant) ** 2 >= 2**62
        full = np.zeros((width + 1, width + 1), dtype=object if is_wide else np.int64)
        full[1:, 1:] = exactly.products
        full[0, 1:] = self.constant * (exactly.sums.astype(object) if is_wide else exactly.sums)
        full[0, 0] = self.constant**2 * exactly.count
        above = np.triu_indices(width + 1)
        # The sums are not released then, and need no noise; the number of rows stays.
        if not self.centered:
            kept = (above[0] > 0) | (above[1] == 0)
            above = above[0][kept], above[1][kept]
        noisy = np.zeros(full.shape)
        noisy[above] = self.noise.add(full[above], source).astype(np.float64)
        return self._moments(noisy + np.triu(noisy, 1).T)

    def _moments(self, products: Floats) -> ReleasedMoments:
        count = max(1.0, products[0, 0] / self.constant**2)
        mean = self.grid.inside(products[:1, 1:] / self.constant / count)[0] if self.centered else np.zeros(0)
        return ReleasedMoments(
            count=count,
            mean=mean,
            # Products that are zero in every row are publicly so, and what noise made of them is dropped.
            products=np.where(self.grid.structure(), products[1:, 1:], 0.0) / count,
            deviation=self.noise.deviation / count,
        )


def weight_of_count(row: RowBounds, width: int, *, pure: bool) -> int:
    """Return how many steps one row counts as, so that the number of rows neither has nor causes much noise."""
    root = math.isqrt(width)
    return max(1, row.total // root if pure else math.isqrt(row.squares // root))


def plan_moments(
    grid: RowGrid,
    row: RowBounds,
    calibration: NoiseCalibration,
    *,
    share: Fraction = Fraction(1),
    centered: bool = True,
) -> SecondMoments:
    """Return what a share buys.

    Args:
        grid: the columns.
        row: how large a row can be.
        calibration: what may be spent.
        share: which part of it.
        centered: whether the sums of columns are wanted too.
    """
    constant = weight_of_count(row, len(grid.origins), pure=calibration.is_pure)
    return SecondMoments(
        grid=grid,
        largest=row.largest,
        constant=constant,
        centered=centered,
        noise=calibration.noise(
            share,
            sensitivity=_l1_sensitivity(row, constant, centered=centered),
            squared_sensitivity=_l2_sensitivity_squared(row, constant, centered=centered),
        ),
    )


def _l1_sensitivity(row: RowBounds, constant: int, *, centered: bool) -> int:
    if not centered:
        return constant**2 + -(-(row.total**2 + row.squares) // 2)
    return -(-((row.total + constant) ** 2 + row.squares + constant**2) // 2)


def _l2_sensitivity_squared(row: RowBounds, constant: int, *, centered: bool) -> int:
    if not centered:
        return constant**4 + -(-(row.squares**2 + row.fourths) // 2)
    return -(-((row.squares + constant**2) ** 2 + row.fourths + constant**4) // 2)
