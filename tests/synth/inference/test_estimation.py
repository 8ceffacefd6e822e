from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.random import SeededRandomSource
from cloister.synth.inference._estimation import Estimator, NoisyMarginal, Zeros, merge_repeats, total_of
from cloister.synth.inference._junction_tree import Beliefs, junction_tree
from cloister.synth.inference._marginal_model import MarginalModel, uniforms
from tests.synth.inference.exhaustive import Floats, joint_of, marginal_of, objective

SIZES = (2, 3, 4, 2)
GROUPS = st.lists(st.sets(st.integers(0, 3), min_size=1, max_size=3).map(sorted).map(tuple), min_size=1, max_size=5)


def spread(seed: int, shape: tuple[int, ...]) -> Floats:
    return 0.05 + uniforms(SeededRandomSource(seed), int(np.prod(shape))).reshape(shape)


@given(groups=GROUPS, seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_sum_product_is_the_sum_over_all_cells(groups: list[tuple[int, ...]], seed: int) -> None:
    tree = junction_tree(SIZES, groups)
    potentials = [np.log(spread(seed + place, tree.shape(place))) for place in range(len(tree.cliques))]
    whole = np.zeros(SIZES)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        whole = whole + potential.reshape([SIZES[column] if column in clique else 1 for column in range(4)])
    log_partition, cliques = Beliefs(tree).marginals([item.copy() for item in potentials])
    total = np.exp(whole).sum()
    assert log_partition == pytest.approx(np.log(total), abs=1e-9)
    for clique, table in zip(tree.cliques, cliques, strict=True):
        assert table == pytest.approx(marginal_of(np.exp(whole) / total, clique), abs=1e-9)


@given(groups=GROUPS, seed=st.integers(0, 10**6), wanted=st.sets(st.integers(0, 3), min_size=1))
@settings(max_examples=60, deadline=None)
def test_any_marginal_is_that_of_the_whole_distribution(
    groups: list[tuple[int, ...]], seed: int, wanted: set[int]
) -> None:
    tree = junction_tree(SIZES, groups)
    potentials = [np.log(spread(seed + place, tree.shape(place))) for place in range(len(tree.cliques))]
    model = MarginalModel(tree, tuple(Beliefs(tree).marginals(potentials)[1]), 100.0)
    assert model.marginal(wanted) == pytest.approx(marginal_of(joint_of(model), sorted(wanted)), abs=1e-9)


def test_a_marginal_across_cliques_takes_any_number_of_columns() -> None:
    columns = 120
    tree = junction_tree((2,) * columns, [(place, place + 1) for place in range(columns - 1)])
    steady = np.array([[0.45, 0.05], [0.05, 0.45]])  # a chain in which a column is mostly as the one before
    model = MarginalModel(tree, tuple(steady for _ in tree.cliques), 100.0)
    ahead = np.linalg.matrix_power(2 * steady, 60)
    assert model.marginal([58, 118]) == pytest.approx(ahead / 2, abs=1e-9)
    assert model.marginal([0, 58, 118]).sum(axis=0) == pytest.approx(ahead / 2, abs=1e-9)


@given(groups=GROUPS, seed=st.integers(0, 10**6))
@settings(max_examples=12, deadline=None)
def test_the_estimate_minimizes_the_objective(groups: list[tuple[int, ...]], seed: int) -> None:
    truth = spread(seed, SIZES) ** 3
    truth *= 1000 / truth.sum()
    seen = merge_repeats(
        [
            NoisyMarginal(
                group,
                marginal_of(truth, group) + 40 * (spread(seed + place, tuple(SIZES[c] for c in group)) - 0.5),
                10.0,
            )
            for place, group in enumerate(groups)
        ]
    )
    model = Estimator(iterations=2000, tolerance=1e-8, entropy=20.0).fit(SIZES, seen)
    joint = joint_of(model)
    for item in seen:
        apart = model.total * marginal_of(joint, item.columns) - item.values
        pulled = -20.0 * item.deviation**2 * model.weights[item.columns] / model.total
        assert apart == pytest.approx(pulled, abs=1e-3)
    least = objective(joint, seen, model.total, 20.0)
    for other in range(5):
        elsewhere = spread(seed + 100 + other, SIZES)
        for step in (1e-3, 0.1, 1.0):
            mixed = (1 - step) * joint + step * elsewhere / elsewhere.sum()
            assert objective(mixed, seen, model.total, 20.0) > least - 1e-6


def test_a_tree_of_exact_marginals_is_reproduced() -> None:
    truth = spread(3, SIZES) * 1000
    groups = [(0, 1), (1, 2), (2, 3)]
    seen = [NoisyMarginal(group, marginal_of(truth, group), 0.01) for group in groups]
    model = Estimator(iterations=2000, tolerance=1e-9, entropy=1e-3).fit(SIZES, seen)
    for group in groups:
        assert model.marginal(group) * model.total == pytest.approx(marginal_of(truth, group), rel=1e-3)


def test_what_is_impossible_has_no_probability() -> None:
    possible = np.array([[True, False, True], [True, True, True]])
    seen = [NoisyMarginal((0, 1), np.array([[10.0, 7.0, 5.0], [1.0, 2.0, 3.0]]), 1.0)]
    model = Estimator().fit((2, 3), seen, zeros=[Zeros((0, 1), possible)])
    assert model.marginal((0, 1))[0, 1] == 0
    assert model.marginal((0, 1)).sum() == pytest.approx(1)
    assert model.marginal((0, 1))[0, 0] > model.marginal((0, 1))[0, 2]


def test_what_is_impossible_holds_between_columns_that_were_not_measured_together() -> None:
    possible = ~np.eye(3, dtype=bool)
    seen = [
        NoisyMarginal((0,), np.array([10.0, 20.0, 30.0]), 1.0),
        NoisyMarginal((1,), np.array([20.0, 20.0, 20.0]), 1.0),
    ]
    model = Estimator(iterations=2000).fit((3, 3), seen, zeros=[Zeros((0, 1), possible)])
    assert np.diag(model.marginal((0, 1))) == pytest.approx(0)
    assert model.marginal((0,)) == pytest.approx(np.array([1, 2, 3]) / 6, abs=0.01)


def test_repeated_measurements_are_averaged_by_their_exactness() -> None:
    (once,) = merge_repeats([NoisyMarginal((0,), np.array([0.0]), 1.0), NoisyMarginal((0,), np.array([5.0]), 2.0)])
    assert once.values == pytest.approx([1.0])
    assert once.deviation == pytest.approx(np.sqrt(1 / 1.25))


def test_the_number_of_rows_comes_from_the_noisy_sums() -> None:
    seen = [NoisyMarginal((0,), np.array([50.0, 50.0]), 1.0), NoisyMarginal((1,), np.array([40.0] * 4), 1.0)]
    assert total_of(seen) == pytest.approx((100 / 2 + 160 / 4) / (1 / 2 + 1 / 4))
    assert total_of([NoisyMarginal((0,), np.array([-5.0, 2.0]), 1.0)]) == 1.0


def test_a_warm_start_ends_where_a_cold_one_does() -> None:
    seen = [NoisyMarginal((0, 1), spread(5, (2, 3)) * 100, 2.0), NoisyMarginal((1, 2), spread(6, (3, 4)) * 100, 2.0)]
    exact = Estimator(iterations=2000, tolerance=1e-9)
    first = exact.fit(SIZES, seen[:1])
    warm, cold = exact.fit(SIZES, seen, start=first), exact.fit(SIZES, seen)
    assert joint_of(warm) == pytest.approx(joint_of(cold), abs=1e-6)
