"""Estimates of several attributes together: the table of two of them, and counts that fit each other.

The table is of two attributes that every person reported, from reports that were drawn independently. With S(u) whether
a report of the first attribute supports u, ``(S(u) - q) / (p - q)`` is expected to be 1 for people who have u and 0 for
the others; likewise for the second. Given a person, the two reports are independent, so the product of both is expected
to be 1 for those who have the pair, and its sum over all people estimates the pair's count without bias (the product
form of the inverted matrix of Warner 1965; for several attributes Domingo-Ferrer and Soria-Comas 2020). With ``a1 = 1 +
p (1 - p) / (p - q)**2`` the second moment of the first factor for people who have u, ``a0 = q (1 - q) / (p - q)**2``
for the others, and b1, b0 alike, the count has the variance ``n11 (a1 b1 - 1) + n10 a1 b0 + n01 a0 b1 + n00 a0 b0``.
Its factors multiply: pairs take many more people than shares.

Consistent counts: none negative, all adding up to the people, known ones kept. Every attribute is about the same
people, so that its counts add up to their number. Where some counts are known from elsewhere (a register, the
invitations), they are kept and the others share the rest. All of this is post-processing and costs nothing; what is
"known" must not come from the answers. Rare values are biased afterwards, as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.guarantees import LocalDP
from cloister.core.postprocessing import norm_sub, project_to_simplex
from cloister.core.validation import check_choice, check_non_negative
from cloister.errors import ParameterError, UnknownColumnError
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.frequency.support import FrequencyProtocol, not_countable
from cloister.local.reports import Reports

__all__ = ["consistent_together", "joint_table", "with_known_counts"]


_MOST_PAIRS = 10_000


def joint_table(first: Reports, second: Reports, *, guarantee: LocalDP) -> FrequencyEstimate:
    """Return how many people have each pair of values.

    Args:
        first: the reports of one attribute.
        second: the reports of the same people, in the same order, of another.
        guarantee: what the estimate carries.

    Raises:
        ParameterError: if reports do not support values of a domain, or there are too many pairs.
        TooFewReportsError: if nobody reported.
    """
    one, other, n = _Side.of(first), _Side.of(second), enough(len(first))
    if len(one.values) * len(other.values) > _MOST_PAIRS:
        raise ParameterError(
            f"The table has more than {_MOST_PAIRS:,} pairs.", fix="ask about coarser values, such as groups of ages."
        )
    # A report of the first attribute chooses rows of the second: pairs are counted without a table of people.
    together = np.array([other.counts(one.support(code)) for code in range(len(one.values))])
    rows, columns = one.counts(), other.counts()
    # The product of both debiased reports, multiplied out: what chance alone supports is taken off the pairs.
    lies = one.q[:, None] * columns + other.q * rows[:, None] - n * one.q[:, None] * other.q
    counts = (together - lies) / ((one.p - one.q)[:, None] * (other.p - other.q))
    pairs: tuple[Any, ...] = tuple(product(one.values, other.values))
    return FrequencyEstimate(
        domain=pairs,
        raw_counts=counts.ravel(),
        raw_errors=np.sqrt(_variances(counts, one, other, n)).ravel(),
        reports=n,
        protocol=f"{one.reports.protocol.name} and {other.reports.protocol.name}",
        guarantee=guarantee,
    )


@dataclass(frozen=True)
class _Side:
    """The reports of one attribute, and how often they support each of its values: truly, and not."""

    protocol: FrequencyProtocol
    reports: Reports
    p: Floats
    q: Floats

    @classmethod
    def of(cls, reports: Reports) -> _Side:
        protocol = reports.protocol
        if not isinstance(protocol, FrequencyProtocol):
            raise not_countable()
        return cls(protocol, reports, *protocol.support_chances())

    @property
    def values(self) -> tuple[Any, ...]:
        return self.protocol.domain.values

    def support(self, code: int) -> NDArray[np.bool_]:
        return self.protocol.supporters(self.reports.payload, code)

    def counts(self, chosen: Any = slice(None)) -> NDArray[np.int64]:  # whatever chooses rows
        """Return how many of the chosen reports support each value."""
        return self.protocol.support_counts(self.reports.payload[chosen])

    def singles(self, people: int) -> Floats:
        """Return the estimated number of people with each value, within what is possible."""
        return np.clip((self.counts() - people * self.q) / (self.p - self.q), 0, people)

    def moments(self) -> tuple[Floats, Floats]:
        """Return the second moment of a report's reading for people who have the value, and for the others."""
        gap = (self.p - self.q) ** 2
        return 1 + self.p * (1 - self.p) / gap, self.q * (1 - self.q) / gap


def _variances(pairs: Floats, first: _Side, second: _Side, people: int) -> Floats:
    """Return the variance of each count, for the people who seem to have the pair, one of its values, or neither."""
    own, other = first.singles(people)[:, None], second.singles(people)
    # A pair cannot have more people than either of its values, nor fewer than none.
    both = np.clip(pairs, 0, np.minimum(own, other))
    neither = np.maximum(people - own - other + both, 0)
    a, a0 = (moment[:, None] for moment in first.moments())
    b, b0 = second.moments()
    return np.asarray(both * (a * b - 1) + (own - both) * a * b0 + (other - both) * a0 * b + neither * a0 * b0)


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
    fixed = _place_known_counts(estimate, known)
    is_known = ~np.isnan(fixed)
    # Whatever is known is kept as it is, so that only the rest of the people is shared among the other values.
    rest = estimate.reports - float(fixed[is_known].sum())
    if rest < 0 or (rest > 0 and is_known.all()):
        raise ParameterError(
            "The known counts do not fit the number of people.",
            fix=f"give counts that leave between 0 and {estimate.reports:,} people for the other values.",
        )
    counts = fixed.copy()
    if not is_known.all():
        counts[~is_known] = _fit_counts(estimate.raw_counts[~is_known], estimate.raw_errors[~is_known], rest, method)
    raw, errors = np.where(is_known, fixed, estimate.raw_counts), np.where(is_known, 0.0, estimate.raw_errors)
    return replace(estimate, raw_counts=raw, raw_errors=errors).mended(counts, method)


def _place_known_counts(estimate: FrequencyEstimate, known: Mapping[Any, object]) -> Floats:
    places = {value: place for place, value in enumerate(estimate.domain)}
    fixed = np.full(len(places), np.nan)
    for value, count in known.items():
        if value not in places:
            raise ParameterError("A known count is about a value that is not declared.", fix="use declared values.")
        fixed[places[value]] = float(check_non_negative(count, name="a known count"))
    return fixed


def _fit_counts(counts: Floats, errors: Floats, total: float, method: str) -> NDArray[np.float64]:
    if method == "norm_sub":
        return norm_sub(counts, total=total)
    return project_to_simplex(counts, total=total, variances=errors**2 if method == "weighted" else None)
