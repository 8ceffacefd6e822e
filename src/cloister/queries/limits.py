"""A limit on the rows of a person, chosen privately: large enough to cut little, small enough to need little noise.

Raising the limit by one keeps one more row of every person who has more; it also adds one more unit of noise, 1/epsilon
on average, to each count. So the limit at which about ``groups / epsilon`` persons have more rows errs least in all
counts together. It is found by rank among the numbers of rows per person, of which every person has one, on a public
list of limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from cloister.core import validation
from cloister.data.bins import Bins
from cloister.data.engines.base import ROWS, literal
from cloister.data.profile import StorageType
from cloister.queries.answers import Answer
from cloister.queries.question import Extreme, Number, Question, Rows

if TYPE_CHECKING:
    from cloister.queries.asking import Asking

__all__ = ["candidates", "choose_limit", "rows_per_person"]


def choose_limit(
    private: Asking, rows: Rows, *, groups: int, for_epsilon: object, highest: int, price: Mapping[str, Any]
) -> Answer:
    """Return the limit that balances what it cuts off with the noise that it needs."""
    most = validation.check_count(highest, name="highest", at_least=2)
    number = validation.check_count(groups, name="groups", at_least=1)
    beyond = math.ceil(number / validation.check_epsilon(for_epsilon))
    counted = rows_per_person(rows, most)
    ends = candidates(most)
    edges = Bins.of("rows per person", [1, *(end + 1 for end in ends)], StorageType.INTEGER)
    place = edges.code(exp.column("c0", quoted=True))
    of = Number(steps=place, unit=Fraction(1), low=0, high=len(ends) - 1, label="limit")
    question = Question(rows=counted, aggregates=(Extreme(of, largest=True, beyond=beyond),))
    answer = private.answer(question, name="limit on rows per person", price=price)
    return replace(answer, value=ends[answer.value], notes=(f"Limits up to {most:,} were considered.",))


def candidates(highest: int) -> list[int]:
    """Return the limits to choose from: every small one, then each a tenth larger than the one before."""
    found = [1]
    while found[-1] < highest:
        found.append(min(highest, found[-1] + max(1, found[-1] // 10)))
    return found


def rows_per_person(rows: Rows, highest: int) -> Rows:
    """Return one row for each person, with the number of the person's rows, at most ``highest``, as ``c0``."""
    if rows.person is None:
        return rows
    count = exp.Count(this=exp.Star())
    bound = literal(highest, StorageType.INTEGER)
    capped = exp.Case().when(exp.LTE(this=count, expression=bound), count.copy()).else_(bound.copy())
    query = exp.select(
        exp.Alias(this=capped, alias=exp.to_identifier("c0", quoted=True)),
        exp.Alias(this=rows.person.copy(), alias=exp.to_identifier("c1", quoted=True)),
    ).from_(rows.source)
    if rows.condition is not None:
        query = query.where(rows.condition.copy())
    query = query.where(exp.Not(this=exp.Is(this=rows.person.copy(), expression=exp.Null())))
    query = query.group_by(rows.person.copy())
    return Rows(
        engine=rows.engine,
        source=query.subquery(ROWS),
        person=exp.column("c1", quoted=True),
        rows_per_person=1,
    )
