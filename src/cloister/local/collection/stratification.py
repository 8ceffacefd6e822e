"""One estimate from reports of different privacy levels: stratified, pooled, and whether the groups differ.

Groups g have n_g people, an estimate f_g and its variance V_g. The stratified estimate ``sum (n_g / n) f_g`` has no
bias for the people who answered, also where the group says something about the answer. The pooled one weights by
1 / V_g: its error is smaller, and it is right only if the groups do not differ. `heterogeneity` tests that (Cochran
1954).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.guarantees import LocalDP
from cloister.core.lazy_imports import late_module
from cloister.core.result import Result
from cloister.errors import ParameterError
from cloister.local.collection._designs import Estimate
from cloister.local.estimates import Floats, MeanEstimate, z_of
from cloister.local.frequency.support import SupportProtocol, support_variance
from cloister.local.protocol import Protocol

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = [
    "CombinedEstimate",
    "Heterogeneity",
    "LeveledEstimate",
    "combine",
    "combine_pooled",
    "combine_stratified",
    "heterogeneity",
]


special = late_module("scipy.special")
_Estimate_co = TypeVar("_Estimate_co", bound=Estimate, covariant=True)


@dataclass(frozen=True, slots=True)
class CombinedEstimate:
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


def combine_stratified(values: ArrayLike, variances: ArrayLike, *, sizes: ArrayLike) -> CombinedEstimate:
    """Return ``sum (n_g / n) f_g`` and its variance.

    >>> round(float(combine_stratified([0.30, 0.20], [0.0039, 0.0002], sizes=[1000, 3000]).value), 5)
    0.225
    """
    found, spread = _groups(values, variances)
    people = np.asarray(sizes, dtype=np.float64)
    if people.shape != found.shape[:1] or not (people > 0).all():
        raise ParameterError("The sizes do not fit the groups.", fix="give the number of people of each group.")
    weights = people / people.sum()
    return CombinedEstimate(np.tensordot(weights, found, axes=1), np.tensordot(weights**2, spread, axes=1))


def combine_pooled(values: ArrayLike, variances: ArrayLike) -> CombinedEstimate:
    """Return the mean weighted by 1 / V_g and its variance.

    >>> round(float(combine_pooled([0.30, 0.20], [0.0039, 0.0002]).value), 5)
    0.20488
    """
    found, spread = _groups(values, variances)
    total = (1 / spread).sum(axis=0)
    return CombinedEstimate((found / spread).sum(axis=0) / total, 1 / total)


def heterogeneity(values: ArrayLike, variances: ArrayLike) -> Heterogeneity | None:
    """Return the chi-square test of equal groups, None for a single group.

    Args:
        values: for each group an estimate, or one for each value of a domain.
        variances: theirs.
    """
    found, spread = _groups(values, variances)
    if len(found) < 2:
        return None
    distances = ((found - combine_pooled(found, spread).value) ** 2 / spread).sum(axis=0)
    statistic, degrees = float(np.max(distances)), len(found) - 1
    # The value that differs most was picked after looking, so that all of them are paid for.
    p_value = min(1.0, distances.size * float(special.chdtrc(degrees, statistic)))
    return Heterogeneity(statistic=statistic, degrees=degrees, p_value=p_value)


def _groups(values: ArrayLike, variances: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    found, spread = np.asarray(values, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if found.shape != spread.shape or found.ndim < 1 or not len(found):
        raise ParameterError("Values and variances do not fit.", fix="give an estimate and a variance for each group.")
    if not np.isfinite(found).all() or not (np.isfinite(spread) & (spread > 0)).all():
        raise ParameterError("An estimate or variance is not usable.", fix="give finite numbers, variances above 0.")
    return found, spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeveledEstimate(Result, Generic[_Estimate_co]):
    """Estimates from people who chose their own levels.

    Attributes:
        stratified: has no bias for the people who answered; the one to use.
        pooled: has a smaller error, and is right only if the level says nothing about the answer.
        strata: the estimate of each level.
        heterogeneity: whether the levels' answers differ; None with a single level.
        skipped: how many chose to give no answer.
    """

    schema: ClassVar[str] = "cloister.local_levels/1"

    stratified: _Estimate_co
    pooled: _Estimate_co
    strata: Mapping[str, _Estimate_co] = field(repr=False)
    heterogeneity: Heterogeneity | None
    skipped: int = 0

    @property
    def answered(self) -> int:
        """Return how many answered."""
        return self.stratified.reports

    def __str__(self) -> str:
        return f"{self.stratified}, stratified over {len(self.strata)} levels; {self.skipped:,} gave no answer"

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        pairs = zip(_rows(self.stratified), _rows(self.pooled), strict=True)
        lines = [(label, f"{ours} stratified, {other} pooled") for (label, ours), (_, other) in pairs]
        levels = ", ".join(f"{level} {estimate.reports:,}" for level, estimate in self.strata.items())
        return (
            *lines,
            ("levels", f"{levels}, no answer {self.skipped:,}"),
            (
                "do levels differ?",
                "only one level was chosen" if self.heterogeneity is None else str(self.heterogeneity),
            ),
            ("promise", self.guarantee.explain()),
        )

    def plot(self, *, title: str = "Estimates by level") -> Figure:
        """Return both estimates and that of each level, with 95% margins."""
        from cloister.plotting import grouped_bars_with_errors

        shown = {"stratified": self.stratified, "pooled": self.pooled, **self.strata}
        items = [
            (label, name, value, margin)
            for name, estimate in shown.items()
            for label, value, margin in _numbers(estimate)
        ]
        labels, groups, values, margins = (list(column) for column in zip(*items, strict=True))
        unit = "mean" if isinstance(self.stratified, MeanEstimate) else "percent"
        subtitle = f"{self.answered:,} answers; bars show 95% margins; {self.guarantee.brief()}"
        return grouped_bars_with_errors(labels, groups, values, margins, title=title, x="", y=unit, subtitle=subtitle)

    def _fields(self) -> dict[str, Any]:
        return {
            "answered": self.answered,
            "skipped": self.skipped,
            "stratified": self.stratified.to_dict(),
            "pooled": self.pooled.to_dict(),
            "strata": {level: estimate.to_dict() for level, estimate in self.strata.items()},
            "heterogeneity": None if self.heterogeneity is None else self.heterogeneity.to_dict(),
        }


def combine(
    strata: Mapping[str, _Estimate_co], *, protocols: Mapping[str, Protocol], guarantee: LocalDP, skipped: int = 0
) -> LeveledEstimate[_Estimate_co]:
    """Return both combined estimates of strata of one question.

    The stratified estimate is about the people who answered, as each stratum is. The pooled one and the test compare
    strata as samples of one population: their variances include the chance of who is in a stratum, and are taken at
    the stratified shares, so that weights do not follow each stratum's own noise. The pooled estimate is often much
    nearer to the truth than the stratified one, so that its own error is taken at the pooled shares.
    """
    estimates = list(strata.values())
    values, errors = np.array([_value(each) for each in estimates]), np.array([_error(each) for each in estimates])
    together = combine_stratified(values, errors**2, sizes=[each.reports for each in estimates])
    spread = np.array([_spread(strata[level], protocols[level], together.value) for level in strata])
    return LeveledEstimate(
        stratified=_build_estimate(estimates, together, guarantee, "stratified"),
        pooled=_build_estimate(estimates, _pool_strata(strata, protocols, values, spread), guarantee, "pooled"),
        strata=dict(strata),
        heterogeneity=heterogeneity(values, spread),
        skipped=skipped,
        guarantee=guarantee,
    )


def _pool_strata(
    strata: Mapping[str, Estimate], protocols: Mapping[str, Protocol], values: Floats, spread: Floats
) -> CombinedEstimate:
    """Return the pooled estimate, with its variance at the pooled shares."""
    found = combine_pooled(values, spread)
    there = np.array([_spread(strata[level], protocols[level], found.value) for level in strata])
    # The weights stay those that were fixed before: at the pooled shares they would follow the noise again.
    weights = found.variance / spread
    return CombinedEstimate(found.value, np.asarray((weights**2 * there).sum(axis=0)))


def _value(estimate: Estimate) -> Any:  # a number, or one for each value
    return estimate.value if isinstance(estimate, MeanEstimate) else estimate.raw_counts / estimate.reports


def _error(estimate: Estimate) -> Any:  # a number, or one for each value
    return estimate.standard_error if isinstance(estimate, MeanEstimate) else estimate.raw_errors / estimate.reports


def _spread(estimate: Estimate, protocol: Protocol, shares: Floats) -> Any:  # a number, or one for each value
    """Return the variance of a stratum as a sample of everybody; that of a mean is so already."""
    if isinstance(estimate, MeanEstimate):
        return estimate.standard_error**2
    likely, n = np.clip(shares, 0, 1), estimate.reports
    chance = likely * (1 - likely) / n
    # Without p and q there is no variance at other shares than the stratum's own.
    if not isinstance(protocol, SupportProtocol):
        return (estimate.raw_errors / n) ** 2 + chance
    p, q = map(float, protocol.probabilities)
    return support_variance(likely, 1 - likely, p=p, q=q) / n + chance


def _build_estimate(
    estimates: Sequence[Estimate], found: CombinedEstimate, guarantee: LocalDP, method: str
) -> Any:  # of the kind that the strata are
    first, people = estimates[0], sum(each.reports for each in estimates)
    names = ", ".join(dict.fromkeys(each.protocol for each in estimates))
    if isinstance(first, MeanEstimate):
        return replace(
            first,
            value=float(found.value),
            standard_error=float(np.sqrt(found.variance)),
            reports=people,
            protocol=names,
            guarantee=guarantee,
            notes=(method,),
        )
    return replace(
        first,
        raw_counts=people * found.value,
        raw_errors=people * np.sqrt(found.variance),
        reports=people,
        protocol=names,
        guarantee=guarantee,
        notes=(method,),
    )


def _numbers(estimate: Estimate) -> list[tuple[str, float, float]]:
    if isinstance(estimate, MeanEstimate):
        return [("mean", estimate.value, estimate.margin())]
    values, margins = 100 * _value(estimate), 100 * z_of(0.95) * _error(estimate)
    return list(zip(map(str, estimate.domain), values.tolist(), margins.tolist(), strict=True))


def _rows(estimate: Estimate) -> list[tuple[str, str]]:
    unit = "" if isinstance(estimate, MeanEstimate) else "%"
    return [(label, f"{value:.4g}{unit} ± {margin:.2g}") for label, value, margin in _numbers(estimate)]
