"""A slow network in plain floats, one row at a time, and rows to try it on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.random import SeededRandomSource
from cloister.learn.neural._network import ClassHead, Network, NetworkHead, NumberHead, TwoClassHead, input_steps

Floats = NDArray[np.float64]

NETWORKS = {
    "two classes": Network(4, (), TwoClassHead()),
    "three classes": Network(4, (), ClassHead(3)),
    "tanh": Network(4, (6,), TwoClassHead(), "tanh"),
    "relu": Network(4, (6, 5), ClassHead(3), "relu"),
    "number": Network(4, (5,), NumberHead(), "tanh"),
}


def uniform(seed: int, *shape: int) -> Floats:
    words = SeededRandomSource(seed).words(math.prod(shape)) >> np.uint64(11)
    return words.astype(np.float64).reshape(shape) * 2.0**-52 - 1


def problem(network: Network, rows: int = 40, *, seed: int = 1, size: float = 1.5) -> tuple[Floats, Floats, Any]:
    """Return parameters, inputs in steps, and targets."""
    parameters = uniform(seed, network.size) * size
    lows, highs = np.full(network.inputs, -1.0), np.ones(network.inputs)
    inputs = input_steps(uniform(seed + 1, rows, network.inputs), lows, highs)
    if isinstance(network.head, NumberHead):
        return parameters, inputs, uniform(seed + 2, rows)
    classes = max(2, network.head.outputs)
    return parameters, inputs, (np.arange(rows) * 7) % classes


def loss(network: Network, parameters: Floats, row: Floats, target: Any) -> float:
    """The loss of one row, without any rounding."""
    values = row / 4096.0
    layers = network.layers(parameters)
    for place, layer in enumerate(layers):
        values = values @ layer
        if place < len(layers) - 1:
            values = np.tanh(values) if network.activation == "tanh" else np.clip(values, 0, 8)
            values = np.append(values, 1.0)
    return _loss_of(network.head, values, target)


def _loss_of(head: NetworkHead, scores: Floats, target: Any) -> float:
    if isinstance(head, TwoClassHead):
        return float(np.logaddexp(0, scores[0]) - target * scores[0])
    if isinstance(head, ClassHead):
        return float(np.log(np.exp(scores).sum()) - scores[int(target)])
    return float((scores[0] - target) ** 2 / 2)


def gradient(network: Network, parameters: Floats, row: Floats, target: Any) -> Floats:
    """The gradient of one row's loss by central differences."""
    step = 1e-5
    found = np.zeros(network.size)
    for place in range(network.size):
        moved = np.zeros(network.size)
        moved[place] = step
        ahead, back = (loss(network, parameters + sign * moved, row, target) for sign in (1, -1))
        found[place] = (ahead - back) / (2 * step)
    return found
