"""Privacy loss distributions through Google's dp-accounting, an optional package: slow, and an independent check."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from cloister.accounting.accountants.base import Events, supported
from cloister.accounting.conversions import float_delta
from cloister.accounting.events import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SubsampledEvent,
)
from cloister.core import exact, validation
from cloister.errors import InternalError, MissingExtraError

__all__ = ["PldAccountant"]

_TRUNCATION = 1e-15


class PldAccountant:
    """Composes with dp-accounting (extra "pld"); discrete Gaussian events are known for one step only.

    Args:
        interval: The width of the grid of losses.
        pessimistic: False gives a lower bound instead; for checks, never for a guarantee.
    """

    name = "pld"

    def __init__(self, *, interval: float = 1e-4, pessimistic: bool = True) -> None:
        self.interval, self.pessimistic = interval, pessimistic

    def supports(self, event: Event) -> bool:
        """Return whether dp-accounting has a distribution for the event."""
        match event:
            case PureEvent() | ApproxEvent() | LaplaceEvent() | DiscreteLaplaceEvent() | GaussianEvent():
                return True
            case DiscreteGaussianEvent(squared_sensitivity=distance):
                return distance == 1
            case SubsampledEvent(event=inner):
                return isinstance(inner, LaplaceEvent | GaussianEvent)
            case _:
                return False

    def epsilon(self, events: Events, *, delta: object) -> Fraction:
        """Return epsilon at a delta above 0."""
        wanted = validation.check_delta(delta, allow_zero=False)
        found = float(self._composed(events).get_epsilon_for_delta(float_delta(wanted)))
        return exact.upper(found) if found else Fraction(0)

    def delta(self, events: Events, *, epsilon: object) -> Fraction:
        """Return delta at an epsilon."""
        wanted = validation.check_epsilon(epsilon, allow_zero=True)
        found = float(self._composed(events).get_delta_for_epsilon(exact.float_below(wanted)))
        return min(Fraction(1), exact.upper(found)) if found else Fraction(0)

    def _composed(self, events: Events) -> Any:  # a distribution of dp-accounting
        counts = supported(self, events)
        library = _library()
        total = library.identity(self.interval, self.pessimistic)
        for event, count in counts.items():
            one = self._distribution(library, event)
            total = total.compose(one.self_compose(count, _TRUNCATION) if count > 1 else one, _TRUNCATION)
        return total

    def _distribution(self, library: Any, event: Event, rate: float = 1.0) -> Any:  # noqa: PLR0911  # one return per kind, of dp-accounting's type
        grid = {
            "value_discretization_interval": self.interval,
            "pessimistic_estimate": self.pessimistic,
            "use_connect_dots": self.pessimistic,
        }
        match event:
            case SubsampledEvent(rate=sampled, event=inner):
                return self._distribution(library, inner, float(sampled))
            case PureEvent(epsilon=epsilon):
                return library.from_discrete_laplace_mechanism(float(epsilon), 1, **grid)
            case ApproxEvent(epsilon=epsilon, delta=delta):
                parameters = _parameters(epsilon, delta)
                return library.from_privacy_parameters(parameters, value_discretization_interval=self.interval)
            case LaplaceEvent(noise_multiplier=multiplier):
                return library.from_laplace_mechanism(float(multiplier), sampling_prob=rate, **grid)
            case DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity):
                return library.from_discrete_laplace_mechanism(float(1 / scale), sensitivity, **grid)
            case DiscreteGaussianEvent(squared_sigma=squared):
                return library.from_discrete_gaussian_mechanism(float(squared) ** 0.5, 1, **grid)
            case GaussianEvent(squared_multiplier=squared):
                return library.from_gaussian_mechanism(float(squared) ** 0.5, sampling_prob=rate, **grid)
            case _:
                raise InternalError(f"no privacy loss distribution for {event.kind}")


def _library() -> Any:  # a module of dp-accounting
    try:
        from dp_accounting.pld import privacy_loss_distribution
    except ImportError:
        raise MissingExtraError(
            what="Privacy loss distributions of this kind", package="dp-accounting", extra="pld"
        ) from None
    return privacy_loss_distribution


def _parameters(epsilon: Fraction, delta: Fraction) -> Any:  # a value of dp-accounting
    from dp_accounting.pld import common

    return common.DifferentialPrivacyParameters(float(epsilon), float(delta))
