from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from cloister.core.random import SeededRandomSource
from cloister.errors import ParameterError
from cloister.mechanisms import Mechanism, SparseVector
from cloister.testing.audit import audit


def _sparse(**changes: Any) -> SparseVector:
    return SparseVector(**({"threshold": 1000, "sensitivity": 1, "epsilon": 1} | changes))


def test_it_stops_after_the_last_positive() -> None:
    mechanism = _sparse(positives=2)
    assert isinstance(mechanism, Mechanism)
    answers = mechanism.release([0, 2000, 0, 2000, 0, 2000])
    assert answers.above == (False, True, False, True)
    assert str(answers) == "2 of 4 above the threshold, epsilon = 1 per row"
    assert json.loads(json.dumps(answers.to_dict()))["above"] == [False, True, False, True]


def test_a_session_answers_until_its_positives_are_used_up() -> None:
    session = _sparse(positives=2).start()
    assert session.ask(0).tolist() == [False]
    assert session.ask([2000, 0]).tolist() == [True, False]
    assert session.positives_left == 1
    assert session.ask([2000, 0]).tolist() == [True]
    with pytest.raises(ParameterError, match="start a new session"):
        session.ask(0)


def test_a_matrix_is_refused() -> None:
    with pytest.raises(ParameterError, match="flat list"):
        _sparse().release(np.full((1, 1000), 1e6))


def test_a_session_cannot_be_multiplied() -> None:
    session = _sparse().start()
    for multiply in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(ParameterError, match="start another session"):
            multiply(session)
    with pytest.raises(AttributeError):
        session.positives_left = 5  # type: ignore[misc]


def test_a_session_stays_in_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _sparse().start()
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(ParameterError, match="in this process"):
        session.ask(0)


def test_threads_share_the_positives() -> None:
    session = _sparse(threshold=0, positives=3).start()
    told: list[int] = []

    def ask() -> None:
        with contextlib.suppress(ParameterError):
            told.append(int(session.ask([1e9]).sum()))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(told), session.positives_left) == (3, 0)


def test_the_split_spends_exactly_epsilon() -> None:
    for positives in (1, 5, 100, 200_000):
        for monotone in (False, True):
            mechanism = _sparse(positives=positives, monotone=monotone, epsilon=0.3)
            threshold, query = mechanism.scales
            factor = (1 if monotone else 2) * positives
            steps = 1 / mechanism.lattice.granularity
            assert steps / threshold + factor * steps / query == mechanism.epsilon


def test_a_seed_taints() -> None:
    assert not _sparse().release([0], random_state=SeededRandomSource(1)).guarantee.holds
    assert _sparse().release([0]).guarantee.holds


@pytest.mark.parametrize("bad", [[1.0, math.nan], ["a"]])
def test_odd_numbers_are_refused(bad: object) -> None:
    with pytest.raises((ParameterError, TypeError), match="Fix:"):
        _sparse().release(bad)


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"positives": 0}, "positives=1"),
        ({"sensitivity": 0}, "positive sensitivity"),
        ({"epsilon": 0}, "epsilon=0.5"),
        ({"threshold": math.nan}, "finite"),
    ],
)
def test_bad_parameters_are_refused_with_a_fix(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(ParameterError, match=fix):
        _sparse(**changes)


@pytest.mark.statistical
@pytest.mark.slow
def test_an_audit_does_not_refute_it() -> None:
    mechanism = _sparse(threshold=0, epsilon=1, positives=1)

    def lengths(values: Any, size: int) -> Any:
        return np.array([len(mechanism.release(values).above) for _ in range(size)])

    report = audit(lengths, ([1, 1, 1, -1, -1], [0, 0, 0, 0, 0]), epsilon=1, samples=2000, confidence=1 - 1e-9)
    report.verify()
    assert not report.refuted
