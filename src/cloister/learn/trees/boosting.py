"""Private gradient boosting of one feature at a time, from noisy sums of residuals in public bins.

After explainable boosting machines under differential privacy (Nori, Caruana and others 2021), an additive model: a
row's score is an intercept plus one number per feature, looked up by the bin that the feature is in. Noisy counts come
first. Then rounds go through the features in order and correct each by the noisy sums of what is left to explain in its
bins, in whole steps. Nori and others split the bins at random and take small steps; here every bin keeps its sum, and a
Bayesian estimate, which knows the noise and the number of rows in each bin, decides how far to go. So a few rounds are
enough.

*Residuals* of the logistic loss are functions of one row's own whole score and class, by public tables. A residual is
what is observed less what is expected: 1 or 0 less the probability of a class. Scores are whole numbers of 2**-10
logits, residuals of 2**-12. With two classes, there is one score, that of the second class, and a table of the logistic
function. With more, there is a score for each class; a table of exponentials, and division rounding down, give
probabilities that add up to at most 1.

*Effects* are estimated by Bayes' rule, all of it post-processing. The effect of each cell of a feature is a normal
variable beforehand: of a category, one of deviation ``spread`` by itself; of a number, close to that of the next bin,
the whole range being a random walk of variance ``roughness``. A noisy sum of residuals in a cell of n rows is the
curvature of the loss, about n p (1 - p), times what is missing from the effect, plus noise that is known. Each further
observation counts fully, earlier ones a little less, since the other features have moved in between: the estimate
averages the noise of all rounds.

Privacy: claim (epsilon, delta)-DP for one row added or removed. A row moves one class count by one, one bin count per
feature by one (F in L1 and in squared L2, for F features), and the sums of residuals of one feature, in one of whose
cells it is, by what `reach` and `squared_reach` state, in every round. Two classes: a residual is between -1 and 1.
More: the row's class c has 1 - p_c, each other one -p_k, and these p_k add up to at most 1 - p_c. So at most
2 (1 - p_c) in L1 and 2 (1 - p_c)**2 in squared L2. No floating point is in the way. Scores in between are functions of
noisy numbers and the row itself, in whole steps. All releases are paid together: in epsilon without a delta, as one
Gaussian mechanism with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from cloister.accounting.events import RepeatedEvent
from cloister.core.random import RandomSource
from cloister.core.validation import check_between, check_count
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn._encoding import FeatureBins, Integers, bins_of
from cloister.learn._features import Binned, Categorical
from cloister.learn._outlook import FitOutlook
from cloister.learn._public_facts import PublicFacts
from cloister.learn._rows import WeightedRows
from cloister.learn.base import PrivateClassifier, TrainingPlan
from cloister.learn.trees._splits import Sample, cells_of
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise

__all__ = [
    "UNIT",
    "WHOLE",
    "Boosted",
    "Boosting",
    "BoostingRecipe",
    "FeatureEffect",
    "PrivateGradientBoosting",
    "onto_total",
    "outputs_of",
    "prior_precision",
    "reach",
    "residuals",
    "squared_reach",
    "sums_of",
]


UNIT = 2**10
"""Steps of a score per logit."""

WHOLE = 2**12
"""Steps of a residual."""

_FARTHEST = 16
_EXPONENTIAL = 2**30


def outputs_of(classes: int) -> int:
    """Return how many scores a row has."""
    return 1 if classes == 2 else classes


def reach(outputs: int) -> int:
    """Return how far one row moves residuals in L1, in steps, with so many scores per row."""
    return WHOLE if outputs == 1 else 2 * WHOLE


def squared_reach(outputs: int) -> int:
    """Return how far one row moves residuals in squared L2, in squared steps."""
    return WHOLE**2 if outputs == 1 else 2 * WHOLE**2


def residuals(scores: Integers, classes: Integers) -> Integers:
    """Return the residual of each score of each row.

    Args:
        scores: (rows, 1) with two classes, (rows, classes) with more.
        classes: the class of each row.
    """
    if scores.shape[1] == 1:
        most = _FARTHEST * UNIT
        expected = _logistic()[np.clip(scores, -most, most) + most]
        return np.asarray(classes[:, None] * WHOLE - expected)
    gaps = np.minimum(scores.max(axis=1, keepdims=True) - scores, _FARTHEST * UNIT)
    weights = _exponential()[gaps]
    # Rounding down keeps the probabilities of all classes together within one, as the sensitivity assumes.
    expected = weights * WHOLE // weights.sum(axis=1, keepdims=True)
    return np.asarray((classes[:, None] == np.arange(scores.shape[1])) * WHOLE - expected)


@cache
def _logistic() -> Integers:
    logits = np.arange(-_FARTHEST * UNIT, _FARTHEST * UNIT + 1) / UNIT
    return np.asarray(np.rint(WHOLE / (1 + np.exp(-logits))).astype(np.int64))


@cache
def _exponential() -> Integers:
    gaps = np.arange(_FARTHEST * UNIT + 1) / UNIT
    return np.asarray(np.rint(_EXPONENTIAL * np.exp(-gaps)).astype(np.int64))


_WEAK = 0.1
_FORGETTING = 0.5
_LARGEST_EFFECT = 12.0
_ROW_VARIANCE = 1 / 6
"""The variance of a residual, roughly."""


def prior_precision(cells: int, *, is_ordered: bool, spread: float, roughness: float) -> Floats:
    """Return the inverse covariance of the effects beforehand."""
    if not is_ordered:
        return np.eye(cells) / spread**2
    steps = np.diff(np.eye(cells), axis=0)
    return np.asarray(np.eye(cells) * _WEAK / spread**2 + steps.T @ steps * (cells / roughness))


@dataclass(slots=True, eq=False)
class FeatureEffect:
    """The effect of a feature's cells on one score, as estimated so far."""

    precision: Floats
    value: Floats = field(init=False)
    known: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.value = np.zeros(len(self.precision))
        self.known = np.zeros(len(self.precision))

    def observe(self, sums: Floats, *, counts: Floats, doubt: float, curvature: float, deviation: float) -> None:
        """Take in a noisy sum of residuals in each cell.

        Args:
            sums: the sums.
            counts: noisy numbers of rows, at least zero.
            doubt: the deviation of the noise of the counts, which makes what the sums are compared with uncertain.
            curvature: of the loss of one row.
            deviation: of the noise of each sum.
        """
        slope = counts * curvature
        variance = deviation**2 + counts * _ROW_VARIANCE + (doubt * curvature) ** 2
        # A sum is the slope times what is missing from the effect, plus noise: a linear observation updates a
        # normal prior.
        self.known = _FORGETTING * self.known + slope**2 / variance
        change = np.linalg.solve(self.precision + np.diag(self.known), slope / variance * sums)
        self.value = np.clip(self.value + change, -_LARGEST_EFFECT, _LARGEST_EFFECT)


def onto_total(noisy: Floats, total: float) -> Floats:
    """Return the closest numbers that are at least zero and add up to a total: noisy counts made consistent."""
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    last = int(np.flatnonzero(falling > excess).max(initial=0))
    return np.asarray(np.maximum(noisy - excess[last], 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoostingRecipe:
    """How a model is boosted: all of it public."""

    bins: FeatureBins
    rounds: int
    spread: float
    roughness: float
    class_noise: StepNoise
    bin_noise: StepNoise
    sum_noise: StepNoise

    def unknown(self, feature: Binned | Categorical, outputs: int) -> list[FeatureEffect]:
        """Return what is thought of a feature's effects beforehand, for each score."""
        precision = prior_precision(
            feature.cells, is_ordered=feature.is_ordered, spread=self.spread, roughness=self.roughness
        )
        return [FeatureEffect(precision) for _ in range(outputs)]


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

    recipe: BoostingRecipe
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
        # A class that drowns in noise must not start from infinite log odds.
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
                # The change is added in whole steps, so that a score stays a function of the row's own cells
                # and released numbers.
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


def _whole(effects: list[FeatureEffect]) -> Integers:
    return np.rint(np.stack([effect.value for effect in effects]) * UNIT).astype(np.int64)


_CLASS_SHARE = Fraction(3, 100)
_USUAL_WIDTH = 11
_MOST_ROUNDS = 1000
_LEAST, _MOST = 1e-3, 1e3
"""Between which spread and roughness make equations that floating point can solve."""


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateGradientBoosting(PrivateClassifier):
    """An additive model, boosted feature by feature.

    Rounds follow a public rule unless given: without a delta 1 below epsilon 0.3, 2 below 3, else 4; with one, 3 below
    epsilon 3, else 6. The rule and the other defaults were chosen on a part of the training rows of the Adult data.

    Args:
        rounds: how often each feature is corrected.
        bins: into how many bins of equal width each number is cut; or {column: number or edges}.
        spread: how large effects are expected to be, in logits; 1, and less with more than 11 features.
        roughness: how far the effect of a number is expected to vary over its range, in squared logits; 3, and less
            with more than 11 features.

    Attributes:
        intercept_: the score to start from, of the second class of two, or of each of more.
        effects_: what each bin of each feature adds to it, the features one after the other.
        feature_importances_: the mean size of the effects of each feature, as shares.

    >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 50, ["low", "low", "high", "high"] * 50
    >>> model = PrivateGradientBoosting(epsilon=9, bins=8, bounds=(0, 10), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[1.5], [8.5]]).tolist()
    ['low', 'high']
    """

    learned: ClassVar[tuple[str, ...]] = ("intercept_", "effects_", "feature_importances_")

    rounds: int | None = None
    bins: Any = 32
    spread: float | None = None
    roughness: float | None = None

    def _plan(self, facts: PublicFacts, calibration: NoiseCalibration) -> TrainingPlan:
        bins = bins_of(facts.encoding, self.bins)
        spread, roughness = self._prior(len(bins.features))
        rounds, width = self._rounds(calibration), len(bins.features)
        outputs = outputs_of(len(facts.target.classes or ()))
        bin_share = Fraction(1, 5 if calibration.is_pure else 10)
        class_noise = calibration.noise(_CLASS_SHARE, sensitivity=1, squared_sensitivity=1)
        bin_noise = calibration.noise(bin_share, sensitivity=width, squared_sensitivity=width)
        sum_noise = calibration.noise(
            (1 - _CLASS_SHARE - bin_share) / (rounds * width),
            sensitivity=reach(outputs),
            squared_sensitivity=squared_reach(outputs),
        )
        steps = (
            FitStep("class counts", class_noise.event),
            FitStep("bin counts", bin_noise.event),
            FitStep("sums of residuals", RepeatedEvent(event=sum_noise.event, count=rounds * width)),
        )
        recipe = BoostingRecipe(
            bins=bins,
            rounds=rounds,
            spread=spread,
            roughness=roughness,
            class_noise=class_noise,
            bin_noise=bin_noise,
            sum_noise=sum_noise,
        )
        outlook = FitOutlook(
            rows=2 * sum_noise.deviation / WHOLE,
            what="what is left to explain in half of the rows",
            compared="the largest that it can be",
        )
        return TrainingPlan(steps=steps, settings=recipe, outlook=outlook)

    def _prior(self, width: int) -> tuple[float, float]:
        """Return how large and how rough effects are expected to be: less so where many features share the work."""
        usual = min(1.0, (_USUAL_WIDTH / width) ** 0.5)
        spread, rough = usual**0.5, 3 * usual
        if self.spread is not None:
            spread = float(check_between(self.spread, name="spread", lowest=_LEAST, highest=_MOST))
        if self.roughness is not None:
            rough = float(check_between(self.roughness, name="roughness", lowest=_LEAST, highest=_MOST))
        return spread, rough

    def _rounds(self, calibration: NoiseCalibration) -> int:
        if self.rounds is None:
            if calibration.is_pure:
                return 1 if calibration.epsilon < Fraction(3, 10) else 2 if calibration.epsilon < 3 else 4
            return 3 if calibration.epsilon < 3 else 6
        rounds = check_count(self.rounds, name="rounds", at_least=1)
        if rounds > _MOST_ROUNDS:
            raise ParameterError(
                f"There are more than {_MOST_ROUNDS} rounds.", fix="use fewer rounds: each adds to the noise."
            )
        return rounds

    def _learn(self, facts: PublicFacts, rows: WeightedRows, plan: TrainingPlan, source: RandomSource) -> None:
        recipe: BoostingRecipe = plan.settings
        sample = Sample(recipe.bins.codes(rows.features), np.asarray(rows.target, dtype=np.int64), rows.weights)
        boosted = Boosting(recipe, sample, source).run(classes=len(facts.target.classes or ()))
        self.intercept_ = boosted.intercept / UNIT
        self.effects_ = np.concatenate(boosted.effects, axis=1) / UNIT
        self.feature_importances_ = boosted.importances()

    # Predicting ------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each row: of the second class of two, or of each of more."""
        scores = self._scores(self._encoded(X))
        return scores[:, 1] if len(self.intercept_) == 1 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, for each row; costs nothing."""
        scores = self._scores(self._encoded(X))
        if len(self.intercept_) > 1:
            return np.asarray(softmax(scores, axis=1))
        second = expit(scores[:, 1])
        return np.stack([1 - second, second], axis=1)

    def _scores(self, features: Floats) -> Floats:
        bins = bins_of(self.encoding_, self.bins)
        starts = np.cumsum([0, *bins.cells[:-1]])
        cells = bins.codes(features) + starts
        scores = self.intercept_ + sum(self.effects_[:, cells[:, place]].T for place in range(len(starts)))
        return scores if len(self.intercept_) > 1 else np.concatenate([np.zeros_like(scores), scores], axis=1)
