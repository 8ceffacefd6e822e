"""Linkability: does the synthetic table connect what two people know about the same person?

One attacker knows some columns of a person, another one knows others, and both hold the synthetic table. Each finds the
synthetic rows nearest to what is known; if both find the same row, the two pieces are taken for one person's. After
Giomi et al. (2022). In a table that was made without copying anybody the pieces meet about as often for people who had
no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.release_attacks import offer_attack
from cloister.attacks.result import AttackResult
from cloister.attacks.synthetic.base import (
    ADVICE,
    AttackedTables,
    SyntheticDetails,
    choose_rows,
    most_exposed,
    read_attacked,
    score_attack,
)
from cloister.core.exact import Number
from cloister.core.provenance import SYNTHETIC
from cloister.core.random import RandomState, random_source
from cloister.core.validation import check_count
from cloister.data.mixed_rows import MixedRows, nearest_rows
from cloister.errors import ParameterError

__all__ = ["synthetic_linkability"]


@offer_attack(
    "linkability",
    kind=SYNTHETIC,
    takes=("original", "synthetic", "control"),
    summary="Join two halves of what is known about people by the synthetic RELEASE.",
    example="fake.csv --original train.csv --control held-back.csv",
)
def synthetic_linkability(
    original: Any,
    synthetic: Any,
    *,
    control: Any = None,
    known: tuple[Sequence[str], Sequence[str]] | None = None,
    neighbors: int = 1,
    attacks: int = 10_000,
    bounds: Mapping[str, Any] | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[SyntheticDetails]:
    """Return how often the synthetic table links two pieces of what is known about one person.

    Args:
        original: the rows that the synthetic ones were made from: a `cloister.Table`, a data frame or a file.
        synthetic: the synthetic rows, likewise.
        control: rows of the same kind that had no part in the synthetic table; without them, knowledge about
            everybody cannot be told from knowledge about these people.
        known: the columns that the one and the other attacker knows; without it, all are dealt out so that both sides
            tell about as much.
        neighbors: how many nearest synthetic rows each looks at.
        attacks: how many people are attacked, and as many of the control.
        bounds: public ranges of numeric columns; without them, distances are scaled by the range of all tables.
        confidence: of the intervals, in which no more people count than there are synthetic rows.
        random_state: of the choice of people; an integer is for tests.

    Raises:
        UnknownColumnError: if a table lacks a column.
        ParameterError: if a column is on both sides, or a side has none.
        DataError: if a table is empty.
    """
    most = check_count(attacks, name="attacks", at_least=1)
    near = check_count(neighbors, name="neighbors", at_least=1)
    sides = None if known is None else _sides(known)
    named = None if sides is None else [*sides[0], *sides[1]]
    tables = read_attacked(original, synthetic, control=control, columns=named, bounds=bounds)
    source = random_source(random_state)
    left, right = _split_columns(tables.synthetic) if sides is None else sides
    places = choose_rows(len(tables.original), most, source)
    linked, nearness = _link_pieces(tables, tables.original.take(places), left, right, near)
    compared = None
    if tables.control is not None:
        others = tables.control.take(choose_rows(len(tables.control), most, source))
        compared = (float(_link_pieces(tables, others, left, right, near)[0].sum()), len(others))
    return AttackResult(
        attack="linkability",
        assumption="holds the synthetic table and two pieces of knowledge, and asks whether they are of one person",
        queries=0,
        mitigation=ADVICE,
        worst=most_exposed(places, np.where(linked, nearness, 0.0)),
        **score_attack(
            float(linked.sum()),
            len(places),
            baseline=_by_chance(len(tables.synthetic), near),
            kind=f"{len(left)} and {len(right)} known columns, {near} nearest",
            left_out=tables.left_out,
            control=compared,
            confidence=confidence,
            alike=tables.per_synthetic_row(len(places), compared),
        ),
    )


def _sides(known: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if isinstance(known, str) or len(known) != 2 or any(isinstance(part, str) or not len(part) for part in known):
        raise ParameterError(
            "known is not two lists of columns.", fix='write for example known=(["age", "sex"], ["job", "income"]).'
        )
    left, right = (tuple(dict.fromkeys(part)) for part in known)
    both = [name for name in left if name in right]
    if both:
        raise ParameterError(f'"{both[0]}" is on both sides.', fix="let each side know columns of its own.")
    return left, right


def _split_columns(rows: MixedRows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two sides that tell about as much: the most telling column goes to the side that tells less."""
    if len(rows.columns) < 2:
        raise ParameterError("There is only one column.", fix="give tables with at least two columns to link.")
    sides: tuple[list[str], list[str]] = ([], [])
    told = [0.0, 0.0]
    for amount, name in sorted(((_entropy(rows, name), name) for name in rows.columns), reverse=True):
        side = int(told[1] < told[0])
        sides[side].append(name)
        told[side] += amount
    if not sides[1]:
        sides[1].append(sides[0].pop())
    return tuple(sides[0]), tuple(sides[1])


def _entropy(rows: MixedRows, name: str) -> float:
    shares = np.unique(rows.column(name), return_counts=True)[1] / len(rows)
    return float(-(shares * np.log(shares)).sum())


def _link_pieces(
    tables: AttackedTables, people: MixedRows, left: Sequence[str], right: Sequence[str], neighbors: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return whose two pieces meet, and how near the nearest rows are on both sides: 1 for a copy."""
    found = [
        nearest_rows(people.only(side), tables.synthetic.only(side), neighbors=neighbors) for side in (left, right)
    ]
    meet = (found[0][1][:, :, None] == found[1][1][:, None, :]).any(axis=(1, 2))
    return np.asarray(meet), 1 - (found[0][0][:, 0] + found[1][0][:, 0]) / 2


def _by_chance(rows: int, neighbors: int) -> float:
    """Return how often two random choices of so many rows meet."""
    if 2 * neighbors > rows:
        return 1.0
    apart = (rows - neighbors - np.arange(neighbors)) / (rows - np.arange(neighbors))
    return float(1 - apart.prod())
