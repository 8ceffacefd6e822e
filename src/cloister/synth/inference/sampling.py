"""Rows of a model, drawn stage by stage: each stage draws some columns given columns that are drawn already.

Draws are systematic, so that a sample's marginals over each stage are the model's but for rounding. Inside each group
of rows with the same given values the rows are permuted at random first: without that, stages that share given columns
would be drawn along with each other although the model has them independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.synth.inference.beliefs import Floats

__all__ = ["Stage", "draw", "uniforms"]

_PER_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The weights of all combinations of given columns and, after these, fresh ones."""

    given: tuple[int, ...]
    fresh: tuple[int, ...]
    table: Floats


def draw(stages: Sequence[Stage], sizes: Sequence[int], count: int, source: RandomSource) -> NDArray[np.int32]:
    """Return rows of codes, one column per column of the model, in random order."""
    codes = np.zeros((count, len(sizes)), dtype=np.int32, order="F")
    for stage in stages:
        groups = math.prod(sizes[column] for column in stage.given)
        drawn = _systematic(stage.table.reshape(groups, -1), _flat(codes, stage.given, sizes), source)
        parts = np.unravel_index(drawn, [sizes[column] for column in stage.fresh])
        for column, part in zip(stage.fresh, parts, strict=True):
            codes[:, column] = part
    return codes


def uniforms(source: RandomSource, count: int) -> Floats:
    """Return uniform numbers in [0, 1)."""
    return (source.words(count) >> np.uint64(11)).astype(np.float64) * _PER_UNIT


def _flat(codes: NDArray[np.int32], columns: tuple[int, ...], sizes: Sequence[int]) -> NDArray[np.int64]:
    flat = np.zeros(len(codes), dtype=np.int64)
    for column in columns:
        flat *= sizes[column]
        flat += codes[:, column]
    return flat


def _systematic(table: Floats, groups: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
    """Return a cell of the row's group for each row: evenly spaced points, in random order inside each group."""
    weights = table.sum(axis=1, keepdims=True)
    even = np.full_like(table, 1.0 / table.shape[1])
    shares = np.divide(table, weights, out=even, where=weights > 0)
    reach = np.cumsum(shares, axis=1)
    reach /= reach[:, -1:]
    order = np.argsort(groups + uniforms(source, len(groups)), kind="stable")
    sizes = np.bincount(groups, minlength=len(table))
    starts = np.cumsum(sizes) - sizes
    ordered = groups[order]
    ranks = np.arange(len(groups)) - starts[ordered]
    points = (ranks + uniforms(source, len(table))[ordered]) / np.maximum(sizes, 1)[ordered]
    edges = (reach + np.arange(len(table))[:, None]).ravel()
    places = np.searchsorted(edges, ordered + points, side="right")
    last = (ordered + 1) * table.shape[1] - 1
    drawn = np.empty(len(groups), dtype=np.int64)
    drawn[order] = np.minimum(places, last) - ordered * table.shape[1]
    return drawn
