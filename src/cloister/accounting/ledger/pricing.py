"""What a spend must cost: at least what its event takes, and what its guarantee says.

An event is compared with the cost, or with the guarantee in the guarantee's own measure. In epsilon, the event must be
(epsilon, delta)-private at the stated numbers, by the exact sum of pure losses or by the best accountant that knows the
event. In rho, the rhos and deltas of the event must stay within them. An event of which no accountant knows the cost is
refused.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

from cloister.accounting.accountants import PureAccountant, ZeroConcentratedAccountant, compose
from cloister.accounting.accountants.automatic import check_relation
from cloister.accounting.accountants.base import supports_all, tally
from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.ledger.state import State
from cloister.core.guarantees import ApproxDP, DifferentialPrivacy, ZeroConcentratedDP
from cloister.errors import (
    AccountingError,
    AccountMismatchError,
    CloisterError,
    ParameterError,
    ParameterTypeError,
)

_ROUNDING = 1 + Fraction(1, 10**9)
"""By how much an accountant's delta may pass that of the cost: margins of floats, not of the mechanism."""


def check_one_of(cost: object, guarantee: object) -> None:
    """Raise unless either a cost or a guarantee is given."""
    if (cost is None) == (guarantee is None):
        raise ParameterError(
            "A spend takes either a cost or a guarantee.",
            fix="write cost=Budget(epsilon=0.1), or guarantee=mechanism.guarantee.",
        )


def price(state: State, *, guarantee: DifferentialPrivacy) -> Budget:
    """Return what a release with a guarantee takes from an account of the same relation and unit."""
    if not isinstance(guarantee, DifferentialPrivacy):
        raise ParameterTypeError(
            "The guarantee is not one of differential privacy.", fix="give mechanism.guarantee, or a cost."
        )
    if not guarantee.holds:
        broken = "; ".join(caveat.text for caveat in guarantee.caveats if caveat.breaks)
        raise AccountingError(
            f"This guarantee does not hold: {broken}.",
            fix="mend what breaks it, such as a seed; to pay for the release all the same, give its cost.",
        )
    pairs = (("adjacency", state.adjacency, guarantee.adjacency), ("unit", state.unit, guarantee.unit))
    for name, has, given in pairs:
        if has != given:
            raise AccountMismatchError(
                f"The account has {name} {has}, the guarantee {given}.",
                fix=f"build the mechanism with {name}={str(has)!r}.",
            )
    return state.budget.cost_of(guarantee)


def own_measure(guarantee: DifferentialPrivacy) -> Budget:
    """Return the numbers of a guarantee in its own measure, where an event is compared with it most sharply."""
    nothing = Fraction(0)
    measure = Budget(rho=nothing) if isinstance(guarantee, ZeroConcentratedDP) else Budget(epsilon=nothing)
    return measure.cost_of(guarantee)


def check_covers_event(state: State, *, cost: Budget, event: Event) -> None:
    """Raise unless a cost is at least what an event takes from an account."""
    check_relation(state.adjacency, tally(event))
    covered = _covers_in_epsilon if cost.measure == "epsilon" else _covers_in_rho
    if not covered(cost, event):
        raise AccountingError(
            f"The event takes more than the cost of {cost}.",
            fix="give guarantee=mechanism.guarantee in place of the cost, or a cost that covers the event.",
        )


def _covers_in_epsilon(cost: Budget, event: Event) -> bool:
    counts, pure = tally(event), PureAccountant()
    if supports_all(pure, counts) and pure.delta(counts, epsilon=cost.amount) <= cost.delta:
        return True
    if cost.delta == 0:
        return False
    with suppress(AccountingError):
        found = compose(counts, epsilon=cost.amount, adjacency="add_remove", unit="row")
        return isinstance(found, ApproxDP) and found.delta <= cost.delta * _ROUNDING
    return False


def _covers_in_rho(cost: Budget, event: Event) -> bool:
    accountant, counts = ZeroConcentratedAccountant(), tally(event)
    with suppress(CloisterError):
        total = accountant.rho(counts)
        return total.rho <= cost.amount and total.delta <= cost.delta
    return False
