"""What every accountant is, and how it reads events.

An accountant turns events into an upper bound of epsilon at a delta, or of delta at an epsilon. It refuses an event
that it does not know. Its bounds hold when each event was chosen after seeing the results of those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Protocol, TypeAlias

from cloister.accounting.amplification import sampled_epsilon
from cloister.accounting.events import (
    ApproxEvent,
    DiscreteLaplaceEvent,
    Event,
    LaplaceEvent,
    PureEvent,
    RepeatedEvent,
    SequenceEvent,
    SubsampledEvent,
)
from cloister.core.exact import Number
from cloister.errors import InternalError, ParameterTypeError, UnsupportedEventError

Events: TypeAlias = "Event | Iterable[Event]"
"""One event, or several in any order."""


class Tally(dict[Event, int]):
    """How often each simple event ran; may stand wherever events are expected."""


class Accountant(Protocol):
    """One way to add up privacy losses."""

    name: str

    def supports(self, event: Event) -> bool:
        """Return whether the accountant knows an event."""
        ...

    def epsilon(self, events: Events, *, delta: Number) -> Fraction:
        """Return an upper bound of epsilon at a delta."""
        ...

    def delta(self, events: Events, *, epsilon: Number) -> Fraction:
        """Return an upper bound of delta at an epsilon."""
        ...


def tally(events: Events) -> Tally:
    """Return how often each simple event ran, sequences and repetitions taken apart."""
    if isinstance(events, Tally):
        return events
    counts = Tally()
    _count(events, 1, counts)
    return counts


def check_supported(accountant: Accountant, events: Events) -> Tally:
    """Return the tally of events, or raise if the accountant does not know one of them."""
    counts = tally(events)
    for event in counts:
        if not accountant.supports(event):
            raise UnsupportedEventError(
                f'The accountant "{accountant.name}" does not know the event {describe(event)}.',
                fix="use compose(events, ...), which picks an accountant that knows every event.",
            )
    return counts


def supports_all(accountant: Accountant, counts: Mapping[Event, int]) -> bool:
    """Return whether an accountant knows every event of a tally."""
    return all(accountant.supports(event) for event in counts)


def describe(event: Event) -> str:
    """Return the kind of an event, with what is inside it."""
    return f"{event.kind}({describe(event.event)})" if isinstance(event, SubsampledEvent) else event.kind


def has_approx_loss(event: Event) -> bool:
    """Return whether one event is differentially private by itself at a known epsilon."""
    inner = event.event if isinstance(event, SubsampledEvent) else event
    return isinstance(inner, PureEvent | DiscreteLaplaceEvent | LaplaceEvent | ApproxEvent)


def approx_loss(event: Event) -> tuple[Fraction, Fraction]:
    """Return the (epsilon, delta) of one event for which `has_approx_loss` holds."""
    match event:
        case PureEvent(epsilon=epsilon) | DiscreteLaplaceEvent(epsilon=epsilon):
            return epsilon, Fraction(0)
        case LaplaceEvent(noise_multiplier=multiplier):
            return 1 / multiplier, Fraction(0)
        case ApproxEvent(epsilon=epsilon, delta=delta):
            return epsilon, delta
        case SubsampledEvent(rate=rate, event=inner):
            epsilon, delta = approx_loss(inner)
            return sampled_epsilon(epsilon, rate=rate), rate * delta
        case _:
            raise InternalError(f"an event of kind {event.kind} has no epsilon of its own")


def _count(events: Events, times: int, counts: Tally) -> None:
    match events:
        case _ if times == 0:
            return
        case RepeatedEvent(event=inner, count=count):
            _count(inner, times * count, counts)
        case SequenceEvent(events=parts):
            _count(parts, times, counts)
        # Nobody enters such a sample, and everybody one with rate 1: neither needs an accountant that knows samples.
        case SubsampledEvent(rate=rate) if rate == 0:
            return
        case SubsampledEvent(rate=rate, event=inner) if rate == 1:
            _count(inner, times, counts)
        case Event():
            counts[events] = counts.get(events, 0) + times
        case Iterable() if not isinstance(events, str | bytes | Mapping):
            for event in events:
                _count(event, times, counts)
        case _:
            raise ParameterTypeError(
                "These are not events.", fix="give an event such as PureEvent(epsilon=0.1), or a list."
            )
