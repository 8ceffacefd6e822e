"""The public domain of a categorical question: the declared answers in their order, and their codes.

The domain is never read from the collected data. A value that is missing or not declared is refused: "no answer" is
an answer to declare, or a question of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cloister.core.validation import check_count
from cloister.data.columns import Category, clean_categories
from cloister.errors import MissingBoundsError, OutsideDomainError, ParameterError, SchemaError

__all__ = ["Answers", "Codes", "Domain"]

Codes: TypeAlias = NDArray[np.int64]
Answers: TypeAlias = "Domain | Collection[Category] | NDArray[Any] | int"
"""The answers that may be given: all of them in their order, or a whole number d for 0 to d-1."""

_MOST_VALUES = 2**24
_EXAMPLE = 'list every possible answer once, such as domain=["no", "yes", "no answer"].'


@dataclass(frozen=True)
class Domain:
    """Declared answers in a public order; the code of an answer is its place.

    >>> Domain.of(["no", "yes"]).codes(["yes", "no"])
    array([1, 0])
    """

    values: tuple[Category, ...]

    @classmethod
    def of(cls, values: object, *, at_least: int = 2) -> Domain:
        """Return the domain of a list of answers, or of a whole number d for the answers 0 .. d-1.

        Raises:
            MissingBoundsError: if nothing is declared.
            ParameterError: if there are too few or too many answers, or one of them twice.
        """
        if isinstance(values, Domain):
            return values
        if values is None:
            raise MissingBoundsError(
                "The possible answers are not declared, and reading them from the data would not be private.",
                fix='write for example domain=["no", "yes"].',
            )
        if isinstance(values, int | np.integer) and not isinstance(values, bool):
            values = range(check_count(values, name="domain", at_least=at_least))
        found = _clean_values(_of_size(values, at_least=at_least))
        return cls(_of_size(found, at_least=at_least))

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, values: Any) -> Codes:  # a list, an array, a Series, an Arrow array
        """Return the code of each value.

        Raises:
            OutsideDomainError: if a value is missing or not declared; it is not told which.
        """
        array = _plain_array(values)
        # Successive integers need no dictionary; truth values do, although NumPy would cast them to numbers.
        if (
            self._first is not None
            and array is not None
            and np.can_cast(array.dtype, np.int64)
            and array.dtype.kind != "b"
        ):
            return self._counted(array)
        encoded = _dictionary(values)
        places = [self._places.get(value, -1) for value in encoded.dictionary.to_pylist()]
        # A missing value gets the place behind the last one, which holds -1: it is refused like an undeclared answer.
        indices = encoded.indices.cast(pa.int64()).fill_null(len(places)).to_numpy()
        return self._check_codes(np.array([*places, -1], dtype=np.int64)[indices])

    def code(self, value: object) -> int:
        """Return the code of one value."""
        return int(self.codes([value])[0])

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of the domain's canonical text, which clients compare."""
        # The type is part of the text, as 1, True and "1" are three different answers.
        text = json.dumps([_tag_value(value) for value in self.values], ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _places(self) -> dict[Category, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def _first(self) -> int | None:
        """Return the first value if the values are successive integers of 64 bits."""
        first = self.values[0]
        if isinstance(first, bool) or not isinstance(first, int):
            return None
        # The last value must fit 64 bits as well, or the subtraction of codes could wrap around into the domain.
        if not -(2**63) <= first <= 2**63 - len(self.values):
            return None
        return first if self.values == tuple(range(first, first + len(self.values))) else None

    def _counted(self, array: NDArray[Any]) -> Codes:
        # A difference that wraps around never falls within the domain, as all of its values fit 64 bits.
        offset = array.astype(np.int64) - np.int64(self._first or 0)
        return self._check_codes(np.where((offset >= 0) & (offset < len(self)), offset, -1))

    def _check_codes(self, codes: Codes) -> Codes:
        if (codes < 0).any():
            raise _outside()
        return codes


_Sized = TypeVar("_Sized")


def _of_size(values: _Sized, *, at_least: int) -> _Sized:
    """Return values that are not too few or too many, as far as that can be told before they are listed."""
    if isinstance(values, range):
        # `len` fails for ranges beyond 2**63, which are to be refused with a sentence.
        count = max(0, -((values.start - values.stop) // values.step))
    elif isinstance(values, tuple):
        count = len(values)
    else:
        return values
    if not at_least <= count <= _MOST_VALUES:
        raise ParameterError(
            f"A domain has between {at_least} and {_MOST_VALUES:,} answers, this one has {count:,}.",
            fix='declare every possible answer once, such as domain=["no", "yes"].',
        )
    return values


def _clean_values(values: object) -> tuple[Category, ...]:
    if isinstance(values, range):
        return tuple(values)
    if isinstance(values, set | frozenset):
        raise ParameterError(
            "The domain is a set, whose order is another one on every device.",
            fix='give a list in a fixed order, such as domain=["no", "yes"].',
        )
    if isinstance(values, np.ndarray):
        values = values.tolist()
    try:
        found = clean_categories(values if isinstance(values, Iterable) else (values,))
    except SchemaError as error:
        raise ParameterError(f"The domain is not usable: {error.problem}", fix=_EXAMPLE) from None
    if not all(_is_text(value) for value in found if isinstance(value, str)):
        raise ParameterError(
            "An answer holds half a character (a lone surrogate).", fix="read the answers as UTF-8 text."
        )
    return found


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain_array(values: Any) -> NDArray[Any] | None:  # a list, an array, a Series, an Arrow array
    """Return values that NumPy can hold as a row of them, None for other containers.

    Raises:
        OutsideDomainError: if there are several values for each person, or one is masked.
    """
    if getattr(values, "ndim", 1) > 1:
        raise _several()
    if not isinstance(values, list | tuple | range | np.ndarray):
        return None
    try:
        array = np.asarray(values)
    except ValueError:
        raise _several() from None
    if array.ndim != 1:
        raise _several()
    if np.ma.is_masked(values):
        raise _outside()
    return array


def _several() -> OutsideDomainError:
    return OutsideDomainError(
        "There are several values for each person.",
        fix="give one value of domain= for each person, and ask several questions with local.SeveralAttributes.",
    )


def _outside() -> OutsideDomainError:
    return OutsideDomainError(
        "A value is missing or not among the declared answers.",
        fix='declare every possible answer in domain=, "no answer" and the like among them.',
    )


def _dictionary(values: Any) -> pa.DictionaryArray:  # a list, an array, a Series, an Arrow array
    try:
        array = pa.array(values, from_pandas=True) if not isinstance(values, pa.ChunkedArray) else values
        encoded = array.dictionary_encode()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise OutsideDomainError(
            "The values are of different types, or not plain values.", fix="give values as they are in domain=."
        ) from None
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _tag_value(value: Category) -> str:
    match value:
        case bool():
            return f"b:{'true' if value else 'false'}"
        case str():
            return f"s:{value}"
        case int():
            return f"i:{value}"
        case _:
            return f"n:{value!r}"
