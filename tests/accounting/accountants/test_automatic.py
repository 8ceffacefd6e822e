from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from cloister.accounting import ApproxEvent, Event, GaussianEvent, PureEvent, compose
from cloister.accounting.accountants.base import tally
from cloister.core.guarantees import (
    SEEDED_RANDOMNESS,
    Adjacency,
    ApproxDP,
    Guarantee,
    LocalDP,
    PureDP,
    ZeroConcentratedDP,
)
from cloister.errors import (
    AccountingError,
    ParameterError,
    ParameterTypeError,
    SeededRandomnessWarning,
    UnsupportedEventError,
)
from cloister.mechanisms import Laplace

HALF = PureEvent(epsilon=0.5)


@dataclass(frozen=True)
class Released:
    event: Event
    guarantee: Guarantee


def released(**fields: Any) -> Released:
    return Released(HALF, PureDP(epsilon=0.5, **fields))


@pytest.mark.parametrize("arguments", [{}, {"adjacency": "replace"}, {"unit": "row"}])
def test_events_need_a_relation_and_a_unit(arguments: dict[str, Any]) -> None:
    for events in (HALF, [HALF], [], tally([HALF])):
        with pytest.raises(ParameterError, match='adjacency="add_remove", unit="row"'):
            compose(events, **arguments)


def test_events_take_the_relation_and_unit_that_are_stated() -> None:
    whole = compose(iter([HALF, HALF]), adjacency="replace", unit="patient")
    assert whole == PureDP(epsilon=1, adjacency="replace", unit="patient")


def test_releases_bring_their_relation_unit_and_assumptions() -> None:
    parts = [released(adjacency="replace", unit="patient", assumptions=(text,)) for text in ("a", "b", "a")]
    whole = compose(parts)
    assert whole == PureDP(epsilon=1.5, adjacency="replace", unit="patient", assumptions=("a", "b"))
    assert compose(parts, delta=1e-6).adjacency is compose(parts, epsilon=1).adjacency is Adjacency.REPLACE
    assert compose(parts, adjacency="replace", unit="patient") == whole
    assert compose(parts[0]).unit == "patient"


@pytest.mark.parametrize("question", [{}, {"delta": 1e-6}, {"epsilon": 1}])
def test_a_seeded_release_breaks_the_whole(question: dict[str, Any]) -> None:
    parts = [released(), released(caveats=(SEEDED_RANDOMNESS,))]
    assert compose(parts[:1], **question).holds
    assert not compose(parts, **question).holds


def test_mechanisms_and_their_answers_compose() -> None:
    mechanism = Laplace(epsilon=0.5, sensitivity=1, adjacency="replace", unit="patient")
    assert compose([mechanism, mechanism]) == PureDP(epsilon=1, adjacency="replace", unit="patient")
    with pytest.warns(SeededRandomnessWarning):
        seeded = mechanism.release(3, random_state=1)
    assert not compose([mechanism, seeded]).holds


@pytest.mark.parametrize(
    ("parts", "arguments"),
    [
        ([released(), released(adjacency="replace")], {}),
        ([released(), released(unit="patient")], {}),
        ([released()], {"adjacency": "replace"}),
        ([released()], {"unit": "patient"}),
    ],
)
def test_different_relations_or_units_do_not_compose(parts: list[Released], arguments: dict[str, Any]) -> None:
    with pytest.raises(AccountingError, match="the same unit and relation"):
        compose(parts, **arguments)


def test_what_cannot_be_composed() -> None:
    with pytest.raises(ParameterTypeError, match="events alone with adjacency"):
        compose([released(), HALF])  # type: ignore[list-item]
    for part in (Released(HALF, LocalDP(epsilon=0.5)), Laplace):
        with pytest.raises(AccountingError, match="differentially private results"):
            compose([part])  # type: ignore[list-item]
    for other in (3, "events", {}):
        with pytest.raises(ParameterTypeError, match="give an event"):
            compose(other, adjacency="add_remove", unit="row")  # type: ignore[arg-type]


def test_without_delta_the_fix_says_to_give_one() -> None:
    gaussian = Released(GaussianEvent(squared_multiplier=1), ZeroConcentratedDP(rho=0.5))
    for arguments in ({}, {"delta": 0}):
        with pytest.raises(UnsupportedEventError, match="delta=1e-6"):
            compose([gaussian], **arguments)
    approximate = Released(ApproxEvent(epsilon=1, delta=1e-7), ApproxDP(epsilon=1, delta=1e-7))
    assert compose([gaussian, approximate], delta=1e-6).delta > 0
