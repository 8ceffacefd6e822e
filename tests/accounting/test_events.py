from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from cloister.accounting.events import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    RepeatedEvent,
    SequenceEvent,
    SubsampledEvent,
    ZeroConcentratedEvent,
    event_from_dict,
)
from cloister.errors import ParameterError, ParameterTypeError

positive = st.fractions(min_value=Fraction(1, 1000), max_value=1000)
probability = st.fractions(min_value=0, max_value=Fraction(99, 100))
whole = st.integers(1, 1000)
simple = st.one_of(
    st.builds(PureEvent, epsilon=positive),
    st.builds(ApproxEvent, epsilon=positive, delta=probability),
    st.builds(ZeroConcentratedEvent, rho=positive, delta=probability),
    st.builds(LaplaceEvent, noise_multiplier=positive),
    st.builds(DiscreteLaplaceEvent, scale=positive, sensitivity=whole),
    st.builds(GaussianEvent, squared_multiplier=positive),
    st.builds(DiscreteGaussianEvent, squared_sigma=positive, squared_sensitivity=positive),
)
anything = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(SubsampledEvent, rate=probability, event=inner),
        st.builds(RepeatedEvent, event=inner, count=whole),
        st.builds(SequenceEvent, events=st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)


@given(anything)
def test_events_survive_json(event: Event) -> None:
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event


@pytest.mark.parametrize(
    "values",
    [{}, {"schema": "cloister.event.pure/2", "epsilon": "1"}, {"schema": "cloister.event.abstract/1"}],
)
def test_unknown_events_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="to_dict"):
        event_from_dict(values)


@pytest.mark.parametrize(
    ("cls", "values"),
    [
        (PureEvent, {"epsilon": -1}),
        (ApproxEvent, {"epsilon": 1, "delta": 1}),
        (ZeroConcentratedEvent, {"rho": -1}),
        (LaplaceEvent, {"noise_multiplier": 0}),
        (DiscreteLaplaceEvent, {"scale": 1, "sensitivity": 0}),
        (GaussianEvent, {"squared_multiplier": 0}),
        (DiscreteGaussianEvent, {"squared_sigma": 1, "squared_sensitivity": 0}),
        (SubsampledEvent, {"rate": 2, "event": PureEvent(epsilon=1)}),
        (RepeatedEvent, {"event": PureEvent(epsilon=1), "count": -1}),
        (PureEvent, {"epsilon": float("nan")}),
    ],
)
def test_impossible_numbers_are_refused(cls: type[Event], values: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        cls(**values)


def test_counts_are_whole_numbers() -> None:
    with pytest.raises(ParameterTypeError):
        RepeatedEvent(event=PureEvent(epsilon=1), count=1.5)  # type: ignore[arg-type]


def test_discrete_laplace_knows_its_epsilon() -> None:
    assert DiscreteLaplaceEvent(scale=10, sensitivity=3).epsilon == Fraction(3, 10)
