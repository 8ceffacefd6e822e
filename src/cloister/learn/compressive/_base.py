"""What every projection is: a scikit-learn transformer that publishes z = W'(x - m) for x, and promises nothing.

This is not differential privacy. It is an empirical technique: a task that is known beforehand stays learnable from z
while another gets harder, for the attackers that were tried. W and m are learned from the rows, are published, and tell
about the rows. Rows near a subspace of few dimensions, or rows that resemble public ones, can be estimated from z, and
two different projections of the same rows may give the rows away. Measure with `compressive_audit` before any release,
and register releases with `ProjectionRegistry`.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cloister.core import validation
from cloister.core.guarantees import NoGuarantee
from cloister.core.registry import Registry
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError, PrivacyParameterWarning
from cloister.learn.compressive._labeled_rows import read_labels, read_matrix
from cloister.learn.compressive._scatter_ratios import ScatterRatio, solve_eigenproblem, with_fixed_signs

__all__ = ["EMPIRICAL", "LinearProjection", "Projection", "RatioProjection", "list_attributes", "projections"]

projections: Registry[type[Any]] = Registry("projection")
"""Every projection by name. They are kept apart from private estimators: none of them is differentially private."""

EMPIRICAL = (
    "compressive privacy is empirical and is not differential privacy; the projection was learned from the rows and "
    "tells about them, and whoever has similar rows can estimate part of what it leaves out"
)

_AGREE, _BITS = 1e-8, 28
"""Rows agree in a component of less than this share of the largest deviation; of it, as many bits of z are kept."""

Codes = NDArray[np.int64]


@dataclass(kw_only=True, eq=False, repr=False)
class Projection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """The base of all projections.

    Args:
        n_components: how many numbers are published per row; None takes as many as classes can be told apart by.
        scale: None, or "standard" to divide each feature by its standard deviation first.

    Attributes:
        projection_: W, one column of length 1 per component: z = ((x - mean_) / scale_) @ projection_.
        eigenvalues_: the ratio that each component attains.
        mean_: the mean of the rows.
        scale_: what each feature is divided by.
        rank_: in how many directions the rows vary; as many components give everything away.
        rho_: the number on the diagonal of the denominator.
        grain_: per component, 0, or what z is a multiple of. Along a component in which all fitted rows agree, z would
            otherwise be noise of the arithmetic, and that tells of the other features.
        class_prior_: the share of each utility class; empty where there is none.
        guarantee_: `NoGuarantee`, always.
    """

    uses: ClassVar[tuple[str, ...]] = ()
    """Which labels are needed: "utility", "privacy"."""
    takes_several: ClassVar[bool] = False
    """Whether there may be several labels of each kind."""
    learned: ClassVar[tuple[str, ...]] = (
        "projection_",
        "eigenvalues_",
        "mean_",
        "scale_",
        "rank_",
        "rho_",
        "grain_",
        "class_prior_",
        "n_features_in_",
    )
    """The attributes that a saved model keeps, besides ``guarantee_``."""

    n_components: int | None = None
    scale: str | None = None

    projection_: Floats = field(init=False)
    eigenvalues_: Floats = field(init=False)
    mean_: Floats = field(init=False)
    scale_: Floats = field(init=False)
    rank_: int = field(init=False)
    rho_: float = field(init=False)
    grain_: Floats = field(init=False)
    class_prior_: Floats = field(init=False)
    guarantee_: NoGuarantee = field(init=False)

    def fit(self, X: Any, y: Any = None, *, privacy: Any = None) -> Self:
        """Learn the projection. Nothing is promised about the rows it is learned from: prefer public ones.

        Args:
            X: an array or a data frame of numbers.
            y: the utility label of each row: what should stay learnable.
            privacy: the privacy label of each row: what should become hard to learn.

        Raises:
            ParameterError: if numbers or labels are missing, or more components are asked for than there are.
        """
        rows = read_matrix(self, X, reset=True)
        labels = self._labels(len(rows), utility=y, privacy=privacy)
        features = self._prepare(rows)
        self.mean_, self.scale_ = self._middle(features), self._scales(features)
        self._solve((features - self.mean_) / self.scale_, labels)
        self.class_prior_ = np.bincount(labels["utility"][0]) / len(rows) if "utility" in labels else np.zeros(0)
        self.guarantee_ = self._promise()
        return self

    def transform(self, X: Any) -> Floats:
        """Return z for each row."""
        check_is_fitted(self, "guarantee_")
        rows = self._features(read_matrix(self, X, reset=False))
        z = (rows - self.mean_) / self.scale_ @ self.projection_
        coarse = self.grain_ > 0
        z[:, coarse] = np.rint(z[:, coarse] / self.grain_[coarse]) * self.grain_[coarse]
        return np.asarray(z)

    def fingerprint(self) -> str:
        """Return a hash of what is published of the model, by which a registry knows it again."""
        check_is_fitted(self, "guarantee_")
        digest = hashlib.sha256(type(self).__name__.encode())
        for name in self.learned:
            digest.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return digest.hexdigest()

    @property
    def _n_features_out(self) -> int:
        return int(self.projection_.shape[1])

    def _labels(self, rows: int, **given: Any) -> dict[str, list[Codes]]:
        """Return the labels that are used, by their kind."""
        labels = {what: read_labels(given[what], rows=rows, what=what) for what in self.uses}
        for what, found in labels.items():
            if len(found) > 1 and not self.takes_several:
                raise ParameterError(
                    f"{type(self).__name__} takes one {what} label per row, not several.",
                    fix="give one list of labels, or use UtilityCostRatio.",
                )
        return labels

    def _prepare(self, rows: Floats) -> Floats:
        """Return the features to project, for the rows that are fitted."""
        return rows

    def _features(self, rows: Floats) -> Floats:
        """Return the features to project, for any rows."""
        return rows

    def _promise(self) -> NoGuarantee:
        return NoGuarantee(reason=EMPIRICAL)

    def _middle(self, features: Floats) -> Floats:
        return np.asarray(features.mean(axis=0))

    def _scales(self, features: Floats) -> Floats:
        if self.scale is None:
            return np.ones(features.shape[1])
        validation.check_choice(self.scale, name="scale", allowed=("standard",))
        deviations = features.std(axis=0)
        return np.where(deviations > 0, deviations, 1.0)

    @abstractmethod
    def _solve(self, centered: Floats, labels: dict[str, list[Codes]]) -> None:
        """Set the projection and what belongs to it."""

    def _count(self, labels: dict[str, list[Codes]], *, room: int) -> int:
        """Return how many components to find, refusing more than there are."""
        most = min(room, self._most(labels))
        if min(most, self.rank_) < 1:
            raise ParameterError("All rows are the same, so that there is nothing to project.", fix="give other rows.")
        given = most if self.n_components is None else self.n_components
        count = validation.check_count(given, name="n_components", at_least=1)
        if count > most:
            raise ParameterError(
                f"n_components={count} is more than the {most} that there can be here{self._because()}.",
                fix=f"use n_components={most} or fewer.",
            )
        self._warn_if_whole(count)
        return count

    def _warn_if_whole(self, count: int) -> None:
        if count >= self.rank_:
            warnings.warn(
                "This many components determine the rows completely: nothing is hidden, whatever the number of "
                "features was.",
                PrivacyParameterWarning,
                stacklevel=5,
            )

    def _most(self, labels: dict[str, list[Codes]]) -> int:
        """Return how many components have a meaning, given the labels; for most ratios, one less than classes."""
        return sum(int(codes.max()) for codes in labels["utility"])

    def _because(self) -> str:
        return " (one less than utility classes, and no more than features)"


class RatioProjection(Projection):
    """A projection that maximizes the ratio of two scatters."""

    def _solve(self, centered: Floats, labels: dict[str, list[Codes]]) -> None:
        """Set the projection. With more features than rows, it is found inside of the space that the rows span."""
        singular = np.linalg.svd(centered, compute_uv=False)
        tolerance = singular.max() * max(centered.shape) * np.finfo(np.float64).eps
        self.rank_ = int((singular > tolerance).sum())
        basis = _row_space(centered, self.rank_) if centered.shape[1] > len(centered) else None
        inside = centered if basis is None else centered @ basis
        count = self._count(labels, room=inside.shape[1])
        ratio = self._ratio(inside, labels)
        self.rho_ = ratio.rho
        self.eigenvalues_, vectors = solve_eigenproblem(ratio.numerator, ratio.denominator, count=count)
        whole = vectors if basis is None else basis @ vectors
        self.projection_ = with_fixed_signs(whole / np.linalg.norm(whole, axis=0))
        largest = singular.max() / len(centered) ** 0.5
        agree = (centered @ self.projection_).std(axis=0) < _AGREE * largest
        self.grain_ = np.where(agree, 2.0 ** (np.floor(np.log2(largest)) - _BITS), 0.0)

    @abstractmethod
    def _ratio(self, rows: Floats, labels: dict[str, list[Codes]]) -> ScatterRatio:
        """Return the ratio to maximize, for centered rows."""


class LinearProjection(Projection):
    """A projection of the features themselves, which can be turned back as far as it keeps them."""

    @property
    def matrix_(self) -> Floats:
        """Return W with the scaling in it: z = (x - mean_) @ matrix_."""
        return np.asarray(self.projection_ / self.scale_[:, None])

    def inverse_transform(self, Z: Any) -> Floats:
        """Return the shortest rows, from the mean, that have these z: the plainest reconstruction."""
        from sklearn.utils.validation import check_array

        check_is_fitted(self, "guarantee_")
        try:
            found = check_array(Z, dtype=np.float64)
        except ValueError:
            raise ParameterError("These are not finite numbers.", fix="give what transform returned.") from None
        if found.shape[1] != self.projection_.shape[1]:
            raise ParameterError(
                f"There are {found.shape[1]} columns, but {self.projection_.shape[1]} components.",
                fix="give what transform of this model returned.",
            )
        return np.asarray(found @ np.linalg.pinv(self.projection_) * self.scale_ + self.mean_)


def _row_space(centered: Floats, rank: int) -> Floats:
    """Return an orthonormal basis, one column per direction in which the rows vary."""
    _, _, basis = np.linalg.svd(centered, full_matrices=False)
    return with_fixed_signs(basis[:rank].T)


def list_attributes(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of attributes after those that every projection keeps."""
    return (*Projection.learned, *names)
