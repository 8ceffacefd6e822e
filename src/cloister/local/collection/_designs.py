"""Four ways to ask one person about several attributes, each with what it costs the person in all.

With n attributes and reports of one attribute that are epsilon_1-LDP each:

- ``split`` and ``all`` report every attribute. The whole costs the sum, n epsilon_1: ``split`` asks each with
  epsilon / n, ``all`` asks each with epsilon and costs n epsilon.
- ``sample_one`` reports one attribute, chosen by a public coin that knows nothing of the data, with the whole epsilon:
  given the coin the report is epsilon-LDP, and the coin says nothing. Each share is estimated from about 1/n of the
  people, at small epsilon with 1/n of the variance of ``split``.
- ``fake_data`` does the same and hides the chosen attribute among reports of uniform random values for the others
  (RS+FD: Arcolezi, Couchot, Al Bouna and Xiao 2021), which costs accuracy. The choice is hidden in part only: uniform
  fakes do not look like skewed answers (Arcolezi, Gambs, Couchot and Palamidessi 2023).

Privacy of ``fake_data``: claim epsilon_1-LDP for all attributes together, and no less. With F_i the law of a fake
report and P_i that of a true one, a tuple y has the probability ``prod F_j(y_j)`` times the mean over i of
``P_i(y_i | v_i) / F_i(y_i)``. Each term of the mean changes by at most exp(epsilon_1), so the mean does; and it changes
by that much between a person with ``v = y`` and one who differs everywhere. The cited paper claims more: that
``epsilon_1 = ln(n (exp(epsilon) - 1) + 1)`` gives epsilon-LDP, by amplification through sampling. That argument is
about a change of one attribute. Two attributes of two values at "epsilon = 1" lose 1.4899; with domains of different
sizes even one attribute alone loses more than epsilon. ``amplified=True`` makes those reports, and the guarantee states
what they cost.

Estimate of ``fake_data``: a report supports its sender's value with ``(p + (n-1) s) / n`` and another with
``(q + (n-1) s) / n``, where ``s = (p + (k-1) q) / k`` is how often a fake supports any of k values. The usual estimate
and variance hold with these two in place of p and q; their difference is (p - q) / n.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.local._output_space import Payload
from cloister.local.draws import Draws, SourceDraws
from cloister.local.estimates import FrequencyEstimate, MeanEstimate, attach_guarantee, enough
from cloister.local.frequency.support import FrequencyProtocol, SupportProtocol, check_support_protocol, debias_supports
from cloister.local.protocol import Protocol
from cloister.local.reports import Reports

__all__ = [
    "All",
    "AttributeAnswers",
    "AttributeDesign",
    "Estimate",
    "FakeData",
    "SampleOne",
    "Split",
    "amplified_epsilon",
    "designs",
    "for_everybody",
]

Codes: TypeAlias = Mapping[str, NDArray[Any]]
Protocols: TypeAlias = Mapping[str, Protocol]
Estimate: TypeAlias = FrequencyEstimate | MeanEstimate
_DIGITS = 10**15


@dataclass(frozen=True, slots=True)
class AttributeAnswers:
    """Rows of reports for each attribute; ``asked`` is the place of each person's attribute where there is only one."""

    rows: Mapping[str, Payload]
    asked: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class AttributeDesign(ABC):
    """How the attributes of one person are reported; ``count`` is the number of attributes."""

    count: int

    def inner(self, epsilon: Fraction) -> Fraction:
        """Return the epsilon of the report of one attribute."""
        return epsilon

    def total(self, inner: Fraction) -> Fraction:
        """Return what one person pays in all, given the epsilon of the report of one attribute."""
        return inner

    def loss(self, protocols: Protocols) -> Fraction:
        """Return the epsilon of everything that one person sends, from the actual laws of the protocols."""
        # One attribute is told, and it may be the one whose actual law is the loosest.
        return max(protocol.epsilon_of() for protocol in protocols.values())

    @abstractmethod
    def perturb(self, protocols: Protocols, codes: Codes, draws: Draws) -> AttributeAnswers:
        """Return the reports of people whose codes are given by attribute."""

    def estimate(self, reports: Reports, *, people: int) -> Estimate:
        """Return the estimate of one attribute, about all people."""
        enough(people)
        found: Estimate = reports.protocol.estimate(reports)
        return found

    def variance(self, protocol: FrequencyProtocol, share: float) -> float:
        """Return the variance of an estimated share times the number of people."""
        return protocol.variance(share)


class All(AttributeDesign):
    """Every attribute at the whole epsilon."""

    def total(self, inner: Fraction) -> Fraction:
        """Return the sum over all attributes."""
        return self.count * inner

    def loss(self, protocols: Protocols) -> Fraction:
        """Return the sum over all attributes."""
        return sum((protocol.epsilon_of() for protocol in protocols.values()), start=Fraction(0))

    def perturb(self, protocols: Protocols, codes: Codes, draws: Draws) -> AttributeAnswers:
        """Return one report of each attribute for each person."""
        return AttributeAnswers(
            {name: perturb_codes(protocol, codes[name], draws) for name, protocol in protocols.items()}
        )


class Split(All):
    """Every attribute at an equal part of epsilon."""

    def inner(self, epsilon: Fraction) -> Fraction:
        """Return an equal part."""
        return epsilon / self.count


class SampleOne(AttributeDesign):
    """One attribute, chosen by a public coin, at the whole epsilon."""

    def perturb(self, protocols: Protocols, codes: Codes, draws: Draws) -> AttributeAnswers:
        """Return one report for each person: first the coin, then the attribute's draws."""
        # The coin is tossed before any value is looked at; that it is public then costs nothing.
        asked = draws.below(self.count, people_in(codes))
        rows = {
            name: perturb_codes(protocol, codes[name][asked == place], draws)
            for place, (name, protocol) in enumerate(protocols.items())
        }
        return AttributeAnswers(rows, asked)

    def estimate(self, reports: Reports, *, people: int) -> Estimate:
        """Return the estimate of one attribute, scaled up from those who were asked."""
        return for_everybody(AttributeDesign.estimate(self, reports, people=people), people=people)

    def variance(self, protocol: FrequencyProtocol, share: float) -> float:
        """Return the variance of an estimated share times the number of people, chance of the coin included."""
        # Each question gets one person in so many, and who they happen to be is a chance of its own.
        return self.count * protocol.variance(share) + (self.count - 1) * share * (1 - share)


@dataclass(frozen=True, slots=True)
class FakeData(AttributeDesign):
    """One attribute at the whole epsilon, among reports of random values of the others."""

    amplified: bool = False

    def inner(self, epsilon: Fraction) -> Fraction:
        """Return epsilon, or that of the published amplification."""
        return amplified_epsilon(epsilon, self.count) if self.amplified else epsilon

    def perturb(self, protocols: Protocols, codes: Codes, draws: Draws) -> AttributeAnswers:
        """Return one report of each attribute: first the coin; then, in order, a random value unless chosen."""
        asked = draws.below(self.count, people_in(codes))
        rows = {}
        for place, (name, protocol) in enumerate(protocols.items()):
            used, fakes = codes[name].copy(), np.flatnonzero(asked != place)
            # A fake is a uniform value told by the same protocol: its report alone cannot be told from a true one.
            used[fakes] = draws.below(len(check_support_protocol(protocol).domain), fakes.size)
            rows[name] = perturb_codes(protocol, used, draws)
        return AttributeAnswers(rows)

    def probabilities(self, protocol: SupportProtocol) -> tuple[Fraction, Fraction]:
        """Return how often a report supports its sender's value, and any other, fakes included."""
        (p, q), size = protocol.probabilities, len(protocol.domain)
        fake = (self.count - 1) * (p + (size - 1) * q) / size
        return (p + fake) / self.count, (q + fake) / self.count

    def estimate(self, reports: Reports, *, people: int) -> Estimate:
        """Return the estimate of one attribute, with the expected number of fakes taken out."""
        enough(people)
        protocol = check_support_protocol(reports.protocol)
        return debias_supports(
            reports,
            domain=protocol.domain.values,
            probabilities=self.probabilities(protocol),
            guarantee=protocol.guarantee_of(reports),
        )

    def variance(self, protocol: FrequencyProtocol, share: float) -> float:
        """Return the variance of an estimated share times the number of people."""
        p, q = map(float, self.probabilities(check_support_protocol(protocol)))
        return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2

    def one_attribute_ratio(self, protocols: Protocols) -> Fraction:
        """Return a bound of the ratio of probabilities between people who differ in one attribute only.

        With r = exp(epsilon_1) and k values, a report is at most ``k r / (r + k - 1)`` times as likely as a fake, and
        at least ``k / (1 + (k - 1) r)`` times, or ``k / (r + k - 1)`` times where it supports one value only.
        """
        least = {name: _least(check_support_protocol(protocol)) for name, protocol in protocols.items()}
        worst = Fraction(1)
        for name, protocol in protocols.items():
            r, size = protocol.likelihood_ratio, len(check_support_protocol(protocol).domain)
            own = size / (r + size - 1)
            # The other attributes' terms are in both sums, so that the least they can be makes the worst ratio.
            worst = max(worst, 1 + (r - 1) * own / (own + sum(least.values()) - least[name]))
        return worst


def designs(count: int, *, amplified: bool = False) -> dict[str, AttributeDesign]:
    """Return the designs for a number of attributes, by name."""
    return {
        "sample_one": SampleOne(count),
        "split": Split(count),
        "fake_data": FakeData(count, amplified),
        "all": All(count),
    }


def for_everybody(estimate: Estimate, *, people: int) -> Estimate:
    """Return an estimate from a random part of the people as one about all of them.

    Counts are scaled up; their errors include the chance of who was asked, ``f (1 - f) / m`` with the correction for m
    people drawn out of a finite number.
    """
    asked = estimate.reports
    note = f"{asked:,} of {people:,} people were asked, chosen at random"
    if not isinstance(estimate, FrequencyEstimate):
        return attach_guarantee(estimate, estimate.guarantee, note)
    shares = np.clip(estimate.raw_counts / asked, 0, 1)
    # People are drawn without replacement: when everybody was asked, this part vanishes.
    drawn = shares * (1 - shares) / asked * (people - asked) / max(people - 1, 1)
    return replace(
        estimate,
        raw_counts=estimate.raw_counts * people / asked,
        raw_errors=people * np.sqrt((estimate.raw_errors / asked) ** 2 + drawn),
        reports=people,
        notes=(*estimate.notes, note),
    )


def amplified_epsilon(epsilon: Fraction, count: int) -> Fraction:
    """Return ``ln(count (exp(epsilon) - 1) + 1)``, rounded down at the fifteenth decimal.

    >>> float(amplified_epsilon(Fraction(1), 2))
    1.489880125644749
    """
    low = exact.log_bounds(count * (exact.exp_bounds(epsilon)[0] - 1) + 1)[0]
    # Rounded down, towards less loss: the protocols must not be made with more than the formula says.
    return Fraction(math.floor(low * _DIGITS), _DIGITS)


def people_in(codes: Codes) -> int:
    """Return the number of people."""
    return len(next(iter(codes.values())))


def perturb_codes(protocol: Protocol, codes: NDArray[Any], draws: Draws) -> Payload:
    """Return the reports of codes: in the protocol's order of draws for one person, as fast as may be for many."""
    if not len(codes):
        return np.empty(0, dtype=protocol.output_space.dtype)
    # One person's draws follow the order that browsers share, and so do draws that are followed decision by decision.
    if len(codes) > 1 and isinstance(draws, SourceDraws):
        return protocol.perturb_many(codes, draws)
    return protocol.perturb(codes, draws)


def _least(protocol: SupportProtocol) -> Fraction:
    r, size = protocol.likelihood_ratio, len(protocol.domain)
    return size / (r + size - 1) if protocol.values_raised == 1 else size / (1 + (size - 1) * r)
