"""Runs with canaries: mechanisms, queries, estimators and synthesizers, with right and with wrong claims."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cloister as cl
from cloister import synth
from cloister.attacks import (
    audit_estimator_once,
    audit_mechanism_once,
    audit_queries_once,
    audit_synthesizer_once,
)
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.learn import PrivateCategoricalNB, PrivateLinearRegression
from cloister.mechanisms import DiscreteLaplace

pytestmark = pytest.mark.filterwarnings("ignore::cloister.errors.PrivacyParameterWarning")

SURE = 1 - 1e-9
NAMES = [f"v{place:03d}" for place in range(200)]
SCHEMA = cl.Schema.from_dict({"columns": {"v": {"kind": "nominal", "categories": NAMES}}})


def named(values: list[str]) -> Any:
    return cl.open_table(pa.table({"v": values}), schema=SCHEMA)


def test_a_mechanism_states_its_own_claim() -> None:
    found = audit_mechanism_once(DiscreteLaplace(sensitivity=1, epsilon="4.4"), confidence=SURE)
    assert found.epsilon == Fraction("4.4")
    assert not found.refuted
    assert found.epsilon_lower > 1


def test_a_mechanism_with_too_little_noise_is_refuted() -> None:
    assert audit_mechanism_once(DiscreteLaplace(sensitivity=1, epsilon=6), epsilon=1).refuted


def test_a_function_with_a_score_of_its_own() -> None:
    found = audit_mechanism_once(lambda vector: {"told": vector}, canaries=200, score=lambda output: output["told"])
    # The certain half of the guesses is always right; all of them are not, since the coins are not half heads.
    assert found.success > 0.9
    assert found.epsilon_lower > 2
    assert found.outcome == "no claim"


def test_an_output_that_is_no_vector_needs_a_score() -> None:
    with pytest.raises(ParameterError, match="Fix: give score="):
        audit_mechanism_once(lambda vector: "all well", canaries=10)


def test_a_private_histogram_is_not_refuted_and_shows_its_epsilon() -> None:
    found = audit_queries_once(epsilon=5, confidence=SURE)
    assert not found.refuted
    assert found.epsilon_lower > 1


def test_questions_that_cost_more_than_is_claimed_are_refuted() -> None:
    def ask(private: Any) -> Any:
        answer = private.histogram("canary", epsilon=6).to_arrow().to_pydict()
        return answer["count"]

    assert audit_queries_once(ask, epsilon=1).refuted


def test_an_estimator_shows_its_epsilon() -> None:
    model = PrivateCategoricalNB(epsilon=6, domain=[NAMES], classes=["no", "yes"])
    canaries = (np.array(NAMES)[:, None], np.array(["yes"] * len(NAMES)))
    found = audit_estimator_once(model, [["v000"], ["v001"]], ["no", "yes"], canaries=canaries, confidence=SURE)
    assert not found.refuted
    assert found.epsilon == 6
    assert found.canaries == len(NAMES)
    assert found.success > 0.6


def test_an_estimator_of_numbers_is_scored_by_its_errors() -> None:
    model = PrivateLinearRegression(epsilon=1, bounds=([0], [1]), target_bounds=(0, 1))
    rows = np.linspace(0, 1, 40)[:, None]
    found = audit_estimator_once(model, rows, rows[:, 0], canaries=(rows, 1 - rows[:, 0]), confidence=SURE)
    assert not found.refuted


def test_a_synthesizer_shows_its_epsilon_by_copies() -> None:
    found = audit_synthesizer_once(
        synth.HistogramSynthesizer(epsilon=6), named(NAMES), canaries=named(NAMES), confidence=SURE
    )
    assert not found.refuted
    assert found.epsilon == 6
    assert found.success > 0.6


def test_canaries_may_be_rows_of_the_table() -> None:
    found = audit_synthesizer_once(synth.HistogramSynthesizer(epsilon=1), named(NAMES), canaries=20, confidence=SURE)
    assert found.canaries == 20
    assert not found.refuted


def test_bad_input_is_refused() -> None:
    with pytest.raises(ParameterTypeError, match="Fix: give for example cl.synth.SpanningTree"):
        audit_synthesizer_once(3, named(NAMES))  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(DataError, match="Fix: ask for at most 100 canaries"):
        audit_synthesizer_once(synth.HistogramSynthesizer(epsilon=1), named(NAMES), canaries=150)
    with pytest.raises(ParameterError, match='Fix: audit one with unit="row"'):
        audit_synthesizer_once(synth.HistogramSynthesizer(epsilon=1, adjacency="replace"), named(NAMES))
    model = PrivateLinearRegression(epsilon=1, bounds=([0], [1]), target_bounds=(0, 1))
    with pytest.raises(ParameterError, match=r"Fix: give canaries=\(X, y\)"):
        audit_estimator_once(model, [[0.5]], [0.5], canaries=([[0.1], [0.2]], [0.1]))
