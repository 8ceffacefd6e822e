"""A distribution over the declared cells of a table, held as the marginals of a junction tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import RandomSource
from cloister.errors import ModelError, ParameterError
from cloister.synth.inference.beliefs import Beliefs, Floats
from cloister.synth.inference.junction_tree import JunctionTree
from cloister.synth.inference.sampling import Stage, draw

__all__ = ["Evidence", "MarginalModel"]

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
