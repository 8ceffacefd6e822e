"""Node identification: a graph without names still shows who has which connections.

The attacker knows something about the surroundings of a person: how many friends, how many friends these have, or the
whole network among the friends. All nodes that look so are candidates, and the attacker picks one of them. With no
seeds and no planted nodes, this is the weakest attacker worth trying.

What is known is a *color*: nodes of one color look the same to the attacker. Degrees are the first one. Each further
round of refinement adds the colors of the neighbors (Hay, Miklau, Jensen, Towsley and Weis, "Resisting structural
re-identification in anonymized social networks", 2008). The ego network of a node, its neighbors and all connections
among them, is compared by isomorphism (Zhou and Pei, 2008).
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cloister.attacks.details import AttackDetails, count, fact, keyed
from cloister.attacks.result import AttackResult
from cloister.core import validation
from cloister.core.wordings import percent
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Graph", "NodeIdentificationDetails", "degrees", "ego_networks", "node_identification", "refine_degrees"]


Colors: TypeAlias = list[str]

_ROUNDS = 3
_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Graph:
    """A simple undirected graph.

    Attributes:
        nodes: the names of the nodes, by number.
        neighbors: for each node, the numbers of its neighbors.
    """

    nodes: tuple[Hashable, ...] = field(repr=False)
    neighbors: tuple[frozenset[int], ...] = field(repr=False)

    @classmethod
    def of(cls, edges: Any, *, nodes: Iterable[Hashable] | None = None) -> Graph:
        """Return the graph of some pairs of nodes; repeats, and the order in a pair, do not matter.

        Raises:
            ParameterError: if a connection leads to itself or to an unknown node, or there is no node.
        """
        pairs = _pairs(edges)
        names = list(dict.fromkeys(node for pair in pairs for node in pair)) if nodes is None else list(nodes)
        place = {name: number for number, name in enumerate(names)}
        if not names or len(place) < len(names):
            raise ParameterError("There are no nodes, or one twice.", fix="list every node once.")
        if any(first == second or first not in place or second not in place for first, second in pairs):
            raise ParameterError(
                "A connection leads to itself, or to a node that is not listed.",
                fix="leave such connections out, or list all nodes.",
            )
        found: list[set[int]] = [set() for _ in names]
        for first, second in pairs:
            found[place[first]].add(place[second])
            found[place[second]].add(place[first])
        return cls(tuple(names), tuple(map(frozenset, found)))

    def __len__(self) -> int:
        return len(self.nodes)


def degrees(graph: Graph) -> Colors:
    """Return the degree of each node."""
    return [str(len(others)) for others in graph.neighbors]


def refine_degrees(graph: Graph, *, rounds: int) -> Colors:
    """Return the colors after so many rounds of refining the degrees; one round adds the neighbors' degrees.

    Colors are digests, so that those of two graphs can be compared.
    """
    colors = degrees(graph)
    for _ in range(rounds):
        around = [sorted(colors[other] for other in others) for others in graph.neighbors]
        colors = [_digest([color, *others]) for color, others in zip(colors, around, strict=True)]
    return colors


def ego_networks(*graphs: Graph) -> list[Colors]:
    """Return for each node of each graph the name of the class of isomorphic ego networks that its own is in.

    Isomorphism is decided exactly, by trying; where that takes too long, two networks count as different, so that the
    attacker is rather made too strong than too weak.
    """
    known: dict[str, list[_Ego]] = defaultdict(list)
    found = []
    for graph in graphs:
        colors = []
        for node in range(len(graph)):
            ego = _Ego.of(graph, node)
            alike = known[ego.outline]
            place = next((place for place, other in enumerate(alike) if _isomorphic(ego, other)), len(alike))
            if place == len(alike):
                alike.append(ego)
            colors.append(f"{ego.outline} {place}")
        found.append(colors)
    return found


@dataclass(frozen=True, slots=True)
class _Ego:
    """The neighbors of a node, and the connections among them; the node itself is connected to all."""

    graph: Graph
    colors: Colors

    @classmethod
    def of(cls, graph: Graph, node: int) -> _Ego:
        around = sorted(graph.neighbors[node])
        place = {other: number for number, other in enumerate(around)}
        inner = [frozenset(place[far] for far in graph.neighbors[other] if far in place) for other in around]
        network = Graph(tuple(around), tuple(inner))
        return cls(network, refine_degrees(network, rounds=_ROUNDS))

    @property
    def outline(self) -> str:
        """Return what is equal for isomorphic networks."""
        return _digest(sorted(self.colors))


def _isomorphic(one: _Ego, other: _Ego) -> bool:
    """Return whether nodes can be paired so that connections agree."""
    # Nodes of rare colors go first, since they leave the fewest pairs to try.
    order = sorted(range(len(one.graph)), key=lambda node: (one.colors.count(one.colors[node]), node))
    steps = 0

    def extend(pairs: dict[int, int]) -> bool:
        nonlocal steps
        if len(pairs) == len(order):
            return True
        node = order[len(pairs)]
        for candidate in range(len(order)):
            steps += 1
            if steps > _STEPS:
                return False
            if candidate in pairs.values() or other.colors[candidate] != one.colors[node]:
                continue
            agrees = all(
                (mine in one.graph.neighbors[node]) == (theirs in other.graph.neighbors[candidate])
                for mine, theirs in pairs.items()
            )
            if agrees and extend({**pairs, node: candidate}):
                return True
        return False

    return extend({})


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def _pairs(edges: Any) -> list[tuple[Hashable, Hashable]]:
    try:
        rows = [tuple(pair) for pair in (edges.tolist() if hasattr(edges, "tolist") else edges)]
    except TypeError:
        rows = [()]
    if not all(len(row) == 2 and all(isinstance(node, Hashable) for node in row) for row in rows):
        raise ParameterTypeError("The edges are not pairs of nodes.", fix='write for example edges=[("A", "B")].')
    if any(node is None or node != node for row in rows for node in row):  # noqa: PLR0124  # NaN is not itself
        raise ParameterError("A connection has a missing end.", fix="leave such connections out.")
    return [(row[0], row[1]) for row in rows]


_KNOWLEDGE = {
    "degree": "how many connections a person has",
    "neighbor_degrees": "how many connections a person and each of the person's neighbors has",
    "ego_network": "all connections among the neighbors of a person",
}
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentificationDetails(AttackDetails):
    """What looking for people by their connections found; exact, so that the interval has no width.

    Attributes:
        smallest: the fewest candidates that somebody has; 0 where the release has nothing like somebody's surroundings.
        identified: the share of people who are the only candidate.
        candidates: (number of candidates, people with so many), ascending.
    """

    smallest: int = field(metadata=fact("fewest candidates", count))
    identified: float = field(metadata=fact("only candidate", percent))
    candidates: tuple[tuple[int, int], ...] = field(repr=False, metadata=fact(write=keyed("candidates", "people")))

    def remark(self, _: AttackResult, /) -> str:
        return f" {percent(self.identified)} of the people are the only candidate for themselves."


def node_identification(
    edges: Any,
    *,
    knowledge: str = "degree",
    rounds: int | None = None,
    released: Any = None,
    nodes: Iterable[Hashable] | None = None,
) -> AttackResult[NodeIdentificationDetails]:
    """Return how often a person is found in a graph without names: the expected share, picking among candidates.

    Args:
        edges: the true graph, as pairs of nodes.
        knowledge: "degree", "neighbor_degrees" or "ego_network": what the attacker knows about everybody.
        rounds: for "neighbor_degrees", how far the attacker sees: one round, the default, is the neighbors' degrees,
            two are those of their neighbors as well.
        released: the connections that were released, between nodes of the same names, where they are not the true ones;
            names are used for scoring only.
        nodes: all nodes, where some have no connections.

    >>> star = [("hub", leaf) for leaf in "abc"]
    >>> print(node_identification(star))
    finding nodes by degree: success 50% (100% interval 50% to 50%), baseline 25%
    """
    validation.check_choice(knowledge, name="knowledge", allowed=_KNOWLEDGE)
    if rounds is not None and knowledge != "neighbor_degrees":
        raise ParameterError("Only neighbors' degrees have rounds.", fix='write knowledge="neighbor_degrees".')
    further = 1 if rounds is None else validation.check_count(rounds, name="rounds", at_least=1)
    graph = Graph.of(edges, nodes=nodes)
    other = graph if released is None else Graph.of(released, nodes=graph.nodes)
    own, shown = _colors(knowledge, further, graph, other)
    sizes = Counter(shown)
    candidates = [sizes[color] for color in own]
    chances = [1 / sizes[color] if color == seen else 0.0 for color, seen in zip(own, shown, strict=True)]
    share = math.fsum(chances) / len(graph)
    exposed = sorted(range(len(graph)), key=lambda node: -chances[node])[:_SHOWN]
    return AttackResult(
        attack=f"finding nodes by {knowledge.replace('_', ' ')}",
        assumption=f"has the graph without names, and knows {_KNOWLEDGE[knowledge]}",
        success=share,
        baseline=1 / len(graph),
        interval=(share, share),
        confidence=1.0,
        trials=len(graph),
        queries=1,
        mitigation=(
            "add or remove connections until each pattern is shared by several people",
            "release noisy statistics of the graph in place of the graph",
        ),
        worst=tuple((node, chances[node]) for node in exposed if chances[node] > 0),
        details=NodeIdentificationDetails(
            smallest=min(candidates),
            identified=sum(chance == 1 for chance in chances) / len(graph),
            candidates=tuple(sorted(Counter(candidates).items())),
        ),
    )


def _colors(knowledge: str, rounds: int, graph: Graph, released: Graph) -> tuple[Colors, Colors]:
    if knowledge == "degree":
        return degrees(graph), degrees(released)
    if knowledge == "neighbor_degrees":
        return refine_degrees(graph, rounds=rounds), refine_degrees(released, rounds=rounds)
    own, shown = ego_networks(graph, released)
    return own, shown
