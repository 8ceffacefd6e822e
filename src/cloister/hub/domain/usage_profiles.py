"""Profiles of use: how far a day of a person is from what is usual, as a hint for people, never as a lock.

Counts of a day (datasets, operations, volume) and the hours of the clock are compared with earlier days of the same
person, or of everybody while there are few. A robust z score counts how many typical deviations a number lies above
the median (Iglewicz and Hoaglin 1993), so that a few wild days in the past do not hide the next one.

Profiles are personal data. They hold counts only, no queries and no names of datasets, are deleted after `RETENTION`,
and no score refuses anything by itself: the most that is suggested is to log in again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from statistics import median

__all__ = [
    "FEWEST_DAYS",
    "RETENTION",
    "Activity",
    "Suggestion",
    "UsageEvent",
    "UsageScore",
    "activities_of",
    "drop_expired",
    "rank",
    "score",
]

RETENTION = timedelta(days=90)
"""How long a day's activity is kept."""

FEWEST_DAYS = 7
"""With fewer earlier days, a person is compared with everybody."""

_NOTIFY, _STEP_UP = 6.0, 12.0
_TYPICAL = 1.4826
_HOURS = 24
_COUNTS = ("datasets", "operations", "volume")
_WORDS = {
    "datasets": "datasets used",
    "operations": "operations",
    "volume": "volume of results",
    "hours": "unusual hours",
}


class Suggestion(StrEnum):
    """What a score suggests to people; nothing of it happens by itself."""

    NOTHING = "nothing"
    NOTIFY = "notify"
    STEP_UP = "step_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvent:
    """One action of a person, as far as it counts for a profile."""

    user_id: str
    at: datetime
    dataset: str
    volume: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A day of a person in counts; ``hours`` has the number of operations in each hour of UTC."""

    user_id: str
    day: date
    datasets: int
    operations: int
    volume: float
    hours: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageScore:
    """How unusual a day is: the root of the sum of squares of all parts that are above the usual."""

    value: float
    parts: tuple[tuple[str, float], ...]

    @property
    def suggestion(self) -> Suggestion:
        """Return what the score suggests."""
        if self.value < _NOTIFY:
            return Suggestion.NOTHING
        return Suggestion.NOTIFY if self.value < _STEP_UP else Suggestion.STEP_UP

    def explain(self) -> str:
        """Return one sentence for the person who looks at it."""
        above = sorted((part for part in self.parts if part[1] >= 3), key=lambda part: -part[1])
        if not above:
            return "The day is as usual."
        listed = ", ".join(f"{_WORDS[name]} ({number:.0f} typical deviations)" for name, number in above)
        return f"The day is unusual in: {listed}."


def activities_of(events: Iterable[UsageEvent]) -> list[Activity]:
    """Return the days of every person, in counts."""
    days: dict[tuple[str, date], list[UsageEvent]] = {}
    for event in events:
        days.setdefault((event.user_id, event.at.astimezone(UTC).date()), []).append(event)
    return [_count_day(user, day, found) for (user, day), found in sorted(days.items())]


def drop_expired(activities: Iterable[Activity], *, today: date) -> list[Activity]:
    """Return the activities that may still be kept; all others have to be deleted."""
    return [activity for activity in activities if today - activity.day <= RETENTION]


def score(activity: Activity, history: Iterable[Activity]) -> UsageScore:
    """Return how unusual a day is, compared with earlier days of the same person or, while they are few, of everybody.

    Args:
        activity: the day.
        history: days of the person and of others; only earlier ones that may still be kept count.
    """
    earlier = [past for past in drop_expired(history, today=activity.day) if past.day < activity.day]
    own = [past for past in earlier if past.user_id == activity.user_id]
    base = own if len(own) >= FEWEST_DAYS else earlier
    if not base:
        return UsageScore(value=0, parts=())
    parts = [(name, _robust_z(_count(activity, name), [_count(past, name) for past in base])) for name in _COUNTS]
    habits = _habits(base)
    parts.append(("hours", _robust_z(_surprise(activity, habits), [_surprise(past, habits) for past in base])))
    return UsageScore(value=math.hypot(*(max(0.0, number) for _, number in parts)), parts=tuple(parts))


def rank(value: float, others: Sequence[float]) -> float:
    """Return the share of scores that are at least as high as one of them; 0.01 is the top 1%."""
    return sum(other >= value for other in others) / len(others) if others else 1.0


def _count_day(user: str, day: date, events: Sequence[UsageEvent]) -> Activity:
    hours = [event.at.astimezone(UTC).hour for event in events]
    return Activity(
        user_id=user,
        day=day,
        datasets=len({event.dataset for event in events}),
        operations=len(events),
        volume=sum(event.volume for event in events),
        hours=tuple(hours.count(hour) for hour in range(_HOURS)),
    )


def _count(activity: Activity, name: str) -> float:
    """Return a count on the scale on which twice as much is always as far."""
    return math.log1p(max(0.0, float(getattr(activity, name))))


def _habits(base: Sequence[Activity]) -> tuple[float, ...]:
    """Return how likely each hour is, with a little for hours that never occurred; near hours lend to each other."""
    totals = [sum(past.hours[hour] for past in base) for hour in range(_HOURS)]
    spread = [
        totals[hour] + (totals[hour - 1] + totals[(hour + 1) % _HOURS]) / 2 + 1 / _HOURS for hour in range(_HOURS)
    ]
    whole = sum(spread)
    return tuple(number / whole for number in spread)


def _surprise(activity: Activity, habits: tuple[float, ...]) -> float:
    """Return the mean number of bits by which the hours of a day surprise."""
    if not activity.operations:
        return 0.0
    bits = (count * -math.log2(likely) for count, likely in zip(activity.hours, habits, strict=True))
    return sum(bits) / max(1, sum(activity.hours))


def _robust_z(value: float, base: Sequence[float]) -> float:
    """Return how many typical deviations a number lies above the median; at least a quarter is typical."""
    middle = median(base)
    typical = max(0.25, _TYPICAL * median(abs(past - middle) for past in base))
    return (value - middle) / typical
