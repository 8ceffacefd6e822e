"""A private election: random dictatorship with phantom votes.

One vote, drawn at random, decides; each alternative also has lambda phantom votes, so that every one can win. With n_a
votes of n for alternative a of m, it is elected with probability ``(n_a + lambda) / (n + m lambda)``. Nobody can gain
by voting otherwise than they prefer (Gibbard 1977 for the election without phantoms), and the winner says little about
any vote. It is not a way to find the most popular alternative: for that use `cloister.mechanisms.Select`.

Privacy: claim epsilon-DP with ``epsilon = ln(1 + 1/lambda)``, for one vote added, removed or changed. Adding a vote for
a multiplies its probability by at most ``(n_a + 1 + lambda) / (n_a + lambda) <= 1 + 1/lambda`` and divides any
other by at most ``1 + 1/(n + m lambda)``; changing a vote from b to a multiplies by at most ``(n_a + 1 + lambda) / (n_a
+ lambda)`` or divides by the same with b, the total being fixed. The draw is exact; epsilon is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from cloister.core import exact, validation
from cloister.core.guarantees import Adjacency
from cloister.core.random import RandomState
from cloister.errors import ParameterError, ParameterTypeError
from cloister.mechanisms.base import PurePromise, Selection, open_source, private_integers
from cloister.mechanisms.sampling.fixed import Interval
from cloister.mechanisms.sampling.inversion import search

__all__ = ["RandomDictator", "random_dictatorship"]

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
        index = search(source, lambda k, bits: Interval.of(cumulative[k], bits), len(cumulative) - 1)
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
    votes: Mapping[Any, int], *, phantom: object = None, epsilon: object = None, random_state: RandomState = None
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
