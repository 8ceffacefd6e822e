"""Gaussians for groups of columns, one for each class and region: what PrivSyn was meant to be.

The published method (a case study of Zhuang and Chang's book on privacy-preserving machine learning) groups columns by
exact correlations, groups rows by exact distances (MDAV), divides its noise by the number of rows once too often, draws
it again until a matrix fits, and keeps the order of the rows. None of that is differentially private. Here

1. columns are grouped by correlations from one noisy release of counts, sums and products, where there are many;
2. each group of columns is cut, where there are rows enough, into boxes at public midpoints, along columns that noisy
   counts choose;
3. each class in each box releases its count, sums and products with noise, drawn once;
4. small boxes are joined, and each becomes a Gaussian whose covariance is the nearest that there is;
5. rows are drawn anew: a class, then a box and a Gaussian draw for each group, clipped to the public bounds.

Groups are independent inside of a class: what hangs together across groups is lost beyond what the class explains.
Rows in which a number is missing, or whose label is not a declared one, are left out.

Privacy: claim (epsilon, delta)-DP, or epsilon-DP without a delta, for one row added or removed. Columns are whole
numbers on a public grid, each row by itself. The first release has a tenth of the budget. What follows has the rest,
with shares of groups by their number of columns, which are fixed once the groups are released; of a group's share, two
ninths choose boxes and seven ninths measure moments, or all of it where nothing is cut. A row is in one class and one
box of a group, so classes and boxes are parallel, and groups add up. See `cloister.synth._moments` for how far
a row moves each release, and `cloister.mechanisms.calibration` for how shares compose. The numbers of groups and boxes
follow from public facts and released numbers.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core.guarantees import Guarantee
from cloister.core.random import RandomSource
from cloister.core.validation import check_count
from cloister.core.whole_rows import Floats
from cloister.data.table import Table
from cloister.errors import PrivacyParameterWarning
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.synth._gaussian_mixtures import Mixture, class_weights, correlations, group_columns, mixture_of
from cloister.synth._moments import Box, NoisyMoments, cut_into_boxes, places_in, plan_moments, release_moments
from cloister.synth._numeric import (
    UNIT,
    NumberNoise,
    NumericRows,
    NumericSynthesizer,
    choose_by_weight,
    label_of,
    numbers_of,
)
from cloister.synth.base import SynthesisFacts, synthesizers
from cloister.synth.expectation import Expectation
from cloister.synth.inference._marginal_model import uniforms

__all__ = ["GroupedGaussian"]

_GROUPING = Fraction(1, 10)
_CUTTING = Fraction(2, 9)
_MANY_COLUMNS = 12
_ROWS_PER_COLUMN = 50
_MOST_LEVELS = 10

Groups = tuple[tuple[int, ...], ...]


@dataclass(eq=False)
class _Work:
    """A fit under way: the protected rows, what may be spent, and what was."""

    read: NumericRows
    classes: int
    calibration: NoiseCalibration
    source: RandomSource
    steps: list[FitStep] = field(default_factory=list)

    def pay(self, label: str, share: Fraction) -> None:
        self.steps.append(FitStep(label, self.calibration.share_event(share)))


@synthesizers.register("grouped_gaussian")
@dataclass(kw_only=True, eq=False, repr=False)
class GroupedGaussian(NumericSynthesizer):
    """Numbers drawn from Gaussians, one for each class, region and group of columns (PrivSyn, corrected).

    Args:
        label: the one column that may have public categories, such as the classes of a classification.
        max_groups: into how many groups columns may be put; by default one group up to 12 columns, and otherwise as
            many as the noisy correlations suggest.
        regions: into how many boxes a group of columns may be cut, for all classes together, rounded down to a power
            of two; by default as many as leave 50 d / epsilon rows for each class and box of d columns, by
            ``expected_rows``: one without it.
        min_rows_per_region: boxes that seem to have fewer rows of a class are joined with their nearest.

    Attributes:
        groups_: the groups of columns, as names.

    >>> GroupedGaussian(epsilon=2.0, label="class")
    GroupedGaussian(epsilon=2.0, label='class')
    """

    max_groups: int | None = None
    regions: int | None = None
    min_rows_per_region: int = 50

    groups_: tuple[tuple[str, ...], ...] = field(init=False)
    mixtures_: tuple[tuple[Mixture, ...], ...] = field(init=False)
    class_weights_: Floats = field(init=False)

    # What it costs, and how exact it will be -------------------------------------------------------------------------

    def _promise(self, facts: SynthesisFacts) -> tuple[Guarantee, Event | None]:
        calibration, grouping = self._calibration(), self._grouping_share(facts)
        steps = [FitStep("correlations of columns", calibration.share_event(grouping))] if grouping else []
        steps.append(FitStep("regions and moments", calibration.share_event(1 - grouping)))
        return calibration.guarantee(assumptions=facts.assumptions), calibration.event(tuple(steps))

    def _grouping_share(self, facts: SynthesisFacts) -> Fraction:
        return _GROUPING if self._most_groups(len(numbers_of(facts.domain))) > 1 else Fraction(0)

    def _most_groups(self, columns: int) -> int:
        """Return into how many groups columns may be put, by a public rule."""
        if self.max_groups is None:
            return columns - 1 if columns > _MANY_COLUMNS else 1
        return min(check_count(self.max_groups, name="max_groups", at_least=1), columns - 1)

    def _levels(self, columns: int, classes: int) -> int:
        """Return how often a group of columns is halved, by a public rule."""
        if self.regions is not None:
            return min(_MOST_LEVELS, int(math.log2(check_count(self.regions, name="regions", at_least=1))))
        needed = _ROWS_PER_COLUMN * columns * classes / float(self._calibration().budget.amount)
        most = (self.expected_rows or 0) / needed
        return min(_MOST_LEVELS, int(math.log2(most))) if most >= 2 else 0

    def _expectations(self, facts: SynthesisFacts) -> tuple[Expectation, ...]:
        columns, classes = len(numbers_of(facts.domain)), _classes(facts)
        check_count(self.min_rows_per_region, name="min_rows_per_region", at_least=1)
        share = 1 - self._grouping_share(facts)
        if self._levels(columns, classes):
            share *= 1 - _CUTTING
        noise = plan_moments(self._calibration(), share, Box.whole(columns).reach)
        counts = Expectation.of("rows of each class", classes, noise.count)
        if self.expected_rows is None:
            return (counts,)
        rows = max(1, check_count(self.expected_rows, name="expected_rows")) / classes
        means = NumberNoise("means of columns in each class", classes * columns, noise.sums.deviation / UNIT / rows)
        entries = columns * (columns + 1) // 2
        products = noise.products.deviation / UNIT**2 / rows
        return counts, means, NumberNoise("covariances of columns in each class", classes * entries, products)

    def _expect(self, facts: SynthesisFacts) -> None:
        found = self._expectations(facts)
        if len(found) == 1:
            return
        *_, covariances = found
        error = covariances.deviation * math.sqrt(covariances.cells / _classes(facts))
        if error > 1:
            warnings.warn(
                f"Noise will drown the covariances (an expected error of {error:.1f} for about "
                f"{self.expected_rows:,} rows, in units of half the range of columns, where 1 is large): ask for fewer "
                "columns, or a larger epsilon.",
                PrivacyParameterWarning,
                stacklevel=4,
            )

    # Fitting ---------------------------------------------------------------------------------------------------------

    def _learn(self, facts: SynthesisFacts, rows: Table, source: RandomSource) -> None:
        self._tell(0.0, "counting")
        read = self._read(facts, rows)
        # Whether a row stays depends on that row alone, so that one row more or less changes nothing else.
        read = read.kept(read.whole & (read.classes < _classes(facts)))
        work = _Work(read, _classes(facts), self._calibration(), source)
        grouping = self._grouping_share(facts)
        groups = self._grouped(work, grouping)
        self._tell(0.3, "measuring")
        width = work.read.steps.shape[1]
        self.mixtures_ = tuple(
            self._measured(work, group, (1 - grouping) * Fraction(len(group), width)) for group in groups
        )
        names = [item.name for item in numbers_of(facts.domain)]
        self.groups_ = tuple(tuple(names[column] for column in group) for group in groups)
        self.class_weights_ = class_weights(self.mixtures_, [len(group) for group in groups])
        self.rows_ = float(self.class_weights_.sum())
        self.steps_ = tuple(work.steps)
        self._tell(1.0, "done")

    def _grouped(self, work: _Work, share: Fraction) -> Groups:
        """Return the groups of columns, from noisy correlations if there may be several."""
        columns = work.read.steps.shape[1]
        if not share:
            return (tuple(range(columns)),)
        box = Box.whole(columns)
        noise = plan_moments(work.calibration, share, box.reach)
        work.pay("correlations of columns", share)
        moments = release_moments(work.read.steps, work.read.weights, box, noise, work.source)
        return group_columns(correlations(moments), most=self._most_groups(columns))

    def _measured(self, work: _Work, group: tuple[int, ...], share: Fraction) -> tuple[Mixture, ...]:
        """Return the Gaussians of one group of columns, for each class."""
        numbers = np.ascontiguousarray(work.read.steps[:, group])
        levels, boxes, fewest = (
            self._levels(len(group), work.classes),
            [Box.whole(len(group))],
            int(self.min_rows_per_region),
        )
        if levels:
            work.pay("regions", share * _CUTTING)
            boxes = cut_into_boxes(
                numbers,
                work.read.weights,
                levels=levels,
                calibration=work.calibration,
                share=share * _CUTTING,
                fewest=fewest,
                source=work.source,
            )
            share *= 1 - _CUTTING
        work.pay("counts, sums and products of columns", share)
        places = places_in(numbers, boxes)
        noises = [plan_moments(work.calibration, share, box.reach) for box in boxes]
        mixtures = []
        # A row is in one class and in one box: all of these releases together are paid with one share.
        for label in range(work.classes):
            moments = list[NoisyMoments]()
            for place, (box, noise) in enumerate(zip(boxes, noises, strict=True)):
                chosen = (work.read.classes == label) & (places == place)
                moments.append(release_moments(numbers[chosen], work.read.weights[chosen], box, noise, work.source))
            mixtures.append(mixture_of(moments, boxes, fewest=fewest))
        return tuple(mixtures)

    # Drawing ---------------------------------------------------------------------------------------------------------

    def _draw_numbers(
        self, count: int, classes: NDArray[np.bool_], source: RandomSource
    ) -> tuple[Floats, NDArray[np.int64]]:
        wanted = np.flatnonzero(classes)
        labels = wanted[choose_by_weight(self.class_weights_[wanted], uniforms(source, count))]
        names = [item.name for item in numbers_of(self.fitted_facts.domain)]
        numbers = np.empty((count, len(names)))
        for group, mixtures in zip(self.groups_, self.mixtures_, strict=True):
            columns = np.array([names.index(name) for name in group])
            for label in wanted:
                rows = np.flatnonzero(labels == label)
                numbers[np.ix_(rows, columns)] = mixtures[label].draw(len(rows), source)
        return np.clip(numbers, -1.0, 1.0), labels

    def _learned_state(self) -> dict[str, Any]:
        return {
            "groups": [list(group) for group in self.groups_],
            "mixtures": [[mixture.to_dict() for mixture in classes] for classes in self.mixtures_],
            "class_weights": self.class_weights_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.groups_ = tuple(tuple(map(str, group)) for group in state["groups"])
        self.mixtures_ = tuple(
            tuple(Mixture.from_dict(item, width=len(group)) for item in classes)
            for group, classes in zip(self.groups_, state["mixtures"], strict=True)
        )
        self.class_weights_ = np.asarray(state["class_weights"], dtype=np.float64)
        self.rows_ = float(self.class_weights_.sum())


def _classes(facts: SynthesisFacts) -> int:
    label = label_of(facts.domain)
    return 1 if label is None else label.size
