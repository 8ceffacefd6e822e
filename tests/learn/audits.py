"""Audits of estimators: many releases of one plan, judged by the most telling number or event about each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cloister.attacks import audit_dp
from cloister.core.confidence import binomial_bounds
from cloister.core.random import random_source
from cloister.learn._inputs import read
from cloister.mechanisms.calibration import NoiseCalibration


@dataclass(frozen=True, kw_only=True)
class Quiet(NoiseCalibration):
    """A calibration that buys a part of the noise that it should."""

    factor: int = 2

    @cached_property
    def squared_multiplier(self) -> Fraction:
        return super().squared_multiplier / self.factor**2

    @property
    def epsilon(self) -> Fraction:
        return self.factor * super().epsilon if self.is_pure else super().epsilon


def quiet(factor: int, *, delta: Any = 0) -> Quiet:
    """Return a calibration of epsilon 1 that buys so small a part of the noise."""
    return Quiet.of(epsilon=Fraction(1), delta=Fraction(delta), factor=factor)


def is_refuted(happens: Callable[[int], bool], *, samples: int, is_right: bool, delta: float = 0.0) -> bool:
    """Return whether an event that was fixed beforehand refutes a claim of epsilon 1 by how often it happens.

    Args:
        happens: learns anew from rows with one more (1) or without it (0), and returns whether the event happened.
        samples: how often it learns from each; a third of it will do for a claim that is right.
        is_right: whether the claim should stand, which it then does but for a probability of 1e-9.
        delta: the claim's delta.
    """
    times = samples // 3 if is_right else samples
    alpha = 1e-9 if is_right else 1e-3
    counts = [sum(happens(size) for _ in range(times)) for size in (0, 1)]
    bounds = [binomial_bounds(count, times, alpha=alpha / 2) for count in counts]
    return any(float(one[0]) > math.e * float(other[1]) + delta for one, other in (bounds, bounds[::-1]))


def releases(model: Any, X: Any, *, epsilon: float, delta: float = 0.0) -> Callable[[], Any]:
    """Return a function that learns anew each time, with the noise of an epsilon that need not be the claimed one."""
    reading = read(model, X, None)
    calibration = NoiseCalibration.of(epsilon=epsilon, delta=delta)
    plan, rows, source = model._plan(reading.facts, calibration), reading.fetch(model), random_source()
    model.encoding_ = reading.facts.encoding

    def again() -> Any:
        model._learn(reading.facts, rows, plan, source)
        return model

    return again


def check_audit(
    make: Callable[[], Any],
    evidence: Callable[[Any], float],
    neighbors: tuple[Any, Any],
    *,
    samples: int = 2500,
) -> None:
    """Raise unless a claim of epsilon 1 stands, and half of the noise is refuted.

    Args:
        make: returns the estimator.
        evidence: the one number about a fitted model that tells the neighbors apart best.
        neighbors: two sets of rows.
        samples: how many releases show that the noise is halved; half of them will do for the claim itself.
    """
    for noise_epsilon, confidence, verdict in ((1, 1 - 1e-9, "not refuted"), (2, 0.999, "refuted")):
        found = audit_dp(
            _mechanism(make, evidence, neighbors, noise_epsilon),
            neighbors,
            epsilon=1,
            samples=samples if noise_epsilon > 1 else samples // 2,
            confidence=confidence,
            mode="statistical",
            vectorized=False,
            features={"evidence": lambda outputs: np.array(outputs, dtype=np.float64)},
        )
        assert found.outcome == verdict, found


def _mechanism(make: Any, evidence: Any, neighbors: Any, noise_epsilon: float) -> Callable[[Any], float]:
    drawn = {id(part): releases(make(), part, epsilon=noise_epsilon) for part in neighbors}
    return lambda part: round(float(evidence(drawn[id(part)]())), 6)


def evidence(noisy: Sequence[float], here: Sequence[float], there: Sequence[float]) -> float:
    """Return how much likelier numbers with Laplace noise of one scale are on one side than on the other."""
    drawn = np.asarray(noisy)
    return float(np.abs(drawn - np.asarray(there)).sum() - np.abs(drawn - np.asarray(here)).sum())
