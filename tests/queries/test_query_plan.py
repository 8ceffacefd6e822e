"""Plans: shares add up to the price exactly, the better noise is taken, and groups pass a threshold rarely."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from cloister import Budget, open_ledger
from cloister.accounting.accountants import PureAccountant, ZeroConcentratedAccountant
from cloister.accounting.accountants.base import tally
from cloister.accounting.events import ApproxEvent, GaussianEvent, SequenceEvent, ZeroConcentratedEvent
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP, ZeroConcentratedDP
from cloister.errors import ParameterError, UnsafeQueryError
from cloister.queries._contribution import Contribution
from cloister.queries._query_plan import QueryPlan, plan
from cloister.queries._uncertainty import GaussianNoise, LaplaceNoise
from cloister.queries.payment import check_price
from tests.queries.neighbors import fast_table
from tests.queries.test_sensitivity import PERSON, asking, row, table_of

TABLE = fast_table(table_of(row(who="ann", g="a", x=1)))
ALL = ("rows", "units", "present", "total", "mean of reals", "variance", "different texts", "median", "maximum")
CONTRIBUTIONS = {
    "rows": Contribution(),
    "replaced rows": Contribution(adjacency=Adjacency.REPLACE),
    "persons": PERSON,
    "truncated persons": Contribution(adjacency=Adjacency.USER, unit="who", limit=3, bounding="truncate"),
}


def planned(kinds: tuple[str, ...], contribution: Contribution, noise: str = "auto", **price: Any) -> QueryPlan:
    options: dict[str, Any] = {"by": price.pop("by", ()), "values": price.pop("values", ["a", "b"])}
    build = asking(*kinds, person=contribution.is_person, **options)
    return plan(build(TABLE), contribution, check_price(**price), noise=noise)


kinds_strategy = st.lists(st.sampled_from(ALL), min_size=1, max_size=6, unique=True).map(tuple)
amounts = st.fractions(Fraction(1, 1000), 20, max_denominator=10**6)


@settings(max_examples=40)
@given(kinds=kinds_strategy, who=st.sampled_from(sorted(CONTRIBUTIONS)), epsilon=amounts)
def test_the_shares_of_laplace_noise_add_up_to_epsilon_exactly(kinds: Any, who: str, epsilon: Fraction) -> None:
    made = planned(kinds, CONTRIBUTIONS[who], epsilon=epsilon, by=("g",))
    spent = [noise.sensitivity / noise.scale for noise in made.noises.values() if isinstance(noise, LaplaceNoise)]
    spent += [chooser.epsilon for chooser in made.rankings]
    assert len(spent) == made.design.parts
    assert sum(spent) == epsilon == made.guarantee.epsilon  # type: ignore[union-attr]
    assert PureAccountant().delta(tally(made.event), epsilon=epsilon) == 0


@settings(max_examples=40)
@given(kinds=kinds_strategy, who=st.sampled_from(sorted(CONTRIBUTIONS)), rho=amounts)
def test_the_shares_of_rho_add_up(kinds: Any, who: str, rho: Fraction) -> None:
    made = planned(kinds, CONTRIBUTIONS[who], rho=rho)
    total = ZeroConcentratedAccountant().rho(tally(made.event)).rho
    assert total == rho if not made.rankings else rho * (1 - Fraction(1, 10**9)) <= total <= rho
    assert isinstance(made.guarantee, ZeroConcentratedDP)
    assert made.guarantee.rho == rho


@pytest.mark.parametrize("who", CONTRIBUTIONS)
@pytest.mark.parametrize(
    "price", [{"epsilon": 0.7}, {"epsilon": 0.7, "delta": 1e-6}, {"rho": 0.3}, {"rho": 0.3, "delta": 1e-6}]
)
@pytest.mark.parametrize("kinds", [("rows",), ("rows", "mean", "variance"), ("mean", "median"), ("median",)])
def test_a_ledger_accepts_the_event_of_a_plan_at_its_guarantee(who: str, price: Any, kinds: Any) -> None:
    contribution = CONTRIBUTIONS[who]
    made = planned(kinds, contribution, **price, by=("g",))
    ledger = open_ledger("memory:")
    budget = Budget(rho=1, delta=0.1) if "rho" in price else Budget(epsilon=1, delta=0.1)
    ledger.open_account("data", budget=budget, unit=contribution.unit, adjacency=contribution.adjacency)
    receipt = ledger.spend("data", guarantee=made.guarantee, event=made.event)
    assert receipt.cost == budget.cost_of(made.guarantee)


def test_a_joint_gaussian_release_is_as_private_as_one_of_its_parts_would_be() -> None:
    one = planned(("rows",), PERSON, "gaussian", epsilon=1, delta=1e-6)
    three = planned(("rows", "mean", "present"), PERSON, "gaussian", epsilon=1, delta=1e-6)
    assert isinstance(one.event, GaussianEvent)
    assert isinstance(three.event, SequenceEvent)
    multipliers = [event.squared_multiplier for event in three.event.events if isinstance(event, GaussianEvent)]
    assert sum(1 / item for item in multipliers) == 1 / one.event.squared_multiplier
    assert isinstance(three.guarantee, ApproxDP)


def test_the_noise_with_the_smaller_deviation_is_taken() -> None:
    assert planned(("rows",), Contribution(), epsilon=1).noise == "laplace"
    assert planned(("rows",), Contribution(), epsilon=1, delta=1e-6).noise == "laplace"
    many = ("rows", "mean", "variance", "mean of reals", "deviation", "present")
    assert planned(many, Contribution(), epsilon=1, delta=1e-3).noise == "gaussian"
    several = Contribution(adjacency=Adjacency.USER, unit="who", limit=100, per_group=1)
    assert planned(("rows",), several, epsilon=1, delta=1e-6, by=("g",)).noise == "gaussian"
    assert planned(("rows",), several, "laplace", epsilon=1, delta=1e-6, by=("g",)).noise == "laplace"
    assert planned(("median",), several, epsilon=1, delta=1e-6).noise == "laplace"
    assert planned(("rows",), Contribution(), epsilon=1e-12, delta=1e-6).noise == "laplace"


@pytest.mark.parametrize("epsilon", ["0.1", 1, 5])
def test_automatic_noise_is_never_worse_than_either_kind(epsilon: object) -> None:
    for kinds in (("rows",), ("rows", "mean"), ("rows", "mean", "variance", "mean of reals")):
        made = {
            noise: planned(kinds, PERSON, noise, epsilon=epsilon, delta=1e-6, by=("g",))
            for noise in ("auto", "laplace", "gaussian")
        }
        widths = {
            noise: [item.law(Fraction(1)).deviation for item in found.noises.values()] for noise, found in made.items()
        }
        assert widths["auto"] in (widths["laplace"], widths["gaussian"])
        assert sum(widths["auto"]) <= max(sum(widths["laplace"]), sum(widths["gaussian"]))


def test_noise_that_cannot_be_is_refused_before_anything_is_paid() -> None:
    with pytest.raises(ParameterError, match="delta=1e-6"):
        planned(("rows",), Contribution(), "gaussian", epsilon=1)
    with pytest.raises(ParameterError, match='noise="gaussian"'):
        planned(("rows",), Contribution(), "laplace", rho=1)
    with pytest.raises(ParameterError, match='noise="laplace"'):
        planned(("rows",), Contribution(), "gaussian", epsilon=1e-16, delta=1e-6)
    with pytest.raises(ParameterError, match="laplace"):
        planned(("rows",), Contribution(), "uniform", epsilon=1)
    with pytest.raises(ParameterError, match="epsilon=0.1, or epsilon=0.1 with delta"):
        check_price()
    with pytest.raises(ParameterError, match="one of them"):
        check_price(epsilon=1, rho=1)


# Groups that are chosen privately ------------------------------------------------------------------------------------


def laplace_tail(noise: LaplaceNoise, above: int) -> Fraction:
    """Return an upper bound of Pr[noise >= above] for discrete Laplace noise: a**above / (1 + a), a = exp(-1/scale)."""
    exponent = Fraction(above) / noise.scale
    return Fraction(math.exp(-float(exponent)) * (1 + 1e-12)) / (1 + Fraction(math.exp(-1 / float(noise.scale))))


def gaussian_tail(noise: GaussianNoise, above: int) -> float:
    """Return Pr[noise >= above] for discrete Gaussian noise by summation, relative to the whole."""
    squared = float(noise.squared_sigma)
    end = above + math.ceil(40 * math.sqrt(squared))
    step = 1 if squared < 10**8 else max(1, math.isqrt(int(squared)) // 2000)
    # With steps coarser than 1 each term stands for the ones after it, which are smaller: an upper bound.
    tail = sum(step * math.exp(-(k**2) / (2 * squared)) for k in range(above, end, step))
    return tail / math.sqrt(2 * math.pi * squared)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("groups", [None, 1, 7])
@pytest.mark.parametrize("person", [True, False])
def test_a_group_of_one_unit_passes_the_threshold_rarely(delta: float, groups: int | None, person: bool) -> None:
    contribution = (
        Contribution(adjacency=Adjacency.USER, unit="who", limit=3, groups=groups) if person else Contribution()
    )
    name, number = ("units", groups or 3) if person else ("rows", 1)
    for price, noise in (({"epsilon": 0.5}, "laplace"), ({"epsilon": 0.5}, "gaussian"), ({"rho": 0.1}, "auto")):
        made = planned(("mean",), contribution, noise, **price, delta=delta, by=("g",), values=None)
        assert made.threshold is not None
        above = made.threshold - made.design.reach.scale
        added = made.noises[name]
        share = delta / 2 if noise == "gaussian" else delta
        tail = laplace_tail(added, above) if isinstance(added, LaplaceNoise) else gaussian_tail(added, above)
        assert number * float(tail) <= share
        if isinstance(added, LaplaceNoise):  # and no higher than needed: a fifth lower it would pass too often
            assert number * float(laplace_tail(added, above * 8 // 10)) > share
        expected = ApproxEvent(epsilon=Fraction(1, 2), delta=made.price.delta)
        rho = ZeroConcentratedEvent(rho=Fraction(1, 10), delta=made.price.delta)
        assert made.event == (expected if "epsilon" in price else rho)


def test_groups_are_not_chosen_without_delta_or_for_ranks_or_under_replace() -> None:
    with pytest.raises(ParameterError, match="delta=1e-6") as refused:
        planned(("rows",), Contribution(), epsilon=1, by=("g",), values=None)
    assert "categories" in refused.value.fix
    for kind in ("median", "maximum", "different texts"):
        with pytest.raises(UnsafeQueryError, match="state the groups"):
            planned((kind,), Contribution(), epsilon=1, delta=1e-6, by=("g",), values=None)
    with pytest.raises(UnsafeQueryError, match="add_remove"):
        planned(("rows",), CONTRIBUTIONS["replaced rows"], epsilon=1, delta=1e-6, by=("g",), values=None)


def test_a_plan_says_what_it_assumes() -> None:
    made = planned(("mean",), PERSON, epsilon=1, by=("g",))
    assert isinstance(made.guarantee, PureDP)
    text = made.guarantee.explain()
    assert "each who counts for at most 2 rows (rows beyond that are scaled down)" in text
    assert "x lies in 0 to 10 (clamped)" in text
    assert "the groups of g are public" in text
    capped = Contribution(adjacency=Adjacency.USER, unit="who", limit=5, per_group=2)
    assert "at most 2 of them in one group" in planned(("rows",), capped, epsilon=1).guarantee.explain()


def test_prices_are_written_and_read() -> None:
    for price in (check_price(epsilon="1/3", delta=1e-6), check_price(rho=2)):
        assert Budget(**price.amounts()) == price
        assert check_price(epsilon=price.epsilon, rho=price.rho, delta=price.delta) == price
    assert check_price(epsilon="1/3", delta="0.5").amounts() == {"epsilon": "1/3", "delta": "1/2"}
    assert check_price(rho=2).amounts() == {"rho": "2", "delta": "0"}


def test_limits_that_make_no_sense_are_refused() -> None:
    for values in ({"limit": 0}, {"per_group": 0}, {"groups": 0}, {"bounding": "random"}):
        with pytest.raises(ParameterError):
            Contribution(adjacency=Adjacency.USER, **values)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="fewer rows"):
        Contribution(adjacency=Adjacency.USER, limit=10**6 + 1)
    with pytest.raises(ParameterError, match='bounding="weight"'):
        Contribution(adjacency=Adjacency.USER, limit=2, per_group=1, bounding="sample")


def test_weights_are_coarser_where_numbers_are_large() -> None:
    question = asking("total", person=True)(TABLE)
    fine = PERSON.reach(question)
    coarse = PERSON.reach(question, largest=2**50)
    assert fine.scale == 2**16
    assert coarse.scale < 2**16
    assert coarse.scale * coarse.rows * 2**50 <= 2**62
