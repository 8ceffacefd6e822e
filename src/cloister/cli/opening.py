"""Opening what a private command works with: a table with a confirmed schema, and the account that pays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.cli.ledger import check_address
from cloister.cli.output import amount, program
from cloister.errors import (
    AccountMismatchError,
    LedgerUnreachableError,
    ParameterError,
    UnconfirmedSchemaError,
    UnknownAccountError,
    did_you_mean,
)

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.accounting.ledger import Ledger
    from cloister.data.table import Table

_GUESSES = ("bounds", "categories", "subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class Payer:
    """Which account of which ledger pays.

    Attributes:
        ledger: the address of the ledger.
        dataset: the account.
        budget: what may be spent of a new account; None where none is stated.
        measure: in what the price is stated.
    """

    ledger: str
    dataset: str
    budget: Budget | None
    measure: str = "epsilon"


def payer_of(
    *, ledger: str | None, dataset: str | None, budget_epsilon: str | None, budget_delta: str | None
) -> Payer | None:
    """Return which account pays, or None without a ledger; refuse options that do not belong together."""
    if budget_delta is not None and budget_epsilon is None:
        raise ParameterError("--budget-delta is a part of a budget.", fix="add --budget-epsilon.")
    if ledger is None:
        return None
    if dataset is None:
        raise ParameterError(
            "With a ledger, the table needs a name for its account.", fix="add --dataset, such as hospital-2026."
        )
    from cloister.accounting.budget import Budget
    from cloister.core import exact

    budget = None
    if budget_epsilon is not None:
        budget = Budget(epsilon=exact.number(budget_epsilon), delta=exact.number(budget_delta or 0))
    return Payer(ledger=ledger, dataset=dataset, budget=budget)


def refuse_without_ledger(**given: str | None) -> None:
    """Refuse options that have no meaning without a ledger; they are named as Python spells them."""
    named = next((name for name, value in given.items() if value is not None), None)
    if named is not None:
        option = f"--{named.replace('_', '-')}"
        raise ParameterError(
            f"{option} has no meaning without a ledger, where spending is remembered.",
            fix=f"add --ledger sqlite:///budget.db, or leave {option} out.",
        )


def open_confirmed(data: str, schema_file: str, *, encoding: str | None, missing: tuple[str, ...]) -> Table:
    """Return a table whose schema holds no guess that a private release would use."""
    from cloister.data.schema import Schema
    from cloister.data.sources import open_table

    schema = Schema.read(schema_file)
    try:
        schema.require_confirmed(facts=_GUESSES)
    except UnconfirmedSchemaError as error:
        raise UnconfirmedSchemaError(
            error.problem,
            fix=f'write what is known without looking into {schema_file}, delete the "guessed" lines, and run: '
            f"{program()} schema check {schema_file}",
        ) from None
    return open_table(data, schema=schema, encoding=encoding, missing=missing)


def check_column(table: Table, target: str | None) -> None:
    """Raise where --target names no column of the table."""
    if target is not None and target not in table.columns:
        raise ParameterError(
            f'The table has no column "{target}".{did_you_mean(target, table.columns)}',
            fix=f"give --target one of {', '.join(table.columns)}.",
        )


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


def open_book(payer: Payer) -> Ledger:
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
            f'The budget of "{name}" is {amount(budgets[name])}, not {amount(payer.budget)}.',
            fix="leave the budget out; in Python the owner can raise it with ledger.raise_budget.",
        )
    return False


def _no_account(payer: Payer, problem: str) -> UnknownAccountError:
    return UnknownAccountError(
        problem,
        fix="check the name; if this is the first question ever, say how much may be spent on the data in all, "
        f"such as --budget-{payer.measure} 1.",
    )
