"""Hadamard response: one column of a Hadamard matrix, more often where the value's row agrees.

Acharya, Sun and Zhang (2019), in its form for high privacy: the report is a column of a matrix whose order is a power
of two above the domain size. Of the columns, half agree with the row of a value; the device chooses that half with
probability ``exp(epsilon) / (exp(epsilon) + 1)`` and a column in it uniformly. Reports have as many bits as the domain
has digits, and all supports are counted by one fast transform.

The matrix is of Sylvester's kind. The entry in row r and column j is -1 to the number of ones in ``r & j``. Value v has
row v + 1: row 0 is constant and would tell nothing. Every other row has as many entries +1 as -1, and any two rows
agree in exactly half of the columns. A report is a column; it supports v when the entry there is +1. The supports of
all values together are one fast Walsh transform of the counts of columns, ``order * log2(order)`` additions (Acharya,
Sun and Zhang 2019).

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

from cloister.core import validation
from cloister.core.exact import Number
from cloister.errors import ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.estimates import Floats
from cloister.local.frequency.support import SupportProtocol, not_countable
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["HadamardResponse"]


Integers = NDArray[np.int64]

LARGEST_ORDER = 2**32
"""Half-words hold a column."""

_FOLDS = (16, 8, 4, 2, 1)


def order_for(domain_size: int) -> int:
    """Return the smallest power of two above a domain size.

    >>> order_for(127), order_for(128)
    (128, 256)
    """
    size = validation.check_count(domain_size, name="domain_size", at_least=1)
    order = 1 << size.bit_length()
    if order > LARGEST_ORDER:
        raise ParameterError("Hadamard response takes domains below 2**32 values.", fix="use a smaller domain.")
    return order


def parities(columns: Integers, codes: Integers) -> Integers:
    """Return 0 where the entry of a value's row in a column is +1, and 1 where it is -1."""
    return _parities(columns & (codes + 1))


def signs(columns: Integers, codes: Integers) -> Integers:
    """Return the entries, +1 or -1, of the values' rows in columns."""
    return 1 - 2 * parities(columns, codes)


def with_parities(columns: Integers, codes: Integers, wanted: Integers) -> Integers:
    """Return uniform columns moved to where the values' rows have the wanted parities, 0 or 1.

    A column on the wrong side has one bit flipped, the lowest one of the value's row. Flipping it pairs the columns of
    the two sides one to one, so that a uniform column becomes uniform on the wanted side.
    """
    rows = codes + 1
    flips = _parities(columns & rows) ^ wanted
    rows &= -rows
    rows *= flips
    return columns ^ rows


def walsh_transform(counts: Integers) -> None:
    """Replace a vector whose length is a power of two by its product with the Hadamard matrix, in place.

    Twice in a row it multiplies by the length. Sums must fit 64 bits: the absolute values must not add up to 2**63.
    """
    order = counts.size
    if counts.ndim != 1 or order & (order - 1) or not order:
        raise ParameterError("The length of the vector is not a power of two.", fix="pad it with zeros.")
    half = 1
    while half < order:
        pairs = counts.reshape(-1, 2, half)
        left, right = pairs[:, 0], pairs[:, 1]
        # Both in place, without a third array: the sum, and from it twice the right half less, which is the difference.
        left += right
        right *= -2
        right += left
        half *= 2


def support_counts(columns: Integers, order: int, domain_size: int) -> Integers:
    """Return, for each code below the domain size, how many reports support it.

    Raises:
        ParameterError: if a report lies outside the output space, or the order does not suit the domain.
    """
    if order & (order - 1) or not validation.check_count(domain_size, name="domain_size", at_least=1) < order:
        raise ParameterError("The order is no power of two above the domain.", fix="use order_for(domain_size).")
    if columns.size and not 0 <= int(columns.min()) <= int(columns.max()) < order:
        raise ParameterError("A report lies outside the output space.", fix="validate reports before counting.")
    counts = np.bincount(columns, minlength=order)
    walsh_transform(counts)
    # Agreeing less disagreeing columns, plus all of them, is twice the agreeing ones: exact in integers.
    return (counts[1 : domain_size + 1] + columns.size) // 2


def _parities(numbers: Integers) -> Integers:
    """Return the parities of the numbers of ones in numbers from 0 up to 2**32."""
    if hasattr(np, "bitwise_count"):
        return (np.bitwise_count(numbers) & np.uint8(1)).astype(np.int64)
    return _fold_parities(numbers)


def _fold_parities(numbers: Integers) -> Integers:
    """Return parities where NumPy, before its version 2, cannot count ones."""
    folded = numbers ^ (numbers >> 32)
    for shift in _FOLDS:
        folded ^= folded >> shift
    folded &= 1
    return folded


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
    fits_choices = True
    in_browsers = True

    def __init__(self, *, domain: Answers | None = None, epsilon: Number | None = None) -> None:
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

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:  # noqa: ARG002  # as that of all protocols
        """Refuse: reports are counted by one transform of them all, not one by one."""
        raise not_countable()

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each value the number of columns that agree with its row."""
        return support_counts(payload["y"].astype(np.int64), self.order, len(self.domain))

    def score_readings(self, payload: Payload, scores: Floats) -> None:  # as that of all protocols
        """Return None: a column agrees with half of all values, and the least variance of that is not stated."""

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        codes = np.arange(len(self.domain), dtype=np.int64)[None, :]
        return self._by_support(parities(payload["y"].astype(np.int64)[:, None], codes) == 0)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(2 * self.probabilities[0] / self.order)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        half = 2 * float(self.probabilities[0]) / self.order
        low, high = np.full(self.order, 2 / self.order - half), np.full(self.order, half)
        # Column 0 agrees with every row, so that its probability is the same whatever people's values are.
        low[0] = half
        yield partial(plausibility.supports, self)
        if self.order <= _MOST_SYMBOLS:
            yield partial(plausibility.symbols, low=low, high=high)

    def _params(self) -> dict[str, Any]:
        return {"order": self.order, "truth": str(self.truth)}
