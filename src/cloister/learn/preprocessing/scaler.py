"""Scaling of numbers: by their public bounds, which costs nothing, or by noisy means and standard deviations.

A scaler that is fitted to private rows without noise gives away their extremes or their exact mean, and every model
after it stands on that leak. Here ``method="public"`` uses the bounds, which are public, so the price is 0; the method
``"standard"`` pays for a noisy number of rows, sums and sums of squares. What comes out is clipped to ``limit``
standard deviations, so that the next step of a pipeline has public bounds again: ``bounds=(-limit, limit)``.

Privacy: claim (epsilon, delta)-DP for one row added or removed. On a grid of 2**15 steps from the middle of the bounds
to an end, a row adds 2**15 to the number of rows (in steps), at most 2**15 to each sum, and at most 2**14 to each sum
of squares, counted from the middle of its range: 2**15 (1 + 1.5 F) in L1 and 2**30 (1 + 1.25 F) in squared L2, for F
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.errors import ParameterError
from cloister.learn.base import Plan, PrivateTransformer, estimators
from cloister.learn.encoding import Encoding, Numeric
from cloister.learn.outlook import Outlook
from cloister.learn.reading import Facts
from cloister.learn.rows import Floats, Rows, exact_product, whole_steps
from cloister.mechanisms.allowance import Allowance, Step, StepNoise

__all__ = ["PrivateScaler"]

METHODS = ("public", "standard")

_BITS = 15
_FLOOR = 1e-3


@estimators.register("scaler")
@dataclass(kw_only=True, eq=False, repr=False)
class PrivateScaler(PrivateTransformer):
    """Brings numbers to one scale; indicator columns of categories stay as they are.

    Args:
        method: "public" maps the bounds to 0 and 1 and costs nothing, whatever epsilon is; "standard" subtracts a noisy
            mean and divides by a noisy standard deviation.
        limit: how many standard deviations from the mean numbers are clipped to, with "standard".

    Attributes:
        mean_: what is subtracted from each encoded column.
        scale_: what each is divided by.
        n_rows_: the noisy number of rows, with "standard"; None otherwise.

    >>> scaler = PrivateScaler(bounds=([0, 50], [100, 250])).fit([[20, 100], [60, 150]])
    >>> scaler.transform([[25, 150]]).tolist(), scaler.guarantee_.brief()
    ([[0.25, 0.5]], 'epsilon = 0 per row')
    """

    learned: ClassVar[tuple[str, ...]] = ("mean_", "scale_", "n_rows_")

    method: str = "public"
    limit: float = 3.0

    mean_: Floats = field(init=False)
    scale_: Floats = field(init=False)
    n_rows_: float | None = field(init=False)

    def _plan(self, facts: Facts, allowance: Allowance) -> Plan:
        validation.check_choice(self.method, name="method", allowed=METHODS)
        validation.check_between(self.limit, name="limit", lowest=1e-6, highest=1e6)
        if self.method == "public":
            return Plan(steps=())
        width = int(_is_number(facts.encoding).sum())
        if not width:
            raise ParameterError("There are no numbers to scale.", fix='use method="public", or leave the scaler out.')
        step = 2**_BITS
        noise = allowance.noise(
            Fraction(1),
            sensitivity=step + width * (step + step // 2),
            squared_sensitivity=step**2 + width * (step**2 + (step // 2) ** 2),
        )
        outlook = Outlook(rows=noise.deviation / step, what="the mean of a column", compared="half of its public range")
        steps = (Step("number of rows, sums and squares", noise.event),)
        return Plan(steps=steps, settings=noise, outlook=outlook)

    def _learn(self, facts: Facts, rows: Rows, plan: Plan, source: RandomSource) -> None:
        lows, highs = facts.encoding.bounds
        number = _is_number(facts.encoding)
        self.mean_, self.scale_ = np.where(number, lows, 0.0), np.where(number, highs - lows, 1.0)
        self.n_rows_ = None
        if plan.settings is not None:
            self._set_moments(facts.encoding, number, rows, plan.settings, source)

    def _set_moments(
        self, encoding: Encoding, number: NDArray[np.bool_], rows: Rows, noise: StepNoise, source: RandomSource
    ) -> None:
        lows, highs = (ends[number] for ends in encoding.bounds)
        step = 2**_BITS
        steps = whole_steps(rows.features[:, number], lows=lows, highs=highs, bits=_BITS)
        squares = np.rint(steps * steps / step) - step // 2
        ones = np.full((len(steps), 1), float(step))
        exactly = exact_product(
            np.concatenate([ones, steps, squares], axis=1), np.ones((len(steps), 1)), rows.weights, most=step
        )
        noisy = noise.add(exactly[:, 0], source).astype(np.float64) / step
        count, width = max(1.0, noisy[0]), steps.shape[1]
        means = np.clip(noisy[1 : width + 1] / count, -1.0, 1.0)
        variances = np.clip(noisy[width + 1 :] / count + 0.5 - means**2, _FLOOR, 1.0)
        half = (highs - lows) / 2
        self.n_rows_ = float(noisy[0])
        self.mean_[number] = (lows + highs) / 2 + means * half
        self.scale_[number] = np.sqrt(variances) * half

    def transform(self, X: Any) -> Floats:
        """Return encoded rows with their numbers scaled; numbers outside of the bounds are clipped first."""
        features = np.clip(self._encoded(X), *self.encoding_.bounds)
        scaled = (features - self.mean_) / self.scale_
        if self.method == "public":
            return np.asarray(scaled)
        return np.where(_is_number(self.encoding_), np.clip(scaled, -self.limit, self.limit), scaled)

    def inverse_transform(self, X: Any) -> Floats:
        """Return encoded rows in their own units."""
        return np.asarray(np.asarray(X, dtype=np.float64) * self.scale_ + self.mean_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002  # as scikit-learn has it
        """Return the names of the encoded columns."""
        return np.array(self.encoding_.names, dtype=object)


def _is_number(encoding: Encoding) -> NDArray[np.bool_]:
    """Return which encoded columns are numbers."""
    return np.array(
        [
            isinstance(feature, Numeric)
            for feature in encoding.features
            for _ in range(1 if isinstance(feature, Numeric) else len(feature.labels))
        ]
    )
