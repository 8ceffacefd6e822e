"""Published estimates of population uniqueness, and the rule by which ARX chooses among them.

All use only how many classes of each size the sample has: Pitman's sampling formula (Hoshino 2001), Zayatz (1991), and
the slide negative binomial model (Chen and Keller-McNulty 1998) with Shlosser's estimate of the number of classes
(Haas and Stokes 1998). The rule after Dankar et al. (2012): Pitman up to a sampling share of 10 %, beyond that the
smaller of Zayatz and slide negative binomial; Zayatz where another has no solution. Our own code,
after the papers and the rule that ARX documents.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

SMALL_SHARE = 0.1


def pitman(counts: np.ndarray, population: int) -> float:
    """Return the estimate of Pitman's model, fitted by maximum likelihood; not a number where it has none."""
    sizes, classes = np.unique(counts, return_counts=True)
    rows, total = int(counts.sum()), len(counts)

    def loss(point: np.ndarray) -> float:
        theta, alpha = np.exp(point[0]), special.expit(point[1])
        new = (total - 1) * np.log(alpha) + special.gammaln(theta / alpha + total) - special.gammaln(theta / alpha + 1)
        drawn = special.gammaln(theta + rows) - special.gammaln(theta + 1)
        inside = classes @ (special.gammaln(sizes - alpha) - special.gammaln(1 - alpha))
        return float(-(new - drawn + inside) / rows)

    starts = ([np.log(total / 4), 0.0], [0.0, 0.0], [np.log(total), -3.0])
    options = {"maxiter": 2000, "xatol": 1e-7, "fatol": 1e-13}
    tried = [optimize.minimize(loss, start, method="Nelder-Mead", options=options) for start in starts]
    best = min(tried, key=lambda found: found.fun)
    theta, alpha = np.exp(best.x[0]), special.expit(best.x[1])
    share = np.exp(special.gammaln(theta + 1) - special.gammaln(theta + alpha) + (alpha - 1) * np.log(population))
    return float(share) if share <= 1 else float("nan")


def zayatz(counts: np.ndarray, population: int) -> float:
    """Return Zayatz's estimate: the population's classes are distributed as the sample's."""
    sizes, classes = np.unique(counts, return_counts=True)
    rows = float(counts.sum())
    once = np.exp(np.log(sizes) + _log_choose(population - sizes, rows - 1) - _log_choose(population, rows))
    unique = float(classes[sizes == 1].sum())
    return unique * (unique * rows / population / float(classes @ once)) / rows


def slide_negative_binomial(counts: np.ndarray, population: int) -> float:
    """Return the estimate of the slide negative binomial model; not a number where its equations have no solution."""
    rate = float(counts.sum()) / population
    single, double = float((counts == 1).sum()), float((counts == 2).sum())
    classes = _shlosser(counts, rate)

    def equations(point: np.ndarray) -> list[float]:
        alpha, beta = np.exp(point[0]), special.expit(point[1])
        rest = (1 - rate) * (1 - beta)
        ones = classes * rate * (beta / (1 - rest)) ** alpha * (alpha * rest / (1 - rest) + 1)
        scale = classes * alpha * beta**alpha * rate**2 * (1 - beta) / (2 * (1 - rest) ** (alpha + 2))
        return [ones / single - 1, scale * (2 - (1 - alpha) * rest) / double - 1]

    for start in ([0, 0], [-1, -2], [-2, -3], [1, 1], [-3, -5]):
        found = optimize.root(equations, np.array(start, dtype=float))
        if found.success and np.abs(found.fun).max() < 1e-6:
            return float(classes * special.expit(found.x[1]) ** np.exp(found.x[0]) / population)
    return float("nan")


def decision_rule(counts: np.ndarray, population: int) -> float:
    """Return the estimate that ARX's rule chooses."""
    if counts.sum() / population <= SMALL_SHARE:
        first = pitman(counts, population)
        return first if np.isfinite(first) else zayatz(counts, population)
    return float(np.nanmin([zayatz(counts, population), slide_negative_binomial(counts, population)]))


def _shlosser(counts: np.ndarray, rate: float) -> float:
    """Return an estimate of how many classes the population has."""
    sizes, classes = np.unique(counts, return_counts=True)
    upper = classes @ (sizes * rate**2 * (1 - rate**2) ** (sizes - 1.0))
    lower = classes @ (np.exp(sizes * np.log1p(-(rate**2))) - (1 - rate) ** sizes)
    unseen = classes @ (1 - rate) ** sizes / (classes @ (sizes * rate * (1 - rate) ** (sizes - 1.0)))
    return float(len(counts) + (counts == 1).sum() * upper / lower * unseen**2)


def _log_choose(n: np.ndarray | float, k: float) -> np.ndarray:
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0))
