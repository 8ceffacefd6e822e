"""Noisy centers of blocks of similar rows, and rows drawn around them.

Soria-Comas, Domingo-Ferrer, Sánchez and Martínez (2014): rows are put into a fixed total order that does not depend on
the data and cut into blocks of k or more, each of which is known by its center. Here the order is by class, then by the
sum of all numbers in units of their range, then by the numbers themselves. Rows are drawn from Gaussians around the
noisy centers; how wide these are follows from the noisy mean square of each column. Clusters that are found in the
data, such as those of MDAV, would not do: one row can move all of them.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row replaced by another one; the number of
rows n is the same for both neighbors, so that it is public, and so are the sizes of the m = n // k blocks. Replacing a
row moves the rows between its old and its new place by one place each, so that every block loses at most one row and
gains at most one. With columns of at most u steps from the middle, a block's sums move by at most 2u in each of d
columns, and its class counts, in units of u, by u in two of them: together m (2 d u + 2 u) in L1 and
m (4 d u**2 + 2 u**2) in squared L2. The sums of squares of all rows move by at most u**2 in each column. What is not a
number, or not a declared class, is in the middle or in no class: no row is left out, so that n stays what it is.

A center's noise is (n / k)(range / k) d / epsilon: below k = sqrt(n) each center has more noise than d columns of a
single row would have, and there is nothing to gain.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_left
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event, SequenceEvent
from cloister.core.guarantees import Adjacency, Guarantee
from cloister.core.random import RandomSource
from cloister.core.validation import check_count
from cloister.core.whole_rows import Floats, exact_product
from cloister.data.table import Table
from cloister.errors import ModelError, ParameterError, PrivacyParameterWarning
from cloister.mechanisms.calibration import FitStep, NoiseCalibration, StepNoise
from cloister.synth._numeric import (
    UNIT,
    NumberNoise,
    NumericRows,
    NumericSynthesizer,
    choose_by_weight,
    label_of,
    numbers_of,
    standard_normals,
)
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.expectation import Expectation
from cloister.synth.inference._marginal_model import uniforms

__all__ = ["MicroaggregatedGaussian", "block_sums"]

_CENTERS = Fraction(9, 10)
_GOOD_ENOUGH = 0.25
_LEAST_SPREAD = 1e-4


@synthesizers.register("microaggregated_gaussian")
@dataclass(kw_only=True, eq=False, repr=False)
class MicroaggregatedGaussian(NumericSynthesizer):
    """Numbers drawn around noisy centers of blocks of at least k similar rows.

    The promise is about replacing a row, with a public number of rows; persons with several rows are not protected.

    Args:
        label: the one column that may have public categories, such as the classes of a classification.
        k: the smallest number of rows of a block; without it, a public rule takes the smallest above the square root of
            ``expected_rows`` with noise of at most a quarter of half the range on each center.

    >>> MicroaggregatedGaussian(epsilon=2.0, k=200)
    MicroaggregatedGaussian(epsilon=2.0, k=200)
    """

    adjacency: Adjacency | str = "replace"
    k: int | None = None

    sizes_: NDArray[np.int64] = field(init=False)
    centers_: Floats = field(init=False)
    spreads_: Floats = field(init=False)
    class_shares_: Floats = field(init=False)

    # What it costs, and how exact it will be -------------------------------------------------------------------------

    def declared(self, table: Table) -> SynthesisFacts:
        """Return what is public about a table, or refuse what the promise cannot be about."""
        if self.unit != "row" or Adjacency(self.adjacency) is not Adjacency.REPLACE:
            raise ParameterError(
                "Blocks of a fixed number of rows protect a row that is replaced by another one, and nothing else.",
                fix='use unit="row" with adjacency="replace", or GroupedGaussian.',
            )
        facts = super().declared(table)
        self._block_size(facts)
        return facts

    def _replaced(self) -> NoiseCalibration:
        """Return what may be spent on numbers of which a replaced row moves so much."""
        return NoiseCalibration.of(epsilon=self.epsilon, delta=self.delta)

    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, Event | None]:
        calibration = self._replaced()
        events = tuple(calibration.share_event(share) for share in (_CENTERS, 1 - _CENTERS))
        guarantee = self._calibration().guarantee(assumptions=(*facts.assumptions, "the number of rows is public"))
        return guarantee, SequenceEvent(events=events)

    def _block_size(self, facts: SynthesisFacts) -> int:
        if self.k is not None:
            return check_count(self.k, name="k", at_least=1)
        if self.expected_rows is None:
            raise ParameterError(
                "Nothing says how large the blocks are to be.",
                fix="give k, or about how many rows there are: expected_rows=10_000.",
            )
        rows = check_count(self.expected_rows, name="expected_rows", at_least=1)
        smallest = min(rows, math.isqrt(rows) + 1)
        sizes = range(smallest, rows)
        # Noise on centers shrinks as blocks grow, so that the first good size is found by halving.
        place = bisect_left(sizes, True, key=lambda k: self._noise_of_centers(facts, rows, k) <= _GOOD_ENOUGH)  # noqa: FBT003  # what is looked for
        return sizes[place] if place < len(sizes) else rows

    def _noise_of_centers(self, facts: SynthesisFacts, rows: int, k: int) -> float:
        noise = self._center_noise(facts, _blocks(rows, k))
        return noise.deviation / UNIT * _blocks(rows, k) / max(1, rows)

    def _center_noise(self, facts: SynthesisFacts, blocks: int) -> StepNoise:
        columns, labels = len(numbers_of(facts.domain)), label_of(facts.domain) is not None
        return self._replaced().noise(
            _CENTERS,
            sensitivity=blocks * 2 * UNIT * (columns + labels),
            squared_sensitivity=blocks * UNIT**2 * (4 * columns + 2 * labels),
        )

    def _square_noise(self, facts: SynthesisFacts) -> StepNoise:
        columns = len(numbers_of(facts.domain))
        return self._replaced().noise(
            1 - _CENTERS, sensitivity=columns * UNIT**2, squared_sensitivity=columns * UNIT**4
        )

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        k = self._block_size(facts)
        if self.expected_rows is None:
            return ()
        rows = check_count(self.expected_rows, name="expected_rows", at_least=1)
        numbers = _blocks(rows, k) * len(numbers_of(facts.domain))
        return (NumberNoise("centers of blocks", numbers, self._noise_of_centers(facts, rows, k)),)

    def _expect(self, facts: SynthesisFacts) -> None:
        found, k, rows = self._expectations(facts), self._block_size(facts), self.expected_rows
        if rows is None:
            return
        if k * k <= rows:
            problem = f"Blocks of {k:,} rows are not worthwhile for about {rows:,} rows: k is at most their square root"
        elif found[0].deviation > 1:
            problem = f"Noise will drown the centers of blocks ({found[0].deviation:.1f} times half the range)"
        else:
            return
        warnings.warn(
            f"{problem}. Use a larger k, fewer columns, or GroupedGaussian.", PrivacyParameterWarning, stacklevel=4
        )

    # Fitting ---------------------------------------------------------------------------------------------------------

    def _learn(self, facts: SynthesisFacts, rows: Table, source: RandomSource) -> None:
        self._tell(0.0, "counting")
        read = self._read(facts, rows)
        sizes, sums, squares = self._released(facts, read, source)
        width = read.steps.shape[1]
        deviation = self._center_noise(facts, len(sizes)).deviation / UNIT
        self._settle(sizes, sums[:, :width], squares / max(1, int(sizes.sum())), deviation)
        self.class_shares_ = _shares(sums[:, width:])
        self.sizes_, self.rows_ = sizes, float(sizes.sum())
        calibration = self._replaced()
        self.steps_ = (
            FitStep("centers of blocks", calibration.share_event(_CENTERS)),
            FitStep("squares of columns", calibration.share_event(1 - _CENTERS)),
        )
        self._tell(1.0, "done")

    def _released(
        self, facts: SynthesisFacts, read: NumericRows, source: RandomSource
    ) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return the public sizes of blocks, and with noise the sums of each block and the squares of all rows."""
        label = label_of(facts.domain)
        sizes, sums = block_sums(read, classes=0 if label is None else label.size, k=self._block_size(facts))
        squares = exact_product(read.steps**2, np.ones((len(read.steps), 1)), read.weights, most=UNIT**2)[:, 0]
        noisy_sums = self._center_noise(facts, len(sizes)).add(sums, source).astype(np.float64) / UNIT
        return sizes, noisy_sums, self._square_noise(facts).add(squares, source).astype(np.float64) / UNIT**2

    def _settle(self, sizes: NDArray[np.int64], sums: Floats, mean_squares: Floats, deviation: float) -> None:
        """Set centers, moved towards the mean as far as they differ by noise alone, and the spread around them."""
        rows = np.maximum(sizes, 1)[:, None].astype(np.float64)
        mean = np.clip(sums.sum(axis=0) / rows.sum(), -1.0, 1.0)
        raw = sums / rows
        apart = (rows * (raw - mean) ** 2).sum(axis=0) / rows.sum()
        by_noise = float(np.mean(deviation**2 / rows))
        between = np.maximum(0.0, apart - by_noise)
        kept = between / np.maximum(apart, 1e-12)
        self.centers_ = np.clip(mean + kept * (raw - mean), -1.0, 1.0)
        # The variance of a column is that between blocks and that within them together.
        self.spreads_ = np.sqrt(np.clip(mean_squares - mean**2 - between, _LEAST_SPREAD, 1.0))

    # Drawing ---------------------------------------------------------------------------------------------------------

    def _draw_numbers(
        self, count: int, classes: NDArray[np.bool_], source: RandomSource
    ) -> tuple[Floats, NDArray[np.int64]]:
        shares = self.class_shares_ * classes if self.class_shares_.shape[1] else np.ones((len(self.sizes_), 1))
        weights = np.maximum(self.sizes_, 1)[:, None] * shares
        cells = choose_by_weight(weights.ravel(), uniforms(source, count))
        blocks, labels = np.divmod(cells, shares.shape[1])
        normals = standard_normals(source, (count, self.centers_.shape[1]))
        return np.clip(self.centers_[blocks] + self.spreads_ * normals, -1.0, 1.0), labels

    def _learned_state(self) -> dict[str, Any]:
        return {
            "sizes": self.sizes_,
            "centers": self.centers_,
            "spreads": self.spreads_,
            "class_shares": self.class_shares_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.sizes_ = np.asarray(state["sizes"], dtype=np.int64)
        self.centers_, self.spreads_, self.class_shares_ = (
            np.asarray(state[name], dtype=np.float64) for name in ("centers", "spreads", "class_shares")
        )
        blocks = len(self.sizes_)
        if not blocks or self.centers_.shape != (blocks, len(self.spreads_)) or len(self.class_shares_) != blocks:
            raise ModelError("The saved synthesizer is damaged.", fix="use the file as save wrote it.")
        self.rows_ = float(self.sizes_.sum())


def block_sums(rows: NumericRows, *, classes: int, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sizes of blocks, and for each the exact sums of its columns and its class counts, times `UNIT`."""
    steps = rows.steps.astype(np.int64)
    # The last key counts most. For the promise any fixed order will do; rows that tie are equal, so that none
    # of them matters.
    order = np.lexsort((*steps.T[::-1], steps.sum(axis=1), rows.classes))
    indicators = (rows.classes[:, None] == np.arange(classes)) * UNIT
    entries = np.concatenate([steps, indicators], axis=1)[order].astype(np.int64)
    weights = rows.weights[order]
    ends = np.cumsum(weights)
    total = int(weights.sum())
    blocks = _blocks(total, k)
    # Where blocks end follows from the number of rows alone, which is the same for all neighbors.
    cuts = np.array([total * place // blocks for place in range(blocks + 1)], dtype=np.int64)
    # Differences of cumulative sums at the cuts are the sums of blocks.
    before = np.concatenate([np.zeros((1, entries.shape[1]), np.int64), np.cumsum(entries * weights[:, None], axis=0)])
    starts = np.concatenate([[0], ends])
    places = np.searchsorted(ends, cuts, side="right")
    inside = np.minimum(places, max(0, len(entries) - 1))
    # Copies of one row may lie on both sides of a cut: as many as come before it are added.
    partial = (cuts - starts[places])[:, None] * entries[inside] if len(entries) else 0
    return np.diff(cuts), np.diff(before[places] + partial, axis=0)


def _blocks(rows: int, k: int) -> int:
    return max(1, rows // k)


def _shares(noisy: Floats) -> Floats:
    """Return the share of each class in each block."""
    positive = np.maximum(noisy, 0.0)
    totals = positive.sum(axis=1, keepdims=True)
    even = np.full_like(positive, 1.0 / max(1, positive.shape[1]))
    return np.asarray(np.divide(positive, totals, out=even, where=totals > 0))
