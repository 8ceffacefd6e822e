"""Direct encoding: tell the truth with a known probability, otherwise a uniform lie.

Generalized randomized response (GRR, also k-RR; Warner 1965 for two values, Kairouz, Bonawitz and Ramage 2016): truth
with ``exp(epsilon) / (exp(epsilon) + d - 1)``, each of the d - 1 lies equally often. A lie is the true code plus a
uniform step of 1 .. d-1, modulo d; a step of 0 .. d-2 would leave out one value and prove much (epsilon infinite).

Privacy: claim epsilon-LDP. A report y has probability p under the value y and (1 - p) / (d - 1) under each other; the
threshold of p is rounded down, so that ``p (d - 1) / (1 - p) <= exp(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.local import plausibility
from cloister.local.domain import Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.estimates import Floats
from cloister.local.frequency.support import SupportProtocol
from cloister.local.output_space import Integer, OutputSpace, Payload
from cloister.local.plausibility import Test
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["DirectEncoding", "lie_or_tell", "truth_ratio"]


def lie_or_tell(codes: Codes, size: int, truth: int, draws: Draws) -> Codes:
    """Return each code, or with the rest of the truth's probability a uniform other one: one toss, then one step."""
    told = draws.chances(truth, len(codes))
    reported = codes.copy()
    lies = np.flatnonzero(~told)
    reported[lies] = (codes[lies] + 1 + draws.below(size - 1, lies.size)) % size
    return reported


def truth_ratio(truth: int, size: int) -> Fraction:
    """Return how much likelier a code is told by its owner than by anybody else, exactly."""
    told = Fraction(truth, CERTAIN)
    return told * (size - 1) / (1 - told)


@protocols.register("direct_encoding")
class DirectEncoding(SupportProtocol):
    """Tell the truth as often as epsilon allows, else a uniform lie (GRR).

    >>> protocol = DirectEncoding(domain=["red", "green", "blue"], epsilon=1)
    >>> reports = protocol.randomize(["red"] * 600 + ["blue"] * 400)
    >>> estimate = protocol.estimate(reports)
    >>> list(estimate.counts)
    ['red', 'green', 'blue']
    """

    name = "direct_encoding"

    def __init__(self, *, domain: object = None, epsilon: object = None) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self.truth = CERTAIN - lie_threshold(self.epsilon, len(self.domain) - 1)
        self.output_space = OutputSpace((Integer("y", 0, len(self.domain) - 1),))
        self._check_epsilon()

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often the truth is told, and each lie."""
        told = Fraction(self.truth, CERTAIN)
        return told, (1 - told) / (len(self.domain) - 1)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return p / q."""
        return truth_ratio(self.truth, len(self.domain))

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: a toss whether to tell the truth, then the step of the lie."""
        return self.output_space.rows(y=lie_or_tell(codes, len(self.domain), self.truth, draws))

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return how often each value was reported."""
        return np.bincount(payload["y"], minlength=len(self.domain)).astype(np.int64)

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        return self._by_support(
            payload["y"].astype(np.int64)[:, None] == np.arange(len(self.domain), dtype=np.int64)[None, :]
        )

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(max(self.probabilities))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `plausibility`."""
        yield partial(plausibility.supports, self)

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return 1

    def _params(self) -> dict[str, Any]:
        return {"truth": str(self.truth)}
