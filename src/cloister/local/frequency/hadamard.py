"""Hadamard response: one column of a Hadamard matrix, more often where the value's row agrees.

Acharya, Sun and Zhang (2019), in its form for high privacy: the report is a column of a matrix whose order is a power
of two above the domain size. Of the columns, half agree with the row of a value; the device chooses that half with
probability ``exp(epsilon) / (exp(epsilon) + 1)`` and a column in it uniformly. Reports have as many bits as the domain
has digits, and all supports are counted by one fast transform.

Privacy: claim epsilon-LDP. Each column has probability ``2 p / K`` or ``2 (1 - p) / K`` whatever the value.
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
from cloister.local.kernels.hadamard import order_for, parities, support_counts, with_parities
from cloister.local.output_space import Integer, OutputSpace, Payload
from cloister.local.plausibility import Test
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["HadamardResponse"]

_MOST_SYMBOLS = 2**20
"""How many different reports are counted one by one."""


@protocols.register("hadamard_response")
class HadamardResponse(SupportProtocol):
    """One column of a Hadamard matrix: tiny reports and fast estimates for very large domains (HR).

    >>> protocol = HadamardResponse(domain=range(1000), epsilon=1)
    >>> protocol.order
    1024
    """

    name = "hadamard_response"

    def __init__(self, *, domain: object = None, epsilon: object = None) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self.order = order_for(len(self.domain))
        self.truth = CERTAIN - lie_threshold(self.epsilon)
        self.output_space = OutputSpace((Integer("y", 0, self.order - 1),))
        self._check_epsilon()

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often the column agrees with the sender's row, and with any other: a half."""
        return Fraction(self.truth, CERTAIN), Fraction(1, 2)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return ``p / (1 - p)``."""
        p, _ = self.probabilities
        return p / (1 - p)

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: a toss whether to agree, a column, and its lowest digit of the row flipped if need be."""
        disagree = ~draws.chances(self.truth, len(codes))
        columns = draws.below(self.order, len(codes))
        return self.output_space.rows(y=with_parities(columns, codes, disagree.astype(np.int64)))

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each value the number of columns that agree with its row."""
        return support_counts(payload["y"].astype(np.int64), self.order, len(self.domain))

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        codes = np.arange(len(self.domain), dtype=np.int64)[None, :]
        return self._by_support(parities(payload["y"].astype(np.int64)[:, None], codes) == 0)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(2 * self.probabilities[0] / self.order)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `plausibility`."""
        half = 2 * float(self.probabilities[0]) / self.order
        low, high = np.full(self.order, 2 / self.order - half), np.full(self.order, half)
        low[0] = half
        yield partial(plausibility.supports, self)
        if self.order <= _MOST_SYMBOLS:
            yield partial(plausibility.symbols, low=low, high=high)

    def _params(self) -> dict[str, Any]:
        return {"order": self.order, "truth": str(self.truth)}
