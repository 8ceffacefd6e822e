from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.accounting.events import ApproxEvent, GaussianEvent
from cloister.core.guarantees import guarantee_from_dict
from cloister.errors import (
    AccountMismatchError,
    BudgetExceededError,
    CloisterError,
    PrivacyParameterWarning,
    SeededRandomnessWarning,
)
from cloister.protocols.pca import protocol
from cloister.protocols.pca._plans import Released
from tests.protocols.pca import runs

PEOPLE = runs.people(3000)
OWNERS = dict(zip(("east", "north", "west"), np.array_split(PEOPLE, [500, 1700]), strict=True))
SIZES = [500, 1200, 1300]
REPLACE = {"adjacency": "replace", "public_rows": SIZES}


def pca(owners: Any = OWNERS, **options: Any) -> Any:
    short = {} if "key_bits" in options else {"insecure_key_bits_for_tests": 1024}
    return cl.protocols.distributed_dp_pca(owners, **({"epsilon": 2, "data_norm": 1} | short | options))


def central() -> tuple[Any, Any]:
    centered = PEOPLE - PEOPLE.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered)
    return values[::-1], vectors.T[::-1]


@pytest.mark.parametrize("options", [{}, REPLACE], ids=["add_remove", "replace"])
def test_without_noise_it_is_the_pca_of_all_rows(options: dict[str, Any]) -> None:
    result = pca(epsilon=None, unsafe_without_noise=True, **options)
    values, vectors = central()
    for kept in (1, 2, 3):
        assert runs.angle(vectors[:kept], result.components[:kept]) < 1e-6
    assert result.explained_variance * 3000 == pytest.approx(values, rel=1e-5)
    assert not result.guarantee.holds
    assert "exact" in result.guarantee.explain()
    assert result.event is None
    assert result.noise_deviation == 0


@pytest.mark.parametrize("options", [{}, REPLACE], ids=["add_remove", "replace"])
def test_with_noise_it_is_near(options: dict[str, Any]) -> None:
    result = pca(n_components=2, epsilon=50, **options)
    assert result.components.shape == (2, 4)
    assert result.components @ result.components.T == pytest.approx(np.eye(2), abs=1e-9)
    assert runs.angle(central()[1][:2], result.components) < 0.3
    assert result.n_rows == pytest.approx(3000, abs=30)
    centered = PEOPLE - PEOPLE.mean(axis=0)
    gap = np.abs(result.scatter - centered.T @ centered).max()
    assert 0 < gap < 12 * result.noise_deviation


def test_a_key_of_real_length_makes_a_promise_that_holds() -> None:
    result = pca(key_bits=2048)
    assert result.guarantee.holds
    assert isinstance(result.guarantee, cl.ApproxDP)
    assert (result.guarantee.epsilon, result.guarantee.delta) == (2, Fraction(1, 10**6))
    assert "proxy and the data user do not work together" in result.guarantee.explain()
    assert "at most 1 of the owners tell" in result.guarantee.explain()
    assert "2048 bits" in result.guarantee.explain()
    assert isinstance(result.event, GaussianEvent)


def test_a_short_key_and_a_seed_break_the_promise() -> None:
    with pytest.warns(SeededRandomnessWarning):
        result = pca(random_state=1)
    assert not result.guarantee.holds
    assert {caveat.code for caveat in result.guarantee.caveats} == {"short_key", "seeded_randomness"}


def test_the_same_seed_gives_the_same_noise() -> None:
    with pytest.warns(SeededRandomnessWarning):
        first, second = pca(random_state=1), pca(random_state=1)
    assert (first.scatter == second.scatter).all()
    assert (pca().scatter != first.scatter).any()


def test_under_replace_the_number_of_rows_is_an_assumption() -> None:
    result = pca(max_colluding_owners=0, **REPLACE)
    assert result.guarantee.adjacency is cl.Adjacency.REPLACE
    assert "how many rows each owner has is public" in result.guarantee.assumptions
    assert "no owner tells the data user" in result.guarantee.explain()
    assert result.mean is None
    assert result.n_rows == 3000
    assert result.event == ApproxEvent(epsilon=2, delta=Fraction(1, 10**6))


@pytest.mark.parametrize(
    ("public_rows", "delta"), [(None, 1e-6), (3000, 1e-6), (10**7, 1e-8), ([10**7, 0, 0], 1e-8), ([0, 0, 0], 1e-6)]
)
def test_delta_is_far_below_one_over_the_public_number_of_rows(public_rows: Any, delta: float) -> None:
    assert pca(epsilon=30, public_rows=public_rows).guarantee.delta == Fraction(str(delta))


def test_a_delta_that_allows_publishing_a_row_warns() -> None:
    with pytest.warns(PrivacyParameterWarning, match="publishing a random row"):
        pca(epsilon=30, delta=0.001, public_rows=3000)


def test_more_colluders_and_less_epsilon_mean_more_noise() -> None:
    deviations = [pca(epsilon=40, max_colluding_owners=count).noise_deviation for count in (0, 1, 2)]
    assert deviations == sorted(deviations)
    assert deviations[2] / deviations[0] == pytest.approx(3**0.5, rel=1e-3)
    assert pca(epsilon=4).noise_deviation > deviations[1]


def test_too_much_noise_is_said() -> None:
    noisy = Released(scatter=np.diag([3.0, 4.0]), count=10.0, mean=None, deviation=2.0)
    with pytest.warns(PrivacyParameterWarning, match="too few rows"):
        components, variances = protocol._components(noisy, 1)
    assert components.tolist() == [[0, 1]]
    assert variances.tolist() == [0.4]


def test_an_owner_may_have_no_rows() -> None:
    result = pca(OWNERS | {"south": np.zeros((0, 4))}, epsilon=50)
    assert result.n_rows == pytest.approx(3000, abs=30)


# Paying --------------------------------------------------------------------------------------------------------------


def book(**options: Any) -> Any:
    ledger = cl.open_ledger("memory:")
    ledger.open_account("patients", budget=cl.Budget(epsilon=3, delta=1e-5), **options)
    return ledger


@pytest.mark.parametrize("options", [{}, REPLACE], ids=["add_remove", "replace"])
def test_a_run_is_charged(options: dict[str, Any]) -> None:
    ledger = book(adjacency=options.get("adjacency", "add_remove"))
    pca(ledger=ledger, dataset="patients", analyst="kim", **options)
    assert ledger.spent("patients") == cl.Budget(epsilon=2, delta=1e-6)
    assert ledger.entries("patients")[-1].purpose == "distributed_dp_pca"


def test_rows_are_not_used_before_they_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (protocol.plan_moments, protocol.plan_blinded_scatter):
        monkeypatch.setattr(f"{kind.__module__}.second_moments", lambda *_: pytest.fail("looked"))
    ledger = book()
    with pytest.raises(BudgetExceededError):
        pca(epsilon=5, ledger=ledger, dataset="patients")
    with pytest.raises(AccountMismatchError):
        pca(ledger=ledger, dataset="patients", **REPLACE)
    assert ledger.spent("patients").amount == 0


def test_a_failure_after_paying_stays_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(protocol, "run", fail)
    ledger = book()
    with pytest.raises(RuntimeError):
        pca(ledger=ledger, dataset="patients")
    assert ledger.spent("patients").amount == 2


def test_a_run_that_gives_nothing_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "run", lambda *_, **__: None)
    with pytest.raises(CloisterError, match="bug in cloister"):
        pca()


# Results -------------------------------------------------------------------------------------------------------------


def test_a_result_says_what_it_is() -> None:
    result = pca(n_components=1, epsilon=50)
    assert str(result).startswith("1 of 4 components, epsilon = 50, delta = 1e-06 per row [promise broken]; ")
    assert "4 rounds, 8 messages" in str(result)
    told = json.loads(json.dumps(result.to_dict()))
    assert told["schema"] == "cloister.distributed_components/1"
    assert guarantee_from_dict(told["guarantee"]) == result.guarantee
    assert told["transcript"]["learned"]["data user"] == [
        "the number of rows, the sums of columns and the sums of products of columns, with noise"
    ]
    assert len(told["components"][0]) == 4
    assert "svg" in result.plot().to_svg()


def test_a_result_of_a_public_number_of_rows_is_told_as_well() -> None:
    told = pca(epsilon=None, unsafe_without_noise=True, **REPLACE).to_dict()
    assert told["mean"] is None
    assert told["event"] is None
    assert told["transcript"]["learned"]["data user"] == ["the scatter matrix around the mean, exactly"]


def test_rows_are_projected() -> None:
    result = pca(n_components=2, epsilon=50)
    assert result.transform(PEOPLE[:5]) == pytest.approx((PEOPLE[:5] - result.mean) @ result.components.T)
    other = pca(n_components=2, epsilon=50, **REPLACE)
    assert other.transform(PEOPLE[:5]) == pytest.approx(PEOPLE[:5] @ other.components.T)
    with pytest.raises(CloisterError, match="give rows of 4 numbers"):
        result.transform([[1, 2]])


@pytest.mark.parametrize(
    ("owners", "options", "fix"),
    [
        ("rows", {}, "write {"),
        (7, {}, "write {"),
        ([PEOPLE], {}, "cl.learn.PrivatePCA"),
        ({"proxy": PEOPLE, "east": PEOPLE}, {}, "a name of its own"),
        ({"": PEOPLE, "east": PEOPLE}, {}, "a name of its own"),
        ({1: PEOPLE, "east": PEOPLE}, {}, "a name of its own"),
        ([PEOPLE, PEOPLE[:, :2]], {}, "same columns"),
        ([PEOPLE, [["x"] * 4]], {}, "array of numbers"),
        (OWNERS, {"n_components": 5}, "at most 4"),
        (OWNERS, {"n_components": 0}, "n_components=1"),
        (OWNERS, {"adjacency": "edge"}, "add_remove, replace"),
        (OWNERS, {"adjacency": "replace"}, "public_rows=\\[120, 80\\]"),
        (OWNERS, {"adjacency": "replace", "public_rows": 3000}, "public_rows=\\[120, 80\\]"),
        (OWNERS, {"adjacency": "replace", "public_rows": [500, 2500]}, "public_rows=\\[120, 80\\]"),
        (OWNERS, {"adjacency": "replace", "public_rows": [0, 1, 0]}, "public_rows=\\[120, 80\\]"),
        (OWNERS, {"adjacency": "replace", "public_rows": "many"}, "public_rows=\\[120, 80\\]"),
        (OWNERS, {"adjacency": "replace", "public_rows": [500, 1200, 1301]}, "as the owners have them"),
        (OWNERS, {"public_rows": 0}, "public_rows=1"),
        (OWNERS, {"public_rows": "many"}, "as an integer"),
        (OWNERS, {"public_rows": [1, 2]}, "public_rows=\\[120, 80\\]"),
        (OWNERS, {"max_colluding_owners": 3}, "at most 2"),
        (OWNERS, {"max_colluding_owners": -1}, "max_colluding_owners=1"),
        (OWNERS, {"epsilon": None}, "give epsilon=1"),
        (OWNERS, {"unsafe_without_noise": True}, "give epsilon=1"),
        (OWNERS, {"epsilon": 0}, "epsilon=0.5"),
        (OWNERS, {"delta": 0}, "delta=1e-6"),
        (OWNERS, {"data_norm": -1}, "positive data_norm"),
        (OWNERS, {"key_bits": 1024}, "at least 2048"),
        (OWNERS, {"dataset": "patients"}, "give ledger="),
        (OWNERS, {"epsilon": None, "unsafe_without_noise": True, "dataset": "patients"}, "leave the ledger out"),
        (OWNERS, {"epsilon": None, "unsafe_without_noise": True, "ledger": "memory:"}, "leave the ledger out"),
        (OWNERS, {"random_state": "dice"}, "leave random_state out"),
    ],
)
def test_bad_input_is_refused_with_a_fix(owners: Any, options: dict[str, Any], fix: str) -> None:
    with pytest.raises(CloisterError, match=f"Fix: .*{fix}"):
        pca(owners, **options)
