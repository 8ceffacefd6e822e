"""Certified probabilities: rationals below and above numbers that have no exact form.

The functions live in `cloister.attacks.auditing.probabilities`, where audits of real releases use them too.
"""

from __future__ import annotations

from cloister.attacks.auditing.probabilities import (
    Bounds,
    Probability,
    bounds_of,
    discrete_laplace_bounds,
    normal_cdf_bounds,
    normalized,
)

__all__ = ["Bounds", "Probability", "bounds_of", "discrete_laplace_bounds", "normal_cdf_bounds", "normalized"]
