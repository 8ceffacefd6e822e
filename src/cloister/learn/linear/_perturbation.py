"""Logistic regression by noise in the objective or on the result.

Both minimize the sum of losses over rows of norm at most 1, plus strength / 2 * |w|**2, strength being public; the sum,
not the mean, so that the number of rows is not needed. The textbook's lambda for n rows is strength / n.

*Output* (Chaudhuri, Monteleoni and Sarwate 2011): one row more moves the minimum by at most 1 / strength, since its
loss has slope at most 1. Noise for that is added to the result.

*Objective* (the same; Kifer, Smith and Thakurta 2012; Redberg, Koskela and Wang 2023): a random linear term b.w is
added before minimizing. The map from b to the minimum w is one to one. Given w, one row more moves b by its gradient,
at most 1 in L2, and changes the volume by at most 1 + 1/(4 strength). So e**-rate*|b| costs rate + ln(1 + 1/(4
strength)). If the logarithm takes more than half of epsilon, the strength is raised until it takes half: noise never
grows as epsilon does, unlike where the strength is raised only once the logarithm takes all. With independent Laplace
coordinates the rate counts in L1. With Gaussian ones, b.x is normal with deviation sigma, so the loss exceeds epsilon
with a probability of at most 2 Q(sigma * e - 1/(2 sigma)), e being epsilon less the logarithm, Q the normal tail.

Privacy: claim (epsilon, delta)-DP for one row added or removed, in spite of solvers and floats. The argument above is
about exact minima and real b. (1) The lattice vector that is drawn instead of b is a rounding of b, up to a factor of
its law that is paid for: exp(rate * d) for Laplace and Euclidean noise on a lattice of step 1 (norms within half of
sqrt(d), or d, of each other, twice, for the normalization); for Gaussian noise of sigma steps, a total variation of at
most d / (23 sigma**2), since by Jensen's inequality the rounded law is at least exp(-1/(24 sigma**2)) times the lattice
law. (2) The solver's result is certified to have a gradient of norm at most ``tol``, rounding and (1) included, so it
is within tol / strength of the exact minimum, for either neighbor; noise for a distance of 2 tol / strength, paid with
a hundredth of the budget, makes it private given that minimum (approximate minima perturbation, Iyengar et al. 2019).
In output perturbation the sensitivity is (1 + 2 tol) / strength. That a certificate is found for up to ten million
rows, whatever they hold, is argued in `_solver`, for the strengths and ``tol`` that are not refused. Should it not be
found, a model of zeros is given the same noise, and nothing says so: a warning would be about the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import ApproxEvent, Event, PureEvent
from cloister.core import exact
from cloister.core.random import RandomSource
from cloister.core.whole_rows import Floats
from cloister.errors import ParameterError
from cloister.learn._rows import WeightedRows
from cloister.learn.linear._design import UNIT, LinearDesign
from cloister.learn.linear._solver import WEAKEST, Objective, Point, digits_for, minimum
from cloister.mechanisms.calibration import FitStep
from cloister.mechanisms.gaussian import Gaussian
from cloister.mechanisms.laplace import Laplace
from cloister.mechanisms.lattice import RealNoise
from cloister.mechanisms.sampling.discrete_noise import Sampler, discrete_gaussian, discrete_laplace
from cloister.mechanisms.vector_laplace import MOST_DIMENSIONS, VectorLaplace, euclidean_laplace

__all__ = [
    "LinearTerm",
    "Perturbation",
    "epsilon_of_term",
    "learn_perturbed",
    "output_noise",
    "plan_objective",
    "plan_output",
    "row_length",
]

_CORRECTION = Fraction(1, 100)
_ROUNDING = Fraction(1, 2**26)
_SIGMA_STEPS = 2**40


@dataclass(frozen=True, slots=True)
class LinearTerm:
    """Random coefficients: whole vectors of a sampler times a step, and a bound of what rounding moved them by."""

    sampler: Sampler
    step: Fraction
    length: float
    """the length to expect"""
    name: str

    def draw(self, source: RandomSource, width: int) -> NDArray[Any]:
        """Return the coefficients in steps."""
        return self.sampler.draw(source, width)

    def rounding(self, width: int) -> float:
        """Return how far the real coefficients may be from the drawn ones."""
        return float(self.step) * math.sqrt(width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """What a fit does for each class: a linear term or none, a penalty, and noise on the result."""

    strength: Fraction
    term: LinearTerm | None
    output: RealNoise
    tol: Fraction
    steps: tuple[FitStep, ...]

    @property
    def length(self) -> float:
        """Return the length of the noise to expect, in units of the slope of one row."""
        if self.term is not None:
            return self.term.length
        return float(self.strength) * _length(self.output)

    @property
    def digits(self) -> int:
        """Return how fine the points of the solver are, in binary digits."""
        return digits_for(strength=self.strength, tol=self.tol, width=self.output.dimensions)

    @property
    def largest_gradient(self) -> float:
        """Return how steep the objective with the drawn term may be at the result of the solver."""
        # The certificate is about the real term, which may differ from the drawn one by what rounding moved it.
        return exact.float_below(self.tol) - (0.0 if self.term is None else self.term.rounding(self.output.dimensions))


def epsilon_of_term(epsilon: Fraction, strength: Fraction) -> tuple[Fraction, Fraction]:
    """Return the strength, raised where needed, and the epsilon that it leaves for the linear term.

    >>> strength, left = epsilon_of_term(Fraction(1, 2), Fraction(10))
    >>> float(strength), round(2 * float(left), 6)
    (10.0, 0.950615)
    """
    # With the lower bound of exp the strength comes out larger, never too small for half of epsilon.
    needed = 1 / (4 * (exact.exp_bounds(epsilon / 2)[0] - 1))
    # A float, so that the solver works with exactly the strength that is paid for.
    strength = Fraction(exact.float_above(max(strength, needed)))
    left = epsilon - exact.log_bounds(1 + 1 / (4 * strength))[1]
    return strength, left


def plan_objective(
    design: LinearDesign, *, epsilon: Fraction, delta: Fraction, strength: Fraction | None, tol: Fraction, rows: int
) -> Perturbation:
    """Return the plan of one objective perturbation.

    The strength is by default the square of the length of the term, at half of epsilon, over the number of rows that
    are assumed, and at least 0.03: a penalty that grows as the noise does. Chosen, as the default of output
    perturbation, on splits of the training file of Adult.
    """
    main, main_delta = epsilon * (1 - _CORRECTION), delta * (1 - _CORRECTION)
    slack = main * _ROUNDING
    if strength is None:
        rough = _term(design, main / 2, slack, main, main_delta)
        strength = max(exact.number(rough.length**2 / rows), Fraction(3, 100))
    raised, left = epsilon_of_term(main - slack, strength)
    term = _term(design, left, slack, main, main_delta)
    if 4 * term.rounding(design.width) > tol:
        raise ParameterError("tol is finer than the lattice of the noise.", fix="use a larger tol, such as 1e-5.")
    output = output_noise(
        2 * tol / raised, width=design.width, epsilon=epsilon * _CORRECTION, delta=delta * _CORRECTION
    )
    paid: Event = PureEvent(epsilon=main) if delta == 0 else ApproxEvent(epsilon=main, delta=main_delta)
    steps = (
        FitStep(f"{term.name} term in the objective", paid),
        FitStep("distance from the exact minimum", output.event),
    )
    return Perturbation(strength=raised, term=term, output=output, tol=tol, steps=steps)


def plan_output(
    design: LinearDesign, *, epsilon: Fraction, delta: Fraction, strength: Fraction | None, tol: Fraction, rows: int
) -> Perturbation:
    """Return the plan of one output perturbation.

    The strength is by default 0.02 times the square root of the length of the noise at strength 1 times the number of
    rows that are assumed: then the penalty and the noise move the weights about equally far.
    """
    if strength is None:
        one = output_noise(Fraction(1), width=design.width, epsilon=epsilon, delta=delta)
        strength = max(exact.number(0.02 * math.sqrt(_length(one) * rows)), WEAKEST)
    strength = Fraction(exact.float_above(strength))
    noise = output_noise((1 + 2 * tol) / strength, width=design.width, epsilon=epsilon, delta=delta)
    steps = (FitStep("noise on the weights", noise.event),)
    return Perturbation(strength=strength, term=None, output=noise, tol=tol, steps=steps)


def _length(noise: RealNoise) -> float:
    return noise.standard_deviation * math.sqrt(noise.dimensions)


def output_noise(sensitivity: Fraction, *, width: int, epsilon: Fraction, delta: Fraction) -> RealNoise:
    """Return the noise for weights that neighbors move so far in L2."""
    if delta:
        return Gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta, dimensions=width)
    if width <= MOST_DIMENSIONS:
        return VectorLaplace(sensitivity=sensitivity, epsilon=epsilon, dimensions=width)
    # A distance in L2 is at most so many times as long in L1.
    flat = sensitivity * exact.sqrt_bounds(Fraction(width))[1]
    return Laplace(sensitivity=flat, epsilon=epsilon, dimensions=width)


def _term(design: LinearDesign, left: Fraction, slack: Fraction, epsilon: Fraction, delta: Fraction) -> LinearTerm:
    """Return the shortest of the terms that can be drawn."""
    terms = [_laplace(design, left, slack)]
    if design.width <= MOST_DIMENSIONS:
        terms.append(_euclidean(design, left, slack))
    # The lattice of Gaussian noise is paid for with a thousandth of delta, which is enough but for a huge epsilon.
    if (1 + exact.exp_bounds(epsilon)[1]) * design.width / (23 * _SIGMA_STEPS**2) < delta / 1000:
        terms.append(_gaussian(design, left, delta * Fraction(999, 1000)))
    return min(terms, key=lambda term: term.length)


def _euclidean(design: LinearDesign, left: Fraction, slack: Fraction) -> LinearTerm:
    # Both neighbors' laws are within exp(rate * width) of the rounded ones: twice that is paid from the slack.
    rate = slack / (2 * design.width)
    length = design.width / float(left)
    return LinearTerm(euclidean_laplace(rate, design.width), rate / left, length, "spherical")


def _laplace(design: LinearDesign, left: Fraction, slack: Fraction) -> LinearTerm:
    rate = slack / (2 * design.width)
    flat = Fraction(design.norm, row_length(design))
    length = math.sqrt(2 * design.width) * float(flat / left)
    return LinearTerm(discrete_laplace(1 / rate), rate * flat / left, length, "Laplace")


def _gaussian(design: LinearDesign, left: Fraction, delta: Fraction) -> LinearTerm:
    from scipy.special import ndtri

    # The margins are far above the errors of floats, and far below what matters.
    tail = -float(ndtri(float(delta) / 2)) * (1 + 1e-9)
    room = float(left) * (1 - 1e-9)
    sigma = exact.upper((tail + math.sqrt(tail**2 + 2 * room)) / (2 * room) * (1 + 1e-9))
    length = float(sigma) * math.sqrt(design.width)
    return LinearTerm(discrete_gaussian(Fraction(_SIGMA_STEPS**2)), sigma / _SIGMA_STEPS, length, "Gaussian")


def learn_perturbed(
    design: LinearDesign, rows: WeightedRows, plan: Perturbation, source: RandomSource, *, place: int, max_iter: int
) -> tuple[Floats, bool]:
    """Return the weights of one class against the others, for rows divided by ``UNIT``, and whether they were found."""
    length, digits = row_length(design), plan.digits
    term = (0,) * design.width if plan.term is None else _in_digits(plan.term, digits, design.width, source)
    objective = Objective(
        steps=design.rows(rows.features),
        length=length,
        signs=np.where(np.asarray(rows.target) == place, 1.0, -1.0),
        weights=rows.weights,
        strength=plan.strength,
        term=term,
        digits=digits,
    )
    found = minimum(objective, tol=plan.largest_gradient, max_iter=max_iter)
    # Zeros in place of a minimum that was not found get the same noise, so that nobody can tell.
    noisy = _noisy((0,) * design.width if found is None else found, digits, plan.output, source)
    # The solver divided rows by their length, and weights are stated for rows divided by `UNIT`.
    return noisy * (UNIT / length), found is not None


def _in_digits(term: LinearTerm, digits: int, width: int, source: RandomSource) -> Point:
    """Return random coefficients as the solver takes them; that moves them by far less than their own lattice did."""
    return tuple(round(int(item) * term.step * 2**digits) for item in term.draw(source, width))


def _noisy(found: Point, digits: int, noise: RealNoise, source: RandomSource) -> Floats:
    """Return a point with noise: in units of its last digit, so that nothing is rounded before."""
    unit = 2**digits
    fine = replace(noise, sensitivity=noise.sensitivity * unit, granularity=Fraction(noise.granularity or 1) * unit)
    noisy: Floats = np.asarray(fine.release(list(found), random_state=source).value, dtype=np.float64)
    return np.asarray(noisy / unit)


def row_length(design: LinearDesign) -> int:
    """Return a whole number of steps that no row is longer than; rows are divided by it."""
    return math.isqrt(design.squared_norm) + 1
