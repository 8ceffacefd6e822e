"""Statistical audit: a lower bound on epsilon from samples alone. It can refute a claim, never prove one.

Outputs on two neighbors are reduced to columns, one value per output (see `cloister.attacks.auditing.features`). One
half of the samples chooses, among thresholds and single values of the columns, the event that tells the neighbors
apart best; the other half, which had no part in the choice, bounds the two probabilities of that event by Clopper and
Pearson (1934). If ``Pr[event | D] >= low`` and ``Pr[event | D'] <= high`` then every true epsilon is at least
``ln((low - delta) / high)``, with the stated confidence. NaN is a value like any other. The method follows Ding et al.
(2018) and Jagielski et al. (2020).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.confidence import Floats, binomial_bounds
from cloister.core.exact import Number
from cloister.errors import ParameterError, PrivacyRefutedError

__all__ = ["AuditReport", "OutputEvent", "audit_samples", "largest_detectable_epsilon", "neighbor_pairs", "takes_size"]

Outputs: TypeAlias = NDArray[Any] | Sequence[Any]
Column: TypeAlias = NDArray[Any]
Columns: TypeAlias = Mapping[str, tuple[Column, Column]]
Reader: TypeAlias = Callable[[Outputs, Outputs, int], Columns]
Integers: TypeAlias = NDArray[np.int64]

_THRESHOLDS = 200
_ATOMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputEvent:
    """A set of outputs: a feature below, above, equal to a value or not."""

    feature: str
    relation: str
    value: Any  # a value of the feature

    def __str__(self) -> str:
        return f"{self.feature} {self.relation} {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit of samples found: epsilon is at least ``epsilon_lower``, with a confidence, shown by an event.

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
        pairs: how many pairs of neighbors were examined.
    """

    epsilon: Fraction
    delta: Fraction
    epsilon_lower: float
    event: OutputEvent
    dataset: Any  # whatever the mechanism takes
    neighbor: Any  # whatever the mechanism takes
    hits: tuple[int, int]
    samples: int
    confidence: float
    pairs: int = 1

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
                f"This is not private as claimed ({self}).",
                fix=f"claim epsilon >= {self.epsilon_lower:.4g} at least, or correct the algorithm.",
            )


def audit_samples(
    draw: Callable[[Any, int], Outputs],
    neighbors: object,
    *,
    epsilon: Number,
    delta: Number,
    samples: object,
    confidence: Number,
    read: Reader,
) -> AuditReport:
    """Return a lower bound on the epsilon of whatever outputs are drawn from.

    Args:
        draw: returns so many outputs for a dataset.
        neighbors: a pair of neighboring datasets, or a list of pairs.
        epsilon: the claim.
        delta: the claim.
        samples: how many outputs to draw on each neighbor; half choose the event, half test it.
        confidence: the probability that a true claim is not refuted, over all pairs together.
        read: returns the columns of the outputs of two neighbors, given how many of each may be looked at to make them.

    Returns:
        The report of the worst pair; `AuditReport.verify` raises if it refutes the claim.
    """
    claim, slack = validation.check_epsilon(epsilon, allow_zero=True), validation.check_delta(delta)
    size = validation.check_count(samples, name="samples", at_least=100)
    level = float(validation.check_confidence(confidence))
    pairs = neighbor_pairs(neighbors)
    # By the union bound all pairs together keep to the stated confidence.
    alpha = (1 - level) / len(pairs)
    found = [_audit_pair(draw, pair, size=size, alpha=alpha, delta=float(slack), read=read) for pair in pairs]
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
        pairs=len(pairs),
    )


def largest_detectable_epsilon(samples: int, *, confidence: float = 0.999) -> float:
    """Return the largest lower bound that an audit of so many samples can reach."""
    trials = samples - samples // 2
    low, high = binomial_bounds(np.array([trials, 0]), trials, alpha=1 - confidence)
    return math.log(float(low[0]) / float(high[1]))


def neighbor_pairs(neighbors: Any) -> list[tuple[Any, Any]]:
    """Return a list of pairs from one pair (a tuple of two) or from a list of pairs."""
    pairs = [neighbors] if isinstance(neighbors, tuple) else list(neighbors)
    if not pairs or any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise ParameterError(
            "Neighbors are not pairs of datasets.", fix="give (dataset, neighbor), or a list of such pairs."
        )
    return pairs


def takes_size(mechanism: Callable[..., Any]) -> bool:
    """Return whether a function has two parameters by position without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(mechanism).parameters.values()
    return sum(item.kind in kinds and item.default is inspect.Parameter.empty for item in parameters) >= 2


_Found: TypeAlias = "tuple[float, OutputEvent, Any, Any, tuple[int, int]]"


def _audit_pair(
    draw: Callable[[Any, int], Outputs],
    pair: tuple[Any, Any],
    *,
    size: int,
    alpha: float,
    delta: float,
    read: Reader,
) -> _Found:
    first, second = (draw(dataset, size) for dataset in pair)
    half = size // 2
    columns = read(first, second, half)
    chosen: tuple[float, OutputEvent, bool] | None = None
    for name, (here, there) in columns.items():
        best = _best_event(name, here[:half], there[:half], alpha=alpha, delta=delta)
        if chosen is None or best[0] > chosen[0]:
            chosen = best
    if chosen is None:
        raise ParameterError("There are no features to audit.", fix="give at least one feature, or leave features out.")
    _, event, swapped = chosen
    # The half that tests had no part in choosing the event.
    hits = [int(_happens(event, part[half:]).sum()) for part in columns[event.feature]]
    dataset, neighbor = pair
    if swapped:
        hits, dataset, neighbor = hits[::-1], neighbor, dataset
    bound = float(_epsilon_lower(np.array(hits[0]), np.array(hits[1]), size - half, alpha=alpha, delta=delta))
    return bound, event, dataset, neighbor, (hits[0], hits[1])


def _best_event(
    name: str, first: Column, second: Column, *, alpha: float, delta: float
) -> tuple[float, OutputEvent, bool]:
    """Return the event with the largest bound on the choosing half, and whether the neighbors trade places."""
    events, here, there = _events(name, first, second)
    forward = _epsilon_lower(here, there, len(first), alpha=alpha, delta=delta)
    backward = _epsilon_lower(there, here, len(first), alpha=alpha, delta=delta)
    swapped = bool(backward.max() > forward.max())
    scores = backward if swapped else forward
    position = int(scores.argmax())
    return float(scores[position]), events[position], swapped


def _events(name: str, first: Column, second: Column) -> tuple[list[OutputEvent], Integers, Integers]:
    """Return events of a feature and how often each happens in both samples."""
    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(values)) for part in (codes[: len(first)], codes[len(first) :])]
    total = counts[0] + counts[1]
    atoms = np.argsort(-total, kind="stable")[:_ATOMS]
    events = [
        OutputEvent(feature=name, relation=relation, value=values[index])
        for relation in ("==", "!=")
        for index in atoms
    ]
    tables = [[part[atoms], part.sum() - part[atoms]] for part in counts]
    if np.issubdtype(values.dtype, np.number) and len(values) > 2:
        cuts = np.unique(np.searchsorted(np.cumsum(total), np.linspace(0, total.sum(), _THRESHOLDS)[1:-1]))
        cuts = cuts[cuts < len(values) - 1]
        events += [OutputEvent(feature=name, relation="<=", value=values[cut]) for cut in cuts]
        events += [OutputEvent(feature=name, relation=">", value=values[cut]) for cut in cuts]
        for part, table in zip(counts, tables, strict=True):
            below = np.cumsum(part)[cuts]
            table += [below, part[values == values].sum() - below]  # noqa: PLR0124  # NaN is neither below nor above
    return events, np.concatenate(tables[0]), np.concatenate(tables[1])


def _happens(event: OutputEvent, values: Column) -> NDArray[np.bool_]:
    match event.relation:
        case "==" if event.value != event.value:  # NaN
            return np.asarray(values != values)  # noqa: PLR0124
        case "==":
            return np.asarray(values == event.value)
        case "!=":
            return ~_happens(replace(event, relation="=="), values)
        case "<=":
            return np.asarray(values <= event.value)
        case _:
            return np.asarray(values > event.value)


def _epsilon_lower(here: Integers, there: Integers, trials: int, *, alpha: float, delta: float) -> Floats:
    low, high = binomial_bounds(here, trials, alpha=alpha)[0], binomial_bounds(there, trials, alpha=alpha)[1]
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(np.maximum(low - delta, 0)) - np.log(high), 0))
