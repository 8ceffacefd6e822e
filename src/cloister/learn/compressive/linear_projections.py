"""Linear projections: for variance (PCA), what tells classes apart (DCA, LDA), against a privacy task (MDR, RUCA).

None of them is differentially private; see `_base`. Principal components keep as much as possible of everything, so
that they protect nothing but what has little variance. Discriminant components keep what the utility task needs. MDR
and RUCA keep a utility task and work against a privacy task. If the two labels depend on each other, hiding the one
costs the other: `association_` says by how much they do (Cramér's V), before anything is published. See
`_scatter_ratios` for what each maximizes, and whose idea it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.core.whole_rows import Floats
from cloister.learn.compressive._base import LinearProjection, RatioProjection, list_attributes, projections
from cloister.learn.compressive._scatter_ratios import (
    ScatterRatio,
    association,
    discriminant_ratio,
    fisher_ratio,
    principal_ratio,
    utility_cost_ratio,
    utility_privacy_ratio,
)

__all__ = [
    "DiscriminantComponents",
    "LinearDiscriminants",
    "MultiDiscriminantRatio",
    "PrincipalComponents",
    "UtilityCostRatio",
]


Labels = dict[str, list[NDArray[np.int64]]]


@projections.register("principal_components")
@dataclass(kw_only=True, eq=False, repr=False)
class PrincipalComponents(LinearProjection, RatioProjection):
    """The directions of largest variance (PCA). Not differentially private; `PrivatePCA` is.

    Args:
        n_components: how many numbers are published per row.

    Attributes:
        total_scatter_: the variance in all directions, times the number of rows.

    >>> rows = [[0.0, 0.0], [4.0, 0.1], [8.0, 0.0], [12.0, 0.1]]
    >>> model = PrincipalComponents(n_components=1).fit(rows)
    >>> model.projection_.round(2).tolist(), model.guarantee_.holds
    ([[1.0], [0.01]], False)
    """

    learned: ClassVar[tuple[str, ...]] = list_attributes(("total_scatter_",))

    n_components: int | None = 2

    total_scatter_: float = field(init=False)

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Return the share of the variance along each component."""
        return np.asarray(self.eigenvalues_ / self.total_scatter_)

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:  # noqa: ARG002  # it needs no labels
        ratio = principal_ratio(rows)
        self.total_scatter_ = float(np.trace(ratio.numerator))
        return ratio

    def _most(self, labels: Labels) -> int:  # noqa: ARG002  # it needs no labels
        return int(self.n_features_in_)

    def _because(self) -> str:
        return " (no more than features, and with few rows no more than these span)"


@projections.register("discriminant_components")
@dataclass(kw_only=True, eq=False, repr=False)
class DiscriminantComponents(LinearProjection, RatioProjection):
    """The directions that tell utility classes apart, for their total scatter (DCA). Not differentially private.

    Args:
        n_components: how many numbers are published per row; None for one less than classes. More are possible with
            ``rho_prime``.
        rho: added to the diagonal of the denominator; None for 2% of the largest scatter inside of classes.
        rho_prime: None, or a number that orders the directions in which classes do not differ: above 0 those with
            little variance come first (rows are harder to reconstruct), below 0 those with much.

    >>> rows, digit = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1]
    >>> model = DiscriminantComponents(rho=1).fit(rows, digit)
    >>> model.eigenvalues_.round(6).tolist(), model.transform(rows).round(6).ravel().tolist()
    ([0.8], [-1.0, -1.0, 1.0, 1.0])
    """

    uses: ClassVar[tuple[str, ...]] = ("utility",)

    rho: Any = None
    rho_prime: Any = None

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:
        return discriminant_ratio(rows, labels["utility"][0], rho=self.rho, rho_prime=self.rho_prime)

    def _most(self, labels: Labels) -> int:
        signal = super()._most(labels)
        return signal if self.rho_prime is None or self.n_components is None else int(self.n_features_in_)

    def _because(self) -> str:
        told = super()._because() if self.rho_prime is None else ""
        return f"{told}; with rho_prime there are as many as features" if told else " (no more than rows and features)"


@projections.register("linear_discriminants")
@dataclass(kw_only=True, eq=False, repr=False)
class LinearDiscriminants(LinearProjection, RatioProjection):
    """The directions that tell utility classes apart, for the scatter inside of classes (LDA).

    Not differentially private. With ``rho=0`` these are the directions of `DiscriminantComponents`.

    Args:
        n_components: how many numbers are published per row; None for one less than classes.
        rho: added to the diagonal of the denominator; None for 2% of the largest scatter inside of classes.

    >>> rows, digit = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1]
    >>> LinearDiscriminants(rho=1).fit(rows, digit).eigenvalues_.round(6).tolist()
    [4.0]
    """

    uses: ClassVar[tuple[str, ...]] = ("utility",)

    rho: Any = None

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:
        return fisher_ratio(rows, labels["utility"][0], rho=self.rho)


@projections.register("multi_discriminant_ratio")
@dataclass(kw_only=True, eq=False, repr=False)
class MultiDiscriminantRatio(LinearProjection, RatioProjection):
    """The directions in which utility classes differ and privacy classes do not (MDR). Not differentially private.

    Args:
        n_components: how many numbers are published per row; None for one less than utility classes.
        rho: added to the diagonal of the denominator; None for a thousandth of the mean
            scatter between privacy classes.

    Attributes:
        association_: Cramér's V of the two labels, from 0 to 1: what hides one hides as much of the other.

    >>> rows, sick, sex = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1], [0, 1, 0, 1]
    >>> model = MultiDiscriminantRatio(rho=1).fit(rows, sick, privacy=sex)
    >>> model.eigenvalues_.round(6).tolist(), model.projection_.ravel().round(6).tolist(), model.association_
    ([4.0], [1.0, 0.0], 0.0)
    """

    uses: ClassVar[tuple[str, ...]] = ("utility", "privacy")
    learned: ClassVar[tuple[str, ...]] = list_attributes(("association_",))

    rho: Any = None

    association_: float = field(init=False)

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:
        wanted, unwanted = labels["utility"][0], labels["privacy"][0]
        self.association_ = association(wanted, unwanted)
        return utility_privacy_ratio(rows, wanted, unwanted, rho=self.rho, width=self.n_features_in_)


@projections.register("utility_cost_ratio")
@dataclass(kw_only=True, eq=False, repr=False)
class UtilityCostRatio(LinearProjection, RatioProjection):
    """The directions of the largest utility for their scatter and their privacy cost (RUCA).

    Not differentially private. Several labels of either kind are columns of a table, or a mapping of names to labels.
    With all privacy weights 0 this is `DiscriminantComponents`; large ones lead to `MultiDiscriminantRatio`.

    Args:
        n_components: how many numbers are published per row; None for one less than classes, summed over
            utility labels.
        rho: added to the diagonal of the denominator; None for 2% of the largest scatter inside of classes.
        utility_weights: how much each utility label counts; one number, or one per label.
        privacy_weights: how much each privacy label counts; one number, or one per label.

    Attributes:
        association_: the largest Cramér's V of a utility and a privacy label, from 0 to 1.

    >>> rows, sick, sex = [[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]], [0, 0, 1, 1], [0, 1, 0, 1]
    >>> UtilityCostRatio(rho=1).fit(rows, sick, privacy=sex).eigenvalues_.round(6).tolist()
    [0.8]
    """

    uses: ClassVar[tuple[str, ...]] = ("utility", "privacy")
    takes_several: ClassVar[bool] = True
    learned: ClassVar[tuple[str, ...]] = list_attributes(("association_",))

    rho: Any = None
    utility_weights: Any = 1.0
    privacy_weights: Any = 1.0

    association_: float = field(init=False)

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:
        wanted, unwanted = labels["utility"], labels["privacy"]
        self.association_ = max(association(one, other) for one in wanted for other in unwanted)
        return utility_cost_ratio(
            rows, wanted, unwanted, gains=self.utility_weights, costs=self.privacy_weights, rho=self.rho
        )
