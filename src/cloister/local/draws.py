"""The random decisions of a device: coin tosses by integer threshold, uniform integers, and picks from a row.

Every protocol decides with these alone, in an order that is part of its version: the same words give the same
report in Python and in the browser. `SourceDraws` takes the words from a random source. `law_of` instead follows every
path of a device's decisions and adds up exact probabilities, so that a protocol's law is read off its code.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloister.core import random
from cloister.core.random import RandomSource, Words
from cloister.errors import InternalError
from cloister.mechanisms.transitions import Thresholds, pick_codes, quantized_matrix

__all__ = ["CERTAIN", "Draws", "SourceDraws", "law_of", "source_of"]

CERTAIN = 2**64
"""The threshold of a coin that always falls on its true side."""

_Output = TypeVar("_Output", bound=Hashable)


class Draws(Protocol):
    """The random decisions that a device may take."""

    def chances(self, threshold: int | Words, count: int) -> NDArray[np.bool_]:
        """Return tosses, each true with probability ``threshold / 2**64``."""
        ...

    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        """Return uniform integers in [0, bound)."""
        ...

    def picks(self, codes: NDArray[np.int64], thresholds: Thresholds) -> NDArray[np.int64]:
        """Return for each code a category from its row of cumulative thresholds; see `transitions.pick_codes`."""
        ...


class SourceDraws:
    """Decisions from a random source: one word for a toss, one (rarely more) for an integer."""

    def __init__(self, source: RandomSource) -> None:
        self.source = source

    def chances(self, threshold: int | Words, count: int) -> NDArray[np.bool_]:
        """Return tosses, each true with probability ``threshold / 2**64``."""
        return random.chances(self.source, threshold, count)

    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        """Return uniform integers in [0, bound)."""
        return random.integers_below(self.source, bound, count)

    def picks(self, codes: NDArray[np.int64], thresholds: Thresholds) -> NDArray[np.int64]:
        """Return for each code a category from its row of cumulative thresholds: one word each."""
        return pick_codes(codes, thresholds, self.source.words(len(codes)))


def source_of(draws: Draws) -> RandomSource:
    """Return the random source of draws, for samplers that are exact in themselves, such as discrete Laplace noise."""
    if not isinstance(draws, SourceDraws):
        raise InternalError("this device's law cannot be followed decision by decision")
    return draws.source


class _Path:
    """Decisions that follow a list of choices, then always the first possible one."""

    def __init__(self, choices: list[int]) -> None:
        self.choices = choices
        self.options: list[list[Fraction]] = []
        self.probability = Fraction(1)

    def chances(self, threshold: int | Words, count: int) -> NDArray[np.bool_]:
        thresholds = [threshold] * count if isinstance(threshold, int) else [int(each) for each in threshold]
        if len(thresholds) != count:
            raise InternalError("a device gave another number of thresholds than of tosses")
        return np.array([self._choose(_coin(each)) == 0 for each in thresholds], dtype=np.bool_)

    def below(self, bound: int, count: int) -> NDArray[np.int64]:
        return np.array([self._choose([Fraction(1, bound)] * bound) for _ in range(count)], dtype=np.int64)

    def picks(self, codes: NDArray[np.int64], thresholds: Thresholds) -> NDArray[np.int64]:
        matrix = quantized_matrix(thresholds)
        return np.array([self._choose(list(matrix[code])) for code in codes.tolist()], dtype=np.int64)

    def _choose(self, options: list[Fraction]) -> int:
        step = len(self.options)
        # Beyond the given choices the first possible outcome is taken and noted, so that `next` can go on from it.
        if step == len(self.choices):
            self.choices.append(_next_possible(options, 0))
        self.options.append(options)
        self.probability *= options[self.choices[step]]
        return self.choices[step]

    def next(self) -> list[int] | None:
        """Return the choices of the next path, or None after the last."""
        # Depth first: the last decision with another outcome left changes, and everything behind it is decided anew.
        for step in reversed(range(len(self.choices))):
            following = _next_possible(self.options[step], self.choices[step] + 1)
            if following < len(self.options[step]):
                return [*self.choices[:step], following]
        return None


def law_of(device: Callable[[Draws], _Output]) -> dict[_Output, Fraction]:
    """Return the exact probability of every output of a device, by following all its decisions.

    Args:
        device: a function from draws to an output; it must take no randomness from elsewhere.
    """
    law: dict[_Output, Fraction] = {}
    choices: list[int] | None = []
    while choices is not None:
        path = _Path(choices)
        output = device(path)
        law[output] = law.get(output, Fraction(0)) + path.probability
        choices = path.next()
    return law


def _coin(threshold: int) -> list[Fraction]:
    return [Fraction(threshold, CERTAIN), Fraction(CERTAIN - threshold, CERTAIN)]


def _next_possible(options: list[Fraction], start: int) -> int:
    # Impossible outcomes are no paths: a coin that is certain must not double the work.
    return next((place for place in range(start, len(options)) if options[place]), len(options))
