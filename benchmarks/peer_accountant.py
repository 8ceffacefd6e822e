"""dp-accounting's privacy loss distributions for cloister's events: a peer in benchmarks, an oracle in tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloister.accounting import (
    ApproxEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SubsampledEvent,
)
from cloister.accounting.accountants.base import Events, tally

_TRUNCATION = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerAccountant:
    """An upper bound by dp-accounting on a grid of losses, or a lower bound if it is not pessimistic."""

    interval: float = 1e-4
    pessimistic: bool = True

    def epsilon(self, events: Events, *, delta: float) -> float:
        return float(self._compose(events).get_epsilon_for_delta(delta))

    def delta(self, events: Events, *, epsilon: float) -> float:
        return float(self._compose(events).get_delta_for_epsilon(epsilon))

    def _compose(self, events: Events) -> Any:
        from dp_accounting.pld import privacy_loss_distribution

        total = privacy_loss_distribution.identity(self.interval, self.pessimistic)
        for event, count in tally(events).items():
            one = self._distribution(privacy_loss_distribution, event)
            total = total.compose(one.self_compose(count, _TRUNCATION) if count > 1 else one, _TRUNCATION)
        return total

    def _distribution(self, library: Any, event: Event, rate: float = 1.0) -> Any:
        grid = {
            "value_discretization_interval": self.interval,
            "pessimistic_estimate": self.pessimistic,
            "use_connect_dots": self.pessimistic,
        }
        match event:
            case SubsampledEvent(rate=sampled, event=LaplaceEvent() | GaussianEvent() as inner):
                return self._distribution(library, inner, float(sampled))
            case PureEvent(epsilon=epsilon):
                return library.from_discrete_laplace_mechanism(float(epsilon), 1, **grid)
            case ApproxEvent(epsilon=epsilon, delta=delta):
                from dp_accounting.pld import common

                parameters = common.DifferentialPrivacyParameters(float(epsilon), float(delta))
                return library.from_privacy_parameters(parameters, value_discretization_interval=self.interval)
            case LaplaceEvent(noise_multiplier=multiplier):
                return library.from_laplace_mechanism(float(multiplier), sampling_prob=rate, **grid)
            case DiscreteLaplaceEvent(scale=scale, sensitivity=sensitivity):
                return library.from_discrete_laplace_mechanism(float(1 / scale), sensitivity, **grid)
            case DiscreteGaussianEvent(squared_sigma=squared, squared_sensitivity=1):
                return library.from_discrete_gaussian_mechanism(float(squared) ** 0.5, 1, **grid)
            case GaussianEvent(squared_multiplier=squared):
                return library.from_gaussian_mechanism(float(squared) ** 0.5, sampling_prob=rate, **grid)
            case _:
                raise NotImplementedError(event.kind)
