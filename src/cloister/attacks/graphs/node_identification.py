"""Node identification: a graph without names still shows who has which connections.

The attacker knows something about the surroundings of a person: how many friends, how many friends these have, or the
whole network among the friends. All nodes that look so are candidates, and the attacker picks one of them. With no
seeds and no planted nodes, this is the weakest attacker worth trying.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cloister.attacks.graphs.structure import Colors, Graph, degrees, ego_networks, refined
from cloister.attacks.result import AttackResult, percent
from cloister.core import validation
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.report import Section

__all__ = ["NodeIdentificationResult", "node_identification"]

_KNOWLEDGE = {
    "degree": "how many connections a person has",
    "neighbor_degrees": "how many connections a person and each of the person's neighbors has",
    "ego_network": "all connections among the neighbors of a person",
}
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentificationResult(AttackResult):
    """The outcome of looking for people by their connections; exact, so that its interval has no width.

    Attributes:
        smallest: the fewest candidates that somebody has; 0 where the release has nothing like somebody's surroundings.
        identified: the share of people who are the only candidate.
        candidates: (number of candidates, people with so many), ascending.
    """

    smallest: int
    identified: float
    candidates: tuple[tuple[int, int], ...] = field(repr=False)

    def _remark(self) -> str:
        return f" {percent(self.identified)} of the people are the only candidate for themselves."

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        further = (("fewest candidates", f"{self.smallest:,}"), ("only candidate", percent(self.identified)))
        return (*AttackResult.summary(self), *further)

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack."""
        from cloister.attacks.own_facts import section_with_own_facts

        return (section_with_own_facts(self, level=level),)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never who was found."""
        numbers = [{"candidates": size, "people": people} for size, people in self.candidates]
        further = {"smallest": self.smallest, "identified": self.identified, "candidates": numbers}
        return {**AttackResult.to_dict(self), **further}


def node_identification(
    edges: Any,
    *,
    knowledge: str = "degree",
    rounds: int | None = None,
    released: Any = None,
    nodes: Iterable[Hashable] | None = None,
) -> NodeIdentificationResult:
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
    return NodeIdentificationResult(
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
        smallest=min(candidates),
        identified=sum(chance == 1 for chance in chances) / len(graph),
        candidates=tuple(sorted(Counter(candidates).items())),
    )


def _colors(knowledge: str, rounds: int, graph: Graph, released: Graph) -> tuple[Colors, Colors]:
    if knowledge == "degree":
        return degrees(graph), degrees(released)
    if knowledge == "neighbor_degrees":
        return refined(graph, rounds=rounds), refined(released, rounds=rounds)
    own, shown = ego_networks(graph, released)
    return own, shown
