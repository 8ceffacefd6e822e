"""Linear projections that keep variance, or what tells classes apart: PCA, DCA and LDA.

None of them is differentially private; see `base`. Principal components keep as much as possible of everything, so that
they protect nothing but what has little variance. Discriminant components keep what the utility task needs. See
`ratios` for what each maximizes, and whose idea it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cloister.learn.compressive.base import LinearProjection, RatioProjection, listed, projections
from cloister.learn.compressive.ratios import Ratio, discriminant_ratio, fisher_ratio, principal_ratio
from cloister.learn.rows import Floats

__all__ = ["DiscriminantComponents", "LinearDiscriminants", "PrincipalComponents"]

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

    learned: ClassVar[tuple[str, ...]] = listed(("total_scatter_",))

    n_components: int | None = 2

    total_scatter_: float = field(init=False)

    @property
    def explained_variance_ratio_(self) -> Floats:
        """Return the share of the variance along each component."""
        return np.asarray(self.eigenvalues_ / self.total_scatter_)

    def _ratio(self, rows: Floats, labels: Labels) -> Ratio:  # noqa: ARG002  # it needs no labels
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

    def _ratio(self, rows: Floats, labels: Labels) -> Ratio:
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

    def _ratio(self, rows: Floats, labels: Labels) -> Ratio:
        return fisher_ratio(rows, labels["utility"][0], rho=self.rho)
