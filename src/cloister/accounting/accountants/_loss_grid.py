"""Privacy losses on a grid: pessimistic discretization, powers by Fourier transform, and what rounding may have cost.

A loss between two grid points is split between them so that both its probability and its likelihood ratio are kept
("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022). The hockey-stick curve of the result is the
chord of the true convex curve, hence never below it.

The sum of many losses is found after exponential tilting: probabilities are multiplied by exp(tilt * loss) before the
transform and divided afterwards. Errors of the transform are absolute, and the tilt moves the interesting tail to the
middle of the distribution, so even tiny deltas come out with many correct digits.

What can make the answer too small is bounded and added: losses above the window (a Chernoff bound), and rounding in the
transform. Losses below the window wrap around to its top, which only makes the answer larger.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.accountants._dominating_pairs import LaplaceLike, atoms
from cloister.errors import AccountingError

Floats = NDArray[np.float64]

LARGEST_TRANSFORM = 2**21
_RELATIVE_MARGIN = 1e-9
_FOURIER_ERROR = 4e-15
_ROUNDING = 1e-15
_MOST_NUMBERS = 2**22


class Pile(NamedTuple):
    """Probabilities of ``(first + i) * width`` for consecutive i, and how many such losses are added up."""

    first: int
    probabilities: Floats
    repeats: int

    def losses(self, width: float) -> Floats:
        """Return the losses that belong to the probabilities."""
        return (self.first + np.arange(float(len(self.probabilities)))) * width


def laplace_pile(pair: LaplaceLike, *, count: int, width: float) -> Pile:
    """Return the loss of a Laplace-like release on a grid."""
    losses, probabilities = atoms(pair)
    return split(losses, probabilities, count=count, width=width)


def gaussian_pile(mu: float, *, width: float, log_tail: float) -> tuple[Pile, float]:
    """Return the loss of one Gaussian release on a grid, and the probability of a loss above the grid.

    The density is integrated with five Gauss-Legendre nodes in each cell; the grid is much finer than mu, so the error
    is far below the relative margin that is charged at the end.
    """
    reach = math.sqrt(-2 * log_tail)
    # The mass beyond 12 deviations is charged at the lowest point below.
    low = math.floor((mu * mu / 2 - 12 * mu) / width)
    high = math.ceil((mu * mu / 2 + reach * mu) / width)
    if high - low > LARGEST_TRANSFORM:
        raise too_fine()
    # The density changes over mu, so that cells wider than a quarter of it are divided.
    cells = math.ceil(4 * width / mu)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    inside = ((np.arange(cells)[:, None] + (nodes + 1) / 2) / cells).ravel()
    shares = np.tile(weights / 2, cells) / cells
    losses = (np.arange(low, high)[:, None] + inside) * width
    density = np.exp(-(((losses - mu * mu / 2) / mu) ** 2) / 2) / (mu * math.sqrt(2 * math.pi))
    pile = split(losses.ravel(), (density * shares * width).ravel(), count=1, width=width)
    # Less than this lies under the grid; at the lowest point it counts as a larger loss than it is.
    below = math.exp(-72)
    pile.probabilities[0] += below
    return pile, math.exp(log_tail)


class Tilted(NamedTuple):
    """The tilted distribution of the sum on one window of the grid."""

    tilt: float
    log_mass: float
    bottom: int
    width: float
    probabilities: Floats
    error: float
    tail: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at an epsilon, without losses that are unbounded from the start.

        Below the window nothing is known, so the answer is 1.
        """
        start = math.floor(epsilon / self.width) + 1 - self.bottom
        if start < 0:
            return 1.0
        losses = (self.bottom + np.arange(start, len(self.probabilities))) * self.width
        # An exponent beyond the cap belongs to losses far below the tilt, where the error term alone exceeds any delta.
        factors = np.exp(np.minimum(self.log_mass - self.tilt * losses, 700.0)) * -np.expm1(epsilon - losses)
        # Every point may be too small by the error of the transform.
        value = float(self.probabilities[start:] @ factors) + self.error * float(factors.sum())
        return value * (1 + _RELATIVE_MARGIN) + self.tail


def cumulants(piles: list[Pile], *, tilts: Floats, width: float) -> Floats:
    """Return ln E[exp(tilt * sum)] for each tilt."""
    total = np.zeros(len(tilts))
    for pile in piles:
        total += pile.repeats * _log_moments(pile, tilts, width)
    return total


def tilt_sum(
    piles: list[Pile], *, tilt: float, top: float, tail: float, width: float, reach: float, lowest: float
) -> Tilted:
    """Return the distribution of the sum of all piles, tilted, on a window that ends at a loss of ``top``.

    It starts at ``lowest``, or ``reach`` standard deviations below the tilted mean, whatever is lower.
    """
    tilted = [_tilt(pile, tilt, width) for pile in piles]
    mean = sum(pile.repeats * float(pile.losses(width) @ p) for pile, (p, _) in zip(piles, tilted, strict=True))
    variance = sum(pile.repeats * _variance(pile.losses(width), p) for pile, (p, _) in zip(piles, tilted, strict=True))
    start = mean - reach * max(math.sqrt(variance), width)
    bottom = math.floor(min(start, lowest, top) / width) - 2
    size = math.ceil(top / width) + 2 - bottom
    if size > LARGEST_TRANSFORM:
        raise too_fine()
    length = 1 << max(6, size - 1).bit_length()
    probabilities, error = _convolve(piles, [p for p, _ in tilted], length=length, bottom=bottom)
    log_mass = sum(pile.repeats * log for pile, (_, log) in zip(piles, tilted, strict=True))
    # A moment is off by a few roundings, which repeats multiply: that is charged as more mass.
    log_mass += sum(pile.repeats * _ROUNDING * (8 + tilt * _largest(pile, width)) for pile in piles)
    return Tilted(tilt, log_mass, bottom, width, probabilities[:size], error, tail)


def too_fine() -> AccountingError:
    """Return the error for a workload that needs too many grid points."""
    return AccountingError(
        "These events differ too much in size for the numerical accountant.",
        fix='use accountant="renyi", or accountant="auto", which falls back by itself.',
    )


def split(losses: Floats, probabilities: Floats, *, count: int, width: float) -> Pile:
    """Return losses with their probabilities on a grid, each split between its neighbors."""
    cells = np.floor(losses / width).astype(np.int64)
    # Rounding may put a loss just outside of its cell, which would make one of the shares negative.
    inside = np.clip(losses - cells * width, 0.0, width)
    # The shares add up to the probability, and times exp(-loss) to what it had: two equations, two shares.
    up = probabilities * (np.expm1(-inside) / math.expm1(-width))
    down = probabilities * (np.expm1(width - inside) / math.expm1(width))
    first = int(cells.min())
    size = int(cells.max()) - first + 2
    masses = np.bincount(cells - first, down, size).astype(float)
    masses += np.bincount(cells - first + 1, up, size)
    return Pile(first, masses, count)


def _log_moments(pile: Pile, tilts: Floats, width: float) -> Floats:
    possible = pile.probabilities > 0
    losses, logs = pile.losses(width)[possible], np.log(pile.probabilities[possible])
    # The table of tilts and losses is made in parts that fit into memory.
    rows = max(1, _MOST_NUMBERS // len(losses))
    parts = [_log_sums(np.multiply.outer(tilts[i : i + rows], losses) + logs) for i in range(0, len(tilts), rows)]
    return np.concatenate(parts)


def _log_sums(exponents: Floats) -> Floats:
    peak = exponents.max(axis=1)
    return np.asarray(peak + np.log(np.exp(exponents - peak[:, None]).sum(axis=1)), dtype=float)


def _tilt(pile: Pile, tilt: float, width: float) -> tuple[Floats, float]:
    log = float(_log_moments(pile, np.array([tilt]), width)[0])
    with np.errstate(over="ignore", invalid="ignore"):
        tilted = pile.probabilities * np.exp(tilt * pile.losses(width) - log)
    # Very large losses of nearly no probability, such as those of very little noise, are beyond floating point.
    if not np.isfinite(tilted).all():
        raise too_fine()
    return tilted, log


def _largest(pile: Pile, width: float) -> float:
    return width * max(abs(pile.first), abs(pile.first + len(pile.probabilities)))


def _variance(losses: Floats, probabilities: Floats) -> float:
    mean = float(losses @ probabilities)
    return float((losses - mean) ** 2 @ probabilities)


def _convolve(piles: list[Pile], tilted: list[Floats], *, length: int, bottom: int) -> tuple[Floats, float]:
    """Return the cyclic convolution of all tilted piles from ``bottom`` on, and a bound of the error per point."""
    from scipy import fft

    unit_error = _FOURIER_ERROR * math.log2(length)
    product = np.ones(length // 2 + 1, dtype=complex)
    log_bound, log_loss = np.zeros(length // 2 + 1), np.zeros(length // 2 + 1)
    for pile, probabilities in zip(piles, tilted, strict=True):
        wrapped = np.bincount(np.arange(len(probabilities)) % length, probabilities, length)
        transform = fft.rfft(wrapped)
        # A zero has no logarithm, and the error term dominates there anyway.
        size = np.maximum(np.abs(transform), 1e-300)
        log_bound += pile.repeats * np.log(size + unit_error)
        log_loss += pile.repeats * np.log1p(unit_error / size)
        product *= _power(transform, pile.repeats)
    # A product of factors that may each be off is off by at most (size + error)**n - size**n, taken in logarithms.
    bounds = np.exp(log_bound)
    error = 2 * float(np.mean(bounds * -np.expm1(-log_loss))) + unit_error * float(np.mean(bounds))
    first = sum(pile.repeats * pile.first for pile in piles)
    result = np.roll(fft.irfft(product, length), (first - bottom) % length)
    # Negative rounding errors are raised to zero, which can only add to the loss.
    return np.maximum(result, 0.0), error


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """Return an elementwise power by repeated squaring."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result *= base
        exponent >>= 1
        if exponent:
            base = base * base
    return result
