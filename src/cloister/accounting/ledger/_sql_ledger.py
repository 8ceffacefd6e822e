"""The ledger on an SQL database: its transactions, written once for SQLite, memory and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Self

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.accounting.ledger import _database as ledger_database, account_state, checks
from cloister.accounting.ledger._chain import Record, Replay, explain_damage, state_text
from cloister.accounting.ledger._database import Database, LedgerSession
from cloister.accounting.ledger.account_state import AccountState, Share, charge, transition
from cloister.accounting.ledger.protocol import Account, Entry, EntryKind, Receipt, StoredAnswer
from cloister.core.digests import GENESIS, chain_text
from cloister.core.guarantees import Adjacency, DifferentialPrivacy
from cloister.errors import AccountMismatchError, LedgerError, ParameterError


class SqlLedger:
    """A `Ledger` on an SQL database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def url(self) -> str:
        """Return where the ledger is, without secrets."""
        return self._database.name

    def __repr__(self) -> str:
        return f'{self._database.opener}("{self.url}")'

    def open_account(
        self, dataset: str, *, budget: Budget, unit: str = "row", adjacency: Adjacency | str = Adjacency.ADD_REMOVE
    ) -> Account:
        """Return the account of a dataset, opening it if it is new."""
        dataset = checks.check_name(dataset, name="dataset")
        details = {
            "budget": checks.check_opening(budget).to_dict(),
            "unit": checks.check_name(unit, name="unit"),
            "adjacency": str(checks.check_adjacency(adjacency)),
        }
        with self._database.reading() as session:
            record = ledger_database.last(session, dataset)
        if record is None:
            # Most callers find their account without a lock; whoever does not looks again under it.
            with self._database.writing() as session:
                session.lock_openings()
                record = ledger_database.last(session, dataset) or _open(session, dataset, details)
        account = record.account()
        _check_same(account, details)
        return account

    def account(self, dataset: str) -> Account:
        """Return the account of a dataset."""
        dataset = checks.check_name(dataset, name="dataset")
        with self._database.reading() as session:
            return ledger_database.last_known(session, dataset).account()

    def accounts(self) -> tuple[Account, ...]:
        """Return all accounts, ordered by dataset."""
        with self._database.reading() as session:
            return tuple(
                ledger_database.last_known(session, dataset).account() for dataset in ledger_database.datasets(session)
            )

    def spend(
        self,
        dataset: str,
        *,
        cost: Budget | None = None,
        guarantee: DifferentialPrivacy | None = None,
        event: Event | None = None,
        analyst: str | None = None,
        purpose: str = "",
        key: str | None = None,
    ) -> Receipt:
        """Debit a cost, or what a guarantee costs, durably, or raise and debit nothing."""
        dataset, analyst = checks.check_name(dataset, name="dataset"), checks.check_analyst(analyst)
        event = checks.check_event(event)
        debit = self._price(dataset, cost=cost, guarantee=guarantee, event=event)
        key = None if key is None else checks.check_key(key)
        details: dict[str, Any] = {
            "event": None if event is None else event.to_dict(),
            "purpose": checks.check_purpose(purpose),
            "key": key,
        }
        # What could be refused for its form was refused before. The balance is read under the lock that the debit is
        # written under.
        with self._database.writing() as session:
            before = ledger_database.last_known(session, dataset, lock=True)
            details["cost"] = charge(before.read_state(), debit).to_dict()
            record = _append(session, dataset, EntryKind.SPEND, details, before=before, analyst=analyst, key=key)
        return _receipt(record)

    def remaining(self, dataset: str, *, analyst: str | None = None) -> Budget:
        """Return what is left of a dataset's budget, for everybody or for one analyst."""
        state, share = self._standing(dataset, analyst)
        return state.remaining if share is None else share.remaining(state.remaining)

    def spent(self, dataset: str, *, analyst: str | None = None) -> Budget:
        """Return what was spent, by everybody or by one analyst."""
        state, share = self._standing(dataset, analyst)
        if analyst is None:
            return state.spent
        return state.budget.spent_nothing() if share is None else share.spent

    def limit_analyst(self, dataset: str, *, analyst: str, budget: Budget) -> None:
        """Set how much one analyst may spend of a dataset's budget, past spends included."""
        analyst = checks.check_name(analyst, name="analyst")
        self._change(dataset, EntryKind.LIMIT, budget=checks.check_budget(budget), analyst=analyst)

    def raise_budget(self, dataset: str, *, budget: Budget) -> Account:
        """Raise the budget of a dataset."""
        return self._change(dataset, EntryKind.RAISE, budget=checks.check_budget(budget)).account()

    def find_answer(self, dataset: str, *, key: str, cost: Budget) -> StoredAnswer | None:
        """Return the best stored answer to a query that was paid at least this much, free for everybody."""
        dataset, key, cost = checks.check_name(dataset, name="dataset"), checks.check_key(key), checks.check_cost(cost)
        with self._database.reading() as session:
            ledger_database.last_known(session, dataset)
            found = [
                _answer(record, key) for record in ledger_database.answers(session, dataset, checks.digest_of_key(key))
            ]
        good = [answer for answer in found if answer.cost.covers(cost)]
        return max(good, key=lambda answer: (answer.cost.amount, answer.cost.delta, answer.spend), default=None)

    def store_answer(self, receipt: Receipt, *, answer: Any) -> None:  # any JSON value
        """Keep the private answer that a receipt with a key paid for, so that repeats are free."""
        if receipt.key is None:
            raise ParameterError(
                "This receipt has no key, so its answer could not be found again.",
                fix="give the canonical text of the query when spending: ledger.spend(..., key=...)",
            )
        details = {"spend": receipt.number, "cost": receipt.cost.to_dict(), "answer": checks.check_json(answer)}
        with self._database.writing() as session:
            before = ledger_database.last_known(session, receipt.dataset, lock=True)
            _check_receipt(session, receipt)
            _append(session, receipt.dataset, EntryKind.ANSWER, details, before=before, key=receipt.key)

    def entries(self, dataset: str) -> tuple[Entry, ...]:
        """Return all entries of a dataset, in order."""
        dataset = checks.check_name(dataset, name="dataset")
        with self._database.reading() as session:
            ledger_database.last_known(session, dataset)
            return tuple(record.check().entry() for record in ledger_database.all_unchecked(session, dataset))

    def head(self, dataset: str) -> str:
        """Return the digest of the last entry, to be noted outside the ledger."""
        return self.account(dataset).head

    def verify(self, *, heads: Mapping[str, str] | None = None) -> None:
        """Recompute every chain; ``heads`` are digests noted earlier, which must still be part of their chains."""
        noted = {checks.check_name(dataset, name="dataset"): head for dataset, head in (heads or {}).items()}
        with self._database.reading() as session:
            session.lock_heads()
            known = ledger_database.datasets(session)
            # An account whose row was deleted still has entries, and one of which all was deleted may have been
            # noted.
            for dataset in sorted({*known, *ledger_database.datasets_with_entries(session), *noted}):
                replay = Replay(dataset, noted_head=noted.get(dataset, GENESIS))
                for record in ledger_database.all_unchecked(session, dataset):
                    replay.step(record)
                entries, head = ledger_database.position(session, dataset) or (0, GENESIS)
                replay.finish(entries=entries, head=head)
            # The chains come first: they name the entry that is wrong, the storage only says that something is.
            self._database.check_storage(session)

    def close(self) -> None:
        """Close what was opened for the ledger; nothing is lost."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _standing(self, dataset: str, analyst: str | None) -> tuple[AccountState, Share | None]:
        dataset, analyst = checks.check_name(dataset, name="dataset"), checks.check_analyst(analyst)
        with self._database.reading() as session:
            state = ledger_database.last_known(session, dataset).read_state()
            return state, _share(session, dataset, analyst)

    def _price(
        self, dataset: str, *, cost: Budget | None, guarantee: DifferentialPrivacy | None, event: Event | None
    ) -> Budget:
        """Return the checked cost; relation, unit and measure of an account never change, so no lock is held."""
        account_state.check_one_of(cost, guarantee)
        if guarantee is None and event is None:
            return checks.check_cost(cost)
        state = self._standing(dataset, None)[0]
        debit = checks.check_cost(cost if guarantee is None else account_state.price(state, guarantee=guarantee))
        if event is not None:
            stated = debit if guarantee is None else account_state.own_measure(guarantee)
            account_state.check_covers_event(state, cost=stated, event=event)
        return debit

    def _change(self, dataset: str, kind: EntryKind, *, budget: Budget, analyst: str | None = None) -> Record:
        dataset = checks.check_name(dataset, name="dataset")
        with self._database.writing() as session:
            before = ledger_database.last_known(session, dataset, lock=True)
            return _append(session, dataset, kind, {"budget": budget.to_dict()}, before=before, analyst=analyst)


def _open(session: LedgerSession, dataset: str, details: dict[str, Any]) -> Record:
    checks.check_spelling(dataset, ledger_database.datasets(session), name="dataset")
    return _append(session, dataset, EntryKind.OPEN, details)


def _append(
    session: LedgerSession,
    dataset: str,
    kind: EntryKind,
    details: dict[str, Any],
    *,
    before: Record | None = None,
    analyst: str | None = None,
    key: str | None = None,
) -> Record:
    # Read inside the transaction that writes, so that no spend of the same analyst can come between.
    share = _share(session, dataset, analyst)
    if analyst is not None and share is None:
        checks.check_spelling(analyst, ledger_database.analysts(session, dataset), name="analyst")
    state, share = transition(
        kind,
        details,
        state=None if before is None else before.read_state(),
        share=share,
        analyst=analyst,
    )
    record = Record(
        dataset=dataset,
        number=1 if before is None else before.number + 1,
        kind=str(kind),
        time=datetime.now(UTC).isoformat(),
        analyst=analyst,
        query_key=None if key is None else checks.digest_of_key(key),
        details=chain_text(details),
        state=state_text(state, share),
        previous=GENESIS if before is None else before.digest,
    ).sealed()
    ledger_database.append(session, record)
    return record


def _share(session: LedgerSession, dataset: str, analyst: str | None) -> Share | None:
    record = None if analyst is None else ledger_database.last_of_analyst(session, dataset, analyst)
    return None if record is None else record.read_share()


def _receipt(record: Record) -> Receipt:
    with explain_damage(record.dataset, record.number):
        details = json.loads(record.details)
        return Receipt(
            dataset=record.dataset,
            number=record.number,
            time=record.time,
            cost=Budget.from_dict(details["cost"]),
            analyst=record.analyst,
            key=details["key"],
            digest=record.digest,
        )


def _answer(record: Record, key: str) -> StoredAnswer:
    with explain_damage(record.dataset, record.number):
        details = json.loads(record.details)
        return StoredAnswer(
            dataset=record.dataset,
            key=key,
            answer=details["answer"],
            cost=Budget.from_dict(details["cost"]),
            spend=details["spend"],
            time=record.time,
        )


def _check_receipt(session: LedgerSession, receipt: Receipt) -> None:
    record = ledger_database.one(session, receipt.dataset, receipt.number)
    if record is None or record.kind != EntryKind.SPEND or _receipt(record) != receipt:
        raise LedgerError(
            "This receipt is not from this ledger.", fix="store an answer with the receipt that ledger.spend returned."
        )
    # An answer is always entered after its spend, so that no earlier entry has to be read.
    later = ledger_database.answers(session, receipt.dataset, str(record.query_key), after=receipt.number)
    if any(_answer(found, "").spend == receipt.number for found in later):
        raise LedgerError(
            "An answer was stored for this receipt already.",
            fix="spend again for a fresh answer; one receipt pays for one answer.",
        )


def _check_same(account: Account, details: dict[str, Any]) -> None:
    asked = Budget.from_dict(details["budget"])
    pairs = (
        ("budget", account.budget, asked),
        ("unit", account.unit, details["unit"]),
        ("adjacency", str(account.adjacency), details["adjacency"]),
    )
    for name, has, wanted in pairs:
        if has != wanted:
            raise AccountMismatchError(
                f'The account of dataset "{account.dataset}" has {name} {has}, not {wanted}.',
                fix=f"open it with {name}={has!r}"
                + (", or have the owner raise it with ledger.raise_budget." if name == "budget" else "."),
            )
