"""The tables that agree with published counts, means and medians, as an integer program.

There is one whole number for each kind of person: a combination of categories and one value of the number, say the age.
It says how many such people there are, so that people of one kind need no order. Counts and means are linear in it. The
median of an odd group says how many may lie below and above. That of an even group is the mean of the two values in the
middle; which two they are is a choice of the program. Solved with HiGHS through SciPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from cloister.attacks.confidence import Floats

__all__ = ["Kinds", "Program"]

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
            weights, slack = inside * self.kinds.numbers, float(rounding * count)
            span = float(np.ptp(self.kinds.values)) or 1.0
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
