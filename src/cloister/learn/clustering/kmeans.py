"""k-means whose centers come from noisy sizes and sums (DPLloyd and its successors).

Each round assigns every row to its nearest center, and moves each center to the noisy mean of its rows, clamped to
where a mean can lie. The number of rounds is fixed beforehand. Centers start where no row says (``init="box"`` and
``"packing"``), or at a noisy sketch that has its share of the budget (``"sketch"``, see `starting`); k-means++ on the
rows, or the best of several runs, would not be private.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed. Given the centers,
which follow from noise and earlier releases, a row is in one cluster, and which one depends on that row alone: rows and
centers are whole numbers, and so are their squared distances. The row adds itself to the sum of the cluster and a
constant to its size, so it moves a round by at most the L1 or L2 norm of the longest row; `rounds` says how that is
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
from cloister.errors import ParameterError
from cloister.learn.base import Plan, PrivateClusterer, estimators
from cloister.learn.clustering.rounds import SPLITS, Round, nearest_centers, plan_round
from cloister.learn.clustering.starting import Sketch, plan_sketch, spread_centers, uniform_centers
from cloister.learn.grid import SCALES, Grid, grid_of
from cloister.learn.outlook import Outlook
from cloister.learn.reading import Facts
from cloister.learn.rows import Floats, Rows
from cloister.mechanisms.allowance import Allowance
from cloister.plotting import Figure

__all__ = ["PrivateKMeans"]

INITS = ("sketch", "box", "packing")


@dataclass(frozen=True, eq=False)
class _Settings:
    grid: Grid
    sketch: Sketch | None
    round: Round
    rounds: int


@estimators.register("kmeans")
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

    def _plan(self, facts: Facts, allowance: Allowance) -> Plan:
        self._check(allowance)
        grid = grid_of(facts.encoding, scale=self.scale)
        rounds, sketch, rest = self._rounds(allowance), None, Fraction(1)
        if self.init == "sketch":
            moments, histogram = (
                (Fraction(5, 10), Fraction(1, 10)) if allowance.is_pure else (Fraction(2, 5), Fraction(1, 5))
            )
            sketch, rest = plan_sketch(grid, allowance, moments=moments, histogram=histogram), Fraction(2, 5)
        single = plan_round(grid, allowance, split=self.split, share=rest / rounds)
        steps = () if sketch is None else sketch.steps
        for number in range(1, rounds + 1):
            steps += single.steps(number)
        return Plan(
            steps=steps,
            settings=_Settings(grid, sketch, single, rounds),
            outlook=_outlook(single, int(self.n_clusters)),
        )

    def _check(self, allowance: Allowance) -> None:
        validation.check_count(self.n_clusters, name="n_clusters", at_least=1)
        validation.check_choice(self.scale, name="scale", allowed=SCALES)
        validation.check_choice(self.split, name="split", allowed=SPLITS)
        if not isinstance(self.init, str) or self.init not in INITS:
            raise ParameterError(
                "Centers must start where no row says; other starting points could come from the data.",
                fix='use init="sketch", "box" or "packing".',
            )
        if self.split != "balanced" and not allowance.is_pure:
            raise ParameterError(
                f'split="{self.split}" uses Laplace noise, and has no use for a delta.',
                fix='leave delta out, or use split="balanced".',
            )

    def _rounds(self, allowance: Allowance) -> int:
        if self.max_iter is not None:
            return validation.check_count(self.max_iter, name="max_iter", at_least=1)
        if self.init == "sketch":
            return 1 if allowance.is_pure else 2
        return 3 if allowance.epsilon < Fraction(1, 2) else 7

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: Facts, rows: Rows, plan: Plan, source: RandomSource) -> None:  # noqa: ARG002  # planned with
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

    def _placed(self, X: Any) -> tuple[Floats, Floats, Grid]:
        """Return rows and centers in steps."""
        features = self._encoded(X)
        grid = grid_of(self.encoding_, scale=self.scale)
        return grid.steps(features), np.rint((self.cluster_centers_ - grid.origins) / grid.sizes), grid

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the nearest center of each row. For rows that were learned from, that is not private."""
        steps, centers, _ = self._placed(X)
        return nearest_centers(steps, centers)

    def transform(self, X: Any) -> Floats:
        """Return the distance of each row to each center, in the unit of distances."""
        steps, centers, grid = self._placed(X)
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


def _outlook(single: Round, clusters: int) -> Outlook:
    """Return what is known of a cluster that has its share of the rows, in the column where most is known."""
    noise = max(float((single.sum_deviations() / single.grid.limits).min()), single.size_deviation)
    return Outlook(rows=clusters * noise, what="a center", compared="half of the public range of every column")
