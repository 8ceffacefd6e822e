"""What most frequency protocols share: a report supports some values, the true one more often than the others.

With p the probability that a report supports its sender's value and q that it supports another one, the number of
supporting reports I estimates the count ``(I - n q) / (p - q)`` without bias, with variance
``(c p (1 - p) + (n - c) q (1 - q)) / (p - q)**2`` for a true count c (Wang, Blocki, Li and Jha 2017).

`debias_supports` does the same for a device that does more than one protocol, such as fakes or a second layer: p and q
are then how often a report supports a value whatever the device does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.exact import Number
from cloister.core.guarantees import LocalDP
from cloister.core.validation import check_probability
from cloister.data.columns import Category
from cloister.errors import InternalError, ParameterError
from cloister.local._output_space import Payload
from cloister.local._packed_rows import column_counts
from cloister.local.domain import Answers, Codes, Domain
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.protocol import Protocol
from cloister.local.reports import Reports

__all__ = [
    "BitProtocol",
    "FrequencyProtocol",
    "SupportProtocol",
    "check_support_protocol",
    "debias_supports",
    "is_one",
    "not_countable",
    "readings_by_matrix",
    "support_variance",
]


def is_one(values: Any) -> bool:  # one value or many
    """Return whether this is one person's value rather than many people's."""
    if isinstance(values, list | tuple):
        return False
    return isinstance(values, str | bytes) or np.ndim(values) == 0


class FrequencyProtocol(Protocol):
    """A protocol for one value of a public domain.

    Attributes:
        domain: the public answers.
    """

    domain: Domain

    def __init_subclass__(cls, **options: Any) -> None:  # of further bases
        """Refuse a protocol that surveys may name, and that does not say whether its reports have a mean."""
        super().__init_subclass__(**options)
        if cls.fits_choices and cls.score_readings is FrequencyProtocol.score_readings:
            raise InternalError(f'the local protocol "{cls.name}" does not state score_readings')

    def __init__(self, *, domain: Answers | None = None, epsilon: Number | None = None) -> None:
        self.domain = Domain.of(domain)
        super().__init__(epsilon=epsilon)

    def encode(self, values: Any) -> tuple[Codes, bool]:  # one value or many
        """Return the codes of values, and whether it was a single value."""
        single = is_one(values)
        return self.domain.codes([values] if single else values), single

    @abstractmethod
    def estimate(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each value.

        Raises:
            ForeignReportError: if reports were made with another protocol.
            MalformedReportError: if a report is not one that this protocol can make.
            TooFewReportsError: if there are none.
        """

    @abstractmethod
    def variance(self, frequency: object = 0) -> float:
        """Return the variance of an estimated share times the number of reports, for a value of a true share."""

    @abstractmethod
    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""

    @abstractmethod
    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report.

        What does not depend on the value is left out: only differences between values matter to whoever guesses.

        Raises:
            ParameterTypeError: if a person may have several values.
        """

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return len(self.domain)

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:  # noqa: ARG002  # for those that have them
        """Return which reports support a value.

        Raises:
            ParameterError: if that is not known of single reports of this protocol.
        """
        raise not_countable()

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:  # noqa: ARG002  # for those that have them
        """Return for each value the number of reports that support it.

        Raises:
            ParameterError: if reports of this protocol do not support values.
        """
        raise not_countable()

    def support_chances(self) -> tuple[Floats, Floats]:
        """Return for each value how often a report supports it: of people who have the value, and of the others.

        Raises:
            ParameterError: if reports of this protocol do not support values.
        """
        raise not_countable()

    def score_readings(self, payload: Payload, scores: Floats) -> tuple[Floats, float] | None:  # noqa: ARG002
        """Return an unbiased reading of each sender's score, and the least variance that a reading has.

        Args:
            payload: the reports.
            scores: the number that stands for each value.

        Returns:
            None where reports have no reading whose least variance is known.
        """
        return None

    def _estimated(
        self, counts: ArrayLike, variances: ArrayLike, reports: int, guarantee: LocalDP
    ) -> FrequencyEstimate:
        return FrequencyEstimate(
            domain=self.domain.values,
            raw_counts=np.asarray(counts, dtype=np.float64),
            raw_errors=np.sqrt(np.asarray(variances, dtype=np.float64)),
            reports=reports,
            protocol=self.name,
            guarantee=guarantee,
        )

    def _domain_record(self) -> dict[str, Any]:
        return {"domain": list(self.domain.values), "domain_hash": self.domain.hash}

    def _domain_words(self) -> str:
        return f"domain of {len(self.domain)}"


def support_variance(having: Any, others: Any, *, p: float, q: float) -> Any:  # numbers, or arrays of them
    """Return the variance of an estimated count, of those who have a value and the others.

    Shares instead of counts give the variance of an estimated share times the number of reports.
    """
    return (having * p * (1 - p) + others * q * (1 - q)) / (p - q) ** 2


class SupportProtocol(FrequencyProtocol):
    """A frequency protocol whose reports support values."""

    @property
    @abstractmethod
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often a report supports its sender's value, and any other value, exactly."""

    @abstractmethod
    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:
        """Return which reports support a value."""

    @abstractmethod
    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each value the number of reports that support it."""

    def support_chances(self) -> tuple[Floats, Floats]:
        """Return for each value how often a report supports it: of people who have the value, and of the others."""
        p, q = map(float, self.probabilities)
        return np.full(len(self.domain), p), np.full(len(self.domain), q)

    def estimate(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each value; see `FrequencyProtocol.estimate`."""
        found = self.read(reports)
        n, (p, q) = enough(len(found)), map(float, self.probabilities)
        counts = (self.support_counts(found.payload) - n * q) / (p - q)
        # An estimate below zero or above all is nobody's count: its variance is that of the nearest possible one.
        likely = np.clip(counts, 0, n)
        variances = support_variance(likely, n - likely, p=p, q=q)
        return self._estimated(counts, variances, n, self.guarantee_of(found))

    def variance(self, frequency: object = 0) -> float:
        """Return the variance of an estimated share times the number of reports, for a value of a true share."""
        share = float(check_probability(frequency, name="frequency"))
        p, q = map(float, self.probabilities)
        return float(support_variance(share, 1 - share, p=p, q=q))

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""
        p, q = map(float, self.probabilities)
        return (1 - q) / (p - q), q / (p - q)

    def _by_support(self, supports: NDArray[np.bool_]) -> Floats:
        """Return the likelihoods of reports that are likelier by one ratio under each value that they support."""
        return np.asarray(supports * log(self.likelihood_ratio), dtype=np.float64)


class BitProtocol(SupportProtocol):
    """A protocol whose reports hold one bit for each value, set where the report supports the value."""

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:
        """Return which reports have the bit of the value."""
        return np.asarray(payload["bits"][:, code >> 3] >> (code & 7) & 1, dtype=np.bool_)

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each value the number of reports that have its bit."""
        return column_counts(payload["bits"], len(self.domain))

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        bits = np.unpackbits(payload["bits"], axis=1, count=len(self.domain), bitorder="little")
        return self._by_support(bits.astype(np.bool_))


def not_countable() -> ParameterError:
    """Return the error for reports of which nobody knows, one by one, which values they support."""
    return ParameterError(
        "A table of pairs needs reports that support values of a domain.",
        fix="ask both attributes with DirectEncoding, a unary encoding, OptimizedLocalHashing or SubsetSelection.",
    )


def readings_by_matrix(reported: NDArray[np.int64], matrix: Floats, scores: Floats) -> tuple[Floats, float]:
    """Return the readings of reports that are values themselves, by the chances of each under each true value."""
    # The reading of each report is solved for, so that its expectation is the score, whatever the true one is.
    reading = np.linalg.solve(matrix, scores)
    return np.asarray(reading[reported]), float((matrix @ reading**2 - scores**2).min())


def check_support_protocol(protocol: Protocol) -> SupportProtocol:
    """Return a protocol whose reports support values of a domain, or raise."""
    if not isinstance(protocol, SupportProtocol):
        raise ParameterError(
            "This needs a protocol whose reports support values of a domain.",
            fix='use DirectEncoding or OptimizedUnaryEncoding, or method="sample_one" for several attributes.',
        )
    return protocol


def debias_supports(
    reports: Reports, *, domain: Sequence[Category], probabilities: tuple[Fraction, Fraction], guarantee: LocalDP
) -> FrequencyEstimate:
    """Return the estimate from reports that support values, given how often they do in all.

    Args:
        reports: of a protocol whose reports support values.
        domain: the values.
        probabilities: how often a report supports its sender's value, and any other, whatever the device does.
        guarantee: what the estimate carries.
    """
    protocol, n = check_support_protocol(reports.protocol), enough(len(reports))
    p, q = map(float, probabilities)
    counts = (protocol.support_counts(reports.payload) - n * q) / (p - q)
    likely = np.clip(counts, 0, n)
    return FrequencyEstimate(
        domain=tuple(domain),
        raw_counts=np.asarray(counts, dtype=np.float64),
        raw_errors=np.sqrt((likely * p * (1 - p) + (n - likely) * q * (1 - q)) / (p - q) ** 2),
        reports=n,
        protocol=protocol.name,
        guarantee=guarantee,
    )
