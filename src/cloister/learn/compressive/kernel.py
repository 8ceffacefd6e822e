"""Projections of a kernel's feature space: kernel principal and kernel discriminant components.

Neither is differentially private; see `_base`. A kernel is computed against landmarks. Without landmarks of your own,
the fitted rows are the landmarks: that is the textbook method (Schölkopf, Smola and Müller 1998), and then the model
holds the rows themselves and must never be published. With public rows as landmarks it holds those (Williams and Seeger
2001). The features are the kernel against the landmarks, turned and scaled so that their inner products are the kernel
on the landmarks; the rest is as without a kernel. There is no inverse: an attacker learns one, see `compressive_audit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloister.core import validation
from cloister.core.guarantees import NoGuarantee
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn.compressive._base import EMPIRICAL, RatioProjection, list_attributes, projections
from cloister.learn.compressive._labeled_rows import as_numbers
from cloister.learn.compressive._scatter_ratios import ScatterRatio, discriminant_ratio, principal_ratio

__all__ = ["KernelDiscriminantComponents", "KernelPrincipalComponents"]

KERNELS = ("rbf", "poly", "linear", "sigmoid", "cosine", "laplacian")
_SMALLEST = 1e-10
"""Directions of the landmarks' kernel with a smaller share than this of the largest one are noise of the arithmetic."""

Labels = dict[str, list[NDArray[np.int64]]]


@dataclass(kw_only=True, eq=False, repr=False)
class KernelProjection(RatioProjection):
    """The base of kernel projections.

    Args:
        kernel: "rbf", "poly", "linear", "sigmoid", "cosine" or "laplacian".
        gamma: the width of the kernel; None for one divided by the number of features.
        degree: the degree of a polynomial.
        coef0: what a polynomial or sigmoid adds.
        landmarks: public rows to compare with; None takes the fitted rows, which the model then holds.

    Attributes:
        landmarks_: the rows that the model holds.
        map_: from the kernel against the landmarks to features.
    """

    learned: ClassVar[tuple[str, ...]] = list_attributes(("landmarks_", "map_"))

    kernel: str = "rbf"
    gamma: Any = None
    degree: float = 3
    coef0: float = 1
    landmarks: Any = None

    landmarks_: Floats = field(init=False)
    map_: Floats = field(init=False)

    def _prepare(self, rows: Floats) -> Floats:
        validation.check_choice(self.kernel, name="kernel", allowed=KERNELS)
        self.landmarks_ = rows.copy() if self.landmarks is None else self._given(rows.shape[1])
        values, vectors = linalg.eigh(self._kernel(self.landmarks_))
        kept = values > values.max() * _SMALLEST
        self.map_ = vectors[:, kept] / np.sqrt(values[kept])
        return self._features(rows)

    def _given(self, width: int) -> Floats:
        found = as_numbers(self.landmarks, what="landmarks")
        if found.ndim != 2 or found.shape[1] != width or not np.isfinite(found).all():
            raise ParameterError(
                "The landmarks are not finite rows with the features of X.", fix="give landmarks as public rows like X."
            )
        return found

    def _kernel(self, rows: Floats) -> Floats:
        from sklearn.metrics.pairwise import pairwise_kernels

        settings = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(pairwise_kernels(rows, self.landmarks_, metric=self.kernel, filter_params=True, **settings))

    def _features(self, rows: Floats) -> Floats:
        return np.asarray(self._kernel(rows) @ self.map_)

    def _promise(self) -> NoGuarantee:
        holds = "; this model also holds the fitted rows themselves: never publish it" if self.landmarks is None else ""
        return NoGuarantee(reason=EMPIRICAL + holds)

    def _because(self) -> str:
        return " (no more than rows and landmarks span)"


@projections.register("kernel_principal_components")
@dataclass(kw_only=True, eq=False, repr=False)
class KernelPrincipalComponents(KernelProjection):
    """The directions of largest variance in a kernel's feature space (KPCA). Not differentially private.

    >>> rows = [[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.1, 0.0], [0.0, 0.1]]
    >>> KernelPrincipalComponents(n_components=1, gamma=1).fit_transform(rows).shape
    (6, 1)
    """

    n_components: int | None = 2

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:  # noqa: ARG002  # it needs no labels
        return principal_ratio(rows)

    def _most(self, labels: Labels) -> int:  # noqa: ARG002  # it needs no labels
        return self.rank_


@projections.register("kernel_discriminant_components")
@dataclass(kw_only=True, eq=False, repr=False)
class KernelDiscriminantComponents(KernelProjection):
    """The directions of a kernel's feature space that tell utility classes apart (KDCA). Not differentially private.

    Args:
        rho: added to the diagonal of the denominator; None for 2% of the largest scatter inside of classes.
        rho_prime: None, or a number that orders the directions in which classes do not differ.

    >>> rows, ring = [[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0], [0.1, 0.0], [0.0, 0.1]], [1, 1, 1, 1, 0, 0]
    >>> model = KernelDiscriminantComponents(gamma=1, rho=0.01).fit(rows, ring)
    >>> z = model.transform(rows).ravel()
    >>> bool(z[:4].max() < z[4:].min() or z[:4].min() > z[4:].max())
    True
    """

    uses: ClassVar[tuple[str, ...]] = ("utility",)

    rho: Any = None
    rho_prime: Any = None

    def _ratio(self, rows: Floats, labels: Labels) -> ScatterRatio:
        return discriminant_ratio(rows, labels["utility"][0], rho=self.rho, rho_prime=self.rho_prime)

    def _most(self, labels: Labels) -> int:
        signal = super()._most(labels)
        return signal if self.rho_prime is None or self.n_components is None else self.rank_
