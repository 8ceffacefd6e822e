"""Small random tables with hierarchies, and a slow, obvious search of their lattices."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cloister.anonymize.algorithms._base import Task
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells, Sensitive, cells_from_arrays
from cloister.anonymize.models import check_of
from cloister.core.guarantees import (
    AlphaKAnonymity,
    DeltaPresence,
    KAnonymity,
    KMap,
    LDiversity,
    PSensitivity,
    TCloseness,
)

Row = tuple[tuple[int, ...], int, int]
"""Leaf codes, sensitive value, person."""

VALUES = 3


@dataclass(frozen=True)
class SmallTable:
    """Rows, one by one, with the node of each leaf at each level of each quasi-identifier."""

    trees: tuple[tuple[tuple[int, ...], ...], ...]
    weights: tuple[float, ...]
    rows: tuple[Row, ...]
    others: tuple[tuple[int, ...], ...] = ()
    """Leaf codes of the members of the population that are not in the table."""

    @property
    def top(self) -> tuple[int, ...]:
        return tuple(len(tree) - 1 for tree in self.trees)

    def nodes(self) -> list[tuple[int, ...]]:
        return list(itertools.product(*(range(height + 1) for height in self.top)))

    def cells(self) -> CodedCells:
        attributes = [attribute(f"q{place}", tree, self.weights[place]) for place, tree in enumerate(self.trees)]
        members = np.array([*(row[0] for row in self.rows), *self.others], dtype=np.int32)
        return cells_from_arrays(
            attributes,
            np.array([row[0] for row in self.rows], dtype=np.int32),
            np.ones(len(self.rows), dtype=np.int64),
            sensitive=[Sensitive(name="s", values=("a", "b", "c"), attribute=attribute("s", ((0, 1, 2), (0, 0, 0))))],
            values=np.array([[row[1]] for row in self.rows], dtype=np.int32),
            subjects=np.array([row[2] for row in self.rows], dtype=np.int64),
            population=cells_from_arrays(attributes, members, np.ones(len(members), dtype=np.int64)),
        )

    def task(self, models: Sequence[Any], **settings: Any) -> Task:
        return Task(cells=self.cells(), checks=tuple(map(check_of, models)), **settings)


def attribute(name: str, tree: Sequence[Sequence[int]], weight: float = 1.0) -> CodedAttribute:
    return CodedAttribute(
        name=name,
        leaves=tuple(str(leaf) for leaf in range(len(tree[0]))),
        ancestors=tuple(np.array(level, dtype=np.int32) for level in tree),
        labels=tuple(
            tuple(f"{name}.{level}.{node}" for node in range(max(codes) + 1)) for level, codes in enumerate(tree)
        ),
        weight=weight,
        has_hierarchy=True,
    )


@st.composite
def trees(draw: st.DrawFn, leaves: int) -> tuple[tuple[int, ...], ...]:
    """Levels from the leaves to the root; every level merges nodes of the one before."""
    levels = [tuple(range(leaves))]
    for _ in range(draw(st.integers(0, 2))):
        nodes = max(levels[-1]) + 1
        parents = sorted(draw(st.lists(st.integers(0, 1), min_size=nodes, max_size=nodes)))
        steps = np.concatenate(([0], np.cumsum(np.diff(parents) > 0) if nodes > 1 else np.zeros(0, dtype=int)))
        kept = draw(st.booleans())
        parent = list(range(nodes)) if kept else [int(step) for step in steps]
        levels.append(tuple(parent[node] for node in levels[-1]))
    return (*levels, (0,) * leaves)


@st.composite
def small_tables(draw: st.DrawFn, *, most_rows: int = 24) -> SmallTable:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    grown = tuple(draw(trees(size)) for size in sizes)
    row = st.tuples(
        st.tuples(*(st.integers(0, size - 1) for size in sizes)), st.integers(0, VALUES - 1), st.integers(0, 9)
    )
    rows = draw(st.lists(row, min_size=1, max_size=most_rows))
    weights = tuple(draw(st.sampled_from([1.0, 2.0, 0.5])) for _ in sizes)
    others = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=most_rows))
    return SmallTable(trees=grown, weights=weights, rows=tuple(rows), others=tuple(others))


MODELS: tuple[tuple[Any, ...], ...] = (
    (KAnonymity(k=1),),
    (KAnonymity(k=3),),
    (KAnonymity(k=2, unit="person"),),
    (LDiversity("s", l=2),),
    (KAnonymity(k=2), LDiversity("s", l=2, kind="entropy")),
    (LDiversity("s", l=Fraction(3, 2), kind="frequency"),),
    (LDiversity("s", l=2, kind="recursive", c=2),),
    (KAnonymity(k=2), TCloseness("s", t=Fraction(3, 10))),
    (AlphaKAnonymity("s", alpha=Fraction(2, 3), k=2),),
    (PSensitivity("s", p=2, k=2),),
    (KMap(k=4),),
    (KAnonymity(k=2), DeltaPresence(delta_max=Fraction(2, 3))),
    (DeltaPresence(delta_min=Fraction(1, 4), delta_max=Fraction(3, 4)),),
)


# The reference: every node, row by row ------------------------------------------------------------------------------


def satisfies(model: Any, rows: Sequence[Row], overall: Counter[int], fitting: int) -> bool:
    units = len(rows) if model.unit == "row" else len({row[2] for row in rows})
    counts = Counter(row[1] for row in rows)
    match model:
        case KAnonymity():
            return units >= model.k
        case KMap():
            return fitting >= model.k
        case DeltaPresence():
            return bool(model.delta_min <= Fraction(len(rows), fitting) <= model.delta_max)
        case AlphaKAnonymity():
            return units >= model.k and Fraction(max(counts.values()), len(rows)) <= model.alpha
        case PSensitivity():
            return units >= model.k and len(counts) >= model.p
        case TCloseness():
            total = sum(overall.values())
            moved = sum(abs(Fraction(counts[v], len(rows)) - Fraction(overall[v], total)) for v in overall)
            return moved / 2 <= model.t
        case LDiversity():
            return is_diverse(model, counts, len(rows))
    raise NotImplementedError(type(model))


def is_diverse(model: LDiversity, counts: Counter[int], size: int) -> bool:
    ordered = sorted(counts.values(), reverse=True)
    match model.variant:
        case "distinct":
            return len(counts) >= model.l
        case "frequency":
            return Fraction(ordered[0], size) <= 1 / model.l
        case "entropy":
            return math.exp(-sum(n / size * math.log(n / size) for n in ordered)) >= float(model.l) - 1e-9
        case _:
            return model.c is not None and ordered[0] < model.c * sum(ordered[int(model.l) - 1 :])


def released(table: SmallTable, node: tuple[int, ...], models: Sequence[Any]) -> list[list[Row]]:
    """Return the classes of a node that are left after suppression."""
    groups: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in table.rows:
        groups[shown(table, node, row[0])].append(row)
    members = [*(row[0] for row in table.rows), *table.others]
    fitting = Counter(shown(table, node, codes) for codes in members)
    fixed = [model for model in models if not isinstance(model, TCloseness)]
    comparing = [model for model in models if isinstance(model, TCloseness)]
    kept = [
        rows for key, rows in groups.items() if all(satisfies(model, rows, Counter(), fitting[key]) for model in fixed)
    ]
    while True:
        overall = Counter(row[1] for rows in kept for row in rows)
        left = [rows for rows in kept if all(satisfies(model, rows, overall, 0) for model in comparing)]
        if len(left) == len(kept):
            return kept
        kept = left


def shown(table: SmallTable, node: tuple[int, ...], codes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(tree[level][leaf] for tree, level, leaf in zip(table.trees, node, codes, strict=True))


def loss_metric(table: SmallTable, node: tuple[int, ...], place: int, leaf: int) -> float:
    codes = table.trees[place][node[place]]
    return (codes.count(codes[leaf]) - 1) / max(len(codes) - 1, 1)


def climbed(table: SmallTable, node: tuple[int, ...], place: int, leaf: int) -> float:
    return node[place] / table.top[place] if table.top[place] else 0.0


def bits(table: SmallTable, node: tuple[int, ...], place: int, leaf: int) -> float:
    codes = table.trees[place][node[place]]
    mates = sum(codes[row[0][place]] == codes[leaf] for row in table.rows)
    return math.log2(mates / sum(row[0][place] == leaf for row in table.rows))


def relative_bits(table: SmallTable, node: tuple[int, ...], place: int, leaf: int) -> float:
    entropy = sum(bits(table, table.top, place, row[0][place]) for row in table.rows) / len(table.rows)
    return bits(table, node, place, leaf) / (entropy or 1.0)


def additive(
    cost: Callable[[SmallTable, tuple[int, ...], int, int], float], *, most: float | None = None
) -> Callable[[SmallTable, tuple[int, ...], list[list[Row]]], float]:
    """Return the mean cost of rows; a suppressed cell costs the most, or as much as at the root."""

    def loss(table: SmallTable, node: tuple[int, ...], kept: list[list[Row]]) -> float:
        total = 0.0
        shares = [weight / sum(table.weights) for weight in table.weights]
        remaining = Counter(row for rows in kept for row in rows)
        for row in table.rows:
            is_kept = remaining[row] > 0
            remaining[row] -= 1
            for place, leaf in enumerate(row[0]):
                worst = cost(table, table.top, place, leaf) if most is None else most
                total += shares[place] * (cost(table, node, place, leaf) if is_kept else worst)
        return total / len(table.rows)

    return loss


def lost(table: SmallTable, kept: list[list[Row]]) -> int:
    return len(table.rows) - sum(map(len, kept))


REFERENCE_LOSSES: dict[str, Callable[[SmallTable, tuple[int, ...], list[list[Row]]], float]] = {
    "ncp": additive(loss_metric, most=1.0),
    "precision": additive(climbed, most=1.0),
    "entropy": additive(relative_bits),
    "height": lambda table, node, kept: sum(node) + lost(table, kept) / len(table.rows),
    "discernibility": lambda table, node, kept: (
        sum(len(rows) ** 2 for rows in kept) + len(table.rows) * lost(table, kept)
    ),
    "average_class_size": lambda table, node, kept: len(table.rows) / max(len(kept), 1),
}


def exhaustive(table: SmallTable, models: Sequence[Any], *, loss: str, allowed: int) -> dict[tuple[int, ...], float]:
    """Return the loss of every node that holds."""
    found = {}
    for node in table.nodes():
        kept = released(table, node, models)
        if lost(table, kept) <= allowed:
            found[node] = REFERENCE_LOSSES[loss](table, node, kept)
    return found


def best_of(losses: dict[tuple[int, ...], float]) -> tuple[int, ...]:
    least = min(losses.values())
    ties = [node for node, loss in losses.items() if loss <= least + 1e-9]
    return min(ties, key=lambda node: (sum(node), node))
