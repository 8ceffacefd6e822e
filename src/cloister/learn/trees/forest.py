"""Private trees and forests: splits chosen privately among public ones, or at random, and noisy counts in the leaves.

After Friedman and Schuster (2010), who choose splits by the exponential mechanism, and Fletcher and Islam (2017), who
give each tree rows of its own. Numbers are split at public edges only. Splits are chosen by permute-and-flip, a
leaf keeps its noisy class counts, and a forest averages the class probabilities of its trees.

From noisy class counts of leaves to probabilities, by what is known of the nodes above: the counts of a node are the
sums of those of the leaves below it, so a tree of noisy leaves has noisy counts everywhere, at no further cost. Noise
makes small leaves worthless; each node therefore starts with what its parent believes, at the weight of so many rows as
the noise of its counts, going down from equal probabilities at the root.

Privacy: claim epsilon-DP, or (epsilon, delta)-DP, for one row added or removed. See `_splits` for choices and for a
tree: its levels and its leaves share epsilon. In a forest with disjoint rows, every row goes to one tree by a fair die
of its own, whatever the data are. Fix the dice of all other rows: a further row changes what one tree sees, whichever
that is, so the trees together cost what one of them costs, and averaging over the dice keeps that. With shared rows the
trees share epsilon, and their leaf counts are one vector of which a row moves one count per tree by one: m in L1 and in
squared L2, for m trees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import RepeatedEvent
from cloister.core.random import RandomSource, integers_below, permutation
from cloister.core.validation import check_choice, check_count, check_positive
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn._encoding import FeatureBins, Integers, bins_of
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateClassifier, TrainingPlan
from cloister.learn.trees._splits import (
    CRITERIA,
    Sample,
    SplitCandidates,
    Splitter,
    TreeGrowth,
    candidates_of,
    leaves_of,
)
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise

__all__ = ["PrivateForest", "PrivateTree", "leaf_probabilities"]


def leaf_probabilities(noisy: NDArray[np.float64], *, deviation: float) -> Floats:
    """Return the class probabilities of each leaf.

    Args:
        noisy: (leaves, classes) noisy counts; the number of leaves is a power of two.
        deviation: the standard deviation of the noise of one count.
    """
    levels = [noisy]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 2, noisy.shape[1]).sum(axis=1))
    beliefs = np.full((1, noisy.shape[1]), 1 / noisy.shape[1])
    for counts in reversed(levels):
        below = len(noisy) // len(counts)
        weight = max(noisy.shape[1] * deviation * math.sqrt(below), 1.0)
        beliefs = np.repeat(beliefs, len(counts) // len(beliefs), axis=0)
        positive = np.maximum(counts, 0.0)
        beliefs = (positive + weight * beliefs) / (positive.sum(axis=1, keepdims=True) + weight)
    return beliefs


_DEEPEST = 14
_MOST_TREES = 1000
_LEAVES = Fraction(3, 10)
"""The share of the leaves, where splits are chosen privately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    bins: FeatureBins
    growth: TreeGrowth
    leaf_noise: StepNoise
    trees: int
    is_disjoint: bool
    features: int


@dataclass(kw_only=True, eq=False, repr=False)
class _PrivateTrees(PrivateClassifier):
    """What a tree and a forest share.

    Args:
        depth: how many splits lead to a leaf; by default a public rule in epsilon.
        splits: "greedy", chosen privately, or "random", which leaves all of epsilon to the leaves.
        criterion: by what greedy splits are chosen, "gini" or "majority".
        bins: into how many bins of equal width each number is cut; or {column: number or edges}.
    """

    learned: ClassVar[tuple[str, ...]] = ("splits_", "probabilities_")

    depth: int | None = None
    splits: str = "greedy"
    criterion: str = "gini"
    bins: Any = 32

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        check_choice(self.splits, name="splits", allowed=("greedy", "random"))
        check_choice(self.criterion, name="criterion", allowed=CRITERIA)
        bins = bins_of(facts.encoding, self.bins)
        trees, is_disjoint = self._shape(calibration)
        depth = self._depth(calibration)
        # Disjoint trees see different rows, and together cost what one of them costs.
        sharing = 1 if is_disjoint else trees
        leaf_noise = self._leaf_noise(calibration, sharing)
        splitter = self._splitter(calibration, depth * sharing)
        steps = [FitStep("class counts of the leaves", leaf_noise.event)]
        if splitter is not None:
            steps.insert(0, FitStep("splits of all levels", RepeatedEvent(event=splitter.event, count=depth * sharing)))
        settings = _Settings(
            bins=bins,
            growth=TreeGrowth(
                depth=depth, classes=len(facts.target.classes or ()), cells=bins.cells, splitter=splitter
            ),
            leaf_noise=leaf_noise,
            trees=trees,
            is_disjoint=is_disjoint,
            features=self._features_per_tree(len(bins.features), trees),
        )
        return TrainingPlan(steps=tuple(steps), settings=settings, outlook=_outlook(settings))

    def _shape(self, calibration: NoiseCalibration) -> tuple[int, bool]:  # noqa: ARG002  # a forest looks at it
        """Return how many trees there are, and whether each has rows of its own."""
        return 1, True

    def _features_per_tree(self, width: int, trees: int) -> int:  # noqa: ARG002  # a forest looks at it
        return width

    def _depth(self, calibration: NoiseCalibration) -> int:
        if self.depth is None:
            return _rule(5 + 1.5 * math.log10(float(calibration.epsilon)), most=8)
        depth = check_count(self.depth, name="depth", at_least=1)
        if depth > _DEEPEST:
            raise ParameterError(f"A depth above {_DEEPEST} leaves no rows in most leaves.", fix="use depth=8 or less.")
        return depth

    def _leaf_noise(self, calibration: NoiseCalibration, sharing: int) -> StepNoise:
        if self.splits == "random":
            return calibration.noise(Fraction(1), sensitivity=sharing, squared_sensitivity=sharing)
        return calibration.laplace(_LEAVES, sensitivity=sharing)

    def _splitter(self, calibration: NoiseCalibration, choices: int) -> Splitter | None:
        if self.splits == "random":
            return None
        return Splitter(criterion=self.criterion, epsilon=calibration.epsilon * (1 - _LEAVES) / choices)

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:  # noqa: ARG002
        settings: _Settings = plan.settings
        sample = Sample(settings.bins.codes(rows.features), np.asarray(rows.target, dtype=np.int64), rows.weights)
        candidates = candidates_of(settings.bins)
        splits, counts = [], []
        for part in _parts(sample, settings, source):
            chosen = settings.growth.splits(part, _some(candidates, settings.features, source), source)
            splits.append(chosen)
            counts.append(settings.growth.leaf_counts(part, chosen, candidates.ordered))
        # The leaves of all trees get their noise at once: it is calibrated to how far a row moves them
        # together.
        noisy = settings.leaf_noise.add(np.stack(counts), source).astype(np.float64)
        self.splits_ = np.stack(splits)
        self.probabilities_ = np.stack(
            [leaf_probabilities(tree, deviation=settings.leaf_noise.deviation) for tree in noisy]
        )

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, for each row; costs nothing."""
        return self._scores(self._encoded(X))

    def _scores(self, features: Floats) -> Floats:
        bins = bins_of(self.encoding_, self.bins)
        codes, ordered = bins.codes(features), candidates_of(bins).ordered
        total = np.zeros((len(codes), len(self.classes_)))
        for splits, probabilities in zip(self.splits_, self.probabilities_, strict=True):
            total += probabilities[leaves_of(splits, ordered, codes)]
        return total / len(self.splits_)


def _outlook(settings: _Settings) -> FitOutlook:
    """Return how the noise of the leaves on one side of the first split compares with half of the rows of a tree."""
    half = settings.leaf_noise.deviation * math.sqrt(2 ** (settings.growth.depth - 1))
    return FitOutlook(
        rows=2 * half * (settings.trees if settings.is_disjoint else 1),
        what="a class count on one side of the first split",
        compared="half of the rows of a tree",
    )


def _rule(wished: float, *, most: int) -> int:
    return max(1, min(most, round(wished)))


def _parts(sample: Sample, settings: _Settings, source: RandomSource) -> list[Sample]:
    """Return the rows of each tree."""
    if not settings.is_disjoint or settings.trees == 1:
        return [sample] * settings.trees
    return [sample.of(weights) for weights in _deal_rows(sample.weights, settings.trees, source)]


def _deal_rows(weights: NDArray[np.int64], trees: int, source: RandomSource) -> Integers:
    """Return how many of the rows behind each distinct one go to each tree: a fair die for every row."""
    owner = np.repeat(np.arange(len(weights)), weights)
    dice = integers_below(source, trees, len(owner))
    return np.bincount(dice * len(weights) + owner, minlength=trees * len(weights)).reshape(trees, -1)


def _some(candidates: SplitCandidates, features: int, source: RandomSource) -> SplitCandidates:
    width = len(candidates.ordered)
    if features == width:
        return candidates
    return candidates.of_features(permutation(source, width)[:features])


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateTree(_PrivateTrees):
    """A decision tree of a fixed depth, whose splits are chosen privately.

    The depth is 5 + 1.5 log10(epsilon) unless given, between 1 and 8, for some ten thousand rows: the rule was chosen
    on a part of the training rows of the Adult data. Three tenths of epsilon go to the leaves, the rest to the levels
    in equal parts. All of it is pure: a delta buys nothing here.

    Attributes:
        splits_: feature and cell of the split of each inner node, level by level.
        probabilities_: the class probabilities of each leaf.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 50, ["low", "low", "high", "high"] * 50
    >>> model = PrivateTree(epsilon=5, depth=1, bounds=(0, 10), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[1.5], [8.5]]).tolist()
    ['low', 'high']
    """


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateForest(_PrivateTrees):
    """Trees that see rows of their own, or share epsilon, and average their class probabilities.

    Unless given, there are 3 epsilon**0.43 trees, between 1 and 30: one at epsilon 0.1, three at 1, eight at 10. Trees
    divide the rows, or epsilon, among themselves, so private forests are small. The depth is 4.5 + 1.5 log10(epsilon),
    between 1 and 8. Both rules were chosen on a part of the training rows of the Adult data. A delta is of use with
    random splits and shared rows only, where it buys Gaussian noise for the leaves of all trees together.

    Args:
        trees: how many; by default a public rule in epsilon.
        rows: "disjoint", every row in one tree, or "shared", every row in all trees, which share epsilon.
        max_features: the share of the features that a tree may split, drawn at random; all, if there is one tree.

    Attributes:
        splits_: for each tree, feature and cell of the split of each inner node, level by level.
        probabilities_: for each tree, the class probabilities of each leaf.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 50, ["low", "low", "high", "high"] * 50
    >>> model = PrivateForest(epsilon=9, trees=3, depth=1, bounds=(0, 10), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[1.5], [8.5]]).tolist()
    ['low', 'high']
    """

    trees: int | None = None
    rows: str = "disjoint"
    max_features: float = 0.7

    def _shape(self, calibration: NoiseCalibration) -> tuple[int, bool]:
        check_choice(self.rows, name="rows", allowed=("disjoint", "shared"))
        return self._trees(calibration), self.rows == "disjoint"

    def _trees(self, calibration: NoiseCalibration) -> int:
        if self.trees is None:
            return _rule(3 * float(calibration.epsilon) ** 0.43, most=30)
        trees = check_count(self.trees, name="trees", at_least=1)
        if trees > _MOST_TREES:
            raise ParameterError(
                f"There are more than {_MOST_TREES} trees.", fix="use fewer trees: they share epsilon."
            )
        return trees

    def _depth(self, calibration: NoiseCalibration) -> int:
        if self.depth is None:
            return _rule(4.5 + 1.5 * math.log10(float(calibration.epsilon)), most=8)
        return super()._depth(calibration)

    def _features_per_tree(self, width: int, trees: int) -> int:
        share = check_positive(self.max_features, name="max_features")
        if share > 1:
            raise ParameterError("max_features is a share of the features.", fix="use a number between 0 and 1.")
        return width if trees == 1 else max(1, round(float(share) * width))
