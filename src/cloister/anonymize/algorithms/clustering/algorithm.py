"""The clustering algorithm: its three steps in order; for small tables also the greedy textbook method.

Greedy clustering as it is usually described (Byun, Kamra, Bertino and Li 2007) looks at every pair of rows, so that its
time grows with the square of their number.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize._partition import Partition, deal, whole
from cloister.anonymize.algorithms._base import AlgorithmOutcome, Task
from cloister.anonymize.algorithms._outliers import suppresses_outliers
from cloister.anonymize.algorithms.clustering._agglomeration import (
    Gathering,
    Judge,
    Pieces,
    find_satisfying_cells,
    model_judge,
    set_judge,
)
from cloister.anonymize.algorithms.clustering._exchange import (
    CellOrder,
    GroupedRows,
    exchange_in_neighborhoods,
    fill_only_class,
)
from cloister.anonymize.algorithms.clustering._growth import ClassGrowth
from cloister.anonymize.algorithms.clustering._ladders import combinations_of, exact_agenda, hopeful_agenda, ladders_of
from cloister.anonymize.algorithms.clustering._merges import merge_failing_classes
from cloister.anonymize.cells import CodedCells
from cloister.anonymize.regions import Regions, Values
from cloister.core.guarantees import KAnonymity
from cloister.core.validation import check_count

Groups: TypeAlias = NDArray[np.int64]


def textbook_groups(cells: CodedCells, owners: Groups, *, k: int, values: Values) -> Groups:
    """Return a class for each row, given its cell: the row farthest from the last start, and its k - 1 nearest.

    Rows that are left over join the class where they cost least.
    """
    growth = ClassGrowth(cells, cells.codes[owners].astype(np.int64), values=values)
    groups = np.full(len(owners), -1, dtype=np.int64)
    classes: list[list[int]] = []
    start = 0
    for number in range(len(owners) // k):
        start = _choice(growth, [start], groups, farthest=True)
        groups[start] = number
        classes.append([start])
        for _ in range(k - 1):
            row = _choice(growth, classes[-1], groups, farthest=False)
            groups[row] = number
            classes[-1].append(row)
    # With fewer than k rows in all there is no class to join.
    for row in np.flatnonzero(groups < 0).tolist() if classes else []:
        groups[row] = _cheapest(growth, classes, row)
        classes[groups[row]].append(row)
    return groups


def _choice(growth: ClassGrowth, members: list[int], groups: Groups, *, farthest: bool) -> int:
    """Return the free row with which a class loses most, or least."""
    free = np.flatnonzero(groups < 0)
    tables, _ = growth.tables(np.array([members]))
    losses = growth.joining(free, tables)[:, 0]
    return int(free[losses.argmax() if farthest else losses.argmin()])


def _cheapest(growth: ClassGrowth, classes: list[list[int]], row: int) -> int:
    sizes = np.array([len(members) for members in classes])
    longest = int(sizes.max())
    tables, losses = growth.tables(np.array([members + members[:1] * (longest - len(members)) for members in classes]))
    return int((growth.joining(np.array([row]), tables)[0] * (sizes + 1) - losses * sizes).argmin())


Counts: TypeAlias = NDArray[np.int64]

_NODES = 20_000
_PASSES = 8
_EXCHANGED = 30_000
_FEW_ROWS = 1000


@suppresses_outliers
def clustering(task: Task) -> AlgorithmOutcome:
    """Return classes of rows that are alike.

    Options:
        passes: how often rows are exchanged, each time among other neighbors; once in large tables, up to 8 times in
            small ones. More passes take longer and lose a little less. Rows are exchanged for k-anonymity alone.
    """
    passes = task.options.get("passes")
    passes = None if passes is None else check_count(passes, name="passes")
    values = Values.HIERARCHY if task.values is Values.HIERARCHY else Values.SETS
    if all(_counts_rows_only(check.model) for check in task.checks):
        partition = _by_rows(task, values, passes)
    else:
        partition = _by_models(task, values)
    partition = merge_failing_classes(partition, task, values=values)
    facts = {"is_split": partition.is_split}
    return AlgorithmOutcome(partition=partition, values=task.values, facts=facts)


def _counts_rows_only(model: Any) -> bool:
    return isinstance(model, KAnonymity) and model.unit == "row"


def _by_rows(task: Task, values: Values, passes: int | None) -> Partition:
    """Return classes of at least k rows; the rows of a cell may be in different ones."""
    cells, k = task.cells, task.k
    # Cells with k rows and more need no company, and lose nothing.
    lone = np.flatnonzero(cells.weights < k)
    owners = np.repeat(lone, cells.weights[lone])
    if not len(owners):
        return whole(cells, np.arange(len(cells)))
    rows = np.ones(len(owners), np.int64)
    nearness, gathered, groups = _gather_rows(cells, owners, rows, k=k, values=values, judge=None)
    starts = [
        fill_only_class(cells, GroupedRows(cells=gathered, groups=_with_last(groups)), nearness, k=k, values=values)
    ]
    # For few rows the textbook's way is affordable, and sometimes better.
    if k <= len(owners) <= _FEW_ROWS:
        starts.append(GroupedRows(cells=owners, groups=textbook_groups(cells, owners, k=k, values=values)))
    turns = passes if passes is not None else min(max(_EXCHANGED // len(owners), 1), _PASSES)
    found = [_partition(cells, _exchange_rows(task, grouped, nearness, values, turns)) for grouped in starts]
    return min(found, key=lambda partition: Regions(partition=partition, values=values).loss())


def _exchange_rows(task: Task, grouped: GroupedRows, nearness: CellOrder, values: Values, turns: int) -> GroupedRows:
    for turn in range(turns):
        task.progress((turn + 1) / (turns + 1), "exchanging rows")
        grouped = exchange_in_neighborhoods(task.cells, grouped, nearness, k=task.k, values=values, turn=turn)
    return grouped


def _gather_rows(
    cells: CodedCells, owners: Counts, rows: Counts, *, k: int, values: Values, judge: Judge | None
) -> tuple[CellOrder, Counts, Counts]:
    """Return the order of cells that was used, the cell of each piece in that order, and its class or -1."""
    ladders = ladders_of(cells, owners, k=k, values=values)
    nearness = CellOrder(cells, [float(ladder.prices[-1].mean()) for ladder in ladders])
    order = np.argsort(nearness.ranks(owners), kind="stable")
    owners, rows = owners[order], rows[order]
    ladders, nodes = combinations_of(ladders, limit=_NODES)
    leaves = np.ascontiguousarray(cells.codes[owners].T.astype(np.int64))
    is_exact = values is Values.HIERARCHY
    pieces = Pieces(owners=owners, leaves=leaves, rows=rows, may_part=judge is None)
    judges = [] if judge is None else [judge]
    judges += [] if is_exact else [set_judge(cells, leaves)]
    gathering = Gathering(pieces, ladders, nodes, k=k, judges=judges, exact=is_exact)
    visits = exact_agenda(ladders, nodes, leaves.T) if is_exact else hopeful_agenda(ladders, nodes)
    return nearness, owners, gathering.run(visits)


def _with_last(groups: Counts) -> Counts:
    """Return groups in which the few rows that are left over join the last class, which is the dearest."""
    return np.where(groups < 0, max(int(groups.max(initial=0)), 0), groups)


def _partition(cells: CodedCells, grouped: GroupedRows) -> Partition:
    """Return the classes of grouped rows, and one class for what stays in each large cell."""
    # Cell and class in one number: equal rows in a class become one line with a count.
    keys, counts = np.unique(grouped.cells * max(grouped.size, 1) + grouped.groups, return_counts=True)
    owners, groups = np.divmod(keys, max(grouped.size, 1))
    left = cells.weights - np.bincount(grouped.cells, minlength=len(cells))
    stay = np.flatnonzero(left > 0)
    return deal(
        cells,
        owners=np.concatenate([owners, stay]),
        groups=np.concatenate([groups, grouped.size + np.arange(len(stay))]),
        counts=np.concatenate([counts, left[stay]]),
    )


def _by_models(task: Task, values: Values) -> Partition:
    """Return classes of whole cells that satisfy the models, and a class for each cell that found none."""
    cells = task.cells
    alone = find_satisfying_cells(task)
    owners = np.flatnonzero(~alone)
    groups = np.full(len(cells), -1, dtype=np.int64)
    if len(owners):
        judge = model_judge(task)
        _, owners, found = _gather_rows(cells, owners, cells.weights[owners], k=task.k, values=values, judge=judge)
        groups[owners] = found
    rest = np.flatnonzero(groups < 0)
    groups[rest] = int(groups.max(initial=-1)) + 1 + np.arange(len(rest))
    return whole(cells, groups)
