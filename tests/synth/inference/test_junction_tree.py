from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given, settings, strategies as st

from cloister.synth.inference._junction_tree import JunctionTree, TreeSizes, junction_tree, mask_of, neighbor_masks

SIZES = (2, 3, 4, 5, 6, 7)
GROUPS = st.lists(st.sets(st.integers(0, 5), min_size=1, max_size=3).map(sorted).map(tuple), max_size=8)


@given(groups=GROUPS)
@settings(max_examples=200, deadline=None)
def test_every_group_has_a_home_and_columns_are_shared_through_parents_only(groups: list[tuple[int, ...]]) -> None:
    tree = junction_tree(SIZES, groups)
    assert all(tree.home(group) is not None for group in groups)
    assert tree.is_sound
    for place, (clique, parent) in enumerate(zip(tree.cliques, tree.parents, strict=True)):
        earlier = {column for other in tree.cliques[:place] for column in other}
        above = set(tree.cliques[parent]) if parent >= 0 else set()
        assert set(clique) & earlier <= above
        assert set(tree.separators[place]) == set(clique) & above


@given(groups=GROUPS, extra=st.sets(st.integers(0, 5), min_size=2, max_size=3))
@settings(max_examples=200, deadline=None)
def test_the_predicted_size_is_that_of_the_tree(groups: list[tuple[int, ...]], extra: set[int]) -> None:
    predicted = TreeSizes(SIZES).total(neighbor_masks(len(SIZES), groups), mask_of(extra))
    assert predicted == junction_tree(SIZES, [*groups, tuple(sorted(extra))]).cells


def test_no_clique_lies_inside_another() -> None:
    tree = junction_tree((2,) * 5, [(0, 1), (1, 2), (0, 1, 2), (3,), (3, 4)])
    for first, second in combinations(tree.cliques, 2):
        assert not set(first) <= set(second)
        assert not set(second) <= set(first)


def test_a_chain_stays_a_chain() -> None:
    tree = junction_tree((2, 3, 4), [(0, 1), (1, 2)])
    assert sorted(tree.cliques) == [(0, 1), (1, 2)]
    assert tree.cells == 6 + 12


def test_a_cycle_is_filled_in_as_cheaply_as_it_can_be() -> None:
    tree = junction_tree((2, 10, 2, 10), [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert sorted(tree.cliques) == [(0, 1, 2), (0, 2, 3)]


def test_the_smallest_home_is_taken() -> None:
    tree = junction_tree((2, 3, 50), [(0, 1), (1, 2)])
    assert tree.shape(tree.home([1]) or 0) == (2, 3)
    assert tree.home([0, 2]) is None


def test_a_tree_that_was_put_together_wrongly_is_seen() -> None:
    broken = JunctionTree((2, 2, 2), ((0, 1), (1, 2), (0, 2)), (-1, 0, 1))
    assert not broken.is_sound
    assert math.prod(broken.shape(0)) == 4


def test_more_columns_than_an_array_has_axes_are_too_many_also_with_one_value_each() -> None:
    sizes = TreeSizes((1,) * 70)
    assert sizes.cells(mask_of(range(40))) == 1
    assert sizes.cells(mask_of(range(41))) > 10**9
