"""How many rows of a class must be suppressed at least, whatever finer classes it is split into.

A model on shares is not hereditary: parts of a failing class may hold. But parts that hold would hold together as well
(the model is monotone), so what is left of the class after suppression is a set of its rows that holds. If a value can
have at most a share ``cap`` of such a set, and the class has ``count`` of ``size`` rows with it, at least
``(count - cap * size) / (1 - cap)`` rows must go, because suppressing rows with the value is the quickest way.

The caps: 1/l for frequency l-diversity and alpha for (alpha,k)-anonymity. A set with m values, the most frequent with a
share p, has an entropy of at most h(p) + (1 - p) log(m - 1), h being the binary entropy. In a t-close class a share
exceeds that of the released table by at most t for the variational distance, by sqrt(t / 2) for the divergence
(Pinsker), and by t over the least distance of two values for an earth mover's distance; in a beta-like class by a
factor of 1 + beta. The released table has no more rows with a value than the whole table. For recursive
(c,l)-diversity the most frequent value must fall below c times the tail, which suppression cannot lengthen.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import Check, Classes, Histogram
from cloister.core.guarantees import AlphaKAnonymity, BetaLikeness, LDiversity, TCloseness

Floats: TypeAlias = NDArray[np.float64]

_SLACK = 1e-9
"""Caps are rounded up by this much, far more than the rounding of floats and of the checks themselves."""

_BISECTIONS = 60


def deficits(check: Check, classes: Classes, *, released: int) -> NDArray[np.int64]:
    """Return a lower bound on the rows of each class that every finer release suppresses.

    Args:
        check: a monotone check.
        classes: the classes of the whole table.
        released: the least number of rows that a release has.
    """
    lacking = np.zeros(classes.size)
    if getattr(check, "attribute", None) is not None and released > 0:
        histogram = classes.histogram(check.model.attribute)
        lacking = _lacking(check.model, histogram, released, classes)
    return np.ceil(np.maximum(lacking * (1 - _SLACK) - _SLACK, 0)).astype(np.int64)


def _lacking(model: object, histogram: Histogram, released: int, classes: Classes) -> Floats:
    if isinstance(model, LDiversity) and model.variant == "recursive" and model.c is not None:
        return histogram.largest - float(model.c) * _tails(histogram, int(model.l))
    caps = _caps(model, histogram, released, classes) + _SLACK
    over = histogram.counts - caps * histogram.sizes[histogram.classes]
    needed = np.divide(over, 1 - caps, out=np.zeros_like(over), where=(over > 0) & (caps < 1))
    return np.maximum.reduceat(needed, histogram.starts) if len(histogram.sizes) else needed


def _caps(model: object, histogram: Histogram, released: int, classes: Classes) -> Floats:
    """Return the greatest share that each line's value can have in what is left of its class."""
    highest = histogram.overall[histogram.values] / released
    match model:
        case AlphaKAnonymity():
            return np.full_like(highest, float(model.alpha))
        case LDiversity(variant="frequency"):
            return np.full_like(highest, float(1 / model.l))
        case LDiversity(variant="entropy"):
            return _entropy_caps(histogram.distinct, float(model.l))[histogram.classes]
        case BetaLikeness():
            return highest * float(1 + model.beta)
        case TCloseness():
            return highest + _excess(model, histogram, classes)
    return np.ones_like(highest)


def _excess(model: TCloseness, histogram: Histogram, classes: Classes) -> float:
    t, attribute = float(model.t), classes.cells.sensitive[classes.cells.place_of(model.attribute)].attribute
    match model.variant:
        case "kl":
            return float(np.sqrt(t / 2))
        case "ordered":
            return t * max(int((histogram.overall > 0).sum()) - 1, 1)
        case "hierarchical":
            return t * max(attribute.height, 1)
    return t


def _entropy_caps(values: NDArray[np.int64], least: float) -> Floats:
    """Return, for sets of so many values, the greatest share of one value with entropy log(least)."""
    low, high, rest = 1 / values, np.ones(len(values)), np.log(np.maximum(values - 1, 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_enough = _binary_entropy(middle) + (1 - middle) * rest >= np.log(least)
        low, high = np.where(is_enough, middle, low), np.where(is_enough, high, middle)
    return np.where(values < least, 0.0, high)


def _binary_entropy(share: Floats) -> Floats:
    inside = np.clip(share, 1e-300, 1 - 1e-16)
    return np.asarray(-inside * np.log(inside) - (1 - inside) * np.log1p(-inside))


def _tails(histogram: Histogram, place: int) -> Floats:
    """Return the rows of the values of each class from a place on, most frequent first."""
    order = np.lexsort((-histogram.counts, histogram.classes))
    rank = np.arange(len(order)) - histogram.starts[histogram.classes]
    return histogram.add(np.where(rank >= place - 1, histogram.counts[order], 0).astype(np.float64))
