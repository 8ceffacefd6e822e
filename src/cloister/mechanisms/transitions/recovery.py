"""The true shares behind randomized reports.

The expected reported shares are ``o = transpose(P) pi``, so they are corrected with the inverse of the *transpose*; the
inverse of ``P`` itself would be right for symmetric matrices only. `invert_shares` does that: unbiased, with its
covariance, and with negative shares where the noise wants them. `most_likely_shares` maximizes the likelihood within
the probabilities, by expectation-maximization; it also serves matrices without an inverse. All of it is
post-processing: it reads reports, the public matrix, and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloister.core.exact import Number
from cloister.core.postprocessing import project_to_simplex
from cloister.core.validation import check_count, check_positive, check_probability
from cloister.errors import ParameterError
from cloister.mechanisms.transitions.matrices import check_matrix

__all__ = [
    "InvertedShares",
    "LikelyShares",
    "estimate_shares",
    "estimate_yes_share",
    "invert_shares",
    "most_likely_shares",
]

Floats: TypeAlias = NDArray[np.float64]

_HALVINGS = 20
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InvertedShares:
    """Unbiased shares and how sure they are.

    Attributes:
        shares: one for each category, adding up to 1; some may be negative.
        covariance: of the shares as estimates of a population that the respondents were drawn from.
        condition_number: of the matrix: relative errors of the reported shares may grow by this factor.
        reports: how many there were.
    """

    shares: Floats
    covariance: Floats
    condition_number: float
    reports: int

    @property
    def noise_covariance(self) -> Floats:
        """Return the covariance as estimates of the shares among the respondents themselves: the matrix's noise alone.

        Reports vary by the draw of respondents and by the matrix; the former part, ``(diag(pi) - pi pi') / n``, goes.
        """
        return np.asarray(self.covariance - _multinomial(self.shares) / self.reports)

    @property
    def standard_errors(self) -> Floats:
        """Return the standard error of each share, for a population that the respondents were drawn from."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LikelyShares:
    """The most likely shares, and whether they were reached.

    Attributes:
        shares: probabilities, one for each category.
        gap: by how much the mean log-likelihood of a report may still be below the best, certainly.
        rounds: how many steps were taken; 0 where the inverse is the answer.
        is_converged: whether the gap came down to the tolerance.
    """

    shares: Floats
    gap: float
    rounds: int
    is_converged: bool

    @property
    def caution(self) -> str:
        """Return what to be told if the search ended early, else nothing."""
        if self.is_converged:
            return ""
        return (
            f"The most likely shares were not reached in {self.rounds} rounds: the mean log-likelihood may be"
            f" {self.gap:.1g} below the best."
        )


def invert_shares(counts: ArrayLike, *, matrix: object) -> InvertedShares:
    """Return the unbiased shares ``inverse(transpose(P)) o``, their covariance and the matrix's condition number.

    The covariance is that of the reported shares, ``(diag(o) - o o') / n``, carried through the inverse.

    Args:
        counts: how many reports there are of each category.
        matrix: the transition matrix, in the same order.

    Raises:
        ParameterError: if the matrix has no inverse, or the counts do not fit it.

    >>> invert_shares([55, 45], matrix=[["0.9", "0.1"], ["0.4", "0.6"]]).shares.round(9)
    array([0.3, 0.7])
    """
    transition = _floats(matrix)
    reported = _counts(counts, len(transition))
    if (reported != np.floor(reported)).any():
        raise ParameterError("The counts are not whole.", fix="give numbers of reports, not shares.")
    reports = int(reported.sum())
    back = _inverse(transition).T
    observed = reported / reports
    return InvertedShares(
        shares=np.asarray(back @ observed),
        covariance=np.asarray(back @ (_multinomial(observed) / reports) @ back.T),
        condition_number=float(np.linalg.cond(transition)),
        reports=reports,
    )


def estimate_shares(observed: ArrayLike, *, matrix: object) -> Floats:
    """Return the estimated true shares from released counts or shares: the inverse transpose, then the simplex.

    Raises:
        ParameterError: if the matrix has no inverse, or the counts do not fit it.
    """
    transition = _floats(matrix)
    counts = _counts(observed, len(transition))
    return project_to_simplex(_inverse(transition).T @ (counts / counts.sum()))


def most_likely_shares(
    observed: ArrayLike, *, matrix: object, tolerance: object = 1e-9, most_rounds: int = 1000
) -> LikelyShares:
    """Return the probabilities under which the reports are most likely.

    Where the inverse gives probabilities, they are the answer. Otherwise expectation-maximization repeats
    ``pi_i <- pi_i g_i`` with ``g_i = sum over j of o_j P[i][j] / (transpose(P) pi)_j``, or takes a constrained Newton
    step (Wang 2007) where that is at least as likely. It stops when ``max(g) - 1`` is within the tolerance: no
    probabilities can have a mean log-likelihood higher by more than that (Cover 1984), and a plain step would move no
    share further than that.

    Args:
        observed: counts or shares of the reports.
        matrix: the transition matrix, in the same order; it need not have an inverse.
        tolerance: when to stop.
        most_rounds: when to stop in any case; `LikelyShares.caution` then says so.

    >>> most_likely_shares([0.55, 0.45], matrix=[["0.9", "0.1"], ["0.4", "0.6"]]).shares.round(6)
    array([0.3, 0.7])
    """
    stop = float(check_positive(tolerance, name="tolerance"))
    most = check_count(most_rounds, name="most_rounds", at_least=1)
    transition = _floats(matrix)
    counts = _counts(observed, len(transition))
    shares = counts / counts.sum()
    possible = (transition > 0).any(axis=0)
    if (shares[~possible] > 0).any():
        raise ParameterError("There are reports that the matrix rules out.", fix="use the matrix of the release.")
    start = np.full(len(shares), 1 / len(shares))
    if _has_inverse(transition):
        # Shares that explain the reports perfectly cannot be beaten.
        direct = np.linalg.solve(transition.T, shares)
        if (direct >= 0).all():
            return LikelyShares(shares=direct / direct.sum(), gap=0.0, rounds=0, is_converged=True)
        # Half of the uniform shares keeps every share positive: a plain step never leaves a zero.
        start = (project_to_simplex(direct) + start) / 2
    # Categories that nobody reported have weight zero in the likelihood, and their logarithm may not exist.
    return _maximize(_Likelihood(transition[:, shares > 0], shares[shares > 0]), start, stop, most)


def estimate_yes_share(told_yes: object, *, truth: Number, second: Number) -> Fraction:
    """Return the estimated true share of yes from the told one: ``(o - (1 - p) p') / p``, exactly.

    Any coins may be given, also "heads: say yes" (``second=1``) of surveys that were held; it is not private.

    >>> estimate_yes_share("55/100", truth="1/2", second=1)
    Fraction(1, 10)
    """
    told, yes = check_probability(truth, name="truth"), check_probability(second, name="second")
    if told == 0:
        raise ParameterError("Nobody told the truth, so nothing can be estimated.", fix="give truth above 0.")
    return (check_probability(told_yes, name="told_yes") - (1 - told) * yes) / told


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """The mean log-likelihood of reports, over the categories that were reported."""

    transition: Floats
    observed: Floats

    def of(self, shares: Floats) -> float:
        expected = shares @ self.transition
        return float(self.observed @ np.log(expected)) if expected.min() > 0 else -math.inf

    def gradient(self, shares: Floats) -> Floats:
        return np.asarray(self.transition @ (self.observed / (shares @ self.transition)))

    def newton(self, shares: Floats) -> Floats:
        """Return the best probabilities by the quadratic that touches the likelihood at some shares."""
        from scipy import optimize

        # For weights that sum to one, S w - 2 is (S - 2) w, and the quadratic is its squared length (Wang 2007).
        slopes = (self.transition / (shares @ self.transition) - 2).T * np.sqrt(self.observed)[:, None]
        # With a row of ones, normalizing the nonnegative solution solves the problem under the constraint.
        system = np.vstack([slopes, np.ones(len(shares))])
        goal = np.zeros(len(system))
        goal[-1] = 1
        try:
            weights = optimize.nnls(system, goal)[0]
        except RuntimeError:  # it gave up
            return shares
        return np.asarray(weights / weights.sum())


def _maximize(likelihood: _Likelihood, start: Floats, stop: float, most: int) -> LikelyShares:
    shares, rounds = start, 0
    while True:
        gradient = likelihood.gradient(shares)
        gap = float(gradient.max()) - 1
        if gap <= stop or rounds == most:
            break
        shares, rounds = _better(likelihood, shares, shares * gradient), rounds + 1
    return LikelyShares(shares=shares, gap=max(gap, 0.0), rounds=rounds, is_converged=gap <= stop)


def _better(likelihood: _Likelihood, before: Floats, once: Floats) -> Floats:
    """Return a point towards Newton's that is at least as likely as one plain step, or that step."""
    # Close to the top the two differ by rounding alone, which should not turn Newton's step down.
    least = likelihood.of(once) - _ROUNDING
    toward = likelihood.newton(before) - before
    for halved in range(_HALVINGS):
        there = before + toward * 0.5**halved
        if likelihood.of(there) >= least:
            return np.asarray(there)
    return np.asarray(once / once.sum())


def _floats(matrix: object) -> Floats:
    return np.array([[float(entry) for entry in row] for row in check_matrix(matrix)])


def _counts(observed: ArrayLike, categories: int) -> Floats:
    counts = np.asarray(observed, dtype=np.float64)
    if counts.shape != (categories,) or not (counts >= 0).all() or not 0 < counts.sum() < np.inf:
        raise ParameterError("The counts are not one number >= 0 per category.", fix="count every category.")
    return counts


def _has_inverse(transition: Floats) -> bool:
    return bool(np.linalg.matrix_rank(transition) == len(transition))


def _inverse(transition: Floats) -> Floats:
    if not _has_inverse(transition):
        raise ParameterError(
            "The matrix has no inverse: different shares would look the same.",
            fix="tell the truth more often, or use most_likely_shares.",
        )
    return np.asarray(np.linalg.inv(transition))


def _multinomial(shares: Floats) -> Floats:
    return np.asarray(np.diag(shares) - np.outer(shares, shares))
