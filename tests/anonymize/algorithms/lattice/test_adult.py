"""The Adult table: the optimum against every node of the lattice, and how few nodes it takes to prove it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.algorithms.lattice import optimal
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.models import check_of
from cloister.anonymize.regions import Regions
from cloister.core.guarantees import KAnonymity, LDiversity
from tests.support.adult import adult_cells

K = 5


@pytest.fixture(scope="module")
def adult(shared_data: Path) -> CodedCells:
    return adult_cells(shared_data)


def every_node(cells: CodedCells) -> Iterator[tuple[tuple[int, ...], int, float]]:
    """Yield each node with the rows it suppresses and its mean LM, by counting its classes."""
    nothing = np.zeros(len(cells), dtype=np.int64)
    for node, key, cost in keys_of_nodes(cells, (), nothing, np.zeros(len(cells))):
        classes = key if key.max() < 10**5 else np.unique(key, return_inverse=True)[1]
        weights = np.where(np.bincount(classes, weights=cells.weights)[classes] >= K, cells.weights, 0).astype(float)
        suppressed = cells.total - int(weights.sum())
        yield node, suppressed, (float(weights @ cost) / len(cells.attributes) + suppressed) / cells.total


def keys_of_nodes(
    cells: CodedCells, node: tuple[int, ...], key: NDArray[np.int64], cost: NDArray[np.float64]
) -> Iterator[tuple[tuple[int, ...], NDArray[np.int64], NDArray[np.float64]]]:
    """Yield all nodes that begin with some levels; cells with the same key are in the same class."""
    if len(node) == len(cells.attributes):
        yield node, key, cost
        return
    leaves = np.ascontiguousarray(cells.codes[:, len(node)])
    for level, codes in enumerate(cells.attributes[len(node)].ancestors):
        share = (np.bincount(codes)[codes] - 1) / (len(codes) - 1)
        longer = key * (int(codes.max()) + 1) + codes[leaves]
        yield from keys_of_nodes(cells, (*node, level), longer, cost + share[leaves])


@pytest.mark.slow
def test_the_optimum_of_adult_is_the_best_of_all_6480_nodes(adult: CodedCells) -> None:
    nodes = list(every_node(adult))
    assert len(nodes) == 6480
    for limit in (Fraction(0), Fraction(1, 20), Fraction(1, 4), Fraction(1)):
        task = Task(cells=adult, checks=(check_of(KAnonymity(k=K)),), suppression_limit=limit)
        outcome = optimal(task)
        loss, node, suppressed = min((loss, node, lost) for node, lost, loss in nodes if lost <= task.allowed)
        assert tuple(outcome.facts["levels"].values()) == node
        assert outcome.partition.suppressed == suppressed
        assert Regions(partition=outcome.partition).loss() == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize(
    ("limit", "levels", "suppressed", "loss", "nodes"),
    [
        ("0", (0, 4, 0, 2, 3, 2, 2, 1), 0, 0.660842, 150),
        ("0.05", (0, 3, 0, 1, 2, 1, 1, 1), 1248, 0.261757, 300),
        ("1", (0, 3, 0, 0, 2, 1, 0, 1), 3049, 0.227062, 300),
    ],
)
def test_few_nodes_prove_the_optimum_of_adult(
    adult: CodedCells, limit: str, levels: tuple[int, ...], suppressed: int, loss: float, nodes: int
) -> None:
    outcome = optimal(Task(cells=adult, checks=(check_of(KAnonymity(k=K)),), suppression_limit=Fraction(limit)))
    assert tuple(outcome.facts["levels"].values()) == levels
    assert outcome.partition.suppressed == suppressed
    assert Regions(partition=outcome.partition).loss() == pytest.approx(loss, abs=1e-6)
    assert outcome.facts["nodes"] == 6480
    assert outcome.facts["evaluated"] <= nodes


def test_a_heuristic_search_finds_the_optimum_of_adult_without_proving_it(adult: CodedCells) -> None:
    task = Task(
        cells=adult,
        checks=(check_of(KAnonymity(k=K)), check_of(LDiversity("salary-class", l=2))),
        suppression_limit=Fraction(1, 20),
    )
    heuristic = Task(
        cells=adult,
        checks=task.checks,
        suppression_limit=task.suppression_limit,
        options={"search": "heuristic", "budget": 100},
    )
    assert optimal(heuristic).facts["levels"] == optimal(task).facts["levels"]
