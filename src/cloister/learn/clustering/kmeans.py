"""k-means whose centers come from noisy sizes and sums (DPLloyd and its successors).

Each round assigns every row to its nearest center, and moves each center to the noisy mean of its rows, clamped to
where a mean can lie. The number of rounds is fixed beforehand. Centers start where no row says (``init="box"`` and
``"packing"``), or at a noisy sketch that has its share of the budget (``"sketch"``, see `_initial_centers`); k-means++
on the rows, or the best of several runs, would not be private.

A row is in one cluster. It adds 1 to the size and itself to the sum, so what differs between the ways to spend the
epsilon of a round is only how it is divided, and in which unit sizes are counted:

- ``balanced``, the default: sizes and sums in one release, sizes weighed so that their noise matters as much as that of
  the sums. With a delta it is Gaussian, and all rounds are accounted together.
- ``dplloyd`` (Blum, Dwork, McSherry and Nissim 2005): one release of sizes and sums, where a size counts as one unit;
  for d numbers in [-r, r] the scale is (1 + d r) T / epsilon.
- ``lecture``: half of epsilon for sizes, half for sums; scales 2T / epsilon and 2T d r / epsilon. (The second is often
  printed without d, which holds for d = 1 only.)
- ``su`` (Su, Cao, Li, Bertino and Jin 2016): each feature has its share, and sizes cbrt(4 d 0.225**2) times as much.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed. Given the centers,
which follow from noise and earlier releases, a row is in one cluster, and which one depends on that row alone: rows and
centers are whole numbers, and so are their squared distances. The row adds itself to the sum of the cluster and a
constant to its size, so it moves a round by at most the L1 or L2 norm of the longest row; `LloydRound` says how that is
paid for. Rounds and sketch compose. Members, their labels and the inertia of the training rows are not released.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats, exact_product
from cloister.errors import ParameterError
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._row_grid import SCALES, RowGrid, grid_of
from cloister.learn._rows import WeightedRows
from cloister.learn._second_moments import column_sums, weight_of_count
from cloister.learn.base import PrivateClusterer, TrainingPlan
from cloister.learn.clustering._initial_centers import Sketch, plan_sketch, spread_centers, uniform_centers
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise
from cloister.plotting import Figure

__all__ = ["SPLITS", "LloydRound", "PrivateKMeans", "nearest_centers", "plan_round"]


SPLITS = ("balanced", "dplloyd", "lecture", "su")

_CERTAIN = 3.0
"""A center moves if its noisy size is so many standard deviations above 0."""


@dataclass(frozen=True, eq=False)
class LloydRound:
    """What one round releases: the noise of sizes, and of the sums of groups of columns."""

    grid: RowGrid
    constant: int
    parts: tuple[tuple[slice, StepNoise, str], ...]
    """Columns, the size being the first, their noise, and what they are."""

    def steps(self, number: int) -> tuple[FitStep, ...]:
        """Return what a round pays for."""
        return tuple(FitStep(f"round {number}: {label}", noise.event) for _, noise, label in self.parts)

    @property
    def size_deviation(self) -> float:
        """Return the standard deviation of the noise of a size, in rows."""
        return self.parts[0][1].deviation / self.constant

    def sum_deviations(self) -> Floats:
        """Return the standard deviation of the noise of each sum, in steps."""
        found = np.zeros(1 + len(self.grid.origins))
        for columns, noise, _ in self.parts:
            found[columns] = noise.deviation
        return found[1:]

    def move(
        self, centers: Floats, steps: Floats, weights: NDArray[np.int64], source: RandomSource
    ) -> tuple[Floats, Floats]:
        """Return the centers after a round, and the noisy sizes; a center without enough rows stays."""
        nearest = nearest_centers(steps, centers)
        members = (nearest[:, None] == np.arange(len(centers))).astype(np.float64)
        sums = exact_product(steps, members, weights, most=self.grid.row_bounds.largest).T
        exactly = np.concatenate([self.constant * column_sums(members, weights, most=1)[:, None], sums], axis=1)
        noisy = np.zeros(exactly.shape)
        for part, noise, _ in self.parts:
            noisy[:, part] = noise.add(exactly[:, part], source).astype(np.float64)
        sizes = noisy[:, 0] / self.constant
        moved = self.grid.inside(noisy[:, 1:] / np.maximum(sizes, 1.0)[:, None])
        # Centers stay whole numbers, on which exact distances in the next round rest.
        return np.where(self.enough(sizes)[:, None], np.rint(moved), centers), sizes

    def enough(self, sizes: Floats) -> NDArray[np.bool_]:
        """Return which noisy sizes stand out of the noise."""
        return sizes > max(1.0, _CERTAIN * self.size_deviation)


def nearest_centers(steps: Floats, centers: Floats) -> NDArray[np.int64]:
    """Return the position of the nearest center, the first of several; exactly, since all are whole numbers."""
    # The square of the row itself is the same for all centers; without it the numbers stay small.
    return np.asarray(((centers * centers).sum(axis=1) - 2.0 * (steps @ centers.T)).argmin(axis=1))


def plan_round(grid: RowGrid, calibration: NoiseCalibration, *, split: str, share: Fraction) -> LloydRound:
    """Return one round that has a share of everything."""
    row, width = grid.row_bounds, len(grid.origins)
    everything = slice(0, width + 1)
    unit = max(1, round(grid.steps_per_unit))
    match split:
        case "balanced":
            constant = weight_of_count(row, width, pure=calibration.is_pure)
            noise = calibration.noise(
                share, sensitivity=row.total + constant, squared_sensitivity=row.squares + constant**2
            )
            return LloydRound(grid, constant, ((everything, noise, "sizes and sums"),))
        case "dplloyd":
            together = calibration.laplace(share, sensitivity=unit + row.total)
            return LloydRound(grid, unit, ((everything, together, "sizes and sums"),))
        case "lecture":
            sizes = calibration.laplace(share / 2, sensitivity=unit)
            sums = calibration.laplace(share / 2, sensitivity=row.total)
            return LloydRound(grid, unit, ((slice(0, 1), sizes, "sizes"), (slice(1, width + 1), sums, "sums")))
        case _:
            return LloydRound(grid, unit, _su_parts(grid, calibration, unit, share))


def _su_parts(
    grid: RowGrid, calibration: NoiseCalibration, unit: int, share: Fraction
) -> tuple[tuple[slice, StepNoise, str], ...]:
    """Return sizes and each feature by itself; a category counts as one, since a row has one of its values at most."""
    count = len(grid.parts)
    ratio = Fraction(round((4 * count * 0.225**2) ** (1 / 3) * 2**20), 2**20)
    each = share / (count + ratio)
    parts: list[tuple[slice, StepNoise, str]] = [
        # What is left, and not a multiple of the ratio, so that all shares add up to exactly the whole.
        (slice(0, 1), calibration.laplace(share - count * each, sensitivity=unit), "sizes")
    ]
    for place, part in enumerate(grid.parts):
        noise = calibration.laplace(each, sensitivity=int(grid.limits[part].max()))
        parts.append((slice(part.start + 1, part.stop + 1), noise, f"sums of feature {place}"))
    return tuple(parts)


INITS = ("sketch", "box", "packing")


@dataclass(frozen=True, eq=False)
class _Settings:
    grid: RowGrid
    sketch: Sketch | None
    round: LloydRound
    rounds: int


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateClusterer):  # type: ignore[misc]  # scikit-learn is not typed
    """k-means clustering.

    By default three fifths of the budget buy a sketch to start from, and one round (two with a delta) of moving centers
    follows. From the box there are 3 rounds below epsilon 0.5 and 7 from there on. These numbers, and the shares, were
    chosen once, on the training file of Adult with 49 columns and on no other data.

    Args:
        n_clusters: how many clusters.
        max_iter: how many rounds are made and paid for; None is the rule above.
        split: how a round spends its share: "balanced", or without a delta "dplloyd", "lecture" or "su".
        init: where centers start: "sketch" (paid), "box" or "packing" (random, free).
        scale: "range" measures distances in units of the public range of each number, so that no feature dominates
            because of its unit; "given" in the units that the numbers have, as scikit-learn does.

    Attributes:
        cluster_centers_: the centers.
        cluster_sizes_: the noisy number of rows of each cluster, as the last round found them.
        n_iter_: how many rounds were made.

    >>> X = [[2.0, 1.0], [8.0, 9.0]] * 1000
    >>> model = PrivateKMeans(n_clusters=2, epsilon=2, bounds=(0, 10)).fit(X)
    >>> sorted(model.cluster_centers_.round().astype(int).tolist())
    [[2, 1], [8, 9]]
    """

    learned: ClassVar[tuple[str, ...]] = ("cluster_centers_", "cluster_sizes_", "n_iter_")

    n_clusters: int = 8
    max_iter: int | None = None
    split: str = "balanced"
    init: Any = "sketch"
    scale: str = "range"

    cluster_centers_: Floats = field(init=False)
    cluster_sizes_: Floats = field(init=False)
    n_iter_: int = field(init=False)

    # Planning --------------------------------------------------------------------------------------------------------

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        self._check(calibration)
        grid = grid_of(facts.encoding, scale=self.scale)
        rounds, sketch, rest = self._rounds(calibration), None, Fraction(1)
        if self.init == "sketch":
            moments, histogram = (
                (Fraction(5, 10), Fraction(1, 10)) if calibration.is_pure else (Fraction(2, 5), Fraction(1, 5))
            )
            sketch, rest = plan_sketch(grid, calibration, moments=moments, histogram=histogram), Fraction(2, 5)
        single = plan_round(grid, calibration, split=self.split, share=rest / rounds)
        steps = () if sketch is None else sketch.steps
        for number in range(1, rounds + 1):
            steps += single.steps(number)
        return TrainingPlan(
            steps=steps,
            settings=_Settings(grid, sketch, single, rounds),
            outlook=_outlook(single, int(self.n_clusters)),
        )

    def _check(self, calibration: NoiseCalibration) -> None:
        validation.check_count(self.n_clusters, name="n_clusters", at_least=1)
        validation.check_choice(self.scale, name="scale", allowed=SCALES)
        validation.check_choice(self.split, name="split", allowed=SPLITS)
        if not isinstance(self.init, str) or self.init not in INITS:
            raise ParameterError(
                "Centers must start where no row says; other starting points could come from the data.",
                fix='use init="sketch", "box" or "packing".',
            )
        if self.split != "balanced" and not calibration.is_pure:
            raise ParameterError(
                f'split="{self.split}" uses Laplace noise, and has no use for a delta.',
                fix='leave delta out, or use split="balanced".',
            )

    def _rounds(self, calibration: NoiseCalibration) -> int:
        if self.max_iter is not None:
            return validation.check_count(self.max_iter, name="max_iter", at_least=1)
        if self.init == "sketch":
            return 1 if calibration.is_pure else 2
        return 3 if calibration.epsilon < Fraction(1, 2) else 7

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:  # noqa: ARG002  # planned with
        settings: _Settings = plan.settings
        grid, count = settings.grid, int(self.n_clusters)
        steps = grid.steps(rows.features)
        if settings.sketch is not None:
            centers = settings.sketch.centers(count, steps, rows.weights, source)
        else:
            centers = (uniform_centers if self.init == "box" else spread_centers)(grid, count, source)
        sizes = np.zeros(count)
        for _ in range(settings.rounds):
            centers, sizes = settings.round.move(centers, steps, rows.weights, source)
        if not settings.round.enough(sizes).any():
            self._note(
                "There are too few rows for this epsilon: no cluster stands out of the noise, and no center was moved."
            )
        self.cluster_centers_, self.cluster_sizes_ = grid.values(centers), sizes
        self.n_iter_ = settings.rounds

    # What costs nothing ----------------------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _place_rows(self, X: Any) -> tuple[Floats, Floats, RowGrid]:
        """Return rows and centers in steps."""
        features = self._encoded(X)
        grid = grid_of(self.encoding_, scale=self.scale)
        return grid.steps(features), np.rint((self.cluster_centers_ - grid.origins) / grid.sizes), grid

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest center of each row. For rows that were learned from, that is not private."""
        steps, centers, _ = self._place_rows(X)
        return nearest_centers(steps, centers)

    def transform(self, X: Any) -> Floats:
        """Return the distance of each row to each center, in the unit of distances."""
        steps, centers, grid = self._place_rows(X)
        squared = (steps * steps).sum(axis=1)[:, None] + (centers * centers).sum(axis=1) - 2.0 * (steps @ centers.T)
        return np.asarray(np.sqrt(squared) / grid.steps_per_unit)

    def unsafe_inertia(self, X: Any) -> float:
        """Return the sum of squared distances to the nearest centers: for who holds the rows, it is not private."""
        return float((self.transform(X).min(axis=1) ** 2).sum())

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002  # as scikit-learn has it
        """Return minus the sum of squared distances of other rows to their nearest centers."""
        return -self.unsafe_inertia(X)

    def plot(self) -> Figure:
        """Return a chart of the centers: where each lies between the bounds of each column."""
        from cloister.plotting import heatmap

        lows, highs = self.encoding_.bounds
        return heatmap(
            [f"{place}: about {max(0, round(size)):,} rows" for place, size in enumerate(self.cluster_sizes_)],
            list(self.encoding_.names),
            (self.cluster_centers_ - lows) / (highs - lows),
            title="Centers of the clusters",
            x="Column",
            y="Cluster",
            legend="From lowest (0) to highest (1)",
            subtitle=self.guarantee_.brief(),
        )


def _outlook(single: LloydRound, clusters: int) -> FitOutlook:
    """Return what is known of a cluster that has its share of the rows, in the column where most is known."""
    noise = max(float((single.sum_deviations() / single.grid.limits).min()), single.size_deviation)
    return FitOutlook(rows=clusters * noise, what="a center", compared="half of the public range of every column")
