"""``cloister ledger``: what was spent of each dataset's budget, and whether anybody changed the record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.accounts import check_address
from cloister.cli.commands import CommandOutput, HelpfulGroup, command
from cloister.core.wordings import format_count
from cloister.errors import LedgerUnreachableError, ParameterError, UnknownAccountError, did_you_mean

if TYPE_CHECKING:
    from cloister.accounting.ledger import Account, Entry, Ledger

_SQLITE = "sqlite:///"
_DIGEST = re.compile("[0-9a-f]{64}")
_NO_LEDGER_FIX = (
    "check the address; a ledger is made by the first answer that is charged to it (cloister query --ledger ...), or "
    "in Python, with cloister.open_ledger and open_account."
)

ledger = HelpfulGroup(name="ledger", help="See what privacy budget was spent, and check that nobody changed it.")


@command("show", example="cloister ledger show sqlite:///budget.db --dataset hospital-2026", group=ledger)
@click.argument("url", metavar="URL")
@click.option("--dataset", metavar="NAME", help="Show every entry of one dataset.")
def show(output: CommandOutput, *, url: str, dataset: str | None) -> None:
    """Show what was spent of each dataset's budget, and what is left.

    URL is where the ledger is: sqlite:///budget.db or postgresql://host/database.
    """
    with _open(url) as book:
        if dataset is None:
            _show_accounts(output, book.accounts())
        else:
            known = [account.dataset for account in book.accounts()]
            if dataset not in known:
                raise _no_dataset(dataset, known)
            _show_entries(output, book.account(dataset), book.entries(dataset))


@command("verify", example="cloister ledger verify sqlite:///budget.db", group=ledger)
@click.argument("url", metavar="URL")
@click.option(
    "--head",
    "heads",
    metavar="DATASET=DIGEST",
    multiple=True,
    help="A digest noted earlier that must still be part of the chain; repeat for more datasets.",
)
def verify(output: CommandOutput, *, url: str, heads: Sequence[str]) -> None:
    """Recompute the chain of digests and find any row that was changed, removed or added by hand.

    URL is where the ledger is: sqlite:///budget.db or postgresql://host/database.

    Note the digests that are printed. Given with --head next time, they also show whether the newest entries were cut
    off.
    """
    noted = dict(_split(text) for text in heads)
    with _open(url) as book, output.progress("Checking the ledger"):
        _check_names(noted, [account.dataset for account in book.accounts()])
        book.verify(heads=noted)
        accounts = book.accounts()
    output.document(
        {
            "schema": "cloister.ledger.verification/1",
            "accounts": len(accounts),
            "entries": sum(account.entries for account in accounts),
            "heads": {account.dataset: account.head for account in accounts},
        }
    )
    output.say(f"Every entry is as it was written: {_count_in_words(accounts)}.")
    for account in accounts:
        output.say(f"{account.dataset}: {_count_in_words([account], with_datasets=False)}. Digest:")
        output.say(f"  {account.head}")


def _open(url: str) -> Ledger:
    from cloister.accounting.ledger import open_ledger

    check_address(url)
    _check_file(url)
    try:
        return open_ledger(url, create=False)
    except LedgerUnreachableError as error:
        if "create=True" not in error.fix:
            raise
        raise ParameterError(error.problem, fix=_NO_LEDGER_FIX) from None


def _check_file(url: str) -> None:
    """Refuse the address of a file that is not there."""
    path = Path(url.removeprefix(_SQLITE))
    if url.startswith(_SQLITE) and path.name and not path.exists() and "?" not in url:
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise ParameterError(
            f'There is no ledger file "{path}".{did_you_mean(path.name, siblings)}', fix=_NO_LEDGER_FIX
        )


def _check_names(noted: Mapping[str, str], known: Sequence[str]) -> None:
    """Take an unknown name for a typing mistake where a known one is near; else the ledger says what is missing."""
    for dataset in noted:
        if dataset not in known and did_you_mean(dataset, known):
            raise _no_dataset(dataset, known)


def _no_dataset(dataset: str, known: Sequence[str]) -> UnknownAccountError:
    listing = f"name one that it has: {', '.join(known)}" if known else "nothing was opened in it yet"
    return UnknownAccountError(
        f'The ledger has no dataset "{dataset}".{did_you_mean(dataset, known)}',
        fix=f"{listing}; if the name is right, its account was never opened or was removed.",
    )


def _split(text: str) -> tuple[str, str]:
    dataset, equals, digest = text.rpartition("=")
    if not (dataset and equals and digest):
        raise ParameterError("--head is not DATASET=DIGEST.", fix='write for example --head "hospital-2026=3f9a...".')
    if not _DIGEST.fullmatch(digest):
        raise ParameterError(
            f'The digest that --head gives for "{dataset}" is not one: 64 digits from 0-9 and a-f.',
            fix="copy it whole, as ledger verify printed it.",
        )
    return dataset, digest


def _show_accounts(output: CommandOutput, accounts: Sequence[Account]) -> None:
    output.document({"schema": "cloister.ledger.accounts/1", "accounts": [account.to_dict() for account in accounts]})
    if not accounts:
        output.say("No dataset has an account in this ledger yet.")
        return
    output.table(
        ["dataset", "budget", "spent", "left", "protects one", "entries", "last change"],
        [
            [
                a.dataset,
                a.budget.words,
                a.spent.words,
                a.remaining.words,
                a.unit,
                str(a.entries),
                _moment(a.updated),
            ]
            for a in accounts
        ],
    )


def _show_entries(output: CommandOutput, account: Account, entries: Sequence[Entry]) -> None:
    output.document(
        {
            "schema": "cloister.ledger.entries/1",
            "account": account.to_dict(),
            "entries": [entry.to_dict() for entry in entries],
        }
    )
    output.say(f"{account.dataset}: {account.remaining.words} is left of {account.budget.words}.")
    output.table(
        ["number", "time", "what", "cost", "spent so far", "analyst", "purpose"],
        [_entry_row(entry) for entry in entries],
    )


def _entry_row(entry: Entry) -> list[str]:
    cost = "" if entry.cost is None else entry.cost.words
    return [
        str(entry.number),
        _moment(entry.time),
        str(entry.kind),
        cost,
        entry.spent.words,
        entry.analyst or "",
        entry.purpose,
    ]


def _moment(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"


def _count_in_words(accounts: Sequence[Any], *, with_datasets: bool = True) -> str:
    entries = sum(account.entries for account in accounts)
    datasets = f"{format_count(len(accounts), 'dataset')}, " if with_datasets else ""
    return f"{datasets}{format_count(entries, 'entry', 'entries')}"
