"""Subset selection: report a set of values of fixed size, which holds the sender's own more often than the others.

Ye and Barg (2018); Wang et al. (2019): sets of about ``d / (exp(epsilon) + 1)`` values have the smallest variance
of all protocols for every domain size. A set of size k holds the own value with probability
``k exp(epsilon) / (k exp(epsilon) + d - k)``; the others are drawn uniformly.

Privacy: claim epsilon-LDP. There are ``C(d-1, k-1)`` sets with a value and ``C(d-1, k)`` without, equally likely in
each group, so that a set's probabilities under two values have ratio ``p (d - k) / ((1 - p) k) <= exp(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import comb, log
from typing import Any

import numpy as np

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.validation import check_count
from cloister.errors import ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Bits, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.frequency.support import BitProtocol
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["SubsetSelection"]


@protocols.register("subset_selection")
class SubsetSelection(BitProtocol):
    """A set of values of fixed size: the smallest variance for every domain size and epsilon (SS).

    Attributes:
        size: how many values a report holds; by default the number of smallest variance.

    >>> SubsetSelection(domain=range(15), epsilon=1).size
    4
    """

    name = "subset_selection"

    def __init__(
        self, *, domain: Answers | None = None, epsilon: Number | None = None, size: int | None = None
    ) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self._chosen = size
        self.size = self._best_size() if size is None else self._check_size(size)
        others = len(self.domain) - self.size
        self.truth = CERTAIN - lie_threshold(self.epsilon, Fraction(others, self.size))
        self.output_space = OutputSpace((Bits("bits", len(self.domain), ones=self.size),))
        self._check_epsilon()

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often the set holds the sender's value, and any other value."""
        told = Fraction(self.truth, CERTAIN)
        return told, (self.size - told) / (len(self.domain) - 1)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the ratio of the probabilities of a set with a value and without."""
        told = Fraction(self.truth, CERTAIN)
        return told * (len(self.domain) - self.size) / ((1 - told) * self.size)

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: a toss for the own value, then one draw for each other value, in domain order.

        Another value is taken if its draw below the number of values left is below the number of places left.
        """
        told = draws.chances(self.truth, len(codes))
        room = self.size - told.astype(np.int64)
        chosen = np.zeros((len(codes), len(self.domain)), dtype=np.bool_)
        chosen[np.arange(len(codes)), codes] = told
        for step in range(len(self.domain) - 1):
            # The own value is stepped over: the toss has decided about it.
            places = step + (step >= codes)
            taken = draws.below(len(self.domain) - 1 - step, len(codes)) < room
            chosen[np.arange(len(codes)), places] = taken
            room -= taken
        return self.output_space.rows(bits=np.packbits(chosen, axis=1, bitorder="little"))

    def _best_size(self) -> int:
        """Return the better of the whole numbers around ``d / (exp(epsilon) + 1)``, by the variance for rare values."""
        count, growth = len(self.domain), float(exact.exp_bounds(self.epsilon)[0])
        near = max(1, int(count / (growth + 1)))
        return min((near, min(near + 1, count - 1)), key=lambda size: _variance(size, count, growth))

    def _check_size(self, size: int) -> int:
        if check_count(size, name="size", at_least=1) >= len(self.domain):
            raise ParameterError("A set of all values tells nothing.", fix=f"use size <= {len(self.domain) - 1}.")
        return size

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        p, size = self.probabilities[0], len(self.domain)
        with_own = log(p) - log(comb(size - 1, self.size - 1))
        without = log(1 - p) - log(comb(size - 1, self.size))
        return max(with_own, without)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        p, q = map(float, self.probabilities)
        size, places = len(self.domain), self.size
        yield partial(plausibility.supports, self)
        if size > 2:
            # Given whether the own value is in, the other places are a uniform set of the other values.
            others = (size - 1) * (size - 2)
            neither = (p * (places - 1) * (places - 2) + (1 - p) * places * (places - 1)) / others
            one = p * (places - 1) / (size - 1)
            yield partial(plausibility.pairs, size=size, p=p, q=q, neither=neither, one=one)

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return self.size

    def _options(self) -> dict[str, Any]:
        return {} if self._chosen is None else {"size": self._chosen}

    def _params(self) -> dict[str, Any]:
        return {"size": self.size, "truth": str(self.truth)}


def _variance(size: int, count: int, growth: float) -> float:
    p = size * growth / (size * growth + count - size)
    q = (size - p) / (count - 1)
    return q * (1 - q) / (p - q) ** 2
