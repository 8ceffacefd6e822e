"""The slow, obvious version: the whole table as one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cloister.synth.inference._estimation import NoisyMarginal
from cloister.synth.inference._marginal_model import MarginalModel

Floats = NDArray[np.float64]


def joint_of(model: MarginalModel) -> Floats:
    """Return the whole distribution of a model: the product of cliques divided by what they share."""
    sizes = model.tree.sizes
    joint = np.ones(sizes)
    for clique, shared, table in zip(model.tree.cliques, model.tree.separators, model.cliques, strict=True):
        gone = tuple(axis for axis, column in enumerate(clique) if column not in shared)
        below = table.sum(axis=gone, keepdims=True)
        conditional = np.divide(table, below, out=np.zeros_like(table), where=below > 0)
        joint = joint * conditional.reshape([sizes[column] if column in clique else 1 for column in range(len(sizes))])
    return joint


def marginal_of(joint: Floats, columns: Sequence[int]) -> Floats:
    """Return a marginal of the whole distribution."""
    return np.asarray(joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in columns)))


def objective(joint: Floats, seen: Sequence[NoisyMarginal], rows: float, entropy: float) -> float:
    """Return what an estimate minimizes."""
    present = joint[joint > 0]
    total = entropy * float((present * np.log(present)).sum())
    for item in seen:
        total += float(((rows * marginal_of(joint, item.columns) - item.values) ** 2).sum()) / (2 * item.deviation**2)
    return total
