"""Local hashing: hash the value with a random function of the sender's own, then tell the hash by direct encoding.

Optimized local hashing (OLH; Wang, Blocki, Li and Jha 2017): about ``exp(epsilon) + 1`` buckets, the variance of
optimized unary encoding, and a report of three small numbers however large the domain. The functions are affine over a
prime field, see `_affine_hashing`: exactly pairwise independent, so that estimates are exactly unbiased.

Privacy: claim epsilon-LDP. The function is drawn without looking at the value, and given the function the bucket is
told by direct encoding, of ratio ``p (g - 1) / (1 - p) <= exp(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.validation import check_count
from cloister.errors import ParameterError
from cloister.local import _plausibility as plausibility
from cloister.local._affine_hashing import hash_codes, prime_for, support_counts, support_probabilities
from cloister.local._output_space import Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.estimates import Floats
from cloister.local.frequency.randomized_response import lie_or_tell, truth_ratio
from cloister.local.frequency.support import SupportProtocol
from cloister.local.protocol import lie_threshold, protocols

__all__ = ["OptimizedLocalHashing", "best_buckets", "check_buckets"]


_MOST_BUCKETS = 2**20


@protocols.register("optimized_local_hashing")
class OptimizedLocalHashing(SupportProtocol):
    """A random hash of the value, told by direct encoding: small reports for large domains (OLH).

    Attributes:
        buckets: the number of hash values; by default the one of smallest variance. 2 is binary local hashing.
        prime: the size of the field that the functions are affine over.

    >>> protocol = OptimizedLocalHashing(domain=range(1000), epsilon=1)
    >>> protocol.buckets
    4
    """

    name = "optimized_local_hashing"
    fits_choices = True
    in_browsers = True

    def __init__(
        self, *, domain: Answers | None = None, epsilon: Number | None = None, buckets: int | None = None
    ) -> None:
        super().__init__(domain=domain, epsilon=epsilon)
        self._chosen = buckets
        self.buckets = best_buckets(self.epsilon) if buckets is None else check_buckets(buckets)
        self.prime = prime_for(len(self.domain), self.buckets)
        self.truth = CERTAIN - lie_threshold(self.epsilon, self.buckets - 1)
        last = self.prime - 1
        self.output_space = OutputSpace(
            (Integer("a", 0, last), Integer("b", 0, last), Integer("y", 0, self.buckets - 1))
        )
        self._check_epsilon()

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often the sender's value is in the told bucket, and any other value."""
        return support_probabilities(self.prime, self.buckets, self.truth)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the ratio of telling a bucket truly and as a lie."""
        return truth_ratio(self.truth, self.buckets)

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: the function's two numbers, a toss whether to tell its bucket, then the step of the lie."""
        # The function is drawn before the value is looked at; it is sent along and tells nothing about its sender.
        a, b = draws.below(self.prime, len(codes)), draws.below(self.prime, len(codes))
        hashed = hash_codes(a, b, codes, self.prime, self.buckets)
        return self.output_space.rows(a=a, b=b, y=lie_or_tell(hashed, self.buckets, self.truth, draws))

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:
        """Return which reports have a function that puts the value into the told bucket."""
        a, b = payload["a"].astype(np.int64), payload["b"].astype(np.int64)
        hashed = hash_codes(a, b, np.full(len(payload), code), self.prime, self.buckets)
        return np.asarray(hashed == payload["y"])

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return for each value the number of reports whose function puts it into the told bucket."""
        a, b, y = (payload[name].astype(np.int64) for name in ("a", "b", "y"))
        return support_counts(a, b, y, domain_size=len(self.domain), prime=self.prime, buckets=self.buckets)

    def score_readings(self, payload: Payload, scores: Floats) -> None:  # as that of all protocols
        """Return None: how values share buckets decides the least variance, and is another matter in each report."""

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        a, b, y = (payload[name].astype(np.int64)[:, None] for name in ("a", "b", "y"))
        codes = np.arange(len(self.domain), dtype=np.int64)[None, :]
        return self._by_support(hash_codes(a, b, codes, self.prime, self.buckets) == y)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(self.truth / CERTAIN) - 2 * log(self.prime)

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.supports, self)
        yield partial(plausibility.functions, self)

    def _options(self) -> dict[str, Any]:
        return {} if self._chosen is None else {"buckets": self._chosen}

    def _params(self) -> dict[str, Any]:
        return {"prime": self.prime, "buckets": self.buckets, "truth": str(self.truth)}


def check_buckets(buckets: int) -> int:
    """Return a number of buckets, or raise if there are too few or too many."""
    if check_count(buckets, name="buckets", at_least=2) > _MOST_BUCKETS:
        raise ParameterError("There are too many buckets.", fix=f"use at most {_MOST_BUCKETS:,}, or leave buckets out.")
    return buckets


def best_buckets(epsilon: Fraction) -> int:
    """Return the better of the whole numbers around ``exp(epsilon) + 1``, by the variance for rare values."""
    growth = float(exact.exp_bounds(epsilon)[0])
    near = min(int(growth) + 1, _MOST_BUCKETS - 1)
    return min((near, near + 1), key=lambda g: (g - 1) / g**2 / (growth / (growth + g - 1) - 1 / g) ** 2)
