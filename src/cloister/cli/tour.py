"""``cloister tour``: a first private answer on example data, explained for somebody who never saw one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.cli.commands import CommandOutput, command, program
from cloister.core.guarantees import Adjacency

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloister.accounting.budget import Budget
    from cloister.accounting.ledger import Ledger
    from cloister.data.table import Table
    from cloister.mechanisms import DiscreteLaplace, NoisyAnswer

DATASET = "hospital-example"
BUDGET = "1"
CONDITION = "asthma"
VISITS = ("1 visit", "2 visits", "3 visits", "4 visits", "5 or more")
_BAR = 30


@dataclass(frozen=True, slots=True)
class TourQuestion:
    """A question in words, its price, and how its true value is found inside the engine."""

    text: str
    epsilon: str
    compute: Callable[[Table], Any]

    @property
    def mechanism(self) -> DiscreteLaplace:
        """Return the noise: a patient, with all visits, changes one number of the answer by at most 1."""
        from cloister.core.exact import number
        from cloister.mechanisms import DiscreteLaplace

        return DiscreteLaplace(
            sensitivity=number(1), epsilon=number(self.epsilon), adjacency=Adjacency.USER, unit="patient"
        )


@dataclass(frozen=True, slots=True)
class TourAnswer:
    """A question with its private answer."""

    question: TourQuestion
    cost: Budget
    answer: NoisyAnswer[Any]  # a number, or several

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"question": self.question.text, "cost": self.cost.to_dict(), "answer": self.answer.to_dict()}


@command("tour", example="cloister tour")
def tour(output: CommandOutput) -> None:
    """Ask two questions of a made-up hospital, and see what privacy costs.

    Nothing is written and nothing leaves this machine.
    """
    from cloister.accounting.budget import Budget
    from cloister.accounting.ledger import open_ledger
    from cloister.core.exact import number
    from cloister.data.examples import hospital_table

    budget = Budget(epsilon=number(BUDGET))
    with open_ledger("memory:") as ledger:
        ledger.open_account(DATASET, budget=budget, unit="patient", adjacency=Adjacency.USER)
        with output.progress("Making up a hospital"):
            table = hospital_table()
        _introduce(output)
        answers = [_ask(output, ledger, table, question) for question in _questions()]
        remaining = ledger.remaining(DATASET)
    output.document(
        {
            "schema": "cloister.tour/1",
            "dataset": DATASET,
            "budget": budget.to_dict(),
            "answers": [answered.to_dict() for answered in answers],
            "remaining": remaining.to_dict(),
        }
    )
    _conclude(output, answers, remaining)


def _questions() -> tuple[TourQuestion, TourQuestion]:
    return (
        TourQuestion(f"How many patients came with {CONDITION}?", "0.2", _patients_with_condition),
        TourQuestion("How many patients came once, twice, more often?", "0.3", _patients_by_visits),
    )


def _patients_with_condition(table: Table) -> int:
    return len(table.frequencies(["patient_id"], where=f"diagnosis = '{CONDITION}'"))


def _patients_by_visits(table: Table) -> Any:  # an array of integers
    import numpy as np

    visits = np.minimum(table.frequencies(["patient_id"]).weights, len(VISITS))
    return np.bincount(visits, minlength=len(VISITS) + 1)[1:]


def _introduce(output: CommandOutput) -> None:
    output.heading("The data")
    output.say("A table of visits to a hospital: who came, when, and why. The hospital is made up, so no real person")
    output.say("is in it. Imagine that it is real, and that you may ask questions but may not look.")
    output.heading("The budget")
    output.say(
        "Every answer reveals a little about each patient. How much is measured in epsilon: 0 is nothing, and it"
    )
    output.say(f"adds up from answer to answer. The owner of this table allows {BUDGET} in all, ever.")


def _ask(output: CommandOutput, ledger: Ledger, table: Table, question: TourQuestion) -> TourAnswer:
    """Pay for a question, answer it, and show both. The price is paid before the table is read."""
    from cloister.accounting.budget import Budget

    mechanism = question.mechanism
    cost = Budget(epsilon=mechanism.epsilon)
    output.heading(question.text)
    output.say(f"  Price:          epsilon {question.epsilon}, taken from the budget before the table is read.")
    output.say(
        f"  Expected error: {_whole(mechanism.margin())} patients or fewer, 19 times out of 20. Known before paying."
    )
    ledger.spend(DATASET, cost=cost, event=mechanism.event, purpose=question.text)
    answered = TourAnswer(question, cost, mechanism.release(question.compute(table)))
    _show(output, answered.answer)
    return answered


def _show(output: CommandOutput, answer: NoisyAnswer[Any]) -> None:
    import numpy as np

    margin = _whole(answer.margin())
    if not isinstance(answer.value, np.ndarray):
        output.say(f"  Answer:         {_whole(answer.value)} patients, give or take {margin}.")
        return
    counts = [int(count) for count in answer.value]
    largest = max(1, *counts)
    output.say("  Answer:")
    rows = [
        [name, _whole(count), f"± {margin}", _bar(count, largest)] for name, count in zip(VISITS, counts, strict=True)
    ]
    output.table(["", "patients", "error", ""], rows)


def _conclude(output: CommandOutput, answers: list[TourAnswer], remaining: Budget) -> None:
    output.heading("What was promised")
    output.say("Each number was changed at random, just enough that it could nearly as well have come from the same")
    output.say("hospital without you, or with you as one more patient. In exact words, for the first answer:")
    output.say(answers[0].answer.guarantee.explain())
    output.heading("What is left")
    output.say(
        f"Epsilon {float(remaining.amount):g} of {BUDGET}. When it is used up, this table gives nobody further answers."
    )
    output.say("Run this command again and the answers come out a little different: that is the protection.")
    output.heading("Next")
    output.say(f"Describe a table of your own:  {program()} schema infer visits.csv -o visits.schema.yaml")
    output.say(f"Ask it a question:             {program()} query --help")
    output.say("Read on:                       docs/tutorials/data-owner.md")


def _whole(number: Any) -> str:
    return f"{float(number):,.0f}"


def _bar(count: int, largest: int) -> str:
    return "#" * round(_BAR * max(count, 0) / largest)
