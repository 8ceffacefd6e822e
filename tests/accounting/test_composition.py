from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cloister.accounting import advanced, group, parallel, sequential, to_replace
from cloister.core.guarantees import (
    SEEDED_RANDOMNESS,
    ApproxDP,
    Guarantee,
    KAnonymity,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    guarantee_from_dict,
)
from cloister.errors import AccountingError, ParameterError

epsilons = st.fractions(min_value=0, max_value=5)
small = st.fractions(min_value=0, max_value=Fraction(1, 100))
pure = st.builds(PureDP, epsilon=epsilons)
approx = st.builds(ApproxDP, epsilon=epsilons, delta=small)
concentrated = st.builds(ZeroConcentratedDP, rho=epsilons, delta=small)
composable = st.one_of(pure, approx, concentrated)


@given(
    st.one_of(composable, st.builds(RenyiDP, alpha=st.just(2), epsilon=epsilons), st.builds(KAnonymity, k=st.just(3)))
)
def test_guarantees_survive_json(guarantee: Guarantee) -> None:
    assert guarantee_from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


def test_sequential_sums() -> None:
    assert sequential([PureDP(epsilon=0.1), PureDP(epsilon=0.2)]) == PureDP(epsilon=0.3)
    mixed = sequential([PureDP(epsilon=0.1), ApproxDP(epsilon=0.2, delta=1e-6), ApproxDP(epsilon=0.1, delta=1e-6)])
    assert mixed == ApproxDP(epsilon=0.4, delta=2e-6)
    in_rho = sequential([PureDP(epsilon=1), ZeroConcentratedDP(rho=0.25, delta=0.01), ApproxDP(epsilon=1, delta=0.01)])
    assert in_rho == ZeroConcentratedDP(rho=1.25, delta=0.02)


@given(
    st.lists(composable, min_size=1, max_size=5).flatmap(
        lambda items: st.tuples(st.just(items), st.permutations(items))
    )
)
def test_order_does_not_matter(lists: tuple[list[PureDP], list[PureDP]]) -> None:
    assert sequential(lists[0]) == sequential(lists[1])
    assert parallel(lists[0]) == parallel(lists[1])


def test_cdp_23_parallel_composition() -> None:
    parts = [PureDP(epsilon=0.1), PureDP(epsilon=0.3), PureDP(epsilon=0.2)]
    assert parallel(parts) == PureDP(epsilon=0.3)
    assert parallel([parts[0]] * 2, adjacency="replace") == PureDP(epsilon=0.2, adjacency="replace")
    assert parallel(parts, adjacency="replace") == PureDP(epsilon=0.6, adjacency="replace")
    rough = [ApproxDP(epsilon=0.1, delta=1e-6), ApproxDP(epsilon=0.3, delta=1e-7)]
    assert parallel(rough) == ApproxDP(epsilon=0.3, delta=1e-6)
    replaced = parallel(rough, adjacency="replace")
    assert isinstance(replaced, ApproxDP)
    assert replaced.epsilon == Fraction(6, 10)
    assert replaced.delta == to_replace(rough[0]).delta > Fraction(2, 10**6)


@given(pure | approx.filter(lambda part: part.epsilon < 2), st.integers(1, 3))
def test_a_record_replaced_inside_one_part_costs_what_to_replace_says(part: PureDP, count: int) -> None:
    assert parallel([part] * count, adjacency="replace") == to_replace(part)


def test_parallel_composition_under_replace_of_zero_concentrated_parts() -> None:
    parts = [ZeroConcentratedDP(rho=0.1), PureDP(epsilon=1)]
    assert parallel(parts, adjacency="replace") == ZeroConcentratedDP(rho=2, adjacency="replace")
    with pytest.raises(AccountingError, match="delta = 0"):
        parallel([ZeroConcentratedDP(rho=0.1, delta=0.01)], adjacency="replace")


def test_parallel_composition_under_replace_of_many_deltas_counts_the_two_largest() -> None:
    parts = [ApproxDP(epsilon=0, delta=0.1), ApproxDP(epsilon=0, delta=0.05)]
    assert parallel(parts, adjacency="replace") == ApproxDP(epsilon=0, delta=0.2, adjacency="replace")


def test_parallel_refuses_other_relations() -> None:
    with pytest.raises(AccountingError, match="state each part under add_remove"):
        parallel([PureDP(epsilon=1, adjacency="replace")], adjacency="replace")
    with pytest.raises(AccountingError, match=r"use sequential\(parts\)"):
        parallel([PureDP(epsilon=1)], adjacency="user")
    with pytest.raises(ParameterError, match="add_remove"):
        parallel([PureDP(epsilon=1)], adjacency="other")


@pytest.mark.parametrize(
    ("parts", "fix"),
    [
        ([PureDP(epsilon=1), PureDP(epsilon=1, adjacency="replace")], "to_replace"),
        ([PureDP(epsilon=1), PureDP(epsilon=1, unit="patient")], "the same unit"),
        ([PureDP(epsilon=1), RenyiDP(alpha=2, epsilon=1)], "give PureDP, ApproxDP or ZeroConcentratedDP"),
        ([KAnonymity(k=2)], "give PureDP"),
        ([3], "give PureDP"),
        ([ApproxDP(epsilon=1, delta=0.5)] * 2, "smaller delta"),
    ],
)
def test_what_does_not_compose(parts: list[PureDP], fix: str) -> None:
    with pytest.raises(AccountingError, match=fix):
        sequential(parts)


def test_nothing_does_not_compose() -> None:
    with pytest.raises(ParameterError, match="at least one"):
        sequential([])


def test_caveats_and_assumptions_are_kept() -> None:
    parts = [
        PureDP(epsilon=1, assumptions=("ages are at most 110",)),
        PureDP(epsilon=1, assumptions=("ages are at most 110", "n is public"), caveats=(SEEDED_RANDOMNESS,)),
    ]
    whole = sequential(parts)
    assert whole.assumptions == ("ages are at most 110", "n is public")
    assert not whole.holds
    assert not advanced(parts[1], count=3, slack=1e-6).holds
    assert not to_replace(parts[1]).holds


@given(epsilons, small.filter(lambda value: value < Fraction(1, 10**6)), st.integers(1, 3))
def test_group_privacy(epsilon: Fraction, delta: Fraction, size: int) -> None:
    whole = group(ApproxDP(epsilon=epsilon, delta=delta), size=size)
    factor = math.fsum(math.exp(float(epsilon) * i) for i in range(size))
    assert isinstance(whole, ApproxDP)
    assert whole.epsilon == size * epsilon
    assert float(whole.delta) == pytest.approx(float(delta) * factor, rel=1e-9)
    assert whole.delta >= size * delta


def test_group_privacy_of_tiny_epsilon_and_of_other_kinds() -> None:
    assert group(PureDP(epsilon=0.1), size=3) == PureDP(epsilon=0.3, unit="group of 3 rows")
    assert group(PureDP(epsilon=0.1), size=1) == PureDP(epsilon=0.1)
    assert group(ZeroConcentratedDP(rho=0.1), size=3).rho == Fraction(9, 10)
    tiny = group(ApproxDP(epsilon=Fraction(1, 10**60), delta=1e-6), size=2)
    assert tiny.delta >= Fraction(2, 10**6)
    with pytest.raises(AccountingError, match="delta = 0"):
        group(ZeroConcentratedDP(rho=0.1, delta=0.1), size=2)


def test_advanced_composition_of_approximate_guarantees() -> None:
    whole = advanced(ApproxDP(epsilon=0.1, delta=1e-8), count=100, slack=1e-6)
    assert whole.delta == Fraction(2, 10**6)
    assert float(whole.epsilon) == pytest.approx(6.30823, abs=1e-5)
    with pytest.raises(AccountingError, match="give PureDP"):
        advanced(ZeroConcentratedDP(rho=1), count=2, slack=1e-6)  # type: ignore[arg-type]


def test_add_remove_becomes_replace() -> None:
    assert to_replace(PureDP(epsilon=0.5)) == PureDP(epsilon=1, adjacency="replace")
    rough = to_replace(ApproxDP(epsilon=0.5, delta=1e-6))
    assert float(rough.delta) == pytest.approx((1 + math.exp(0.5)) * 1e-6, rel=1e-12)
    assert to_replace(ZeroConcentratedDP(rho=0.1)) == ZeroConcentratedDP(rho=0.4, adjacency="replace")
    already = PureDP(epsilon=1, adjacency="replace")
    assert to_replace(already) is already
    with pytest.raises(AccountingError, match="sensitivity under replace"):
        to_replace(PureDP(epsilon=1, adjacency="node"))
