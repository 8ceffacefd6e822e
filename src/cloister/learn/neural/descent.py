"""Steps down a noisy gradient: what is done with it costs nothing more.

`Momentum` is stochastic gradient descent with heavy-ball momentum, `Adam` that of Kingma and Ba (2015). `Average` keeps
the mean of the last iterates, which have less noise than the last one alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cloister.learn.rows import Floats

__all__ = ["Adam", "Average", "Descent", "Momentum"]


class Descent(Protocol):
    """A rule for the next parameters."""

    def step(self, parameters: Floats, gradient: Floats, *, rate: float) -> Floats:
        """Return the next parameters."""
        ...


@dataclass
class Momentum:
    """Gradient descent with momentum."""

    momentum: float = 0.9
    _velocity: Floats | float = 0.0

    def step(self, parameters: Floats, gradient: Floats, *, rate: float) -> Floats:
        """Return the next parameters; the velocity is a mean of gradients, so momentum does not change the pace."""
        self._velocity = self.momentum * self._velocity + (1 - self.momentum) * gradient
        return np.asarray(parameters - rate * self._velocity)


@dataclass
class Adam:
    """Steps of about the same size in each coordinate."""

    first: float = 0.9
    second: float = 0.999
    _mean: Floats | float = 0.0
    _square: Floats | float = 0.0
    _steps: int = 0

    def step(self, parameters: Floats, gradient: Floats, *, rate: float) -> Floats:
        """Return the next parameters."""
        self._steps += 1
        self._mean = self.first * self._mean + (1 - self.first) * gradient
        self._square = self.second * self._square + (1 - self.second) * gradient**2
        mean = self._mean / (1 - self.first**self._steps)
        size = np.sqrt(self._square / (1 - self.second**self._steps))
        return np.asarray(parameters - rate * mean / (size + 1e-8))


class Average:
    """The mean of the iterates of the last part of a run.

    Args:
        steps: how many iterates there will be.
        share: how many of them, at the end, are averaged; 0 keeps the last one only.
    """

    def __init__(self, steps: int, share: float) -> None:
        self._first = steps - max(1, round(steps * share))
        self._seen = 0
        self._total: Floats | float = 0.0

    def add(self, parameters: Floats) -> None:
        """Take note of an iterate."""
        if self._seen >= self._first:
            self._total = self._total + parameters
        self._seen += 1

    def value(self) -> Floats:
        """Return the mean."""
        return np.asarray(self._total / (self._seen - self._first))
