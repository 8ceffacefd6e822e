"""Tools to test private algorithms: statistics, exact probabilities, audits, laws, golden examples, a zoo of bugs.

Public, so that algorithm providers can use them; imported by no other part of cloister. Strategies for Hypothesis are
in `cloister.testing.strategies`, which needs the extra ``test``.
"""

from __future__ import annotations

from cloister.attacks.auditing.exact_check import (
    Counterexample,
    ExactReport,
    ExactVerdict,
    check_exactly,
    discrete_laplace_bounds,
    normal_cdf_bounds,
    normalize,
)
from cloister.attacks.auditing.statistical_check import AuditReport
from cloister.testing.audit import audit
from cloister.testing.golden import Golden, check_golden, load_golden, load_goldens
from cloister.testing.laws import Law, MechanismLaws, SamplerLaws
from cloister.testing.neighbors import all_neighbors, removals
from cloister.testing.statistics import (
    FALSE_ALARM,
    SAMPLES,
    check_distribution,
    check_independent,
    check_same_distribution,
    check_scale,
)

__all__ = [
    "FALSE_ALARM",
    "SAMPLES",
    "AuditReport",
    "Counterexample",
    "ExactReport",
    "ExactVerdict",
    "Golden",
    "Law",
    "MechanismLaws",
    "SamplerLaws",
    "all_neighbors",
    "audit",
    "check_distribution",
    "check_exactly",
    "check_golden",
    "check_independent",
    "check_same_distribution",
    "check_scale",
    "discrete_laplace_bounds",
    "load_golden",
    "load_goldens",
    "normal_cdf_bounds",
    "normalize",
    "removals",
]
