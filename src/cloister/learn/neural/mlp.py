"""Multilayer networks by noisy gradient descent on Poisson samples ("DP-SGD").

Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar and Zhang (2016): in each step every row enters the sample with the
same probability, its gradient is clipped to a norm, the clipped gradients are added up, and one vector of Gaussian
noise is added to the sum. The sum is divided by the expected size of the sample, since the true one is private; a
penalty on the weights is added behind the noise. An empty sample gives pure noise, like any other.

What is then done with the noisy gradient costs nothing more. `Momentum` is stochastic gradient descent with heavy-ball
momentum, `Adam` that of Kingma and Ba (2015). `Average` keeps the mean of the last iterates, which have less noise than
the last one alone.

What a network is trained with, where nothing was chosen, follows from rules of epsilon and the declared number of rows
alone. The rules were found on a split of the training file of Adult, 24,000 rows to learn from and the rest to compare,
at epsilon 0.1, 1 and 10. The more a budget carries (epsilon times rows), the more steps are worth their noise, and the
sooner a hidden layer is worth the noise on its weights.

Privacy: claim (epsilon, delta)-DP for one row added or removed. In a sample, a row adds whole numbers of a Euclidean
norm of at most 2**30 to the sum (`_network`), whatever the other rows are, so the discrete Gaussian noise of a step
dominates Gaussian noise of the stated multiplier on a Poisson sample. The steps, and a noisy count where the number of
rows is not declared, are composed adaptively (`_schedule`), because each depends on the data only through the ones
before it. Nothing rests on floating point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateClassifier, PrivateEstimator, PrivateRegressor, TrainingPlan
from cloister.learn.neural._network import (
    MOST_UNITS,
    NORM_BITS,
    ClassHead,
    Network,
    NetworkHead,
    NumberHead,
    TwoClassHead,
    input_steps,
)
from cloister.learn.neural._schedule import (
    Schedule,
    check_sampling,
    noisy_row_count,
    plan_schedule,
    poisson_sample,
    sample_rate,
)
from cloister.mechanisms.calibration import NoiseCalibration

__all__ = ["Adam", "Average", "Choices", "Descent", "Momentum", "PrivateMLP", "PrivateMLPRegressor", "choose_settings"]


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


_UNDECLARED_ROWS = 30_000
_CARRIES_MANY_STEPS, _CARRIES_A_LAYER = 15_000, 100_000


@dataclass(frozen=True, slots=True)
class Choices:
    """The shape of a network and the pace of its training."""

    hidden: tuple[int, ...]
    epochs: float
    learning_rate: float


def choose_settings(
    *, hidden: Any, epochs: Any, learning_rate: Any, solver: str, epsilon: float, expected_rows: int | None
) -> Choices:
    """Return what was chosen, and what the rules choose for whatever is None."""
    carried = epsilon * (_UNDECLARED_ROWS if expected_rows is None else expected_rows)
    widths = _widths(((32,) if carried >= _CARRIES_A_LAYER else ()) if hidden is None else hidden)
    many = 100.0 if carried >= _CARRIES_MANY_STEPS else 20.0
    pace = 4.0 if solver == "sgd" else 0.05 if widths else 0.1
    return Choices(
        hidden=widths,
        epochs=many if epochs is None else float(validation.check_positive(epochs, name="epochs")),
        learning_rate=(
            pace
            if learning_rate is None
            else float(validation.check_between(learning_rate, name="learning_rate", lowest=1e-9, highest=1e6))
        ),
    )


def _widths(given: Any) -> tuple[int, ...]:
    listed = list(given) if isinstance(given, list | tuple) else [given]
    return tuple(validation.check_count(width, name="each of hidden_layer_sizes", at_least=1) for width in listed)


_FARTHEST = 2.0**10
"""The largest size of a parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What a fit was planned with."""

    network: Network
    schedule: Schedule
    learning_rate: float
    clip: float


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateNetwork(PrivateEstimator):
    """What networks for classes and for numbers have in common."""

    learned: ClassVar[tuple[str, ...]] = ("parameters_", "widths_")

    hidden_layer_sizes: Any = None
    activation: str = "tanh"
    solver: str = "adam"
    learning_rate: Any = None
    epochs: Any = None
    sample_rate: Any = None
    expected_rows: Any = None
    batch_size: Any = None
    clip: Any = 1.0
    momentum: float = 0.9
    penalty: float = 0.0
    average: float = 0.5

    parameters_: Floats = field(init=False)
    widths_: NDArray[np.int64] = field(init=False)

    def _head(self, classes: int) -> NetworkHead:
        raise NotImplementedError

    @property
    def coefs_(self) -> list[Floats]:
        """Return the weights of each layer, one row per input."""
        return [layer[:-1] for layer in self._network().layers(self.parameters_)]

    @property
    def intercepts_(self) -> list[Floats]:
        """Return the constants of each layer."""
        return [layer[-1] for layer in self._network().layers(self.parameters_)]

    def _network(self) -> Network:
        """Return the fitted network."""
        hidden = tuple(int(width) for width in self.widths_)
        return Network(len(self.encoding_.names), hidden, self._head(_classes(self)), self.activation)

    # Planning --------------------------------------------------------------------------------------------------------

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        check_sampling(calibration, what=type(self).__name__)
        self._check()
        rate, rows = sample_rate(rate=self.sample_rate, rows=self.expected_rows, batch=self.batch_size)
        choices = choose_settings(
            hidden=self.hidden_layer_sizes,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            solver=self.solver,
            epsilon=float(calibration.epsilon),
            expected_rows=rows,
        )
        classes = 0 if facts.target.classes is None else len(facts.target.classes)
        network = Network(len(facts.encoding.names), choices.hidden, self._head(classes), self.activation)
        if max(*network.shapes[0], *(after for _, after in network.shapes)) > MOST_UNITS:
            raise ParameterError(
                f"A layer has more than {MOST_UNITS} units.", fix="use fewer features, units or classes."
            )
        count = max(1, round(choices.epochs / rate))
        schedule = plan_schedule(
            calibration, rate=rate, expected_rows=rows, count=count, squared_sensitivity=4**NORM_BITS
        )
        settings = _Settings(
            network=network,
            schedule=schedule,
            learning_rate=choices.learning_rate,
            clip=float(validation.check_between(self.clip, name="clip", lowest=1e-6, highest=1e6)),
        )
        return TrainingPlan(steps=schedule.steps, settings=settings, outlook=schedule.outlook)

    def _check(self) -> None:
        validation.check_choice(self.activation, name="activation", allowed=("tanh", "relu"))
        validation.check_choice(self.solver, name="solver", allowed=("adam", "sgd"))
        validation.check_between(self.penalty, name="penalty", lowest=0, highest=1e6)
        for name in ("momentum", "average"):
            validation.check_probability(getattr(self, name), name=name)

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        settings: _Settings = plan.settings
        lows, highs = facts.encoding.bounds
        inputs = input_steps(rows.features, lows, highs)
        target = self._scaled_target(facts, np.asarray(rows.target))
        schedule = settings.schedule
        # How large a sample really is, is private; its expectation follows from numbers that are public or paid
        # for.
        expected = float(schedule.rate) * noisy_row_count(schedule, rows.weights, source)
        unit = settings.clip / 2.0**NORM_BITS / expected
        parameters, rule = _start(settings.network, source), self._descent()
        average = Average(schedule.count, float(self.average))
        for _ in range(schedule.count):
            places, counts = poisson_sample(rows.weights, schedule.rate, source)
            exactly = settings.network.clipped_sum(
                parameters, inputs[places], target[places], counts, clip=settings.clip
            )
            noisy = schedule.noise.add(exactly, source).astype(np.float64) * unit
            moved = rule.step(parameters, noisy + float(self.penalty) * parameters, rate=settings.learning_rate)
            # The network cuts weights long before; so they cannot run away to what is no number.
            parameters = np.clip(moved, -_FARTHEST, _FARTHEST)
            average.add(parameters)
        self.parameters_, self.widths_ = average.value(), np.array(settings.network.hidden, dtype=np.int64)

    def _scaled_target(self, facts: PublicFacts, target: NDArray[Any]) -> NDArray[Any]:
        del facts
        return target

    def _descent(self) -> Descent:
        return Adam() if self.solver == "adam" else Momentum(float(self.momentum))

    def _predictions(self, features: Floats) -> Floats:
        network = self._network()
        lows, highs = self.encoding_.bounds
        _, scores = network.forward(network.steps_of(self.parameters_), input_steps(features, lows, highs))
        return network.head.predictions(scores)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateMLP(_PrivateNetwork, PrivateClassifier):
    """A neural network that tells classes apart, trained by noisy gradient descent.

    What is not given follows public rules of epsilon and the declared number of rows (see `choose_settings`).

    Args:
        hidden_layer_sizes: the units of each hidden layer; ``()`` is logistic (softmax) regression. By default one of
            32, or none if epsilon times the number of rows (30,000 if not declared) is below 100,000.
        activation: "tanh", or "relu", which saturates at 8.
        solver: what is done with noisy gradients: "adam", or "sgd" with momentum.
        learning_rate: the size of the steps; by default 0.05 for Adam (0.1 without hidden layers), 4 for SGD.
        epochs: how often a row is sampled, on average; by default 100, or 20 if epsilon times rows is below 15,000.
        sample_rate: the share of all rows in a sample; by default 1/20.
        expected_rows: a declared, public number of rows; without it a small part of the budget buys a noisy count.
        batch_size: the expected size of a sample, in place of its share; with expected_rows.
        clip: the largest norm of the gradient of a row.
        momentum: how much of the last step is kept in the next (sgd).
        penalty: the weight of half the squared norm of all parameters.
        average: the share of iterates, at the end, of which the model is the mean; 0 is the last one.

    Attributes:
        parameters_: all weights and constants, layer by layer.
        coefs_: the weights of each layer.
        intercepts_: the constants of each layer.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 200, ["low", "low", "high", "high"] * 200
    >>> model = PrivateMLP(
    ...     epsilon=5, delta=1e-6, bounds=(0, 10), classes=["low", "high"], hidden_layer_sizes=(4,), epochs=5
    ... )
    >>> model.fit(X, y).predict([[1.5], [8.5]]).tolist()
    ['low', 'high']
    """

    def _head(self, classes: int) -> NetworkHead:
        return TwoClassHead() if classes == 2 else ClassHead(classes)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, for each row."""
        return self._predictions(self._encoded(X))

    def _scores(self, features: Floats) -> Floats:
        return self._predictions(features)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateMLPRegressor(_PrivateNetwork, PrivateRegressor):
    """A neural network that predicts a number between public bounds, trained by noisy gradient descent.

    Arguments and attributes are those of `PrivateMLP`, with ``target_bounds`` in place of classes.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 200, [10.0, 20.0, 80.0, 90.0] * 200
    >>> model = PrivateMLPRegressor(epsilon=5, delta=1e-6, bounds=(0, 10), target_bounds=(0, 100), epochs=10)
    >>> low, high = model.fit(X, y).predict([[1.5], [8.5]])
    >>> bool(low < high)
    True
    """

    target_bounds_: tuple[float, float] = field(init=False)
    learned: ClassVar[tuple[str, ...]] = ("parameters_", "widths_", "target_bounds_")

    def _head(self, classes: int) -> NetworkHead:
        del classes
        return NumberHead()

    def _set_public(self, facts: PublicFacts) -> None:
        self.target_bounds_ = _bounds(facts)

    def _scaled_target(self, facts: PublicFacts, target: NDArray[Any]) -> NDArray[Any]:
        low, high = _bounds(facts)
        inside = np.clip(target, low, high)
        return np.asarray(np.clip((inside - (low + high) / 2) / ((high - low) / 2), -1.0, 1.0))

    def predict(self, X: Any) -> Floats:
        """Return the predicted number of each row; costs nothing."""
        low, high = self.target_bounds_ if hasattr(self, "target_bounds_") else (0.0, 0.0)
        shares = self._predictions(self._encoded(X))[:, 0]
        return (low + high) / 2 + shares * (high - low) / 2


def _classes(estimator: _PrivateNetwork) -> int:
    found = getattr(estimator, "classes_", None)
    return 0 if found is None else len(found)


def _bounds(facts: PublicFacts) -> tuple[float, float]:
    return facts.target.bounds or (0.0, 1.0)


def _start(network: Network, source: RandomSource) -> Floats:
    """Return random weights of hidden layers (Glorot and Bengio 2010), and zeros for the last one."""
    parameters = np.zeros(network.size)
    for layer in network.layers(parameters)[:-1]:
        words = source.words(layer[:-1].size) >> np.uint64(11)
        uniform = words.astype(np.float64).reshape(layer[:-1].shape) * 2.0**-52 - 1
        layer[:-1] = uniform * math.sqrt(6 / sum(layer.shape))
    return parameters
