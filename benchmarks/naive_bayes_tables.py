"""Categorical naive Bayes beside Mothali's tables 8.2 (Adult) and 8.6 (Nursery): every cell, and who wins how often.

``python -m benchmarks.naive_bayes_tables [--repeats N] [--draws N]`` prints the table; ``make bench`` keeps it. Adult
is its 30,162 complete rows with eight categorical features of 102 declared values, three of them for what is missing,
as published; Nursery has 12,960 rows and eight features with 27 values. Each of the repeats splits the rows anew into k
folds; on each fold, the counts of the others get noise of scale F / epsilon so and so often, and each time the fold is
classified from the clipped counts (ML) and from the corrected ones (EB). The published protocol has 20 repeats and 500
draws; printed dominance figures are multiples of 1 / (100 k), so that they come from 100 comparisons a fold.

The corrections and probabilities are those of `PrivateCategoricalNB`, without smoothing, as published; the noise is
that of its plan. A cell agrees when both accuracies are within one point of the published ones, and the corrected
counts are not worse than the clipped ones by more than 0.05. The folder is CLOISTER_DATA, by default
``../shared/data``.

At the smallest epsilon, EB must win on more than 60% of the draws where the published figure is above that, and else
more often than it loses. The rows without noise say what these data can give: some published cells of Adult are above
it, so that something besides the noise was different there. "Adult, all rows" keeps the 2,399 rows in which something
is missing, as a value of its own. The text says that they were removed, but its 102 values count those for what is
missing, and the published figures fit all rows much better: they are above ours by 0.03 on average, instead of 0.49.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from benchmarks import harness
from cloister.core.random import SystemRandomSource, permutation
from cloister.learn.naive_bayes import class_counts, correct_counts, log_probabilities, shares
from cloister.mechanisms.calibration import NoiseCalibration
from cloister.mechanisms.step_noise import LaplaceSteps

REPEATS, DRAWS = 20, 100
TITLE = f"Categorical naive Bayes as published: {REPEATS} repeats of k folds, {DRAWS} draws of noise on each fold"
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).parents[2] / "shared" / "data"))
FOLDS = (5, 10, 20)
CLOSE, SLACK, DOMINANCE = 1.0, 0.05, 60.0

ADULT = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country")
ALL_ROWS = "Adult, all rows"
FILES = {
    "Adult": ("adult/adult.csv", "salary-class"),
    ALL_ROWS: ("adult/adult.csv", "salary-class"),
    "Nursery": ("nursery/nursery.csv", "class"),
}
VALUES = {"Adult": 102, ALL_ROWS: 102, "Nursery": 27}

# Accuracy of ML and EB in percent for 5, 10 and 20 folds. One Nursery cell is printed 89.45, unlike all around it.
ACCURACY = {
    "Adult": {
        "0.01": ((74.63, 75.84), (75.22, 76.43), (75.11, 76.20)),
        "0.02": ((76.87, 77.44), (77.04, 77.51), (77.59, 78.00)),
        "0.05": ((78.30, 78.36), (77.93, 78.23), (78.35, 78.72)),
        "0.1": ((78.67, 78.72), (78.57, 78.62), (79.15, 79.20)),
        "0.5": ((79.03, 79.05), (79.04, 79.10), (79.44, 79.45)),
        "1": ((79.34, 79.35), (79.24, 79.25), (79.75, 79.76)),
    },
    "Nursery": {
        "0.1": ((87.76, 87.87), (87.91, 87.98), (88.45, 88.51)),
        "0.25": ((89.69, 89.88), (89.49, 89.53), (89.95, 89.96)),
        "0.5": ((90.07, 90.08), (89.76, 89.77), (90.24, 90.25)),
        "0.75": ((90.13, 90.14), (89.79, 89.80), (90.30, 90.31)),
        "1": ((90.16, 90.16), (89.80, 89.80), (90.34, 90.34)),
    },
}
# How often EB is better than, the same as, and worse than ML, in percent.
WINS = {
    "Adult": {
        "0.01": ((69.6, 0.2, 30.2), (71.4, 0.6, 28.0), (71.2, 0.95, 27.85)),
        "0.02": ((68.8, 0.2, 31.0), (66.9, 1.0, 32.1), (63.1, 2.2, 34.7)),
        "0.05": ((56.6, 2.2, 41.2), (61.4, 2.5, 36.1), (57.8, 5.7, 36.5)),
        "0.1": ((70.8, 4.8, 24.4), (66.1, 7.2, 26.7), (58.7, 13.5, 27.8)),
        "0.5": ((41.4, 37.2, 21.4), (26.4, 59.1, 14.5), (18.0, 73.7, 8.3)),
        "1": ((18.6, 72.2, 9.2), (10.4, 85.4, 4.2), (5.1, 92.0, 2.9)),
    },
    "Nursery": {
        "0.1": ((65.9, 6.2, 27.9), (54.3, 13.1, 32.6), (46.2, 23.1, 30.7)),
        "0.25": ((36.7, 27.2, 36.1), (24.7, 48.4, 26.9), (15.5, 69.4, 15.1)),
        "0.5": ((17.1, 65.3, 17.6), (8.8, 82.8, 8.4), (4.5, 91.5, 4.0)),
        "0.75": ((8.6, 83.4, 8.0), (3.8, 92.8, 3.4), (1.9, 96.3, 1.8)),
        "1": ((5.1, 90.2, 4.7), (2.0, 96.1, 1.9), (1.2, 97.9, 0.9)),
    },
}
ACCURACY[ALL_ROWS], WINS[ALL_ROWS] = ACCURACY["Adult"], WINS["Adult"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coded:
    """A data set as positions in declared values."""

    features: Integers
    target: Integers
    sizes: tuple[int, ...]
    classes: int

    def counts(self, chosen: Any = slice(None)) -> Integers:
        """Return how often each value comes with each class: classes by values, features side by side."""
        starts = np.cumsum([0, *self.sizes[:-1]])
        cells = self.target[chosen, None] * sum(self.sizes) + starts + self.features[chosen]
        return np.bincount(cells.ravel(), minlength=self.classes * sum(self.sizes)).reshape(self.classes, -1)


@dataclass(frozen=True, eq=False)
class Test:
    """The distinct rows of a fold as ones and zeros, with a one for the prior, and how many of each class they are."""

    indicators: Floats
    weights: Floats

    @classmethod
    def of(cls, data: Coded, chosen: Integers) -> Test:
        rows, inverse = np.unique(data.features[chosen], axis=0, return_inverse=True)
        cells = inverse.ravel() * data.classes + data.target[chosen]
        weights = np.bincount(cells, minlength=len(rows) * data.classes).reshape(len(rows), data.classes)
        parts = [rows[:, [place]] == np.arange(size) for place, size in enumerate(data.sizes)]
        ones = np.ones((len(rows), 1), dtype=np.bool_)
        return cls(np.concatenate([ones, *parts], axis=1).astype(np.float64), weights.astype(np.float64))

    def accuracy(self, scores: Floats) -> Floats:
        """Return the percentage classified rightly by each of many models: models by classes by 1 + values."""
        leads = [self.indicators @ (scores[:, place] - scores[:, 0]).T for place in range(1, scores.shape[1])]
        highest, best = np.maximum(leads[0], 0.0), (leads[0] > 0).astype(np.int8)
        for place, lead in enumerate(leads[1:], start=2):
            best[lead > highest] = place
            np.maximum(highest, lead, out=highest)
        gains = self.weights - self.weights[:, :1]
        right = sum(gains[:, place] @ (best == place) for place in range(1, scores.shape[1]))
        return 100 * (self.weights[:, 0].sum() + np.asarray(right)) / self.weights.sum()


def main(repeats: int = REPEATS, draws: int = DRAWS) -> list[dict[str, Any]]:
    """Return a row for each cell of the tables."""
    rows = []
    for name in FILES:
        data = load(name)
        rows.append(_lengths(name, data))
        rows += [row for place in range(len(FOLDS)) for row in _of_folds(name, data, place, repeats, draws)]
    return rows


def load(name: str) -> Coded:
    """Return a data set by its public values; rows of Adult with something missing are left out, but of "all rows"."""
    path, target = FILES[name]
    table = pyarrow.csv.read_csv(
        DATA / path, convert_options=pyarrow.csv.ConvertOptions(strings_can_be_null=False, true_values=[])
    )
    names = ADULT if name in ("Adult", ALL_ROWS) else tuple(item for item in table.column_names if item != target)
    coded = [table[item].cast(pa.string()).combine_chunks().dictionary_encode() for item in (*names, target)]
    codes = np.stack([item.indices.to_numpy() for item in coded], axis=1).astype(np.int64)
    unknown = [item.dictionary.index("?").as_py() for item in coded]
    complete = (codes != unknown).all(axis=1) | (name == ALL_ROWS)
    sizes = tuple(len(item.dictionary) for item in coded)
    return Coded(codes[complete, :-1], codes[complete, -1], sizes[:-1], sizes[-1])


def _lengths(name: str, data: Coded) -> dict[str, Any]:
    length = data.classes * sum(data.sizes)
    target = data.classes * VALUES[name]
    return {
        "name": f"{name}: counts released",
        "ours": length,
        "peer": target,
        "target": target,
        "met": length == target,
    }


def _of_folds(name: str, data: Coded, place: int, repeats: int, draws: int) -> Iterator[dict[str, Any]]:
    folds = FOLDS[place]
    quiet, found = measure(data, folds, tuple(ACCURACY[name]), repeats, draws)
    yield {"name": f"{name}, {folds} folds, no noise", "ours": f"{quiet:.2f}", "unit": "% right"}
    for epsilon, (plain, better) in found.items():
        yield from _cell(name, place, epsilon, plain, better)


def measure(
    data: Coded, folds: int, epsilons: tuple[str, ...], repeats: int, draws: int
) -> tuple[float, dict[str, tuple[Floats, Floats]]]:
    """Return the accuracy without noise, and for each epsilon those of ML and EB on each fold and draw."""
    noises = {epsilon: _noise(epsilon, data) for epsilon in epsilons}
    quiet: list[Floats] = []
    found: dict[str, list[tuple[Floats, Floats]]] = {epsilon: [] for epsilon in noises}
    source, everything = SystemRandomSource(), data.counts()
    for _ in range(repeats):
        for chosen in np.array_split(permutation(source, len(data.target)), folds):
            test, counts = Test.of(data, chosen), everything - data.counts(chosen)
            quiet.append(test.accuracy(scores(counts[None].astype(np.float64), data.sizes)))
            for epsilon, noise in noises.items():
                noisy = noise.add(np.tile(counts, (draws, 1, 1)), source).astype(np.float64)
                ways = (scores(correct_counts(noisy, noise, way), data.sizes) for way in ("none", "empirical_bayes"))
                plain, better = map(test.accuracy, ways)
                found[epsilon].append((plain, better))
    joined = {epsilon: tuple(map(np.concatenate, zip(*runs, strict=True))) for epsilon, runs in found.items()}
    return float(np.mean(quiet)), joined  # type: ignore[return-value]  # pairs stay pairs


def _noise(epsilon: str, data: Coded) -> LaplaceSteps:
    return NoiseCalibration.of(epsilon=epsilon).laplace(1, sensitivity=len(data.sizes))  # type: ignore[arg-type]


def scores(counts: Floats, sizes: tuple[int, ...]) -> Floats:
    """Return for many models the logarithm of the prior, and of the probability of each value, in each class."""
    priors = np.log(np.maximum(shares(class_counts(counts, sizes)), 1e-300))
    return np.concatenate([priors[..., None], log_probabilities(counts, sizes, alpha=0.0)], axis=-1)


def _cell(name: str, place: int, epsilon: str, plain: Floats, better: Floats) -> Iterator[dict[str, Any]]:
    label = f"{name}, {FOLDS[place]} folds, epsilon {epsilon}"
    ours, published = (plain.mean(), better.mean()), ACCURACY[name][epsilon][place]
    close = all(abs(mine - printed) <= CLOSE for mine, printed in zip(ours, published, strict=True))
    yield {
        "name": f"{label}: ML / EB",
        "ours": f"{ours[0]:.2f} / {ours[1]:.2f}",
        "peer": f"{published[0]:.2f} / {published[1]:.2f}",
        "peer_name": "Mothali",
        "unit": "% right",
        "target": "both ± 1, EB >= ML - 0.05",
        "met": bool(close and ours[1] >= ours[0] - SLACK),
    }
    wins = [100 * float(part.mean()) for part in (better > plain, better == plain, better < plain)]
    smallest = epsilon == min(ACCURACY[name], key=float)
    row = {
        "name": f"{label}: EB better / same / worse",
        "ours": " / ".join(f"{item:.1f}" for item in wins),
        "peer": " / ".join(f"{item:.1f}" for item in WINS[name][epsilon][place]),
        "peer_name": "Mothali",
        "unit": "% of draws",
    }
    if smallest and WINS[name][epsilon][place][0] > DOMINANCE:
        row |= {"target": "better in > 60", "met": wins[0] > DOMINANCE}
    elif smallest:
        row |= {"target": "better more often than worse", "met": wins[0] > wins[2]}
    yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    print(harness.table(main(options.repeats, options.draws)))
