"""Is this algorithm differentially private? Checked exactly, with certified probabilities, or audited from samples.

The exact check covers all outputs and both directions. Certified probabilities are rationals below and above numbers
that have no exact form. Both live in `cloister.attacks.auditing`, where audits of real releases use them too.

The statistical audit gives a lower bound on epsilon from samples alone. It can refute a claim, never prove one.
For authors of mechanisms whose outputs are numbers or arrays of numbers. The method lives in
`cloister.attacks.auditing.statistical_check`; `cloister.attacks.audit_dp` runs it on outputs of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.auditing.exact_check import (
    UNLISTED,
    Bounds,
    Counterexample,
    ExactReport,
    ExactVerdict,
    Probability,
    bounds_of,
    check_exactly,
    discrete_laplace_bounds,
    normal_cdf_bounds,
    normalize,
)
from cloister.attacks.auditing.features import Feature, reader
from cloister.attacks.auditing.statistical_check import (
    AuditReport,
    OutputEvent,
    audit_samples,
    largest_detectable_epsilon,
    takes_size,
)
from cloister.core.confidence import binomial_bounds
from cloister.core.exact import Number
from cloister.errors import ParameterError

__all__ = [
    "UNLISTED",
    "AuditReport",
    "Bounds",
    "Counterexample",
    "ExactReport",
    "ExactVerdict",
    "Feature",
    "OutputEvent",
    "Probability",
    "audit",
    "binomial_bounds",
    "bounds_of",
    "check_exactly",
    "discrete_laplace_bounds",
    "largest_detectable_epsilon",
    "normal_cdf_bounds",
    "normalize",
]


def audit(
    mechanism: Callable[..., Any],
    neighbors: tuple[Any, Any] | Sequence[tuple[Any, Any]],
    *,
    epsilon: Number,
    delta: Number = 0,
    samples: int = 50_000,
    confidence: float = 0.999,
    features: Mapping[str, Feature] | None = None,
    vectorized: bool | None = None,
) -> AuditReport:
    """Return a lower bound on a mechanism's epsilon.

    Args:
        mechanism: ``mechanism(dataset, size)`` returning an array with one output per row, or ``mechanism(dataset)``
            returning one output.
        neighbors: a pair of neighboring datasets, or a list of pairs.
        epsilon: the claim.
        delta: the claim.
        samples: how many outputs to draw on each neighbor; half choose the event, half test it.
        confidence: the probability that a true claim is not refuted, over all pairs together.
        features: functions from the array of outputs to one value per output, by name, in place of the built-in ones.
        vectorized: whether the mechanism takes a size; by default decided by its signature.

    Returns:
        The report of the worst pair; `AuditReport.verify` raises if it refutes the claim.
    """
    return audit_samples(
        _drawer(mechanism, vectorized=vectorized),
        neighbors,
        epsilon=epsilon,
        delta=delta,
        samples=samples,
        confidence=confidence,
        read=reader(features),
    )


def _drawer(mechanism: Callable[..., Any], *, vectorized: bool | None) -> Callable[[Any, int], NDArray[Any]]:
    many = takes_size(mechanism) if vectorized is None else vectorized

    def draw(dataset: Any, size: int) -> NDArray[Any]:
        outputs = np.asarray(mechanism(dataset, size) if many else [mechanism(dataset) for _ in range(size)])
        if outputs.ndim not in {1, 2} or len(outputs) != size:
            raise ParameterError(
                f"The mechanism did not return {size} outputs in one row or one table.",
                fix="return an array with one number, or one row of numbers, per output; encode other outputs so.",
            )
        if outputs.dtype == object and (outputs == np.array(None)).any():
            raise ParameterError(
                "The mechanism returned None.", fix="return NaN, or a text such as 'none', where there is no answer."
            )
        return outputs

    return draw
