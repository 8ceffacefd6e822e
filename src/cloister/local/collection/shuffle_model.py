"""The central guarantee of shuffled reports, stated next to the local one (its bound: `accounting.amplification`).

If someone whom people trust with that alone mixes the reports before the collector sees them, a report can no longer be
linked to its sender, and the whole collection is (epsilon, delta)-DP with a much smaller epsilon (Feldman, McMillan and
Talwar 2021; see `cloister.accounting.amplification`). The local guarantee holds whatever the mixer does. With few
reports the bound says nothing, and that is told instead of a number.
"""

from __future__ import annotations

from typing import TypeVar

from cloister.accounting.amplification import shuffling
from cloister.core.exact import Number
from cloister.core.guarantees import AllOf, ApproxDP, LocalDP
from cloister.core.validation import check_delta
from cloister.errors import AccountingError, ParameterError
from cloister.local.collection.levels import LEVEL_IS_VISIBLE
from cloister.local.estimates import FrequencyEstimate, MeanEstimate, attach_guarantee
from cloister.local.numeric.base import VectorEstimate
from cloister.local.numeric.square_wave import DistributionEstimate

__all__ = ["central_guarantee", "shuffled"]

_E = TypeVar("_E", FrequencyEstimate, MeanEstimate, DistributionEstimate, VectorEstimate)


def central_guarantee(local: LocalDP, *, reports: int, delta: Number) -> tuple[ApproxDP | None, str]:
    """Return the central guarantee of shuffled reports, None if there are too few; and a sentence about it.

    >>> _, words = central_guarantee(LocalDP(epsilon=1), reports=100_000, delta=1e-6)
    >>> words
    'If the reports are shuffled: epsilon = 0.072555, delta = 1e-06 centrally, next to epsilon = 1 locally.'
    """
    slack = check_delta(delta, allow_zero=False)
    here = f"epsilon = {float(local.epsilon):g}"
    try:
        # One report is nobody's crowd, but the bound wants two: it then says that nothing is proven.
        central = shuffling(local, reports=max(reports, 2), delta=slack)
    except AccountingError as error:
        return None, f"Shuffling adds nothing that is proven to {here}: there are too few reports; {error.fix}"
    if central.epsilon >= local.epsilon:
        return None, f"Shuffling so few reports adds nothing that is proven to {here}."
    there = f"epsilon = {float(central.epsilon):.5g}, delta = {float(slack):g}"
    return central, f"If the reports are shuffled: {there} centrally, next to {here} locally."


def shuffled(estimate: _E, *, delta: Number) -> _E:
    """Return an estimate whose promise also states the central guarantee, for reports that were shuffled.

    Args:
        estimate: from reports of people who reported once each, or whose reports stay together.
        delta: the slack of the central guarantee, well below one in the number of reports.

    The local promise stays. Where there are too few reports, a note says so and nothing else changes. Reports of
    different privacy levels are no crowd for each other: take the strata of a leveled estimate one by one.
    """
    local = estimate.guarantee
    if not isinstance(local, LocalDP):
        raise ParameterError(
            "This estimate has no local guarantee to start from.", fix="give an estimate as the protocol returned it."
        )
    # A report that shows its level hides only among those of the same level.
    if LEVEL_IS_VISIBLE in local.caveats:
        raise ParameterError(
            "Reports of different levels do not hide among each other.",
            fix='shuffle level by level: shuffled(estimate.strata["low"], delta=1e-6).',
        )
    central, words = central_guarantee(local, reports=estimate.reports, delta=delta)
    promise = local if central is None else AllOf(parts=(local, central), unit=local.unit)
    return attach_guarantee(estimate, promise, words)
