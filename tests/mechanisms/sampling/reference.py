"""The slow, obvious samplers: Canonne, Kamath and Steinke (2020), one draw at a time, integers only."""

from __future__ import annotations

from fractions import Fraction

from cloister.core.random import RandomSource, integers_below


def _bernoulli(source: RandomSource, probability: Fraction) -> bool:
    return int(integers_below(source, probability.denominator, 1)[0]) < probability.numerator


def _bernoulli_exp(source: RandomSource, gamma: Fraction) -> bool:
    while gamma > 1:
        if not _bernoulli_exp(source, Fraction(1)):
            return False
        gamma -= 1
    k = 1
    while _bernoulli(source, gamma / k):
        k += 1
    return k % 2 == 1


def discrete_laplace(source: RandomSource, scale: Fraction) -> int:
    numerator, denominator = scale.numerator, scale.denominator
    while True:
        low = int(integers_below(source, numerator, 1)[0])
        if not _bernoulli_exp(source, Fraction(low, numerator)):
            continue
        high = 0
        while _bernoulli_exp(source, Fraction(1)):
            high += 1
        magnitude = (low + numerator * high) // denominator
        negative = _bernoulli(source, Fraction(1, 2))
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def discrete_gaussian(source: RandomSource, squared_sigma: Fraction) -> int:
    scale = int(float(squared_sigma) ** 0.5) + 1
    while True:
        proposal = discrete_laplace(source, Fraction(scale))
        gamma = (abs(proposal) - squared_sigma / scale) ** 2 / (2 * squared_sigma)
        if _bernoulli_exp(source, gamma):
            return proposal
