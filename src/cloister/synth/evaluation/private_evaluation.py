"""How good a synthetic table is, as figures that may be published: paid for like any other release.

Privacy: claim epsilon-DP. With n real rows of which c_i are in cell i of a marginal, and a fixed synthetic table with
shares q_i, let L = sum |c_i - n q_i| / 2, which is n times the total variation. One row added to cell i moves
c_i - n q_i by 1 - q_i and every other term by q_j: L moves by at most 1 - q_i <= 1. So does the mean of L over any
fixed set of marginals. Three numbers are released: the row count, the mean of L over all columns, and that over all
pairs of columns, each with noise for a third of epsilon; the last two in whole steps of 1/1000 row, so that rounding
down makes their sensitivity 1001 steps at most. L is computed in whole numbers. Everything else follows from the three.
Persons with several rows and replaced rows are groups of rows, as in `NoiseCalibration`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cloister.accounting.payment import finish, pay
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, Guarantee
from cloister.core.random import RandomState, caveats_of, random_source
from cloister.core.result import Result
from cloister.data.table import Table
from cloister.mechanisms.calibration import FitStep, NoiseCalibration
from cloister.synth._cell_counts import CellCounts, person_rows
from cloister.synth._domain import declare_domain
from cloister.synth.base import PUBLIC_FACTS
from cloister.synth.evaluation._coded_tables import open_real_table, public_table

__all__ = ["PrivateEvaluation", "evaluate_privately"]

_STEPS = 1_000
_THIRD = Fraction(1, 3)


@dataclass(frozen=True, kw_only=True)
class PrivateEvaluation(Result):
    """Mean total variation of a synthetic table, with noise; may be passed on.

    Attributes:
        one_way: the mean over all columns.
        two_way: the mean over all pairs of columns; None for one column.
        margins: the half-width of a 95 % interval of each that covers the noise.
        rows: the number of real rows, with noise.
        columns: which columns.
    """

    schema: ClassVar[str] = "cloister.private_synthetic_evaluation/1"

    one_way: float
    two_way: float | None
    margins: tuple[float, float]
    rows: int
    columns: tuple[str, ...]
    guarantee: Guarantee

    def __str__(self) -> str:
        shown = f"mean total variation {self.one_way:.4f} ± {self.margins[0]:.4f} of columns"
        if self.two_way is not None:
            shown += f", {self.two_way:.4f} ± {self.margins[1]:.4f} of pairs"
        return f"{shown} (95%), {self.guarantee.brief()}"

    def _fields(self) -> dict[str, Any]:
        return {
            "one_way": self.one_way,
            "two_way": self.two_way,
            "margins": list(self.margins),
            "rows": self.rows,
            "columns": list(self.columns),
        }


def evaluate_privately(
    real: Any,
    synthetic: Any,
    *,
    epsilon: Number,
    schema: Any = None,
    columns: Sequence[str] | None = None,
    bins: Any = None,
    ledger: Any = None,
    dataset: str | None = None,
    analyst: str | None = None,
    unit: str = "row",
    max_rows_per_unit: int = 1,
    adjacency: Adjacency | str = "add_remove",
    random_state: RandomState = None,
) -> PrivateEvaluation:
    """Return how far a synthetic table is from protected rows, for the price of epsilon.

    Args:
        real: the protected rows: a `cloister.Table` with a confirmed schema, or what `cloister.open_table` takes.
        synthetic: the synthetic rows, which are public.
        epsilon: what it may cost.
        schema: what is publicly known of the columns; the real table's own by default.
        columns: which columns; without it, all that the schema describes but identifiers.
        bins: into how many bins numbers, dates and times are cut, or at which edges: for all, or by column.
        ledger: a ledger that has an account for the dataset, or its address; without one, nobody keeps count.
        dataset: the account in the ledger.
        analyst: who pays, where the ledger limits analysts.
        unit: what is protected: "row", or the column that names a person.
        max_rows_per_unit: how many rows of a person are used.
        adjacency: "add_remove" or "replace".
        random_state: None; an integer is for tests, and breaks the promise.

    Raises:
        BudgetExceededError: if the ledger has less left.
    """
    opened = open_real_table(real, schema)
    domain = declare_domain(opened, columns=columns, bins=bins, apart=(unit,))
    public = CellCounts(public_table(synthetic, opened, domain), domain)
    calibration = NoiseCalibration.of(
        epsilon=epsilon, adjacency=adjacency, unit=unit, max_rows_per_unit=max_rows_per_unit
    )
    noises = [calibration.laplace(_THIRD, sensitivity=size) for size in (1, _STEPS + 1, _STEPS + 1)]
    labels = ("rows", "total variation of columns", "total variation of pairs")
    event = calibration.event(tuple(FitStep(label, noise.event) for label, noise in zip(labels, noises, strict=True)))
    guarantee = calibration.guarantee(assumptions=(PUBLIC_FACTS, *opened.assumptions))
    source = random_source(random_state)
    pay(guarantee, event, ledger=ledger, dataset=dataset, analyst=analyst, purpose="evaluate a synthetic table")
    places = range(len(domain.names))
    ways = [list(itertools.combinations(places, many)) for many in (1, 2)]

    def measure(table: Table) -> list[int]:
        counts = CellCounts(person_rows(table, domain, unit=unit, limit=max_rows_per_unit), domain)
        exact = [int(counts.marginal((0,)).sum()), *(_steps(counts, public, marginals) for marginals in ways)]
        return [int(noise.add(np.array([value]), source)[0]) for value, noise in zip(exact, noises, strict=True)]

    noisy = finish(lambda: measure(opened), nothing=lambda: measure(opened.without_rows()))
    rows = max(1, noisy[0])
    shares = [min(1.0, max(0.0, value / _STEPS / rows)) for value in noisy[1:]]
    widths = [noise.margin(0.95) / _STEPS / rows for noise in noises[1:]]
    return PrivateEvaluation(
        one_way=shares[0],
        two_way=shares[1] if ways[1] else None,
        margins=(widths[0], widths[1]),
        rows=rows,
        columns=domain.names,
        guarantee=guarantee.with_caveat(*caveats_of(source)),
    )


def _steps(counts: CellCounts, public: CellCounts, marginals: Sequence[tuple[int, ...]]) -> int:
    """Return the mean over marginals of the rows that would have to move, in whole steps, rounded down."""
    if not marginals:
        return 0
    moved, others = 0, 1
    for columns in marginals:
        one, two = counts.marginal(columns), public.marginal(columns)
        rows, others = int(one.sum()), int(two.sum())
        # Whole numbers: as Python's where 64 bits could overflow.
        wide = rows * others >= 2**61
        first, second = (item.astype(object) if wide else item for item in (one, two))
        moved += int(np.abs(first * others - second * rows).sum())
    # The synthetic rows are equally many in every marginal, so that the last number holds for all of them.
    return moved * _STEPS // (2 * others * len(marginals))
