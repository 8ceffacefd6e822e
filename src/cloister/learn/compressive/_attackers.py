"""Attackers who estimate rows, a label or a person from what a projection publishes, and the outcome of each.

*Reconstruction* estimates rows, and measures how far off the estimates are. All of these attackers know the model and
rows that resemble the attacked ones, and none has seen the attacked rows. The plainest turns the projection back as far
as that goes (`pseudo_inverse`); it flatters projections that are not orthogonal. The others learn from the similar rows
how z and x belong together, by a linear rule (`ridge`) or a curved one (`kernel_ridge`). An error is the mean Euclidean
distance of a row from its own estimate, row by row; it is compared with that of somebody who knows nothing but the
mean. Two stacks of rows in different orders are not comparable.

*Guessing* is of a label of a row, or of whose row it is. Each attacker is compared with guessing without z, and with
the same attacker who has the whole row instead. The share of the guesser's errors that the attacker still makes is the
normalized error: 1 means that z tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloister.core.confidence import binomial_interval
from cloister.core.random import RandomSource, permutation
from cloister.core.whole_rows import Floats
from cloister.core.wordings import percent
from cloister.errors import ParameterError
from cloister.learn.compressive._base import LinearProjection
from cloister.learn.compressive._labeled_rows import CommonScale, common_widths

__all__ = [
    "RECONSTRUCTIONS",
    "Attempt",
    "attribute_attempts",
    "known_row_attempt",
    "reconstruct_rows",
    "reconstruction_error",
    "reidentification_attempt",
    "structural_similarity",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attacker achieved, beside what is achieved without z.

    Attributes:
        name: the attacker.
        assumption: what the attacker is assumed to know.
        measure: what is measured: "distance", "share right" or "similarity".
        value: what the attacker achieved.
        baseline: what is achieved without z.
        normalized: the errors that are left, as a share of those without z: 1 means that z tells nothing, 0 that it
            tells everything. None where that has no meaning.
        control: what the same attacker achieves with the whole row, where that is comparable.
        interval: a 95% confidence interval of a share.
        counted: whether it counts for the verdict.
    """

    name: str
    assumption: str
    measure: str
    value: float
    baseline: float
    normalized: float | None
    control: float | None = None
    interval: tuple[float, float] | None = None
    counted: bool = True

    @classmethod
    def of_shares(
        cls,
        *,
        name: str,
        assumption: str,
        success: float,
        baseline: float,
        control: float | None = None,
        interval: tuple[float, float] | None = None,
        counted: bool = True,
    ) -> Attempt:
        """Return the outcome of an attacker who guesses."""
        return cls(
            name=name,
            assumption=assumption,
            measure="share right",
            value=success,
            baseline=baseline,
            normalized=(1 - success) / (1 - baseline) if baseline < 1 else None,
            control=control,
            interval=interval,
            counted=counted,
        )

    def __str__(self) -> str:
        text = f"{self.measure} {self.value:.4g}, without z {self.baseline:.4g}"
        if self.control is not None:
            text += f", with the whole row {self.control:.4g}"
        if self.interval is not None:
            text += f" (95% interval {self.interval[0]:.3g} to {self.interval[1]:.3g})"
        return text if self.normalized is None else f"{text}: {percent(self.normalized)} of the errors are left"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "name": self.name,
            "assumption": self.assumption,
            "measure": self.measure,
            "value": self.value,
            "baseline": self.baseline,
            "normalized": self.normalized,
            "control": self.control,
            "interval": None if self.interval is None else list(self.interval),
            "counted": self.counted,
        }


RECONSTRUCTIONS = ("pseudo_inverse", "ridge", "kernel_ridge")
"""The attackers, the plainest one first."""

_MOST_LEARNED = 2000
"""As many similar rows are used by the curved rule, whose work grows with their cube."""
_RIDGES = (1e-2, 1e-1, 1.0)
_WIDTHS = (0.3, 1.0, 3.0)


def reconstruct_rows(model: Any, released: Floats, *, public: Floats, attack: str, source: RandomSource) -> Floats:
    """Return an attacker's estimates of rows, in the order of what was released of them.

    Args:
        model: a fitted projection.
        released: z of the attacked rows.
        public: rows that resemble the attacked ones.
        attack: one of `RECONSTRUCTIONS`.
        source: where random choices come from.
    """
    if attack == "pseudo_inverse":
        if not isinstance(model, LinearProjection):
            raise ParameterError(
                "This projection is not linear, and cannot be turned back.", fix='use attack="kernel_ridge".'
            )
        return _turn_back(model, released, public.mean(axis=0))
    rules: dict[str, Callable[..., Floats]] = {"ridge": _by_ridge, "kernel_ridge": _by_kernel}
    if attack not in rules:
        raise ParameterError(f'attack="{attack}" is not known.', fix=f"use one of {', '.join(RECONSTRUCTIONS)}.")
    seen = model.transform(public)
    middle, width = seen.mean(axis=0), common_widths(seen)
    return rules[attack]((seen - middle) / width, public, (released - middle) / width, source)


def reconstruction_error(rows: Floats, estimates: Floats) -> float:
    """Return the mean distance of each row from the estimate at the same place.

    >>> reconstruction_error(np.array([[0.0, 0.0], [3.0, 4.0]]), np.zeros((2, 2)))
    2.5
    """
    if rows.shape != estimates.shape:
        raise ParameterError(
            "The rows and their estimates do not belong together.", fix="give one estimate per row, in the same order."
        )
    return float(np.linalg.norm(rows - estimates, axis=1).mean())


def structural_similarity(rows: Floats, estimates: Floats, *, shape: tuple[int, int], span: float) -> float:
    """Return the mean structural similarity of images and their estimates (Wang, Bovik, Sheikh and Simoncelli 2004).

    Windows are squares of 7 pixels, or the whole side of smaller images.

    Args:
        rows: one image per row.
        estimates: the estimate of each, in the same order.
        shape: height and width of the images.
        span: the largest less the smallest value that a pixel may have.
    """
    from scipy.ndimage import uniform_filter

    side = min(7, *shape)

    def smooth(images: Floats) -> Floats:
        blurred = uniform_filter(images, size=(1, side, side))
        # Windows that reach over the edge are left out.
        edge = side // 2
        return np.asarray(blurred[:, edge : shape[0] - edge, edge : shape[1] - edge])

    one, other = (part.reshape(-1, *shape) for part in (rows, estimates))
    mean, guessed = smooth(one), smooth(other)
    variance, spread = smooth(one * one) - mean**2, smooth(other * other) - guessed**2
    together = smooth(one * other) - mean * guessed
    small, less = (0.01 * span) ** 2, (0.03 * span) ** 2
    similar = (2 * mean * guessed + small) * (2 * together + less)
    return float((similar / ((mean**2 + guessed**2 + small) * (variance + spread + less))).mean())


def _turn_back(model: LinearProjection, released: Floats, middle: Floats) -> Floats:
    """Return the rows with these z that are nearest to the mean of similar rows."""
    return np.asarray(model.inverse_transform(released - model.transform(middle[None])) - model.mean_ + middle)


def _by_ridge(seen: Floats, public: Floats, released: Floats, _: RandomSource) -> Floats:
    from sklearn.linear_model import RidgeCV

    return np.asarray(RidgeCV(alphas=np.logspace(-3, 3, 7)).fit(seen, public).predict(released)).reshape(
        len(released), -1
    )


def _by_kernel(seen: Floats, public: Floats, released: Floats, source: RandomSource) -> Floats:
    """Return the estimates of kernel ridge regression, whose settings do best on a quarter of the similar rows."""
    order = permutation(source, len(seen))[:_MOST_LEARNED]
    z, x = seen[order], public[order]
    middle, cut = x.mean(axis=0), max(1, len(order) // 4)
    distances, across = _pairwise_squares(z, z), _pairwise_squares(released, z)
    best = min(
        ((width, ridge) for width in _WIDTHS for ridge in _RIDGES),
        key=lambda setting: _validate_setting(distances, x - middle, cut, *_scale_width(setting, z.shape[1])),
    )
    width, ridge = _scale_width(best, z.shape[1])
    weights = _weights(np.exp(-width * distances), x - middle, ridge)
    return np.asarray(middle + np.exp(-width * across) @ weights)


def _scale_width(setting: tuple[float, float], dimensions: int) -> tuple[float, float]:
    return setting[0] / dimensions, setting[1]


def _validate_setting(distances: Floats, x: Floats, cut: int, width: float, ridge: float) -> float:
    kernel = np.exp(-width * distances)
    weights = _weights(kernel[cut:, cut:], x[cut:], ridge)
    return float(np.linalg.norm(x[:cut] - kernel[:cut, cut:] @ weights, axis=1).mean())


def _weights(kernel: Floats, x: Floats, ridge: float) -> Floats:
    return np.asarray(linalg.solve(kernel + ridge * np.eye(len(kernel)), x, assume_a="pos"))


def _pairwise_squares(one: Floats, other: Floats) -> Floats:
    from sklearn.metrics import pairwise_distances

    return np.asarray(pairwise_distances(one, other, metric="sqeuclidean"))


_MOST_GUESSED = 5000
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
    chosen = permutation(source, len(seen))[:_MOST_GUESSED]
    baseline = float((truth == np.bincount(known).argmax()).mean())
    right = _classify(seen[chosen], known[chosen], released, weight=None) == truth
    whole = _classify(public[chosen], known[chosen], private, weight=None) == truth
    alike = _classify(seen[chosen], known[chosen], released, weight="balanced") == truth
    alike_whole = _classify(public[chosen], known[chosen], private, weight="balanced") == truth
    classes = np.unique(truth)
    assumption = "knows the model, and similar rows with their privacy labels"
    return [
        Attempt.of_shares(
            name="attribute",
            assumption=assumption,
            success=float(right.mean()),
            baseline=baseline,
            control=float(whole.mean()),
            interval=binomial_interval(int(right.sum()), len(right), confidence=CONFIDENCE),
        ),
        Attempt.of_shares(
            name="attribute, classes alike",
            assumption=f"{assumption}; counts every class the same",
            success=_average_over_classes(alike, truth, classes),
            baseline=1 / len(classes),
            control=_average_over_classes(alike_whole, truth, classes),
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
        interval=binomial_interval(int(found.sum()), len(found), confidence=CONFIDENCE),
    )


def known_row_attempt(released: Floats, source: RandomSource) -> Attempt:
    """Return how often somebody who has a whole row finds which z is of it; this is not counted, but must be known."""
    chosen = released[permutation(source, len(released))[:_MOST_CANDIDATES]]
    _, places, sizes = np.unique(chosen, axis=0, return_inverse=True, return_counts=True)
    # Equal z cannot be told apart, so that picking one of them is right once in their number.
    share = float((1 / sizes[places.ravel()]).mean())
    return Attempt.of_shares(
        name="known row",
        assumption="knows the model and the whole row, and asks which z belongs to it",
        success=share,
        baseline=1 / len(chosen),
        counted=False,
    )


def _classify(rows: Floats, codes: Codes, others: Floats, *, weight: str | None) -> NDArray[Any]:
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    if len(np.unique(codes)) < 2:
        return np.full(len(others), codes[0])
    return np.asarray(make_pipeline(CommonScale(), SVC(C=10, class_weight=weight)).fit(rows, codes).predict(others))


def _average_over_classes(right: NDArray[np.bool_], truth: Codes, classes: Codes) -> float:
    return float(np.mean([right[truth == item].mean() for item in classes]))


def _nearest(rows: Floats, gallery: Floats) -> Codes:
    from sklearn.neighbors import NearestNeighbors

    width = common_widths(gallery)
    search = NearestNeighbors(n_neighbors=1).fit(gallery / width)
    return np.asarray(search.kneighbors(rows / width, return_distance=False)).ravel().astype(np.int64)
