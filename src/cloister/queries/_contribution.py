"""Contribution limits: how much one unit of privacy can change, and how the engine keeps it to that.

Under a row unit a unit is one row. Under a person unit a person may have any number of rows, so that each person's
influence is limited to ``limit`` rows, inside the engine:

- ``weight`` (the default): every row of a person with r rows counts as min(1, limit / r), in whole steps of 2**-16
  rounded down. Nobody's rows are dropped, nothing is random, and the weights of a person add up to at most the limit.
- ``truncate``: the first rows of a person in a stated order count, the others do not.
- ``sample``: as truncate, in an order that looks random: that of a digest of the person and the row.

What a person's rows count is a function of that person's rows alone: for ``truncate`` and ``sample``, rows that tie
in the order are the same row as far as the question is concerned. So one person more or less changes the weighted
rows by that person's weight only: at most ``limit`` in all, at most ``per_group`` in one group.

Dropping rows for one question is `limit_rows`; see `cloister.data.persons`.

A limit can be chosen privately (`choose_limit`): large enough to cut little, small enough to need little noise.
Raising the limit by one keeps one more row of every person who has more; it also adds one more unit of noise,
1/epsilon on average, to each count. So the limit at which about ``groups / epsilon`` persons have more rows errs
least in all counts together. It is found by rank among the numbers of rows per person, of which every person has one,
on a public list of limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from cloister.core import validation
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency
from cloister.data.bins import ColumnBins
from cloister.data.engines.base import ROWS, literal
from cloister.data.persons import digest, first_rows
from cloister.data.values import StorageType
from cloister.errors import ParameterError
from cloister.queries._aggregates import Extreme
from cloister.queries._question import FixedPointNumber, QueryRows, Question
from cloister.queries.answers import Answer

if TYPE_CHECKING:
    from cloister.queries._budgeted_table import AnswerTerms, BudgetedTable

__all__ = ["BOUNDINGS", "Contribution", "Reach", "candidates", "choose_limit", "limit_rows", "rows_per_person"]


BOUNDINGS = ("weight", "truncate", "sample")
WEIGHT_STEPS = 2**16
_LARGEST = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one unit can change in a question, in whole steps of weight.

    Attributes:
        scale: how many steps of weight one row is.
        rows: how many rows a unit counts for, at most.
        per_group: how many rows a unit counts for in one group, at most.
        groups: how many groups a unit can be in, at most.
        moves: whether the unit can leave one place and enter another (replace), rather than come or go.
        is_weighted: whether the engine has to weight rows.
    """

    scale: int
    rows: int
    per_group: int
    groups: int
    moves: bool
    is_weighted: bool

    def histogram(self, *, cells: bool) -> tuple[int, int]:
        """Return the L1 and squared L2 sensitivity of weighted counts, in cells or as one number."""
        # A replaced row leaves one cell and enters another, whereas a single count sees only whether it counts
        # at all.
        if self.moves:
            return (2, 2) if cells else (1, 1)
        total, most = self.rows * self.scale, self.per_group * self.scale
        # Parts that are at most `most` and add up to `total` have squares that add up to at most their product.
        return total, total * most

    def sums(self, low: int, high: int, *, cells: bool) -> tuple[int, int]:
        """Return the L1 and squared L2 sensitivity of weighted sums of numbers from low to high (0 if missing)."""
        # Noise needs a positive scale, also for numbers that can only be zero.
        largest = max(abs(low), abs(high), 1)
        # A missing value counts as 0, so a replaced row can also move between 0 and either bound.
        apart = max(max(high, 0) - min(low, 0), 1)
        if self.moves and not cells:
            return apart, apart**2
        l1, squared = self.histogram(cells=cells)
        # Under replace a row may stay in its cell and change its number, which moves that cell by all of
        # `apart`; in L1, twice `largest` covers this already.
        stays = apart**2 if self.moves else 0
        return l1 * largest, max(squared * largest**2, stays)

    def ranks(self, fraction: Fraction, *, cells: bool) -> Fraction:
        """Return by how much the scores of numbers move that are ranked around a fraction of the rows."""
        total = self.rows * self.scale
        # A person's rows may be spread over groups; the moves in all of them together are those of the whole
        # weight.
        moved = max(fraction, 1 - fraction) * total
        if not self.moves:
            return moved
        # In groups a replaced row leaves one ranking and enters another, and both losses add up.
        return 2 * moved if cells else Fraction(total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The unit of privacy, the neighbor relation, and the limit on what a unit contributes.

    Attributes:
        adjacency: add_remove or replace for rows, user for persons.
        unit: "row", or what a person is called, for the guarantee.
        limit: how many rows a person counts for.
        per_group: how many rows a person counts for in one group; by default ``limit``.
        groups: how many groups a person can be counted in when groups are chosen privately or persons are counted; by
            default ``limit``.
        bounding: how the limit is kept.
        order: SQL for the order in which ``truncate`` takes the rows of a person.
        ordered: the table that has this order; rows of others come in the order of what is asked.
        assumptions: what is taken to be public about the table, for the guarantee.
    """

    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "row"
    limit: int = 1
    per_group: int | None = None
    groups: int | None = None
    bounding: str = "weight"
    order: exp.Expression | None = None
    ordered: exp.Expression | None = None
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        validation.check_choice(self.bounding, name="bounding", allowed=BOUNDINGS)
        for name in ("limit", "per_group", "groups"):
            given = getattr(self, name)
            if given is not None:
                validation.check_count(given, name=name, at_least=1)
                if given > 10**6:
                    raise ParameterError(f"{name} is above a million.", fix="limit a unit to fewer rows.")
        if self.bounding != "weight" and (self.per_group or self.groups):
            raise ParameterError(
                "A limit per group, or on groups, is kept by weighting.",
                fix='use bounding="weight", or leave the further limits out.',
            )

    @property
    def is_person(self) -> bool:
        """Return whether the unit is a person with several rows."""
        return self.adjacency is Adjacency.USER

    def describe(self) -> tuple[str, ...]:
        """Return what the guarantee assumes about contributions and the table, in words."""
        if not self.is_person:
            return self.assumptions
        kept = {
            "weight": "rows beyond that are scaled down",
            "truncate": "the first of them count",
            "sample": "a fixed sample counts",
        }
        limits = [f"each {self.unit} counts for at most {self.limit} rows ({kept[self.bounding]})"]
        if self.per_group is not None:
            limits.append(f"at most {self.per_group} of them in one group")
        if self.groups is not None:
            limits.append(f"in at most {self.groups} groups where groups are chosen or persons are counted")
        return (", ".join(limits), *self.assumptions)

    def canonical(self) -> str:
        """Return a text that is the same for the same limits."""
        return f"{self.adjacency} {self.unit} {self.limit} {self.per_group} {self.groups} {self.bounding} {self.order}"

    def reach(self, question: Question, *, largest: int = 1) -> Reach:
        """Return what one unit can change in a question whose numbers are at most ``largest`` steps."""
        if not self.is_person:
            moves = self.adjacency is Adjacency.REPLACE
            return Reach(scale=1, rows=1, per_group=1, groups=1, moves=moves, is_weighted=False)
        known = question.rows.rows_per_person
        rows = self.limit if known is None else min(known, self.limit)
        per_group = min(rows, self.per_group or rows)
        groups = min(self.groups or self.limit, rows) if known is not None else (self.groups or self.limit)
        needed = self.bounding == "weight" and (known is None or known > rows or per_group < rows)
        scale = 1
        # Finer weights round off less; the scale stops growing where a product of weights and numbers could
        # leave 64 bits.
        while needed and scale < WEIGHT_STEPS and 2 * scale * rows * max(largest, rows) <= _LARGEST:
            scale *= 2
        return Reach(scale=scale, rows=rows, per_group=per_group, groups=groups, moves=False, is_weighted=needed)


def limit_rows(
    rows: QueryRows, *, limit: int, looked_at: Sequence[exp.Expression], first_by: exp.Expression | None, sample: bool
) -> QueryRows:
    """Return rows of which each person has at most ``limit``.

    Args:
        rows: the rows.
        limit: how many rows of a person stay.
        looked_at: every value that the question looks at.
        first_by: the order in which the first rows stay.
        sample: whether an order that looks random comes first.
    """
    person = exp.Null() if rows.person is None else rows.person
    order: list[exp.Expression] = [] if first_by is None else [first_by]
    if sample:
        order.append(digest([person, *looked_at]))
    # What the question looks at comes last, so that rows which still tie are the same to it and any of them may
    # stay.
    order += looked_at
    source, kept = first_rows(rows.source, person=person, order=order, limit=limit, condition=rows.condition)
    return replace(rows, source=source, condition=kept)


def choose_limit(
    private: BudgetedTable, rows: QueryRows, *, groups: int, for_epsilon: Number, highest: int, terms: AnswerTerms
) -> Answer:
    """Return the limit that balances what it cuts off with the noise that it needs."""
    most = validation.check_count(highest, name="highest", at_least=2)
    number = validation.check_count(groups, name="groups", at_least=1)
    beyond = math.ceil(number / validation.check_epsilon(for_epsilon))
    counted = rows_per_person(rows, most)
    ends = candidates(most)
    edges = ColumnBins.of("rows per person", [1, *(end + 1 for end in ends)], StorageType.INTEGER)
    place = edges.code(exp.column("c0", quoted=True))
    of = FixedPointNumber(steps=place, unit=Fraction(1), low=0, high=len(ends) - 1, label="limit")
    question = Question(rows=counted, aggregates=(Extreme(of, largest=True, beyond=beyond),))
    answer = private.answer(question, name="limit on rows per person", terms=terms)
    return replace(answer, value=ends[answer.value], notes=(f"Limits up to {most:,} were considered.",))


def candidates(highest: int) -> list[int]:
    """Return the limits to choose from: every small one, then each a tenth larger than the one before."""
    found = [1]
    while found[-1] < highest:
        found.append(min(highest, found[-1] + max(1, found[-1] // 10)))
    return found


def rows_per_person(rows: QueryRows, highest: int) -> QueryRows:
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
    return QueryRows(
        engine=rows.engine,
        source=query.subquery(ROWS),
        person=exp.column("c1", quoted=True),
        rows_per_person=1,
    )
