"""All small neighboring datasets: what a proof by enumeration has to cover."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import TypeAlias, TypeVar

from cloister.core import validation
from cloister.core.guarantees import Adjacency
from cloister.errors import ParameterError

__all__ = ["all_neighbors", "removals"]

Row = TypeVar("Row", bound=Hashable)
Dataset: TypeAlias = tuple[Row, ...]


def all_neighbors(
    domain: Sequence[Row],
    *,
    max_rows: int,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    min_rows: int = 0,
    ordered: bool = False,
) -> Iterator[tuple[Dataset[Row], Dataset[Row]]]:
    """Yield every pair of neighboring datasets over a small domain once; a check goes both ways.

    Args:
        domain: the rows that are possible.
        max_rows: the size of the larger dataset, at most.
        adjacency: "add_remove" or "replace".
        min_rows: the size of the smaller dataset, at least.
        ordered: whether the order of rows matters; if not, a dataset is a multiset, written in domain order.

    >>> list(all_neighbors("ab", max_rows=1))
    [(('a',), ()), (('b',), ())]
    """
    validation.check_count(max_rows, name="max_rows", at_least=1)
    if not domain:
        raise ParameterError("The domain is empty.", fix="give the rows that are possible.")
    if adjacency == Adjacency.ADD_REMOVE:
        for size in range(max(min_rows, 0) + 1, max_rows + 1):
            yield from _without_one(domain, size, ordered=ordered)
    elif adjacency == Adjacency.REPLACE:
        for size in range(max(min_rows, 1), max_rows + 1):
            yield from _with_one_changed(domain, size, ordered=ordered)
    else:
        raise ParameterError(
            f"Neighbors under {adjacency} depend on more than rows.",
            fix='use adjacency="add_remove" or "replace", or list the pairs yourself.',
        )


def removals(dataset: Sequence[Row]) -> Iterator[tuple[Dataset[Row], Dataset[Row]]]:
    """Yield a dataset paired with itself less one row, for every row.

    >>> list(removals(["a", "b"]))
    [(('a', 'b'), ('b',)), (('a', 'b'), ('a',))]
    """
    whole = tuple(dataset)
    for position in range(len(whole)):
        yield whole, whole[:position] + whole[position + 1 :]


def _datasets(domain: Sequence[Row], size: int, *, ordered: bool) -> Iterator[Dataset[Row]]:
    return product(domain, repeat=size) if ordered else combinations_with_replacement(domain, size)


def _without_one(domain: Sequence[Row], size: int, *, ordered: bool) -> Iterator[tuple[Dataset[Row], Dataset[Row]]]:
    for dataset in _datasets(domain, size, ordered=ordered):
        yield from dict.fromkeys(removals(dataset))


def _with_one_changed(
    domain: Sequence[Row], size: int, *, ordered: bool
) -> Iterator[tuple[Dataset[Row], Dataset[Row]]]:
    """Yield pairs that share all but one row; the changed row only moves forward in the domain, so each comes once."""
    rank = {row: position for position, row in enumerate(domain)}
    for dataset in _datasets(domain, size, ordered=ordered):
        for position, row in enumerate(dataset):
            if not ordered and position + 1 < size and dataset[position + 1] == row:
                continue
            for other in domain[rank[row] + 1 :]:
                changed = (*dataset[:position], other, *dataset[position + 1 :])
                yield dataset, changed if ordered else tuple(sorted(changed, key=rank.__getitem__))
