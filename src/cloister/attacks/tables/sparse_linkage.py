"""Linkage in sparse data: a few ratings, purchases or visits are enough to find a person among half a million.

After Narayanan and Shmatikov (2008), who found subscribers in 100 million film ratings that were published under
pseudonyms and slightly perturbed. A rare item tells more than a popular one: it weighs one over the logarithm of how
many people have it. The best match is accepted if it stands out: by more than 1.5 standard deviations from the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.attacks.details import AttackDetails
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import code_column
from cloister.attacks.tables._scores import most_exposed, share_of, share_with_interval
from cloister.core.exact import Number
from cloister.core.validation import check_non_negative
from cloister.core.wordings import percent
from cloister.data.sources import ensure_open
from cloister.data.values import text_of
from cloister.errors import DataError, ParameterTypeError, UnknownColumnError

__all__ = ["SparseLinkageDetails", "sparse_linkage"]

_BLOCK = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseLinkageDetails(AttackDetails):
    """What linkage in sparse data found; the control are people who are not in the release.

    Attributes:
        accepted: how many people got a match that stands out.
        precision: the share of these matches that are right, outsiders included; None without any.
        eccentricity: how far a match had to stand out.
    """

    accepted: int
    precision: float | None
    eccentricity: float

    def remark(self, _: AttackResult, /) -> str:
        """Return how many matches stood out."""
        right = "" if self.precision is None else f", {percent(self.precision)} of them right"
        return f" {self.accepted:,} matches stood out{right}."


def sparse_linkage(
    release: Any,
    auxiliary: Any,
    *,
    person: str,
    item: str,
    value: str | None = None,
    tolerance: object = 0,
    truth: Mapping[Any, Any],
    eccentricity: object = 1.5,
    confidence: Number = 0.95,
) -> AttackResult[SparseLinkageDetails]:
    """Return how often people are found by a few items that they are known to have.

    Args:
        release: a table of items with the pseudonym of the person, one line for each.
        auxiliary: a table of items that people are known to have, with a name of the attacker's.
        person: the column of pseudonyms, and of names.
        item: the column of items.
        value: a column of numbers in both tables that must agree as well, such as a rating or a day.
        tolerance: by how much these may differ.
        truth: the pseudonym behind each name, None for somebody who is not in the release; for scoring only.
        eccentricity: how many standard deviations the best match must stand out.
        confidence: the confidence of the interval.
    """
    if not isinstance(truth, Mapping):
        raise ParameterTypeError("truth is no mapping from names to pseudonyms.", fix='write truth={"ann": 17}.')
    near, needed = (
        float(check_non_negative(tolerance, name="tolerance")),
        float(check_non_negative(eccentricity, name="eccentricity")),
    )
    columns = [person, item, *([] if value is None else [value])]
    released, known = (_select_columns(table, columns) for table in (release, auxiliary))
    pseudonyms, names = code_column(released[person]), code_column(known[person])
    where = {text_of(code): place for place, code in enumerate(pseudonyms.values)}
    told = {text_of(name): pseudonym for name, pseudonym in truth.items()}
    if any(text_of(name) not in told for name in names.values):
        raise DataError("truth does not tell who everybody is.", fix="name a pseudonym, or None, for each person.")
    own = np.array([_place(where, told[text_of(name)]) for name in names.values], dtype=np.int64)
    best, standing = _matches(released, known, pseudonyms.codes, names.codes, item=item, value=value, near=near)
    accepted = standing > needed
    inside = own >= 0
    if not inside.any():
        raise DataError("By the truth given, nobody is in the release.", fix="give some people who are.")
    right = accepted & inside & (best == own)
    return AttackResult(
        attack="sparse linkage",
        assumption=f"knows {len(known) / max(len(own), 1):.3g} items of each of {len(own):,} people on average",
        baseline=1 / len(pseudonyms.values),
        queries=len(released),
        control=share_of(float((accepted & ~inside).sum()), int((~inside).sum())) if (~inside).any() else None,
        mitigation=("do not publish rows of single people with many items; publish counts under differential privacy",),
        worst=most_exposed(np.where(right, standing, 0.0)),
        **share_with_interval(float(right[inside].sum()), int(inside.sum()), confidence=confidence),
        details=SparseLinkageDetails(
            accepted=int(accepted.sum()),
            precision=share_of(float(right.sum()), int(accepted.sum())) if accepted.any() else None,
            eccentricity=needed,
        ),
    )


def _place(where: Mapping[str, int], pseudonym: Any) -> int:
    return -1 if pseudonym is None else where.get(text_of(pseudonym), -1)


def _select_columns(table: Any, columns: list[str]) -> pa.Table:
    opened_table = ensure_open(table)
    for name in columns:
        if name not in opened_table.columns:
            raise UnknownColumnError(name, opened_table.columns)
    rows = opened_table.to_arrow().select(columns)
    rows = rows.drop_null()
    if not len(rows):
        raise DataError("A table has no lines.", fix="give at least one item of somebody.")
    return rows


def _matches(
    released: pa.Table,
    known: pa.Table,
    people: NDArray[np.int64],
    seekers: NDArray[np.int64],
    *,
    item: str,
    value: str | None,
    near: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the best match of each known person, and by how many standard deviations it stands out."""
    items, wanted = _items(released[item], known[item])
    order = np.argsort(items, kind="stable")
    pairs = np.unique(np.column_stack([items, people]), axis=0)
    support = np.bincount(pairs[:, 0], minlength=int(max(items.max(), wanted.max())) + 1)
    # The logarithm of one is zero, which would make the weight infinite.
    weights = 1 / np.log(np.maximum(support, 2))
    low, high = np.searchsorted(items[order], wanted), np.searchsorted(items[order], wanted, side="right")
    numbers = None if value is None else (_numbers(released[value]), _numbers(known[value]))
    count, population = int(seekers.max()) + 1, int(people.max()) + 1
    best, standing = np.zeros(count, dtype=np.int64), np.zeros(count)
    step = max(_BLOCK // population, 1)
    for start in range(0, count, step):
        lines = np.flatnonzero((seekers >= start) & (seekers < start + step))
        left = np.repeat(lines, high[lines] - low[lines])
        right = order[_ranges(low[lines], high[lines])]
        if numbers is not None:
            close = np.abs(numbers[1][left] - numbers[0][right]) <= near + 1e-12
            left, right = left[close], right[close]
        cells = (seekers[left] - start) * population + people[right]
        # An item that somebody has several times counts once for each known line.
        once = np.unique(np.column_stack([cells, left]), axis=0)
        size = min(step, count - start) * population
        scores = np.bincount(once[:, 0], weights=weights[wanted[once[:, 1]]], minlength=size).reshape(-1, population)
        best[start : start + step], standing[start : start + step] = _outstanding(scores.astype(np.float64))
    return best, standing


def _outstanding(scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    best = scores.argmax(axis=1)
    top = scores[np.arange(len(scores)), best]
    rest = scores.copy()
    rest[np.arange(len(scores)), best] = -np.inf
    second = rest.max(axis=1) if scores.shape[1] > 1 else np.zeros(len(scores))
    spread = scores.std(axis=1)
    return best, np.where(spread > 0, (top - second) / np.where(spread > 0, spread, 1.0), 0.0)


def _items(first: pa.ChunkedArray, second: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the items of both tables as the same codes."""
    known: dict[str, int] = {}
    codes = []
    for column in (first, second):
        coded = code_column(column)
        codes.append(np.array([known.setdefault(text_of(value), len(known)) for value in coded.values])[coded.codes])
    return codes[0], codes[1]


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ParameterTypeError("The value column holds no numbers.", fix="give a column of numbers, or leave it out.")
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _ranges(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all numbers from each low one up to its high one, one range after the other."""
    lengths = high - low
    ends = np.cumsum(lengths)
    count = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(count) - np.repeat(ends - lengths, lengths) + np.repeat(low, lengths))
