"""Census reconstruction: the people of a small block, worked out from its published counts, means and medians.

Each published number is harmless alone; together they are equations that may have one solution (Garfinkel, Abowd and
Martindale, "Understanding database reconstruction attacks on public data", 2018). The attack asks an integer program
for every table that agrees with what was published. People who are in all of these tables are certain, whatever else
the attacker does not know. With noise no table agrees, and the attacker is left with the one that disagrees least.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.attacks.auditing.outputs import plain
from cloister.attacks.confidence import binomial_interval
from cloister.attacks.interfaces.census_program import Counts, Kinds, Program
from cloister.attacks.result import AttackResult, percent
from cloister.core import exact, validation
from cloister.errors import ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from cloister.report import Section

__all__ = ["CensusReconstructionResult", "Published", "census_reconstruction"]

_MOST_PEOPLE = 12
_MOST_KINDS = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What is published about a group.

    Attributes:
        where: the categories that the group has, such as ``{"sex": "F"}``; empty for everybody.
        count: how many people there are in the group. Without it, mean and median cannot be used.
        mean: the mean of the number over the group, None where it is suppressed.
        median: the median, None where it is suppressed.
    """

    where: Mapping[str, Any] = field(default_factory=dict)
    count: object = None
    mean: object = None
    median: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusReconstructionResult(AttackResult):
    """The outcome of a census reconstruction; the success is that of one table that agrees, or disagrees least.

    Attributes:
        solutions: how many tables agree with what was published: 0 where none does.
        is_complete: whether these are all; not, if the search ended at its cap or took too long.
        certain: the share of people who are in every table that agrees, as far as it was proved.
    """

    solutions: int
    is_complete: bool
    certain: float

    @property
    def verdict(self) -> str:
        """Return a few sentences for a custodian."""
        right = f"{percent(self.success)} of the people were right, guessing gets {percent(self.baseline)}"
        if not self.solutions and not self.is_complete:
            return "The search took too long to find a table that agrees with what was published. Give it more time."
        if not self.solutions:
            return f"No table agrees with what was published. In the one that disagrees least, {right}."
        least = "" if self.is_complete else "At least "
        tables = "Exactly one table agrees" if self._is_unique else f"{least}{self.solutions:,} tables agree"
        return f"{tables} with what was published. {percent(self.certain)} of the people follow for certain; {right}."

    @property
    def _is_unique(self) -> bool:
        return self.is_complete and self.solutions == 1

    @property
    def succeeded(self) -> bool:
        """Return whether somebody follows for certain, or more people are right than guessing explains."""
        return self.certain > 0 or self.interval[0] > self.baseline

    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return a small table of (name, text) rows for a person."""
        many = f"{self.solutions:,}" if self.is_complete else f"{self.solutions:,} or more"
        further = (("tables that agree", many), ("people who follow for certain", percent(self.certain)))
        return (*AttackResult.summary(self), *further)

    def sections(self, *, level: int = 1) -> tuple[Section, ...]:
        """Return what a report says about this attack."""
        from cloister.attacks.own_facts import section_with_own_facts

        return (section_with_own_facts(self, level=level),)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values that start with a version marker; never what was learned about anybody."""
        further = {"solutions": self.solutions, "is_complete": self.is_complete, "certain": self.certain}
        return {**AttackResult.to_dict(self), **further}


def census_reconstruction(
    published: Sequence[Published],
    *,
    truth: Any,
    number: str,
    bounds: object,
    categories: Mapping[str, Sequence[Any]],
    decimals: int = 1,
    cap: int = 10,
    tolerance: object = 0,
    seconds: object = 30,
    confidence: object = 0.95,
) -> CensusReconstructionResult:
    """Return how many people of a block follow from what was published about its groups.

    Args:
        published: counts, means and medians of groups. How many people there are in all is taken to be public.
        truth: the people, one row for each, at most 12: a table, a frame or a list of dictionaries; used for scoring
            only.
        number: the column with a whole number, such as the age.
        bounds: (lower, upper) of the number, which are public.
        categories: the other columns, with the values that are possible in each.
        decimals: how many decimals the means were rounded to.
        cap: after how many tables to stop counting.
        tolerance: how far a number may be off for a person to count as found.
        seconds: how long one step of the search may take.
        confidence: the confidence of the interval of the success.
    """
    low, high = (math.floor(limit) for limit in validation.check_bounds(bounds))
    kinds = Kinds({name: _distinct(values, name) for name, values in categories.items()}, np.arange(low, high + 1))
    if len(kinds.numbers) > _MOST_KINDS:
        raise ParameterError(
            "There are too many kinds of people to search.", fix="use narrower bounds, or fewer or coarser categories."
        )
    people = _people(truth, kinds, number)
    program = Program(kinds, len(people), float(validation.check_positive(seconds, name="seconds")))
    rounding = Fraction(1, 2 * 10 ** validation.check_count(decimals, name="decimals"))
    for item in published:
        _publish(program, item, rounding)
    found = _search(program, validation.check_count(cap, name="cap", at_least=1))
    near = validation.check_non_negative(tolerance, name="tolerance")
    level = float(validation.check_confidence(confidence))
    hits = len(_matched(people, kinds, found.table, near))
    return CensusReconstructionResult(
        attack="census reconstruction",
        assumption="has the published numbers of a block, and looks for all tables that agree with them",
        success=hits / len(people),
        baseline=_baseline(people, near),
        interval=binomial_interval(hits, len(people), confidence=level),
        confidence=level,
        trials=len(people),
        queries=sum(value is not None for item in published for value in (item.count, item.mean, item.median)),
        mitigation=(
            "publish fewer numbers about small groups",
            "publish noisy numbers under one budget for all of them together",
        ),
        worst=tuple((place, 1.0) for place in _matched(people, kinds, found.certain, Fraction(0))),
        solutions=found.solutions,
        is_complete=found.is_complete,
        certain=int(found.certain.sum()) / len(people),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    table: Counts
    certain: Counts
    solutions: int
    is_complete: bool


def _search(program: Program, cap: int) -> _Found:
    """Return one table, what is in all tables, and how many there are up to a cap."""
    nobody = np.zeros(len(program.kinds.numbers), dtype=np.int64)
    try:
        table = program.solve()
    except TimeoutError:
        return _Found(table=nobody, certain=nobody, solutions=0, is_complete=False)
    if table is None:
        return _Found(table=_nearest(program, nobody), certain=nobody, solutions=0, is_complete=True)
    solutions, common, found, left = 1, table, table, program
    try:
        while True:
            left = left.forbid(found)
            other = left.solve()
            if other is None:
                return _Found(table=table, certain=common, solutions=solutions, is_complete=True)
            if solutions == cap:
                break
            solutions, common, found = solutions + 1, np.minimum(common, other), other
        certain = _in_all(program, np.minimum(common, other))
    except TimeoutError:
        certain = nobody
    return _Found(table=table, certain=certain, solutions=solutions, is_complete=False)


def _in_all(program: Program, common: Counts) -> Counts:
    """Return how many people of each kind are in every table, from those common to some."""
    while common.any():
        other = program.forbid(common).solve()
        if other is None:
            return common
        common = np.minimum(common, other)
    return common


def _nearest(program: Program, nobody: Counts) -> Counts:
    try:
        found = program.solve(soft=True)
    except TimeoutError:
        return nobody
    return nobody if found is None else found


def _publish(program: Program, item: Published, rounding: Fraction) -> None:
    categories = program.kinds.categories
    if any(name not in categories or value not in categories[name] for name, value in item.where.items()):
        raise ParameterError(
            "A published group has a column or a value that is not among the categories.",
            fix="list every column and value of the groups in categories.",
        )
    if item.count is None:
        return
    count = round(exact.number(item.count, name="count"))
    limits = int(program.kinds.values[0]), int(program.kinds.values[-1])
    given = {"mean": item.mean, "median": item.median}
    numbers = {
        name: None if value is None else float(np.clip(float(exact.number(value, name=name)), *limits))
        for name, value in given.items()
    }
    inside = program.kinds.within(item.where)
    program.publish(inside, count=min(max(count, 0), program.people), rounding=rounding, **numbers)


def _people(truth: Any, kinds: Kinds, number: str) -> list[tuple[tuple[Any, ...], int]]:
    rows = plain(truth.to_arrow() if hasattr(truth, "to_arrow") else truth)
    if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise ParameterTypeError("The people are not a table.", fix="give a table, a frame or a list of dictionaries.")
    if not 1 <= len(rows) <= _MOST_PEOPLE:
        raise ParameterError(f"A block has 1 to {_MOST_PEOPLE} people here.", fix="attack one small block at a time.")
    people = []
    for row in rows:
        kind, value = tuple(row.get(name) for name in kinds.categories), row.get(number)
        if kind not in kinds.combinations or value not in kinds.values:
            raise ParameterError(
                "Somebody has a value that is missing, outside of the bounds or not among the categories.",
                fix=f'check "{number}", its bounds and the categories; numbers are whole.',
            )
        people.append((kind, int(value)))
    return people


def _matched(
    people: Sequence[tuple[tuple[Any, ...], int]], kinds: Kinds, table: Counts, tolerance: Fraction
) -> list[int]:
    """Return the positions of the people who are in a table: as many as can be paired within the tolerance."""
    numbers = np.repeat(kinds.numbers, table).tolist()
    rows = np.repeat(np.arange(len(table)) // len(kinds.values), table).tolist()
    claimed = defaultdict(list)
    for row, value in zip(rows, numbers, strict=True):
        claimed[kinds.combinations[row]].append(value)
    found = []
    for place in sorted(range(len(people)), key=lambda place: people[place][1]):
        kind, value = people[place]
        fitting = [claim for claim in claimed[kind] if abs(claim - value) <= tolerance]
        if fitting:
            claimed[kind].remove(min(fitting))
            found.append(place)
    return sorted(found)


def _baseline(people: Sequence[tuple[tuple[Any, ...], int]], tolerance: Fraction) -> float:
    """Return the share that the best single guess gets right in hindsight."""
    alike = [
        sum(other == kind and 0 <= value - lowest <= 2 * tolerance for other, value in people)
        for kind, lowest in people
    ]
    return max(alike) / len(people)


def _distinct(values: Sequence[Any], name: str) -> tuple[Any, ...]:
    known = tuple(dict.fromkeys(values))
    if not known or len(known) < len(list(values)):
        raise ParameterError(f'"{name}" has no values, or one twice.', fix="list each possible value once.")
    return known
