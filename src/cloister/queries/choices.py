"""Private choices of a category: the most common one, the first k, or the winner of a random dictatorship.

**Most common.** Scores are how many units have a category. A person counts once for a category, however many rows say
so, and one person more or less moves every score by at most 1, whatever the number of categories per person; no limit
on rows is needed. Only the choice is released, not its score.

**Election.** Random dictatorship with phantom votes. One vote, drawn at random, decides; each alternative also has
lambda phantom votes, so that every one can win. With n_a votes of n for alternative a of m, it is elected with
probability ``(n_a + lambda) / (n + m lambda)``. Nobody can gain by voting otherwise than they prefer (Gibbard 1977
for the election without phantoms), and the winner says little about any vote. It is not a way to find the most
popular alternative: for that use `cloister.mechanisms.Select`.

Privacy: claim epsilon-DP with ``epsilon = ln(1 + 1/lambda)``, for one vote added, removed or changed. Adding a vote
for a multiplies its probability by at most ``(n_a + 1 + lambda) / (n_a + lambda) <= 1 + 1/lambda`` and divides any
other by at most ``1 + 1/(n + m lambda)``; changing a vote from b to a multiplies by at most ``(n_a + 1 + lambda) /
(n_a + lambda)`` or divides by the same with b, the total being fixed. The draw is exact; epsilon is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from cloister.accounting.budget import Budget
from cloister.accounting.events import Event
from cloister.core import exact, validation
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomSource, RandomState
from cloister.core.result import Result
from cloister.errors import MissingBoundsError, ParameterError, ParameterTypeError
from cloister.mechanisms.base import PurePromise, Selection, open_source, private_integers
from cloister.mechanisms.sampling.inversion import FixedPointInterval, search
from cloister.mechanisms.selection import Select
from cloister.queries._aggregates import CountRows
from cloister.queries._contribution import Contribution
from cloister.queries._exact_core import ExactCore
from cloister.queries._question import GroupKey, QueryRows, Question
from cloister.queries.answers import plain

__all__ = ["Choice", "Chooser", "RandomDictator", "random_dictatorship"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Result):
    """Categories that were chosen, the most common first.

    Attributes:
        name: the column.
        choices: the categories, in the order in which they were chosen.
        shortfall: how far below the best one the count of a choice may be, at 95%.
        cost: what was taken from the budget; nothing for a repeat.
        event: what ran, for the accountants.
    """

    schema: ClassVar[str] = "cloister.query_choice/1"

    name: str
    choices: tuple[Any, ...]
    shortfall: float
    cost: Budget
    event: Event = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> Any:
        """Return the first choice."""
        return self.choices[0]

    def margin(self, confidence: Number = 0.95) -> float:
        """Return how far below the best one the count of the choice may be, at 95%."""
        if validation.check_confidence(confidence) != Fraction(19, 20):
            raise ParameterError("A choice knows its shortfall at 95% only.", fix="leave the confidence out.")
        return self.shortfall

    def __str__(self) -> str:
        listed = ", ".join(map(str, self.choices))
        return f"{listed} (each within {self.shortfall:,.0f} of the best count, 95%), {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "choices": [plain(choice) for choice in self.choices],
            "shortfall": {"confidence": 0.95, "count": self.shortfall},
            "cost": self.cost.to_dict(),
            "event": self.event.to_dict(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Chooser:
    """A choice of k categories, each at an equal share of epsilon, without putting any back."""

    rows: QueryRows
    key: GroupKey
    k: int
    epsilon: Fraction
    method: str
    contribution: Contribution

    def __post_init__(self) -> None:
        if self.key.values is None:
            raise MissingBoundsError(
                f'The categories of "{self.key.name}" are not public, and taking them from the data would reveal rare '
                "ones.",
                fix=f'state them: schema.with_categories("{self.key.name}", [...]) or values=[...].',
            )
        size = len(self.key.values)
        if self.k > size:
            raise ParameterError(
                f'"{self.key.name}" has {size} categories, fewer than k = {self.k}.', fix=f"ask for k <= {size}."
            )
        self.mechanism(size)  # refuses a method or price that cannot be, before anything is paid

    @property
    def labels(self) -> tuple[Any, ...]:
        """Return the candidates."""
        return self.key.shown or ()

    def mechanism(self, candidates: int) -> Select:
        """Return one round of the choice."""
        return Select(
            candidates=tuple(range(candidates)),
            score_sensitivity=exact.number(1),
            epsilon=self.epsilon / self.k,
            # A unit that joins lowers no score, which needs half the noise; a replaced one raises one score and
            # lowers another.
            monotone=self.contribution.adjacency != "replace",
            method=self.method,
            adjacency=self.contribution.adjacency,
            unit=self.contribution.unit,
        )

    @property
    def shortfall(self) -> float:
        """Return how far below the best one the count of a choice may be, each at 95%."""
        return self.mechanism(len(self.labels)).shortfall(0.05)

    def canonical(self) -> str:
        """Return a text that is the same for the same choice."""
        return f"{self.rows} || {self.key} || {self.k} {self.method}"

    def measure(self, source: RandomSource) -> list[int]:
        """Return the positions of the choices. The budget must have been charged before."""
        question = Question(rows=self.rows, aggregates=(CountRows(),), keys=(self.key,))
        core = ExactCore(question, self.contribution, self.contribution.reach(question))
        scores = core.units()
        left = list(range(len(scores)))
        chosen = []
        for _ in range(self.k):
            index = self.mechanism(len(left)).release(np.asarray(scores)[left], random_state=source).index
            chosen.append(left.pop(index))
        return chosen


_PHANTOM_BITS = 64
_RELATIONS = (Adjacency.ADD_REMOVE, Adjacency.REPLACE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomDictator(PurePromise):
    """Elects one of several public alternatives by one vote drawn at random, phantom votes included.

    Give ``phantom``, the phantom votes of each alternative, or ``epsilon``; the other follows.

    >>> vote = RandomDictator(alternatives=["yes", "no"], phantom=1)
    >>> vote.probabilities([3, 1])
    (Fraction(2, 3), Fraction(1, 3))
    >>> round(float(vote.epsilon), 6)
    0.693147
    """

    alternatives: tuple[Any, ...]
    phantom: Fraction = None  # type: ignore[assignment]  # set below
    epsilon: Fraction = None  # type: ignore[assignment]  # set below
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = "vote"

    def __init__(
        self,
        *,
        alternatives: Sequence[Any],
        phantom: Number | None = None,
        epsilon: Number | None = None,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = "vote",
    ) -> None:
        construct(self, alternatives=alternatives, phantom=phantom, epsilon=epsilon, adjacency=adjacency, unit=unit)

    def __post_init__(self) -> None:
        _check_alternatives(self.alternatives)
        object.__setattr__(self, "alternatives", tuple(self.alternatives))
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        if self.adjacency not in _RELATIONS:
            raise ParameterError(
                f"An election has no neighbors under {self.adjacency}.", fix='use adjacency="add_remove" or "replace".'
            )
        given = {name: getattr(self, name) for name in ("phantom", "epsilon") if getattr(self, name) is not None}
        if len(given) != 1:
            raise ParameterError(
                "How private the election should be is not said once.", fix="give either phantom= or epsilon=."
            )
        if "epsilon" in given:
            epsilon = validation.check_epsilon(self.epsilon)
            phantom = _phantom(epsilon)
        else:
            phantom = validation.check_positive(self.phantom, name="phantom")
            epsilon = exact.log_bounds(1 + 1 / phantom)[1]
        object.__setattr__(self, "phantom", phantom)
        object.__setattr__(self, "epsilon", epsilon)

    def probabilities(self, counts: object) -> tuple[Fraction, ...]:
        """Return the exact probability that each alternative wins: private, for tests and teaching."""
        votes = self._votes(counts)
        total = sum(votes) + len(votes) * self.phantom
        return tuple((count + self.phantom) / total for count in votes)

    def release(self, counts: object, *, random_state: RandomState = None) -> Selection:
        """Return the winner, for private numbers of votes in the order of the alternatives."""
        source, guarantee = open_source(random_state, self.guarantee)
        cumulative = list(accumulate(self.probabilities(counts)))
        index = search(source, lambda k, bits: FixedPointInterval.of(cumulative[k], bits), len(cumulative) - 1)
        return Selection(index=index, choice=self.alternatives[index], guarantee=guarantee, event=self.event)

    def _votes(self, counts: object) -> list[int]:
        array = private_integers(counts)
        if array.shape != (len(self.alternatives),):
            raise ParameterError(
                f"There are {len(self.alternatives)} alternatives, but the votes have another shape.",
                fix="pass one number of votes for each alternative, in the same order.",
            )
        votes: list[int] = array.tolist()
        if min(votes) < 0:
            raise ParameterError("A number of votes is negative.", fix="pass the numbers of votes as counted.")
        return votes


def random_dictatorship(
    votes: Mapping[Any, int], *, phantom: object = None, epsilon: Number | None = None, random_state: RandomState = None
) -> Selection:
    """Return the winner among *all* public alternatives, given with their private numbers of votes.

    An alternative without votes must be listed too: leaving it out would tell that nobody voted for it.

    >>> random_dictatorship({"yes": 3, "no": 1}, phantom=1).choice in ("yes", "no")
    True
    """
    if not isinstance(votes, Mapping):
        raise ParameterTypeError("The votes are not a dictionary.", fix='write votes={"yes": 3, "no": 1}.')
    mechanism = RandomDictator(alternatives=tuple(votes), phantom=phantom, epsilon=epsilon)  # type: ignore[arg-type]
    return mechanism.release(list(votes.values()), random_state=random_state)


def _phantom(epsilon: Fraction) -> Fraction:
    """Return ``1 / (exp(epsilon) - 1)``, rounded up to 64 significant bits; ``exp(epsilon) - 1`` is above epsilon."""
    exactly = 1 / max(exact.exp_bounds(epsilon, digits=60)[0] - 1, epsilon)
    step = exact.power_of_two_below(exactly) / 2**_PHANTOM_BITS
    return Fraction(math.ceil(exactly / step) * step)


def _check_alternatives(alternatives: object) -> None:
    if isinstance(alternatives, str) or not isinstance(alternatives, Sequence):
        raise ParameterTypeError("The alternatives are not a list.", fix='write alternatives=["yes", "no"].')
    if not alternatives:
        raise ParameterError("There are no alternatives.", fix="declare the public list of what may be elected.")
