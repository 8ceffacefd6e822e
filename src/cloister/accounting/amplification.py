"""Amplification: the bounds for a release on a secret random sample, or of shuffled reports, which lose less.

Sources: Balle, Barthe and Gaboardi (2018) for subsampling; Feldman, McMillan and Talwar (2021), theorem 3.1, for
shuffling. The sample, or the order of the reports, must stay secret, and the sampling must be the one named here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, ApproxDP, LocalDP, PureDP
from cloister.errors import AccountingError, ParameterError

__all__ = ["poisson_subsampling", "sampled_epsilon", "shuffling", "subsampling_without_replacement"]

_LARGE = 1000
_G = TypeVar("_G", PureDP, ApproxDP)


def sampled_epsilon(epsilon: Fraction, *, rate: Fraction) -> Fraction:
    """Return an upper bound of ln(1 + rate (exp(epsilon) - 1))."""
    # Without a sample the epsilon is valid anyway, and such an exponential has hundreds of digits.
    if rate == 1 or epsilon > _LARGE:
        return epsilon
    return min(epsilon, exact.log_bounds(1 + rate * (exact.exp_bounds(epsilon)[1] - 1))[1])


def poisson_subsampling(guarantee: _G, *, rate: Number) -> _G:
    """Return the guarantee of a release on a secret sample that each unit enters independently with a rate.

    Holds under ``add_remove``: epsilon becomes ``ln(1 + rate (exp(epsilon) - 1))`` and delta ``rate * delta``.

    >>> float(poisson_subsampling(PureDP(epsilon=1), rate=0.01).epsilon) < 0.0171
    True
    """
    return _amplify(
        guarantee,
        rate=validation.check_probability(rate, name="rate"),
        relation=Adjacency.ADD_REMOVE,
        other="subsampling_without_replacement",
    )


def subsampling_without_replacement(guarantee: _G, *, sample_size: int, population: int) -> _G:
    """Return the guarantee of a release on a secret uniform sample of fixed size, under ``replace``.

    The formula is that of Poisson sampling with rate ``sample_size / population``; both sizes are public.
    """
    population = validation.check_count(population, name="population", at_least=1)
    sample_size = validation.check_count(sample_size, name="sample_size")
    if sample_size > population:
        raise ParameterError(
            "The sample is larger than the population.",
            fix=f"use sample_size <= {population}, drawn without replacement.",
        )
    rate = Fraction(sample_size, population)
    return _amplify(guarantee, rate=rate, relation=Adjacency.REPLACE, other="poisson_subsampling")


def shuffling(guarantee: LocalDP, *, reports: int, delta: Number) -> ApproxDP:
    """Return the central guarantee of local reports whose order was shuffled by someone trusted with that alone.

    The closed form of Feldman, McMillan and Talwar. It is proven for
    ``epsilon <= ln(reports / (16 ln(2 / delta)))`` and refused elsewhere.
    """
    reports = validation.check_count(reports, name="reports", at_least=2)
    slack = validation.check_delta(delta, allow_zero=False)
    low, growth = exact.exp_bounds(guarantee.epsilon)
    # Rounded up, so that the condition of the theorem holds for the true numbers too.
    needed = math.ceil(growth * 16 * exact.log_bounds(2 / slack)[1])
    if needed > reports:
        raise AccountingError(
            "There are too few reports for the shuffling bound to hold at this epsilon and delta.",
            fix=f"collect at least {needed} reports, or use a smaller local epsilon or a larger delta.",
        )
    root = exact.sqrt_bounds(growth * exact.log_bounds(4 / slack)[1] / reports)[1]
    ratio = (growth - 1) / (low + 1)
    epsilon = exact.log_bounds(1 + ratio * (8 * root + 8 * growth / reports))[1]
    return ApproxDP(
        # Shuffling is post-processing: it never makes the local promise worse.
        epsilon=min(epsilon, guarantee.epsilon),
        delta=slack,
        adjacency=Adjacency.REPLACE,
        unit=guarantee.unit,
        assumptions=(*guarantee.assumptions, "the order of the reports was shuffled and stays secret"),
        caveats=guarantee.caveats,
    )


def _amplify(guarantee: _G, *, rate: Fraction, relation: Adjacency, other: str) -> _G:
    if guarantee.adjacency is not relation:
        raise AccountingError(
            f"This sampling amplifies guarantees under {relation}, not under {guarantee.adjacency}.",
            fix=f"use {other}, or state the guarantee under {relation}.",
        )
    epsilon = sampled_epsilon(guarantee.epsilon, rate=rate)
    result = replace(guarantee, epsilon=epsilon)
    if isinstance(guarantee, ApproxDP):
        result = replace(result, delta=rate * guarantee.delta)
    return result.with_assumption("the sample was drawn at random and stays secret")
