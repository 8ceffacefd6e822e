"""Bins that hold about as many rows each, between private quantiles.

Every edge is chosen by the exponential mechanism's better sibling (`cloister.mechanisms.Select`) among the ends of a
public grid, the middle edge first, then the middle edges on both sides of it, and so on (Kaplan, Schnapp and Stemmer
2022): rows on the two sides of an edge are disjoint, so a level of edges costs as much as one.

Privacy: claim epsilon-DP for one row added or removed. For an edge that should have a share p/q of the rows of an
interval below it, the score of a candidate is -|q * below - p * all|. A row in the interval moves it by at most
max(p, q - p), both numbers being whole. Intervals of one level depend on the edges released before only, and a row is
in one of them; levels and features compose.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import validation
from cloister.core.random import RandomSource
from cloister.errors import ParameterError
from cloister.learn.base import Plan, PrivateTransformer, estimators
from cloister.learn.encoding import Numeric
from cloister.learn.outlook import Outlook
from cloister.learn.reading import Facts
from cloister.learn.rows import Floats, Rows
from cloister.mechanisms.allowance import Allowance, Step
from cloister.mechanisms.selection import Select

__all__ = ["PrivateQuantileBins"]

ENCODINGS = ("ordinal", "onehot")


@dataclass(frozen=True, slots=True)
class _Settings:
    epsilon: Fraction
    """Of one edge."""
    cells: int


@estimators.register("quantile_bins")
@dataclass(kw_only=True, eq=False, repr=False)
class PrivateQuantileBins(PrivateTransformer):
    """Cuts numbers at private quantiles, the same share of epsilon for each feature.

    Args:
        n_bins: how many bins for each feature; where many rows have one value, fewer come out.
        encode: "ordinal" gives the position of the bin, "onehot" one column per bin.
        n_cells: how fine the public grid of possible edges is, per feature.

    Attributes:
        edges_: the inner edges of the bins of each feature, ascending.

    >>> rows = [[x / 10] for x in range(1000)]
    >>> bins = PrivateQuantileBins(n_bins=4, epsilon=3, bounds=(0, 1000)).fit(rows)
    >>> (abs(bins.edges_[0] - [25, 50, 75]) < 15).all()
    np.True_
    """

    learned: ClassVar[tuple[str, ...]] = ("edges_",)

    n_bins: int = 5
    encode: str = "ordinal"
    n_cells: int = 1000

    edges_: list[Floats] = field(init=False)

    # Planning --------------------------------------------------------------------------------------------------------

    def _plan(self, facts: Facts, allowance: Allowance) -> Plan:
        validation.check_choice(self.encode, name="encode", allowed=ENCODINGS)
        bins = validation.check_count(self.n_bins, name="n_bins", at_least=2)
        cells = validation.check_count(self.n_cells, name="n_cells", at_least=bins)
        if not allowance.is_pure:
            raise ParameterError("Quantiles are chosen with epsilon alone.", fix="leave delta out.")
        if not facts.encoding.is_numeric:
            raise ParameterError(
                "Bins are for numbers, and there are categories.", fix="name the numbers in features=[...]."
            )
        levels = (bins - 1).bit_length()
        epsilon = allowance.epsilon / (levels * len(facts.encoding.features))
        outlook = Outlook(
            rows=_edge(1, 2, epsilon, cells + 1).shortfall(),
            what="the number of rows below an edge",
            compared="half of all rows",
        )
        steps = tuple(
            Step(f"feature {place}: level {level} of edges", _edge(1, 2, epsilon, cells + 1).event)
            for place in range(len(facts.encoding.features))
            for level in range(1, levels + 1)
        )
        return Plan(steps=steps, settings=_Settings(epsilon, cells), outlook=outlook)

    # Learning --------------------------------------------------------------------------------------------------------

    def _learn(self, facts: Facts, rows: Rows, plan: Plan, source: RandomSource) -> None:
        edges = []
        for place, feature in enumerate(facts.encoding.features):
            counts = _counts(rows.features[:, place], rows.weights, feature, plan.settings.cells)  # type: ignore[arg-type]  # checked
            chosen = _edges(counts, int(self.n_bins), plan.settings.epsilon, source)
            low, high = facts.encoding.bounds[0][place], facts.encoding.bounds[1][place]
            edges.append(low + (high - low) * np.unique(chosen) / plan.settings.cells)
        self.edges_ = edges

    # What costs nothing ----------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Floats:
        """Return the bins of rows: positions, or one column for each bin. An edge belongs to the bin above it."""
        features = self._encoded(X)
        codes = [np.searchsorted(edges, features[:, place], side="right") for place, edges in enumerate(self.edges_)]
        if self.encode == "ordinal":
            return np.stack(codes, axis=1).astype(np.float64)
        parts = [code[:, None] == np.arange(len(edges) + 1) for code, edges in zip(codes, self.edges_, strict=True)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002  # as scikit-learn has it
        """Return the names of the columns that come out."""
        names = self.encoding_.columns
        if self.encode == "ordinal":
            return np.array(names, dtype=object)
        listed = [
            f"{name}={place}" for name, edges in zip(names, self.edges_, strict=True) for place in range(len(edges) + 1)
        ]
        return np.array(listed, dtype=object)


def _counts(values: Floats, weights: NDArray[np.int64], feature: Numeric, cells: int) -> NDArray[np.int64]:
    """Return how many rows lie in each cell of the grid."""
    scaled = (np.clip(values, feature.low, feature.high) - feature.low) / (feature.high - feature.low) * cells
    places = np.clip(np.floor(scaled), 0, cells - 1).astype(np.int64)
    totals = np.zeros(cells, dtype=np.int64)
    np.add.at(totals, places, weights)
    return totals


def _edges(counts: NDArray[np.int64], bins: int, epsilon: Fraction, source: RandomSource) -> list[int]:
    """Return the ends of cells, ascending, between which the bins lie."""
    if bins < 2:
        return []
    below = bins // 2
    inside = np.concatenate([[0], np.cumsum(counts)])
    scores = -np.abs(bins * inside - below * inside[-1])
    edge = _edge(below, bins, epsilon, len(scores)).release(scores, random_state=source).index
    left = _edges(counts[:edge], below, epsilon, source)
    right = _edges(counts[edge:], bins - below, epsilon, source)
    return [*left, edge, *(edge + place for place in right)]


def _edge(share: int, whole: int, epsilon: Fraction, candidates: int) -> Select:
    return Select(
        candidates=tuple(range(candidates)), score_sensitivity=Fraction(max(share, whole - share)), epsilon=epsilon
    )
