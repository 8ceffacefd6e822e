"""Any PyTorch module, trained privately under a ledger and with a guarantee.

Opacus finds the gradient of each row and says which modules mix rows (batch normalization does, and is refused). The
rest is cloister's: exact Poisson samples, clipping, noise on whole numbers, accounting, and paying before the first row
is read. PyTorch's own random numbers decide nothing but dropout.

Privacy: claim (epsilon, delta)-DP for one row added or removed. The gradient of each row, as PyTorch found it, is
multiplied in 64-bit floats by ``2**30 / max(norm, clip)``, less a margin for rounding, and cut to whole numbers towards
zero: what the row adds to the sum then has a norm of at most 2**30, and the sum of whole numbers is exact. Discrete
Gaussian noise on it dominates Gaussian noise of the stated multiplier, and the steps compose as those of
`cloister.learn.PrivateMLP`.

What is assumed: a row's gradient is a function of that row and the parameters. That fails if the module, or its loss,
looks at several rows at once; the usual ones that do are refused, and outputs of two made-up rows are compared with the
outputs of each alone. And PyTorch may round a row's gradient differently in the company of other rows. The guarantee
says so in a caveat, unless ``rows_at_once=1``, which is slow, asks for the gradient of each row alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.payment import finish, pay
from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, Caveat, DifferentialPrivacy
from cloister.core.random import RandomSource, RandomState, caveats_of, random_source
from cloister.errors import MissingExtraError, ParameterError, ParameterTypeError
from cloister.learn._outlook import warn_if_hopeless
from cloister.learn.neural._schedule import (
    Schedule,
    check_sampling,
    noisy_row_count,
    plan_schedule,
    poisson_sample,
    sample_rate,
)
from cloister.mechanisms.calibration import FitStep, NoiseCalibration

__all__ = ["ROUNDED_TOGETHER", "PrivateTorch"]

ROUNDED_TOGETHER = Caveat(
    "rounded_together",
    "PyTorch computed the gradients of several rows at once, and may have rounded each a little differently for it",
    breaks=False,
)

_ASSUMPTIONS = (
    "the module and its loss treat each row by itself",
    "the module's first parameters do not come from the protected data",
)
_NORM_BITS = 30
_MARGIN = 1 - 2.0**-20
_MOST_PARAMETERS = 2**30
_ALIKE = 1e-4
_TINY = 1e-290
"""A norm by which 2**30 can still be divided."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTorch:
    """A trainer for a PyTorch module: ``fit`` pays, then changes the module's parameters in place.

    Args:
        module: any ``torch.nn.Module`` that Opacus can take gradients of row by row.
        loss: "cross_entropy", "mse", or a function of outputs and targets that returns one number for each row.
        epsilon: what a fit may cost.
        delta: what a fit may cost besides; above 0.
        optimizer: a function of the parameters that returns a ``torch.optim`` optimizer; by default Adam.
        learning_rate: the learning rate of the default optimizer.
        epochs: how often a row is sampled, on average.
        sample_rate: the share of all rows in a sample; by default 1/20.
        expected_rows: a declared, public number of rows; without it a small part of the budget buys a noisy count.
        batch_size: the expected size of a sample, in place of its share; with expected_rows.
        clip: the largest norm of the gradient of a row.
        rows_at_once: of how many rows gradients are held in memory together.
        ledger: a ledger that has an account for the dataset; without one, nobody keeps count.
        dataset: the account in the ledger.
        analyst: who pays, where the ledger limits analysts.
        adjacency: "add_remove", or "replace", which costs accuracy: a replaced row is one removed and one added.
        random_state: None; an integer is for tests, and breaks the promise.

    Attributes:
        guarantee_: what the trained module promises.
        steps_: what was paid for.
    """

    module: Any
    loss: str | Callable[[Any, Any], Any] = "cross_entropy"
    epsilon: Number = 1.0
    delta: Number = 0.0
    optimizer: Callable[[Any], Any] | None = None
    learning_rate: float = 0.01
    epochs: Any = 20
    sample_rate: Any = None
    expected_rows: Any = None
    batch_size: Any = None
    clip: Any = 1.0
    rows_at_once: int = 64
    ledger: Any = None
    dataset: str | None = None
    analyst: str | None = None
    adjacency: Adjacency | str = "add_remove"
    random_state: RandomState = None

    guarantee_: DifferentialPrivacy = field(init=False)
    steps_: tuple[FitStep, ...] = field(init=False)

    def fit(self, inputs: Any, targets: Any) -> PrivateTorch:
        """Train the module on rows, for the price of epsilon and delta.

        Args:
            inputs: a tensor or an array, one row for each first index.
            targets: a tensor or an array of as many rows.

        Raises:
            MissingExtraError: if PyTorch or Opacus is not installed.
            ParameterError: if the module cannot be trained privately. Nothing is paid.
            BudgetExceededError: if the ledger has less left.
        """
        torch = _torch()
        features, truths = _rows(torch, inputs, targets)
        schedule, calibration = self._plan_training()
        loss = _loss(torch, self.loss)
        _check_module(torch, self.module)
        _check_rows_apart(torch, self.module, loss, features, truths)
        warn_if_hopeless(
            schedule.outlook, len(features) if self.expected_rows is None else int(self.expected_rows), stacklevel=2
        )
        source = random_source(self.random_state)
        guarantee = calibration.guarantee(assumptions=_ASSUMPTIONS)
        if self.rows_at_once > 1:
            guarantee = guarantee.with_caveat(ROUNDED_TOGETHER)
        pay(
            guarantee,
            calibration.event(schedule.steps),
            ledger=self.ledger,
            dataset=self.dataset,
            analyst=self.analyst,
            purpose="train PrivateTorch",
        )
        self.guarantee_, self.steps_ = guarantee.with_caveat(*caveats_of(source)), schedule.steps
        # Should the first attempt fail half way, the one on no rows must begin with the same parameters.
        untrained = {name: item.detach().clone() for name, item in self.module.state_dict().items()}

        def train(features: Any, truths: Any) -> None:
            self.module.load_state_dict(untrained)
            with _row_gradients(torch, self.module) as wrapped:
                self._train(_Rows(torch, wrapped, loss, features, truths, self.rows_at_once), schedule, source)

        finish(lambda: train(features, truths), nothing=lambda: train(features[:0], truths[:0]))
        return self

    def predict(self, inputs: Any) -> Any:  # a tensor
        """Return the outputs of the module in evaluation mode; costs nothing."""
        torch = _torch()
        training = self.module.training
        self.module.eval()
        with torch.no_grad():
            outputs = self.module(torch.as_tensor(inputs))
        self.module.train(training)
        return outputs

    def _plan_training(self) -> tuple[Schedule, NoiseCalibration]:
        calibration = NoiseCalibration.of(epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)
        check_sampling(calibration, what="PrivateTorch")
        rate, rows = sample_rate(rate=self.sample_rate, rows=self.expected_rows, batch=self.batch_size)
        validation.check_count(self.rows_at_once, name="rows_at_once", at_least=1)
        validation.check_positive(self.clip, name="clip")
        epochs: Fraction = validation.check_positive(self.epochs, name="epochs")
        schedule = plan_schedule(
            calibration,
            rate=rate,
            expected_rows=rows,
            count=max(1, round(epochs / rate)),
            squared_sensitivity=4**_NORM_BITS,
        )
        return schedule, calibration

    def _train(self, rows: _Rows, schedule: Schedule, source: RandomSource) -> None:
        optimizer = self._optimizer(rows.torch, rows.parameters)
        weights = np.ones(len(rows.features), dtype=np.int64)
        expected = float(schedule.rate) * noisy_row_count(schedule, weights, source)
        unit = float(self.clip) / 2.0**_NORM_BITS / expected
        for _ in range(schedule.count):
            places, _ = poisson_sample(weights, schedule.rate, source)
            exactly = rows.clipped_sum(places, clip=float(self.clip))
            rows.set_gradients(schedule.noise.add(exactly, source).astype(np.float64) * unit)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def _optimizer(self, torch: Any, parameters: list[Any]) -> Any:  # an optimizer
        if self.optimizer is not None:
            return self.optimizer(parameters)
        return torch.optim.Adam(parameters, lr=self.learning_rate)


@dataclass
class _Rows:
    """Protected rows, and the gradients of their losses."""

    torch: Any
    module: Any
    loss: Callable[[Any, Any], Any]
    features: Any
    truths: Any
    at_once: int

    def __post_init__(self) -> None:
        self.parameters = [item for item in self.module.parameters() if item.requires_grad]

    def clipped_sum(self, places: NDArray[np.int64], *, clip: float) -> NDArray[np.int64]:
        """Return the exact sum of clipped gradients of rows, in steps of clip / 2**30."""
        total = np.zeros(sum(item.numel() for item in self.parameters), dtype=np.int64)
        for start in range(0, len(places), self.at_once):
            gradients = self._gradients(self.torch.from_numpy(places[start : start + self.at_once]))
            total += whole_contributions(gradients, clip=clip).sum(axis=0).astype(np.int64)
        return total

    def _gradients(self, places: Any) -> NDArray[np.float64]:
        """Return the gradient of each row, one row each."""
        losses = self.loss(self.module(self.features[places]), self.truths[places])
        losses.sum().backward()
        parts = [item.grad_sample.reshape(len(places), -1).double().cpu().numpy() for item in self.parameters]
        for item in self.parameters:
            item.grad_sample = item.grad = None
        gradients: NDArray[np.float64] = np.concatenate(parts, axis=1)
        return gradients

    def set_gradients(self, gradient: NDArray[np.float64]) -> None:
        """Give each parameter its part of a gradient."""
        start = 0
        for item in self.parameters:
            part = self.torch.from_numpy(gradient[start : start + item.numel()])
            item.grad = part.reshape(item.shape).to(item.device, item.dtype)
            start += item.numel()


def whole_contributions(gradients: NDArray[np.float64], *, clip: float) -> NDArray[np.float64]:
    """Return the gradients of rows as whole numbers, each row of a norm of at most 2**30 steps of clip / 2**30.

    A gradient that is not finite counts as zero. Norms are found in 64-bit floats, whose error for 2**30 numbers is
    below 2**-21: the margin covers it.
    """
    finite = np.where(np.isfinite(gradients).all(axis=1, keepdims=True), gradients, 0.0)
    # Divided by its largest entry first, a row has squares that neither overflow nor vanish.
    largest = np.maximum(np.abs(finite).max(axis=1, keepdims=True, initial=0.0), 1e-300)
    with np.errstate(over="ignore"):
        norms = largest * np.sqrt(np.square(finite / largest).sum(axis=1, keepdims=True))
    return np.asarray(np.trunc(finite * (2.0**_NORM_BITS * _MARGIN / np.maximum(norms, max(clip, _TINY)))))


# What PyTorch and Opacus do ------------------------------------------------------------------------------------------


def _torch() -> Any:  # the package
    try:
        import opacus  # noqa: F401  # row by row gradients
        import torch
    except ImportError:
        raise MissingExtraError(what="Private PyTorch modules", package="torch and opacus", extra="torch") from None
    return torch


def _rows(torch: Any, inputs: Any, targets: Any) -> tuple[Any, Any]:
    features, truths = (torch.as_tensor(item) for item in (inputs, targets))
    if features.ndim == 0 or truths.ndim == 0 or len(features) != len(truths):
        raise ParameterError("Inputs and targets have different numbers of rows.", fix="give one target for each row.")
    return features, truths


def _loss(torch: Any, given: str | Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    if callable(given):
        return given
    validation.check_choice(given, name="loss", allowed=("cross_entropy", "mse"))
    if given == "cross_entropy":
        return torch.nn.CrossEntropyLoss(reduction="none")  # type: ignore[no-any-return]  # PyTorch is not typed here
    return lambda outputs, truths: ((outputs.reshape(len(truths), -1) - truths.reshape(len(truths), -1)) ** 2).mean(1)


def _check_module(torch: Any, module: Any) -> None:
    """Raise unless a module can be trained row by row."""
    from opacus.validators import ModuleValidator

    if not isinstance(module, torch.nn.Module):
        raise ParameterTypeError("module is not a torch.nn.Module.", fix="give the network that is to be trained.")
    size = sum(item.numel() for item in module.parameters() if item.requires_grad)
    if not 0 < size <= _MOST_PARAMETERS:
        raise ParameterError("The module has no parameters to train, or too many.", fix="train from 1 to 2**30.")
    module.train()
    problems = ModuleValidator.validate(module, strict=False)
    batch_norms = tuple(getattr(torch.nn, f"BatchNorm{kind}") for kind in ("1d", "2d", "3d"))
    if problems or any(isinstance(item, (*batch_norms, torch.nn.SyncBatchNorm)) for item in module.modules()):
        raise ParameterError(
            "The module has parts that mix rows or keep statistics of them, such as batch normalization.",
            fix="use GroupNorm or LayerNorm in their place; opacus.validators.ModuleValidator.fix(module) does it.",
        )


def _check_rows_apart(torch: Any, module: Any, loss: Callable[[Any, Any], Any], features: Any, truths: Any) -> None:
    """Raise if two made-up rows have other outputs or losses together than alone; only shapes are taken from data."""
    ramp = torch.linspace(-1, 1, max(1, math.prod(features.shape[1:]))).reshape(features.shape[1:])
    pair = torch.stack([torch.zeros_like(ramp), ramp if features.is_floating_point() else torch.zeros_like(ramp)])
    pair, aims = pair.to(features.dtype), torch.zeros((2, *truths.shape[1:]), dtype=truths.dtype)
    module.eval()
    with torch.no_grad():
        together = loss(module(pair), aims)
        if tuple(together.shape) != (2,):
            raise ParameterError(
                "The loss does not return one number for each row.", fix='build it with reduction="none".'
            )
        alone = torch.cat([loss(module(pair[place : place + 1]), aims[:1]) for place in range(2)])
    module.train()
    if not torch.allclose(together, alone, atol=_ALIKE, rtol=_ALIKE):
        raise ParameterError(
            "The loss of a row depends on the other rows.",
            fix="use a module and a loss that treat rows one by one; statistics over rows are not private.",
        )


@contextmanager
def _row_gradients(torch: Any, module: Any) -> Iterator[Any]:
    """Wrap a module so that it keeps the gradient of each row; buffers are left as they were."""
    from opacus import GradSampleModule

    # Buffers, such as running means, would carry what was seen of the rows out of the fit.
    buffers = {name: item.clone() for name, item in module.named_buffers()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*backward hook.*")
        wrapped = GradSampleModule(module, loss_reduction="sum")
        try:
            yield wrapped
        finally:
            wrapped.to_standard_module()
            with torch.no_grad():
                for name, item in module.named_buffers():
                    item.copy_(buffers[name])
