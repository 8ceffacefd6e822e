"""How much one unit of privacy can change, and how the engine keeps it to that.

Under a row unit a unit is one row. Under a person unit a person may have any number of rows, so that each person's
influence is limited to ``limit`` rows, inside the engine:

- ``weight`` (the default): every row of a person with r rows counts as min(1, limit / r), in whole steps of 2**-16
  rounded down. Nobody's rows are dropped, nothing is random, and the weights of a person add up to at most the limit.
- ``truncate``: the first rows of a person in a stated order count, the others do not.
- ``sample``: as truncate, in an order that looks random: that of a digest of the person and the row.

What a person's rows count is a function of that person's rows alone: for ``truncate`` and ``sample``, rows that tie in
the order are the same row as far as the question is concerned. So one person more or less changes the weighted rows by
that person's weight only: at most ``limit`` in all, at most ``per_group`` in one group.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from cloister.core import validation
from cloister.core.guarantees import Adjacency
from cloister.errors import ParameterError
from cloister.queries.question import Question

__all__ = ["BOUNDINGS", "Contribution", "Reach"]

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
        if self.moves:
            return (2, 2) if cells else (1, 1)
        total, most = self.rows * self.scale, self.per_group * self.scale
        return total, total * most

    def sums(self, low: int, high: int, *, cells: bool) -> tuple[int, int]:
        """Return the L1 and squared L2 sensitivity of weighted sums of numbers from low to high (0 if missing)."""
        largest = max(abs(low), abs(high), 1)
        apart = max(max(high, 0) - min(low, 0), 1)
        if self.moves and not cells:
            return apart, apart**2
        l1, squared = self.histogram(cells=cells)
        stays = apart**2 if self.moves else 0
        return l1 * largest, max(squared * largest**2, stays)


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
        while needed and scale < WEIGHT_STEPS and 2 * scale * rows * max(largest, rows) <= _LARGEST:
            scale *= 2
        return Reach(scale=scale, rows=rows, per_group=per_group, groups=groups, moves=False, is_weighted=needed)
