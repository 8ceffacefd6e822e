"""Events: what ran, in the few numbers that accountants need.

An event is frozen and describes the mechanism that actually ran, on its lattice. Its meaning never changes; an
accountant that does not know an event refuses it.

Lattice noise is not the same as continuous noise. The discrete Laplace mechanism with few lattice steps between
neighbors loses more (in the approximate sense) than the continuous one of the same epsilon; with one step it is as bad
as randomized response. It therefore has an event of its own. The Gaussian mechanism of `cloister.mechanisms` adds
discrete Gaussian noise that dominates a continuous Gaussian of the stated multiplier, so `GaussianEvent` is true.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.errors import ParameterError

__all__ = [
    "ApproxEvent",
    "DiscreteGaussianEvent",
    "DiscreteLaplaceEvent",
    "Event",
    "GaussianEvent",
    "LaplaceEvent",
    "PureEvent",
    "RepeatedEvent",
    "SequenceEvent",
    "SubsampledEvent",
    "ZeroConcentratedEvent",
    "event_from_dict",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all events."""

    kind: ClassVar[str] = "abstract"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that `event_from_dict` reads back exactly."""
        values = {item.name: _encode(getattr(self, item.name)) for item in fields(self)}
        return {"schema": f"cloister.event.{self.kind}/1", **values}


@dataclass(frozen=True, slots=True, kw_only=True)
class PureEvent(Event):
    """Any mechanism that is epsilon-differentially private."""

    kind: ClassVar[str] = "pure"
    epsilon: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
    ) -> None:
        construct(self, epsilon=epsilon)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxEvent(Event):
    """Any mechanism that is (epsilon, delta)-differentially private."""

    kind: ClassVar[str] = "approx"
    epsilon: Fraction
    delta: Fraction

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
    ) -> None:
        construct(self, epsilon=epsilon, delta=delta)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validation.check_epsilon(self.epsilon, allow_zero=True))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentratedEvent(Event):
    """Any mechanism that is rho-zero-concentrated differentially private, up to delta."""

    kind: ClassVar[str] = "zero_concentrated"
    rho: Fraction
    delta: Fraction = Fraction(0)

    def __init__(
        self,
        *,
        rho: Number,
        delta: Number = 0,
    ) -> None:
        construct(self, rho=rho, delta=delta)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", validation.check_non_negative(self.rho, name="rho"))
        object.__setattr__(self, "delta", validation.check_delta(self.delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEvent(Event):
    """Continuous Laplace noise with scale = noise_multiplier * L1 sensitivity."""

    kind: ClassVar[str] = "laplace"
    noise_multiplier: Fraction

    def __init__(
        self,
        *,
        noise_multiplier: Number,
    ) -> None:
        construct(self, noise_multiplier=noise_multiplier)

    def __post_init__(self) -> None:
        _positive(self, "noise_multiplier")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplaceEvent(Event):
    """Discrete Laplace noise of a scale in lattice steps, neighbors being at most ``sensitivity`` steps apart (L1)."""

    kind: ClassVar[str] = "discrete_laplace"
    scale: Fraction
    sensitivity: int

    def __init__(
        self,
        *,
        scale: Number,
        sensitivity: int,
    ) -> None:
        construct(self, scale=scale, sensitivity=sensitivity)

    def __post_init__(self) -> None:
        _positive(self, "scale")
        object.__setattr__(
            self, "sensitivity", validation.check_count(self.sensitivity, name="sensitivity", at_least=1)
        )

    @property
    def epsilon(self) -> Fraction:
        """Return the pure epsilon of the mechanism."""
        return self.sensitivity / self.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent(Event):
    """Continuous Gaussian noise with sigma = noise_multiplier * L2 sensitivity; the square is kept, being rational."""

    kind: ClassVar[str] = "gaussian"
    squared_multiplier: Fraction

    def __init__(
        self,
        *,
        squared_multiplier: Number,
    ) -> None:
        construct(self, squared_multiplier=squared_multiplier)

    def __post_init__(self) -> None:
        _positive(self, "squared_multiplier")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianEvent(Event):
    """Discrete Gaussian noise on integers: sigma**2 and the squared L2 sensitivity in lattice steps."""

    kind: ClassVar[str] = "discrete_gaussian"
    squared_sigma: Fraction
    squared_sensitivity: Fraction

    def __init__(
        self,
        *,
        squared_sigma: Number,
        squared_sensitivity: Number,
    ) -> None:
        construct(self, squared_sigma=squared_sigma, squared_sensitivity=squared_sensitivity)

    def __post_init__(self) -> None:
        _positive(self, "squared_sigma")
        _positive(self, "squared_sensitivity")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsampledEvent(Event):
    """An event on a Poisson sample: each unit enters independently with probability ``rate``. Add/remove only."""

    kind: ClassVar[str] = "poisson_subsampled"
    rate: Fraction
    event: Event

    def __init__(
        self,
        *,
        rate: Number,
        event: Event,
    ) -> None:
        construct(self, rate=rate, event=event)

    def __post_init__(self) -> None:
        rate = validation.check_probability(self.rate, name="rate")
        object.__setattr__(self, "rate", rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedEvent(Event):
    """The same event, adaptively, ``count`` times."""

    kind: ClassVar[str] = "repeated"
    event: Event
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", validation.check_count(self.count, name="count"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceEvent(Event):
    """Several events, adaptively, one after the other."""

    kind: ClassVar[str] = "sequence"
    events: tuple[Event, ...]


_KINDS: dict[str, type[Event]] = {
    cls.kind: cls
    for cls in (
        PureEvent,
        ApproxEvent,
        ZeroConcentratedEvent,
        LaplaceEvent,
        DiscreteLaplaceEvent,
        GaussianEvent,
        DiscreteGaussianEvent,
        SubsampledEvent,
        RepeatedEvent,
        SequenceEvent,
    )
}


def event_from_dict(values: dict[str, Any]) -> Event:
    """Return the event that `Event.to_dict` wrote, or refuse what is not known."""
    kind, _, version = str(values.get("schema", "")).removeprefix("cloister.event.").partition("/")
    if kind not in _KINDS or version != "1":
        raise ParameterError(
            "This is not an event that this version of cloister can read.",
            fix="use a dictionary written by to_dict(), or a newer cloister.",
        )
    return _KINDS[kind](**{name: _decode(value) for name, value in values.items() if name != "schema"})


def _positive(event: Event, name: str) -> None:
    object.__setattr__(event, name, validation.check_positive(getattr(event, name), name=name))


def _encode(value: Any) -> Any:  # a field's value of any type
    match value:
        case Fraction():
            return exact.text(value)
        case Event():
            return value.to_dict()
        case tuple():
            return [_encode(item) for item in value]
        case _:
            return value


def _decode(value: Any) -> Any:  # a field's value of any type
    match value:
        case dict():
            return event_from_dict(value)
        case list():
            return tuple(_decode(item) for item in value)
        case _:
            return value
