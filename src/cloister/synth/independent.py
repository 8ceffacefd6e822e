"""Every column by itself: the baseline that keeps no connection between columns.

Privacy: each of d columns is one marginal that gets a d-th of the budget; see `cloister.synth.spending`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cloister.synth.base import Facts, synthesizers
from cloister.synth.expectation import Expectation
from cloister.synth.inference.estimation import Estimator
from cloister.synth.inference.model import MarginalModel
from cloister.synth.marginal_based import MarginalSynthesizer, Work, column_expectations
from cloister.synth.spending import Purse

__all__ = ["IndependentMarginals"]


@synthesizers.register("independent")
@dataclass(kw_only=True, eq=False, repr=False)
class IndependentMarginals(MarginalSynthesizer):
    """Columns drawn independently of each other, each as it is distributed in the data.

    >>> IndependentMarginals(epsilon=0.5)
    IndependentMarginals(epsilon=0.5)
    """

    def _expectations(self, facts: Facts) -> tuple[Expectation, ...]:
        return column_expectations(facts, Purse(self._allowance()), Fraction(1))

    def _modeled(self, work: Work) -> MarginalModel:
        work.measure_columns(Fraction(1))
        return work.estimate(Estimator())
