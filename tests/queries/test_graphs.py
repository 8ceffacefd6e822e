from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import special

from cloister.core import exact
from cloister.core.guarantees import Adjacency, PureDP
from cloister.core.random import SeededRandomSource
from cloister.errors import CloisterError, UnsafeMechanismError
from cloister.queries.graphs import NoiseGraph, edge_epsilon
from cloister.testing import FALSE_ALARM, MechanismLaws, check_exactly, check_independent, distributions, statistics

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


def test_cdp_21_epsilon() -> None:
    for probability, epsilon in ((0.1, 2.1972), (0.25, 1.0986)):
        mechanism = NoiseGraph(nodes=10, flip_probability=probability)
        assert float(mechanism.epsilon) == pytest.approx(epsilon, abs=5e-5)
        assert mechanism.epsilon > exact.log_bounds((1 - exact.number(probability)) / exact.number(probability))[0]
        assert mechanism.guarantee == PureDP(epsilon=mechanism.epsilon, adjacency=Adjacency.EDGE, unit="connection")


@pytest.mark.statistical
@pytest.mark.parametrize("sides", [{"nodes": 60}, {"nodes": 30, "other_nodes": 50}])
@pytest.mark.parametrize(
    "noise", [{"flip_probability": 0.1}, {"flip_probability": 0.25}, {"add_probability": 0.05, "drop_probability": 0.3}]
)
def test_cdp_21_the_edge_count_is_unbiased(sides: dict[str, int], noise: dict[str, float]) -> None:
    """The error of the mean of 400 estimates is within 6.2 of its standard errors (and 3 were promised)."""
    mechanism, draws = NoiseGraph(**sides, **noise), 400
    edges = [(i, j) for i in range(20) for j in range(i + 1, 30, 3)]
    graphs = [mechanism.release(edges) for _ in range(draws)]
    estimates = np.array([graph.edge_count for graph in graphs])
    error = graphs[0].standard_deviation / math.sqrt(draws)
    assert abs(estimates.mean() - len(edges)) < 6.2 * error
    shown = np.array([len(graph.edges) for graph in graphs])
    assert abs(shown.mean() - len(edges)) > 6.2 * error
    missed = int((np.abs(estimates - len(edges)) > graphs[0].margin(0.95)).sum())
    assert special.bdtrc(missed - 1, draws, 0.05) > FALSE_ALARM


@pytest.mark.parametrize("possible", [10, 45, 190])
@pytest.mark.parametrize("flip", ["1/100", "1/10", "1/4", "2/5"])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_margin_covers_by_exact_arithmetic(possible: int, flip: str, confidence: float) -> None:
    """The number shown is binomial(possible - m, p) + m - binomial(m, p), for every true number m of connections."""
    mechanism = NoiseGraph(nodes=possible, other_nodes=1, flip_probability=flip)
    graph, chance = mechanism.release([]), float(mechanism.add_probability)
    reach = graph.margin(confidence) * (1 - 2 * chance) + 1e-9
    for true in range(0, possible + 1, 5):
        law = np.convolve(_binomial(possible - true, chance), _binomial(true, 1 - chance))
        mean = (possible - true) * chance + true * (1 - chance)
        assert law[np.abs(np.arange(possible + 1) - mean) <= reach].sum() >= confidence


def _binomial(count: int, chance: float) -> Any:
    return np.array([math.comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)])


def _law(mechanism: NoiseGraph, edges: frozenset[tuple[int, int]], possible: list[tuple[int, int]]) -> Any:
    """Return the exact probability of every graph that can be shown."""
    add, drop = mechanism.add_probability, mechanism.drop_probability
    chances = [1 - drop if edge in edges else add for edge in possible]
    return {
        shown: math.prod((p if bit else 1 - p) for p, bit in zip(chances, shown, strict=True))
        for shown in product((False, True), repeat=len(possible))
    }


@pytest.mark.parametrize(
    "noise",
    [
        {"epsilon": 1},
        {"flip_probability": "1/4"},
        {"add_probability": "1/20", "drop_probability": "3/10"},
        {"add_probability": "3/10", "drop_probability": "1/20"},
    ],
    ids=str,
)
def test_all_small_graphs_are_private_and_no_better_epsilon_is_true(noise: dict[str, Any]) -> None:
    mechanism = NoiseGraph(nodes=3, **noise)
    possible = list(combinations(range(3), 2))
    graphs = {size: list(map(frozenset, combinations(possible, size))) for size in range(4)}
    pairs = [
        (small, large) for size in range(3) for small in graphs[size] for large in graphs[size + 1] if small < large
    ]
    report = check_exactly(lambda edges: _law(mechanism, edges, possible), pairs, epsilon=mechanism.epsilon)
    report.verify()
    assert report.tight_epsilon == pytest.approx(float(mechanism.epsilon), rel=1e-9)
    lower = mechanism.epsilon * Fraction(99, 100)
    assert check_exactly(lambda edges: _law(mechanism, edges, possible), pairs, epsilon=lower).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("sides", [{"nodes": 4}, {"nodes": 2, "other_nodes": 3}])
def test_every_connection_is_tossed_on_its_own_with_its_probability(sides: dict[str, int]) -> None:
    mechanism = NoiseGraph(**sides, add_probability=0.2, drop_probability=0.4)
    possible = list(product(range(2), range(3))) if "other_nodes" in sides else list(combinations(range(4), 2))
    true = {(0, 1), (1, 2)}
    shown = np.zeros((2500, len(possible)), dtype=np.int64)
    for row in shown:
        row[[possible.index(tuple(edge)) for edge in mechanism.release(sorted(true)).edges.tolist()]] = 1  # type: ignore[index]
    check_independent(shown)
    for column, edge in enumerate(possible):
        chance = 0.6 if edge in true else 0.2
        statistics.check_distribution(shown[:, column], distributions.categorical({1: chance, 0: 1 - chance}))


@given(st.integers(2, 40), st.data())
def test_numbers_of_connections_and_pairs_of_nodes_agree(nodes: int, data: Any) -> None:
    others = data.draw(st.none() | st.integers(1, 40))
    mechanism = NoiseGraph(nodes=nodes, other_nodes=others, flip_probability=0.1)
    everything = mechanism._decoded(np.arange(mechanism.possible_edges))
    if others is None:
        assert everything.tolist() == [list(pair) for pair in combinations(range(nodes), 2)]
        assert mechanism._codes(everything[:, ::-1]).tolist() == list(range(mechanism.possible_edges))
    else:
        assert everything.tolist() == [list(pair) for pair in product(range(nodes), range(others))]
    assert mechanism._codes(everything).tolist() == list(range(mechanism.possible_edges))


def test_repeated_edges_count_once() -> None:
    mechanism = NoiseGraph(nodes=5, flip_probability=0.1)
    once, twice = (
        mechanism.release(edges, random_state=SeededRandomSource(3)).edges.tolist()
        for edges in (TRIANGLE, [*TRIANGLE, (1, 0), (0, 1)])
    )
    assert once == twice


def test_no_edges_and_all_edges() -> None:
    mechanism = NoiseGraph(nodes=30, epsilon=40)
    assert len(mechanism.release([]).edges) == 0
    complete = np.array(list(combinations(range(30), 2)), dtype=np.uint16)
    assert np.array_equal(mechanism.release(complete).edges, complete)


@given(st.fractions(min_value="1/1000", max_value=20, max_denominator=1000))
def test_an_epsilon_gives_enough_noise_and_hardly_more(epsilon: Fraction) -> None:
    mechanism = NoiseGraph(nodes=3, epsilon=epsilon)
    needed = edge_epsilon(add_probability=mechanism.add_probability, drop_probability=mechanism.drop_probability)
    assert needed is not None
    assert epsilon * (1 - Fraction(1, 10**12)) <= needed <= epsilon
    assert mechanism.epsilon == epsilon


def test_the_epsilon_of_certain_connections() -> None:
    assert edge_epsilon(add_probability=0, drop_probability="1/2") is None
    assert edge_epsilon(add_probability="1/2", drop_probability=0) is None
    assert edge_epsilon(add_probability=1, drop_probability=0) == 0
    assert edge_epsilon(add_probability="1/2", drop_probability="1/2") == 0


def test_snapshots_protect_events_and_say_what_a_lasting_connection_costs() -> None:
    mechanism = NoiseGraph(nodes=5, epsilon=1, unit="friendship")
    graphs = mechanism.release_snapshots([TRIANGLE, TRIANGLE, []])
    assert len(graphs) == 3
    for graph in graphs:
        assert graph.guarantee.adjacency == Adjacency.EVENT
        assert graph.guarantee.unit == "friendship at one time"
        assert graph.guarantee.holds
        assert "persists through all of them costs epsilon = 3" in graph.guarantee.explain()
    assert sum(graph.event.epsilon for graph in graphs) == 3  # type: ignore[attr-defined]
    assert mechanism.release_snapshots([]) == ()


def test_a_seed_taints_snapshots_too() -> None:
    graphs = NoiseGraph(nodes=5, epsilon=1).release_snapshots([TRIANGLE], random_state=SeededRandomSource(1))
    assert not graphs[0].guarantee.holds


@pytest.mark.parametrize("sides", [{"nodes": 6}, {"nodes": 6, "other_nodes": 4}])
def test_laws_of_mechanisms(sides: dict[str, int]) -> None:
    MechanismLaws(
        factory=lambda epsilon: NoiseGraph(**sides, epsilon=epsilon),
        value=TRIANGLE,
        secret=None,
        bad_values=([(0, 4711)], [(-1, 2)], [0, 1], [(0.5, 1.0)], [(0, 1, 2)], "secret-4711", None),
        incomplete=(
            lambda: NoiseGraph(**sides),
            lambda: NoiseGraph(**sides, epsilon=1, flip_probability=0.1),
            lambda: NoiseGraph(**sides, add_probability=0.1),
            lambda: NoiseGraph(epsilon=1),
        ),
    ).verify()


def test_a_release_says_what_it_is() -> None:
    graph = NoiseGraph(nodes=100, flip_probability=0.1).release(TRIANGLE)
    assert " connections shown, " in str(graph)
    assert "(95%) estimated, epsilon = 2.19722 per connection" in str(graph)
    assert graph.to_dict()["add_probability"] == "1/10"
    assert repr(graph).count("[") == 0
    mechanism = graph.mechanism
    asymmetric = NoiseGraph(nodes=100, add_probability=0.1, drop_probability=0.2)
    assert (mechanism.flip_probability, asymmetric.flip_probability) == (Fraction(1, 10), None)


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"nodes": 1}, "nodes=2"),
        ({"other_nodes": 0}, "other_nodes=1"),
        ({"nodes": 20_000}, "noisy counts or degrees instead"),
        ({"flip_probability": 0.5}, "flip_probability below 0.5"),
        ({"flip_probability": 0.6}, "add up to less than 1"),
        ({"flip_probability": 2}, "as a probability"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=fix):
        NoiseGraph(**({"nodes": 5, "flip_probability": 0.1} | changes))


@pytest.mark.parametrize("noise", [{"flip_probability": 0}, {"epsilon": 51}], ids=str)
def test_noise_that_hides_nothing_is_refused(noise: dict[str, Any]) -> None:
    with pytest.raises(UnsafeMechanismError, match="Fix:"):
        NoiseGraph(nodes=5, **noise)


def test_loops_and_strangers_are_refused_without_quoting_them() -> None:
    mechanism = NoiseGraph(nodes=5000, flip_probability=0.1)
    for edges, fix in (([(4711, 4711)], "leave loops out"), ([(1, 47_110)], "0 .. nodes - 1")):
        with pytest.raises(CloisterError, match=fix) as caught:
            mechanism.release(edges)
        assert "4711" not in str(caught.value)
