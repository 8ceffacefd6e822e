"""``cloister ledger``: what was spent of each dataset's budget, and whether anybody changed the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cloister.cli.commands import HelpfulGroup, command
from cloister.cli.output import Output
from cloister.errors import ParameterError

if TYPE_CHECKING:
    from cloister.accounting.budget import Budget
    from cloister.accounting.ledger import Account, Entry, Ledger

ledger = HelpfulGroup(name="ledger", help="See what privacy budget was spent, and check that nobody changed it.")


@command("show", example="cloister ledger show sqlite:///budget.db --dataset hospital-2026", group=ledger)
@click.argument("url", metavar="URL")
@click.option("--dataset", metavar="NAME", help="Show every entry of one dataset.")
def show(output: Output, *, url: str, dataset: str | None) -> None:
    """Show what was spent of each dataset's budget, and what is left.

    URL is where the ledger is: sqlite:///budget.db or postgresql://host/database.
    """
    with _open(url) as book:
        if dataset is None:
            _show_accounts(output, book.accounts())
        else:
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
def verify(output: Output, *, url: str, heads: Sequence[str]) -> None:
    """Recompute the chain of digests and find any row that was changed, removed or added by hand.

    URL is where the ledger is: sqlite:///budget.db or postgresql://host/database.

    Note the digests that are printed. Given with --head next time, they also show whether the newest entries were cut
    off.
    """
    noted = dict(_split(text) for text in heads)
    with _open(url) as book, output.progress("Checking the ledger"):
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
    output.say(f"Every entry is as it was written: {_counted(accounts)}.")
    if accounts:
        output.table(["dataset", "entries", "digest"], [[a.dataset, str(a.entries), a.head] for a in accounts])


def _open(url: str) -> Ledger:
    from cloister.accounting.ledger import open_ledger

    return open_ledger(url, create=False)


def _split(text: str) -> tuple[str, str]:
    dataset, equals, digest = text.rpartition("=")
    if not (dataset and equals and digest):
        raise ParameterError("--head is not DATASET=DIGEST.", fix='write for example --head "hospital-2026=3f9a...".')
    return dataset, digest


def _show_accounts(output: Output, accounts: Sequence[Account]) -> None:
    output.document({"schema": "cloister.ledger.accounts/1", "accounts": [account.to_dict() for account in accounts]})
    if not accounts:
        output.say("No dataset has an account in this ledger yet.")
        return
    output.table(
        ["dataset", "budget", "spent", "left", "protects one", "entries", "last change"],
        [
            [
                a.dataset,
                _amount(a.budget),
                _amount(a.spent),
                _amount(a.remaining),
                a.unit,
                str(a.entries),
                _moment(a.updated),
            ]
            for a in accounts
        ],
    )


def _show_entries(output: Output, account: Account, entries: Sequence[Entry]) -> None:
    output.document(
        {
            "schema": "cloister.ledger.entries/1",
            "account": account.to_dict(),
            "entries": [entry.to_dict() for entry in entries],
        }
    )
    output.say(f"{account.dataset}: {_amount(account.remaining)} is left of {_amount(account.budget)}.")
    output.table(
        ["number", "time", "what", "cost", "spent so far", "analyst", "purpose"],
        [_entry_row(entry) for entry in entries],
    )


def _entry_row(entry: Entry) -> list[str]:
    cost = "" if entry.cost is None else _amount(entry.cost)
    return [
        str(entry.number),
        _moment(entry.time),
        str(entry.kind),
        cost,
        _amount(entry.spent),
        entry.analyst or "",
        entry.purpose,
    ]


def _moment(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC"


def _amount(budget: Budget) -> str:
    slack = f", delta {float(budget.delta):g}" if budget.delta else ""
    return f"{budget.measure} {float(budget.amount):g}{slack}"


def _counted(accounts: Sequence[Any]) -> str:
    entries = sum(account.entries for account in accounts)
    return f"{len(accounts)} dataset{'s' * (len(accounts) != 1)}, {entries} entr{'ies' if entries != 1 else 'y'}"
