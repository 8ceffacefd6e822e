"""Singling out: a condition, made up from a release alone, that exactly one person of the original meets.

Data protection law asks whether somebody can be singled out, with or without a name (Article 29 Working Party, opinion
05/2014). An attacker takes what a released row shows in some columns as a condition; it succeeds if one person of the
original meets it (Cohen and Nissim 2020; Giomi et al. 2023). A k-anonymous table does not prevent it where a rare
sensitive value stands beside a class.

The baseline draws each part of the condition from another row, so that it knows columns but no rows. The control holds
the same conditions against people who were not released: conditions that single out there too say little about anybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.anonymize.cells import group_lines
from cloister.attacks.details import AttackDetails
from cloister.attacks.result import AttackResult
from cloister.attacks.tables._candidate_classes import bit_sets, code_column, fit_people, people_of
from cloister.attacks.tables._published_table import PublishedTable, publish
from cloister.attacks.tables._scores import most_exposed, share_with_interval
from cloister.core.confidence import binomial_interval
from cloister.core.exact import Number
from cloister.core.random import RandomSource, RandomState, integers_below, permutation, random_source
from cloister.core.validation import check_confidence, check_count
from cloister.data.sources import ensure_open
from cloister.data.table import Table
from cloister.errors import ParameterError, UnknownColumnError

__all__ = ["SinglingOutDetails", "singling_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglingOutDetails(AttackDetails):
    """What singling out knows.

    Attributes:
        columns: how many columns a condition has.
        met_by_nobody: the share of conditions that nobody of the original meets.
    """

    columns: int
    met_by_nobody: float


def singling_out(
    release: Any,
    original: Any = None,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    columns: int | None = None,
    attempts: int = 2000,
    outsiders: Any = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[SinglingOutDetails]:
    """Return how often a condition made up from a release singles one person of the original out.

    Args:
        release: a `Release`, or a released or synthetic table.
        original: the table behind it, for scoring only; that of a release by default.
        quasi_identifiers: released columns for conditions, where neither release nor schema says it.
        sensitive: further released columns for conditions.
        columns: how many columns a condition has; all by default.
        attempts: how many conditions are made up.
        outsiders: people who were not released, with the same columns, as a control. A control of another size than the
            original says less: in a larger table fewer conditions single out.
        confidence: the confidence of the interval.
        random_state: chooses rows and columns: None for the operating system; an integer is for tests only.
    """
    published = publish(release, quasi_identifiers=quasi_identifiers, sensitive=sensitive)
    table = _original(published, original)
    names = [*published.quasi, *(item.name for item in published.cells.sensitive)]
    width = len(names) if columns is None else check_count(columns, name="columns", at_least=1)
    if width > len(names):
        raise ParameterError(
            "A condition cannot have more columns than the release.", fix=f"use columns <= {len(names)}."
        )
    tries = check_count(attempts, name="attempts", at_least=1)
    source = random_source(random_state)
    asked = _choose_columns(source, tries, len(names), width)
    rows = _codes_of_rows(published)
    drawn = integers_below(source, len(rows), tries)
    conditions = np.where(asked, rows[drawn], -1)
    mixed = np.column_stack([rows[integers_below(source, len(rows), tries), place] for place in range(len(names))])
    counts, positions = _met(published, table, conditions)
    naive, _ = _met(published, table, np.where(asked, mixed, -1))
    control = control_interval = None
    if outsiders is not None:
        hits = int((_met(published, ensure_open(outsiders), conditions)[0] == 1).sum())
        control = hits / tries
        control_interval = binomial_interval(hits, tries, confidence=float(check_confidence(confidence)))
    alone = counts == 1
    scores = np.bincount(positions[alone], minlength=1).astype(np.float64)
    return AttackResult(
        attack="singling out",
        assumption=f"sees the release, and says what it shows of one row in {width} columns",
        baseline=float((naive == 1).mean()),
        queries=tries,
        control=control,
        control_interval=control_interval,
        mitigation=(
            "let no rare value stand beside a small class: l-diversity, t-closeness, or suppression",
            "where singling out must be excluded whatever is known, use differential privacy",
        ),
        worst=most_exposed(np.minimum(scores, 1.0)),
        **share_with_interval(float(alone.sum()), tries, confidence=confidence),
        details=SinglingOutDetails(
            columns=width,
            met_by_nobody=float((counts == 0).mean()),
        ),
    )


def _original(published: PublishedTable, original: Any) -> Table:
    if original is not None:
        return ensure_open(original)
    if published.release is None:
        raise ParameterError("Nothing says what the release was made from.", fix="give the original table.")
    return published.release.original_with_roles


def _codes_of_rows(published: PublishedTable) -> NDArray[np.int64]:
    """Return the codes of labels and sensitive values, for each released row in a class."""
    classes = published.classes
    lines = np.repeat(np.arange(len(classes.counts)), classes.counts)
    values = classes.cells.record_values[classes.records[lines]]
    return np.column_stack([published.codes[classes.groups[lines]], values]).astype(np.int64)


def _choose_columns(source: RandomSource, tries: int, count: int, width: int) -> NDArray[np.bool_]:
    """Return which columns each condition has: as many as wanted, any of them equally likely."""
    order = np.argsort(permutation(source, tries * count).reshape(tries, count), axis=1)
    return np.asarray(order < width)


def _met(
    published: PublishedTable, table: Table, conditions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many people meet each condition, and the position of the one who meets it alone, or -1."""
    sensitive = published.cells.sensitive
    for name in (*published.quasi, *(item.name for item in sensitive)):
        if name not in table.columns:
            raise UnknownColumnError(name, table.columns)
    fitting = fit_people(published, people_of(table, published.quasi))
    rows = table.to_arrow()
    known = [fitting.people.codes[fitting.people.kinds]]
    known += [_sensitive_codes(item.values, rows[item.name])[:, None] for item in sensitive]
    people = np.column_stack(known) + 1
    order, starts, _ = group_lines(people, tuple(int(column.max()) + 1 for column in people.T))
    kinds = people[order[starts]] - 1
    weights = np.diff(np.append(starts, len(people)))
    allowed = [_with_unasked(fitting.allowed(place).T) for place in range(len(published.quasi))]
    conditions = conditions.copy()
    for place, item in enumerate(sensitive, start=len(published.quasi)):
        asked, conditions[:, place] = np.unique(conditions[:, place], return_inverse=True)
        allowed.append(_same(asked, len(item.values)))
    bits = bit_sets(allowed, kinds, weights)
    counts, positions = bits.totals(conditions), np.full(len(conditions), -1, dtype=np.int64)
    single = np.flatnonzero(counts == 1)
    for block, mask in bits.masks(conditions[single]):
        positions[single[block]] = order[starts[mask.argmax(axis=1)]]
    return counts, positions


def _with_unasked(member: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return what labels allow, and last that a column without a condition allows everything."""
    return np.vstack([member, np.ones(member.shape[1], dtype=bool)])


def _same(asked: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    """Return that a value is met by itself only, an unknown one (the last) by none, and no condition by all."""
    return np.asarray((np.arange(size + 1) == asked[:, None]) | (asked < 0)[:, None])


def _sensitive_codes(values: Sequence[Any], column: Any) -> NDArray[np.int64]:
    """Return the released code of each original sensitive value, -1 for one that was not released."""
    place = {None if value is None else str(value): code for code, value in enumerate(values)}
    coded = code_column(column)
    codes = np.array([place.get(str(value), -1) for value in coded.values] + [place.get(None, -1)], dtype=np.int64)
    return codes[coded.codes]
