from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cloister as cl
from cloister.core.guarantees import Adjacency, ApproxDP, NoGuarantee, PureDP
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.synth.evaluation.membership import Shadows, ceiling, judge_shadows, likelihood_ratios
from tests.support.thoroughness import audited
from tests.synth.evaluation.small_tables import Memorizer, people


def _seen(inside: list[list[int]], seen: list[list[float]]) -> Shadows:
    return Shadows(np.array(inside, dtype=bool), np.array(seen)[:, :, None], PureDP(epsilon=Fraction(1)))


def test_ceiling_by_hand() -> None:
    assert ceiling(PureDP(epsilon=Fraction(2)), 0.01) == pytest.approx(math.exp(2) * 0.01)
    assert ceiling(ApproxDP(epsilon=Fraction(1), delta=Fraction(1, 10)), 0.01) == pytest.approx(math.e / 100 + 0.1)
    assert ceiling(PureDP(epsilon=Fraction(1000)), 0.01) == 1
    assert ceiling(NoGuarantee(reason="nothing"), 0.01) is None
    assert ceiling(PureDP(epsilon=Fraction(1), adjacency=Adjacency.USER, unit="person"), 0.01) is None


def test_likelihood_ratios_by_hand() -> None:
    shadows = _seen([[1], [1], [0], [0], [1]], [[2.0], [4.0], [0.0], [2.0], [9.0]])
    # Of the last fit, by the others: means 3 and 1, squared deviations 1 + 1 + 1 + 1 over 4 - 2 fits: variance 2.
    assert likelihood_ratios(shadows)[4, 0] == pytest.approx(((9 - 1) ** 2 - (9 - 3) ** 2) / (2 * 2))


def test_a_target_that_was_always_in_is_not_judged() -> None:
    assert likelihood_ratios(_seen([[1], [1], [1]], [[2.0], [4.0], [0.0]])).tolist() == [[0], [0], [0]]


def test_rates_by_hand() -> None:
    inside = [[1, 0]] * 200 + [[0, 1]] * 200
    sure = judge_shadows(_seen(inside, [[9.0, 0.0]] * 200 + [[0.0, 9.0]] * 200))
    assert (sure.area, sure.true_positive_rate, sure.trials) == (1, 1, (400, 400))
    assert sure.refutes
    few = judge_shadows(_seen(inside[198:202], [[9.0, 0.0]] * 2 + [[0.0, 9.0]] * 2))
    assert (few.true_positive_rate, few.refutes) == (1, False)
    lost = judge_shadows(_seen(inside, [[1.0, 1.0]] * 400))
    assert (lost.area, lost.true_positive_rate, lost.refutes) == (0.5, 0, False)
    assert lost.curve[0] == (0, 0)
    assert lost.curve[-1] == (1, 1)


def test_who_repeats_rows_is_found_out() -> None:
    found = cl.synth.membership(Memorizer(), people(150, seed=1), records=40, fits=6)
    assert found.area > 0.8
    assert found.true_positive_rate > 0.4
    assert found.ceiling is None
    assert not found.refutes
    assert "nothing is promised" in str(found)
    assert not found.guarantee.holds


@pytest.mark.parametrize("adjacency", audited(["add_remove", "replace"], but=["replace"]))
def test_a_private_synthesizer_stays_below_its_ceiling(adjacency: str) -> None:
    synthesizer = cl.synth.IndependentMarginals(epsilon=1, bins=4, adjacency=adjacency)
    told: list[float] = []
    found = cl.synth.membership(
        synthesizer, people(200, seed=1), records=40, fits=4, progress=lambda share, _: told.append(share)
    )
    assert found.ceiling == pytest.approx(math.e / 100)
    assert not found.refutes
    assert found.trials[0] + found.trials[1] == 160
    assert told[-1] == 1
    assert "guarantee_" not in vars(synthesizer)


def test_shadow_fits_cost_nothing() -> None:
    ledger = cl.open_ledger("memory:")
    ledger.open_account("people", budget=cl.Budget(epsilon=1))
    synthesizer = cl.synth.IndependentMarginals(epsilon=1, bins=4, ledger=ledger, dataset="people")
    cl.synth.membership(synthesizer, people(100, seed=1), records=10, fits=4)
    assert ledger.spent("people").epsilon == 0


def test_membership_prints_and_draws_itself() -> None:
    found = judge_shadows(_seen([[1, 0]] * 2 + [[0, 1]] * 2, [[9.0, 0.0]] * 2 + [[0.0, 9.0]] * 2))
    assert str(found) == (
        "membership attack: area 1.000 (0.5 is guessing), finds 100% at 1% false positives (the promise allows 2.72%)"
    )
    values = found.to_dict()
    assert values["schema"] == "cloister.synthetic_membership/1"
    assert values["ceiling"] == pytest.approx(math.e / 100)
    assert dict(found.summary())["effort"].startswith("2 rows")
    assert "ceiling" in found.plot().specification


def test_what_cannot_be_attacked_is_refused() -> None:
    table = people(100, seed=1)
    with pytest.raises(ParameterTypeError, match="SpanningTree"):
        cl.synth.membership("tree", table)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at most 50 records"):
        cl.synth.membership(Memorizer(), table, records=51)
    with pytest.raises(ParameterError, match='unit="row"'):
        cl.synth.membership(cl.synth.IndependentMarginals(unit="job"), table)
    with pytest.raises(ParameterError, match="at least 4"):
        cl.synth.membership(Memorizer(), table, fits=3)
