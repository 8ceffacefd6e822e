"""Composition of guarantees: what several releases promise together.

Everything here works on exact guarantees and rounds towards a larger stated loss. Caveats and assumptions of the
parts are carried over. Guarantees under different neighbor relations or units do not compose and are refused.

Sequential composition allows each release to depend on the answers before it; only the coins must be independent.
Sources: Dwork and Roth (2014) for sequential, group and advanced composition (theorem 3.20), McSherry (2009) for
parallel composition, Bun and Steinke (2016) for the zero-concentrated versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias, overload

from cloister.core import exact, validation
from cloister.core.exact import Number, sum_above
from cloister.core.guarantees import Adjacency, ApproxDP, PureDP, ZeroConcentratedDP
from cloister.errors import AccountingError, ParameterError

__all__ = ["Composable", "advanced", "group", "parallel", "sequential", "to_replace"]

Composable: TypeAlias = "PureDP | ApproxDP | ZeroConcentratedDP"
_Combine: TypeAlias = "Callable[[list[Fraction]], Fraction]"


@overload
def sequential(guarantees: Iterable[PureDP]) -> PureDP: ...
@overload
def sequential(guarantees: Iterable[PureDP | ApproxDP]) -> PureDP | ApproxDP: ...
@overload
def sequential(guarantees: Iterable[Composable]) -> Composable: ...
def sequential(guarantees: Iterable[Composable]) -> Composable:
    """Return what several releases on the same data promise together: losses add up.

    Pure and approximate guarantees add up in (epsilon, delta). As soon as one part is zero-concentrated, the sum is
    taken in rho, where pure epsilon costs epsilon**2 / 2.

    >>> sequential([PureDP(epsilon=0.1), PureDP(epsilon=0.2)]).epsilon
    Fraction(3, 10)
    """
    return _combine_parts(_check_composable(guarantees), sum_above)


@overload
def parallel(guarantees: Iterable[PureDP], *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> PureDP: ...
@overload
def parallel(
    guarantees: Iterable[PureDP | ApproxDP], *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE
) -> PureDP | ApproxDP: ...
@overload
def parallel(guarantees: Iterable[Composable], *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> Composable: ...
def parallel(guarantees: Iterable[Composable], *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> Composable:
    """Return what releases on disjoint parts of the data promise together.

    The parts must be defined without looking at the data, and each part's guarantee must be stated under
    ``add_remove``. Under ``add_remove`` the whole costs as much as the costliest part. Under ``replace`` a record may
    leave one part and enter another, which costs both parts together, or it may be replaced inside one part, which is
    a removal and an addition there and costs what `to_replace` says. The whole costs the larger of the two, number by
    number; for pure parts that is twice the largest. The sum of the two largest alone would be right only if each
    part kept its epsilon under ``replace`` too, which a guarantee under ``add_remove`` does not say.

    >>> parallel([PureDP(epsilon=1), PureDP(epsilon=0.1)], adjacency="replace").epsilon
    Fraction(2, 1)

    Raises:
        AccountingError: For any other relation, and for parts that are themselves stated under ``replace``: such a
            part promises nothing when a record enters or leaves it (an exact count of the part would qualify).
    """
    parts = _check_composable(guarantees)
    relation = Adjacency(validation.check_choice(adjacency, name="adjacency", allowed=[*Adjacency]))
    if parts[0].adjacency is not Adjacency.ADD_REMOVE:
        raise AccountingError(
            f"Parts whose guarantee is stated under {parts[0].adjacency} do not compose in parallel.",
            fix="state each part under add_remove, then ask for parallel(parts, adjacency='replace') if that is meant.",
        )
    if relation is Adjacency.ADD_REMOVE:
        return _combine_parts(parts, max)
    if relation is Adjacency.REPLACE:
        # A record moves between two parts, or changes inside one: which of the two is worse depends on the numbers.
        moved = replace(_combine_parts(parts, _two_largest), adjacency=relation)
        changed = _combine_parts([to_replace(part) for part in parts], max)
        return _combine_parts([moved, changed], max)
    raise AccountingError(
        f"Parallel composition is not defined under {relation}: one unit may have data in several parts.",
        fix="use sequential(parts), which is always valid.",
    )


@overload
def group(guarantee: PureDP, *, size: int) -> PureDP: ...
@overload
def group(guarantee: ApproxDP, *, size: int) -> ApproxDP: ...
@overload
def group(guarantee: ZeroConcentratedDP, *, size: int) -> ZeroConcentratedDP: ...
@overload
def group(guarantee: Composable, *, size: int) -> Composable: ...
def group(guarantee: Composable, *, size: int) -> Composable:
    """Return what a guarantee for one unit promises to a group of units that all change at once."""
    size = validation.check_count(size, name="size", at_least=1)
    match guarantee:
        case PureDP(epsilon=epsilon):
            result: Composable = replace(guarantee, epsilon=size * epsilon)
        case ApproxDP(epsilon=epsilon, delta=delta):
            result = replace(guarantee, epsilon=size * epsilon, delta=_check_delta(_group_delta(epsilon, delta, size)))
        case ZeroConcentratedDP(rho=rho, delta=delta) if delta == 0:
            result = replace(guarantee, rho=size * size * rho)
        case _:
            raise _cannot("be stated for a group", guarantee)
    return result if size == 1 else replace(result, unit=f"group of {size} {guarantee.unit}s")


def advanced(guarantee: PureDP | ApproxDP, *, count: int, slack: Number) -> ApproxDP:
    """Return the k-fold composition with a smaller epsilon, bought with a further slack in delta.

    The theorem of Dwork, Rothblum and Vadhan: epsilon becomes
    ``sqrt(2 k ln(1/slack)) epsilon + k epsilon (exp(epsilon) - 1)`` and delta becomes ``k delta + slack``.
    """
    count = validation.check_count(count, name="count")
    extra = validation.check_delta(slack, allow_zero=False)
    if not isinstance(guarantee, PureDP | ApproxDP):
        raise _cannot("be composed by the advanced theorem", guarantee)
    epsilon = guarantee.epsilon
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else Fraction(0)
    # Every factor is rounded up, as is the whole.
    root = exact.sqrt_bounds(2 * count * exact.log_bounds(1 / extra)[1])[1]
    growth = exact.exp_bounds(epsilon)[1] - 1
    return ApproxDP(
        epsilon=root * epsilon + count * epsilon * growth,
        delta=_check_delta(count * delta + extra),
        adjacency=guarantee.adjacency,
        unit=guarantee.unit,
        assumptions=guarantee.assumptions,
        caveats=guarantee.caveats,
    )


@overload
def to_replace(guarantee: PureDP) -> PureDP: ...
@overload
def to_replace(guarantee: ApproxDP) -> ApproxDP: ...
@overload
def to_replace(guarantee: ZeroConcentratedDP) -> ZeroConcentratedDP: ...
@overload
def to_replace(guarantee: Composable) -> Composable: ...
def to_replace(guarantee: Composable) -> Composable:
    """Return an ``add_remove`` guarantee restated under ``replace``: one record out, another one in.

    Epsilon doubles, delta becomes ``(1 + exp(epsilon)) delta``, rho quadruples. The other direction does not exist.
    """
    if guarantee.adjacency is Adjacency.REPLACE:
        return guarantee
    if guarantee.adjacency is not Adjacency.ADD_REMOVE:
        raise AccountingError(
            f"A guarantee under {guarantee.adjacency} cannot be restated under replace.",
            fix="only add_remove converts to replace; compute the sensitivity under replace instead.",
        )
    return replace(group(guarantee, size=2), adjacency=Adjacency.REPLACE, unit=guarantee.unit)


def _check_composable(guarantees: Iterable[Composable]) -> list[Composable]:
    parts = list(guarantees)
    if not parts:
        raise ParameterError("There is nothing to compose.", fix="give at least one guarantee.")
    for part in parts:
        if not isinstance(part, PureDP | ApproxDP | ZeroConcentratedDP):
            raise _cannot("be composed", part)
        for name in ("adjacency", "unit"):
            if getattr(part, name) != getattr(parts[0], name):
                raise AccountingError(
                    f"Guarantees with different {name} do not compose: "
                    f"{getattr(parts[0], name)} and {getattr(part, name)}.",
                    fix="restate them for the same unit and relation; to_replace() turns add_remove into replace.",
                )
    return parts


def _combine_parts(parts: list[Composable], combine: _Combine) -> Composable:
    """Combine the numbers of guarantees, in rho as soon as one of them is zero-concentrated."""
    first = parts[0]
    # A combined delta of 1 would be no promise, so that it is refused before any guarantee is made.
    delta = _check_delta(combine([getattr(part, "delta", Fraction(0)) for part in parts]))
    common: dict[str, Any] = {"adjacency": first.adjacency, "unit": first.unit}  # fields of several types
    result: Composable
    if any(isinstance(part, ZeroConcentratedDP) for part in parts):
        result = ZeroConcentratedDP(rho=combine([_rho(part) for part in parts]), delta=delta, **common)
    else:
        epsilon = combine([part.epsilon for part in parts if not isinstance(part, ZeroConcentratedDP)])
        pure = all(isinstance(part, PureDP) for part in parts)
        result = PureDP(epsilon=epsilon, **common) if pure else ApproxDP(epsilon=epsilon, delta=delta, **common)
    for part in parts:
        result = result.with_assumption(*part.assumptions).with_caveat(*part.caveats)
    return result


def _rho(guarantee: Composable) -> Fraction:
    return guarantee.rho if isinstance(guarantee, ZeroConcentratedDP) else guarantee.epsilon**2 / 2


def _two_largest(values: list[Fraction]) -> Fraction:
    return sum(sorted(values, reverse=True)[:2], Fraction(0))


def _group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """Return an upper bound of delta * (1 + e^epsilon + ... + e^((size-1) epsilon))."""
    crude = size * exact.exp_bounds((size - 1) * epsilon)[1]
    # For a tiny epsilon the lower bound of exp(epsilon) - 1 is poor or zero: then the crude bound is the better one.
    low = exact.exp_bounds(epsilon)[0]
    if low <= 1:
        return delta * crude
    return delta * min(crude, (exact.exp_bounds(size * epsilon)[1] - 1) / (low - 1))


def _check_delta(delta: Fraction) -> Fraction:
    if delta >= 1:
        raise AccountingError(
            "The delta of the whole reaches 1, which promises nothing.",
            fix="use fewer releases, a smaller group, or a smaller delta in each release.",
        )
    return delta


def _cannot(what: str, guarantee: object) -> AccountingError:
    kind = getattr(guarantee, "kind", type(guarantee).__name__)
    return AccountingError(
        f"A guarantee of kind {kind} cannot {what} here.",
        fix="give PureDP, ApproxDP or ZeroConcentratedDP; zero-concentrated group privacy needs delta = 0.",
    )
