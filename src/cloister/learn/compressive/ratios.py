"""The two scatters whose ratio each projection maximizes: what is wanted, over what is not.

Discriminant components (DCA), the discriminant ratio (MDR) and their orderings of the noise subspace are after Kung,
"Compressive privacy" (IEEE Signal Processing Magazine, 2017) and Chanyaswad, Chang and Kung (2017); linear
discriminants after Fisher and Rao. A positive number ``rho`` on the diagonal keeps the denominator invertible. With
``rho_prime``, directions in which classes do not differ have eigenvalue 1 + rho_prime / (s + rho), where s is the
scatter along them: below 0 the ones with much variance come first, above 0 those with little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cloister.core import validation
from cloister.errors import ParameterError
from cloister.learn.compressive.scatter import between_scatter, total_scatter, within_scatter
from cloister.learn.rows import Floats

__all__ = [
    "Ratio",
    "discriminant_ratio",
    "fisher_ratio",
    "principal_ratio",
    "utility_cost_ratio",
    "utility_privacy_ratio",
]

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A numerator, a denominator, and the number on the diagonal of the latter."""

    numerator: Floats
    denominator: Floats
    rho: float


def principal_ratio(rows: Floats) -> Ratio:
    """Return the total scatter over the identity (PCA)."""
    return Ratio(total_scatter(rows), np.eye(rows.shape[1]), 0.0)


def discriminant_ratio(rows: Floats, codes: Codes, *, rho: Any, rho_prime: Any) -> Ratio:
    """Return the between scatter over the total one (DCA), or its variant that orders the noise subspace as well."""
    within = within_scatter(rows, codes)
    used = _rho(rho, within)
    if rho_prime is None:
        return Ratio(between_scatter(rows, codes), _ridged(total_scatter(rows), used), used)
    return Ratio(_ridged(total_scatter(rows), used + _finite(rho_prime)), _ridged(within, used), used)


def fisher_ratio(rows: Floats, codes: Codes, *, rho: Any) -> Ratio:
    """Return the between scatter over the within one (LDA)."""
    within = within_scatter(rows, codes)
    used = _rho(rho, within)
    return Ratio(between_scatter(rows, codes), _ridged(within, used), used)


def utility_privacy_ratio(rows: Floats, codes: Codes, private: Codes, *, rho: Any, width: int) -> Ratio:
    """Return the between scatter of utility classes over that of privacy classes (MDR), in ``width`` features."""
    unwanted = between_scatter(rows, private)
    used = 1e-3 * float(np.trace(unwanted)) / width if rho is None else _number(rho, name="rho")
    return Ratio(between_scatter(rows, codes), _ridged(unwanted, used), used)


def utility_cost_ratio(
    rows: Floats, wanted: Sequence[Codes], unwanted: Sequence[Codes], *, gains: Any, costs: Any, rho: Any
) -> Ratio:
    """Return weighted between scatters of utility classes over the total scatter plus those of privacy classes."""
    numerator = _weighted(rows, wanted, gains, name="utility_weights")
    used = _rho(rho, within_scatter(rows, wanted[0]))
    denominator = _ridged(total_scatter(rows), used) + _weighted(rows, unwanted, costs, name="privacy_weights")
    return Ratio(numerator, denominator, used)


def _weighted(rows: Floats, labels: Sequence[Codes], weights: Any, *, name: str) -> Floats:
    listed = [weights] * len(labels) if np.ndim(weights) == 0 else list(weights)
    if len(listed) != len(labels):
        raise ParameterError(
            f"{name} has not one weight for each label.", fix=f"give {name} as one number, or as one per label."
        )
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for codes, weight in zip(labels, listed, strict=True):
        total += _number(weight, name=f"each of {name}") * between_scatter(rows, codes)
    return total


def _rho(rho: Any, within: Floats) -> float:
    """Return rho as given, or 2% of the largest variance inside of classes."""
    if rho is not None:
        return _number(rho, name="rho")
    last = len(within) - 1
    return 0.02 * float(linalg.eigh(within, eigvals_only=True, subset_by_index=(last, last))[0])


def _number(value: Any, *, name: str) -> float:
    return float(validation.check_non_negative(value, name=name))


def _finite(value: Any) -> float:
    from cloister.core import exact

    return float(exact.number(value, name="rho_prime"))


def _ridged(matrix: Floats, rho: float) -> Floats:
    return np.asarray(matrix + rho * np.eye(len(matrix)))
