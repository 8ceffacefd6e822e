"""Statistical audit: a lower bound on epsilon from samples alone. It can refute a claim, never prove one.

Outputs on two neighbors are reduced to real features (the output itself, coordinates, differences, sums). One half of
the samples chooses, among thresholds and single values of the features, the event that tells the neighbors apart best;
the other half, which had no part in the choice, bounds the two probabilities of that event by Clopper and Pearson
(1934). If ``Pr[event | D] >= low`` and ``Pr[event | D'] <= high`` then every true epsilon is at least
``ln((low - delta) / high)``, with the stated confidence. NaN is a value like any other. The method follows Ding et al.
(2018) and Jagielski et al. (2020).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core import validation
from cloister.errors import ParameterError, PrivacyRefutedError
from cloister.testing.distributions import Floats
from cloister.testing.statistics import Integers

__all__ = ["AuditReport", "Event", "audit", "binomial_bounds", "largest_detectable_epsilon"]

Outputs: TypeAlias = NDArray[Any]
Feature: TypeAlias = Callable[[Outputs], Any]

_MOST_COORDINATES = 6
_THRESHOLDS = 200
_ATOMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A set of outputs: a feature below, above or equal to a value."""

    feature: str
    relation: str
    value: Any  # a value of the feature

    def __str__(self) -> str:
        return f"{self.feature} {self.relation} {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What `audit` found: epsilon is at least ``epsilon_lower``, with a confidence, shown by an event.

    Attributes:
        epsilon: the claim.
        delta: the claim.
        epsilon_lower: the largest lower bound on epsilon that the samples prove.
        event: the event that proves it.
        dataset: the neighbor on which the event is likely.
        neighbor: the neighbor on which it is unlikely.
        hits: how often the event happened on each of them.
        samples: how many samples of each were used to test the event.
        confidence: the probability that a true claim is not refuted.
    """

    epsilon: Fraction
    delta: Fraction
    epsilon_lower: float
    event: Event
    dataset: Any  # whatever the mechanism takes
    neighbor: Any  # whatever the mechanism takes
    hits: tuple[int, int]
    samples: int
    confidence: float

    @property
    def refuted(self) -> bool:
        """Return whether the samples contradict the claim."""
        return self.epsilon_lower > self.epsilon

    def __str__(self) -> str:
        verdict = "refuted" if self.refuted else "not refuted"
        return (
            f"epsilon = {float(self.epsilon):g}: {verdict}; at least {self.epsilon_lower:.4g} "
            f'with confidence {self.confidence:.10g}, by the event "{self.event}" '
            f"({self.hits[0]} against {self.hits[1]} of {self.samples})"
        )

    def verify(self) -> None:
        """Raise if the claim is refuted; a silent return proves nothing.

        Raises:
            PrivacyRefutedError: with the event that contradicts the claim.
        """
        if self.refuted:
            raise PrivacyRefutedError(
                f"This is not private as claimed ({self}), on {self.dataset!r} and its neighbor {self.neighbor!r}.",
                fix=f"claim epsilon >= {self.epsilon_lower:.4g} at least, or correct the algorithm.",
            )


def audit(
    mechanism: Callable[..., Any],
    neighbors: tuple[Any, Any] | Sequence[tuple[Any, Any]],
    *,
    epsilon: object,
    delta: object = 0,
    samples: int = 50_000,
    confidence: float = 0.999,
    features: Mapping[str, Feature] | None = None,
    vectorized: bool | None = None,
) -> AuditReport:
    """Return a lower bound on a mechanism's epsilon.

    Args:
        mechanism: ``mechanism(dataset, size)`` returning an array with one output per row, or ``mechanism(dataset)``
            returning one output.
        neighbors: a pair of neighboring datasets, or a list of pairs.
        epsilon: the claim.
        delta: the claim.
        samples: how many outputs to draw on each neighbor; half choose the event, half test it.
        confidence: the probability that a true claim is not refuted, over all pairs together.
        features: functions from the array of outputs to one value per output, by name, in place of the built-in ones.
        vectorized: whether the mechanism takes a size; by default decided by its signature.

    Returns:
        The report of the worst pair; `AuditReport.verify` raises if it refutes the claim.
    """
    claim, slack = validation.check_epsilon(epsilon, allow_zero=True), validation.check_delta(delta)
    size = validation.check_count(samples, name="samples", at_least=100)
    level = float(validation.check_confidence(confidence))
    pairs = _pairs(neighbors)
    draw = _drawer(mechanism, vectorized=vectorized)
    alpha = (1 - level) / len(pairs)
    found = [
        _audit_pair(draw, pair, size=size, alpha=alpha, delta=float(slack), features=features or _features)
        for pair in pairs
    ]
    bound, event, dataset, neighbor, hits = max(found, key=lambda item: item[0])
    return AuditReport(
        epsilon=claim,
        delta=slack,
        epsilon_lower=bound,
        event=event,
        dataset=dataset,
        neighbor=neighbor,
        hits=hits,
        samples=size - size // 2,
        confidence=level,
    )


def binomial_bounds(hits: Any, trials: int, *, alpha: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson bounds on a probability, each wrong with probability ``alpha / 2`` at most."""
    count = np.asarray(hits, dtype=np.float64)
    low = np.where(count > 0, special.betaincinv(np.maximum(count, 1), trials - count + 1, alpha / 2), 0.0)
    high = np.where(count < trials, special.betaincinv(count + 1, np.maximum(trials - count, 1), 1 - alpha / 2), 1.0)
    return low, high


_Found: TypeAlias = "tuple[float, Event, Any, Any, tuple[int, int]]"


def _audit_pair(
    draw: Callable[[Any, int], Outputs],
    pair: tuple[Any, Any],
    *,
    size: int,
    alpha: float,
    delta: float,
    features: Mapping[str, Feature] | Callable[[Outputs], Mapping[str, Feature]],
) -> _Found:
    outputs = [draw(dataset, size) for dataset in pair]
    functions = features(outputs[0]) if callable(features) else features
    half = size // 2
    columns = {name: [np.asarray(function(part)) for part in outputs] for name, function in functions.items()}
    chosen: tuple[float, Event, bool] | None = None
    for name, (first, second) in columns.items():
        best = _best_event(name, first[:half], second[:half], alpha=alpha, delta=delta)
        if chosen is None or best[0] > chosen[0]:
            chosen = best
    if chosen is None:
        raise ParameterError("There are no features to audit.", fix="give at least one feature, or leave features out.")
    _, event, swapped = chosen
    hits = [int(_happens(event, part[half:]).sum()) for part in columns[event.feature]]
    dataset, neighbor = pair
    if swapped:
        hits, dataset, neighbor = hits[::-1], neighbor, dataset
    bound = float(_epsilon_lower(np.array(hits[0]), np.array(hits[1]), size - half, alpha=alpha, delta=delta))
    return bound, event, dataset, neighbor, (hits[0], hits[1])


def _best_event(name: str, first: Outputs, second: Outputs, *, alpha: float, delta: float) -> tuple[float, Event, bool]:
    """Return the event with the largest bound on the choosing half, and whether the neighbors trade places."""
    events, here, there = _events(name, first, second)
    forward = _epsilon_lower(here, there, len(first), alpha=alpha, delta=delta)
    backward = _epsilon_lower(there, here, len(first), alpha=alpha, delta=delta)
    swapped = bool(backward.max() > forward.max())
    scores = backward if swapped else forward
    position = int(scores.argmax())
    return float(scores[position]), events[position], swapped


def _events(name: str, first: Outputs, second: Outputs) -> tuple[list[Event], Integers, Integers]:
    """Return events of a feature and how often each happens in both samples."""
    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(values)) for part in (codes[: len(first)], codes[len(first) :])]
    total = counts[0] + counts[1]
    atoms = np.argsort(-total, kind="stable")[:_ATOMS]
    events = [Event(feature=name, relation="==", value=values[index]) for index in atoms]
    tables = [[part[atoms]] for part in counts]
    if np.issubdtype(values.dtype, np.number) and len(values) > 2:
        cuts = np.unique(np.searchsorted(np.cumsum(total), np.linspace(0, total.sum(), _THRESHOLDS)[1:-1]))
        cuts = cuts[cuts < len(values) - 1]
        events += [Event(feature=name, relation="<=", value=values[cut]) for cut in cuts]
        events += [Event(feature=name, relation=">", value=values[cut]) for cut in cuts]
        for part, table in zip(counts, tables, strict=True):
            below = np.cumsum(part)[cuts]
            table += [below, part[values == values].sum() - below]  # noqa: PLR0124  # NaN is neither below nor above
    return events, np.concatenate(tables[0]), np.concatenate(tables[1])


def _happens(event: Event, values: Outputs) -> NDArray[np.bool_]:
    match event.relation:
        case "==" if event.value != event.value:  # NaN
            return np.asarray(values != values)  # noqa: PLR0124
        case "==":
            return np.asarray(values == event.value)
        case "<=":
            return np.asarray(values <= event.value)
        case _:
            return np.asarray(values > event.value)


def _epsilon_lower(here: Integers, there: Integers, trials: int, *, alpha: float, delta: float) -> Floats:
    low, high = binomial_bounds(here, trials, alpha=alpha)[0], binomial_bounds(there, trials, alpha=alpha)[1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(np.maximum(low - delta, 0)) - np.log(high), 0))


def _features(outputs: Outputs) -> dict[str, Feature]:
    """Return the built-in features: the output, or coordinates, their differences, sum and extremes of a vector."""
    if outputs.ndim == 1:
        return {"output": lambda part: part}
    width = min(outputs.shape[1], _MOST_COORDINATES)
    features: dict[str, Feature] = {f"output[{i}]": _coordinate(i) for i in range(width)}
    for i in range(width):
        for j in range(i + 1, width):
            features[f"output[{i}] - output[{j}]"] = _difference(i, j)
    features["sum of output"] = lambda part: part.sum(axis=1)
    features["least of output"] = lambda part: part.min(axis=1)
    features["largest of output"] = lambda part: part.max(axis=1)
    return features


def _coordinate(i: int) -> Feature:
    return lambda part: part[:, i]


def _difference(i: int, j: int) -> Feature:
    return lambda part: part[:, i] - part[:, j]


def _pairs(neighbors: Any) -> list[tuple[Any, Any]]:
    """Return a list of pairs from one pair (a tuple of two) or from a list of pairs."""
    pairs = [neighbors] if isinstance(neighbors, tuple) else list(neighbors)
    if not pairs or any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ParameterError(
            "Neighbors are not pairs of datasets.", fix="give (dataset, neighbor), or a list of such pairs."
        )
    return pairs


def _drawer(mechanism: Callable[..., Any], *, vectorized: bool | None) -> Callable[[Any, int], Outputs]:
    many = _takes_size(mechanism) if vectorized is None else vectorized

    def draw(dataset: Any, size: int) -> Outputs:
        outputs = np.asarray(mechanism(dataset, size) if many else [mechanism(dataset) for _ in range(size)])
        if outputs.ndim not in {1, 2} or len(outputs) != size:
            raise ParameterError(
                f"The mechanism did not return {size} outputs in one row or one table.",
                fix="return an array with one number, or one row of numbers, per output; encode other outputs so.",
            )
        if outputs.dtype == object and (outputs == np.array(None)).any():
            raise ParameterError(
                "The mechanism returned None.", fix="return NaN, or a text such as 'none', where there is no answer."
            )
        return outputs

    return draw


def _takes_size(mechanism: Callable[..., Any]) -> bool:
    """Return whether a function has two parameters by position without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(mechanism).parameters.values()
    return sum(item.kind in kinds and item.default is inspect.Parameter.empty for item in parameters) >= 2


def largest_detectable_epsilon(samples: int, *, confidence: float = 0.999) -> float:
    """Return the largest lower bound that an audit of so many samples can reach."""
    trials = samples - samples // 2
    low, high = binomial_bounds(np.array([trials, 0]), trials, alpha=1 - confidence)
    return math.log(float(low[0]) / float(high[1]))
