"""An encrypted column as a thief sees it, and what the thief knows about such columns beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.confidence import Floats
from cloister.attacks.reading_columns import values_of
from cloister.core import exact
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["Auxiliary", "EncryptedColumn"]


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
