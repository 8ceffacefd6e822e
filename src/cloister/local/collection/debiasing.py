"""Counts from the reports of a device that does more than one protocol: fakes, or a second layer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from cloister.core.guarantees import LocalDP
from cloister.data.columns import Category
from cloister.errors import ParameterError
from cloister.local.estimates import FrequencyEstimate, enough
from cloister.local.frequency.support import SupportProtocol
from cloister.local.protocol import Protocol
from cloister.local.reports import Reports

__all__ = ["debiased", "supporting"]


def supporting(protocol: Protocol) -> SupportProtocol:
    """Return a protocol whose reports support values of a domain, or raise."""
    if not isinstance(protocol, SupportProtocol):
        raise ParameterError(
            "This needs a protocol whose reports support values of a domain.",
            fix='use DirectEncoding or OptimizedUnaryEncoding, or method="sample_one" for several attributes.',
        )
    return protocol


def debiased(
    reports: Reports, *, domain: Sequence[Category], probabilities: tuple[Fraction, Fraction], guarantee: LocalDP
) -> FrequencyEstimate:
    """Return the estimate from reports that support values, given how often they do in all.

    Args:
        reports: of a protocol whose reports support values.
        domain: the values.
        probabilities: how often a report supports its sender's value, and any other, whatever the device does.
        guarantee: what the estimate carries.
    """
    protocol, n = supporting(reports.protocol), enough(len(reports))
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
