"""How a model's confidence changes with its inputs: by its formula where it is linear, otherwise by asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from cloister.attacks.confidence import Floats
from cloister.attacks.models.linear import linear_layer
from cloister.attacks.models.reading import Integers, Victim

__all__ = ["Slopes", "slopes_of"]

Slopes: TypeAlias = Callable[[Floats, Integers], Floats]
"""From rows and the place of a class of each to the gradient of the logarithm of its probability."""

_DIFFERENCE = 0.1
_TINY = 1e-12


def slopes_of(victim: Victim, rows: Floats, *, width: float) -> Slopes:
    """Return the slopes of a model, checked on some rows; differences reach over 10 % of the width of features."""
    layer = linear_layer(victim.model, rows[:8])
    if layer is not None:
        return layer.gradients
    reach = _DIFFERENCE * width

    def differences(points: Floats, places: Integers) -> Floats:
        found = np.empty_like(points)
        for feature in range(points.shape[1]):
            step = reach * (np.arange(points.shape[1]) == feature)
            up, down = (
                np.log(victim.confidences(points + sign * step)[np.arange(len(points)), places] + _TINY)
                for sign in (1, -1)
            )
            found[:, feature] = (up - down) / (2 * reach)
        return found

    return differences
