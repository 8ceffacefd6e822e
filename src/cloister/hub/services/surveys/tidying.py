"""When the database is made to forget the order of answers: often while there are few, less often as they grow."""

from __future__ import annotations

from cloister.hub.store.database import Store
from cloister.hub.store.forgetting_order import empty_log, forget_order

SMALLEST = 8
SHARE = 8


def is_turn(count: int, *, dialect: str) -> bool:
    """Return whether so many submissions are a turn for writing rows anew, each eighth more.

    All rows are written anew at a turn, so that turns at fixed distances would take ever longer in all. SQLite waits
    for at least eight new submissions.

    >>> [count for count in range(1, 30) if is_turn(count, dialect="postgresql")]
    [8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27]
    >>> [count for count in range(1, 130) if is_turn(count, dialect="sqlite")]
    [8, 16, 24, 32, 40, 48, 56, 64, 72, 81, 91, 102, 114, 128]
    """
    least = SMALLEST if dialect == "sqlite" else 1
    turn = SMALLEST
    while turn < count:
        turn += max(least, turn // SHARE)
    return turn == count


def forget_when_due(store: Store, survey_id: str, count: int) -> None:
    """Make the database forget the order of a survey's answers if it is the turn of this count, else its newest log."""
    if is_turn(count, dialect=store.dialect):
        forget_order(store, survey_id=survey_id)
    elif count % SMALLEST == 0:
        empty_log(store)
