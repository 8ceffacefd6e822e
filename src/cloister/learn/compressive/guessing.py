"""Attackers who guess a label of a row, or whose row it is, from what a projection publishes of it.

Each is compared with guessing without z, and with the same attacker who has the whole row instead. The share of the
guesser's errors that the attacker still makes is the normalized error: 1 means that z tells nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core.random import RandomSource, permutation
from cloister.learn.compressive.attempt import Attempt
from cloister.learn.compressive.standard import CommonScale, common_widths
from cloister.learn.rows import Floats

__all__ = ["attribute_attempts", "known_row_attempt", "reidentification_attempt"]

_MOST_ROWS = 5000
_MOST_CANDIDATES = 2000
CONFIDENCE = 0.95

Codes = NDArray[np.int64]


def attribute_attempts(
    seen: Floats,
    released: Floats,
    public: Floats,
    private: Floats,
    *,
    labels: tuple[Codes, Codes],
    source: RandomSource,
) -> list[Attempt]:
    """Return how often a classifier from z finds the privacy label: by its accuracy, and with all classes alike.

    Args:
        seen: z of the similar rows.
        released: z of the attacked rows.
        public: the similar rows.
        private: the attacked rows.
        labels: the privacy labels of the attacked rows, and of the similar rows.
        source: where random choices come from.
    """
    truth, known = labels
    chosen = permutation(source, len(seen))[:_MOST_ROWS]
    baseline = float((truth == np.bincount(known).argmax()).mean())
    right = _classified(seen[chosen], known[chosen], released, weight=None) == truth
    whole = _classified(public[chosen], known[chosen], private, weight=None) == truth
    alike = _classified(seen[chosen], known[chosen], released, weight="balanced") == truth
    alike_whole = _classified(public[chosen], known[chosen], private, weight="balanced") == truth
    classes = np.unique(truth)
    assumption = "knows the model, and similar rows with their privacy labels"
    return [
        Attempt.of_shares(
            name="attribute",
            assumption=assumption,
            success=float(right.mean()),
            baseline=baseline,
            control=float(whole.mean()),
            interval=_interval(int(right.sum()), len(right)),
        ),
        Attempt.of_shares(
            name="attribute, classes alike",
            assumption=f"{assumption}; counts every class the same",
            success=_balanced(alike, truth, classes),
            baseline=1 / len(classes),
            control=_balanced(alike_whole, truth, classes),
        ),
    ]


def reidentification_attempt(
    seen: Floats, released: Floats, public: Floats, private: Floats, people: tuple[Codes, Codes]
) -> Attempt:
    """Return how often the nearest row of a gallery, compared by z, is of the same person."""
    truth, gallery = people
    found = gallery[_nearest(released, seen)] == truth
    return Attempt.of_shares(
        name="re-identification",
        assumption="knows the model, and other rows of the same people by name",
        success=float(found.mean()),
        baseline=float((truth == np.bincount(gallery).argmax()).mean()),
        control=float((gallery[_nearest(private, public)] == truth).mean()),
        interval=_interval(int(found.sum()), len(found)),
    )


def known_row_attempt(released: Floats, source: RandomSource) -> Attempt:
    """Return how often somebody who has a whole row finds which z is of it; this is not counted, but must be known."""
    chosen = released[permutation(source, len(released))[:_MOST_CANDIDATES]]
    _, places, sizes = np.unique(chosen, axis=0, return_inverse=True, return_counts=True)
    share = float((1 / sizes[places.ravel()]).mean())
    return Attempt.of_shares(
        name="known row",
        assumption="knows the model and the whole row, and asks which z belongs to it",
        success=share,
        baseline=1 / len(chosen),
        counted=False,
    )


def _classified(rows: Floats, codes: Codes, others: Floats, *, weight: str | None) -> NDArray[Any]:
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    if len(np.unique(codes)) < 2:
        return np.full(len(others), codes[0])
    return np.asarray(make_pipeline(CommonScale(), SVC(C=10, class_weight=weight)).fit(rows, codes).predict(others))


def _balanced(right: NDArray[np.bool_], truth: Codes, classes: Codes) -> float:
    return float(np.mean([right[truth == item].mean() for item in classes]))


def _nearest(rows: Floats, gallery: Floats) -> Codes:
    from sklearn.neighbors import NearestNeighbors

    width = common_widths(gallery)
    search = NearestNeighbors(n_neighbors=1).fit(gallery / width)
    return np.asarray(search.kneighbors(rows / width, return_distance=False)).ravel().astype(np.int64)


def _interval(hits: int, trials: int) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson (1934)."""
    tail = (1 - CONFIDENCE) / 2
    low = float(special.betaincinv(hits, trials - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high
