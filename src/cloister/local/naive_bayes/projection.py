"""Public projections of numeric columns to a few directions: principal and discriminant components.

A feature that nobody needs costs every other feature its share of the people. Few good directions are therefore worth
more than many columns, if the directions are known before anybody reports. They must not be fitted on the rows of the
people who are asked: directions fitted on raw rows, labels included, are themselves an unprotected release. So a
projection is fitted on *public* rows, which the caller names, or comes with the guarantee under which it was learned;
the model's guarantee then repeats it as an assumption.

Principal components are the top eigenvectors of the centered scatter S. Discriminant components (Kung 2017) are the top
generalized eigenvectors of ``(S_B, S + rho I)`` with ``S_B = sum_l N_l mu_l mu_l' - N mu mu'``: the grand mean is taken
off once, not once for every class as printed elsewhere; at most one less than the number of classes are of use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.exact import Number
from cloister.core.guarantees import Guarantee
from cloister.core.validation import check_bounds, check_count, check_positive
from cloister.errors import ParameterError, ParameterTypeError, UnsafeMechanismError
from cloister.local.domain import Domain
from cloister.local.naive_bayes._joint_tables import Floats
from cloister.local.naive_bayes.features import Bins, columns_of, finite_numbers

__all__ = ["PublicProjection", "between_scatter", "check_projection", "scatter"]


@dataclass(frozen=True, eq=False)
class PublicProjection:
    """A public linear map from numeric columns to components.

    Attributes:
        columns: the columns and their public bounds; numbers are clamped and scaled to -1 .. 1 first.
        center: what is taken off.
        directions: one column for each component.
        limits: the public bounds of each component.
        origin: where it comes from: which public rows, or under which guarantee it was learned.
    """

    columns: Mapping[str, tuple[float, float]]
    center: Floats
    directions: Floats
    limits: tuple[tuple[float, float], ...]
    origin: str

    @classmethod
    def principal(
        cls,
        rows: Any,  # public rows
        *,
        columns: Mapping[str, object],
        components: int,
        public: str | None = None,
        guarantee: Guarantee | None = None,
    ) -> PublicProjection:
        """Return the projection to principal components (PCA) of rows; see `discriminant` for the arguments."""
        # Where the rows come from is asked before they are read: without an answer there is no projection.
        origin = _origin(public, guarantee)
        scaled, bounds = _scale_columns(rows, columns)
        center = scaled.mean(axis=0)
        count = _components(components, scaled.shape[1])
        _, vectors = np.linalg.eigh(scatter(scaled))
        return cls._build(bounds, center, vectors[:, ::-1][:, :count], scaled, origin)

    @classmethod
    def discriminant(
        cls,
        rows: Any,  # public rows
        labels: Any,  # public labels
        *,
        columns: Mapping[str, object],
        classes: object,
        components: int | None = None,
        rho: Number = 1e-3,
        public: str | None = None,
        guarantee: Guarantee | None = None,
    ) -> PublicProjection:
        """Return the projection to discriminant components (DCA) of rows.

        Args:
            rows: public rows, never those of the people who are asked.
            labels: their classes.
            columns: the columns to use, and their public bounds.
            classes: the public classes.
            components: how many; by default all that are of use, one less than the classes.
            rho: the ridge.
            public: which public rows these are, for the guarantee.
            guarantee: if the rows are not public themselves, under what guarantee they were released.

        Raises:
            UnsafeMechanismError: if neither is given.
        """
        origin = _origin(public, guarantee)
        scaled, bounds = _scale_columns(rows, columns)
        known = Domain.of(classes)
        within = scatter(scaled) + float(check_positive(rho, name="rho")) * np.eye(scaled.shape[1])
        between = between_scatter(scaled, known.codes(labels), len(known))
        count = _components(len(known) - 1 if components is None else components, scaled.shape[1])
        chosen = _solve_eigenvectors(between, within)[:, :count]
        return cls._build(bounds, scaled.mean(axis=0), chosen, scaled, origin)

    @property
    def inputs(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.columns)

    @property
    def names(self) -> list[str]:
        """Return the names of the components."""
        return [f"component_{place}" for place in range(1, self.directions.shape[1] + 1)]

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return the public bounds of each component, for `LocalGaussianNaiveBayes`."""
        return dict(zip(self.names, self.limits, strict=True))

    def to_bins(self, count: int) -> dict[str, Bins]:
        """Return bins of equal width for each component, for `LocalCategoricalNaiveBayes`."""
        return {name: Bins.equal_width(limits, count=count) for name, limits in self.bounds.items()}

    def transform(self, rows: Any) -> Floats:
        """Return the components of each row; a device does this before anything else.

        Args:
            rows: a data frame, a mapping of columns, or rows of values in the order of the columns.
        """
        scaled, _ = _scale_columns(rows, self.columns)
        return np.asarray((scaled - self.center) @ self.directions)

    @property
    def assumption(self) -> str:
        """Return what a guarantee must say about this projection."""
        return f"the projection comes from {self.origin}, not from the people who are asked"

    def to_dict(self) -> dict[str, Any]:
        """Return the projection as JSON-ready values."""
        return {
            "columns": {name: list(bounds) for name, bounds in self.columns.items()},
            "center": self.center.tolist(),
            "directions": self.directions.tolist(),
            "limits": [list(limits) for limits in self.limits],
            "origin": self.origin,
        }

    @classmethod
    def _build(
        cls, bounds: Mapping[str, tuple[float, float]], center: Floats, directions: Floats, rows: Floats, origin: str
    ) -> PublicProjection:
        # Eigenvectors have no sign of their own; a fixed one gives every device and every library the same directions.
        signs = np.where(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])] < 0, -1, 1)
        directions = directions * signs
        found = (rows - center) @ directions
        # The extremes are those of public rows, and become the bounds to which people's components are clamped.
        limits = tuple(zip(found.min(axis=0).tolist(), found.max(axis=0).tolist(), strict=True))
        if any(not low < high for low, high in limits):
            raise ParameterError("A component is the same for all rows.", fix="use fewer components.")
        return cls(bounds, center, directions, limits, origin)


def check_projection(value: object) -> PublicProjection:
    """Return a projection, or raise: a bare matrix does not say what it was fitted on."""
    if not isinstance(value, PublicProjection):
        raise ParameterTypeError(
            "This is not a projection that says what it was fitted on.",
            fix="make it with PublicProjection.principal or PublicProjection.discriminant from public rows.",
        )
    return value


def scatter(rows: Floats) -> Floats:
    """Return ``sum x x' - N mu mu'``."""
    mean = rows.mean(axis=0)
    return np.asarray(rows.T @ rows - len(rows) * np.outer(mean, mean))


def between_scatter(rows: Floats, labels: NDArray[np.int64], classes: int) -> Floats:
    """Return ``sum_l N_l mu_l mu_l' - N mu mu'``: the grand mean is taken off once."""
    sums = np.zeros((classes, rows.shape[1]))
    np.add.at(sums, labels, rows)
    # An empty class has no mean, and its sums are zero anyway.
    counts = np.maximum(np.bincount(labels, minlength=classes), 1)
    mean = rows.mean(axis=0)
    return np.asarray((sums.T / counts) @ sums - len(rows) * np.outer(mean, mean))


def _solve_eigenvectors(between: Floats, within: Floats) -> Floats:
    """Return unit vectors v with ``between v = lambda within v``, the largest lambda first."""
    # The root turns the generalized problem into a symmetric one, whose eigenvalues are real.
    root = np.linalg.inv(np.linalg.cholesky(within))
    _, vectors = np.linalg.eigh(root @ between @ root.T)
    found = root.T @ vectors[:, ::-1]
    return np.asarray(found / np.linalg.norm(found, axis=0))


def _origin(public: str | None, guarantee: Guarantee | None) -> str:
    if isinstance(public, str) and public.strip() and guarantee is None:
        return f"public data ({public.strip()})"
    if isinstance(guarantee, Guarantee) and public is None:
        return f"data released with {guarantee.brief()}"
    raise UnsafeMechanismError(
        "A projection fitted on raw rows of the people who are asked is an unprotected release of them.",
        fix='fit it on other, public rows and name them, such as public="census sample of 1990"; '
        "or give the guarantee= of a private release of the rows.",
    )


def _scale_columns(rows: Any, columns: object) -> tuple[Floats, dict[str, tuple[float, float]]]:
    if not isinstance(columns, Mapping) or not columns:
        raise ParameterTypeError(
            "The columns are not declared with bounds.", fix='write for example columns={"age": (0, 110)}.'
        )
    bounds = {str(name): _ends(found) for name, found in columns.items()}
    numbers = np.stack([finite_numbers(column) for column in columns_of(rows, list(bounds))], axis=1)
    low, high = np.array(list(bounds.values())).T
    return 2 * (np.clip(numbers, low, high) - low) / (high - low) - 1, bounds


def _ends(bounds: object) -> tuple[float, float]:
    low, high = check_bounds(bounds)
    return float(low), float(high)


def _components(count: object, most: int) -> int:
    found = check_count(count, name="components", at_least=1)
    if found > most:
        raise ParameterError(f"There are only {most} columns to combine.", fix=f"use components <= {most}.")
    return found
