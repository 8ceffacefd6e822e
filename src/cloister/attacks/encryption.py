"""Attacks on encrypted columns: what equality, order and sizes give away without any key.

*Frequency analysis.* Deterministic encryption keeps equality, which is what makes it searchable, and with it the whole
histogram of a column: the commonest ciphertext is the commonest value. Whoever knows roughly how frequent each value
is, from a census or from last year's statistics, matches the two (Naveed, Kamara and Wright, "Inference attacks on
property-preserving encrypted databases", 2015). By frequencies alone, sorting both sides is the best match. With a
second column that is not encrypted, the match is an assignment problem: every ciphertext gets the value whose company
it shares.

*Sorting and cumulative attacks.* Order-preserving encryption lets a server sort and compare. If every possible value
occurs, the smallest ciphertext is the smallest value, the next the next, and no key is needed. If some are missing, the
share of rows up to a ciphertext is compared with what is known about such columns, together with its own share (Naveed,
Kamara and Wright, 2015).

*Volumes.* Encryption hides the question and the rows, not how many rows go over the wire. Whoever knows about how many
rows each value has, from statistics or an older copy, takes the value whose number is nearest (the count attack of
Cash, Grubbs, Perry and Ristenpart, "Leakage-abuse attacks against searchable encryption", 2015). Padding all answers to
a few sizes, or noise that adds rows, takes this away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from cloister.attacks._column_values import values_of
from cloister.attacks.details import AttackDetails, Row
from cloister.attacks.result import AttackResult
from cloister.core import exact, validation
from cloister.core.confidence import Floats, binomial_interval
from cloister.core.exact import Number
from cloister.core.wordings import percent
from cloister.errors import ParameterError, ParameterTypeError

__all__ = [
    "Auxiliary",
    "EncryptedColumn",
    "EncryptionDetails",
    "cumulative_attack",
    "frequency_analysis",
    "score_rows",
    "sorting_attack",
    "volume_attack",
]


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """The different ciphertexts of a column, and which row has which.

    Attributes:
        ciphertexts: the different ones, in ascending order where they have one, else as they come.
        codes: for each row, the place of its ciphertext.
        counts: how often each occurs.
    """

    ciphertexts: tuple[Any, ...] = field(repr=False)
    codes: NDArray[np.int64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, column: Any, *, ordered: bool = False) -> EncryptedColumn:
        """Return the column of some rows."""
        rows = values_of(column, name="ciphertexts")
        distinct = list(dict.fromkeys(rows))
        if ordered:
            try:
                distinct.sort()
            except TypeError:
                raise ParameterTypeError(
                    "The ciphertexts cannot be put in order.", fix="give numbers, or bytes of one length."
                ) from None
        place = {value: number for number, value in enumerate(distinct)}
        codes = np.array([place[value] for value in rows], dtype=np.int64)
        return cls(tuple(distinct), codes, np.bincount(codes, minlength=len(distinct)).astype(np.int64))

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """How frequent each value is, as far as the attacker knows.

    Attributes:
        values: the values, in the order of the attacker's list.
        shares: the share of each; they add up to 1.
    """

    values: tuple[Any, ...]
    shares: Floats

    @classmethod
    def of(cls, auxiliary: Any) -> Auxiliary:
        """Return what a table of frequencies, or a sample of values, says."""
        given = auxiliary if isinstance(auxiliary, Mapping) else Counter(values_of(auxiliary, name="auxiliary"))
        weights = np.array([float(exact.number(weight, name="each frequency")) for weight in given.values()])
        if not len(weights) or weights.min() < 0 or not weights.sum() > 0:
            raise ParameterError(
                "The auxiliary frequencies are empty, negative or all zero.",
                fix='write for example auxiliary={"flu": 0.6, "cancer": 0.4}, or give a sample of values.',
            )
        return cls(tuple(given), weights / weights.sum())

    def in_order(self) -> Auxiliary:
        """Return the same with values in ascending order."""
        try:
            order = sorted(range(len(self.values)), key=lambda place: self.values[place])
        except TypeError:
            raise ParameterTypeError(
                "The values cannot be put in order.", fix="give numbers, dates or words, not a mixture."
            ) from None
        return Auxiliary(tuple(self.values[place] for place in order), self.shares[order])

    @property
    def commonest(self) -> Any:
        """Return the most frequent value."""
        return self.values[int(self.shares.argmax())]


_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionDetails(AttackDetails):
    """What an attack on an encrypted column knows; the trials are its rows.

    Attributes:
        distinct: how many different ciphertexts the column has.
        values_read: the share of these of which the attacker has the right value.
    """

    distinct: int
    values_read: float

    def remark(self, result: AttackResult, /) -> str:
        """Return how many ciphertexts there are and, where the attack works, how many were read."""
        if not result.succeeded:
            return f" The column has {self.distinct:,} different ciphertexts."
        return f" Of {self.distinct:,} different ciphertexts, {percent(self.values_read)} were read, without a key."

    def tell(self, _: AttackResult, /) -> Iterator[Row]:
        yield "different ciphertexts read", f"{percent(self.values_read)} of {self.distinct:,}"


def score_rows(
    column: EncryptedColumn, guesses: Sequence[Any], *, truth: Any, guess: Any = None, confidence: Number
) -> dict[str, Any]:
    """Return the fields of a result that compare the guess for each ciphertext with the truth of each row.

    The baseline is to guess one value for all rows: the given one, or without it the best in hindsight.
    """
    level = float(validation.check_confidence(confidence))
    true = values_of(truth, name="truth")
    if len(true) != len(column):
        raise ParameterError(
            f"There are {len(column):,} ciphertexts and {len(true):,} true values.",
            fix="give one true value for every row.",
        )
    right = np.array([guesses[code] == value for code, value in zip(column.codes.tolist(), true, strict=True)])
    hits = int(right.sum())
    rare = 1 / column.counts[column.codes]
    order = [int(place) for place in np.argsort(-rare * right, kind="stable")[:_SHOWN] if right[place]]
    return {
        "success": hits / len(true),
        "baseline": (Counter(true).most_common(1)[0][1] if guess is None else true.count(guess)) / len(true),
        "interval": binomial_interval(hits, len(true), confidence=level),
        "confidence": level,
        "trials": len(true),
        "queries": len(true),
        "worst": tuple((place, float(rare[place])) for place in order),
        "details": EncryptionDetails(
            distinct=len(column.counts),
            values_read=float(np.bincount(column.codes, weights=right).astype(bool).mean()),
        ),
    }


_METHODS = ("rank", "assignment")
_UNSEEN = 0.5


def frequency_analysis(
    ciphertexts: Any,
    *,
    auxiliary: Any,
    truth: Any,
    method: str = "rank",
    beside: Any = None,
    auxiliary_beside: Any = None,
    confidence: Number = 0.95,
) -> AttackResult[EncryptionDetails]:
    """Return how much of a deterministically encrypted column is read by matching frequencies.

    Args:
        ciphertexts: the encrypted column: equal values have equal ciphertexts.
        auxiliary: what the attacker knows about the values: frequencies by value, or a sample of values.
        truth: the true value of each row; used for scoring only.
        method: "rank" matches the commonest with the commonest, and so on; "assignment" finds the likeliest match of
            all ciphertexts at once, and can use a column beside.
        beside: a column of the same rows that is not encrypted, for the assignment.
        auxiliary_beside: the same column for the sample in ``auxiliary``.
        confidence: the confidence of the interval of the success.

    >>> column = ["x7", "q2", "x7", "x7", "q2", "f9"]
    >>> plain = ["flu", "cold", "flu", "flu", "cold", "cancer"]
    >>> print(frequency_analysis(column, auxiliary={"flu": 0.6, "cold": 0.3, "cancer": 0.1}, truth=plain))
    frequency analysis: success 100% (95% interval 54.1% to 100%), baseline 50%
    """
    validation.check_choice(method, name="method", allowed=_METHODS)
    column, known = EncryptedColumn.of(ciphertexts), Auxiliary.of(auxiliary)
    _check_beside(method, beside, auxiliary_beside)
    if method == "rank":
        order, ranked = (np.argsort(-given, kind="stable") for given in (column.counts, known.shares))
        matches = dict(zip(order.tolist(), ranked.tolist(), strict=False))
    else:
        gains = _gains(column, known, auxiliary, beside, auxiliary_beside)
        rows, places = optimize.linear_sum_assignment(gains, maximize=True)
        matches = dict(zip(rows.tolist(), places.tolist(), strict=True))
    guesses = [
        known.values[matches[code]] if code in matches else known.commonest for code in range(len(column.counts))
    ]
    company = " and a column beside it in the clear" if beside is not None else ""
    return AttackResult(
        attack="frequency analysis",
        assumption=f"has the encrypted column{company}, no key, and knows about how frequent each value is",
        mitigation=(
            "encrypt equal values differently, and search by a keyed index of few rows",
            "do not store columns of few different values deterministically encrypted",
        ),
        **score_rows(column, guesses, truth=truth, guess=known.commonest, confidence=confidence),
    )


def _check_beside(method: str, beside: Any, auxiliary_beside: Any) -> None:
    if (beside is None) != (auxiliary_beside is None):
        raise ParameterError(
            "A column beside is of use only with the same one for the sample.",
            fix="give both beside= and auxiliary_beside=, or neither.",
        )
    if beside is not None and method != "assignment":
        raise ParameterError("Ranks use no column beside.", fix='write method="assignment".')


def _gains(column: EncryptedColumn, known: Auxiliary, auxiliary: Any, beside: Any, auxiliary_beside: Any) -> Floats:
    """Return for each ciphertext and value how likely they belong together, as a logarithm."""
    if beside is None:
        # A value of which nothing is known must not rule a match out altogether.
        shares = np.maximum(known.shares, known.shares[known.shares > 0].min() * _UNSEEN)
        return np.asarray(column.counts[:, None] * np.log(shares), dtype=np.float64)
    here, there = values_of(beside, name="beside"), values_of(auxiliary_beside, name="auxiliary_beside")
    sample = None if isinstance(auxiliary, Mapping) else values_of(auxiliary, name="auxiliary")
    if len(here) != len(column) or sample is None or len(sample) != len(there):
        raise ParameterError(
            "A column beside has another length than what it stands beside.",
            fix="give beside= for every ciphertext, and auxiliary= as a sample with auxiliary_beside= for every value.",
        )
    kinds = {value: place for place, value in enumerate(dict.fromkeys([*here, *there]))}
    values = {value: place for place, value in enumerate(known.values)}
    seen, expected = np.zeros((len(column.counts), len(kinds))), np.full((len(values), len(kinds)), _UNSEEN)
    for code, value in zip(column.codes.tolist(), here, strict=True):
        seen[code, kinds[value]] += 1
    for value, other in zip(sample, there, strict=True):
        expected[values[value], kinds[other]] += 1
    return np.asarray(seen @ np.log(expected / expected.sum()).T, dtype=np.float64)


_MITIGATION = (
    "do not store order-preserving ciphertexts where the server may be read",
    "encrypt, and sort at the client; or answer ranges with noise",
)


def sorting_attack(
    ciphertexts: Any, *, domain: Sequence[Any], truth: Any, confidence: Number = 0.95
) -> AttackResult[EncryptionDetails]:
    """Return how much of an order-preserving encrypted column is read by ranks.

    Args:
        ciphertexts: the encrypted column: ciphertexts in the order of their values.
        domain: the values that are possible, which are public, in any order. If fewer occur, ranks are spread evenly.
        truth: the true value of each row; used for scoring only.
        confidence: the confidence of the interval of the success.

    >>> print(sorting_attack([907, 12, 55, 907], domain=[1, 2, 3], truth=[3, 1, 2, 3]))
    sorting attack: success 100% (95% interval 39.8% to 100%), baseline 50%
    """
    column = EncryptedColumn.of(ciphertexts, ordered=True)
    values = Auxiliary.of(dict.fromkeys(values_of(domain, name="domain"), 1)).in_order().values
    ranks = np.linspace(0, len(values) - 1, len(column.counts)).round().astype(int)
    return AttackResult(
        attack="sorting attack",
        assumption="has the encrypted column, no key, and knows which values are possible",
        mitigation=_MITIGATION,
        **score_rows(column, [values[rank] for rank in ranks], truth=truth, confidence=confidence),
    )


def cumulative_attack(
    ciphertexts: Any, *, auxiliary: Any, truth: Any, confidence: Number = 0.95
) -> AttackResult[EncryptionDetails]:
    """Return how much of an order-preserving encrypted column is read by frequencies and ranks together.

    Args:
        ciphertexts: the encrypted column: ciphertexts in the order of their values, equal ones for equal values.
        auxiliary: what the attacker knows about the values: frequencies by value, or a sample of values.
        truth: the true value of each row; used for scoring only.
        confidence: the confidence of the interval of the success.

    >>> print(cumulative_attack([907, 12, 12, 907], auxiliary={1: 0.5, 2: 0.1, 3: 0.4}, truth=[3, 1, 1, 3]))
    cumulative attack: success 100% (95% interval 39.8% to 100%), baseline 50%
    """
    column, known = EncryptedColumn.of(ciphertexts, ordered=True), Auxiliary.of(auxiliary).in_order()
    shares = column.counts / column.counts.sum()
    apart = np.abs(shares[:, None] - known.shares) + np.abs(np.cumsum(shares)[:, None] - np.cumsum(known.shares))
    rows, places = optimize.linear_sum_assignment(apart)
    matches = dict(zip(rows.tolist(), places.tolist(), strict=True))
    guesses = [
        known.values[matches[code]] if code in matches else known.commonest for code in range(len(column.counts))
    ]
    return AttackResult(
        attack="cumulative attack",
        assumption="has the encrypted column, no key, and knows about how the values are distributed",
        mitigation=_MITIGATION,
        **score_rows(column, guesses, truth=truth, guess=known.commonest, confidence=confidence),
    )


def volume_attack(
    volumes: Any, *, auxiliary: Any, truth: Any, confidence: Number = 0.95
) -> AttackResult[EncryptionDetails]:
    """Return how many encrypted searches are recognized by the number of rows that they return.

    Args:
        volumes: for each search, how many rows came back.
        auxiliary: what the attacker knows: about how many rows each value has.
        truth: the value that each search was for; used for scoring only.
        confidence: the confidence of the interval of the success.

    Returns:
        The outcome, whose different ciphertexts are different volumes. Of values with equally near numbers the first is
        taken, and the baseline is the best single guess in hindsight.

    >>> print(volume_attack([98, 11, 11], auxiliary={"flu": 100, "cancer": 10}, truth=["flu", "cancer", "cancer"]))
    volume attack: success 100% (95% interval 29.2% to 100%), baseline 66.7%
    """
    if not isinstance(auxiliary, Mapping) or not auxiliary:
        raise ParameterTypeError(
            "The auxiliary numbers are not given by value.", fix='write for example auxiliary={"flu": 100}.'
        )
    seen = [float(exact.number(volume, name="each volume")) for volume in values_of(volumes, name="volumes")]
    sizes = np.array([float(exact.number(size, name="each number")) for size in auxiliary.values()])
    if min(seen) < 0 or sizes.min() < 0:
        raise ParameterError("A number of rows is negative.", fix="give numbers of rows from 0.")
    column = EncryptedColumn.of(seen)
    values = list(auxiliary)
    nearest = np.abs(np.array(column.ciphertexts)[:, None] - sizes).argmin(axis=1)
    return AttackResult(
        attack="volume attack",
        assumption="sees how many rows each encrypted search returns, and knows about how many rows each value has",
        mitigation=("pad answers to a few sizes", "add rows by a noisy number that hides one person"),
        **score_rows(column, [values[place] for place in nearest.tolist()], truth=truth, confidence=confidence),
    )
