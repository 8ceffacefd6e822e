"""Random sequences of operations against the simplest possible model of a ledger."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cloister.accounting.budget import Budget
from cloister.accounting.ledger import Receipt, open_ledger
from cloister.errors import BudgetExceededError, ParameterError

AMOUNTS = st.fractions(min_value="1/1000", max_value=2, max_denominator=1000)
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(3, 10**6)])
ANALYSTS = st.sampled_from(["ann", "bob", None])
KEYS = st.sampled_from(["count", "mean"])


class LedgerMachine(RuleBasedStateMachine):
    @initialize(amount=AMOUNTS)
    def open(self, amount: Fraction) -> None:
        self.ledger = open_ledger("memory:")
        self.budget = (amount, Fraction(1, 10**5))
        self.ledger.open_account("data", budget=self._budget(self.budget))
        self.spends: list[tuple[str | None, Fraction, Fraction]] = []
        self.limits: dict[str, tuple[Fraction, Fraction]] = {}
        self.unanswered: list[Receipt] = []
        self.answers: list[tuple[str, Fraction, Fraction, int]] = []
        self.heads: list[str] = [self.ledger.head("data")]

    @rule(amount=AMOUNTS, delta=DELTAS, analyst=ANALYSTS, key=KEYS | st.none())
    def spend(self, amount: Fraction, delta: Fraction, analyst: str | None, key: str | None) -> None:
        fits = all(
            cost <= left
            for left_pair in (self._left(None), self._left(analyst))
            for cost, left in zip((amount, delta), left_pair, strict=True)
        )
        try:
            receipt = self.ledger.spend("data", cost=self._budget((amount, delta)), analyst=analyst, key=key)
        except BudgetExceededError:
            assert not fits
        else:
            assert fits
            self.spends.append((analyst, amount, delta))
            self.heads.append(receipt.digest)
            self.unanswered += [receipt] if key else []

    @rule(amount=AMOUNTS, delta=DELTAS, analyst=st.sampled_from(["ann", "bob"]))
    def limit(self, amount: Fraction, delta: Fraction, analyst: str) -> None:
        allowed = amount <= self.budget[0] and delta <= self.budget[1]
        try:
            self.ledger.limit_analyst("data", analyst=analyst, budget=self._budget((amount, delta)))
        except ParameterError:
            assert not allowed
        else:
            assert allowed
            self.limits[analyst] = (amount, delta)

    @rule(amount=AMOUNTS)
    def raise_budget(self, amount: Fraction) -> None:
        try:
            self.ledger.raise_budget("data", budget=self._budget((amount, self.budget[1])))
        except ParameterError:
            assert amount <= self.budget[0]
        else:
            assert amount > self.budget[0]
            self.budget = (amount, self.budget[1])

    @precondition(lambda self: getattr(self, "unanswered", None))
    @rule()
    def answer(self) -> None:
        receipt = self.unanswered.pop()
        self.ledger.store_answer(receipt, answer=receipt.number)
        self.answers.append((str(receipt.key), receipt.cost.amount, receipt.cost.delta, receipt.number))

    @rule(key=KEYS, amount=AMOUNTS, delta=DELTAS)
    def find(self, key: str, amount: Fraction, delta: Fraction) -> None:
        good = [
            (paid, slack, number)
            for name, paid, slack, number in self.answers
            if name == key and paid >= amount and slack >= delta
        ]
        found = self.ledger.find_answer("data", key=key, cost=self._budget((amount, delta)))
        assert (found.answer if found else None) == (max(good)[2] if good else None)

    @invariant()
    def totals_agree(self) -> None:
        for analyst in (None, "ann", "bob"):
            assert self._numbers(self.ledger.spent("data", analyst=analyst)) == self._spent(analyst)
            assert self._numbers(self.ledger.remaining("data", analyst=analyst)) == self._left(analyst)

    @invariant()
    def chain_verifies(self) -> None:
        self.ledger.verify(heads={"data": self.heads[len(self.heads) // 2]})

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.ledger.close()

    def _spent(self, analyst: str | None) -> tuple[Fraction, Fraction]:
        mine = [(amount, delta) for name, amount, delta in self.spends if analyst in (None, name)]
        return sum((amount for amount, _ in mine), Fraction(0)), sum((delta for _, delta in mine), Fraction(0))

    def _left(self, analyst: str | None) -> tuple[Fraction, Fraction]:
        spent = self._spent(None)
        left = (self.budget[0] - spent[0], self.budget[1] - spent[1])
        if analyst not in self.limits:
            return left
        limit, mine = self.limits[analyst], self._spent(analyst)
        own = [max(Fraction(0), allowed - used) for allowed, used in zip(limit, mine, strict=True)]
        return min(left[0], own[0]), min(left[1], own[1])

    @staticmethod
    def _budget(numbers: tuple[Fraction, Fraction]) -> Budget:
        return Budget(epsilon=numbers[0], delta=numbers[1])

    @staticmethod
    def _numbers(budget: Budget) -> tuple[Fraction, Fraction]:
        return budget.amount, budget.delta


@pytest.mark.slow
class TestLedgerMachine(LedgerMachine.TestCase):  # type: ignore[name-defined, misc]
    settings = settings(max_examples=12, stateful_step_count=25)
