"""The order of a fit: planned, paid, and only then looked; about nobody where looking fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from cloister.accounting import failure_count
from cloister.accounting.budget import Budget
from cloister.accounting.events import PureEvent
from cloister.accounting.ledger import Ledger, open_ledger
from cloister.core.guarantees import SEEDED_RANDOMNESS, Guarantee, NoGuarantee, PureDP
from cloister.core.random import RandomSource, SeededRandomSource, SystemRandomSource
from cloister.errors import BudgetExceededError
from cloister.mechanisms.paid_fit import PaidFit, PricedFit
from cloister.mechanisms.saved_fits import SavedFits

ONE = PureDP(epsilon=Fraction(1))


@dataclass(kw_only=True, eq=False, repr=False)
class Total(PaidFit):
    """Keeps what it was given, and what it found in the ledger when it looked."""

    purpose: ClassVar[str] = "add up with"
    outlives_fits: ClassVar[tuple[str, ...]] = ("given_",)

    def fit(
        self,
        rows: Callable[[], list[int]],
        *,
        guarantee: Guarantee = ONE,
        source: RandomSource | None = None,
        nobody: Callable[[], list[int]] = list,
    ) -> Total:
        self.given_ = True
        event = PureEvent(epsilon=Fraction(1)) if isinstance(guarantee, PureDP) else None
        fit = PricedFit(guarantee=guarantee, event=event, rows=rows, nobody=nobody, learn=self._add)
        self._pay_and_look(fit, source or SystemRandomSource())
        return self

    def _add(self, rows: list[int], source: RandomSource) -> None:
        del source
        self.half_way_ = True
        self.total_ = sum(rows)

    def _check_fitted(self) -> None:
        raise NotImplementedError

    def _files(self) -> SavedFits[Any]:
        raise NotImplementedError

    def _learned_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


@pytest.fixture
def ledger() -> Ledger:
    made = open_ledger("memory:")
    made.open_account("people", budget=Budget(epsilon=2))
    return made


def total(ledger: Ledger) -> Total:
    return Total(ledger=ledger, dataset="people")


def fail(*_: Any) -> Any:
    raise ValueError("a row says 4711")


def test_rows_are_got_after_paying(ledger: Ledger) -> None:
    seen: list[Fraction] = []

    def rows() -> list[int]:
        seen.append(ledger.spent("people").amount)
        return [1, 2]

    made = total(ledger).fit(rows)
    assert (seen, made.total_) == ([1], 3)
    assert made.guarantee_ == ONE
    assert made.provenance_.dataset == "people"
    assert [item.purpose for item in ledger.entries("people") if item.purpose] == ["add up with Total"]


def test_what_is_not_paid_is_not_looked_at(ledger: Ledger) -> None:
    made = total(ledger).fit(lambda: [1]).fit(lambda: [2])
    with pytest.raises(BudgetExceededError):
        made.fit(fail)
    assert made.total_ == 2


@pytest.mark.hidden_failures
@pytest.mark.parametrize("rows", [fail, lambda: [1, "a"]], ids=["getting", "adding"])
def test_a_failure_gives_a_fit_about_nobody(ledger: Ledger, rows: Any) -> None:
    before = failure_count()
    made = total(ledger).fit(rows)
    assert (made.total_, made.guarantee_, ledger.spent("people").amount) == (0, ONE, 1)
    assert failure_count() == before + 1


@pytest.mark.hidden_failures
def test_what_fails_about_nobody_is_raised_and_leaves_no_model(ledger: Ledger) -> None:
    made = total(ledger).fit(lambda: [5])
    with pytest.raises(ValueError, match="4711"):
        made.fit(fail, nobody=fail)
    assert ledger.spent("people").amount == 2
    assert [name for name in vars(made) if name.endswith("_")] == ["given_"]


def test_what_promises_nothing_costs_nothing_and_fails_as_it_is(ledger: Ledger) -> None:
    made = total(ledger)
    assert made.fit(lambda: [7], guarantee=NoGuarantee(reason="it is exact")).total_ == 7
    with pytest.raises(ValueError, match="4711"):
        made.fit(fail, guarantee=NoGuarantee(reason="it is exact"))
    assert ledger.spent("people").amount == 0
    assert not hasattr(made, "total_")


def test_a_seed_is_a_caveat(ledger: Ledger) -> None:
    made = total(ledger).fit(lambda: [1], source=SeededRandomSource(1))
    assert SEEDED_RANDOMNESS in made.guarantee_.caveats
    assert not made.guarantee_.holds
