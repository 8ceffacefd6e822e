"""Principal components of noisy second moments.

- ``analyze_gauss`` (Dwork, Talwar, Thakurta and Zhang 2014): Gaussian noise on the upper triangle of X'X, once.
- ``noisy_power`` (Hardt and Price 2014): Gaussian noise on a few columns, several times: the noisy power method.
- ``laplace``: Laplace noise on the upper triangle, calibrated to all its entries together; pure, without a delta.

Each iteration of the noisy power method multiplies X'X with an orthonormal guess V, adds noise and orthonormalizes.
There are far fewer noisy numbers than in X'X when few directions are wanted of many columns, but each iteration is paid
for.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP for ``laplace``, for one row added or removed. Rows are clipped, put
on a whole grid, and shrunk to ``data_norm``. The matrix X'X is not centered before noise is added: the scatter around
the private mean would move up to four times as far, and replacing a row moves X'X by sqrt(2) of what adding one does.
To center, the number of rows and the sums are released too, with the same noise (see `_second_moments`), and the mean
is taken out afterwards.

Privacy of the power method: a row x moves (X'X) V by x (x'V), of Frobenius norm |x| |x'V| <= |x|**2 |V|, |V| being the
spectral norm. The guess is rounded to whole numbers of 2**-12 so that its spectral norm, bounded by the largest sum of
absolute values in a row of V'V, is at most 1; what follows from earlier releases is no secret. So the squared
sensitivity is |x|**4 2**24.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.errors import ParameterError
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._row_grid import SCALES, RowBounds, RowGrid, grid_of
from cloister.learn._rows import CompactRows, product_apart
from cloister.learn._second_moments import (
    Products,
    SecondMoments,
    column_sums,
    plan_moments,
    products_of,
    products_of_coded,
)
from cloister.learn.base import PrivateTransformer, TrainingPlan
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.mechanisms.step_noise import GaussianSteps
from cloister.plotting import Figure

__all__ = ["FirstMoments", "Power", "PrivatePCA", "plan_first_moments", "plan_power", "whole_directions"]


_FINE = 2**12


@dataclass(frozen=True, eq=False)
class FirstMoments:
    """A planned release of the number of rows, and of the sums of columns if they are wanted."""

    noise: GaussianSteps
    constant: int
    largest: int
    centered: bool

    def release(self, steps: Floats, weights: NDArray[np.int64], source: RandomSource) -> tuple[float, Floats]:
        """Return the noisy number of rows, and their noisy mean or nothing but zeros, in steps."""
        exactly = np.zeros(1 + steps.shape[1] * self.centered, dtype=object)
        exactly[0] = self.constant * int(weights.sum())
        if self.centered:
            exactly[1:] = column_sums(steps, weights, most=self.largest)
        noisy = self.noise.add(exactly, source).astype(np.float64)
        count = max(1.0, noisy[0] / self.constant)
        if not self.centered:
            return count, np.zeros(steps.shape[1])
        return count, np.clip(noisy[1:] / count, -self.largest, self.largest)


def plan_first_moments(
    row: RowBounds, calibration: NoiseCalibration, *, share: Fraction, centered: bool
) -> FirstMoments:
    """Return what a share buys; the number of rows weighs as much as half of a largest row."""
    constant = max(1, row.largest)
    moved = constant**2 + (row.squares if centered else 0)
    return FirstMoments(calibration.gaussian(share, squared_sensitivity=moved), constant, row.largest, centered)


@dataclass(frozen=True, eq=False)
class Power:
    """Planned iterations."""

    noise: GaussianSteps
    iterations: int
    largest: int

    def release(
        self,
        steps: Floats,
        weights: NDArray[np.int64],
        source: RandomSource,
        *,
        guess: Floats,
        mean: Floats,
        count: float,
    ) -> tuple[Floats, Floats]:
        """Return orthonormal directions and the variances along them, in steps, from a first guess and the moments."""
        # Python's own integers: products with whole directions can leave 64 bits.
        exactly = exact_product(steps, steps, weights, most=self.largest**2).astype(object)
        variances = np.zeros(guess.shape[1])
        for _ in range(self.iterations):
            whole = whole_directions(guess)
            noisy = self.noise.add(np.asarray(exactly @ whole), source).astype(np.float64)
            moved = noisy / _FINE / count - np.outer(mean, mean @ (whole.astype(np.float64) / _FINE))
            guess, variances, _ = np.linalg.svd(moved, full_matrices=False)
        return guess, variances


def plan_power(row: RowBounds, calibration: NoiseCalibration, *, share: Fraction, iterations: int) -> Power:
    """Return iterations that have a share together."""
    noise = calibration.gaussian(share / iterations, squared_sensitivity=row.squares**2 * _FINE**2)
    return Power(noise, iterations, row.largest)


def whole_directions(guess: Floats) -> NDArray[Any]:
    """Return directions in whole numbers of 2**-12, of spectral norm at most 1; exactly."""
    factor = float(_FINE)
    # The directions were released before, so that how often they are shrunk tells nothing.
    while True:
        whole = np.trunc(guess * factor).astype(np.int64).astype(object)
        if max(sum(map(abs, row)) for row in whole.T @ whole) <= _FINE**2:
            return np.asarray(whole)
        factor *= 0.995


METHODS = ("analyze_gauss", "noisy_power", "laplace")
CENTERS = ("private", "public", "none")

_FIRST = Fraction(1, 5)


@dataclass(frozen=True, eq=False)
class _Settings:
    grid: RowGrid
    row: RowBounds
    most: int | None
    components: int
    moments: SecondMoments | None = None
    first: FirstMoments | None = None
    power: Power | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, PrivateTransformer):  # type: ignore[misc]  # scikit-learn is not typed
    """Principal component analysis.

    Args:
        n_components: how many components; None is one for each column.
        data_norm: the largest Euclidean norm of a row, measured from 0, or from the middle of the bounds with
            center="public"; longer rows are shrunk. Public. Without it, the bounds say how long a row can be.
        method: "analyze_gauss" or "noisy_power" with a delta, "laplace" without one; None is the first or the last.
        center: "private" subtracts a noisy mean, "public" the middle of the bounds, "none" nothing.
        max_iter: how many iterations "noisy_power" makes.
        scale: "given" measures columns in the units they have, "range" numbers in units of their public range.

    Attributes:
        components_: the components, one in each row, orthonormal.
        explained_variance_: the noisy variance along each of them, in the chosen scale.
        mean_: what is subtracted from rows.
        n_rows_: the noisy number of rows.

    >>> X = [[x / 100, x / 100] for x in range(-100, 101)] * 20
    >>> model = PrivatePCA(n_components=1, epsilon=2, delta=1e-6, bounds=(-1, 1)).fit(X)
    >>> abs(model.components_).round(1).tolist()
    [[0.7, 0.7]]
    """

    needs: ClassVar[str] = "coded"
    learned: ClassVar[tuple[str, ...]] = ("components_", "explained_variance_", "mean_", "n_rows_")

    n_components: int | None = None
    data_norm: Any = None
    method: str | None = None
    center: str = "private"
    max_iter: int = 4
    scale: str = "given"

    components_: Floats = field(init=False)
    explained_variance_: Floats = field(init=False)
    mean_: Floats = field(init=False)
    n_rows_: float = field(init=False)

    # Planning --------------------------------------------------------------------------------------------------------

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        method = self._method(calibration)
        validation.check_choice(self.center, name="center", allowed=CENTERS)
        validation.check_choice(self.scale, name="scale", allowed=SCALES)
        grid, row, most = self._grid(facts)
        settings = _Settings(grid, row, most, self._count(len(grid.origins)))
        if method == "noisy_power":
            return self._plan_power(settings, calibration)
        moments = plan_moments(grid, row, calibration, centered=self.center == "private")
        settings = _Settings(grid, row, most, settings.components, moments=moments)
        steps = (FitStep("second moments", moments.noise.event),)
        return TrainingPlan(steps=steps, settings=settings, outlook=_outlook(moments.noise.deviation, row))

    def _plan_power(self, settings: _Settings, calibration: NoiseCalibration) -> TrainingPlan:
        iterations = validation.check_count(self.max_iter, name="max_iter", at_least=1)
        first = plan_first_moments(settings.row, calibration, share=_FIRST, centered=self.center == "private")
        power = plan_power(settings.row, calibration, share=1 - _FIRST, iterations=iterations)
        steps = [FitStep("number and sums of rows", first.noise.event)]
        steps += [FitStep(f"iteration {number}", power.noise.event) for number in range(1, iterations + 1)]
        planned = _Settings(settings.grid, settings.row, settings.most, settings.components, first=first, power=power)
        return TrainingPlan(
            steps=tuple(steps), settings=planned, outlook=_outlook(power.noise.deviation / 2**12, settings.row)
        )

    def _method(self, calibration: NoiseCalibration) -> str:
        method = self.method or ("laplace" if calibration.is_pure else "analyze_gauss")
        validation.check_choice(method, name="method", allowed=METHODS)
        if (method == "laplace") != calibration.is_pure:
            needs = "has no use for a delta" if method == "laplace" else "needs a delta"
            raise ParameterError(
                f'method="{method}" {needs}.',
                fix='use method="laplace" without a delta, or delta=1e-6 with the others.',
            )
        return method

    def _count(self, width: int) -> int:
        if self.n_components is None:
            return width
        count = validation.check_count(self.n_components, name="n_components", at_least=1)
        if count > width:
            raise ParameterError(
                f"There are {width} columns, so there cannot be {count} components.",
                fix=f"use n_components of at most {width}.",
            )
        return count

    def _grid(self, facts: PublicFacts) -> tuple[RowGrid, RowBounds, int | None]:
        """Return the grid, how long rows are on it, and how long they may stay."""
        origin = {"public": "middle", "none": "zero"}.get(self.center, "inside" if self.data_norm is None else "zero")
        grid = grid_of(facts.encoding, scale=self.scale, origin=origin)
        if self.data_norm is None:
            return grid, grid.row_bounds, None
        norm = validation.check_positive(self.data_norm, name="data_norm")
        most = math.floor(float(norm) * grid.steps_per_unit)
        if most < 1:
            raise ParameterError(
                "data_norm is too small beside the bounds: every row would be shrunk to nothing.",
                fix="give the largest norm that a row can have.",
            )
        if grid.row_bounds.largest**2 * len(grid.origins) >= 2**53:
            raise ParameterError(
                "The bounds are too far from 0 beside their range for exact norms.",
                fix='leave data_norm out, or measure from the middle with center="public".',
            )
        return grid, grid.row_bounds.limited(most, len(grid.origins)), most

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: PublicFacts, rows: CompactRows, plan: TrainingPlan, source: RandomSource) -> None:
        settings: _Settings = plan.settings
        grid, count = settings.grid, settings.components
        if settings.moments is not None:
            products = self._products(facts, rows, settings)
            moments = settings.moments.release_products(products, source)
            mean, self.n_rows_ = moments.mean, moments.count
            values, vectors = np.linalg.eigh(moments.covariance if len(mean) else moments.products)
            values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
            self._note_noise(moments.deviation, len(grid.origins), float(values[0]))
        else:
            steps = grid.steps(facts.encoding.matrix_of(rows.parts), most=settings.most)
            vectors, values, mean = self._by_power(settings, steps, rows.weights, source)
        self.mean_ = grid.values(mean if self.center == "private" else np.zeros(len(grid.origins)))
        self.components_ = _with_signs(vectors.T)
        self.explained_variance_ = np.maximum(values, 0.0) / grid.steps_per_unit**2

    def _products(self, facts: PublicFacts, rows: CompactRows, settings: _Settings) -> Products:
        """Return the exact products of columns; categories stay positions unless a row is shrunk or shifted."""
        grid = settings.grid
        if settings.most is None and self.center != "public":
            products = products_of_coded(grid, rows)
            if products is not None:
                return products
        steps = grid.steps(facts.encoding.matrix_of(rows.parts), most=settings.most)
        return products_of(steps, rows.weights, most=settings.row.largest)

    def _by_power(
        self, settings: _Settings, steps: Floats, weights: NDArray[np.int64], source: RandomSource
    ) -> tuple[Floats, Floats, Floats]:
        first, power = settings.first, settings.power
        count, mean = first.release(steps, weights, source)  # type: ignore[union-attr]  # planned
        self.n_rows_ = count
        # A random start has a part of every direction, and looks at nothing.
        words = source.words(len(settings.grid.origins) * settings.components).astype(np.float64) / 2.0**64 - 0.5
        guess, _ = np.linalg.qr(words.reshape(len(settings.grid.origins), settings.components))
        vectors, values = power.release(  # type: ignore[union-attr]  # planned
            steps, weights, source, guess=guess, mean=mean, count=count
        )
        deviation = power.noise.deviation / 2**12 / count  # type: ignore[union-attr]  # planned
        self._note_noise(deviation, len(mean), float(values[0]))
        return vectors, values, mean

    def _note_noise(self, deviation: float, width: int, largest: float) -> None:
        """Say, from what is released already, that noise alone would look like this."""
        if 2.5 * deviation * math.sqrt(width) > largest:
            self._note(
                "There are too few rows for this epsilon: noise alone would show as much variance as the first "
                "component."
            )

    # What costs nothing ----------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Return the share of each component in the noisy variance of all components kept."""
        return self.explained_variance_ / max(float(self.explained_variance_.sum()), 1e-300)

    def _units(self) -> Floats:
        lows, highs = self.encoding_.bounds
        return highs - lows if self.scale == "range" else np.ones(len(lows))

    def transform(self, X: Any) -> Floats:
        """Return rows as coordinates along the components; numbers are clipped to their bounds first."""
        features = np.clip(self._encoded(X), *self.encoding_.bounds)
        return product_apart((features - self.mean_) / self._units(), self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Return encoded rows for coordinates along the components."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ * self._units() + self.mean_)

    def plot(self) -> Figure:
        """Return a chart of the noisy variance along each component."""
        from cloister.plotting import bars_with_errors

        return bars_with_errors(
            [f"{place + 1}" for place in range(len(self.components_))],
            self.explained_variance_.tolist(),
            title="Variance along the components",
            x="Component",
            y="Variance",
            subtitle=self.guarantee_.brief(),
        )


def _with_signs(components: Floats) -> Floats:
    """Return components of which the largest entry is positive."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * np.where(signs == 0, 1.0, signs)[:, None])


def _outlook(deviation: float, row: RowBounds) -> FitOutlook:
    return FitOutlook(rows=deviation / row.squares, what="a variance", compared="the largest that a variance can be")
