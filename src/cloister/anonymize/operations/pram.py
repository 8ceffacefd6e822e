"""Post-randomization of a column (PRAM): randomized response after collection.

After Gouweleeuw, Kooiman, Willenborg and de Wolf (1998). Each category is released as another one with a known
probability, drawn exactly. Analysts who know the matrix correct for it with `PostRandomize.estimate`; the invariant
variant, a transition matrix made from the shares of the column that leaves them as they are, needs no correction on
average.

Privacy, for a public matrix: claim epsilon-DP for one value of the column under the replace relation, with epsilon the
logarithm of the largest ratio within a column of the matrix, rounded up, and draws that follow the rational matrix
exactly. Other columns of the row are not covered. A matrix made from the data (invariant) promises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations._arrow_columns import Integers, column_of, encode_column, with_column
from cloister.anonymize.operations.base import (
    Operation,
    OperationContext,
    need_column_name,
    operations,
)
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.guarantees import Adjacency, Guarantee, NoGuarantee, PureDP
from cloister.core.validation import check_epsilon, check_probability
from cloister.data.columns import Category, Column, clean_categories
from cloister.data.sources import ensure_open
from cloister.errors import DataError, MissingBoundsError, ParameterError
from cloister.mechanisms.transitions import (
    Matrix,
    check_matrix,
    draw_codes,
    estimate_shares,
    matrix_epsilon,
    response_matrix,
)

_MOST_EXACT = 100


def invariant_matrix(matrix: object, shares: Sequence[object]) -> Matrix:
    """Return a matrix R with ``transpose(R) pi = pi``, so that released shares need no correction.

    The matrix is followed by its own Bayes inversion under the shares (Gouweleeuw et al. 1998): ``R = P Q`` with
    ``Q[k][l] = P[l][k] pi[l] / sum over m of P[m][k] pi[m]``. Where the shares are those of the data, R depends on the
    data and promises nothing.
    """
    first = check_matrix(matrix)
    prior = [check_probability(share, name="each share") for share in shares]
    if len(prior) != len(first) or sum(prior) != 1 or len(first) > _MOST_EXACT:
        raise ParameterError(
            "The shares do not sum to exactly one, or are not one per category of at most 100.",
            fix="give counts divided by their sum as fractions, for at most 100 categories.",
        )
    back = [_bayes_row([row[k] for row in first], prior, k) for k in range(len(first))]
    columns = list(zip(*back, strict=True))
    return tuple(
        tuple(sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0)) for column in columns)
        for row in first
    )


def _bayes_row(arrivals: Sequence[Fraction], prior: Sequence[Fraction], released: int) -> list[Fraction]:
    joint = [arrival * share for arrival, share in zip(arrivals, prior, strict=True)]
    total = sum(joint, Fraction(0))
    # Nobody arrives at this category, so that any row will do; it keeps itself.
    if total == 0:
        return [Fraction(int(place == released)) for place in range(len(prior))]
    return [part / total for part in joint]


_MOST_CATEGORIES = 1000


@operations.register("pram")
@dataclass(frozen=True, slots=True, kw_only=True)
class PostRandomize(Operation):
    """Release each category as another one with a known probability.

    Attributes:
        column: a column of categories.
        categories: all values that may occur, public; those of the table's schema if they are left out.
        epsilon: tell the truth as often as this epsilon allows.
        matrix: instead, the probabilities: one row per true category, in the order of the categories.
        invariant: change the matrix so that the column's shares stay the same on average; the matrix then depends on
            the data, and there is no promise.
        include_missing: treat missing cells as one more category, the last; otherwise they are refused, since cells
            that stay missing would be certain knowledge.
    """

    name = "pram"
    truthful = False
    is_random = True
    caution = "categories were changed at random; analyses must correct for the transition matrix, which is public"

    column: str = field(kw_only=False)
    categories: tuple[Category, ...] | None = None
    epsilon: Fraction | None = None
    matrix: Matrix | None = None
    invariant: bool = False
    include_missing: bool = False

    def __init__(
        self,
        column: str,
        *,
        categories: Sequence[Category] | None = None,
        epsilon: Number | None = None,
        matrix: Matrix | None = None,
        invariant: bool = False,
        include_missing: bool = False,
    ) -> None:
        construct(
            self,
            column=column,
            categories=categories,
            epsilon=epsilon,
            matrix=matrix,
            invariant=invariant,
            include_missing=include_missing,
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "column", need_column_name(self.column))
        if self.categories is not None:
            object.__setattr__(self, "categories", clean_categories(self.categories))
        if (self.epsilon is None) == (self.matrix is None):
            raise ParameterError("PRAM needs one of epsilon and matrix.", fix="write for example epsilon=1.")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, allow_zero=True))
        if self.matrix is not None:
            object.__setattr__(self, "matrix", check_matrix(self.matrix))
            self._check_size()

    @property
    def guarantee(self) -> Guarantee:
        """Return what one released cell of the column promises."""
        if self.invariant:
            return NoGuarantee(reason="the matrix of invariant PRAM was computed from the data")
        epsilon = self.epsilon if self.matrix is None else matrix_epsilon(self.matrix)
        if epsilon is None:
            return NoGuarantee(reason="a zero in the matrix makes some releases certain proof of a value")
        return PureDP(epsilon=epsilon, adjacency=Adjacency.REPLACE, unit=f'value of "{self.column}"')

    def transform(self, rows: pa.Table, context: OperationContext) -> pa.Table:
        """Return the rows with the column randomized."""
        column = column_of(rows, self.column)
        values = self._values(context)
        codes = self._codes(column, values)
        released = draw_codes(codes, self._transition(codes, len(values)), context.source)
        options = _options(values, column.type, self.column)
        return with_column(rows, self.column, options.take(pa.array(released)))

    def restate(self, column: Column) -> Column:
        """Return the column as it was: its domain is the same."""
        return column

    def estimate(self, table: Any) -> Mapping[Any, float]:  # what open_table takes
        """Return the estimated true share of each category from a released table; not for the invariant variant."""
        if self.invariant:
            raise ParameterError("Shares of an invariant release need no correction.", fix="count the categories.")
        opened = ensure_open(table)
        values = self._values_of(opened.schema)
        codes = self._codes(column_of(opened.to_arrow(), self.column), values)
        counts = np.bincount(codes, minlength=len(values))
        shares = estimate_shares(counts, matrix=self._public_matrix(len(values)))
        return dict(zip(values, shares.tolist(), strict=True))

    def _check_size(self) -> None:
        expected = None if self.categories is None else len(self.categories) + self.include_missing
        if expected is not None and self.matrix is not None and len(self.matrix) != expected:
            raise ParameterError(
                "The matrix does not have one row per category.", fix=f"give {expected} rows and columns."
            )

    def _values(self, context: OperationContext) -> list[Any]:
        return self._values_of(context.schema)

    def _values_of(self, schema: Any) -> list[Any]:  # a Schema or None
        """Return the categories, a missing one last."""
        categories = self.categories
        if categories is None and schema is not None and self.column in schema:
            categories = schema.categories_of(self.column, allow_guessed=self.invariant)
        if categories is None:
            raise MissingBoundsError(
                f'PRAM of "{self.column}" needs all categories, and reading them from the data would not be private.',
                fix='write for example categories=["no", "yes"], or state them in the schema.',
            )
        if len(categories) > _MOST_CATEGORIES:
            raise ParameterError(f"There are more than {_MOST_CATEGORIES} categories.", fix="generalize them first.")
        return [*categories, *([None] if self.include_missing else [])]

    def _codes(self, column: pa.Array, values: Sequence[Any]) -> Integers:
        distinct, codes = encode_column(column)
        places = {value: place for place, value in enumerate(values)}
        known = [places.get(value, -1) for value in distinct.to_pylist()]
        # A missing cell has the code -1, and picks the entry appended at the end.
        found = np.array([*known, len(values) - 1 if self.include_missing else -1], dtype=np.int64)[codes]
        if (found < 0).any():
            raise DataError(
                f'Column "{self.column}" has values outside of its categories, or missing ones.',
                fix="list every category; say include_missing=True to randomize missing cells too.",
            )
        return found

    def _public_matrix(self, size: int) -> Matrix:
        if self.matrix is None:
            return response_matrix(size, epsilon=self.epsilon or 0)  # without a matrix there is an epsilon
        if len(self.matrix) != size:
            raise ParameterError("The matrix does not have one row per category.", fix=f"give {size} rows and columns.")
        return self.matrix

    def _transition(self, codes: Integers, size: int) -> Matrix:
        public = self._public_matrix(size)
        if not self.invariant or not codes.size:
            return public
        counts = np.bincount(codes, minlength=size).tolist()
        return invariant_matrix(public, [Fraction(count, codes.size) for count in counts])


def _options(values: Sequence[Any], type_: pa.DataType, name: str) -> pa.Array:
    try:
        return pa.array(values, type=type_)
    except (pa.ArrowException, TypeError):
        raise ParameterError(
            f'The categories of "{name}" are of another type than the column.', fix="write them as they are stored."
        ) from None
