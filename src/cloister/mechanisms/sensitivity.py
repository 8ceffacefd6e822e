"""How far neighboring datasets can move a query: a property of query, relation and declared domain, never of the data.

Values lie in public bounds (lower, upper), to which they are clamped before use. Each function looks its answer up from
the declared relation. Local sensitivity, that of the data at hand, must never calibrate noise and is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cloister.core import exact, validation
from cloister.core.guarantees import Adjacency
from cloister.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The largest change of a vector between neighbors, in L1 and in L2 (rounded up where it is irrational)."""

    l1: Fraction
    l2: Fraction


def count(adjacency: Adjacency) -> Fraction:
    """Return the sensitivity of a count of rows, with or without a condition."""
    _is_replace(adjacency)
    return Fraction(1)


def overlapping_counts(number: int, adjacency: Adjacency) -> Sensitivity:
    """Return the sensitivity of several counts of which one row can be in all."""
    _is_replace(adjacency)
    return _cells(validation.check_count(number, name="number", at_least=1))


def histogram(adjacency: Adjacency, *, cells_per_unit: int = 1) -> Sensitivity:
    """Return the sensitivity of counts in disjoint cells, each unit being in at most some of them."""
    cells = validation.check_count(cells_per_unit, name="cells_per_unit", at_least=1)
    # A replaced unit leaves its cells and enters as many others.
    return _cells(2 * cells if _is_replace(adjacency) else cells)


def unit_totals(limit: object, adjacency: Adjacency, *, may_move: bool = False) -> Fraction:
    """Return the L1 sensitivity of bars of per-unit totals, each at most ``limit``; moving changes two bars."""
    most = validation.check_positive(limit, name="limit")
    return 2 * most if _is_replace(adjacency) and may_move else most


def bounded_sum(bounds: object, adjacency: Adjacency, *, centered: bool = False) -> Fraction:
    """Return the sensitivity of a sum of clamped values, or of their distances from the middle of the bounds."""
    low, high = validation.check_bounds(bounds)
    if _is_replace(adjacency):
        return high - low
    # An added row adds its own clamped value, or its distance from the middle, and changes nothing else.
    return (high - low) / 2 if centered else max(abs(low), abs(high))


def mean(bounds: object, adjacency: Adjacency, *, rows: int | None = None, at_least: int | None = None) -> Fraction:
    """Return the sensitivity of a mean of clamped values.

    Args:
        bounds: the public bounds of the values.
        adjacency: the relation; a public number of rows makes sense under replace only.
        rows: the public number of rows.
        at_least: a size that the custodian guarantees for both neighbors.
    """
    low, high = validation.check_bounds(bounds)
    replaced = _is_replace(adjacency)
    if rows is not None:
        _require_replace(adjacency)
        return (high - low) / validation.check_count(rows, name="rows", at_least=1)
    if at_least is None:
        return high - low
    smallest = validation.check_count(at_least, name="at_least", at_least=1)
    # With one row more or less, the mean of the larger dataset has at least one row more than promised.
    return (high - low) / (smallest if replaced else smallest + 1)


def variance(bounds: object, adjacency: Adjacency, *, rows: int | None = None, sample: bool = False) -> Fraction:
    """Return the sensitivity of the variance of clamped values.

    Under replace, ``rows`` is the public number of rows, and ``sample`` divides by one less. Under add/remove it is
    the smaller of the two sizes; without it, the worst of all sizes holds. Releasing noisy count, sum and sum of
    squares is usually better than noise on a variance.
    """
    low, high = validation.check_bounds(bounds)
    square = (high - low) ** 2
    if _is_replace(adjacency):
        if rows is None:
            raise ParameterError("Under replace, a variance needs the public number of rows.", fix="pass rows=...")
        size = validation.check_count(rows, name="rows", at_least=2)
        return square / size if sample else (size - 1) * square / size**2
    if sample:
        raise ParameterError(
            "The sample variance is not covered under add/remove.", fix="use sample=False, or release sums and counts."
        )
    if rows is None:
        # The variance of one row is 0, and no variance in bounds is above a quarter of the squared width.
        return square / 4
    size = validation.check_count(rows, name="rows", at_least=1)
    return size * square / (size + 1) ** 2


def order_statistic(bounds: object, adjacency: Adjacency) -> Fraction:
    """Return the sensitivity of a minimum, maximum, median or quantile: the whole range. Prefer a private selection."""
    _is_replace(adjacency)
    low, high = validation.check_bounds(bounds)
    return high - low


def _cells(changed: int) -> Sensitivity:
    return Sensitivity(l1=Fraction(changed), l2=exact.sqrt_bounds(Fraction(changed))[1])


def _is_replace(adjacency: Adjacency) -> bool:
    if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
        raise ParameterError(
            f"Sensitivities are listed for add_remove and replace, not for {adjacency}.",
            fix="bound what one unit contributes first; its rows then count as add_remove or replace.",
        )
    return adjacency == Adjacency.REPLACE


def _require_replace(adjacency: Adjacency) -> None:
    if adjacency != Adjacency.REPLACE:
        raise ParameterError(
            "A public number of rows contradicts neighbors of different size.",
            fix="use Adjacency.REPLACE, or at_least= with a guaranteed size, or noisy sum over noisy count.",
        )
