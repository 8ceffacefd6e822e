"""What attacks on integrity share: numbers in, accuracies with intervals out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidence import binomial_interval
from cloister.attacks.integrity.result import RobustnessPoint
from cloister.attacks.models.reading import Labeled, as_matrix, read_labeled
from cloister.core import exact
from cloister.errors import ParameterError

__all__ = ["common_share", "measured", "read_numbers", "read_strengths"]


def read_numbers(rows: Any, *, target: str | None, what: str) -> Labeled:
    """Return rows of numbers with labels."""
    found = read_labeled(rows, target=target, what=what)
    return Labeled(as_matrix(found.features, what=what), found.labels)


def read_strengths(values: Sequence[object], *, name: str, most: float = np.inf) -> list[float]:
    """Return the strengths of an attacker in order, from 0 on."""
    numbers = sorted({0.0, *(float(exact.number(value, name=f"each of {name}")) for value in values)})
    if numbers[0] < 0 or numbers[-1] > most:
        limit = "" if most == np.inf else f" and at most {most:g}"
        raise ParameterError(f"Some of {name} are out of range.", fix=f"give {name} that are at least 0{limit}.")
    if len(numbers) < 2:
        raise ParameterError(f"There are no {name} above 0.", fix=f"list a few {name}, such as 0.05 and 0.1.")
    return numbers


def measured(strength: float, right: NDArray[np.bool_], *, confidence: float) -> RobustnessPoint:
    """Return the accuracy at a strength, by which records are answered rightly."""
    hits = int(right.sum())
    return RobustnessPoint(
        strength=strength,
        accuracy=hits / len(right),
        interval=binomial_interval(hits, len(right), confidence=confidence),
    )


def common_share(labels: NDArray[Any]) -> float:
    """Return the share of the most common label."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))
