"""Scaling and binning under budget: what a pipeline does to numbers before a model learns from them.

**Scaling** (`PrivateScaler`) is by public bounds, which costs nothing, or by noisy means and standard deviations. A
scaler that is fitted to private rows without noise gives away their extremes or their exact mean, and every model after
it stands on that leak. Here ``method="public"`` uses the bounds, which are public, so the price is 0; the method
``"standard"`` pays for a noisy number of rows, sums and sums of squares. What comes out is clipped to ``limit``
standard deviations, so that the next step of a pipeline has public bounds again: ``bounds=(-limit, limit)``.

Privacy of scaling: claim (epsilon, delta)-DP for one row added or removed. On a grid of 2**15 steps from the middle of
the bounds to an end, a row adds 2**15 to the number of rows (in steps), at most 2**15 to each sum, and at most 2**14 to
each sum of squares, counted from the middle of its range: 2**15 (1 + 1.5 F) in L1 and 2**30 (1 + 1.25 F) in squared
L2, for F numbers.

**Binning** (`PrivateQuantileBins`) cuts numbers so that bins hold about as many rows each, between private quantiles.
Every edge is chosen by the exponential mechanism's better sibling (`cloister.mechanisms.Select`) among the ends of a
public grid, the middle edge first, then the middle edges on both sides of it, and so on (Kaplan, Schnapp and Stemmer
2022): rows on the two sides of an edge are disjoint, so a level of edges costs as much as one.

Privacy of binning: claim epsilon-DP for one row added or removed. For an edge that should have a share p/q of the rows
of an interval below it, the score of a candidate is -|q * below - p * all|. A row in the interval moves it by at most
max(p, q - p), both numbers being whole. Intervals of one level depend on the edges released before only, and a row is
in one of them; levels and features compose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product, whole_steps
from cloister.errors import ParameterError
from cloister.learn._encoding import Encoding
from cloister.learn._features import Numeric
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateTransformer, TrainingPlan
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise
from cloister.mechanisms.selection import Select

__all__ = ["PrivateQuantileBins", "PrivateScaler"]


METHODS = ("public", "standard")

_BITS = 15
_FLOOR = 1e-3


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

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        validation.check_choice(self.method, name="method", allowed=METHODS)
        validation.check_between(self.limit, name="limit", lowest=1e-6, highest=1e6)
        if self.method == "public":
            return TrainingPlan(steps=())
        width = int(_is_number(facts.encoding).sum())
        if not width:
            raise ParameterError("There are no numbers to scale.", fix='use method="public", or leave the scaler out.')
        step = 2**_BITS
        noise = calibration.noise(
            Fraction(1),
            sensitivity=step + width * (step + step // 2),
            squared_sensitivity=step**2 + width * (step**2 + (step // 2) ** 2),
        )
        outlook = FitOutlook(
            rows=noise.deviation / step, what="the mean of a column", compared="half of its public range"
        )
        steps = (FitStep("number of rows, sums and squares", noise.event),)
        return TrainingPlan(steps=steps, settings=noise, outlook=outlook)

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        lows, highs = facts.encoding.bounds
        number = _is_number(facts.encoding)
        self.mean_, self.scale_ = np.where(number, lows, 0.0), np.where(number, highs - lows, 1.0)
        self.n_rows_ = None
        if plan.settings is not None:
            self._set_moments(facts.encoding, number, rows, plan.settings, source)

    def _set_moments(
        self, encoding: Encoding, number: NDArray[np.bool_], rows: WeightedRows, noise: StepNoise, source: RandomSource
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


ENCODINGS = ("ordinal", "onehot")


@dataclass(frozen=True, slots=True)
class _Settings:
    epsilon: Fraction
    """Of one edge."""
    cells: int


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateQuantileBins(PrivateTransformer):
    """Cuts numbers at private quantiles, the same share of epsilon for each feature.

    Args:
        n_bins: how many bins for each feature; where many rows have one value, fewer come out.
        encode: "ordinal" gives the position of the bin, "onehot" one column per bin.
        n_cells: how fine the public grid of possible edges is, per feature.

    Attributes:
        edges_: the inner edges of the bins of each feature, ascending.

    >>> rows = [[x / 10] for x in range(1000)]
    >>> bins = PrivateQuantileBins(n_bins=4, epsilon=3, bounds=(0, 1000)).fit(rows)
    >>> (abs(bins.edges_[0] - [25, 50, 75]) < 15).all()
    np.True_
    """

    learned: ClassVar[tuple[str, ...]] = ("edges_",)

    n_bins: int = 5
    encode: str = "ordinal"
    n_cells: int = 1000

    edges_: list[Floats] = field(init=False)

    # Planning --------------------------------------------------------------------------------------------------------

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        validation.check_choice(self.encode, name="encode", allowed=ENCODINGS)
        bins = validation.check_count(self.n_bins, name="n_bins", at_least=2)
        cells = validation.check_count(self.n_cells, name="n_cells", at_least=bins)
        if not calibration.is_pure:
            raise ParameterError("Quantiles are chosen with epsilon alone.", fix="leave delta out.")
        if not facts.encoding.is_numeric:
            raise ParameterError(
                "Bins are for numbers, and there are categories.", fix="name the numbers in features=[...]."
            )
        levels = (bins - 1).bit_length()
        epsilon = calibration.epsilon / (levels * len(facts.encoding.features))
        outlook = FitOutlook(
            rows=_edge(1, 2, epsilon, cells + 1).shortfall(),
            what="the number of rows below an edge",
            compared="half of all rows",
        )
        steps = tuple(
            FitStep(f"feature {place}: level {level} of edges", _edge(1, 2, epsilon, cells + 1).event)
            for place in range(len(facts.encoding.features))
            for level in range(1, levels + 1)
        )
        return TrainingPlan(steps=steps, settings=_Settings(epsilon, cells), outlook=outlook)

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        edges = []
        for place, feature in enumerate(facts.encoding.features):
            counts = _counts(rows.features[:, place], rows.weights, feature, plan.settings.cells)  # type: ignore[arg-type]  # checked
            chosen = _edges(counts, int(self.n_bins), plan.settings.epsilon, source)
            low, high = facts.encoding.bounds[0][place], facts.encoding.bounds[1][place]
            edges.append(low + (high - low) * np.unique(chosen) / plan.settings.cells)
        self.edges_ = edges

    # What costs nothing ----------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Floats:
        """Return the bins of rows: positions, or one column for each bin. An edge belongs to the bin above it."""
        features = self._encoded(X)
        codes = [np.searchsorted(edges, features[:, place], side="right") for place, edges in enumerate(self.edges_)]
        if self.encode == "ordinal":
            return np.stack(codes, axis=1).astype(np.float64)
        parts = [code[:, None] == np.arange(len(edges) + 1) for code, edges in zip(codes, self.edges_, strict=True)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002  # as scikit-learn has it
        """Return the names of the columns that come out."""
        names = self.encoding_.columns
        if self.encode == "ordinal":
            return np.array(names, dtype=object)
        listed = [
            f"{name}={place}" for name, edges in zip(names, self.edges_, strict=True) for place in range(len(edges) + 1)
        ]
        return np.array(listed, dtype=object)


def _counts(values: Floats, weights: NDArray[np.int64], feature: Numeric, cells: int) -> NDArray[np.int64]:
    """Return how many rows lie in each cell of the grid."""
    scaled = (np.clip(values, feature.low, feature.high) - feature.low) / (feature.high - feature.low) * cells
    # The upper bound itself belongs to the last cell.
    places = np.clip(np.floor(scaled), 0, cells - 1).astype(np.int64)
    totals = np.zeros(cells, dtype=np.int64)
    np.add.at(totals, places, weights)
    return totals


def _edges(counts: NDArray[np.int64], bins: int, epsilon: Fraction, source: RandomSource) -> list[int]:
    """Return the ends of cells, ascending, between which the bins lie."""
    if bins < 2:
        return []
    below = bins // 2
    inside = np.concatenate([[0], np.cumsum(counts)])
    # Multiplied out by the number of bins, so that scores are whole numbers and move by whole numbers.
    scores = -np.abs(bins * inside - below * inside[-1])
    edge = _edge(below, bins, epsilon, len(scores)).release(scores, random_state=source).index
    left = _edges(counts[:edge], below, epsilon, source)
    right = _edges(counts[edge:], bins - below, epsilon, source)
    return [*left, edge, *(edge + place for place in right)]


def _edge(share: int, whole: int, epsilon: Fraction, candidates: int) -> Select:
    return Select(
        candidates=tuple(range(candidates)), score_sensitivity=Fraction(max(share, whole - share)), epsilon=epsilon
    )
