"""What is shown of the answers to a question: output columns, HAVING, ORDER BY and LIMIT, after the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.queries.answers import Estimate
from cloister.queries.sql.formulas import (
    Answers,
    Derived,
    Formula,
    KeyColumn,
    Literal,
    NoisyColumn,
    Test,
    as_floats,
    is_numeric,
)

__all__ = ["Output", "Presentation", "SortKey"]


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the result."""

    name: str
    formula: Formula

    def column(self, answers: Answers) -> Estimate:
        """Return the column, in the rows of the answers."""
        match self.formula:
            case KeyColumn(index=index):
                return answers.keys[index].named(self.name)
            case NoisyColumn(index=index):
                return answers.aggregates[index].named(self.name)
            case Literal():
                return Estimate.key(self.name, self.formula.values(answers).tolist())
        values = self.formula.values(answers)
        if not is_numeric(values):
            return Estimate.key(self.name, values.tolist())
        return Estimate(name=self.name, values=values, error=Derived(self.formula, answers))


@dataclass(frozen=True, slots=True)
class SortKey:
    """One member of ORDER BY."""

    formula: Formula
    descending: bool = False
    nulls_first: bool = False

    def columns(self, answers: Answers) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return what to sort by, in ascending order: whether the value is missing, and its rank."""
        ranks = _ranks(self.formula.values(answers))
        missing = np.isnan(ranks)
        values = np.where(missing, 0.0, -ranks if self.descending else ranks)
        return ~missing if self.nulls_first else missing, values


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """How the answer of a question becomes the result of a query. It reads noisy values only, and costs nothing."""

    outputs: tuple[Output, ...]
    having: Test | None = None
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    def present(self, keys: Sequence[Estimate], aggregates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return the columns of the result.

        Args:
            keys: a column for each key of the question.
            aggregates: a column for each aggregate of the question.
        """
        answers = Answers(tuple(keys), tuple(aggregates))
        shown = answers.take(self._rows(answers))
        return tuple(output.column(shown) for output in self.outputs)

    def columns(self, keys: Sequence[Estimate], aggregates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return the columns of the result in all groups, whatever HAVING, ORDER BY and LIMIT say."""
        answers = Answers(tuple(keys), tuple(aggregates))
        return tuple(output.column(answers) for output in self.outputs)

    def canonical(self) -> str:
        """Return a text that is the same for the same presentation, whatever its columns are called."""
        unnamed = tuple(replace(output, name="") for output in self.outputs)
        return repr(replace(self, outputs=unnamed))

    def _rows(self, answers: Answers) -> NDArray[np.int64]:
        rows = np.arange(len(answers))
        if self.having is not None:
            rows = rows[self.having(answers) == 1]
        if self.order:
            kept = answers.take(rows)
            columns = [column for key in self.order for column in key.columns(kept)]
            rows = rows[np.lexsort(columns[::-1])]
        end = None if self.limit is None else self.offset + self.limit
        return rows[self.offset : end]


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return numbers as they are, and other values by their place in their own order."""
    if is_numeric(values):
        return as_floats(values)
    present = sorted({item for item in values if item is not None})
    places = {item: float(place) for place, item in enumerate(present)}
    return np.array([np.nan if item is None else places[item] for item in values], dtype=float)
