"""When the database is made to forget the order of answers: often while there are few, less often as they grow."""

from __future__ import annotations

from cloister.hub.store.database import Store
from cloister.hub.store.forgetting_order import forget_order

SMALLEST = 8


def is_turn(count: int, *, dialect: str) -> bool:
    """Return whether so many submissions are a turn: every 8th on SQLite, each eighth more on PostgreSQL.

    >>> [count for count in range(1, 30) if is_turn(count, dialect="postgresql")]
    [8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27]
    """
    if dialect == "sqlite":
        return count % SMALLEST == 0
    turn = SMALLEST
    while turn < count:
        turn += max(1, turn // SMALLEST)
    return turn == count


def forget_when_due(store: Store, count: int) -> None:
    """Make the database forget the order of answers if it is the turn of this count."""
    if is_turn(count, dialect=store.dialect):
        forget_order(store)
