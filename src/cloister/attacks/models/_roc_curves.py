"""How well scores tell members from others: the ROC curve, what differential privacy allows on it, and epsilon.

Whoever calls a record a member where its score is high enough is right about a share of the members (true positives)
and wrong about a share of the others (false positives). An (epsilon, delta)-private model allows
``true <= e**epsilon * false + delta`` for every rule (Kairouz, Oh and Viswanath 2015); turned around, observed rates
give a lower bound on epsilon. Rates at few false positives say more than averages (Carlini et al. 2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core.confidence import Floats, binomial_bounds
from cloister.core.random import RandomSource, permutation

__all__ = ["Curve", "Scores", "dp_advantage", "dp_rate", "epsilon_lower_bound"]

_MOST_POINTS = 80


def dp_rate(false_positives: float, *, epsilon: float, delta: float) -> float:
    """Return the largest share of true positives that (epsilon, delta) allows at a share of false ones.

    >>> round(dp_rate(0.01, epsilon=1, delta=0), 4)
    0.0272
    """
    grown = math.exp(min(epsilon, 700.0))
    # Missing members is an error as well: the last term is the same bound with both roles exchanged.
    return min(1.0, grown * false_positives + delta, 1 - (1 - delta - false_positives) / grown)


def dp_advantage(*, epsilon: float, delta: float) -> float:
    """Return the largest difference of true and false positives that (epsilon, delta) allows.

    >>> round(dp_advantage(epsilon=1, delta=0), 4)
    0.4621
    """
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (math.exp(min(epsilon, 700.0)) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Shares of false and true positives, as the threshold falls, and the thresholds."""

    false_positives: Floats
    true_positives: Floats
    thresholds: Floats

    @property
    def area(self) -> float:
        """Return the area under the curve: 0.5 is guessing."""
        heights = (self.true_positives[1:] + self.true_positives[:-1]) / 2
        return float((heights * np.diff(self.false_positives)).sum())

    @property
    def gap(self) -> float:
        """Return the largest difference of true and false positives."""
        return float((self.true_positives - self.false_positives).max())

    @property
    def best_threshold(self) -> float:
        """Return where the difference is largest."""
        return float(self.thresholds[(self.true_positives - self.false_positives).argmax()])

    def rate_at(self, false_positives: float) -> float:
        """Return the largest share of true positives with at most so many false ones."""
        return float(self.true_positives[self.false_positives <= false_positives + 1e-12].max())

    def points(self) -> tuple[tuple[float, float], ...]:
        """Return some eighty points (false, true positives) at most, close together where both are small."""
        last = len(self.false_positives) - 1
        wished = np.r_[np.geomspace(1e-4, 1, _MOST_POINTS // 2), np.linspace(0, 1, _MOST_POINTS // 2)]
        places = np.searchsorted(self.false_positives, wished, side="right") - 1
        kept = np.unique(np.r_[0, places, last])
        pairs = zip(self.false_positives[kept].tolist(), self.true_positives[kept].tolist(), strict=True)
        return tuple(pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The attacker's score of each member and of each other record; higher means more likely a member."""

    members: Floats
    others: Floats

    def __repr__(self) -> str:
        return "Scores(...)"

    def curve(self) -> Curve:
        """Return the ROC curve, with equal scores decided alike."""
        values = np.concatenate([self.members, self.others])
        is_member = np.arange(len(values)) < len(self.members)
        order = np.argsort(-values, kind="stable")
        values, is_member = values[order], is_member[order]
        ends = np.r_[np.flatnonzero(np.diff(values)), len(values) - 1]
        return Curve(
            np.r_[0.0, np.cumsum(~is_member)[ends] / len(self.others)],
            np.r_[0.0, np.cumsum(is_member)[ends] / len(self.members)],
            np.r_[np.inf, values[ends]],
        )

    def area_interval(self, *, confidence: float) -> tuple[float, float]:
        """Return a confidence interval of the area under the curve (DeLong, DeLong and Clarke-Pearson 1988)."""
        parts = _placements(self.members, self.others), _placements(self.others, self.members)
        area, variance = self.curve().area, sum(part.var() / len(part) for part in parts)
        reach = float(special.ndtri((1 + confidence) / 2)) * math.sqrt(variance)
        return max(0.0, area - reach), min(1.0, area + reach)

    def record_risks(self) -> Floats:
        """Return for each member the share of others who score as high: how rarely accusing it is a false alarm."""
        ordered = np.sort(self.others)
        return np.asarray(1 - np.searchsorted(ordered, self.members, side="left") / len(ordered))

    def halves(self, source: RandomSource) -> tuple[Scores, Scores]:
        """Return two halves, dealt out at random."""
        first, second = permutation(source, len(self.members)), permutation(source, len(self.others))
        cut, other = (len(first) + 1) // 2, (len(second) + 1) // 2
        return (
            Scores(self.members[first[:cut]], self.others[second[:other]]),
            Scores(self.members[first[cut:]], self.others[second[other:]]),
        )

    def rates_above(self, threshold: float) -> tuple[int, int]:
        """Return how many members and how many others score at least so high."""
        return int((self.members >= threshold).sum()), int((self.others >= threshold).sum())

    def count_held_out(self, halves: tuple[Scores, Scores]) -> tuple[int, int]:
        """Return how many members and others are called members, by thresholds that the other half chose."""
        one, two = halves
        first, second = two.rates_above(one.curve().best_threshold), one.rates_above(two.curve().best_threshold)
        return first[0] + second[0], first[1] + second[1]


def epsilon_lower_bound(halves: tuple[Scores, Scores], *, delta: float, confidence: float) -> float:
    """Return what epsilon is at least, counting records as independent: one half chooses a rule, the other tests it.

    Both errors count: calling others members, and calling members others.
    """
    chosen, tested = halves
    curve = chosen.curve()
    sizes = len(chosen.members), len(chosen.others)
    # Rates are turned back into counts, which is what exact bounds take.
    hits = np.rint(curve.true_positives * sizes[0]), np.rint(curve.false_positives * sizes[1])
    bounds = _epsilons(hits, sizes, delta=delta, confidence=confidence)
    place, side = np.unravel_index(int(bounds.argmax()), bounds.shape)
    found = tested.rates_above(float(curve.thresholds[place]))
    sizes = len(tested.members), len(tested.others)
    bound = _epsilons((np.array([found[0]]), np.array([found[1]])), sizes, delta=delta, confidence=confidence)
    return float(max(0.0, bound[0, side]))


def _epsilons(
    hits: tuple[NDArray[np.generic], NDArray[np.generic]], sizes: tuple[int, int], *, delta: float, confidence: float
) -> Floats:
    """Return lower bounds on epsilon for each rule: by false positives, and by members that are missed."""
    alpha = 1 - confidence
    true_low, _ = binomial_bounds(hits[0], sizes[0], alpha=alpha)
    _, false_high = binomial_bounds(hits[1], sizes[1], alpha=alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        accused = np.log(np.maximum(true_low - delta, 0) / false_high)
        cleared = np.log(np.maximum(1 - false_high - delta, 0) / (1 - true_low))
    return np.asarray(np.nan_to_num(np.stack([accused, cleared], axis=1), nan=-np.inf, neginf=-np.inf))


def _placements(scores: Floats, against: Floats) -> Floats:
    ordered = np.sort(against)
    # Ties count half: below from the left and from the right, over twice as many.
    below = np.searchsorted(ordered, scores, side="left") + np.searchsorted(ordered, scores, side="right")
    return np.asarray(below / (2 * len(ordered)))
