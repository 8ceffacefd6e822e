"""What reports of different privacy levels say together: stratified and pooled, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.core.guarantees import LocalDP
from cloister.core.result import Result
from cloister.local.collection.designs import Estimate
from cloister.local.collection.strata import Combined, Heterogeneity, heterogeneity, pooled, stratified
from cloister.local.estimates import Floats, MeanEstimate, z_of
from cloister.local.frequency.support import SupportProtocol
from cloister.local.protocol import Protocol

if TYPE_CHECKING:
    from cloister.plotting import Figure

__all__ = ["LeveledEstimate", "combine"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeveledEstimate(Result):
    """Estimates from people who chose their own levels.

    Attributes:
        stratified: has no bias for the people who answered; the one to use.
        pooled: has a smaller error, and is right only if the level says nothing about the answer.
        strata: the estimate of each level.
        heterogeneity: whether the levels' answers differ; None with a single level.
        skipped: how many chose to give no answer.
    """

    schema: ClassVar[str] = "cloister.local_levels/1"

    stratified: Estimate
    pooled: Estimate
    strata: Mapping[str, Estimate] = field(repr=False)
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
    strata: Mapping[str, Estimate], *, protocols: Mapping[str, Protocol], guarantee: LocalDP, skipped: int = 0
) -> LeveledEstimate:
    """Return both combined estimates of strata of one question.

    The stratified estimate is about the people who answered, as each stratum is. The pooled one and the test compare
    strata as samples of one population: their variances include the chance of who is in a stratum, and are taken at
    the stratified shares, so that weights do not follow each stratum's own noise. The pooled estimate is often much
    nearer to the truth than the stratified one, so that its own error is taken at the pooled shares.
    """
    estimates = list(strata.values())
    values, errors = np.array([_value(each) for each in estimates]), np.array([_error(each) for each in estimates])
    together = stratified(values, errors**2, sizes=[each.reports for each in estimates])
    spread = np.array([_spread(strata[level], protocols[level], together.value) for level in strata])
    return LeveledEstimate(
        stratified=_combined(estimates, together, guarantee, "stratified"),
        pooled=_combined(estimates, _pooled(strata, protocols, values, spread), guarantee, "pooled"),
        strata=dict(strata),
        heterogeneity=heterogeneity(values, spread),
        skipped=skipped,
        guarantee=guarantee,
    )


def _pooled(
    strata: Mapping[str, Estimate], protocols: Mapping[str, Protocol], values: Floats, spread: Floats
) -> Combined:
    """Return the pooled estimate, with its variance at the pooled shares."""
    found = pooled(values, spread)
    there = np.array([_spread(strata[level], protocols[level], found.value) for level in strata])
    weights = found.variance / spread
    return Combined(found.value, np.asarray((weights**2 * there).sum(axis=0)))


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
    if not isinstance(protocol, SupportProtocol):
        return (estimate.raw_errors / n) ** 2 + chance
    p, q = map(float, protocol.probabilities)
    return (likely * p * (1 - p) + (1 - likely) * q * (1 - q)) / (p - q) ** 2 / n + chance


def _combined(estimates: list[Estimate], found: Combined, guarantee: LocalDP, method: str) -> Estimate:
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
