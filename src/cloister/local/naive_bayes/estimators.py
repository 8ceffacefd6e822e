"""From tables of supporting reports to the probabilities of naive Bayes, in two ways.

`projected` is the plain one: unbiased shares, projected to the simplex, a small public constant added, each class
divided by its sum. Where noise is large it believes in differences between classes that are noise only.

`posterior` knows the noise. Within one feature, the probability theta of value x in class c has a Beta prior around the
value's share among all people, of concentration A: A small for features whose classes differ much, A large where they
hardly differ. The number of reports that support (x, c) is binomial with probability ``low + gain P(c) theta``, so its
likelihood is known exactly. Posterior means are computed for several A and averaged by how well each A explains the
whole table (an empirical-Bayes choice per feature). Nothing is tuned on data: the concentrations 1, 10, 100 and 1000
are fixed. Noise thus shrinks every feature to exactly the degree to which its reports do not speak.

Both are post-processing of reports and cost nothing.
"""

from __future__ import annotations

import numpy as np

from cloister.core._late import late_module
from cloister.core.simplex import project_to_simplex
from cloister.local.naive_bayes.tables import Floats, JointTable

special = late_module("scipy.special")

__all__ = ["posterior", "projected"]

_CONCENTRATIONS = (1.0, 10.0, 100.0, 1000.0)
_CELLS = 64
_DEVIATIONS = 8
_LEAST_CLASS = 0.01
_LEAST_PROBABILITY = 1e-6
_TINY = 1e-300


def projected(table: JointTable, *, smoothing: float) -> Floats:
    """Return P(value | class), values in rows: projected shares plus a constant, divided by each class's sum."""
    shares = np.full(table.counts.shape, 1 / table.counts.size)
    if table.reports:
        shares = project_to_simplex(table.shares.ravel()).reshape(shares.shape) + smoothing
    totals = shares.sum(axis=0)
    return np.where(totals > 0, shares / np.where(totals > 0, totals, 1), 1 / len(shares))


def posterior(table: JointTable, classes: Floats) -> Floats:
    """Return P(value | class), values in rows: posterior means under priors around the shares of the values.

    Args:
        table: the supporting reports of one feature.
        classes: the share of each class.
    """
    if not table.reports:
        return np.full(table.counts.shape, 1 / len(table.counts))
    weights = np.maximum(classes, _LEAST_CLASS)
    weights = weights / weights.sum()
    edges = _edges(table, weights)
    found = [_means(table, weights, _value_shares(table), concentration, edges) for concentration in _CONCENTRATIONS]
    evidence = np.array([logarithm for _, logarithm in found])
    belief = np.exp(evidence - evidence.max())
    means = np.tensordot(belief / belief.sum(), np.array([mean for mean, _ in found]), axes=1)
    means = np.maximum(means, _LEAST_PROBABILITY)
    return np.asarray(means / means.sum(axis=0))


def _value_shares(table: JointTable) -> Floats:
    """Return the share of each value, with one more observation of each than the reports are worth."""
    rows, columns = table.counts.shape
    shares = project_to_simplex(table.shares.sum(axis=1))
    worth = (1 / rows) * (1 - 1 / rows) / (columns * table.variance)
    return np.asarray((shares * worth + 1) / (worth + rows))


def _edges(table: JointTable, weights: Floats) -> Floats:
    """Return for each cell the ends of small intervals of theta that hold all of the likelihood that matters."""
    middle = np.clip(table.shares / weights, 0, 1)
    support = table.low + table.gain * weights * middle
    spread = np.sqrt(np.maximum(support * (1 - support), 1 / table.reports) / table.reports)
    reach = _DEVIATIONS * spread / (table.gain * weights)
    low, high = np.maximum(middle - reach, 0), np.minimum(middle + reach, 1)
    return np.asarray(low[..., None] + (high - low)[..., None] * np.linspace(0, 1, _CELLS + 1))


def _means(
    table: JointTable, weights: Floats, center: Floats, concentration: float, edges: Floats
) -> tuple[Floats, float]:
    """Return the posterior mean of each cell under one concentration, and the logarithm of the evidence for it."""
    first = concentration * center[:, None, None]
    second = concentration - first
    mass = np.diff(special.betainc(first, second, edges), axis=-1)
    moment = np.diff(special.betainc(first + 1, second, edges), axis=-1) * first / concentration
    inside = (edges[..., 1:] + edges[..., :-1]) / 2
    thetas = np.where(mass > _TINY, moment / np.maximum(mass, _TINY), inside)
    thetas = np.clip(thetas, edges[..., :-1], edges[..., 1:])
    support = np.clip(table.low + table.gain * weights[:, None] * thetas, _TINY, 1 - 1e-16)
    counts = table.counts[..., None]
    logarithm = counts * np.log(support) + (table.reports - counts) * np.log1p(-support)
    peak = logarithm.max(axis=-1, keepdims=True)
    joint = np.exp(logarithm - peak) * np.maximum(mass, _TINY)
    total = joint.sum(axis=-1)
    return (joint * thetas).sum(axis=-1) / total, float((np.log(total) + peak[..., 0]).sum())
