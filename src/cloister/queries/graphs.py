"""Noise graphs: a whole graph released by flipping possible connections at random.

For a graph G on a public set of nodes, release ``G xor g`` where g holds each possible connection with probability p
independently (Torra and Salas 2019; g is a graph of Gilbert 1959): randomized response for every possible connection.
The bipartite form has two public sets of nodes. In the asymmetric form an absent connection appears with one
probability and a present one disappears with another.

What a release shows is mostly noise when the graph is sparse: with p = 0.1 a tenth of all *possible* connections
appears. Users and likes of 19,724 x 8,523 nodes with 3.8 million connections would get 16 million false ones. The
number of connections can still be estimated without bias; for other statistics add noise to them instead.

Privacy: claim epsilon-DP when one connection is added or removed. That changes one of the independent tosses, whose two
outcomes have probabilities (1 - drop, drop) with the connection and (add, 1 - add) without, so epsilon is the largest
of the four log ratios: ``ln((1 - p) / p)`` when both are p. All probabilities are rational and tossed exactly; epsilon
is rounded up. Removing a *node* with all its connections is not covered, nor are connections of a graph that changes
over time: see `NoiseGraph.release_snapshots`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.accounting.events import Event, PureEvent
from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, Caveat, PureDP
from cloister.core.random import RandomState
from cloister.core.result import Result
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.mechanisms.base import open_source
from cloister.mechanisms.sampling.coins import toss_coins

__all__ = ["NoiseGraph", "NoisyGraph", "edge_epsilon"]

Edges: TypeAlias = NDArray[np.int64]

MOST_POSSIBLE_EDGES = 10**8
_PROBABILITY_BITS = 96
_LARGEST_EPSILON = 50
_NOISE = ("epsilon", "flip_probability", "add_probability", "drop_probability")
_WAYS = ({"epsilon"}, {"flip_probability"}, {"add_probability", "drop_probability"})


def edge_epsilon(*, add_probability: object, drop_probability: object) -> Fraction | None:
    """Return the epsilon of flipping one connection, rounded up, or None when it is infinite.

    >>> epsilon = edge_epsilon(add_probability=0.1, drop_probability=0.1)
    >>> print(epsilon and round(float(epsilon), 4))
    2.1972
    """
    add = validation.check_probability(add_probability, name="add_probability")
    drop = validation.check_probability(drop_probability, name="drop_probability")
    shown, hidden = (1 - drop, add), (drop, 1 - add)
    if 0 in (*shown, *hidden):
        # A certain outcome tells everything, unless it is as certain with the connection as without.
        return Fraction(0) if shown[0] == shown[1] else None
    ratios = [pair[side] / pair[1 - side] for pair in (shown, hidden) for side in (0, 1)]
    return max(exact.log_bounds(ratio)[1] for ratio in ratios)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseGraph:
    """Releases a simple undirected graph with every possible connection flipped at random.

    Give one of ``epsilon``, ``flip_probability``, or ``add_probability`` with ``drop_probability``; the others follow.

    Attributes:
        nodes: how many nodes the public set has, numbered from 0; those of the first side if bipartite.
        other_nodes: how many nodes the second side has, numbered from 0 as well; None for a graph on one set.
        epsilon: the privacy loss for one connection.
        flip_probability: the probability that a possible connection is flipped; None if it depends on the connection.
        add_probability: the probability that an absent connection appears.
        drop_probability: the probability that a present connection disappears.
        unit: what a connection stands for.

    >>> friends = NoiseGraph(nodes=4, flip_probability=0.25)
    >>> friends.possible_edges, round(float(friends.epsilon), 4)
    (6, 1.0986)
    """

    nodes: int
    other_nodes: int | None = None
    epsilon: Fraction = None  # type: ignore[assignment]  # set below
    flip_probability: Fraction | None = None
    add_probability: Fraction = None  # type: ignore[assignment]  # set below
    drop_probability: Fraction = None  # type: ignore[assignment]  # set below
    unit: str = "connection"

    def __init__(
        self,
        *,
        nodes: int,
        other_nodes: int | None = None,
        epsilon: Number | None = None,
        flip_probability: Number | None = None,
        add_probability: Number | None = None,
        drop_probability: Number | None = None,
        unit: str = "connection",
    ) -> None:
        construct(
            self,
            nodes=nodes,
            other_nodes=other_nodes,
            epsilon=epsilon,
            flip_probability=flip_probability,
            add_probability=add_probability,
            drop_probability=drop_probability,
            unit=unit,
        )

    def __post_init__(self) -> None:
        self._check_nodes()
        given = {name: getattr(self, name) for name in _NOISE if getattr(self, name) is not None}
        if set(given) not in _WAYS:
            raise ParameterError(
                "How much noise there should be is not said once.",
                fix="give epsilon=, or flip_probability=, or both add_probability= and drop_probability=.",
            )
        if "epsilon" in given:
            given["epsilon"] = validation.check_epsilon(self.epsilon)
            given["flip_probability"] = _flip_probability(given["epsilon"])
        flip = given.get("flip_probability")
        if flip is not None:
            flip = given["flip_probability"] = validation.check_probability(flip, name="flip_probability")
        add, drop = given.get("add_probability", flip), given.get("drop_probability", flip)
        found = _check_epsilon(add, drop)
        both = {"add_probability": exact.number(add), "drop_probability": exact.number(drop)}
        for name, value in ({"epsilon": found} | given | both).items():
            object.__setattr__(self, name, value)

    def _check_nodes(self) -> None:
        validation.check_count(self.nodes, name="nodes", at_least=2 if self.other_nodes is None else 1)
        if self.other_nodes is not None:
            validation.check_count(self.other_nodes, name="other_nodes", at_least=1)
        if self.possible_edges > MOST_POSSIBLE_EDGES:
            raise ParameterError(
                f"There are {self.possible_edges:,} possible connections, and each would need a toss.",
                fix="release noisy counts or degrees instead: most of such a noise graph is noise anyway.",
            )

    @property
    def possible_edges(self) -> int:
        """Return how many connections the public nodes could have."""
        return self.nodes * (self.nodes - 1) // 2 if self.other_nodes is None else self.nodes * self.other_nodes

    @property
    def guarantee(self) -> PureDP:
        """Return what a release promises."""
        return PureDP(epsilon=self.epsilon, adjacency=Adjacency.EDGE, unit=self.unit)

    @property
    def event(self) -> Event:
        """Return what a release is for the accountants."""
        return PureEvent(epsilon=self.epsilon)

    def release(self, edges: object, *, random_state: RandomState = None) -> NoisyGraph:
        """Return the noisy graph of a private one, given as pairs of node numbers in any order; repeats count once."""
        source, guarantee = open_source(random_state, self.guarantee)
        present = np.unique(self._codes(_pairs(edges)))
        shown = toss_coins(source, self.add_probability, self.possible_edges)
        # Present connections get tosses of their own in place of those for absent ones, so that all tosses stay
        # independent.
        shown[present] = ~toss_coins(source, self.drop_probability, present.size)
        return NoisyGraph(
            edges=self._decoded(np.flatnonzero(shown)), mechanism=self, guarantee=guarantee, event=self.event
        )

    def release_snapshots(
        self, snapshots: Iterable[object], *, random_state: RandomState = None
    ) -> tuple[NoisyGraph, ...]:
        """Return the noisy graphs of a graph that changes over time, one for each snapshot.

        The promise is for *events*: whether a connection was there at one time. A connection that persists through
        all snapshots shows through as many independent releases and costs their number times epsilon, which is also
        what their events add up to.
        """
        graphs = [self.release(edges, random_state=random_state) for edges in snapshots]
        caveat = _snapshot_caveat(len(graphs), self.epsilon)
        return tuple(
            NoisyGraph(
                edges=graph.edges,
                mechanism=self,
                guarantee=PureDP(
                    epsilon=self.epsilon,
                    adjacency=Adjacency.EVENT,
                    unit=f"{self.unit} at one time",
                    caveats=(*graph.guarantee.caveats, caveat),
                ),
                event=self.event,
            )
            for graph in graphs
        )

    def _codes(self, pairs: Edges) -> Edges:
        """Return the number of each connection among the possible ones; refuse what is none, without quoting it."""
        limits = (self.nodes, self.nodes if self.other_nodes is None else self.other_nodes)
        if ((pairs < 0) | (pairs >= np.array(limits))).any():
            raise ParameterError(
                "An edge names a node that is not in the public set.", fix="number the nodes 0 .. nodes - 1."
            )
        if self.other_nodes is not None:
            return np.asarray(pairs[:, 0] * self.other_nodes + pairs[:, 1])
        first, second = pairs.min(axis=1), pairs.max(axis=1)
        if (first == second).any():
            raise ParameterError("An edge leads from a node to itself.", fix="leave loops out.")
        return np.asarray(self._row_starts()[first] + second - first - 1)

    def _decoded(self, codes: Edges) -> Edges:
        if self.other_nodes is not None:
            return np.stack(np.divmod(codes, self.other_nodes), axis=1)
        starts = self._row_starts()
        first = np.searchsorted(starts, codes, side="right") - 1
        return np.stack([first, codes - starts[first] + first + 1], axis=1)

    def _row_starts(self) -> Edges:
        """Return the number of the first possible connection of each node to a later one."""
        nodes = np.arange(self.nodes - 1, dtype=np.int64)
        return np.asarray(nodes * (2 * self.nodes - nodes - 1) // 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyGraph(Result):
    """A graph of which every possible connection may have been flipped.

    Attributes:
        edges: the connections shown, as pairs of node numbers, the smaller one first (first side first if bipartite).
        mechanism: how it was made.
        event: what ran, for the accountants.
    """

    schema: ClassVar[str] = "cloister.noisy_graph/1"

    guarantee: PureDP
    edges: Edges = field(repr=False)
    mechanism: NoiseGraph
    event: Event = field(repr=False)

    @property
    def edge_count(self) -> float:
        """Return the unbiased estimate of the number of true connections: post-processing, may be negative."""
        add, possible = float(self.mechanism.add_probability), self.mechanism.possible_edges
        return (len(self.edges) - add * possible) / self._slope

    @property
    def standard_deviation(self) -> float:
        """Return the standard deviation of the estimated number of connections (a bound of it, if asymmetric)."""
        probabilities = self.mechanism.add_probability, self.mechanism.drop_probability
        # How many connections are present is private; the larger variance of the two covers any number of them.
        largest = max(float(p * (1 - p)) for p in probabilities)
        return math.sqrt(self.mechanism.possible_edges * largest) / self._slope

    def margin(self, confidence: Number = 0.95) -> float:
        """Return the half-width of the estimated number of connections that covers with a probability.

        The number shown is a sum of many tosses: normal, with a correction for skewness and for whole numbers (Cornish
        and Fisher 1938).
        """
        inside = float(validation.check_confidence(confidence))
        z = float(special.ndtri((1 + inside) / 2))
        return z * self.standard_deviation + (0.5 + max(z * z - 1, 0.0) / 6) / self._slope

    @property
    def _slope(self) -> float:
        return float(1 - self.mechanism.add_probability - self.mechanism.drop_probability)

    def __str__(self) -> str:
        count, margin = round(self.edge_count), math.ceil(self.margin())
        return (
            f"{len(self.edges):,} connections shown, {count:,} ± {margin:,} (95%) estimated, {self.guarantee.brief()}"
        )

    def _fields(self) -> dict[str, Any]:
        return {
            "edges": self.edges.tolist(),
            "nodes": self.mechanism.nodes,
            "other_nodes": self.mechanism.other_nodes,
            "add_probability": exact.text(self.mechanism.add_probability),
            "drop_probability": exact.text(self.mechanism.drop_probability),
            "edge_count": self.edge_count,
            "margin": {"confidence": 0.95, "half_width": self.margin()},
            "event": self.event.to_dict(),
        }


def _check_epsilon(add: object, drop: object) -> Fraction:
    epsilon = edge_epsilon(add_probability=add, drop_probability=drop)
    if epsilon is None:
        raise UnsafeMechanismError(
            "A connection would be certain to show or to be missing: epsilon is infinite.",
            fix="use probabilities strictly between 0 and 1, such as flip_probability=0.25.",
        )
    if exact.number(add) + exact.number(drop) >= 1:
        raise ParameterError(
            "The noise hides the graph completely, or shows its opposite.",
            fix="use probabilities that add up to less than 1; flip_probability below 0.5.",
        )
    return epsilon


def _flip_probability(epsilon: Fraction) -> Fraction:
    """Return the smallest probability, up to rounding upward, with ``ln((1 - p) / p) <= epsilon``."""
    if epsilon > _LARGEST_EPSILON:
        raise UnsafeMechanismError(
            "An epsilon this large flips practically nothing.", fix=f"use epsilon <= {_LARGEST_EPSILON}."
        )
    scale = 2**_PROBABILITY_BITS
    # The bound of exp and the quotient are both rounded towards a larger probability: towards more privacy.
    return Fraction(math.ceil(scale / (1 + exact.exp_bounds(epsilon, digits=60)[0])), scale)


def _snapshot_caveat(count: int, epsilon: Fraction) -> Caveat:
    return Caveat(
        "event_level_edges",
        f"this is one of {count} snapshots and protects a connection at one time; one that persists through all of "
        f"them costs epsilon = {float(count * epsilon):.6g}",
        breaks=False,
    )


def _pairs(edges: object) -> Edges:
    array = np.asarray(edges)
    if array.size == 0 and array.dtype.kind in "iuf":
        return np.zeros((0, 2), dtype=np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != 2:
        raise ParameterTypeError(
            "The edges are not pairs of node numbers.", fix="pass an integer array of shape (number of edges, 2)."
        )
    return array.astype(np.int64)
