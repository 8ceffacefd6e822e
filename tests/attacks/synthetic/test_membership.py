"""Membership by canaries: a synthesizer that repeats its rows is found, a private one is not refuted."""

from __future__ import annotations

import json

import pytest

from cloister import synth
from cloister.attacks import synthetic_membership
from tests.synth.evaluation.small_tables import Memorizer, people


@pytest.mark.slow
def test_a_private_synthesizer_is_not_refuted() -> None:
    found = synthetic_membership(synth.IndependentMarginals(epsilon=1, bins=4), people(200, seed=1), records=40, fits=8)
    assert not found.refuted
    assert found.ceiling == pytest.approx(0.0272, abs=1e-4)
    assert found.baseline == 0.01
    assert found.queries == 8
    assert found.to_dict()["schema"] == "cloister.synthetic_membership_attack/1"
    assert json.dumps(found.to_dict())
    assert "most that the promise allows" in found.comparisons()
    assert "area under the curve" in found.report().to_markdown()
    assert "area under the curve" in dict(found.summary())


@pytest.mark.slow
def test_a_synthesizer_that_repeats_its_rows_is_found() -> None:
    found = synthetic_membership(Memorizer(), people(200, seed=1), records=40, fits=8)
    assert found.succeeded
    assert found.success > 0.3
    assert found.verdict.startswith(("The attack works", "Not private as promised"))
