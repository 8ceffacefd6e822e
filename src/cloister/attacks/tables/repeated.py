"""Further ways in which a second release undoes the first: zeros of PRAM, and people who came in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.tables.fitting import fit_people, known_columns, people_of
from cloister.attacks.tables.intersection import IntersectionResult, intersection_result
from cloister.attacks.tables.reading import Published, opened, publish
from cloister.data.values import is_missing, text_of
from cloister.errors import DataError, ParameterError, ParameterTypeError
from cloister.mechanisms.transitions import check_matrix

__all__ = ["pram_intersection", "republication"]


def pram_intersection(
    columns: Sequence[Sequence[Any]],
    *,
    categories: Sequence[Any],
    matrices: Sequence[Any],
    truth: Sequence[Any] | None = None,
    confidence: object = 0.95,
) -> IntersectionResult:
    """Return the share of people whose value follows from several randomized releases of it.

    A released value rules out every true value that its matrix never turns into it. A matrix without zeros rules
    nothing out; it then has a finite epsilon, which adds up over releases.

    Args:
        columns: the released values, one list for each release, people in the same order.
        categories: all values, in the order of the matrices.
        matrices: for each release, the probabilities of releasing each value (column) for each true value (row).
        truth: the true values, for scoring only.
        confidence: the confidence of the interval.

    >>> truthful_no = [[1, 0], ["1/2", "1/2"]]
    >>> columns = [["no", "yes"], ["yes", "yes"]]
    >>> result = pram_intersection(columns, categories=["no", "yes"], matrices=[truthful_no] * 2)
    >>> result.success, result.resolved
    (1.0, (0.5, 1.0))
    """
    place = {text_of(category): number for number, category in enumerate(categories)}
    if len(columns) != len(matrices) or not columns:
        raise DataError("There is not one matrix per release.", fix="give as many matrices as columns.")
    left, counts, singles = None, [], []
    for column, matrix in zip(columns, matrices, strict=True):
        allowed = np.array([[chance > 0 for chance in row] for row in check_matrix(matrix)])
        if allowed.shape != (len(place), len(place)):
            raise ParameterError("A matrix does not have one row per category.", fix=f"give {len(place)} rows.")
        possible = allowed.T[_codes(column, place)]
        if left is not None and len(possible) != len(left):
            raise DataError("The releases differ in length.", fix="give the same people in the same order.")
        singles.append(possible.sum(axis=1))
        left = possible if left is None else left & possible
        counts.append(left.sum(axis=1))
    if left is None or not len(left):
        raise DataError("There is nobody in the releases.", fix="give at least one released value.")
    right = np.ones(len(left), dtype=bool)
    if truth is not None:
        if len(truth) != len(left):
            raise DataError("truth and the releases differ in length.", fix="give one value per person.")
        right = left[np.arange(len(left)), _codes(truth, place)]
    return intersection_result(
        np.array(counts),
        right,
        singles,
        confidence=confidence,
        attack="intersection of randomized releases",
        assumption=f"sees {len(counts)} randomized values of each person and knows the matrices",
        counted="value",
        mitigation=("use matrices without zeros", "randomize once, and give the same answer ever after"),
    )


def republication(
    before: Any,
    after: Any,
    newcomers: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    truth: Sequence[Any] | None = None,
    confidence: object = 0.95,
) -> IntersectionResult:
    """Return the share of newcomers whose value follows from subtracting an earlier release from a later one.

    Args:
        before: the earlier release.
        after: the later one, which has the newcomers as well and nobody less.
        newcomers: the people who came in between, with their quasi-identifiers.
        quasi_identifiers: what can be known, for tables without a schema.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        truth: the newcomers' values, for scoring only.
        confidence: the confidence of the interval.
    """
    older = publish(before, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    newer = publish(after, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    table = opened(newcomers)
    names = known_columns(newer, table, None)
    values = sorted({*_values(older, sensitive), *_values(newer, sensitive)})
    place = {name: number for number, name in enumerate(values)}
    fits = fit_people(newer, people_of(table, names))
    grown = _table(newer, sensitive, place) - _earlier(older, newer, sensitive, place)
    masks = np.concatenate([mask for _, mask in fits.masks()])[fits.people.kinds]
    possible = masks.astype(np.float64) @ np.maximum(grown, 0) > 0
    alone = masks.astype(np.float64) @ _table(newer, sensitive, place) > 0
    right = np.ones(len(possible), dtype=bool)
    if truth is not None:
        if len(truth) != len(possible):
            raise DataError("truth and the newcomers differ in length.", fix="give one value per newcomer.")
        right = possible[np.arange(len(possible)), _codes(truth, place)]
    return intersection_result(
        np.array([alone.sum(axis=1), possible.sum(axis=1)]),
        right,
        [alone.sum(axis=1)],
        confidence=confidence,
        attack="difference of releases",
        assumption="knows who came between two releases, and subtracts the first from the second",
        counted="value",
        mitigation=("release newcomers with the next full release only, in classes of newcomers", "use m-invariance"),
    )


def _values(item: Published, sensitive: str | None) -> list[str]:
    return ["" if is_missing(value) else text_of(value) for value in item.sensitive(sensitive).values]


def _table(item: Published, sensitive: str | None, place: dict[str, int]) -> NDArray[np.float64]:
    """Return how often each value (column) occurs in each class (row)."""
    codes = np.array([place[name] for name in _values(item, sensitive)])
    histogram = item.histogram(sensitive)
    counts = np.zeros((len(histogram.sizes), len(place)))
    np.add.at(counts, (histogram.classes, codes[histogram.values]), histogram.counts)
    return counts


def _earlier(older: Published, newer: Published, sensitive: str | None, place: dict[str, int]) -> NDArray[np.float64]:
    """Return what the earlier release shows of the classes of the later one; nothing of those that it lacks."""
    if older.quasi != newer.quasi:
        raise ParameterError(
            "The releases have other quasi-identifiers.", fix="give quasi_identifiers that both releases have."
        )
    counts, shown = _table(older, sensitive, place), _named_classes(older)
    found = np.zeros((len(newer.sizes), len(place)))
    for number, labels in enumerate(_named_classes(newer)):
        if labels in shown:
            found[number] = counts[shown[labels]]
    return found


def _named_classes(item: Published) -> dict[tuple[str, ...], int]:
    """Return the number of each class by what it shows, in the order of the classes."""
    texts = [
        np.array(["" if is_missing(label) else text_of(label) for label in item.labels(name)], dtype=object)
        for name in item.quasi
    ]
    columns = [names[item.codes[:, number]] for number, names in enumerate(texts)]
    return {labels: number for number, labels in enumerate(zip(*columns, strict=True))}


def _codes(column: Sequence[Any], place: dict[str, int]) -> NDArray[np.int64]:
    if isinstance(column, str) or not hasattr(column, "__len__"):
        raise ParameterTypeError("A release is no list of values.", fix="give one list of values for each release.")
    texts = ["" if is_missing(value) else text_of(value) for value in column]
    if any(text not in place for text in texts):
        raise DataError("A value is not among those that can occur.", fix="list every category.")
    return np.array([place[text] for text in texts], dtype=np.int64)
