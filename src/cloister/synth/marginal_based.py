"""The base of synthesizers that measure marginals and draw rows of codes from a model of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.accounting.events import Event
from cloister.core.guarantees import Guarantee
from cloister.core.random import RandomSource
from cloister.data.table import Table
from cloister.errors import InternalError
from cloister.synth.base import Facts, Synthesizer
from cloister.synth.conditions import allowed_cells
from cloister.synth.constraints import zeros_of
from cloister.synth.counting import CellCounts, Counts
from cloister.synth.expectation import Expectation
from cloister.synth.inference.estimation import Estimator, Zeros
from cloister.synth.inference.measurement import Measurement
from cloister.synth.inference.model import MarginalModel
from cloister.synth.spending import Purse

__all__ = ["MarginalSynthesizer", "Work", "column_expectations", "possible_cells"]

_FEW = 3.0
"""How many deviations of its noise a count of missing values must have to be believed."""


@dataclass(eq=False)
class Work:
    """A fit under way: the protected counts, and the only ways to let something of them out.

    Attributes:
        facts: what is public.
        counts: the exact counts. Protected.
        purse: what may be spent.
        source: of the noise.
        seen: what was measured.
    """

    facts: Facts
    counts: CellCounts = field(repr=False)
    purse: Purse
    source: RandomSource
    seen: list[Measurement] = field(default_factory=list)

    def measure(self, columns: Sequence[int], share: Fraction) -> Measurement:
        """Return a marginal with noise, and remember it."""
        label = " x ".join(self.facts.domain.names[column] for column in columns)
        self.seen.append(self.purse.measure(self.counts, columns, share, self.source, label=label))
        return self.seen[-1]

    def measure_columns(self, share: Fraction) -> None:
        """Measure every column by itself."""
        many = len(self.facts.domain.names)
        for column in range(many):
            self.measure((column,), share / many)

    def choose(
        self,
        scores: Sequence[int] | Counts,
        candidates: Sequence[Any],
        share: Fraction,
        *,
        label: str,
        sensitivity: int = 1,
    ) -> Any:  # one of the candidates
        """Return a candidate with a high score, privately; an added row moves a score by at most the sensitivity."""
        exactly = np.asarray(scores)
        if exactly.dtype != np.int64:
            raise InternalError("Scores must be whole numbers, so that their sensitivity is exact.")
        return self.purse.choose(
            exactly, candidates, share, self.source, label=label, sensitivity=Fraction(sensitivity)
        )

    @cached_property
    def _impossible(self) -> tuple[Zeros, ...]:
        return zeros_of(self.facts.constraints, self.facts.domain)

    def estimate(self, estimator: Estimator, *, start: MarginalModel | None = None) -> MarginalModel:
        """Return the model of what was measured, without what is impossible or missing by noise alone."""
        zeros = [*self._impossible, *_never_missing(self.facts, self.seen)]
        return estimator.fit(self.facts.domain.sizes, self.seen, zeros=zeros, start=start)


def column_expectations(facts: Facts, purse: Purse, share: Fraction) -> tuple[Expectation, ...]:
    """Return how exact `Work.measure_columns` will be."""
    noise = purse.noise(share / len(facts.domain.names))
    return tuple(Expectation.of(item.name, item.size, noise) for item in facts.domain.attributes)


def possible_cells(facts: Facts) -> NDArray[np.bool_]:
    """Return which combinations of all columns' cells constraints leave possible."""
    possible = np.ones(facts.domain.sizes, dtype=np.bool_)
    for item in zeros_of(facts.constraints, facts.domain):
        shape = [size if column in item.columns else 1 for column, size in enumerate(facts.domain.sizes)]
        possible &= item.possible.reshape(shape)
    return possible


@dataclass(kw_only=True, eq=False, repr=False)
class MarginalSynthesizer(Synthesizer):
    """A synthesizer that ends in a distribution over the declared cells."""

    model_: MarginalModel = field(init=False)
    measurements_: tuple[Measurement, ...] = field(init=False)

    def _promise(self, facts: Facts) -> tuple[Guarantee, Event | None]:
        purse = Purse(self._allowance())
        return purse.allowance.guarantee(assumptions=facts.assumptions), purse.event

    def _learn(self, facts: Facts, rows: Table, source: RandomSource) -> None:
        self._tell(0.0, "counting")
        work = Work(facts, CellCounts(rows, facts.domain), Purse(self._allowance()), source)
        self.model_ = self._modeled(work)
        self.measurements_, self.steps_ = tuple(work.seen), tuple(work.purse.steps)
        self.rows_ = self.model_.total
        self._tell(1.0, "done")

    @abstractmethod
    def _modeled(self, work: Work) -> MarginalModel:
        """Return the model of what is measured."""

    def marginal(self, columns: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return how many rows the model has in each combination of some columns' cells; costs nothing.

        Args:
            columns: one axis each, in the order of the table.
        """
        places = self.fitted_facts.domain.positions(columns)
        return np.asarray(self.model_.marginal(places) * self.model_.total)

    def _draw(self, count: int, conditions: dict[str, Any], source: RandomSource) -> dict[str, Any]:
        domain = self.fitted_facts.domain
        wanted = {domain.positions([name])[0]: allowed_cells(domain[name], given) for name, given in conditions.items()}
        model = self.model_.given({place: cells for place, (cells, _) in wanted.items()}) if wanted else self.model_
        codes = model.sample(count, source)
        limits = {domain.names[place]: between for place, (_, between) in wanted.items()}
        return {
            item.name: item.decode(codes[:, place], source, between=limits.get(item.name))
            for place, item in enumerate(domain.attributes)
        }

    def _learned_state(self) -> dict[str, Any]:
        return {
            "model": self.model_.to_dict(),
            "measurements": [
                {"columns": list(item.columns), "values": item.values, "deviation": float(item.deviation)}
                for item in self.measurements_
            ],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.model_ = MarginalModel.from_dict(state["model"])
        self.measurements_ = tuple(
            Measurement(tuple(item["columns"]), item["values"], float(item["deviation"]))
            for item in state["measurements"]
        )
        self.rows_ = self.model_.total


def _never_missing(facts: Facts, measurements: Sequence[Measurement]) -> list[Zeros]:
    """Return the columns whose count of missing values is not above its noise, as impossible to miss."""
    found = []
    for item in measurements:
        can_miss = len(item.columns) == 1 and not facts.domain.attributes[item.columns[0]].complete
        if can_miss and item.values[-1] < _FEW * item.deviation:
            possible = np.ones(item.values.shape, dtype=np.bool_)
            possible[-1] = False
            found.append(Zeros(item.columns, possible))
    return found
