"""Options that several commands share: how data is read, what is written, which account pays, and certificates.

Everything that can be wrong with the files that a command will write is said before work begins. A private command
works with a table whose schema is confirmed, and with the account that pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import amount, program
from cloister.cli.ledger import check_address
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
    from cloister.cli.commands import CommandOutput
    from cloister.crypto.certificates import Certificate
    from cloister.crypto.signatures import SigningKey
    from cloister.data.table import Table

__all__ = ["certificate_options", "is_certified_model", "read_certificate", "say_certified", "signing_key_of"]


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--encoding`` and ``--missing`` to a command."""
    for option in (
        click.option(
            "--missing",
            metavar="TEXT",
            multiple=True,
            help='A text that stands for a missing value, such as "?"; repeat for more.',
        ),
        click.option("--encoding", metavar="NAME", help="Of a CSV file: utf-8 (default), latin-1, cp1252 or utf-16."),
    ):
        function = option(function)
    return function


_REPORTS = (".html", ".htm", ".md", ".json")


def check_target(
    path: str | None, *, inputs: Sequence[str | None], force: bool, endings: Sequence[str] = _REPORTS
) -> None:
    """Return nothing when a file can be written, else raise.

    Raises:
        ParameterError: if its ending is not known, its folder is not there, it would replace an input, or it is there
            already and may not be replaced.
    """
    if path is None:
        return
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise ParameterError(
            f'"{path}" has an ending that says no kind of file.', fix=f"use a name that ends in {', '.join(endings)}."
        )
    if not target.parent.is_dir():
        raise ParameterError(f'There is no folder "{target.parent}".', fix="make it first, or choose another one.")
    if any(given is not None and target.resolve() == Path(given).resolve() for given in inputs):
        raise ParameterError(f'"{path}" would replace what is read.', fix="choose another name.")
    if target.exists() and not force:
        raise ParameterError(f'"{path}" is there already.', fix="choose another name, or say --force.")


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


def certificate_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that write a certificate."""
    for option in (
        click.option("--no-certificate", is_flag=True, help="Write no certificate beside the file."),
        click.option(
            "--signing-key",
            metavar="FILE",
            help="The key that signs the certificate; by default your own, which is made if there is none.",
        ),
    ):
        function = option(function)
    return function


def signing_key_of(
    options: dict[str, Any], *, targets: Sequence[str | Path], inputs: Sequence[str | None]
) -> SigningKey | None:
    """Return the key that signs, and refuse a certificate that cannot be written; before anything is paid for."""
    from cloister.crypto.certificates import certificate_path
    from cloister.crypto.signatures import SigningKey
    from cloister.errors import CryptoError

    if options["no_certificate"]:
        return None
    for target in targets:
        check_target(str(certificate_path(target)), inputs=inputs, force=options["force"])
    named = options["signing_key"]
    try:
        return SigningKey.from_file(named, create=named is None)
    except CryptoError as problem:
        fix = problem.fix if named else f"{problem.fix} Or give --signing-key FILE, or --no-certificate."
        raise CryptoError(problem.problem, fix=fix) from None


def say_certified(output: CommandOutput, path: str | Path, key: SigningKey | None) -> None:
    """Say where the certificate is."""
    from cloister.crypto.certificates import certificate_path

    if key is not None:
        output.say(f"The certificate of {path} is in {certificate_path(path)}: publish these two together.")


def is_certified_model(path: str, key: SigningKey) -> bool:
    """Return whether a known key vouches for what a model file says: only then may it be said again, and signed.

    Raises:
        DataError: if the model was changed after it was certified.
    """
    found = read_certificate(path)
    return found is not None and (found.is_vouched or found.signer == key.public)


def read_certificate(path: str | None) -> Certificate | None:
    """Return the certificate beside a file, checked; None if there is none."""
    from cloister.crypto.certificates import find_certificate

    return find_certificate(path) if path is not None and Path(path).is_file() else None
