"""What two classes would lose as one, for all pairs of some classes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.attributes import Attribute
from cloister.anonymize.regions import Regions, Values

Counts: TypeAlias = NDArray[np.int64]
Losses: TypeAlias = NDArray[np.float64]

_FEW_LEAVES = 1024


def union_losses(regions: Regions, classes: Counts, among: Counts) -> Losses:
    """Return the weighted loss of a row in the union of two classes: some (rows) with others (columns)."""
    total = np.zeros((len(classes), len(among)))
    for place, weight in enumerate(regions.partition.cells.weights_of_attributes):
        total += weight * _losses(regions, place, classes, among)
    return total


def first_codes(regions: Regions, place: int) -> NDArray[np.int32]:
    """Return the leaf of the first line of each class."""
    return regions.codes(place)[np.searchsorted(regions.class_of_line, np.arange(regions.partition.size))]


def _losses(regions: Regions, place: int, classes: Counts, among: Counts) -> Losses:
    attribute = regions.partition.cells.attributes[place]
    if regions.values is Values.HIERARCHY:
        return _nodes(regions, place, classes, among)
    if attribute.is_ordered:
        return _intervals(regions, place, classes, among)
    mine, theirs = (_members(regions, place, chosen) for chosen in (classes, among))
    union = mine.sum(axis=1)[:, None] + theirs.sum(axis=1) - mine @ theirs.T
    return np.asarray((union - 1) / max(len(attribute.leaves) - 1, 1), dtype=np.float64)


def _nodes(regions: Regions, place: int, classes: Counts, among: Counts) -> Losses:
    attribute, levels, first = (
        regions.partition.cells.attributes[place],
        regions.levels[:, place],
        first_codes(regions, place),
    )
    level = np.maximum(levels[classes][:, None], levels[among])
    np.maximum(level, _meeting(attribute, first[classes], first[among]), out=level)
    losses = np.ascontiguousarray(attribute.leaf_losses[:, first[classes]].T)
    return np.take_along_axis(losses, level.astype(np.int64), axis=1)


def _meeting(attribute: Attribute, leaves: NDArray[np.int32], others: NDArray[np.int32]) -> NDArray[np.int8]:
    """Return the lowest level at which leaves (rows) have the same ancestor as others (columns)."""
    if len(attribute.leaves) <= _FEW_LEAVES:
        return np.asarray(attribute.meeting_levels[leaves[:, None], others])
    level = np.zeros((len(leaves), len(others)), dtype=np.int8)
    for ancestors in attribute.ancestors[:-1]:
        level += ancestors[leaves][:, None] != ancestors[others]
    return level


def _intervals(regions: Regions, place: int, classes: Counts, among: Counts) -> Losses:
    attribute: Attribute = regions.partition.cells.attributes[place]
    codes = regions.codes(place)
    starts = np.searchsorted(regions.class_of_line, np.arange(regions.partition.size))
    low, high = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    lows, highs = np.minimum(low[classes][:, None], low[among]), np.maximum(high[classes][:, None], high[among])
    positions = np.zeros(1) if attribute.positions is None else attribute.positions
    width = (positions[highs] - positions[lows]) / (attribute.span or 1.0)
    return np.asarray(np.where(np.isnan(width), (lows != highs).astype(np.float64), width))


def _members(regions: Regions, place: int, chosen: Counts) -> NDArray[np.float32]:
    """Return which leaves (columns) the rows of each chosen class (row) have."""
    starts = np.searchsorted(regions.class_of_line, chosen)
    lengths = np.searchsorted(regions.class_of_line, chosen, side="right") - starts
    line = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    members = np.zeros((len(chosen), len(regions.partition.cells.attributes[place].leaves)), dtype=np.float32)
    members[np.repeat(np.arange(len(chosen)), lengths), regions.codes(place)[line]] = 1
    return members
