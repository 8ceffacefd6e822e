"""A distribution over the declared cells of a table, held as the marginals of a junction tree, and rows drawn from it.

Each stage of a draw draws some columns given columns that are drawn already. Draws are systematic, so that a sample's
marginals over each stage are the model's but for rounding. Inside each group of rows with the same given values the
rows are permuted at random first: without that, stages that share given columns would be drawn along with each other
although the model has them independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.errors import ModelError, ParameterError
from cloister.synth.inference._junction_tree import Beliefs, Floats, JunctionTree

__all__ = ["Evidence", "MarginalModel", "Stage", "draw", "uniforms"]


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
    # A group without weight is met by rounding only, if at all; even shares keep the division defined.
    shares = np.divide(table, weights, out=even, where=weights > 0)
    reach = np.cumsum(shares, axis=1)
    # Sums may end just below 1, and then a point could fall behind the last cell.
    reach /= reach[:, -1:]
    # A number below 1 added to the group's own orders rows at random inside of groups and never across them.
    order = np.argsort(groups + uniforms(source, len(groups)), kind="stable")
    sizes = np.bincount(groups, minlength=len(table))
    starts = np.cumsum(sizes) - sizes
    ordered = groups[order]
    ranks = np.arange(len(groups)) - starts[ordered]
    # One shift for a whole group: its points are evenly spaced, so that its counts are right but for rounding.
    points = (ranks + uniforms(source, len(table))[ordered]) / np.maximum(sizes, 1)[ordered]
    # Each group has the unit interval at its own number, which makes one search do for all groups.
    edges = (reach + np.arange(len(table))[:, None]).ravel()
    places = np.searchsorted(edges, ordered + points, side="right")
    last = (ordered + 1) * table.shape[1] - 1
    drawn = np.empty(len(groups), dtype=np.int64)
    # The group's number costs the point some digits, which must not let it slip into the next group.
    drawn[order] = np.minimum(places, last) - ordered * table.shape[1]
    return drawn


Evidence = Mapping[int, NDArray[np.bool_]]
"""For some columns, by position, which of their cells are possible."""


@dataclass(frozen=True, eq=False)
class MarginalModel:
    """The probabilities of each clique's cells.

    Attributes:
        tree: how the cliques hang together.
        cliques: the probabilities, one array per clique.
        total: how many rows the data seem to have.
        weights: the parameters of each measured marginal, to begin another estimate with.
    """

    tree: JunctionTree
    cliques: tuple[Floats, ...]
    total: float
    weights: Mapping[tuple[int, ...], Floats] = field(default_factory=dict, repr=False)

    def marginal(self, columns: Iterable[int]) -> Floats:
        """Return the probabilities of the combinations of some columns, one axis per column in ascending order."""
        wanted = tuple(sorted(columns))
        home = self.tree.home(wanted)
        if home is None:
            return self._across(wanted)
        gone = tuple(axis for axis, column in enumerate(self.tree.cliques[home]) if column not in wanted)
        return np.asarray(self.cliques[home].sum(axis=gone))

    def sample(self, count: int, source: RandomSource) -> NDArray[np.int32]:
        """Return rows of codes in random order."""
        stages = []
        for clique, shared, table in zip(self.tree.cliques, self.tree.separators, self.cliques, strict=True):
            fresh = tuple(column for column in clique if column not in shared)
            turned = np.transpose(table, [clique.index(column) for column in (*shared, *fresh)])
            stages.append(Stage(shared, fresh, turned))
        return draw(stages, self.tree.sizes, count, source)

    def given(self, evidence: Evidence) -> MarginalModel:
        """Return the distribution of the rows that the evidence allows.

        Raises:
            ParameterError: if there are none.
        """
        # Conditionals multiply to the distribution, whereas marginals would count shared columns twice.
        potentials = self._conditionals()
        for column, possible in evidence.items():
            home = self.tree.home([column])
            if home is None:
                raise ParameterError("There is no such column.", fix="name a column of the model.")
            axis = self.tree.cliques[home].index(column)
            shape = [-1 if place == axis else 1 for place in range(len(self.tree.cliques[home]))]
            potentials[home] = potentials[home] * possible.reshape(shape)
        with np.errstate(divide="ignore"):
            log_share, cliques = Beliefs(self.tree).marginals([np.log(item) for item in potentials])
        if not math.isfinite(log_share):
            raise ParameterError(
                "The model has no rows that meet the conditions.", fix="ask for values that can occur together."
            )
        # What is left of the sum after the evidence is the share of rows that it allows.
        return replace(self, cliques=tuple(cliques), total=self.total * math.exp(log_share), weights={})

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: numbers, lists and arrays."""
        return {
            "kind": "junction tree",
            "sizes": list(self.tree.sizes),
            "groups": [list(clique) for clique in self.tree.cliques],
            "parents": list(self.tree.parents),
            "tables": list(self.cliques),
            "total": float(self.total),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MarginalModel:
        """Return what `to_dict` wrote.

        Raises:
            ModelError: if it is something else.
        """
        sizes, parents = tuple(values["sizes"]), tuple(values["parents"])
        tree = JunctionTree(sizes, tuple(map(tuple, values["groups"])), parents)
        tables = tuple(values["tables"])
        sound = (
            len(tables) == len(parents) == len(tree.cliques)
            and all(-1 <= parent < place for place, parent in enumerate(parents))
            and parents.count(-1) == 1
            and {column for clique in tree.cliques for column in clique} == set(range(len(sizes)))
            and all(table.shape == tree.shape(place) for place, table in enumerate(tables))
            and all(np.isfinite(table).all() and (table >= 0).all() for table in tables)
            and tree.is_sound
        )
        if not sound:
            raise ModelError("The tables of the model do not belong together.", fix="use the file as it was saved.")
        return cls(tree, tables, float(values["total"]))

    def _conditionals(self) -> list[Floats]:
        """Return each clique given what it shares with its parent: their product is the distribution."""
        found = []
        for clique, shared, table in zip(self.tree.cliques, self.tree.separators, self.cliques, strict=True):
            gone = tuple(axis for axis, column in enumerate(clique) if column not in shared)
            below = table.sum(axis=gone, keepdims=True)
            found.append(np.divide(table, below, out=np.zeros_like(table), where=below > 0))
        return found

    def _across(self, wanted: tuple[int, ...]) -> Floats:
        """Sum out cliques from the leaves to the root, keeping what is wanted."""
        messages: list[list[tuple[tuple[int, ...], Floats]]] = [[] for _ in self.tree.cliques]
        conditionals = self._conditionals()
        answer: Floats = np.ones(())
        for place in reversed(range(len(self.tree.cliques))):
            columns, table, shared = self.tree.cliques[place], conditionals[place], self.tree.separators[place]
            for other, message in messages[place]:
                columns, table = _product(columns, table, other, message)
            kept = tuple(column for column in columns if column in shared or column in wanted)
            summed = table.sum(axis=tuple(axis for axis, column in enumerate(columns) if column not in kept))
            if self.tree.parents[place] >= 0:
                messages[self.tree.parents[place]].append((kept, summed))
            else:
                answer = np.asarray(np.transpose(summed, [kept.index(column) for column in wanted]))
        return answer


def _product(
    columns: tuple[int, ...], table: Floats, other: tuple[int, ...], message: Floats
) -> tuple[tuple[int, ...], Floats]:
    """Return two tables multiplied where they share columns; by broadcasting, which takes any number of columns."""
    added = [column for column in other if column not in columns]
    union = (*columns, *added)
    # The message's axes in the order of the union, with an axis of length one for each column that it lacks.
    order = sorted(range(len(other)), key=lambda axis: union.index(other[axis]))
    turned = np.transpose(message, order)
    sizes = {other[axis]: message.shape[axis] for axis in order}
    placed = turned.reshape([sizes.get(column, 1) for column in union])
    return union, table.reshape(*table.shape, *(1 for _ in added)) * placed
