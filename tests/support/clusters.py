"""Tables for tests of clustering, and slow, obvious references: the loss row by row, and greedy clustering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from cloister.anonymize._partition import Partition
from cloister.anonymize.attributes import CodedAttribute
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Values
from cloister.data.columns import Column, Kind
from tests.anonymize.tables import coded

NAMES = ("red", "green", "blue", "gray", None)
COLUMNS = (
    Column(name="age", kind=Kind.NUMERIC),
    Column(name="color", kind=Kind.NOMINAL, weight=2),
    Column(name="grade", kind=Kind.ORDINAL, categories=("low", "mid", "high")),
    Column(name="ill", kind=Kind.NOMINAL, role="sensitive"),
)


@st.composite
def mixed_cells(draw: st.DrawFn, *, most_rows: int = 60) -> CodedCells:
    """Tables with an ordered, a nominal and an ordinal column, with missing values, repeated rows and weights."""
    row = st.tuples(
        st.none() | st.integers(20, 40), st.sampled_from(NAMES), st.sampled_from(["low", "mid", "high"]), st.booleans()
    )
    rows = draw(st.lists(row, min_size=1, max_size=most_rows))
    copies = draw(st.lists(st.integers(1, 8), min_size=len(rows), max_size=len(rows)))
    return coded([list(item) for item, times in zip(rows, copies, strict=True) for _ in range(times)], COLUMNS)


def loss_row_by_row(partition: Partition, values: Values) -> float:
    """Return the mean loss over rows and attributes, from the definition, without arrays."""
    cells = partition.cells
    total = 0.0
    weights = [attribute.weight for attribute in cells.attributes]
    for group in range(partition.size):
        lines = [line for line in range(len(partition.groups)) if partition.groups[line] == group]
        members = [cells.codes[cells.record_cells[partition.records[line]]].tolist() for line in lines]
        rows = sum(int(partition.counts[line]) for line in lines)
        for place, attribute in enumerate(cells.attributes):
            loss = loss_of_leaves(attribute, {member[place] for member in members}, values)
            total += rows * loss * weights[place] / sum(weights)
    return (total + partition.suppressed) / cells.total


def loss_of_leaves(attribute: CodedAttribute, leaves: set[int], values: Values) -> float:
    """Return the loss of a class with these leaves in one attribute."""
    last = max(len(attribute.leaves) - 1, 1)
    if values is Values.HIERARCHY:
        for codes in attribute.ancestors:
            if len({int(codes[leaf]) for leaf in leaves}) == 1:
                return (int((codes == codes[min(leaves)]).sum()) - 1) / last
    if attribute.positions is None:
        return (len(leaves) - 1) / last
    places = [float(attribute.positions[leaf]) for leaf in leaves]
    if any(np.isnan(places)):
        return float(len(leaves) > 1)
    return (max(places) - min(places)) / (attribute.span or 1.0)


def greedy_clustering(cells: CodedCells, *, k: int, values: Values) -> float:
    """Return the loss of textbook clustering: take a row, add the k - 1 rows that cost least, and so on.

    The first row of a class is the one that is farthest from the first row of the class before; the rows that are left
    over join the class where they cost least (Byun and others 2007).
    """
    left = [tuple(codes) for codes, rows in zip(cells.codes.tolist(), cells.weights, strict=True) for _ in range(rows)]
    groups: list[list[Any]] = []
    last = left[0]
    while len(left) >= k:
        last = max(left, key=lambda row: class_loss(cells, [row, last], values))
        group = [last]
        left.remove(last)
        while len(group) < k:
            best = min(left, key=lambda row: class_loss(cells, [*group, row], values))
            left.remove(best)
            group.append(best)
        groups.append(group)
    for row in left:
        best_group = min(
            groups,
            key=lambda g: (len(g) + 1) * class_loss(cells, [*g, row], values) - len(g) * class_loss(cells, g, values),
        )
        best_group.append(row)
    return sum(len(group) * class_loss(cells, group, values) for group in groups) / cells.total


def class_loss(cells: CodedCells, rows: Sequence[Sequence[int]], values: Values) -> float:
    """Return the weighted loss of a row of the class that these rows form."""
    shares = cells.weights_of_attributes
    return sum(
        float(shares[place]) * loss_of_leaves(attribute, {row[place] for row in rows}, values)
        for place, attribute in enumerate(cells.attributes)
    )
