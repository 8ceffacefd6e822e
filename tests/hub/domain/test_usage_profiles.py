from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from cloister.hub.domain import usage_profiles
from cloister.hub.domain.usage_profiles import (
    Activity,
    Suggestion,
    UsageEvent,
    UsageScore,
    activities_of,
    drop_expired,
    rank,
    score,
)

TODAY = date(2026, 6, 30)


def drawn(*words: object, below: int) -> int:
    """Return a number that looks random and is always the same."""
    return int.from_bytes(hashlib.sha256(repr(words).encode()).digest()[:8]) % below


def day(user: str, when: date, *, datasets: int, hour: int, operations: int) -> list[UsageEvent]:
    start = datetime(when.year, when.month, when.day, hour, tzinfo=UTC)
    return [
        UsageEvent(user_id=user, at=start + timedelta(minutes=place % 59), dataset=f"d{place % datasets}", volume=10)
        for place in range(operations)
    ]


def usual(user: str, when: date) -> list[UsageEvent]:
    return [
        event
        for part in range(3)
        for event in day(
            user,
            when,
            datasets=1 + drawn(user, when, part, "d", below=3),
            hour=9 + drawn(user, when, part, "h", below=8),
            operations=2 + drawn(user, when, part, "o", below=10),
        )
    ]


PEOPLE = [f"u{number}" for number in range(200)]
HISTORY = activities_of(
    event for user in PEOPLE for back in range(1, 31) for event in usual(user, TODAY - timedelta(days=back))
)
TODAYS = activities_of(event for user in PEOPLE for event in usual(user, TODAY))


def night(user: str) -> Activity:
    return activities_of(day(user, TODAY, datasets=50, hour=3, operations=50))[0]


def test_fifty_datasets_at_three_in_the_morning_are_in_the_top_percent() -> None:
    scores = [score(activity, HISTORY).value for activity in TODAYS]
    found = score(night("u7"), HISTORY)
    assert rank(found.value, [*scores, found.value]) <= 0.01
    assert found.value > max(scores)
    assert found.suggestion is Suggestion.STEP_UP
    assert "datasets used" in found.explain()
    assert "unusual hours" in found.explain()


def test_usual_days_are_rarely_noticed() -> None:
    suggestions = [score(activity, HISTORY).suggestion for activity in TODAYS]
    assert suggestions.count(Suggestion.NOTHING) >= 0.95 * len(suggestions)


def test_someone_who_always_works_at_night_is_not_unusual() -> None:
    nights = activities_of(
        event
        for back in range(1, 31)
        for event in day("owl", TODAY - timedelta(days=back), datasets=2, hour=3, operations=20)
    )
    today = activities_of(day("owl", TODAY, datasets=2, hour=3, operations=22))[0]
    assert score(today, [*HISTORY, *nights]).suggestion is Suggestion.NOTHING
    assert score(today, [*HISTORY, *nights]).explain() == "The day is as usual."


def test_a_newcomer_is_compared_with_everybody() -> None:
    new = night("newcomer")
    assert score(new, HISTORY).suggestion is not Suggestion.NOTHING
    assert score(new, []) == UsageScore(value=0, parts=())
    assert score(replace(TODAYS[0], user_id="newcomer"), HISTORY).suggestion is Suggestion.NOTHING


def test_a_few_wild_days_do_not_hide_the_next_one() -> None:
    wild = [replace(night("u7"), day=TODAY - timedelta(days=back)) for back in (40, 41, 42)]
    assert score(night("u7"), [*HISTORY, *wild]).suggestion is not Suggestion.NOTHING


def test_only_earlier_days_that_may_be_kept_count() -> None:
    assert timedelta(days=90) == usage_profiles.RETENTION
    old = [replace(activity, day=activity.day - timedelta(days=90)) for activity in HISTORY]
    assert drop_expired(old, today=TODAY) == []
    assert score(night("u7"), old) == UsageScore(value=0, parts=())
    later = [replace(activity, day=TODAY + timedelta(days=1)) for activity in HISTORY]
    assert score(night("u7"), later) == UsageScore(value=0, parts=())
    assert drop_expired(HISTORY, today=TODAY) == HISTORY


def test_more_is_never_less_unusual() -> None:
    values = [score(replace(TODAYS[0], datasets=number), HISTORY).value for number in (5, 10, 50, 500)]
    assert values == sorted(values)


def test_a_day_without_operations_is_as_usual() -> None:
    idle = Activity(user_id="u1", day=TODAY, datasets=0, operations=0, volume=0, hours=(0,) * 24)
    assert score(idle, HISTORY).suggestion is Suggestion.NOTHING


def test_profiles_hold_counts_only() -> None:
    (activity,) = activities_of(day("u", TODAY, datasets=3, hour=23, operations=6))
    assert (activity.datasets, activity.operations, activity.volume, activity.hours[23]) == (3, 6, 60, 6)
    assert "d0" not in repr(activity)


@pytest.mark.parametrize(("value", "expected"), [(0, "nothing"), (6, "notify"), (12, "step_up")])
def test_a_score_suggests_and_never_blocks(value: float, expected: str) -> None:
    assert UsageScore(value=value, parts=()).suggestion == expected
    assert {str(item) for item in Suggestion} == {"nothing", "notify", "step_up"}


def test_ranks() -> None:
    assert rank(3, [1, 2, 3, 4]) == 0.5
    assert rank(3, []) == 1.0
