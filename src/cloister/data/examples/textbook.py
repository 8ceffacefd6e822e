"""The small tables of textbooks and lectures, as golden data for tests and explanations."""

from __future__ import annotations

from pathlib import Path

from cloister.core.validation import check_choice
from cloister.data.sources import open_table
from cloister.data.table import Table

__all__ = ["TEXTBOOK", "textbook"]

TEXTBOOK = {
    "zip_and_age": "five people by postal code and age: one must be suppressed for 2-anonymity",
    "two_classes": "five people in two equivalence classes, of two and of three",
    "four_people": "four named people, their age and a yes-or-no answer: neighbors by leaving one out",
    "salaries": "ten salaries with mean 3300, for the sensitivity of a mean",
    "amounts": "sixteen amounts for a histogram with the buckets 1000, 2000, 3000 and 4000: counts 5, 7 and 4",
}
"""What each table shows."""


def textbook(name: str) -> Table:
    """Open one of the small tables.

    >>> textbook("salaries")
    Table(salary: integer)
    """
    name = check_choice(name, name="name", allowed=tuple(TEXTBOOK))
    return open_table(Path(__file__).with_name(f"{name}.csv"))
