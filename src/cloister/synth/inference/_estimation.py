"""The most even distribution that fits noisy marginals: a smooth dual problem, solved with L-BFGS.

Among all distributions p over the declared cells, the estimate minimizes

    sum_i |N p_i - y_i|^2 / (2 s_i^2)  -  w H(p)

where p_i is the marginal that measurement i saw as y_i with noise of deviation s_i, N the number of rows, H the
entropy and w a small weight. Its dual is unconstrained and smooth: p is proportional to exp(sum_i t_i), and t
minimizes

    log Z(t)  -  sum_i t_i y_i / N  +  sum_i w s_i^2 / (2 N^2) |t_i|^2.

At the minimum N p_i - y_i = -w s_i^2 t_i / N, so that w bounds how far a marginal may be pulled. McKenna, Sheldon and
Miklau (2019) estimate the same kind of model by proximal steps on the marginals.

Nothing here looks at protected data: measurements are released already.

Noisy marginals are what was released of the data, and all that estimation knows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from cloister.errors import InternalError
from cloister.synth.inference._junction_tree import Beliefs, Floats, JunctionTree, junction_tree
from cloister.synth.inference._marginal_model import MarginalModel

__all__ = ["Estimator", "NoisyMarginal", "Zeros", "merge_repeats", "total_of"]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginal:
    """The noisy counts of one marginal.

    Attributes:
        columns: the positions of its columns, in order.
        values: the noisy counts, one axis per column.
        deviation: the standard deviation of the noise on each count.
    """

    columns: tuple[int, ...]
    values: Floats
    deviation: float


def merge_repeats(measurements: Sequence[NoisyMarginal]) -> list[NoisyMarginal]:
    """Return one measurement per set of columns: repeated ones averaged by the inverse of their variance."""
    groups: dict[tuple[int, ...], list[NoisyMarginal]] = {}
    for item in measurements:
        groups.setdefault(item.columns, []).append(item)
    return [items[0] if len(items) == 1 else _average(items) for items in groups.values()]


def _average(items: Sequence[NoisyMarginal]) -> NoisyMarginal:
    weights = [item.deviation**-2 for item in items]
    values = sum(weight * item.values for weight, item in zip(weights, items, strict=True)) / sum(weights)
    return NoisyMarginal(items[0].columns, np.asarray(values), math.sqrt(1 / sum(weights)))


def total_of(measurements: Sequence[NoisyMarginal]) -> float:
    """Return the number of rows as the measurements have it: their sums, weighted by the inverse of their variance."""
    weights = [1 / (item.values.size * item.deviation**2) for item in measurements]
    total = sum(weight * float(item.values.sum()) for weight, item in zip(weights, measurements, strict=True))
    # Noise can push the total below any number of rows, and everything that follows divides by it.
    return max(1.0, total / sum(weights))


ENTROPY_WEIGHT = 10.0
_MEMORY = 8
_LEAST = 0.1
"""The smallest count that a fitting step believes in, in deviations of its noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Zeros:
    """Which combinations of some columns' cells are possible."""

    columns: tuple[int, ...]
    possible: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Estimator:
    """How an estimate is made.

    Attributes:
        iterations: the most steps of L-BFGS.
        tolerance: when to stop: the largest entry of the scaled gradient.
        entropy: the weight w of the entropy.
    """

    iterations: int = 300
    tolerance: float = 1e-6
    entropy: float = ENTROPY_WEIGHT

    def fit(
        self,
        sizes: Sequence[int],
        measurements: Sequence[NoisyMarginal],
        *,
        zeros: Sequence[Zeros] = (),
        start: MarginalModel | None = None,
    ) -> MarginalModel:
        """Return the model of some measurements.

        Args:
            sizes: the number of cells of each column.
            measurements: what was seen.
            zeros: what is impossible.
            start: an earlier model, to begin with.
        """
        # Repeats are averaged first, since the dual has one array of parameters for each set of columns.
        seen = merge_repeats(measurements)
        rows = total_of(seen)
        # Impossible combinations need a clique as well, in which they are held at zero.
        tree = junction_tree(sizes, [*(item.columns for item in seen), *(item.columns for item in zeros)])
        problem = _Problem(tree, seen, zeros, rows, self.entropy)
        found = minimize(
            problem.value,
            problem.start(start),
            jac=True,
            method="L-BFGS-B",
            # A step may hardly change the value and still move marginals, so that only the gradient ends the
            # search.
            options={
                "maxiter": self.iterations,
                "maxfun": 2 * self.iterations,
                "gtol": self.tolerance,
                "ftol": 0.0,
                "maxcor": _MEMORY,
            },
        )
        weights = problem.unpack(found.x)
        _, cliques = Beliefs(tree).marginals(problem.potentials(weights))
        return MarginalModel(
            tree=tree,
            cliques=tuple(cliques),
            total=rows,
            weights={item.columns: weight for item, weight in zip(seen, weights, strict=True)},
        )


class _Problem:
    """The dual objective in scaled parameters: each is divided by the root of about its curvature."""

    def __init__(
        self, tree: JunctionTree, seen: Sequence[NoisyMarginal], zeros: Sequence[Zeros], rows: float, entropy: float
    ) -> None:
        self._tree, self._beliefs, self._seen, self._rows = tree, Beliefs(tree), seen, rows
        self._homes = [_home(tree, item.columns) for item in seen]
        self._axes = [_place(tree, item.columns, home) for item, home in zip(seen, self._homes, strict=True)]
        self._ends = np.cumsum([0, *(item.values.size for item in seen)])
        # Noise on an impossible cell is no evidence of rows there.
        self._shares = np.concatenate([(_possible_cells(item, zeros) * item.values).ravel() for item in seen]) / rows
        spread = np.concatenate([np.full(item.values.size, item.deviation / rows) for item in seen])
        self._ridge = entropy * spread**2
        # At a cell the second derivative of log Z is about its share; where that is small or below zero, the
        # noise says how small it may be believed to be.
        self._scale = 1.0 / np.sqrt(np.maximum(self._shares, spread) + self._ridge)
        self._fixed = [self._impossible(item) for item in zeros]

    def _impossible(self, item: Zeros) -> tuple[int, Floats]:
        home = _home(self._tree, item.columns)
        # The logarithm of an impossible cell is minus infinity, which no parameter can outweigh.
        with np.errstate(divide="ignore"):
            return home, np.log(item.possible).reshape(_place(self._tree, item.columns, home)[0])

    def start(self, earlier: MarginalModel | None) -> Floats:
        """Return scaled parameters to begin with: an earlier model's, and one fitting step for what is new."""
        parts = []
        for place, item in enumerate(self._seen):
            known = None if earlier is None else earlier.weights.get(item.columns)
            if known is not None:
                parts.append(known.ravel())
            # Without an earlier model the single columns carry the start; larger marginals on top of them would
            # count the columns twice.
            elif earlier is None and len(item.columns) > 1:
                parts.append(np.zeros(item.values.size))
            else:
                seen = self._shares[self._ends[place] : self._ends[place + 1]]
                even = np.full(seen.size, 1.0 / seen.size)
                modeled = even if earlier is None else earlier.marginal(item.columns).ravel()
                least = _LEAST * item.deviation / self._rows
                parts.append(np.log(np.maximum(seen, least)) - np.log(np.maximum(modeled, least)))
        return np.asarray(np.concatenate(parts) / self._scale)

    def unpack(self, scaled: Floats) -> list[Floats]:
        """Return the parameters of each measurement."""
        plain = scaled * self._scale
        return [
            plain[self._ends[place] : self._ends[place + 1]].reshape(item.values.shape)
            for place, item in enumerate(self._seen)
        ]

    def potentials(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return the log potential of each clique."""
        cliques = [np.zeros(self._tree.shape(place)) for place in range(len(self._tree.cliques))]
        for weight, home, (shape, _) in zip(weights, self._homes, self._axes, strict=True):
            cliques[home] += weight.reshape(shape)
        for home, forbidden in self._fixed:
            cliques[home] += forbidden
        return cliques

    def value(self, scaled: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        plain = scaled * self._scale
        log_partition, cliques = self._beliefs.marginals(self.potentials(self.unpack(scaled)))
        modeled = np.concatenate(
            [cliques[home].sum(axis=gone).ravel() for home, (_, gone) in zip(self._homes, self._axes, strict=True)]
        )
        pulled = self._ridge * plain
        value = log_partition - float(plain @ self._shares) + 0.5 * float(plain @ pulled)
        # Parameters are scaled, so the chain rule scales their gradient.
        return value, (modeled - self._shares + pulled) * self._scale


def _home(tree: JunctionTree, columns: Sequence[int]) -> int:
    home = tree.home(columns)
    if home is None:
        raise InternalError("A marginal has no clique.")
    return home


def _place(tree: JunctionTree, columns: Sequence[int], home: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of a marginal among the axes of its clique, and the axes that it lacks."""
    clique = tree.cliques[home]
    shape = tuple(tree.sizes[column] if column in columns else 1 for column in clique)
    return shape, tuple(axis for axis, column in enumerate(clique) if column not in columns)


def _possible_cells(item: NoisyMarginal, zeros: Sequence[Zeros]) -> NDArray[np.bool_]:
    """Return which cells of a measurement are possible."""
    allowed = np.ones(item.values.shape, dtype=np.bool_)
    for known in zeros:
        if set(known.columns) <= set(item.columns):
            shape = [
                size if column in known.columns else 1
                for column, size in zip(item.columns, item.values.shape, strict=True)
            ]
            allowed &= known.possible.reshape(shape)
    return allowed
