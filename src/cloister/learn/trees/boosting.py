"""Private gradient boosting of one feature at a time, from noisy sums of residuals in public bins.

After explainable boosting machines under differential privacy (Nori, Caruana and others 2021), an additive model: a
row's score is an intercept plus one number per feature, looked up by the bin that the feature is in. Rounds go through
the features in order and correct each by the noisy sums of what is left to explain in its bins. Nori and others split
the bins at random and take small steps; here every bin keeps its sum, and a Bayesian estimate, which knows the noise
and the number of rows in each bin, decides how far to go (see `smoothing`). So a few rounds are enough.

Privacy: claim (epsilon, delta)-DP for one row added or removed. A row moves one class count by one, one bin count per
feature by one (F in L1 and in squared L2, for F features), and the sums of residuals of one feature by what
`gradients` states, in every round. Scores in between are functions of noisy numbers and the row itself, in whole steps.
All releases are paid together: in epsilon without a delta, as one Gaussian mechanism with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from cloister.accounting.events import RepeatedEvent
from cloister.core.random import RandomSource
from cloister.core.validation import check_between, check_count
from cloister.errors import ParameterError
from cloister.learn.base import Plan, PrivateClassifier, estimators
from cloister.learn.binning import bins_of
from cloister.learn.outlook import Outlook
from cloister.learn.reading import Facts
from cloister.learn.rows import Floats, Rows
from cloister.learn.trees.gradients import UNIT, WHOLE, outputs_of, reach, squared_reach
from cloister.learn.trees.growing import Sample
from cloister.learn.trees.rounds import Boosting, Recipe
from cloister.mechanisms.allowance import Allowance, Step

__all__ = ["PrivateGradientBoosting"]

_CLASS_SHARE = Fraction(3, 100)
_USUAL_WIDTH = 11
_MOST_ROUNDS = 1000
_LEAST, _MOST = 1e-3, 1e3
"""Between which spread and roughness make equations that floating point can solve."""


@estimators.register("gradient_boosting")
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

    def _plan(self, facts: Facts, allowance: Allowance) -> Plan:
        bins = bins_of(facts.encoding, self.bins)
        spread, roughness = self._prior(len(bins.features))
        rounds, width = self._rounds(allowance), len(bins.features)
        outputs = outputs_of(len(facts.target.classes or ()))
        bin_share = Fraction(1, 5 if allowance.is_pure else 10)
        class_noise = allowance.noise(_CLASS_SHARE, sensitivity=1, squared_sensitivity=1)
        bin_noise = allowance.noise(bin_share, sensitivity=width, squared_sensitivity=width)
        sum_noise = allowance.noise(
            (1 - _CLASS_SHARE - bin_share) / (rounds * width),
            sensitivity=reach(outputs),
            squared_sensitivity=squared_reach(outputs),
        )
        steps = (
            Step("class counts", class_noise.event),
            Step("bin counts", bin_noise.event),
            Step("sums of residuals", RepeatedEvent(event=sum_noise.event, count=rounds * width)),
        )
        recipe = Recipe(
            bins=bins,
            rounds=rounds,
            spread=spread,
            roughness=roughness,
            class_noise=class_noise,
            bin_noise=bin_noise,
            sum_noise=sum_noise,
        )
        outlook = Outlook(
            rows=2 * sum_noise.deviation / WHOLE,
            what="what is left to explain in half of the rows",
            compared="the largest that it can be",
        )
        return Plan(steps=steps, settings=recipe, outlook=outlook)

    def _prior(self, width: int) -> tuple[float, float]:
        """Return how large and how rough effects are expected to be: less so where many features share the work."""
        usual = min(1.0, (_USUAL_WIDTH / width) ** 0.5)
        spread, rough = usual**0.5, 3 * usual
        if self.spread is not None:
            spread = float(check_between(self.spread, name="spread", lowest=_LEAST, highest=_MOST))
        if self.roughness is not None:
            rough = float(check_between(self.roughness, name="roughness", lowest=_LEAST, highest=_MOST))
        return spread, rough

    def _rounds(self, allowance: Allowance) -> int:
        if self.rounds is None:
            if allowance.is_pure:
                return 1 if allowance.epsilon < Fraction(3, 10) else 2 if allowance.epsilon < 3 else 4
            return 3 if allowance.epsilon < 3 else 6
        rounds = check_count(self.rounds, name="rounds", at_least=1)
        if rounds > _MOST_ROUNDS:
            raise ParameterError(
                f"There are more than {_MOST_ROUNDS} rounds.", fix="use fewer rounds: each adds to the noise."
            )
        return rounds

    def _learn(self, facts: Facts, rows: Rows, plan: Plan, source: RandomSource) -> None:
        recipe: Recipe = plan.settings
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
