"""Compromised records: whose value follows, by adding and subtracting, from the sums that were answered.

Each answered sum is one row of a matrix that says who was in it, and with what weight. A record is compromised when its
unit vector is a combination of the rows: then some weighted total of the answers *is* its value. The test is exact,
in rational numbers, and looks at no value, so that an owner can run it on a log of questions alone.

Elimination goes without fractions (after Bareiss, "Sylvester's identity and multistep integer-preserving Gaussian
elimination", 1968): every number on the way is a minor of the matrix, so that each division has no remainder and
nothing is rounded. It takes time with the cube of the matrix, in numbers that grow: seconds for two hundred rows.

It knows sums only. Where little is possible about a value, such as yes or no, far fewer sums give it away: see
`cloister.attacks.interfaces.reconstruction`.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.details import AttackDetails, Row, fact
from cloister.attacks.result import AttackResult
from cloister.core import exact, validation
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["CompromisedRecordsDetails", "compromised_records", "reduce_rows", "unit_vectors"]


def reduce_rows(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the reduced rows of a matrix of whole numbers, each up to a factor; as many as its rank.

    >>> reduce_rows(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]])).tolist()
    [[1, 1, 0], [0, 0, 1]]
    """
    rows: NDArray[Any] = np.array([list(map(int, row)) for row in matrix], dtype=object).reshape(matrix.shape)
    before, rank = 1, 0
    for column in range(matrix.shape[1]):
        usable = np.flatnonzero(rows[rank:, column])
        if not len(usable):
            continue
        chosen = rank + usable[0]
        rows[[rank, chosen]] = rows[[chosen, rank]]
        pivot, others = rows[rank, column], np.arange(len(rows)) != rank
        rows[others] = (rows[others] * pivot - rows[others, column][:, None] * rows[rank]) // before
        before, rank = pivot, rank + 1
    return rows[:rank]


def unit_vectors(matrix: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Return the columns whose unit vector is a combination of the rows, and the rank.

    >>> columns, rank = unit_vectors(np.array([[1, 1, 0], [1, 1, 1]]))
    >>> columns.tolist(), rank
    ([2], 2)
    """
    rows = reduce_rows(matrix)
    alone = rows[(rows != 0).sum(axis=1) == 1] if len(rows) else rows
    return np.sort(np.flatnonzero((alone != 0).any(axis=0))).astype(np.int64), len(rows)


_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CompromisedRecordsDetails(AttackDetails):
    """What an audit of answered sums found; exact, so that the interval has no width.

    Attributes:
        rank: how many of the answered sums are independent; the values of all follow when it is the number of records.
        compromised: the positions of the records whose value follows; custodian only, documents have their number.
    """

    rank: int
    compromised: tuple[int, ...] = field(repr=False, metadata=fact(write=len))

    def conclude(self, result: AttackResult, /) -> str:
        """Return how many values follow."""
        asked = f"from {result.queries:,} sums, {self.rank:,} of them independent"
        if not self.compromised:
            return (
                f"No record's value follows {asked}, by adding and subtracting. Whoever knows some of the values, or "
                "what is possible, may still find more."
            )
        many = len(self.compromised)
        whose = "the value of 1 record follows" if many == 1 else f"the values of {many:,} records follow"
        return f"The answers give people away: {whose} {asked}, of {result.trials:,} records."

    def tell(self, result: AttackResult, /) -> Iterator[Row]:
        yield "independent sums", f"{self.rank:,} of {result.queries:,}"


def compromised_records(queries: Any, *, records: int | None = None) -> AttackResult[CompromisedRecordsDetails]:
    """Return how many records are given away by sums that were answered exactly.

    Args:
        queries: one row for each answered sum, with the weight of each record in it: 1 if it was counted, 0 if not.
            With ``records``, the positions of the records in each sum instead.
        records: how many records there are, where positions are given.

    >>> print(compromised_records([[0, 1, 2, 3], [0, 1, 2], [1, 2]], records=4).verdict)
    The answers give people away: the values of 2 records follow from 3 sums, 3 of them independent, of 4 records.
    """
    matrix = _whole_numbers(queries) if records is None else _from_positions(queries, records)
    # Records that were in the same sums cannot be told apart: they are one column, which keeps the elimination
    # small.
    columns = list(map(tuple, matrix.T.tolist()))
    together = Counter(columns)
    places, rank = unit_vectors(np.array(list(together), dtype=object).T)
    known = {column for place, column in enumerate(together) if place in set(places.tolist())}
    found = [place for place, column in enumerate(columns) if column in known and together[column] == 1]
    share = len(found) / matrix.shape[1]
    return AttackResult(
        attack="linear system of answered sums",
        assumption="has exact sums over known sets of records, and adds and subtracts them",
        success=share,
        baseline=0.0,
        interval=(share, share),
        confidence=1.0,
        trials=matrix.shape[1],
        queries=len(matrix),
        mitigation=(
            "refuse sums that complete a combination, as an audited table does",
            "answer with noise under one budget for all questions",
        ),
        worst=tuple((place, 1.0) for place in found[:_SHOWN]),
        details=CompromisedRecordsDetails(
            rank=rank,
            compromised=tuple(found),
        ),
    )


def _whole_numbers(queries: Any) -> NDArray[Any]:
    """Return the weights scaled to whole numbers, row by row."""
    rows = [list(row) for row in _rows(queries)]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise ParameterError(
            "The queries are no table with a row for each sum and a column for each record.",
            fix="give weights, such as 0 and 1, of equally many records in every sum.",
        )
    return np.array([_scale_to_integers(row) for row in rows], dtype=object)


def _scale_to_integers(row: Sequence[object]) -> list[int]:
    weights = [_weight(weight) for weight in row]
    common = math.lcm(*(weight.denominator for weight in weights))
    return [int(weight * common) for weight in weights]


def _weight(weight: Any) -> Fraction:
    is_truth = isinstance(weight, bool | np.bool_)
    return Fraction(int(weight)) if is_truth else exact.number(weight, name="each weight")


def _rows(queries: Any) -> Sequence[Any]:
    try:
        return [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in queries]
    except TypeError:
        raise ParameterTypeError(
            "The queries are not a list of sums.", fix="give one list of weights or positions for each sum."
        ) from None


def _from_positions(queries: Any, records: int) -> NDArray[Any]:
    many = validation.check_count(records, name="records", at_least=1)
    rows = _rows(queries)
    if not rows:
        raise ParameterError("There are no queries.", fix="give the positions of the records in each sum.")
    matrix = np.zeros((len(rows), many), dtype=object)
    for number, row in enumerate(rows):
        matrix[number, _positions(row, many)] = 1
    return matrix


def _positions(row: Sequence[Any], records: int) -> list[int]:
    try:
        places = [operator.index(place) for place in row]
    except TypeError:
        places = [-1]
    if not all(0 <= place < records for place in places):
        raise ParameterError("A position is not that of a record.", fix=f"give positions from 0 to {records - 1}.")
    return places
