"""The rounds of boosting: noisy counts first, then noisy sums of residuals, feature by feature, in whole steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.core.random import RandomSource
from cloister.learn.binning import Bins, Integers
from cloister.learn.features import Binned, Categorical
from cloister.learn.rows import Floats
from cloister.learn.trees.gradients import UNIT, WHOLE, residuals
from cloister.learn.trees.growing import Sample
from cloister.learn.trees.smoothing import Effect, onto_total, prior_precision
from cloister.learn.trees.structure import cells_of
from cloister.mechanisms.allowance import StepNoise

__all__ = ["Boosted", "Boosting", "Recipe", "sums_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a model is boosted: all of it public."""

    bins: Bins
    rounds: int
    spread: float
    roughness: float
    class_noise: StepNoise
    bin_noise: StepNoise
    sum_noise: StepNoise

    def unknown(self, feature: Binned | Categorical, outputs: int) -> list[Effect]:
        """Return what is thought of a feature's effects beforehand, for each score."""
        precision = prior_precision(
            feature.cells, is_ordered=feature.is_ordered, spread=self.spread, roughness=self.roughness
        )
        return [Effect(precision) for _ in range(outputs)]


@dataclass(frozen=True, slots=True)
class Boosted:
    """What came out, in steps of a score: noisy numbers only."""

    intercept: Integers
    effects: list[Integers]
    counts: list[Floats]

    def importances(self) -> Floats:
        """Return the mean size of each feature's effects, as shares."""
        pairs = zip(self.effects, self.counts, strict=True)
        sizes = np.array([(np.abs(effect).mean(axis=0) * count).sum() for effect, count in pairs])
        return np.asarray(sizes / sizes.sum() if sizes.any() else np.full(len(sizes), 1 / len(sizes)))


@dataclass(frozen=True, slots=True, repr=False)
class Boosting:
    """Protected rows that are about to be learned from."""

    recipe: Recipe
    sample: Sample
    source: RandomSource

    def run(self, *, classes: int) -> Boosted:
        """Return intercept and effects after all rounds."""
        sizes = self._class_counts(classes)
        counts = self._bin_counts(float(sizes.sum()))
        start = np.log(sizes[1:] / sizes[:1]) if classes == 2 else np.log(sizes / sizes.sum())
        intercept = np.rint(start * UNIT).astype(np.int64)
        shares = (sizes / sizes.sum())[-len(intercept) :]
        effects = self._effects(counts, intercept, (0.25 + shares * (1 - shares)) / 2)
        return Boosted(intercept, effects, counts)

    def _class_counts(self, classes: int) -> Floats:
        """Return noisy class counts, not below the noise."""
        noise = self.recipe.class_noise
        noisy = noise.add(cells_of(self.sample.classes, self.sample.weights, classes), self.source)
        return np.maximum(noisy.astype(np.float64), noise.deviation + 1)

    def _bin_counts(self, total: float) -> list[Floats]:
        """Return noisy numbers of rows in the bins of each feature."""
        cells = self.recipe.bins.cells
        exactly = [cells_of(self.sample.codes[:, at], self.sample.weights, size) for at, size in enumerate(cells)]
        noisy = self.recipe.bin_noise.add(np.concatenate(exactly), self.source).astype(np.float64)
        return [onto_total(part, total) for part in np.split(noisy, np.cumsum(cells)[:-1])]

    def _effects(self, counts: list[Floats], intercept: Integers, curvatures: Floats) -> list[Integers]:
        """Return the effects of each feature on each score."""
        effects = [self.recipe.unknown(feature, len(intercept)) for feature in self.recipe.bins.features]
        scores = np.tile(intercept, (len(self.sample.codes), 1))
        for _ in range(self.recipe.rounds):
            for place, several in enumerate(effects):
                before = _whole(several)
                sums = self._sums(scores, place)
                for effect, row, curvature in zip(several, sums, curvatures, strict=True):
                    effect.observe(
                        row,
                        counts=counts[place],
                        doubt=self.recipe.bin_noise.deviation * self.recipe.spread,
                        curvature=float(curvature),
                        deviation=self.recipe.sum_noise.deviation / WHOLE,
                    )
                scores += (_whole(several) - before)[:, self.sample.codes[:, place]].T
        return [_whole(several) for several in effects]

    def _sums(self, scores: Integers, place: int) -> Floats:
        """Return noisy sums of residuals in the cells of a feature, for each score."""
        exactly = sums_of(self.sample, scores, place, self.recipe.bins.cells[place])
        return self.recipe.sum_noise.add(exactly, self.source).astype(np.float64) / WHOLE


def sums_of(sample: Sample, scores: Integers, place: int, cells: int) -> Integers:
    """Return the sums of residuals, in steps: exactly, as long as there are fewer than 2**41 rows. Protected."""
    steps = residuals(scores, sample.classes) * sample.weights[:, None]
    sums = [np.bincount(sample.codes[:, place], weights=column, minlength=cells) for column in steps.T]
    return np.stack(sums).astype(np.int64)


def _whole(effects: list[Effect]) -> Integers:
    return np.rint(np.stack([effect.value for effect in effects]) * UNIT).astype(np.int64)
