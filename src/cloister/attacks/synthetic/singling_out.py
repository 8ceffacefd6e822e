"""Singling out: does the synthetic table describe exactly one person of the original?

The attacker makes predicates out of synthetic rows ("age 39, state government, 13 years of education, ...") and hopes
that each is true of exactly one row of the original. Predicates that are rare enough are true of exactly one row quite
often by chance, and of one row of any other table as well (Cohen and Nissim 2020), so the same predicates are tried on
control rows. Three kinds:

- "row": all cells of a synthetic row. Finds rows that were copied.
- "univariate": values of one column that occur once in the synthetic table, and its extremes.
- "multivariate": a few columns of a synthetic row, numbers at least or at most as large, whichever is further from the
  median, if that describes one synthetic row only.

The last two follow Giomi et al. (2022). They see outliers that survived; copied rows they see weakly, since rows that
were not copied satisfy such predicates nearly as often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cloister.attacks.synthetic.predicates import (
    Matches,
    Predicates,
    extreme_predicates,
    rare_value_predicates,
    whole_row_predicates,
)
from cloister.attacks.synthetic.reading import Attacked, read_attacked
from cloister.attacks.synthetic.result import ADVICE, SyntheticAttackResult, most_exposed, scored
from cloister.core.random import RandomSource, RandomState, random_source
from cloister.core.validation import check_choice, check_count
from cloister.errors import DataError

__all__ = ["synthetic_singling_out"]

_KINDS = ("row", "univariate", "multivariate")
_ATTEMPTS = 500


def synthetic_singling_out(
    original: Any,
    synthetic: Any,
    *,
    control: Any = None,
    kind: str = "row",
    columns: Sequence[str] | None = None,
    predicate_columns: int = 3,
    attacks: int = 2_000,
    confidence: object = 0.95,
    random_state: RandomState = None,
) -> SyntheticAttackResult:
    """Return how often a predicate made of a synthetic row is true of exactly one row of the original.

    Whether a predicate is true of exactly one row depends on how many rows there are. So if the original and the
    control are of different sizes, the larger one is cut at random to the size of the smaller one.

    Args:
        original: the rows that the synthetic ones were made from: a `cloister.Table`, a data frame or a file.
        synthetic: the synthetic rows, likewise.
        control: rows of the same kind that had no part in the synthetic table.
        kind: "row", "univariate" or "multivariate".
        columns: which columns; without it, all that the tables share but identifiers.
        predicate_columns: how many columns a multivariate predicate is about.
        attacks: how many predicates are made at most.
        confidence: of the intervals. Predicates that single out the same row count as one in them, and no more
            predicates count than there are rows.
        random_state: of the choice of predicates; an integer is for tests.

    Raises:
        UnknownColumnError: if a table lacks a column.
        DataError: if a table is empty, or no predicate describes one synthetic row.
    """
    check_choice(kind, name="kind", allowed=_KINDS)
    most = check_count(attacks, name="attacks", at_least=1)
    few = check_count(predicate_columns, name="predicate_columns", at_least=1)
    source = random_source(random_state)
    tables = read_attacked(original, synthetic, control=control, columns=columns).evened(source)
    made = _made(tables, kind, most, min(few, len(tables.names)), source)
    if not len(made):
        raise DataError(
            "No predicate of this kind describes exactly one synthetic row.",
            fix='use kind="row", or more columns per predicate.',
        )
    found = made.matches(tables.original)
    others = None if tables.control is None else made.matches(tables.control)
    naive = made.guesses(source).matches(tables.original)
    compared = None if others is None else (float(others.single.sum()), len(made))
    exposed = np.bincount(found.places[found.single], minlength=len(tables.original)).astype(np.float64)
    return SyntheticAttackResult(
        attack="singling out",
        kind=kind,
        assumption="holds the synthetic table and describes one of its rows, hoping that one real person fits",
        baseline=float(naive.single.mean()),
        queries=len(made),
        left_out=tables.left_out,
        mitigation=ADVICE,
        worst=most_exposed(tables.places, exposed),
        **scored(
            float(found.single.sum()),
            len(made),
            control=compared,
            confidence=confidence,
            alike=(
                _alike(found, len(tables.original)),
                1.0 if others is None or tables.control is None else _alike(others, len(tables.control)),
            ),
        ),
    )


def _made(tables: Attacked, kind: str, count: int, columns: int, source: RandomSource) -> Predicates:
    match kind:
        case "row":
            return whole_row_predicates(tables.synthetic, count, source)
        case "univariate":
            return rare_value_predicates(tables.synthetic, count, source)
        case _:
            return extreme_predicates(tables.synthetic, count, source, columns=columns, attempts=_ATTEMPTS * count)


def _alike(found: Matches, rows: int) -> float:
    """Return how many predicates single out the same row, on average over predicates; or come to one row, if more."""
    counts = np.bincount(found.places[found.single])
    same = float((counts**2).sum() / counts.sum()) if counts.size and counts.sum() else 1.0
    return max(same, len(found.counts) / rows)
