"""Shifting the dates of each person by a secret number of days.

All dates of one person move by the same amount, so intervals within a person stay exact; between persons, and to the
calendar, they are lost. The shift follows from the person's identifier by a secret key, so that several tables of a
project agree. Whoever learns one true date of a person learns all of them, and rare sequences of intervals identify.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cloister.anonymize.operations.base import Context, Operation, operations
from cloister.anonymize.operations.cells import Integers, coded, column_of, is_moment, present, with_column
from cloister.anonymize.operations.plain import name as column_name, names
from cloister.anonymize.operations.pseudonyms import check_domain
from cloister.anonymize.operations.secret import Secret
from cloister.core.validation import check_count
from cloister.data.values import text_of
from cloister.errors import DataError, ParameterError

_DAY = 86_400 * 1_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_MOST_DAYS = 36_500


@operations.register("shift_dates")
@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftDates(Operation):
    """Move all dates of a person by one secret number of days, between ``-most_days`` and ``most_days`` and not 0.

    Attributes:
        columns: columns of dates or times.
        subject: the column that names the person; it must not be missing.
        key: the secret: a `Secret`, its bytes, ``{"env": name}`` or ``{"file": path}``.
        domain: the purpose, such as ``"heart-study"``: shifts of two domains have nothing to do with each other.
        most_days: how far dates move at most.
    """

    name = "shift_dates"
    truthful = False
    caution = "dates were shifted per person: intervals within a person are true, calendar dates are not"

    columns: tuple[str, ...] = field(kw_only=False)
    subject: str
    key: Secret
    domain: str
    most_days: int = 182

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        object.__setattr__(self, "subject", column_name(self.subject))
        object.__setattr__(self, "key", Secret.of(self.key))
        check_domain(self.domain)
        check_count(self.most_days, name="most_days", at_least=1)
        if self.most_days > _MOST_DAYS:
            raise ParameterError("most_days is more than a century.", fix="use for example most_days=182.")

    def transform(self, rows: pa.Table, context: Context) -> pa.Table:  # noqa: ARG002  # the family's signature
        """Return the rows with dates shifted."""
        shifts = self._shifts(column_of(rows, self.subject))
        for name in self.columns:
            rows = with_column(rows, name, _shifted(column_of(rows, name), shifts, name))
        return rows

    def _shifts(self, subjects: pa.Array) -> Integers:
        if subjects.null_count:
            raise DataError(
                f'Some rows have no "{self.subject}", so that nobody is known whose dates they are.',
                fix=f"suppress them first: SuppressRecords(where='\"{self.subject}\" IS NULL').",
            )
        distinct, codes = coded(subjects)
        key = self.key.read()
        days = [_days(text_of(value), key, self.domain, self.most_days) for value in distinct.to_pylist()]
        return np.array(days, dtype=np.int64)[codes]


def _days(subject: str, key: bytes, domain: str, most: int) -> int:
    """Return the shift of one person: never 0; the excess of one shift over another is below 2**-200."""
    message = b"\x00cloister.shift_dates/1\x00" + domain.encode() + b"\x00" + subject.encode("utf-8", "surrogatepass")
    number = int.from_bytes(hmac.digest(key, message, hashlib.sha256)) % (2 * most)
    return number - most if number < most else number - most + 1


def _shifted(column: pa.Array, shifts: Integers, name: str) -> pa.Array:
    if not is_moment(column):
        raise DataError(
            f'Column "{name}" does not hold dates.', fix="convert it to dates before opening, or state its storage."
        )
    is_date = pa.types.is_date(column.type)
    there = present(column)
    moments = np.asarray(column.cast(pa.int32() if is_date else pa.int64()).fill_null(0), dtype=np.int64)
    moved = moments + shifts * (1 if is_date else _DAY)
    days = (moved if is_date else moved // _DAY)[there]
    if days.size and not (days.min() >= _FIRST_DAY and days.max() <= _LAST_DAY):
        raise DataError(f'A date of "{name}" would leave the years 1 to 9999.', fix="mend the data.")
    whole = pa.array(moved, mask=~there)
    return whole.cast(pa.int32()).cast(column.type) if is_date else whole.cast(column.type)
