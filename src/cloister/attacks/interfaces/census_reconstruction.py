"""Census reconstruction: the people of a small block, worked out from its published counts, means and medians.

Each published number is harmless alone; together they are equations that may have one solution (Garfinkel, Abowd and
Martindale, "Understanding database reconstruction attacks on public data", 2018). The attack asks an integer program
for every table that agrees with what was published. People who are in all of these tables are certain, whatever else
the attacker does not know. With noise no table agrees, and the attacker is left with the one that disagrees least.

The program has one whole number for each kind of person: a combination of categories and one value of the number, say
the age. It says how many such people there are, so that people of one kind need no order. Counts and means are linear
in it. The median of an odd group says how many may lie below and above. That of an even group is the mean of the two
values in the middle; which two they are is a choice of the program. Solved with HiGHS through SciPy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from cloister.attacks.auditing.features import plain
from cloister.attacks.details import AttackDetails, Row
from cloister.attacks.result import AttackResult
from cloister.core import exact, validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["CensusReconstructionDetails", "Kinds", "Program", "Published", "census_reconstruction"]


Counts = NDArray[np.int64]
_INFEASIBLE = 2


@dataclass(frozen=True, slots=True)
class Kinds:
    """All kinds of people: each combination of categories with each value of the number."""

    categories: Mapping[str, Sequence[Any]]
    values: NDArray[np.int64]

    @property
    def combinations(self) -> list[tuple[Any, ...]]:
        """Return the combinations of categories, in order."""
        return list(product(*self.categories.values()))

    @property
    def numbers(self) -> Counts:
        """Return the number of each kind."""
        return np.tile(self.values, len(self.combinations))

    def within(self, where: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which kinds are in a group."""
        names = list(self.categories)
        inside = [all(row[names.index(name)] == value for name, value in where.items()) for row in self.combinations]
        return np.repeat(np.array(inside, dtype=np.bool_), len(self.values))


@dataclass(slots=True)
class Program:
    """Linear conditions on the numbers of people of each kind.

    A published condition is *soft*: where nothing agrees with all of them, as with noise, the table is found that
    breaks them least.
    """

    kinds: Kinds
    people: int
    seconds: float
    _rows: list[tuple[Floats, dict[int, float], float, float, float]] = field(default_factory=list)
    _choices: int = 0

    def __post_init__(self) -> None:
        if not self._rows:
            self._condition(np.ones(len(self.kinds.numbers)), low=self.people, high=self.people, cost=0)

    def publish(self, inside: NDArray[np.bool_], *, count: int, mean: Any, median: Any, rounding: Fraction) -> None:
        """Add what is published about a group; None for what is not."""
        self._condition(inside, low=count, high=count)
        if mean is not None and count:
            # The total is off by at most what one mean was rounded by, times the count.
            weights, slack = inside * self.kinds.numbers, float(rounding * count)
            span = float(np.ptp(self.kinds.values)) or 1.0
            # Weighed by the range, one person moved all the way across costs as much as a count that is off by
            # one.
            self._condition(weights, low=count * mean - slack, high=count * mean + slack, cost=1 / span)
        if median is not None and count:
            self._median(inside, count, float(median))

    def solve(self, *, soft: bool = False) -> Counts | None:
        """Return how many people there are of each kind in one table that agrees, None if there is none.

        Raises:
            TimeoutError: if it takes too long to tell.
        """
        matrix, low, high = self._matrix()
        kinds, width = len(self.kinds.numbers), matrix.shape[1]
        cost, upper = np.zeros(width), np.ones(width)
        upper[:kinds] = self.people
        whole = np.ones(width)
        if soft:
            prices = np.array([row[4] for row in self._rows])
            slack = sparse.diags_array((prices > 0).astype(np.float64), format="csr")
            matrix = sparse.hstack([matrix, slack, -slack], format="csr")
            cost = np.concatenate([cost, prices, prices])
            upper = np.concatenate([upper, np.full(2 * len(prices), np.inf)])
            whole = np.concatenate([whole, np.zeros(2 * len(prices))])
        found = optimize.milp(
            cost,
            constraints=optimize.LinearConstraint(matrix, low, high),
            integrality=whole,
            bounds=optimize.Bounds(0, upper),
            options={"time_limit": self.seconds},
        )
        if found.x is None and found.status != _INFEASIBLE:
            raise TimeoutError
        return None if found.x is None else np.rint(found.x[:kinds]).astype(np.int64)

    def forbid(self, at_least: Counts) -> Program:
        """Return the program without the tables that have at least so many people of each kind."""
        after = Program(self.kinds, self.people, self.seconds, list(self._rows), self._choices)
        places = np.flatnonzero(at_least)
        fewer = after._choose(len(places))
        for place, choice in zip(places, fewer, strict=True):
            one = np.zeros(len(self.kinds.numbers))
            one[place] = 1
            # With its choice at 1 the bound is one less than the forbidden number; at 0 it says nothing.
            after._condition(one, {choice: self.people - at_least[place] + 1}, high=self.people, cost=0)
        after._condition(np.zeros(len(self.kinds.numbers)), dict.fromkeys(fewer, 1.0), low=1, cost=0)
        return after

    def _median(self, inside: NDArray[np.bool_], count: int, median: float) -> None:
        numbers, half = self.kinds.numbers, count // 2
        if count % 2:
            middle = round(median)
            self._condition(inside & (numbers < middle), high=half)
            self._condition(inside & (numbers > middle), high=half)
            return
        twice = round(2 * median)
        lowest, highest = int(self.kinds.values[0]), int(self.kinds.values[-1])
        pairs = [(low, twice - low) for low in range(lowest, twice // 2 + 1) if twice - low <= highest]
        # Pairs come widest first. Who is beyond the ends of a wide pair is beyond those of a narrow one as
        # well, so that each condition below holds for several choices and the linear relaxation stays tight.
        chosen = self._choose(len(pairs))
        self._condition(np.zeros(len(numbers)), dict.fromkeys(chosen, 1.0), low=1, high=1, cost=0)
        for place, (low, high) in enumerate(pairs):
            wider, as_wide = chosen[:place], chosen[: place + 1]
            for beyond in (numbers < low, numbers > high):
                self._condition(inside & beyond, dict.fromkeys(wider, -(half + 1)), high=half - 1)
            for reached in (numbers <= low, numbers >= high):
                self._condition(inside & reached, dict.fromkeys(as_wide, -half), low=0)

    def _choose(self, many: int) -> list[int]:
        """Return the columns of new variables that are 0 or 1."""
        first = len(self.kinds.numbers) + self._choices
        self._choices += many
        return list(range(first, first + many))

    def _condition(
        self,
        weights: NDArray[Any],
        further: dict[int, Any] | None = None,
        *,
        low: float = -np.inf,
        high: float = np.inf,
        cost: float = 1.0,
    ) -> None:
        self._rows.append((np.asarray(weights, dtype=np.float64), further or {}, float(low), float(high), cost))

    def _matrix(self) -> tuple[Any, Floats, Floats]:
        kinds = len(self.kinds.numbers)
        further = sparse.lil_array((len(self._rows), self._choices))
        for number, row in enumerate(self._rows):
            for column, weight in row[1].items():
                further[number, column - kinds] = weight
        given = sparse.csr_array(np.array([row[0] for row in self._rows]))
        low, high = (np.array([row[place] for row in self._rows]) for place in (2, 3))
        return sparse.hstack([given, further.tocsr()], format="csr"), low, high


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
class CensusReconstructionDetails(AttackDetails):
    """What a census reconstruction found; the success is that of one table that agrees, or disagrees least.

    Attributes:
        solutions: how many tables agree with what was published: 0 where none does.
        is_complete: whether these are all; not, if the search ended at its cap or took too long.
        certain: the share of people who are in every table that agrees, as far as it was proved.
    """

    solutions: int
    is_complete: bool
    certain: float

    def conclude(self, result: AttackResult, /) -> str:
        """Return how many tables agree, and what that says about people."""
        right = f"{percent(result.success)} of the people were right, guessing gets {percent(result.baseline)}"
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

    def judge(self, result: AttackResult, /) -> bool:
        """Return whether somebody follows for certain, or more people are right than guessing explains."""
        return self.certain > 0 or result.interval[0] > result.baseline

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return how many tables agree, and how many people follow from them."""
        yield "tables that agree", f"{self.solutions:,}" if self.is_complete else f"{self.solutions:,} or more"
        yield "people who follow for certain", percent(self.certain)


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
    confidence: Number = 0.95,
) -> AttackResult[CensusReconstructionDetails]:
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
    hits = len(_match_people(people, kinds, found.table, near))
    return AttackResult(
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
        worst=tuple((place, 1.0) for place in _match_people(people, kinds, found.certain, Fraction(0))),
        details=CensusReconstructionDetails(
            solutions=found.solutions,
            is_complete=found.is_complete,
            certain=int(found.certain.sum()) / len(people),
        ),
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
            # All tables have the same number of people, so that forbidding at least these rows forbids exactly
            # this table.
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
        # A table that lacks some of them shows that not all are common; where there is none, they are in every
        # table.
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
    # Noise may have pushed a published number out of what is possible.
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


def _match_people(
    people: Sequence[tuple[tuple[Any, ...], int]], kinds: Kinds, table: Counts, tolerance: Fraction
) -> list[int]:
    """Return the positions of the people who are in a table: as many as can be paired within the tolerance."""
    numbers = np.repeat(kinds.numbers, table).tolist()
    rows = np.repeat(np.arange(len(table)) // len(kinds.values), table).tolist()
    claimed = defaultdict(list)
    for row, value in zip(rows, numbers, strict=True):
        claimed[kinds.combinations[row]].append(value)
    found = []
    # In ascending order, each taking the smallest claim that fits, as many people as possible are paired.
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
