"""Intersection: two releases of the same people, each safe by itself, that give them away together.

A person fits some classes of each release. The person's value is among the values of these classes in every release,
and the person's row, where rows can be told to be the same, is in all of them (Ganta, Kasiviswanathan and Smith 2008).
Nothing that one release promises holds for two.

Randomized columns intersect too: where PRAM never releases a value as some other one (a zero in its matrix), each
release rules values out. Its epsilon is infinite. And two releases that differ by known newcomers can be subtracted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.models import Histogram
from cloister.anonymize.release import Release
from cloister.attacks.details import AttackDetails, Row, fact, keyed
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import Fitting, code_column, fit_people, known_columns, people_of
from cloister.attacks.tables._published_table import PublishedTable, publish
from cloister.attacks.tables._scores import most_exposed, share_of, share_with_interval
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.data.sources import ensure_open
from cloister.data.table import Table
from cloister.data.values import is_missing, text_of
from cloister.errors import DataError, ParameterError, ParameterTypeError, SchemaError, UnknownColumnError
from cloister.mechanisms.transitions import check_matrix

__all__ = ["IntersectionDetails", "intersection", "intersection_result", "pram_intersection", "republication"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntersectionDetails(AttackDetails):
    """What an intersection of releases leaves. The baseline is the best single release.

    Attributes:
        candidates: (mean, smallest) number of candidates after the first release, the first two, and so on.
        resolved: the share of people with one candidate left, likewise.
        counted: what candidates are: rows or values.
        contradicted: how many people have no candidate left: they were not in all of the releases.
    """

    candidates: tuple[tuple[float, int], ...] = field(metadata=fact(write=keyed("mean", "least")))
    resolved: tuple[float, ...]
    counted: str
    contradicted: int = 0

    def conclude(self, result: AttackResult, /) -> str:
        """Return what the releases give away together, beside the best single one."""
        shares = f"{percent(result.success)} of the people are left with one {self.counted}"
        alone = f"the best single release leaves {percent(result.baseline)}"
        if result.succeeded:
            return f"Together the releases give people away: {shares}; {alone}."
        return f"This attack found no more than a single release: {shares}; {alone}. Others may find more."

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        """Return how many candidates are left after each release."""
        for place, (mean, least) in enumerate(self.candidates):
            yield f"{self.counted}s left after {place + 1}", f"{mean:.4g} on average, {least:,} at least"


def intersection(
    releases: Sequence[Any],
    people: Any = None,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | None = None,
    record: str | None = None,
    truth: Any = None,
    confidence: Number = 0.95,
) -> AttackResult[IntersectionDetails]:
    """Return the share of people about whom releases together leave one candidate only.

    Args:
        releases: two or more releases, or released tables, that the people are in.
        people: whom the attacker knows, with quasi-identifiers; the original of the first release by default.
        quasi_identifiers: what can be known, for tables without a schema; each release uses those that it has.
        sensitive: the column that the attacker wants to learn; the only sensitive one by default.
        record: a column that names rows in all releases, such as a pseudonym: rows are then intersected, not values.
        truth: the people's sensitive values, for scoring only: one that is left but wrong is no success. Known where
            the people are the original.
        confidence: the confidence of the interval.

    >>> import pyarrow as pa
    >>> first = pa.table({"ward": ["A"] * 3, "illness": ["flu", "cancer", "HIV"]})
    >>> second = pa.table({"city": ["B"] * 3, "illness": ["HIV", "ulcer", "hepatitis"]})
    >>> patient = pa.table({"ward": ["A"], "city": ["B"]})
    >>> result = intersection([first, second], patient, quasi_identifiers=["ward", "city"], sensitive="illness")
    >>> result.success, result.candidates
    (1.0, ((3.0, 3), (1.0, 1)))
    """
    if not isinstance(releases, list | tuple) or len(releases) < 2:
        raise ParameterTypeError(
            "An intersection needs two releases or more.", fix="give intersection([first, second])."
        )
    published = [_publish_release(release, quasi_identifiers, sensitive, record) for release in releases]
    known, told = _people(published[0], people, sensitive, truth)
    fittings = [fit_people(item, people_of(known, known_columns(item, known, None))) for item in published]
    if record is None:
        return _of_values(published, fittings, sensitive, told, confidence)
    return _of_records(published, fittings, record, confidence)


def intersection_result(
    counts: NDArray[np.int64],
    right: NDArray[np.bool_],
    singles: Sequence[NDArray[np.int64]],
    *,
    confidence: Number,
    counted: str,
    **words: Any,
) -> AttackResult[IntersectionDetails]:
    """Return the result of an intersection.

    Args:
        counts: how many candidates each person (column) has left after each release (row).
        right: whether the last candidate, if there is one only, is the right one.
        singles: how many candidates each release leaves each person by itself.
        confidence: the confidence of the interval.
        counted: what candidates are.
        words: the name of the attack, what is assumed and what helps.
    """
    last = counts[-1]
    solved = (last == 1) & right
    trials = counts.shape[1]
    return AttackResult(
        baseline=max(share_of(float((single == 1).sum()), trials) for single in singles),
        queries=len(counts),
        worst=most_exposed(solved.astype(np.float64)),
        **words,
        **share_with_interval(float(solved.sum()), trials, confidence=confidence),
        details=IntersectionDetails(
            candidates=tuple((float(row.mean()), int(row.min())) for row in counts),
            resolved=tuple(share_of(float((row == 1).sum()), trials) for row in counts),
            counted=counted,
            contradicted=int((last == 0).sum()),
        ),
    )


def _of_values(
    published: Sequence[PublishedTable],
    fittings: Sequence[Fitting],
    sensitive: str | None,
    told: list[str | None] | None,
    confidence: Number,
) -> AttackResult[IntersectionDetails]:
    names = sorted({name for item in published for name in _value_names(item, sensitive)})
    place = {name: number for number, name in enumerate(names)}
    left = np.ones((len(fittings[0].people), len(names)), dtype=bool)
    counts, singles = [], []
    for item, fitting in zip(published, fittings, strict=True):
        codes = np.array([place[name] for name in _value_names(item, sensitive)])
        possible = _possible(fitting, item.histogram(sensitive), codes, len(names))
        singles.append(possible.sum(axis=1))
        left &= possible
        counts.append(left.sum(axis=1))
    right = np.ones(len(left), dtype=bool)
    if told is not None:
        own = np.array([place.get("" if value is None else value, -1) for value in told])
        right = (own >= 0) & left[np.arange(len(left)), np.maximum(own, 0)]
    return intersection_result(
        np.array(counts),
        right,
        singles,
        confidence=confidence,
        attack="intersection of releases",
        assumption=f"knows people in {len(published)} releases, and that their value is the same in each",
        counted="value",
        mitigation=(
            "release a dataset once; a later release must take the earlier ones into account",
            "where releases must repeat, use differential privacy under one budget",
        ),
    )


def _of_records(
    published: Sequence[PublishedTable], fittings: Sequence[Fitting], record: str, confidence: Number
) -> AttackResult[IntersectionDetails]:
    """Intersect rows: those of equal names are in one combination of classes, which is counted once."""
    classes = _joint_classes(published, record)
    joint, sizes = np.unique(classes, axis=0, return_counts=True)
    present = joint >= 0
    people = len(fittings[0].people)
    counts = np.zeros((len(published), people), dtype=np.int64)
    singles = [np.zeros(people, dtype=np.int64) for _ in published]
    for start in range(0, people, 1024):
        block = np.arange(start, min(start + 1024, people))
        left = np.ones((len(block), len(joint)), dtype=bool)
        for number, fitting in enumerate(fittings):
            mask = np.concatenate([found for _, found in fitting.masks(fitting.people.kinds[block])])
            # Whoever fits no class of a release is not ruled out by it.
            mask[~mask.any(axis=1)] = True
            fits = mask[:, np.maximum(joint[:, number], 0)] & present[:, number]
            singles[number][block] = fits @ sizes
            left &= fits
            counts[number, block] = left @ sizes
    return intersection_result(
        counts,
        np.ones(people, dtype=bool),
        singles,
        confidence=confidence,
        attack="intersection of releases",
        assumption=f"knows people in {len(published)} releases, in which rows of the same person bear the same name",
        counted="row",
        mitigation=("give rows other pseudonyms in each release", "release a dataset once"),
    )


def _possible(fitting: Fitting, histogram: Histogram, codes: NDArray[np.int64], width: int) -> NDArray[np.bool_]:
    """Return which values (columns) each person (row) can have by one release; any, if it shows nobody like them."""
    present = np.zeros((len(histogram.sizes), width), dtype=np.float32)
    present[histogram.classes, codes[histogram.values]] = 1
    found = np.zeros((len(fitting.people.codes), width), dtype=bool)
    for block, mask in fitting.masks():
        found[block] = mask.astype(np.float32) @ present > 0
    found[~found.any(axis=1)] = True
    return found[fitting.people.kinds]


def _joint_classes(published: Sequence[PublishedTable], record: str) -> NDArray[np.int64]:
    """Return the class of each named row (line) in each release (column), -1 where it is not in it."""
    named: dict[Any, int] = {}
    columns = []
    for item in published:
        coded = code_column(item.table.to_arrow()[record])
        if len(coded.values) < len(coded.codes) or (coded.codes < 0).any():
            raise DataError(
                f'"{record}" does not name each row once.', fix="give a column that does, or leave record out."
            )
        places = np.array([named.setdefault(text_of(value), len(named)) for value in coded.values])
        columns.append((places[coded.codes], _classes_of_rows(item)))
    classes = np.full((len(named), len(columns)), -1, dtype=np.int64)
    for number, (places, groups) in enumerate(columns):
        classes[places, number] = groups
    return classes


def _classes_of_rows(item: PublishedTable) -> NDArray[np.int64]:
    """Return the class of each released row."""
    # Without the release behind it, a table's own rows are put into classes by what they show.
    return PublishedTable(table=item.table, schema=item.schema, cells=item.cells, kept=item.kept).row_classes


def _publish_release(
    release: Any, quasi: Sequence[str] | None, sensitive: str | None, record: str | None
) -> PublishedTable:
    if isinstance(release, Release):
        found = publish(release, sensitive=sensitive)
    else:
        table = ensure_open(release)
        there = None if quasi is None else [name for name in quasi if name in table.columns]
        if there is not None and not there:
            raise SchemaError("A release has none of the quasi-identifiers.", fix="name columns that it has.")
        found = publish(table, quasi_identifiers=there, sensitive=sensitive)
    if record is None:
        found.sensitive(sensitive)
    elif record not in found.table.columns:
        raise UnknownColumnError(record, found.table.columns)
    return found


def _people(
    first: PublishedTable, people: Any, sensitive: str | None, truth: Any
) -> tuple[Table, list[str | None] | None]:
    if people is None and first.release is None:
        raise ParameterError("Nothing says whom the attacker knows.", fix="give a table of people.")
    if people is not None:
        table = ensure_open(people)
        values = None if truth is None else list(truth)
    else:
        table = first.release.original_with_roles if first.release is not None else first.table
        name = sensitive or (first.cells.sensitive[0].name if first.cells.sensitive else None)
        values = None if name is None else table.to_arrow()[name].to_pylist()
    told = None if values is None else [None if is_missing(value) else text_of(value) for value in values]
    if told is not None and len(told) != table.count():
        raise DataError("truth and the people differ in length.", fix="give one value per person.")
    return table, told


def _value_names(item: PublishedTable, sensitive: str | None) -> list[str]:
    return ["" if is_missing(value) else text_of(value) for value in item.sensitive(sensitive).values]


def pram_intersection(
    columns: Sequence[Sequence[Any]],
    *,
    categories: Sequence[Any],
    matrices: Sequence[Any],
    truth: Sequence[Any] | None = None,
    confidence: Number = 0.95,
) -> AttackResult[IntersectionDetails]:
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
    confidence: Number = 0.95,
) -> AttackResult[IntersectionDetails]:
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
    table = ensure_open(newcomers)
    names = known_columns(newer, table, None)
    values = sorted({*_value_names(older, sensitive), *_value_names(newer, sensitive)})
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


def _table(item: PublishedTable, sensitive: str | None, place: dict[str, int]) -> NDArray[np.float64]:
    """Return how often each value (column) occurs in each class (row)."""
    codes = np.array([place[name] for name in _value_names(item, sensitive)])
    histogram = item.histogram(sensitive)
    counts = np.zeros((len(histogram.sizes), len(place)))
    np.add.at(counts, (histogram.classes, codes[histogram.values]), histogram.counts)
    return counts


def _earlier(
    older: PublishedTable, newer: PublishedTable, sensitive: str | None, place: dict[str, int]
) -> NDArray[np.float64]:
    """Return what the earlier release shows of the classes of the later one; nothing of those that it lacks."""
    if older.quasi != newer.quasi:
        raise ParameterError(
            "The releases have other quasi-identifiers.", fix="give quasi_identifiers that both releases have."
        )
    counts, shown = _table(older, sensitive, place), _number_classes(older)
    found = np.zeros((len(newer.sizes), len(place)))
    for number, labels in enumerate(_number_classes(newer)):
        if labels in shown:
            found[number] = counts[shown[labels]]
    return found


def _number_classes(item: PublishedTable) -> dict[tuple[str, ...], int]:
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
