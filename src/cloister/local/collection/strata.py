"""One estimate from groups of reports of different precision: stratified, pooled, and whether the groups differ.

Groups g have n_g people, an estimate f_g and its variance V_g. The stratified estimate ``sum (n_g / n) f_g`` has no
bias for the people who answered, also where the group says something about the answer. The pooled one weights by
1 / V_g: its error is smaller, and it is right only if the groups do not differ. `heterogeneity` tests that (Cochran
1954).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core._late import late_module
from cloister.errors import ParameterError

special = late_module("scipy.special")

__all__ = ["Combined", "Heterogeneity", "heterogeneity", "pooled", "stratified"]


@dataclass(frozen=True, slots=True)
class Combined:
    """An estimate from several groups and its variance: numbers, or one for each value of a domain."""

    value: NDArray[np.float64]
    variance: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heterogeneity:
    """Whether groups differ by more than their noise.

    Attributes:
        statistic: the chi-square statistic, the largest one if there are several values.
        degrees: its degrees of freedom, one less than there are groups.
        p_value: how often equal groups would look so different; corrected for the number of values (Bonferroni).
    """

    statistic: float
    degrees: int
    p_value: float

    @property
    def differs(self) -> bool:
        """Return whether the groups differ, at the 5% level."""
        return self.p_value < 0.05

    def __str__(self) -> str:
        verdict = "the groups differ: use the stratified estimate" if self.differs else "no difference was found"
        return f"chi-square {self.statistic:.3g}, {self.degrees} degrees of freedom, p = {self.p_value:.2g}; {verdict}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"statistic": self.statistic, "degrees": self.degrees, "p_value": self.p_value}


def stratified(values: ArrayLike, variances: ArrayLike, *, sizes: ArrayLike) -> Combined:
    """Return ``sum (n_g / n) f_g`` and its variance.

    >>> round(float(stratified([0.30, 0.20], [0.0039, 0.0002], sizes=[1000, 3000]).value), 5)
    0.225
    """
    found, spread = _groups(values, variances)
    people = np.asarray(sizes, dtype=np.float64)
    if people.shape != found.shape[:1] or not (people > 0).all():
        raise ParameterError("The sizes do not fit the groups.", fix="give the number of people of each group.")
    weights = people / people.sum()
    return Combined(np.tensordot(weights, found, axes=1), np.tensordot(weights**2, spread, axes=1))


def pooled(values: ArrayLike, variances: ArrayLike) -> Combined:
    """Return the mean weighted by 1 / V_g and its variance.

    >>> round(float(pooled([0.30, 0.20], [0.0039, 0.0002]).value), 5)
    0.20488
    """
    found, spread = _groups(values, variances)
    total = (1 / spread).sum(axis=0)
    return Combined((found / spread).sum(axis=0) / total, 1 / total)


def heterogeneity(values: ArrayLike, variances: ArrayLike) -> Heterogeneity | None:
    """Return the chi-square test of equal groups, None for a single group.

    Args:
        values: for each group an estimate, or one for each value of a domain.
        variances: theirs.
    """
    found, spread = _groups(values, variances)
    if len(found) < 2:
        return None
    distances = ((found - pooled(found, spread).value) ** 2 / spread).sum(axis=0)
    statistic, degrees = float(np.max(distances)), len(found) - 1
    p_value = min(1.0, distances.size * float(special.chdtrc(degrees, statistic)))
    return Heterogeneity(statistic=statistic, degrees=degrees, p_value=p_value)


def _groups(values: ArrayLike, variances: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found, spread = np.asarray(values, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if found.shape != spread.shape or found.ndim < 1 or not len(found):
        raise ParameterError("Values and variances do not fit.", fix="give an estimate and a variance for each group.")
    if not np.isfinite(found).all() or not (np.isfinite(spread) & (spread > 0)).all():
        raise ParameterError("An estimate or variance is not usable.", fix="give finite numbers, variances above 0.")
    return found, spread
