"""Is this algorithm differentially private? Exact probabilities, all outputs, both directions.

For a mechanism with finitely many outputs the question is arithmetic: the hockey-stick divergence
``H(P || Q) = sum over outputs of max(P - exp(epsilon) Q, 0)`` must not exceed delta, for every pair of neighbors and in
both directions. Probabilities are rationals or certified bounds: rationals below and above numbers that have no exact
form, so that no float ever takes part in a verdict. exp(epsilon) is bounded from both sides. An output that is
impossible on both sides says nothing (0/0 counts as 1); one that is possible on one side only has an infinite ratio.

A pass covers the neighbors that were given, so give all of them, for example with `all_neighbors`. A failure is final
and comes with a counterexample: two neighbors and the outputs that tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from cloister.core import exact, validation
from cloister.core.exact import Number
from cloister.errors import ParameterError, ParameterTypeError, PrivacyRefutedError

__all__ = [
    "UNLISTED",
    "Bounds",
    "Counterexample",
    "ExactReport",
    "ExactVerdict",
    "Probability",
    "bounds_of",
    "check_exactly",
    "discrete_laplace_bounds",
    "normal_cdf_bounds",
    "normalize",
]


Bounds: TypeAlias = tuple[Fraction, Fraction]
Probability: TypeAlias = "int | float | Fraction | Bounds"
Key = TypeVar("Key", bound=Hashable)

_PI = (
    Fraction("3.14159265358979323846264338327950288419716939937510"),
    Fraction("3.14159265358979323846264338327950288419716939937511"),
)


def bounds_of(value: object) -> Bounds:
    """Return (low, high) around a probability or density: exact for rationals, four units wide each way for floats."""
    if isinstance(value, tuple):
        if len(value) != 2:
            raise ParameterTypeError("A probability is a number or a pair of bounds.", fix="write (low, high).")
        low, high = (exact.number(end, name="each bound") for end in value)
    else:
        low = high = exact.number(value, name="a probability")
    # A float is known to some units of its last place only, while 0 is exactly 0.
    if isinstance(value, float) and value > 0:
        low, high = max(exact.lower(value), Fraction(0)), exact.upper(value)
    if not 0 <= low <= high:
        raise ParameterError(
            "A probability is negative or its bounds are reversed.", fix="give 0 <= low <= high for every output."
        )
    return low, high


def normalize(weights: Mapping[Key, Probability]) -> dict[Key, Bounds]:
    """Return certified probabilities proportional to certified weights.

    >>> normalize({"a": 1, "b": 3})["b"]
    (Fraction(3, 4), Fraction(3, 4))
    """
    known = {output: bounds_of(weight) for output, weight in weights.items()}
    low_total = sum((low for low, _ in known.values()), Fraction(0))
    high_total = sum((high for _, high in known.values()), Fraction(0))
    if low_total <= 0:
        raise ParameterError("The weights may all be zero.", fix="give at least one weight above 0.")
    return {
        # An output's own weight is taken at the same end above and below the line, which is tighter than
        # dividing by totals.
        output: (low / (high_total - high + low) if low else Fraction(0), high / (low_total - low + high))
        for output, (low, high) in known.items()
    }


def discrete_laplace_bounds(center: int, *, scale: Fraction, window: tuple[int, int]) -> dict[int, Bounds]:
    """Return certified probabilities of discrete Laplace noise, far outputs joined at the window's ends.

    Joining outputs is post-processing: it never adds a loss, and here hides none, all far ratios being equal.
    """
    low, high = window
    if not low < center < high:
        raise ParameterError("The window does not hold the center.", fix="give window=(low, high) around the center.")
    ratio = exact.exp_bounds(-1 / scale)
    weights: dict[int, Probability] = {}
    for output in range(low, high + 1):
        near, far = exact.exp_bounds(-abs(output - center) / scale)
        ends = output in window
        # What lies beyond an end of the window is a geometric series.
        weights[output] = (near / (1 - ratio[0]), far / (1 - ratio[1])) if ends else (near, far)
    return normalize(weights)


def normal_cdf_bounds(value: Fraction, *, digits: int = exact.DIGITS) -> Bounds:
    """Return rationals around the standard normal cumulative distribution function.

    The series ``Phi(x) = 1/2 + phi(x) (x + x**3/3 + x**5/(3*5) + ...)`` has positive terms for positive x, and its rest
    is at most twice the next term once each term is at most half the one before.
    """
    if value < 0:
        low, high = normal_cdf_bounds(-value, digits=digits)
        return 1 - high, 1 - low
    low_sum, high_sum = _normal_series(value, 10 ** (digits + 15))
    exponential = exact.exp_bounds(-value * value / 2, digits=digits + 10)
    root = exact.sqrt_bounds(2 * _PI[0])[0], exact.sqrt_bounds(2 * _PI[1])[1]
    half = Fraction(1, 2)
    return half + exponential[0] / root[1] * low_sum, min(half + exponential[1] / root[0] * high_sum, Fraction(1))


def _normal_series(value: Fraction, scale: int) -> Bounds:
    """Return the sum of the series in integers of 1/scale, each term rounded down and up."""
    square = value * value
    low, high = math.floor(value * scale), math.ceil(value * scale)
    low_sum = high_sum = 0
    odd = 1
    while high > 1 or 2 * square > odd:
        low_sum, high_sum, odd = low_sum + low, high_sum + high, odd + 2
        low, high = math.floor(low * square / odd), math.ceil(high * square / odd)
    return Fraction(low_sum, scale), Fraction(high_sum + 2 * high, scale)


TOLERANCE = Fraction(1, 10**12)
_ZERO: Bounds = (Fraction(0), Fraction(0))
_MASS_ERROR = Fraction(1, 10**9)
_SHOWN = 3

UNLISTED = "<every output that is not listed>"
"""The output that stands for the probability that a distribution leaves out."""

Outputs: TypeAlias = Mapping[Any, Probability]
_Table: TypeAlias = "dict[Hashable, Bounds]"
_Cells: TypeAlias = "dict[Hashable, tuple[Bounds, Bounds]]"


class ExactVerdict(StrEnum):
    """What exact arithmetic says."""

    HOLDS = "holds"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """Two neighbors and a set of outputs that is too likely for one of them, with a lower and an upper bound."""

    dataset: Any  # whatever the mechanism takes
    neighbor: Any  # whatever the mechanism takes
    outputs: tuple[Hashable, ...]
    probability: Fraction
    neighbor_probability: Fraction

    def __str__(self) -> str:
        shown = ", ".join(repr(output) for output in self.outputs[:_SHOWN])
        shown += ", ..." if len(self.outputs) > _SHOWN else ""
        return (
            f"{{{shown}}} has probability {float(self.probability):.6g} on {self.dataset!r} "
            f"but {float(self.neighbor_probability):.6g} on its neighbor {self.neighbor!r}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Direction:
    """Both distributions of one ordered pair of neighbors."""

    dataset: Any  # whatever the mechanism takes
    neighbor: Any  # whatever the mechanism takes
    cells: _Cells

    def divergence(self, factor: Bounds) -> Bounds:
        """Return the hockey-stick divergence for a factor exp(epsilon), bounded from both sides."""
        # Once every bound is taken at the end that makes the divergence small, once at the one that makes it
        # large.
        low = sum((max(p[0] - factor[1] * q[1], Fraction(0)) for p, q in self.cells.values()), Fraction(0))
        high = sum((max(p[1] - factor[0] * q[0], Fraction(0)) for p, q in self.cells.values()), Fraction(0))
        return low, high

    def smallest_factor(self, delta: Fraction) -> Fraction | None:
        """Return the smallest factor at which the (upper) divergence is at most delta, None if there is none.

        The divergence is a falling, piecewise linear function of the factor: outputs enter by falling ratio.
        """
        mass = sum((p[1] for p, q in self.cells.values() if q[0] == 0), Fraction(0))
        if mass > delta:
            return None
        finite = sorted(((p[1], q[0]) for p, q in self.cells.values() if q[0] > 0), key=_by_ratio, reverse=True)
        other = factor = Fraction(0)
        for probability, neighbor_probability in finite:
            if other and factor >= probability / neighbor_probability:
                break
            mass, other = mass + probability, other + neighbor_probability
            factor = (mass - delta) / other
        return max(factor, Fraction(0))

    def counterexample(self, factor: Bounds, delta: Fraction) -> Counterexample:
        """Return the outputs that are too likely: the worst one if one is enough, else all that count."""
        excess = {output: p[0] - factor[1] * q[1] for output, (p, q) in self.cells.items() if p[0] > factor[1] * q[1]}
        worst = max(excess, key=lambda output: _by_ratio((self.cells[output][0][0], self.cells[output][1][1])))
        outputs = (worst,) if excess[worst] > delta else tuple(excess)
        return Counterexample(
            dataset=self.dataset,
            neighbor=self.neighbor,
            outputs=outputs,
            probability=sum((self.cells[output][0][0] for output in outputs), Fraction(0)),
            neighbor_probability=sum((self.cells[output][1][1] for output in outputs), Fraction(0)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactReport:
    """What `check_exactly` found.

    Attributes:
        epsilon: the claim.
        delta: the claim.
        tight_epsilon: the smallest epsilon that is true at this delta, rounded up; infinite if there is none.
        counterexample: two neighbors and the outputs that tell them apart, when the claim is refuted.
        verdict: "undecided" when the bounds on the probabilities are too wide.
        pairs: how many pairs of neighbors were examined.
    """

    epsilon: Fraction
    delta: Fraction
    tight_epsilon: float
    counterexample: Counterexample | None
    verdict: ExactVerdict
    pairs: int
    directions: tuple[_Direction, ...]

    def __repr__(self) -> str:
        return f"<ExactReport {self}>"

    def __str__(self) -> str:
        claim = f"epsilon = {float(self.epsilon):g}" + (f", delta = {float(self.delta):g}" if self.delta else "")
        return f"{claim}: {self.verdict} on {self.pairs} pairs of neighbors; tight epsilon {self.tight_epsilon:.6g}"

    @property
    def holds(self) -> bool:
        """Return whether the claim is proven for the neighbors given."""
        return self.verdict is ExactVerdict.HOLDS

    @property
    def refuted(self) -> bool:
        """Return whether the claim is disproven."""
        return self.verdict is ExactVerdict.REFUTED

    def delta_at(self, epsilon: Number) -> Fraction:
        """Return the smallest delta, rounded up, that is true at an epsilon: the worst of all pairs, both ways."""
        factor = exact.exp_bounds(validation.check_epsilon(epsilon, allow_zero=True))
        return max(direction.divergence(factor)[1] for direction in self.directions)

    def verify(self) -> None:
        """Raise unless the claim is proven.

        Raises:
            PrivacyRefutedError: with the counterexample, or because the bounds are too wide to decide.
        """
        if self.refuted:
            raise PrivacyRefutedError(
                f"This is not private as claimed ({self}): {self.counterexample}.",
                fix=f"claim epsilon >= {self.tight_epsilon:.6g}, or correct the algorithm.",
            )
        if not self.holds:
            raise PrivacyRefutedError(
                f"The bounds on the probabilities are too wide to decide ({self}).",
                fix="give rationals, or certified bounds of more digits.",
            )


def check_exactly(
    distribution: Callable[[Any], Outputs],
    neighbors: Iterable[tuple[Any, Any]],
    *,
    epsilon: Number,
    delta: Number = 0,
    densities: bool = False,
    tolerance: object = TOLERANCE,
) -> ExactReport:
    """Return whether a mechanism is (epsilon, delta)-differentially private on the given neighbors.

    Args:
        distribution: returns {output: probability} for a dataset; a probability is a rational, a float (read as an
            interval of four units in the last place each way) or a pair of bounds. What is certainly missing from
            1, at most a billionth, counts as one more output, `UNLISTED`, the same for all datasets.
        neighbors: pairs of neighboring datasets; each is checked both ways.
        epsilon: the claim.
        delta: the claim.
        densities: the numbers are densities at chosen points (up to one common constant) and need not add up to 1;
            delta must be 0, and a pass covers those points only.
        tolerance: how much tight_epsilon may exceed epsilon when only bounds are known. A violation that is proven is
            never tolerated.

    Returns:
        A report; `ExactReport.verify` raises unless the claim holds.
    """
    claim, slack = validation.check_epsilon(epsilon, allow_zero=True), validation.check_delta(delta)
    if densities and slack:
        raise ParameterError("Densities decide pure privacy only.", fix="give probabilities of cells for delta > 0.")
    table = _remembering(lambda dataset: _table(distribution(dataset), densities=densities))
    pairs = [_directions(table, pair) for pair in neighbors]
    if not pairs:
        raise ParameterError("There are no neighbors to check.", fix="give at least one pair of neighbors.")
    directions = tuple(direction for pair in pairs for direction in pair)
    factor = exact.exp_bounds(claim)
    # Where only bounds are known, a proof may use a slightly larger epsilon; a refutation never does.
    wider = exact.exp_bounds(claim + validation.check_non_negative(tolerance, name="tolerance"))
    # A refutation rests on what is certain and a proof on what is possible: between the two nothing is decided.
    found = next((item for item in _worst_first(directions, factor) if item.divergence(factor)[0] > slack), None)
    proven = all(item.divergence((wider[0], wider[0]))[1] <= slack for item in directions)
    return ExactReport(
        epsilon=claim,
        delta=slack,
        tight_epsilon=_tight_epsilon(directions, slack),
        counterexample=found.counterexample(factor, slack) if found else None,
        verdict=ExactVerdict.REFUTED if found else ExactVerdict.HOLDS if proven else ExactVerdict.UNDECIDED,
        pairs=len(pairs),
        directions=directions,
    )


def _remembering(table: Callable[[Any], _Table]) -> Callable[[Any], _Table]:
    """Return the same function that computes each object once; equal objects may still differ, as 1 and True do."""
    known: dict[int, tuple[Any, _Table]] = {}

    def look_up(dataset: Any) -> _Table:
        if id(dataset) not in known:
            # The object is kept beside its table, so that its id cannot be given to another one.
            known[id(dataset)] = (dataset, table(dataset))
        return known[id(dataset)][1]

    return look_up


def _directions(table: Callable[[Any], _Table], pair: tuple[Any, Any]) -> tuple[_Direction, _Direction]:
    first, second = pair
    here, there = table(first), table(second)
    outputs = dict.fromkeys([*here, *there])
    forward = {output: (here.get(output, _ZERO), there.get(output, _ZERO)) for output in outputs}
    backward = {output: (q, p) for output, (p, q) in forward.items()}
    return (
        _Direction(dataset=first, neighbor=second, cells=forward),
        _Direction(dataset=second, neighbor=first, cells=backward),
    )


def _table(outputs: Outputs, *, densities: bool) -> _Table:
    table = {output: bounds_of(probability) for output, probability in outputs.items()}
    if densities:
        return table
    low, high = (sum((item[end] for item in table.values()), Fraction(0)) for end in (0, 1))
    if low > 1 + _MASS_ERROR or high < 1 - _MASS_ERROR:
        raise ParameterError(
            "The probabilities of a distribution do not add up to 1.",
            fix="list every output, join far outputs into one, or pass densities=True.",
        )
    if high < 1:
        table[UNLISTED] = (1 - high, 1 - low)
    return table


def _worst_first(directions: Iterable[_Direction], factor: Bounds) -> list[_Direction]:
    """Return directions with those whose smallest true factor is largest first."""

    def badness(item: _Direction) -> tuple[bool, Fraction, Fraction]:
        needed = item.smallest_factor(Fraction(0))
        return needed is None, needed or Fraction(0), item.divergence(factor)[0]

    return sorted(directions, key=badness, reverse=True)


def _tight_epsilon(directions: Iterable[_Direction], delta: Fraction) -> float:
    factors = [item.smallest_factor(delta) for item in directions]
    known = [factor for factor in factors if factor is not None]
    if len(known) < len(factors):
        return math.inf
    largest = max(known)
    return _float_at_least(exact.log_bounds(largest)[1]) if largest > 1 else 0.0


def _float_at_least(bound: Fraction) -> float:
    """Return a float that is not below a bound, also when it is read as the decimal that it prints as."""
    value = exact.float_above(bound)
    return value if exact.number(value) >= bound else math.nextafter(value, math.inf)


def _by_ratio(cell: tuple[Fraction, Fraction]) -> tuple[bool, Fraction]:
    """Return a key that orders cells by probability over neighbor's probability, x/0 being last."""
    probability, neighbor_probability = cell
    if neighbor_probability == 0:
        return True, probability
    return False, probability / neighbor_probability
