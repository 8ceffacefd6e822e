"""What is publicly known about how columns hang together, and holds in every synthetic row.

A constraint is public knowledge: a rule of the form, of arithmetic or of nature. It is never read from the data, and
costs nothing. Rows of the data that break it are not looked for.

- `Impossible` combinations have no probability in the model.
- `AtMost`: one number or date is never above another.
- `Determines`: one column follows from another by a public table; it is not modeled but looked up.
- `SumOf`: a number is the sum of others; it is not modeled but added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cloister.data.engines.aggregation import as_stored
from cloister.data.engines.base import ARROW_TYPES
from cloister.data.values import StorageType
from cloister.errors import ParameterError, ParameterTypeError, UnknownColumnError
from cloister.synth._domain import DomainAttribute, TableDomain
from cloister.synth.inference._estimation import Zeros

__all__ = ["AtMost", "Constraint", "Determines", "Impossible", "SumOf", "derived_columns", "zeros_of"]

_LARGEST = 10**6


@dataclass(frozen=True)
class Impossible:
    """A combination of values that cannot occur.

    Args:
        values: for each column the value, or the list of values, that do not go together.

    >>> Impossible({"sex": "male", "pregnant": "yes"}).columns
    ('sex', 'pregnant')
    """

    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise ParameterTypeError(
                "An impossible combination needs values of at least two columns.",
                fix='write Impossible({"sex": "male", "pregnant": "yes"}).',
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns it is about."""
        return tuple(self.values)

    def zeros(self, domain: TableDomain) -> Zeros:
        """Return which cells are possible."""
        columns = domain.positions(self.columns)
        masks = [_meant(domain.attributes[column], self.values[domain.names[column]]) for column in columns]
        together = np.ones(tuple(map(len, masks)), dtype=np.bool_)
        together[np.ix_(*masks)] = False
        return Zeros(columns, together)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"impossible": dict(self.values)}


@dataclass(frozen=True)
class AtMost:
    """A number, date or time that is never above another.

    Args:
        low: the column with the smaller values.
        high: the column with the larger ones.
    """

    low: str
    high: str

    def __post_init__(self) -> None:
        if self.low == self.high:
            raise ParameterError(
                "A column is always at most itself.", fix='name two columns: AtMost("admitted", "discharged").'
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns it is about."""
        return self.low, self.high

    def zeros(self, domain: TableDomain) -> Zeros:
        """Return which cells are possible: those in which some value of the one is at most some value of the other."""
        low, high = domain[self.low], domain[self.high]
        floors, tops = _ends(low, 0), _ends(high, 1)
        possible = np.ones((low.size, high.size), dtype=np.bool_)
        try:
            possible[: low.present, : high.present] = [[floor <= top for top in tops] for floor in floors]
        except TypeError:
            raise ParameterTypeError(
                f'"{self.low}" and "{self.high}" cannot be compared.', fix="compare numbers or dates."
            ) from None
        columns = domain.positions(self.columns)
        return Zeros(columns, possible if domain.names[columns[0]] == self.low else possible.T)

    def settle(self, columns: dict[str, Any]) -> None:
        """Exchange values that were drawn the wrong way around inside of their bins."""
        low, high = columns[self.low], columns[self.high]
        wrong = pc.fill_null(pc.greater(low, high), False)  # noqa: FBT003  # Arrow's signature
        columns[self.low], columns[self.high] = pc.if_else(wrong, high, low), pc.if_else(wrong, low, high)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"at_most": [self.low, self.high]}


@dataclass(frozen=True)
class Determines:
    """A column that follows from another.

    Args:
        by: the column that is modeled.
        column: the column that follows.
        mapping: the value of the second for each declared value of the first; a missing one where there is none.
    """

    by: str
    column: str
    mapping: Mapping[Any, Any]

    @property
    def derives(self) -> str:
        """Return the column that is not modeled."""
        return self.column

    def derive(self, columns: Mapping[str, Any], storage: StorageType) -> Any:  # an Arrow array
        """Return the column."""
        kind, coded = ARROW_TYPES[storage], columns[self.by].dictionary_encode()
        values = coded.dictionary.to_pylist()
        # Keys that come from a file are texts, whatever the column holds.
        by_text = {str(key): value for key, value in self.mapping.items()}
        looked_up = [self.mapping.get(value, by_text.get(str(value))) for value in values]
        return pa.array([None if item is None else as_stored(item, storage) for item in looked_up], kind).take(
            coded.indices
        )

    def check(self, domain: TableDomain) -> None:
        """Refuse what cannot be derived."""
        attribute = domain[self.by]
        if attribute.is_binned:
            raise ParameterError(
                f'"{self.by}" is cut into bins, so that nothing follows from its values.',
                fix=f'list its values as categories, or give it more bins: bins={{"{self.by}": 100}}.',
            )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"determines": [self.by, self.column], "mapping": [[key, value] for key, value in self.mapping.items()]}


@dataclass(frozen=True)
class SumOf:
    """A number that is the sum of others.

    Args:
        column: the sum.
        parts: the columns that are added.
    """

    column: str
    parts: Sequence[str]

    def __post_init__(self) -> None:
        if isinstance(self.parts, str) or not self.parts:
            raise ParameterError(
                "A sum needs the columns that are added.", fix='write SumOf("total", ["wages", "interest"]).'
            )

    @property
    def derives(self) -> str:
        """Return the column that is not modeled."""
        return self.column

    def derive(self, columns: Mapping[str, Any], storage: StorageType) -> Any:  # an Arrow array
        """Return the column."""
        total = columns[self.parts[0]]
        for name in self.parts[1:]:
            total = pc.add(total, columns[name])
        return total.cast(ARROW_TYPES[storage])

    def check(self, domain: TableDomain) -> None:
        """Refuse what cannot be derived."""
        for name in self.parts:
            if domain[name].storage not in (StorageType.INTEGER, StorageType.REAL):
                raise ParameterError(f'"{name}" is no number, and cannot be added.', fix="add numbers.")

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {"sum": self.column, "parts": list(self.parts)}


Constraint = Impossible | AtMost | Determines | SumOf


def derived_columns(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """Return the columns that follow from others and are not modeled."""
    return tuple(item.derives for item in constraints if isinstance(item, Determines | SumOf))


def zeros_of(constraints: Iterable[Constraint], domain: TableDomain) -> tuple[Zeros, ...]:
    """Return the combinations of cells that constraints leave possible."""
    found = []
    for item in constraints:
        if isinstance(item, Determines | SumOf):
            item.check(domain)
            continue
        is_large = math.prod(domain[name].size for name in item.columns) > _LARGEST
        zeros = None if is_large else item.zeros(domain)
        if zeros is None or not zeros.possible.any():
            raise ParameterError(
                "A constraint leaves nothing possible, or is about too many combinations.",
                fix="correct it, or cut its columns into fewer bins.",
            )
        found.append(zeros)
    return tuple(found)


def constraint_from_dict(values: Mapping[str, Any]) -> Constraint:
    """Return what ``to_dict`` of a constraint wrote."""
    match dict(values):
        case {"impossible": Mapping() as combination}:
            return Impossible(dict(combination))
        case {"at_most": [str(low), str(high)]}:
            return AtMost(low, high)
        case {"determines": [str(by), str(column)], "mapping": [*pairs]}:
            return Determines(by, column, _mapping(pairs))
        case {"sum": str(column), "parts": [*parts]}:
            return SumOf(column, tuple(map(str, parts)))
    raise ParameterError("This is not a constraint.", fix="use the dictionary as to_dict() wrote it.")


def _mapping(pairs: Sequence[Any]) -> dict[Any, Any]:
    try:
        return dict(pairs)
    except (TypeError, ValueError):
        raise ParameterError(
            "A mapping is not a list of pairs of values.", fix='write mapping: [["Paris", "France"]].'
        ) from None


def _meant(attribute: DomainAttribute, given: Any) -> NDArray[np.bool_]:
    listed = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    stored = [None if item is None else as_stored(item, attribute.storage) for item in listed]
    meant = np.zeros(attribute.size, dtype=np.bool_)
    if attribute.is_binned:
        raise ParameterError(
            f'"{attribute.name}" is cut into bins, so that single values cannot be impossible.',
            fix="use AtMost for numbers, or list the values of the column as categories.",
        )
    for item, value in zip(listed, stored, strict=True):
        place = attribute.present if item is None else attribute.codes([value])[0]
        if place >= attribute.size or (item is not None and place == attribute.present):
            raise ParameterError(
                f'"{attribute.name}" has no such value as a constraint names.',
                fix="name declared values of the column.",
            )
        meant[place] = True
    return meant


def _ends(attribute: DomainAttribute, side: int) -> list[Any]:
    return list(attribute.values) if attribute.values else list(attribute.edges[side : len(attribute.edges) - 1 + side])


def check_columns(constraints: Any, names: Sequence[str]) -> tuple[Constraint, ...]:
    """Return constraints as a tuple, or refuse what is none or is about unknown columns."""
    listed = tuple(constraints) if isinstance(constraints, list | tuple) else (constraints,)
    for item in listed:
        if not isinstance(item, Impossible | AtMost | Determines | SumOf):
            raise ParameterTypeError(
                "What constraints holds is not a constraint.",
                fix='write for example constraints=[AtMost("admitted", "discharged")].',
            )
        about = (
            item.columns
            if isinstance(item, Impossible | AtMost)
            else (item.by, item.column)
            if isinstance(item, Determines)
            else (*item.parts, item.column)
        )
        for name in about:
            if name not in names:
                raise UnknownColumnError(str(name), names)
    return listed
