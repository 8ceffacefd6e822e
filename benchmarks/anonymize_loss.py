"""The one evaluator of every tool's release: labels are read back as sets of raw values, and their loss is counted.

It shares no code with the library. A label is a name of the hierarchy, a set in braces or an interval with both ends
(the published hierarchy of ages puts 20 under "15-19"; the library calls that "16-20" when it reads it). A label costs
(values - 1) / (all values - 1), or its width over that of the column; NCP is the mean over rows and columns, and a row
that is not released costs 1 in every column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.anonymize_data import QUASI, paths_to_root

_SET, _INTERVAL = re.compile(r"\{(.+)\}"), re.compile(r"\[(\d+), (\d+)\]|(\d+)-(\d+)")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a released table lost (``ncp``), how many rows its smallest class has, and how many rows are left out."""

    ncp: float
    smallest: int
    suppressed: int


def evaluate(released: pa.Table, *, total: int, counts: Sequence[int] | None = None) -> Evaluation:
    """Evaluate a released table.

    Args:
        released: the quasi-identifiers as they were released, and whatever else.
        total: the number of rows of the original.
        counts: how many rows each line stands for; one, if not given.
    """
    weights = np.ones(released.num_rows, dtype=np.int64) if counts is None else np.asarray(counts)
    kept = int(weights.sum())
    lost = float(total - kept) * len(QUASI)
    keys = np.zeros(released.num_rows, dtype=np.int64)
    for name in QUASI:
        coded = released[name].combine_chunks().cast(pa.string()).dictionary_encode()
        codes = coded.indices.to_numpy()
        losses = _losses(name, coded.dictionary.to_pylist())
        lost += float(losses[codes] @ weights)
        keys = np.unique(keys * len(losses) + codes, return_inverse=True)[1].ravel()
    smallest = int(np.bincount(keys, weights=weights).min()) if kept else 0
    return Evaluation(ncp=lost / (total * len(QUASI)), smallest=smallest, suppressed=total - kept)


def _losses(name: str, labels: Sequence[str]) -> np.ndarray:
    meanings = _meanings(name)
    return np.array([_loss(name, _values(label, meanings), len(meanings["*"])) for label in labels])


def _meanings(name: str) -> dict[str, set[str]]:
    """Return the raw values behind every name of a hierarchy."""
    found: dict[str, set[str]] = {}
    for names in paths_to_root(name):
        for label in names:
            found.setdefault(label, set()).add(names[0])
    return found


def _values(label: str, meanings: Mapping[str, set[str]]) -> set[str]:
    """Return the raw values that a label allows.

    Raises:
        KeyError: if it names something that is not in the data.
    """
    if label in meanings:
        return meanings[label]
    if found := _SET.fullmatch(label):
        return set().union(*(meanings[part] for part in found[1].split(", ")))
    if found := _INTERVAL.fullmatch(label):
        low, high = (int(end) for end in found.groups() if end is not None)
        return {str(number) for number in range(low, high + 1)} & meanings["*"]
    raise KeyError(label)


def _loss(name: str, values: set[str], size: int) -> float:
    if name != "age":
        return (len(values) - 1) / (size - 1)
    numbers = sorted(map(int, values))
    return (numbers[-1] - numbers[0]) / (size - 1)
