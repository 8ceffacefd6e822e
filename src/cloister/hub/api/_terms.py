"""How bodies state the terms on which something is given: an amount of budget, and until when."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Annotated

from pydantic import Field

from cloister.accounting.budget import Budget
from cloister.core.exact import number
from cloister.errors import ParameterError
from cloister.hub.domain.untrusted_input import RequestBody

End = Annotated[
    str,
    Field(
        max_length=40,
        description="A day, which is included (UTC), or a moment with its offset.",
        examples=["2027-12-31", "2027-12-31T12:00:00+01:00"],
    ),
]


def moment_of(end: str) -> datetime:
    """Return when something ends: a day ends with its last second, in UTC."""
    try:
        if len(end) == len("2027-12-31"):
            return datetime.combine(date.fromisoformat(end), time(23, 59, 59), UTC)
        moment = datetime.fromisoformat(end)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ParameterError(
        "The end is neither a day nor a moment with its offset.", fix="write 2027-12-31, or 2027-12-31T12:00:00+01:00."
    )


class BudgetBody(RequestBody):
    """A budget: epsilon with delta, or rho with delta. Numbers may be texts, which stay exact."""

    epsilon: str | float | None = Field(default=None, examples=["3"])
    rho: str | float | None = None
    delta: str | float = "0"

    def to_budget(self) -> Budget:
        """Return the exact budget."""
        if (self.epsilon is None) == (self.rho is None):
            raise ParameterError("A budget is in epsilon or in rho, one of them.", fix="give epsilon, such as 3.")
        numbers = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
        return Budget(**{name: number(value, name=name) for name, value in numbers.items() if value is not None})
