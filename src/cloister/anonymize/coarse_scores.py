"""Coarser scores of a model, so that its confidence tells less: rounded, or labels alone.

This takes some detail from whoever probes a model. **It is no defense by itself**: attacks that use labels only find
members of the training data too (Choquette-Choo et al. 2021), and rounding to two digits changes practically nothing.
A promise needs a model that was trained privately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.guarantees import NoGuarantee
from cloister.core.result import Result
from cloister.core.validation import check_count
from cloister.errors import ParameterError

__all__ = ["CoarseScores", "coarsen_scores"]

_REASON = "rounding scores, or telling labels only, does not stop attacks on the model; train it privately"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoarseScores(Result):
    """What is told instead of a model's scores: rounded scores, or labels."""

    schema: ClassVar[str] = "cloister.coarse_scores/1"

    values: NDArray[Any] = field(repr=False)
    labels_only: bool

    def __str__(self) -> str:
        told = "labels" if self.labels_only else "rounded scores"
        return f"{told} for {len(self.values)} cases, no guarantee"

    def _fields(self) -> dict[str, Any]:
        return {"labels_only": self.labels_only, "values": self.values.tolist()}


def coarsen_scores(
    scores: ArrayLike, *, digits: int | None = None, labels: Sequence[object] | None = None
) -> CoarseScores:
    """Return rounded scores, or the label of each case's highest score.

    Args:
        scores: one row of class scores per case.
        digits: how many decimals to keep.
        labels: instead, the names of the classes: only the likeliest is told, the first one on a tie.

    Raises:
        ParameterError: if the scores are no finite matrix, or not exactly one of digits and labels is given.
    """
    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.shape[1] or not np.isfinite(matrix).all():
        raise ParameterError("The scores are not a finite matrix.", fix="give one row of class scores per case.")
    if (digits is None) == (labels is None):
        raise ParameterError("Scores are rounded, or replaced by labels.", fix="give one of digits=2 and labels=[...].")
    told = np.round(matrix, check_count(digits, name="digits")) if labels is None else _labels(matrix, labels)
    return CoarseScores(guarantee=NoGuarantee(reason=_REASON), values=told, labels_only=labels is not None)


def _labels(matrix: NDArray[np.float64], labels: Sequence[object]) -> NDArray[Any]:
    if len(labels) != matrix.shape[1]:
        raise ParameterError("There is not one label per class.", fix=f"give {matrix.shape[1]} labels.")
    names = np.empty(len(labels), dtype=object)
    names[:] = list(labels)
    return np.asarray(names[matrix.argmax(axis=1)])
