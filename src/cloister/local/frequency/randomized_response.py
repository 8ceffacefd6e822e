"""Randomized response: tell the truth with a known probability; to two answers, and to many (direct encoding).

Two answers. Warner (1965): answer truly with probability ``exp(epsilon) / (exp(epsilon) + 1)``, else the opposite. Two
coins (Greenberg et al. 1969): with probability ``truth`` the truth, otherwise a second coin that says yes with
probability ``second``; its epsilon follows from the coins. A second coin that always says yes ("heads: say yes") is
refused: a no would then be certain truth, and epsilon infinite.

Many values, or direct encoding. Generalized randomized response (GRR, also k-RR; Warner 1965 for two values, Kairouz,
Bonawitz and Ramage 2016): truth with ``exp(epsilon) / (exp(epsilon) + d - 1)``, each of the d - 1 lies equally often. A
lie is the true code plus a uniform step of 1 .. d-1, modulo d; a step of 0 .. d-2 would leave out one value and prove
much (epsilon infinite).

Privacy: claim epsilon-LDP. With two answers, epsilon is the logarithm of the largest ratio of the four probabilities.
With d values, a report y has probability p under the value y and (1 - p) / (d - 1) under each other; the threshold of p
is rounded down, so that ``p (d - 1) / (1 - p) <= exp(epsilon)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import ceil, floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.random import Words
from cloister.core.validation import check_probability
from cloister.errors import ParameterError, UnsafeMechanismError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes
from cloister.local.draws import CERTAIN, Draws
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.frequency.support import FrequencyProtocol, SupportProtocol, readings_by_matrix, support_variance
from cloister.local.protocol import lie_threshold, protocols
from cloister.mechanisms.randomized_response import randomized_response_epsilon

__all__ = ["DirectEncoding", "RandomizedResponse", "lie_or_tell", "truth_ratio"]


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
    fits_choices = True
    in_browsers = True

    def __init__(self, *, domain: Answers | None = None, epsilon: Number | None = None) -> None:
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

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:
        """Return which reports are the value."""
        return np.asarray(payload["y"] == code)

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return how often each value was reported."""
        return np.bincount(payload["y"], minlength=len(self.domain)).astype(np.int64)

    def score_readings(self, payload: Payload, scores: Floats) -> tuple[Floats, float]:
        """Return an unbiased reading of each sender's score, and the least variance that a reading has."""
        p, q = map(float, self.probabilities)
        return readings_by_matrix(payload["y"], q + (p - q) * np.eye(len(scores)), scores)

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
        """Yield what honest reports are compared with; see `_plausibility`."""
        yield partial(plausibility.supports, self)

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return 1

    def _params(self) -> dict[str, Any]:
        return {"truth": str(self.truth)}


@protocols.register("randomized_response")
class RandomizedResponse(FrequencyProtocol):
    """A private answer to a question with two answers, by default no and yes (RR).

    Give either epsilon, or the two coins: ``truth``, the probability of answering truly, and ``second``, that of a yes
    otherwise.

    Attributes:
        yes_if_yes: the threshold of the second answer for those whose answer it is.
        yes_if_no: its threshold for the others.

    >>> protocol = RandomizedResponse(truth=0.5, second=0.5)
    >>> round(float(protocol.epsilon), 6)
    1.098612
    >>> estimate = protocol.estimate(protocol.randomize([True] * 800 + [False] * 200))
    >>> list(estimate.counts)
    [False, True]
    """

    name = "randomized_response"
    in_browsers = True

    def __init__(
        self,
        *,
        domain: Answers = (False, True),
        epsilon: Number | None = None,
        truth: Number | None = None,
        second: Number | None = None,
    ) -> None:
        self._coins = _coins(epsilon, truth, second)
        super().__init__(domain=domain, epsilon=epsilon if self._coins is None else _epsilon(*self._coins))
        if len(self.domain) != 2:
            raise ParameterError(
                "Randomized response is for two answers.", fix="use DirectEncoding for more, or local.recommend."
            )
        self.yes_if_yes, self.yes_if_no = self._thresholds()
        self.output_space = OutputSpace((Integer("y", 0, 1),))
        self._check_epsilon()

    def _thresholds(self) -> tuple[int, int]:
        if self._coins is None:
            lie = lie_threshold(self.epsilon)
            return CERTAIN - lie, lie
        truth, second = self._coins
        forced = (1 - truth) * second
        # Both are rounded towards each other, which lowers the ratio of a yes and that of a no.
        return floor((truth + forced) * CERTAIN), ceil(forced * CERTAIN)

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Return (p, q): how often yes is told by those who mean it, and by the others."""
        return Fraction(self.yes_if_yes, CERTAIN), Fraction(self.yes_if_no, CERTAIN)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return the larger of ``p / q`` and ``(1 - q) / (1 - p)``."""
        p, q = self.probabilities
        return max(p / q, (1 - q) / (1 - p))

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: one toss, with the threshold of the sender's answer."""
        thresholds: Words = np.where(codes == 1, np.uint64(self.yes_if_yes), np.uint64(self.yes_if_no))
        return self.output_space.rows(y=draws.chances(thresholds, len(codes)))

    def estimate(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each answer; see `FrequencyProtocol.estimate`."""
        found = self.read(reports)
        n, (p, q) = enough(len(found)), map(float, self.probabilities)
        yes = (int(found.payload["y"].sum()) - n * q) / (p - q)
        variance = n * self.variance(min(max(yes / n, 0.0), 1.0))
        return self._estimated([n - yes, yes], [variance, variance], n, self.guarantee_of(found))

    def supporters(self, payload: Payload, code: int) -> NDArray[np.bool_]:
        """Return which reports are the answer."""
        return np.asarray(payload["y"] == code)

    def support_counts(self, payload: Payload) -> NDArray[np.int64]:
        """Return how often each answer was reported."""
        return np.bincount(payload["y"], minlength=2).astype(np.int64)

    def support_chances(self) -> tuple[Floats, Floats]:
        """Return for each answer how often it is reported: unequally often where the coins are unequal."""
        p, q = map(float, self.probabilities)
        return np.array([1 - q, p]), np.array([1 - p, q])

    def variance(self, frequency: object = 0) -> float:
        """Return the variance of the estimated share of yes times the number of reports, for a true share."""
        share = float(check_probability(frequency, name="frequency"))
        p, q = map(float, self.probabilities)
        return float(support_variance(share, 1 - share, p=p, q=q))

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        p, q = map(float, self.probabilities)
        law = np.log(np.array([[1 - q, q], [1 - p, p]]))
        return np.asarray(law[:, payload["y"].astype(np.int64)].T, dtype=np.float64)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        p, q = self.probabilities
        return log(max(p, 1 - p, q, 1 - q))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        p, q = map(float, self.probabilities)
        yes = sorted((p, q))
        low, high = np.array([1 - yes[1], yes[0]]), np.array([1 - yes[0], yes[1]])
        yield partial(plausibility.symbols, low=low, high=high)

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""
        p, q = map(float, self.probabilities)
        parts = [(1 - q) / (p - q), -q / (p - q)]
        # The count of no is all less that of yes, so that a report moves it by what is left of one person.
        parts += [1 - part for part in parts]
        return max(parts), -min(parts)

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return 1

    def _options(self) -> dict[str, Any]:
        names = ("truth", "second")
        return {} if self._coins is None else dict(zip(names, map(exact.text, self._coins), strict=True))

    def _params(self) -> dict[str, Any]:
        return {"yes_if_yes": str(self.yes_if_yes), "yes_if_no": str(self.yes_if_no)}


def _coins(epsilon: Number | None, truth: Number | None, second: Number | None) -> tuple[Fraction, Fraction] | None:
    if truth is None and second is None and epsilon is not None:
        return None
    if truth is None or second is None:
        raise ParameterError(
            "Randomized response needs epsilon, or both coins.", fix="write epsilon=1, or truth=0.5, second=0.5."
        )
    coins = check_probability(truth, name="truth"), check_probability(second, name="second")
    if epsilon is not None and exact.number(epsilon, name="epsilon") != _epsilon(*coins):
        raise ParameterError("The coins have another epsilon.", fix="leave epsilon out: it follows from the coins.")
    return coins


def _epsilon(truth: Fraction, second: Fraction) -> Fraction:
    epsilon = randomized_response_epsilon(truth, second)
    if epsilon is None:
        raise UnsafeMechanismError(
            "One of the answers would prove the truth: epsilon is infinite.",
            fix="use truth below 1 and second strictly between 0 and 1, such as truth=0.5, second=0.5.",
        )
    return epsilon
