"""A ledger for each person: every question and repetition of one respondent is charged to one account.

    me = Respondent("token-81f3", study="commuting-2026", ledger=ledger, budget=Budget(epsilon=4))
    report = me.report(protocol, "by train")

Spend, then look: the account is debited, durably, before the report is made, and what does not fit is refused whatever
the answer is. Values outside of the domain are refused before that and cost nothing, since nothing leaves the device.

A ledger with an account for each person is itself a list of who took part and when. Keep it on the person's device, or
under random tokens that cannot be linked to reports.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

from cloister.accounting.budget import Budget
from cloister.accounting.events import PureEvent
from cloister.accounting.ledger import Ledger
from cloister.accounting.ledger.protocol import Receipt
from cloister.core.guarantees import Adjacency, LocalDP, PureDP
from cloister.core.random import RandomState
from cloister.errors import BudgetExceededError, ParameterError, ParameterTypeError

__all__ = ["Agreement", "Answerable", "Respondent"]

_Device_co = TypeVar("_Device_co", covariant=True)


@runtime_checkable
class Answerable(Protocol):
    """What one person can answer at a known price: a protocol, or several attributes."""

    @property
    def guarantee(self) -> LocalDP:
        """Return what one answer costs."""
        ...

    def encode(self, values: Any, /) -> tuple[Any, bool]:  # one value, or one for each attribute
        """Return codes, and whether they are of one person."""
        ...

    def randomize(self, values: Any, /, *, random_state: RandomState = None) -> Any:  # reports of some kind
        """Return what is sent."""
        ...


class Agreement(Protocol[_Device_co]):
    """What one person enrols for at a known price: a repeated or a memoized question."""

    @property
    def guarantee(self) -> LocalDP:
        """Return what all reports together cost."""
        ...

    def enroll(self) -> _Device_co:
        """Return the device of a new person."""
        ...


class Respondent:
    """One person who answers questions, with a budget for all of them.

    Attributes:
        account: the name of the account in the ledger.
        ledger: where it is kept.

    >>> from cloister.accounting.ledger import open_ledger
    >>> from cloister.local import RandomizedResponse
    >>> me = Respondent("p1", study="demo", ledger=open_ledger("memory:"), budget=Budget(epsilon=2))
    >>> len(me.report(RandomizedResponse(epsilon="1.5"), True))
    1
    >>> me.remaining
    Budget(epsilon=0.5)
    """

    def __init__(self, person: str, *, study: str, ledger: Ledger, budget: Budget) -> None:
        """Open the person's account, or find it again.

        Args:
            person: a name for the person, best a random token.
            study: what the budget is for; one person has one account for each study.
            ledger: what `cloister.open_ledger` returned.
            budget: what all reports of the person may cost together.

        Raises:
            AccountMismatchError: if the account exists with another budget.
        """
        self.account = f"{_name(study)}/{_name(person)}"
        self.ledger = ledger
        ledger.open_account(self.account, budget=budget, unit="person", adjacency=Adjacency.REPLACE)

    @property
    def remaining(self) -> Budget:
        """Return what is left."""
        return self.ledger.remaining(self.account)

    @property
    def spent(self) -> Budget:
        """Return what was spent."""
        return self.ledger.spent(self.account)

    def report(self, question: Answerable, value: Any, *, purpose: str = "", random_state: RandomState = None) -> Any:
        """Return the report of a value, charged to the account before it is made.

        Args:
            question: a protocol, or `SeveralAttributes`; the whole that one person pays for it is charged.
            value: the person's value, or one for each attribute.
            purpose: a sentence for the person.
            random_state: for tests only.

        Raises:
            BudgetExceededError: if too little is left; nothing is charged and nothing made.
            OutsideDomainError: if the value is not in the domain; nothing is charged.
        """
        if not isinstance(question, Answerable):
            raise ParameterTypeError(
                "This is not a question that a person answers once.",
                fix="give a protocol or SeveralAttributes; enroll for repeated questions; take one level with at().",
            )
        # Everything that can be refused is refused before the charge, since nothing has left the device yet.
        _, is_single = question.encode(value)
        if not is_single:
            raise ParameterTypeError("These are the values of many people.", fix="report the value of one person.")
        # The account is debited before the coin is tossed: whoever stops the device now cannot toss again for free.
        self.charge(question.guarantee.epsilon, purpose=purpose or type(question).__name__)
        return question.randomize(value, random_state=random_state)

    def enroll(self, agreement: Agreement[_Device_co], *, purpose: str = "") -> _Device_co:
        """Return the device for a repeated or memoized question; all its reports are charged now.

        Raises:
            BudgetExceededError: if too little is left.
        """
        if not callable(getattr(agreement, "enroll", None)):
            raise ParameterTypeError(
                "There is nothing to enroll for.", fix="give a RepeatedQuestion or a MemoizedQuestion; else use report."
            )
        # All reports are paid at once: a later one that failed for want of budget could show that a value has changed.
        self.charge(agreement.guarantee.epsilon, purpose=purpose or type(agreement).__name__)
        return agreement.enroll()

    def charge(self, epsilon: Fraction, *, purpose: str = "") -> Receipt:
        """Debit what a local report costs: epsilon under the replace relation.

        Raises:
            BudgetExceededError: if too little is left.
        """
        try:
            return self.ledger.spend(
                self.account,
                guarantee=PureDP(epsilon=epsilon, unit="person", adjacency=Adjacency.REPLACE),
                event=PureEvent(epsilon=epsilon),
                purpose=purpose,
            )
        except BudgetExceededError as error:
            raise _explain_refusal(error) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.remaining} left)"


def _explain_refusal(error: BudgetExceededError) -> BudgetExceededError:
    again = "sending the very same stored report again is free."
    if error.remaining > 0:
        fix = f"ask this person with an epsilon of at most {float(error.remaining):.6g}, or not at all; {again}"
    else:
        fix = f"send nothing more from this person; {again}"
    return BudgetExceededError(
        requested=error.requested,
        remaining=error.remaining,
        measure=error.measure,
        whose=" of what this person agreed to",
        fix=fix,
    )


def _name(value: object) -> str:
    # A slash would let the name of a person reach into the account of another study.
    if not isinstance(value, str) or not value or "/" in value:
        raise ParameterError(
            "A person or a study has no usable name.", fix='give text without "/", such as "token-81f3".'
        )
    return value
