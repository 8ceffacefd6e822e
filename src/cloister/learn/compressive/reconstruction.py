"""Attackers who estimate rows from what a projection publishes of them, and how far off they are.

All of them know the model and rows that resemble the attacked ones, and none has seen the attacked rows. The plainest
turns the projection back as far as that goes (`pseudo_inverse`); it flatters projections that are not orthogonal. The
others learn from the similar rows how z and x belong together, by a linear rule (`ridge`) or a curved one
(`kernel_ridge`). An error is the mean Euclidean distance of a row from its own estimate, row by row; it is compared
with that of somebody who knows nothing but the mean. Two stacks of rows in different orders are not comparable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg

from cloister.core.random import RandomSource, permutation
from cloister.errors import ParameterError
from cloister.learn.compressive.base import LinearProjection
from cloister.learn.compressive.standard import common_widths
from cloister.learn.rows import Floats

__all__ = ["RECONSTRUCTIONS", "reconstruct_rows", "reconstruction_error", "structural_similarity"]

RECONSTRUCTIONS = ("pseudo_inverse", "ridge", "kernel_ridge")
"""The attackers, the plainest one first."""

_MOST_ROWS = 2000
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
        return _turned_back(model, released, public.mean(axis=0))
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
        edge = side // 2
        return np.asarray(blurred[:, edge : shape[0] - edge, edge : shape[1] - edge])

    one, other = (part.reshape(-1, *shape) for part in (rows, estimates))
    mean, guessed = smooth(one), smooth(other)
    variance, spread = smooth(one * one) - mean**2, smooth(other * other) - guessed**2
    together = smooth(one * other) - mean * guessed
    small, less = (0.01 * span) ** 2, (0.03 * span) ** 2
    similar = (2 * mean * guessed + small) * (2 * together + less)
    return float((similar / ((mean**2 + guessed**2 + small) * (variance + spread + less))).mean())


def _turned_back(model: LinearProjection, released: Floats, middle: Floats) -> Floats:
    """Return the rows with these z that are nearest to the mean of similar rows."""
    return np.asarray(model.inverse_transform(released - model.transform(middle[None])) - model.mean_ + middle)


def _by_ridge(seen: Floats, public: Floats, released: Floats, _: RandomSource) -> Floats:
    from sklearn.linear_model import RidgeCV

    return np.asarray(RidgeCV(alphas=np.logspace(-3, 3, 7)).fit(seen, public).predict(released)).reshape(
        len(released), -1
    )


def _by_kernel(seen: Floats, public: Floats, released: Floats, source: RandomSource) -> Floats:
    """Return the estimates of kernel ridge regression, whose settings do best on a quarter of the similar rows."""
    order = permutation(source, len(seen))[:_MOST_ROWS]
    z, x = seen[order], public[order]
    middle, cut = x.mean(axis=0), max(1, len(order) // 4)
    distances, across = _squared(z, z), _squared(released, z)
    best = min(
        ((width, ridge) for width in _WIDTHS for ridge in _RIDGES),
        key=lambda setting: _held_out(distances, x - middle, cut, *_scaled(setting, z.shape[1])),
    )
    width, ridge = _scaled(best, z.shape[1])
    weights = _weights(np.exp(-width * distances), x - middle, ridge)
    return np.asarray(middle + np.exp(-width * across) @ weights)


def _scaled(setting: tuple[float, float], dimensions: int) -> tuple[float, float]:
    return setting[0] / dimensions, setting[1]


def _held_out(distances: Floats, x: Floats, cut: int, width: float, ridge: float) -> float:
    kernel = np.exp(-width * distances)
    weights = _weights(kernel[cut:, cut:], x[cut:], ridge)
    return float(np.linalg.norm(x[:cut] - kernel[:cut, cut:] @ weights, axis=1).mean())


def _weights(kernel: Floats, x: Floats, ridge: float) -> Floats:
    return np.asarray(linalg.solve(kernel + ridge * np.eye(len(kernel)), x, assume_a="pos"))


def _squared(one: Floats, other: Floats) -> Floats:
    from sklearn.metrics import pairwise_distances

    return np.asarray(pairwise_distances(one, other, metric="sqeuclidean"))
