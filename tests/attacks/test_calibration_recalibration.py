from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cloister.attacks import calibration_of, recalibrate
from cloister.attacks.calibration import RECALIBRATIONS
from cloister.errors import ParameterError

CLAIMS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50)
STATED = np.repeat((np.arange(50) + 0.5) / 50, 200)
TRUE_CHANCE = 1 / (1 + np.exp(-(0.5 * np.log(STATED / (1 - STATED)) - 0.3)))
CAME_TRUE = np.tile((np.arange(200) + 0.5) / 200, 50) < TRUE_CHANCE


@pytest.mark.parametrize("kind", RECALIBRATIONS)
def test_boasts_become_honest(kind: str) -> None:
    learned = recalibrate(STATED[::2], CAME_TRUE[::2], kind=kind)
    before, after = (calibration_of(claims, CAME_TRUE) for claims in (STATED, learned.apply(STATED)))
    assert after.expected_error < 0.7 * before.expected_error
    assert after.brier < before.brier


def test_platt_finds_the_line_that_the_outcomes_follow() -> None:
    learned = recalibrate(STATED, CAME_TRUE, kind="platt")
    assert (learned.slope, learned.offset) == pytest.approx((0.5, -0.3), abs=0.02)
    assert recalibrate(STATED, CAME_TRUE, kind="temperature").offset == 0


@pytest.mark.parametrize("kind", RECALIBRATIONS)
def test_what_was_learned_can_be_written_down(kind: str) -> None:
    learned = recalibrate(STATED, CAME_TRUE, kind=kind)
    found = json.loads(json.dumps(learned.to_dict()))
    assert next(iter(found.items())) == ("schema", "cloister.recalibration/1")
    assert (found["kind"], found["slope"], found["offset"]) == (kind, learned.slope, learned.offset)
    assert (found["claims"] is not None) == (kind == "isotonic")


@given(claims=CLAIMS)
def test_isotonic_claims_rise_and_no_rising_step_is_closer(claims: Any) -> None:
    stated, happened = (np.array(part) for part in zip(*claims, strict=True))
    found = recalibrate(stated, happened).apply(stated)
    assert (np.diff(found[np.argsort(stated, kind="stable")]) >= -1e-12).all()
    assert found.mean() == pytest.approx(happened.mean())
    best = ((happened - found) ** 2).sum()
    for threshold in stated:
        above = stated >= threshold
        low = happened[~above].mean() if (~above).any() else 0.0
        high = happened[above].mean()
        if low <= high:
            assert best <= ((happened - np.where(above, high, low)) ** 2).sum() + 1e-9


@given(claims=CLAIMS, kind=st.sampled_from(RECALIBRATIONS))
def test_recalibrated_claims_are_probabilities(claims: Any, kind: str) -> None:
    stated, happened = zip(*claims, strict=True)
    found = recalibrate(stated, happened, kind=kind).apply([0, 0.3, 1])
    assert ((found >= 0) & (found <= 1)).all()


def test_unknown_kinds_and_claims_are_refused() -> None:
    with pytest.raises(ParameterError, match="isotonic"):
        recalibrate([0.5], [True], kind="isotone")
    with pytest.raises(ParameterError, match="one outcome"):
        recalibrate([0.5], [])
