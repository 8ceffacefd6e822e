"""Which account of which ledger pays for a command, found or opened before anything is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.errors import (
    AccountMismatchError,
    LedgerUnreachableError,
    ParameterError,
    UnknownAccountError,
    did_you_mean,
)

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.accounting.ledger import Ledger
    from cloister.cli.commands import CommandOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Which account of which ledger pays.

    Attributes:
        ledger: the address of the ledger.
        dataset: the account.
        budget: what may be spent of a new account; None where none is stated.
        measure: in what the price is stated.
        analyst: who asks; None where the account itself has the only limit.
    """

    ledger: str
    dataset: str
    budget: Budget | None
    measure: str = "epsilon"
    analyst: str | None = None


def check_address(url: str) -> None:
    """Refuse a path in place of an address."""
    if ":" not in url:
        raise ParameterError(f'"{url}" is a path, not the address of a ledger.', fix=f"write sqlite:///{url}")


def find_ledger(payer: Payer) -> Ledger | None:
    """Return the ledger, or nothing where one would have to be made."""
    from cloister.accounting.ledger import open_ledger

    check_address(payer.ledger)
    try:
        return open_ledger(payer.ledger, create=False)
    except LedgerUnreachableError as error:
        if "create=True" not in error.fix:
            raise
        if payer.budget is None:
            raise _no_account(payer, "There is no ledger there yet.") from None
        return None


def open_payer_ledger(payer: Payer) -> Ledger:
    """Return the ledger, made where it is not there."""
    from cloister.accounting.ledger import open_ledger

    return find_ledger(payer) or open_ledger(payer.ledger)


def is_new_account(payer: Payer, book: Ledger) -> bool:
    """Return whether the account is to be opened; refuse one that needs a budget, or has another one."""
    budgets = {account.dataset: account.budget for account in book.accounts()}
    name = payer.dataset
    if name not in budgets:
        if payer.budget is None:
            raise _no_account(payer, f'The ledger has no dataset "{name}".{did_you_mean(name, budgets)}')
        return True
    if payer.budget is not None and payer.budget != budgets[name]:
        raise AccountMismatchError(
            f'The budget of "{name}" is {budgets[name].words}, not {payer.budget.words}.',
            fix="leave the budget out; in Python the owner can raise it with ledger.raise_budget.",
        )
    return False


def open_account(
    output: CommandOutput, payer: Payer, book: Ledger, promise: Any
) -> Budget:  # what is pledged to rows or persons
    """Open an account that is new, unless its budget cannot pay for a promise, and return what is left."""
    if is_new_account(payer, book) and payer.budget is not None:
        payer.budget.check_covers(payer.budget.cost_of(promise))
        book.open_account(payer.dataset, budget=payer.budget, unit=promise.unit, adjacency=promise.adjacency)
        say_new_account(output, payer.dataset, payer.budget)
    return book.remaining(payer.dataset, analyst=payer.analyst)


def say_new_account(output: CommandOutput, dataset: str, budget: Budget) -> None:
    """Say that an account was opened, and with what."""
    output.say(f'The account "{dataset}" is new. Its budget is {budget.words}, ever.')


def remaining_of(payer: Payer) -> Budget | None:
    """Return what is left, without opening an account or making a ledger that is not there."""
    book = find_ledger(payer)
    if book is None:
        return payer.budget
    with book:
        return payer.budget if is_new_account(payer, book) else book.remaining(payer.dataset, analyst=payer.analyst)


def _no_account(payer: Payer, problem: str) -> UnknownAccountError:
    return UnknownAccountError(
        problem,
        fix="check the name; if this is the first question ever, say how much may be spent on the data in all, "
        f"such as --budget-{payer.measure} 1.",
    )
