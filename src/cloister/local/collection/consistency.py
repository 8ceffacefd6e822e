"""Counts of several attributes that fit each other: none negative, all adding up to the people, known ones kept.

Every attribute is about the same people, so that its counts add up to their number. Where some counts are known from
elsewhere (a register, the invitations), they are kept and the others share the rest. All of this is post-processing and
costs nothing; what is "known" must not come from the answers. Rare values are biased afterwards, as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.simplex import norm_sub, project_to_simplex
from cloister.core.validation import check_choice, check_non_negative
from cloister.errors import ParameterError, UnknownColumnError
from cloister.local.estimates import Floats, FrequencyEstimate

__all__ = ["consistent_together", "with_known_counts"]

_METHODS = ("norm_sub", "simplex", "weighted")


def consistent_together(
    estimates: Mapping[str, FrequencyEstimate],
    *,
    known: Mapping[str, Mapping[Any, object]] | None = None,
    method: str = "norm_sub",
) -> dict[str, FrequencyEstimate]:
    """Return the estimates of several attributes with counts that add up to the same people.

    Args:
        estimates: what `SeveralAttributes.estimate` returned.
        known: for some attributes, the true number of people with some of the values.
        method: see `with_known_counts`.

    Raises:
        ParameterError: if the estimates are about different numbers of people.
    """
    if len({estimate.reports for estimate in estimates.values()}) > 1:
        raise ParameterError(
            "The estimates are about different numbers of people.",
            fix="give estimates of one collection, as SeveralAttributes.estimate returns them.",
        )
    facts = dict(known or {})
    for name in facts.keys() - estimates.keys():
        raise UnknownColumnError(name, estimates)
    return {
        name: with_known_counts(estimate, known=facts.get(name, {}), method=method)
        for name, estimate in estimates.items()
    }


def with_known_counts(
    estimate: FrequencyEstimate, *, known: Mapping[Any, object], method: str = "norm_sub"
) -> FrequencyEstimate:
    """Return counts that are not negative, keep what is known, and add up to the number of people.

    Args:
        estimate: the raw estimate.
        known: the true number of people with some of the values; their error becomes 0.
        method: for the others, ``"norm_sub"``, ``"simplex"``, or ``"weighted"``, the nearest counts where those with a
            larger standard error give way more.
    """
    check_choice(method, name="method", allowed=_METHODS)
    fixed = _known_counts(estimate, known)
    is_known = ~np.isnan(fixed)
    rest = estimate.reports - float(fixed[is_known].sum())
    if rest < 0 or (rest > 0 and is_known.all()):
        raise ParameterError(
            "The known counts do not fit the number of people.",
            fix=f"give counts that leave between 0 and {estimate.reports:,} people for the other values.",
        )
    counts = fixed.copy()
    if not is_known.all():
        counts[~is_known] = _fitted(estimate.raw_counts[~is_known], estimate.raw_errors[~is_known], rest, method)
    raw, errors = np.where(is_known, fixed, estimate.raw_counts), np.where(is_known, 0.0, estimate.raw_errors)
    return replace(estimate, raw_counts=raw, raw_errors=errors).mended(counts, method)


def _known_counts(estimate: FrequencyEstimate, known: Mapping[Any, object]) -> Floats:
    places = {value: place for place, value in enumerate(estimate.domain)}
    fixed = np.full(len(places), np.nan)
    for value, count in known.items():
        if value not in places:
            raise ParameterError("A known count is about a value that is not declared.", fix="use declared values.")
        fixed[places[value]] = float(check_non_negative(count, name="a known count"))
    return fixed


def _fitted(counts: Floats, errors: Floats, total: float, method: str) -> NDArray[np.float64]:
    if method == "norm_sub":
        return norm_sub(counts, total=total)
    return project_to_simplex(counts, total=total, variances=errors**2 if method == "weighted" else None)
