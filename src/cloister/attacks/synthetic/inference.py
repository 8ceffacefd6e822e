"""Inference: does the synthetic table tell a secret of somebody whose other columns are known?

The attacker finds the synthetic row nearest to what is known of a person, and takes its secret for the person's. After
Giomi et al. (2022). A synthetic table is made to tell how columns hang together, and so to be right often: only what is
right more often for people in the data than for others is a leak.
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
from cloister.core.validation import check_count, check_non_negative
from cloister.data.mixed_rows import MixedRows, nearest_rows
from cloister.errors import ParameterError, ParameterTypeError, UnknownColumnError

__all__ = ["synthetic_inference"]


@offer_attack(
    "inference",
    kind=SYNTHETIC,
    takes=("original", "synthetic", "control", "secret"),
    summary="Guess a secret column of people by the nearest rows of the synthetic RELEASE.",
    example="fake.csv --original train.csv --control held-back.csv --secret illness",
)
def synthetic_inference(
    original: Any,
    synthetic: Any,
    *,
    secret: str,
    control: Any = None,
    known: Sequence[str] | None = None,
    tolerance: object = 0.05,
    attacks: int = 10_000,
    bounds: Mapping[str, Any] | None = None,
    confidence: Number = 0.95,
    random_state: RandomState = None,
) -> AttackResult[SyntheticDetails]:
    """Return how often the nearest synthetic row has a person's secret.

    Args:
        original: the rows that the synthetic ones were made from: a `cloister.Table`, a data frame or a file.
        synthetic: the synthetic rows, likewise.
        secret: the column that is guessed.
        control: rows of the same kind that had no part in the synthetic table.
        known: the columns that the attacker knows; without it, all others.
        tolerance: a number counts as guessed if it is off by at most this share of the true value; other values must
            be the same.
        attacks: how many people are attacked, and as many of the control.
        bounds: public ranges of numeric columns; without them, distances are scaled by the range of all tables.
        confidence: of the intervals, in which no more people count than there are synthetic rows.
        random_state: of the choice of people; an integer is for tests.

    Raises:
        UnknownColumnError: if a table lacks a column.
        ParameterError: if the secret is among the known columns, or nothing else is known.
        DataError: if a table is empty.
    """
    most = check_count(attacks, name="attacks", at_least=1)
    share = float(check_non_negative(tolerance, name="tolerance"))
    if not isinstance(secret, str):
        raise ParameterTypeError("secret is not the name of a column.", fix='write for example secret="income".')
    if isinstance(known, str):
        raise ParameterTypeError("known is one text, not a list of names.", fix=f'write known=["{known}"].')
    named = None if known is None else [*known, secret]
    tables = read_attacked(original, synthetic, control=control, columns=named, bounds=bounds)
    if secret not in tables.names:
        raise UnknownColumnError(secret, tables.names)
    aids = [name for name in tables.names if name != secret] if known is None else list(known)
    if not aids or secret in aids:
        raise ParameterError(
            "The attacker knows the secret, or nothing at all.", fix="list other columns than the secret in known."
        )
    source = random_source(random_state)
    places = choose_rows(len(tables.original), most, source)
    people = tables.original.take(places)
    right, near = _guess_secrets(tables, people, secret, aids, share)
    compared = None
    if tables.control is not None:
        others = tables.control.take(choose_rows(len(tables.control), most, source))
        compared = (float(_guess_secrets(tables, others, secret, aids, share)[0].sum()), len(others))
    return AttackResult(
        attack="inference",
        assumption=f'holds the synthetic table, knows {len(aids)} columns of a person and guesses "{secret}"',
        queries=0,
        mitigation=ADVICE,
        worst=most_exposed(places, np.where(right, near, 0.0)),
        **score_attack(
            float(right.sum()),
            len(places),
            baseline=_usual(tables, people, secret, share),
            kind=f'"{secret}" from {len(aids)} known columns',
            left_out=tables.left_out,
            control=compared,
            confidence=confidence,
            alike=tables.per_synthetic_row(len(places), compared),
        ),
    )


def _guess_secrets(
    tables: AttackedTables, people: MixedRows, secret: str, known: Sequence[str], share: float
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return whose secret is guessed, and how near the nearest synthetic row is: 1 for a copy of what is known."""
    distances, places = nearest_rows(people.only(known), tables.synthetic.only(known))
    guesses = tables.synthetic.column(secret)[places[:, 0]]
    return _same(people, people.column(secret), guesses, secret, share), 1 - distances[:, 0]


def _same(rows: MixedRows, truth: Any, guess: Any, secret: str, share: float) -> NDArray[np.bool_]:
    """Return which guesses are right."""
    if rows.columns.index(secret) >= rows.numeric:
        return np.asarray(truth == guess)
    both = np.isnan(truth) & np.isnan(guess)
    with np.errstate(invalid="ignore"):  # infinite values are equal or not near
        near = np.abs(truth - guess) <= share * np.abs(truth)
    return np.asarray(both | (truth == guess) | (near & np.isfinite(truth)))


def _usual(tables: AttackedTables, people: MixedRows, secret: str, share: float) -> float:
    """Return how often the most frequent synthetic value, or the middle of numbers, is right."""
    shown = tables.synthetic.column(secret)
    values, counts = np.unique(shown, return_counts=True)
    guesses = [values[counts.argmax()]]
    if tables.synthetic.columns.index(secret) < tables.synthetic.numeric and not np.isnan(shown).all():
        guesses.append(np.nanmedian(shown))
    truth = people.column(secret)
    return max(float(_same(people, truth, guess, secret, share).mean()) for guess in guesses)
