"""A network in whole numbers: what one row adds to a clipped gradient does not depend on the rows beside it.

Floating point would round a row's activations, and the sum of all gradients, a little differently when another row
comes in, and a unit that switches at zero turns a little into a lot. Here inputs, weights, activations and errors are
whole numbers of steps. Matrix products of them are exact in 64-bit floats, in whatever order they are added, because
every sum stays below 2**53; the activation functions are tables of whole numbers, or minima and maxima; and what is
left (products, quotients, square roots and rounding of single numbers) is rounded alike everywhere.

    inputs and activations   steps of 2**-12, at most 1 (tanh) or 8 (relu) in size: at most 2**15 steps
    weights                  steps of 2**-18, at most 32 in size:                   at most 2**23 steps
    errors                   steps of 2**-14, at most 4 in size:                    at most 2**16 steps
    units in a layer         fewer than 2**14, the constant included

Functions of one number are tables, so that a value does not depend on where it stands in an array: processors compute
elementary functions of several numbers at once and of the last few one by one, not always with the same last bit. A
table has one entry for each argument.

The last layer, a `NetworkHead`, says what scores mean, and by how much they are wrong for a row. Errors are the
derivatives of the loss by the scores, as whole numbers of steps of 2**-14: probability less truth for classes,
prediction less truth for a number, at most 4 in size. Each is a function of the row and the scores alone.

The gradient of a row in a layer is the product of its activations and its errors, and its norm the product of theirs,
so that norms are found, and rows are clipped, without ever writing down a gradient for each row (Goodfellow 2015;
"ghost norms"). A row's errors are multiplied by min(1, clip / norm), less a margin for rounding, and cut to whole
numbers towards zero. What the row then adds to the sum has a norm of at most 2**30 steps, which stand for ``clip``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.core.whole_rows import Floats

__all__ = [
    "ACTIVATION_BITS",
    "ERROR_BITS",
    "LARGEST_ERROR",
    "MOST_UNITS",
    "NORM_BITS",
    "TABLE_BITS",
    "ClassHead",
    "Network",
    "NetworkHead",
    "NumberHead",
    "TwoClassHead",
    "exponentials",
    "sigmoids",
    "tanh_steps",
]


ACTIVATION_BITS, ERROR_BITS, LARGEST_ERROR = 12, 14, 2**16
TABLE_BITS = 10
"""Arguments of the tables are whole numbers of steps of 2**-TABLE_BITS."""

_REACH = {"tanh": 8, "sigmoid": 32, "exponential": 32}


def tanh_steps(places: Floats) -> Floats:
    """Return 2**ACTIVATION_BITS times the hyperbolic tangent, as whole numbers."""
    return _look_up("tanh", places)


def sigmoids(places: Floats) -> Floats:
    """Return 1 / (1 + exp(-z))."""
    return _look_up("sigmoid", places)


def exponentials(places: Floats) -> Floats:
    """Return 2**30 exp(z), for z at most 0, as whole numbers."""
    return _look_up("exponential", places)


def _look_up(name: str, places: Floats) -> Floats:
    table, reach = _table(name), _REACH[name] << TABLE_BITS
    found = (np.clip(places, -reach, reach) + reach).astype(np.intp)
    return np.asarray(table[found])


@lru_cache(maxsize=4)
def _table(name: str) -> Floats:
    reach = _REACH[name] << TABLE_BITS
    arguments = np.arange(-reach, reach + 1) * 2.0**-TABLE_BITS
    if name == "tanh":
        return np.asarray(np.rint(np.tanh(arguments) * 2.0**ACTIVATION_BITS))
    if name == "sigmoid":
        return np.asarray(1 / (1 + np.exp(-arguments)))
    return np.asarray(np.rint(np.exp(np.minimum(arguments, 0.0)) * 2.0**30))


class NetworkHead(Protocol):
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
class TwoClassHead:
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
class ClassHead:
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
class NumberHead:
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


NORM_BITS = 30
"""A row adds at most 2**NORM_BITS steps, in the Euclidean norm, to the sum of gradients."""

MOST_UNITS = 2**14 - 2
WEIGHT_BITS, LARGEST_WEIGHT = 18, 2**23
_ONE = 2.0**ACTIVATION_BITS
_LARGEST_RELU = 8 * _ONE
_MARGIN = 1 - 2.0**-40
_CHUNK = 2048


@dataclass(frozen=True)
class Network:
    """The shape of a network; its parameters are one vector, layer by layer, each with a last row of constants."""

    inputs: int
    hidden: tuple[int, ...]
    head: NetworkHead
    activation: str = "tanh"

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Return the shape of each layer's parameters."""
        widths = (self.inputs, *self.hidden, self.head.outputs)
        return tuple((before + 1, after) for before, after in itertools.pairwise(widths))

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return sum(rows * columns for rows, columns in self.shapes)

    def layers(self, parameters: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the parameters of each layer, as views."""
        parts, start = [], 0
        for rows, columns in self.shapes:
            parts.append(parameters[start : start + rows * columns].reshape(rows, columns))
            start += rows * columns
        return parts

    def steps_of(self, parameters: Floats) -> list[Floats]:
        """Return weights as whole numbers of steps, those that noise has driven out of all bounds as 0."""
        steps = np.nan_to_num(np.rint(parameters * 2.0**WEIGHT_BITS), nan=0.0)
        return self.layers(np.clip(steps, -LARGEST_WEIGHT, LARGEST_WEIGHT))

    def forward(self, weights: list[Floats], inputs: Floats) -> tuple[list[Floats], Floats]:
        """Return the activations before each layer, with the constant, and the scores in table steps."""
        activations = [inputs]
        for layer in weights[:-1]:
            activations.append(self._activate(_table_steps(activations[-1] @ layer)))
        return activations, _table_steps(activations[-1] @ weights[-1])

    def clipped_sum(
        self, parameters: Floats, inputs: Floats, target: NDArray[Any], counts: Floats, *, clip: float
    ) -> NDArray[np.int64]:
        """Return the sum of clipped gradients of rows that occur so often, in steps of clip / 2**NORM_BITS.

        Args:
            parameters: where the gradient is taken.
            inputs: whole numbers, with the constant (see `with_constant`).
            target: what the head expects.
            counts: how often each row occurs in the sample; together fewer than 2**23 in each 2048 rows.
            clip: the largest norm that a row's gradient keeps.
        """
        weights = self.steps_of(parameters)
        total = np.zeros(self.size, dtype=np.int64)
        # With so few rows at a time no sum of products passes 2**53.
        for start in range(0, len(inputs), _CHUNK):
            part = slice(start, start + _CHUNK)
            activations, errors = self._backward(weights, inputs[part], target[part])
            factors = clip_factors(activations, errors, clip=clip)
            pieces = [
                # Cutting towards zero can only make a row's gradient shorter.
                (before.T @ (counts[part, None] * np.trunc(error * factors[:, None]))).ravel()
                for before, error in zip(activations, errors, strict=True)
            ]
            total += np.concatenate(pieces).astype(np.int64)
        return total

    def _backward(
        self, weights: list[Floats], inputs: Floats, target: NDArray[Any]
    ) -> tuple[list[Floats], list[Floats]]:
        """Return activations before, and errors behind, each layer."""
        activations, scores = self.forward(weights, inputs)
        errors = [self.head.errors(scores, target)]
        # Nothing comes before the first layer, so that errors stop behind it.
        for layer, before in zip(weights[:0:-1], activations[:0:-1], strict=True):
            arriving = errors[-1] @ layer[:-1].T * 2.0**-WEIGHT_BITS
            slopes = self._slopes(before[:, :-1])
            # Errors stay whole numbers within their range in every layer, on which the exactness of all
            # products rests.
            errors.append(np.clip(np.rint(arriving * slopes), -LARGEST_ERROR, LARGEST_ERROR))
        return activations, errors[::-1]

    def _activate(self, places: Floats) -> Floats:
        if self.activation == "tanh":
            values = tanh_steps(places)
        else:
            values = np.clip(places * 2.0 ** (ACTIVATION_BITS - TABLE_BITS), 0.0, _LARGEST_RELU)
        return with_constant(np.rint(values))

    def _slopes(self, values: Floats) -> Floats:
        if self.activation == "tanh":
            shares = values * 2.0**-ACTIVATION_BITS
            return np.asarray(1 - shares * shares)
        return ((values > 0) & (values < _LARGEST_RELU)).astype(np.float64)


def with_constant(values: Floats) -> Floats:
    """Return whole activations with the constant 1 in a last column."""
    extended = np.empty((len(values), values.shape[1] + 1))
    extended[:, :-1] = values
    extended[:, -1] = _ONE
    return extended


def input_steps(features: Floats, lows: Floats, highs: Floats) -> Floats:
    """Return features, on [0, 1] between their bounds or [-1, 1] around zero, as whole numbers with the constant."""
    origins, scales = input_scale(lows, highs)
    inside = (np.clip(features, lows, highs) - origins) / scales
    return with_constant(np.rint(np.clip(inside, -1.0, 1.0) * _ONE))


def input_scale(lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Return the origin and the unit of each feature, from its public bounds."""
    around = (lows < 0) & (highs > 0)
    origins = np.where(around, 0.0, lows)
    return origins, np.where(around, np.maximum(-lows, highs), highs - lows)


def clip_factors(activations: list[Floats], errors: list[Floats], *, clip: float) -> Floats:
    """Return by what each row's errors are multiplied so that its gradient has at most 2**NORM_BITS steps."""
    squares = np.zeros(len(errors[0]))
    for before, error in zip(activations, errors, strict=True):
        squares += _squared_norms(before) * _squared_norms(error)
    # A row without errors has norm 0, any other at least 2**ACTIVATION_BITS: 1 keeps the quotient finite, no more.
    least = max(clip * 2.0 ** (ACTIVATION_BITS + ERROR_BITS), 1.0)
    return np.asarray(2.0**NORM_BITS * _MARGIN / np.maximum(np.sqrt(squares), least))


def _squared_norms(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _table_steps(sums: Floats) -> Floats:
    """Return exact sums of products, rounded to the steps of the tables."""
    return np.asarray(np.rint(sums * 2.0 ** (TABLE_BITS - ACTIVATION_BITS - WEIGHT_BITS)))
