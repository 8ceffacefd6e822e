from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.attacks import node_identification
from cloister.attacks.graphs import Graph, ego_networks
from cloister.core.random import SeededRandomSource
from cloister.errors import ParameterError, ParameterTypeError
from cloister.queries.graphs import NoiseGraph
from cloister.testing import check_golden, load_golden

FOLDER = Path(__file__).parents[1] / "golden" / "attacks"
SEVEN = [tuple(edge) for edge in ("AB", "AC", "AE", "BC", "BE", "BF", "CD", "CF", "CG", "DG")]
KNOWLEDGE = ("degree", "neighbor_degrees", "ego_network")


def _found(*, edges: list[str], knowledge: str) -> dict[str, Any]:
    result = node_identification([tuple(edge) for edge in edges], knowledge=knowledge)
    return {
        "share": result.success,
        "smallest": result.smallest,
        "candidates": [list(pair) for pair in result.candidates],
    }


def test_the_worked_examples() -> None:
    check_golden(load_golden(FOLDER / "nodes_of_seven.toml"), _found)


@pytest.mark.parametrize("knowledge", KNOWLEDGE)
def test_a_ring_gives_nobody_away(knowledge: str) -> None:
    ring = [(node, (node + 1) % 12) for node in range(12)]
    result = node_identification(ring, knowledge=knowledge)
    assert result.success == pytest.approx(result.baseline)
    assert not result.succeeded
    assert result.smallest == 12


def test_more_rounds_never_find_less() -> None:
    path = [(node, node + 1) for node in range(9)]
    shares = [node_identification(path, knowledge="neighbor_degrees", rounds=rounds).success for rounds in (1, 2, 3, 4)]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1] == 0.5


def test_ego_networks_see_what_degrees_do_not() -> None:
    # Everybody has two neighbors, who know each other in the triangle only.
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3)]
    assert node_identification(edges, knowledge="degree").smallest == 7
    assert node_identification(edges, knowledge="ego_network").candidates == ((3, 3), (4, 4))


def test_a_released_graph_is_searched_by_true_surroundings() -> None:
    result = node_identification(SEVEN, released=[*SEVEN, ("B", "D")], knowledge="degree")
    # B now has degree 5 like C, D now 3 like A; E, F, G keep 2 each.
    assert result.success == pytest.approx((1 / 2 + 0 + 1 / 2 + 0 + 3 * 1 / 3) / 7)
    assert result.success < node_identification(SEVEN).success


def test_a_noise_graph_hides_people() -> None:
    source = SeededRandomSource(1)
    edges = [(first, second) for first, second in itertools.combinations(range(40), 2) if (first * second) % 7 == 1]
    noisy = NoiseGraph(nodes=40, epsilon=0.5).release(edges, random_state=source)
    true = node_identification(edges, nodes=range(40), knowledge="neighbor_degrees")
    hidden = node_identification(edges, nodes=range(40), knowledge="neighbor_degrees", released=noisy.edges)
    assert hidden.success < true.success
    assert hidden.success <= hidden.baseline


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_names_and_order_do_not_matter(edges: set[tuple[int, int]]) -> None:
    renamed = [(f"n{5 - second}", f"n{5 - first}") for first, second in sorted(edges, reverse=True)]
    for knowledge in KNOWLEDGE:
        first, second = (
            node_identification(sorted(edges), knowledge=knowledge),
            node_identification(renamed, knowledge=knowledge),
        )
        assert first.success == pytest.approx(second.success)
        assert first.candidates == second.candidates


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1]), min_size=1))
def test_ego_classes_are_those_of_trying_all_pairings(edges: set[tuple[int, int]]) -> None:
    graph = Graph.of(sorted(edges), nodes=range(6))
    (colors,) = ego_networks(graph)
    for one, other in itertools.combinations(range(6), 2):
        assert (colors[one] == colors[other]) == _isomorphic(graph, one, other)


def _isomorphic(graph: Graph, one: int, other: int) -> bool:
    mine, theirs = sorted(graph.neighbors[one]), sorted(graph.neighbors[other])
    return len(mine) == len(theirs) and any(
        all(
            (mine[second] in graph.neighbors[mine[first]]) == (order[second] in graph.neighbors[order[first]])
            for first, second in itertools.combinations(range(len(mine)), 2)
        )
        for order in itertools.permutations(theirs)
    )


def test_the_report_names_nobody() -> None:
    result = node_identification(SEVEN)
    text = json.dumps(result.to_dict()) + repr(result) + result.verdict
    assert "worst" not in text
    assert {place for place, chance in result.worst if chance == 1} == {0, 1, 2}
    assert "42.9% of the people are the only candidate" in result.verdict
    assert dict(result.summary())["fewest candidates"] == "1"
    assert "finding nodes" in result.report().to_markdown()


def test_arrays_are_edges_too() -> None:
    assert node_identification(np.array([[0, 1], [1, 2]])).trials == 3


@pytest.mark.parametrize(
    ("parameters", "error", "fix"),
    [
        ({"edges": []}, ParameterError, "every node once"),
        ({"edges": 5}, ParameterTypeError, "edges="),
        ({"edges": [(1, 2, 3)]}, ParameterTypeError, "edges="),
        ({"edges": [(1, 1)]}, ParameterError, "leave such connections out"),
        ({"edges": [(1, math.nan)]}, ParameterError, "leave such connections out"),
        ({"nodes": [1]}, ParameterError, "list all nodes"),
        ({"nodes": [1, 1, 2]}, ParameterError, "every node once"),
        ({"released": [(8, 9)]}, ParameterError, "list all nodes"),
        ({"knowledge": "degrees"}, ParameterError, "degree, neighbor_degrees"),
        ({"rounds": 2}, ParameterError, "knowledge="),
        ({"rounds": 0, "knowledge": "neighbor_degrees"}, ParameterError, "rounds=1"),
    ],
    ids=["none", "number", "triple", "loop", "missing", "unlisted", "twice", "other", "knowledge", "rounds", "zero"],
)
def test_bad_input_is_refused_with_a_fix(parameters: dict[str, Any], error: type[Exception], fix: str) -> None:
    given_by = {"edges": [(1, 2)], **parameters}
    with pytest.raises(error, match=fix):
        node_identification(given_by.pop("edges"), **given_by)
