"""How the smaller parts of a policy are written: budgets, conditions on rows, hours, time zones, risk scores."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from datetime import time
from fractions import Fraction
from typing import Annotated, Any, ClassVar, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, PlainValidator

from cloister.accounting.budget import Budget
from cloister.core import exact
from cloister.errors import ParameterTypeError
from cloister.hub.domain._row_predicates import RowPredicate
from cloister.hub.domain.documents import Document, Text, WrittenAs, mistake

__all__ = ["Hours", "Loss", "RiskScore", "Rows", "Zone"]

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amounts(Document):
    """A budget as a policy states it; numbers are exact when they are texts."""

    left_out: ClassVar = ("delta",)

    epsilon: Any
    delta: Any = Fraction(0)


def _read_budget(amounts: _Amounts) -> Budget:
    try:
        return Budget(epsilon=amounts.epsilon, delta=amounts.delta)
    except ParameterTypeError as error:
        # Pydantic takes no TypeError for a refusal.
        raise mistake(error.problem, fix=error.fix) from None


def _write_budget(budget: Budget) -> _Amounts:
    slack = exact.text(budget.delta) if budget.delta else budget.delta
    return _Amounts(epsilon=exact.text(budget.amount), delta=slack)


def _read_hours(text: str) -> tuple[time, time]:
    start, dash, end = text.partition("-")
    if not dash or not _CLOCK.fullmatch(start) or not _CLOCK.fullmatch(end) or start == end:
        raise mistake("this is not a span of hours.", fix='write for example "08:00-18:00".')
    return time.fromisoformat(start), time.fromisoformat(end)


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise mistake("this is not a time zone.", fix='write for example "Europe/Berlin", or "UTC".') from None
    return name


def _read_risk(value: Any) -> float:  # whatever somebody wrote
    # Whole numbers that no float holds are no scores, and a limit that is not a number would never be passed.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= sys.float_info.max:
        raise mistake("this is not a risk score.", fix="write a number from 0 on.")
    return float(value)


Loss: TypeAlias = Annotated[Budget, WrittenAs(_Amounts, _read_budget, _write_budget)]
Rows: TypeAlias = Annotated[RowPredicate, WrittenAs(Text, RowPredicate, lambda rows: rows.text)]
Hours: TypeAlias = Annotated[
    tuple[time, time], WrittenAs(Text, _read_hours, lambda span: f"{span[0]:%H:%M}-{span[1]:%H:%M}")
]
Zone: TypeAlias = Annotated[Text, AfterValidator(_check_zone)]
RiskScore: TypeAlias = Annotated[float, PlainValidator(_read_risk)]
