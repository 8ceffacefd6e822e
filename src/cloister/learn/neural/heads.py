"""The last layer of a network: what its scores mean, and by how much they are wrong for a row.

Errors are the derivatives of the loss by the scores, as whole numbers of steps of 2**-14: probability less truth for
classes, prediction less truth for a number, at most 4 in size. Each is a function of the row and the scores alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.learn.neural.tables import ERROR_BITS, LARGEST_ERROR, TABLE_BITS, exponentials, sigmoids
from cloister.learn.rows import Floats

__all__ = ["Classes", "Head", "Number", "TwoClasses"]


class Head(Protocol):
    """What the scores of a network are compared with."""

    @property
    def outputs(self) -> int:
        """Return the number of scores."""
        ...

    def errors(self, scores: Floats, target: NDArray[Any]) -> Floats:
        """Return the errors of scores (in table steps), in error steps."""
        ...

    def predictions(self, scores: Floats) -> Floats:
        """Return what scores (in table steps) predict: probabilities of classes, or a number in [-1, 1]."""
        ...


@dataclass(frozen=True, slots=True)
class TwoClasses:
    """One score, the log odds of the second class."""

    outputs: int = 1

    def errors(self, scores: Floats, target: NDArray[Any]) -> Floats:
        """Return probability less truth."""
        return _error_steps(sigmoids(scores) - target[:, None])

    def predictions(self, scores: Floats) -> Floats:
        """Return the probability of each class."""
        second = sigmoids(scores)
        return np.concatenate([1 - second, second], axis=1)


@dataclass(frozen=True, slots=True)
class Classes:
    """A score for each class."""

    outputs: int

    def errors(self, scores: Floats, target: NDArray[Any]) -> Floats:
        """Return probability less truth, for each class."""
        return _error_steps(self.predictions(scores) - (target[:, None] == np.arange(self.outputs)))

    def predictions(self, scores: Floats) -> Floats:
        """Return the probability of each class."""
        odds = exponentials(scores - scores.max(axis=1, keepdims=True))
        # Whole numbers below 2**53: their sum does not depend on the order.
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Number:
    """One score, a number of which the truth lies in [-1, 1]."""

    outputs: int = 1

    def errors(self, scores: Floats, target: NDArray[Any]) -> Floats:
        """Return prediction less truth."""
        return _error_steps(scores * 2.0**-TABLE_BITS - target[:, None])

    def predictions(self, scores: Floats) -> Floats:
        """Return the number."""
        return np.clip(scores * 2.0**-TABLE_BITS, -1.0, 1.0)


def _error_steps(errors: Floats) -> Floats:
    return np.clip(np.rint(errors * 2.0**ERROR_BITS), -LARGEST_ERROR, LARGEST_ERROR)
