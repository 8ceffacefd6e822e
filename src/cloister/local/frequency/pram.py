"""Any transition matrix: each value is reported as another one with a known probability (post-randomization, PRAM).

The most general protocol for a small domain: a matrix P of exact rationals whose rows are the true values. Its epsilon
is the logarithm of the largest ratio within a column. Made for matrices that fit a purpose, such as ordered ratings
whose lies stay near the truth; for plain categories direct encoding is the best symmetric matrix. After Gouweleeuw,
Kooiman, Willenborg and de Wolf (1998); the estimate inverts the *transpose* of P.

Privacy: claim epsilon-LDP. Devices compare one 64-bit word with integer thresholds, `transitions.quantize`, whose
ratios are never above those of the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, partial
from math import log
from typing import Any

import numpy as np

from cloister.core import exact
from cloister.core.exact import Number
from cloister.core.postprocessing import project_to_simplex
from cloister.core.validation import check_choice, check_probability
from cloister.errors import ParameterError, UnsafeMechanismError
from cloister.local import _plausibility as plausibility
from cloister.local._output_space import Integer, OutputSpace, Payload
from cloister.local._plausibility import Test
from cloister.local.domain import Answers, Codes, Domain
from cloister.local.draws import Draws
from cloister.local.estimates import Floats, FrequencyEstimate, enough
from cloister.local.frequency.support import FrequencyProtocol, readings_by_matrix
from cloister.local.protocol import check_local_epsilon, protocols
from cloister.mechanisms.transitions import (
    Matrix,
    check_matrix,
    largest_ratio,
    matrix_epsilon,
    most_likely_shares,
    ordinal_matrix,
    quantize,
    quantized_matrix,
    response_matrix,
)

__all__ = ["Pram"]

_KINDS = {"response": response_matrix, "ordinal": ordinal_matrix}
_MOST_VALUES = 1000


@protocols.register("pram")
class Pram(FrequencyProtocol):
    """Report values by a public transition matrix (PRAM).

    Args:
        domain: the public answers.
        matrix: the probabilities, one row per true answer; epsilon then follows from it, and an ``epsilon`` given
            beside it is a claim that must not be below.
        epsilon: without a matrix, what one report costs.
        kind: the matrix for an epsilon: ``"response"`` (the truth as often as possible, the best for plain categories)
            or ``"ordinal"`` (lies near the truth, for ordered answers).

    >>> protocol = Pram(domain=["never", "sometimes", "often"], epsilon=2, kind="ordinal")
    >>> reports = protocol.randomize(["never"] * 500 + ["often"] * 500)
    >>> list(protocol.estimate(reports).counts)
    ['never', 'sometimes', 'often']
    """

    name = "pram"
    in_browsers = True

    def __init__(
        self, *, domain: Answers, epsilon: Number | None = None, matrix: object = None, kind: str = "response"
    ) -> None:
        declared = Domain.of(domain)
        if len(declared) > _MOST_VALUES:
            raise ParameterError(f"A matrix has at most {_MOST_VALUES} answers.", fix="use local.recommend instead.")
        self._kind = check_choice(kind, name="kind", allowed=_KINDS)
        self._given = None if matrix is None else _fitting(matrix, len(declared))
        super().__init__(domain=declared, epsilon=self._cost(epsilon))
        wanted = self._given or _KINDS[kind](len(declared), epsilon=self.epsilon)
        self.thresholds = quantize(wanted)
        self.output_space = OutputSpace((Integer("y", 0, len(declared) - 1),))
        self._check_epsilon()

    @cached_property
    def matrix(self) -> Matrix:
        """Return the exact matrix that devices follow: multiples of 2**-64."""
        return quantized_matrix(self.thresholds)

    @cached_property
    def likelihood_ratio(self) -> Fraction:
        """Return the largest ratio within a column of the matrix."""
        return largest_ratio(self.matrix) or Fraction(0)

    @property
    def condition_number(self) -> float:
        """Return by how much the inverse can enlarge relative errors; large means hard to estimate from."""
        return float(np.linalg.cond(self._floats))

    def perturb(self, codes: Codes, draws: Draws) -> Payload:
        """Return reports: one word, compared with the thresholds of the value's row."""
        return self.output_space.rows(y=draws.picks(codes, self.thresholds))

    def estimate(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return how many people have each value, without bias; see `FrequencyProtocol.estimate`."""
        found = self.read(reports)
        n = enough(len(found))
        shares = self._back @ self._observe_shares(found.payload)
        variances = n * np.diag(self._noise(project_to_simplex(shares)))
        return self._estimated(n * shares, variances, n, self.guarantee_of(found))

    def most_likely(self, reports: Any) -> FrequencyEstimate:  # whatever holds reports
        """Return the counts, none negative, under which the reports are most likely; errors are those of `estimate`."""
        raw = self.estimate(reports)
        found = most_likely_shares(self._observe_shares(self.read(reports).payload), matrix=self.matrix)
        notes = (found.caution,) if found.caution else ()
        return raw.mended(raw.reports * found.shares, "most_likely", *notes)

    def variance(self, frequency: object = 0) -> float:
        """Return the largest variance, over the values, of an estimated share times the number of reports.

        The value has the given share, and the others share the rest equally.
        """
        share, size = float(check_probability(frequency, name="frequency")), len(self.domain)
        mixes = np.full((size, size), (1 - share) / (size - 1))
        np.fill_diagonal(mixes, share)
        return max(float(self._noise(mix)[value, value]) for value, mix in enumerate(mixes))

    @cached_property
    def _floats(self) -> Floats:
        return np.array([[float(entry) for entry in row] for row in self.matrix])

    @cached_property
    def _back(self) -> Floats:
        return np.asarray(np.linalg.inv(self._floats).T)

    def _noise(self, shares: Floats) -> Floats:
        """Return the covariance of one report's part of the estimate, given the true shares."""
        # People are given and only their answers random: each true value brings the covariance of its own row.
        reported = np.diag(shares @ self._floats) - (self._floats.T * shares) @ self._floats
        return np.asarray(self._back @ reported @ self._back.T)

    def _observe_shares(self, payload: Payload) -> Floats:
        return np.asarray(np.bincount(payload["y"], minlength=len(self.domain)) / len(payload))

    def _cost(self, epsilon: Number | None) -> Number | None:
        if self._given is None:
            return epsilon
        cost = matrix_epsilon(self._given)
        if np.linalg.matrix_rank(np.array(self._given, dtype=np.float64)) < len(self._given):
            raise ParameterError(
                "The matrix has no inverse: different shares would look the same.", fix="tell the truth more often."
            )
        if cost is None:
            raise UnsafeMechanismError(
                "A zero in the matrix makes some reports certain proof: epsilon is infinite.",
                fix="give every answer that can be reported at all a chance under every true answer.",
            )
        if epsilon is not None and check_local_epsilon(epsilon) < cost:
            raise ParameterError(
                f"The matrix costs epsilon {float(cost):.6g}, more than what is claimed for it.",
                fix="leave epsilon out, or use a matrix with smaller ratios within its columns.",
            )
        return cost

    def score_readings(self, payload: Payload, scores: Floats) -> tuple[Floats, float]:
        """Return an unbiased reading of each sender's score, and the least variance that a reading has."""
        return readings_by_matrix(payload["y"], np.array([[float(one) for one in row] for row in self.matrix]), scores)

    def log_likelihoods(self, payload: Payload) -> Floats:
        """Return for each report and value the logarithm of the probability, up to a number for each report."""
        law = np.array([[float(entry) for entry in row] for row in self.matrix])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(law)[:, payload["y"].astype(np.int64)].T, dtype=np.float64)

    @property
    def likeliest_report(self) -> float:
        """Return the logarithm of the largest probability of any report under any value."""
        return log(max(max(row) for row in self.matrix))

    def plausibility_tests(self) -> Iterator[Test]:
        """Yield what honest reports are compared with; see `_plausibility`."""
        matrix = np.array([[float(entry) for entry in row] for row in self.matrix])
        yield partial(plausibility.symbols, low=matrix.min(axis=0), high=matrix.max(axis=0))

    def poisoning_gains(self) -> tuple[float, float]:
        """Return by how much one report can raise, and lower, an estimated count."""
        back = np.linalg.inv(np.array([[float(entry) for entry in row] for row in self.matrix]))
        return float(back.max()), float(-back.min())

    @property
    def values_raised(self) -> int:
        """Return how many values one report can raise together."""
        return 1

    def _options(self) -> dict[str, Any]:
        if self._given is None:
            return {"kind": self._kind}
        return {"matrix": [[exact.text(entry) for entry in row] for row in self._given]}

    def _params(self) -> dict[str, Any]:
        return {"rows": [[str(bound) for bound in row] for row in self.thresholds]}


def _fitting(matrix: object, size: int) -> Matrix:
    rows = check_matrix(matrix)
    if len(rows) != size:
        raise ParameterError("The matrix does not have one row per answer.", fix=f"give {size} rows and columns.")
    return rows
