"""Parts of request bodies that several routes share."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Annotated

from pydantic import Field

from cloister.errors import ParameterError
from cloister.hub.api.datasets import BudgetBody

__all__ = ["BudgetBody", "End", "moment_of"]

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
