"""The tables of an attack on synthetic data, checked and coded alike.

A control that holds rows of the original makes every attack look harmless, and is refused. Rows of independent people
can be equal too, so equal rows alone say nothing. But if original and control are of one population, a row that occurs
exactly twice in both together is as likely twice in one of them as chance has it: with ``n`` and ``m`` rows it is once
in each with probability ``2nm / ((n + m)(n + m - 1))``, one half for tables of the same size. The control is refused if
at least 20 such rows, and more than a fifth of it, are once in each, and if so many of those that occur twice would be
so by chance less than once in a million times. It is refused as well if every row occurs as often in it as in the
original, where there are at least ten different ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cloister.core import validation
from cloister.core.random import RandomSource, permutation
from cloister.data.columns import Role
from cloister.data.mixed_rows import MixedRows, numbered_rows, read_mixed_rows
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import DataError, ParameterError, ParameterTypeError, UnknownColumnError

__all__ = ["Attacked", "chosen_rows", "read_attacked"]

Places = NDArray[np.int64]

_FEWEST_PAIRS = 20
_LARGEST_SHARE = 0.2
_CHANCE = 1e-6
_FEWEST_KINDS = 10


@dataclass(frozen=True, eq=False, repr=False)
class Attacked:
    """What an attacker holds, and the rows that the attack is tried on.

    Attributes:
        original: the rows that the synthetic ones were made from. Protected.
        synthetic: the synthetic rows.
        control: rows of the same kind that had no part in the synthetic ones. Protected.
        places: where each row of ``original`` is in the custodian's table.
        left_out: columns of the original, no identifiers, that are not compared because another table lacks them.
    """

    original: MixedRows
    synthetic: MixedRows
    control: MixedRows | None
    places: Places
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Attacked({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns."""
        return self.original.columns

    def per_synthetic_row(self, people: int, control: tuple[float, int] | None) -> tuple[float, float]:
        """Return how many people come to one synthetic row, in the attack and in the control (hits and trials)."""
        others = 0 if control is None else control[1]
        return people / len(self.synthetic), others / len(self.synthetic)

    def evened(self, source: RandomSource) -> Attacked:
        """Return as many original rows as control rows, chosen at random: what depends on size can be compared then."""
        if self.control is None:
            return self
        count = min(len(self.original), len(self.control))
        kept = chosen_rows(len(self.original), count, source)
        control = self.control.take(chosen_rows(len(self.control), count, source))
        return replace(self, original=self.original.take(kept), control=control, places=self.places[kept])


def read_attacked(
    original: Any,
    synthetic: Any,
    *,
    control: Any = None,
    columns: Sequence[str] | None = None,
    bounds: Mapping[str, Any] | None = None,
) -> Attacked:
    """Open the tables and code them alike, or refuse what cannot be compared.

    Raises:
        UnknownColumnError: if a table lacks a column.
        DataError: if a table is empty, or the control holds rows of the original.
        ParameterError: if the tables have no column in common, or one of different kinds.
    """
    given = {"original": original, "synthetic": synthetic, "control": control}
    opened = {name: _opened(value, name) for name, value in given.items() if value is not None or name != "control"}
    for name, table in opened.items():
        if not table.count():
            raise DataError(f"The {name} table has no rows.", fix="give a table with rows.")
    names = _names(opened, columns)
    rows = read_mixed_rows(list(opened.values()), names, bounds=_ranges(bounds))
    if control is not None and _overlap(*_all_columns(opened["original"], opened["control"], names)):
        raise DataError(
            "The control holds rows of the original, so that every attack would look harmless.",
            fix="give control rows that had no part in the synthetic table: set them aside before it is made.",
        )
    asked = _described(opened["original"]) if columns is None else ()
    return Attacked(
        original=rows[0],
        synthetic=rows[1],
        control=rows[2] if len(rows) > 2 else None,
        places=np.arange(len(rows[0])),
        left_out=tuple(name for name in asked if name not in names),
    )


def chosen_rows(count: int, most: int, source: RandomSource) -> Places:
    """Return places of rows without repetition, at most so many; in order where all are taken."""
    return np.arange(count) if count <= most else permutation(source, count)[:most]


def _opened(value: Any, name: str) -> Table:
    if value is None:
        raise ParameterTypeError(f"There is no {name} table.", fix=f"give the {name} rows as a table or a data frame.")
    held = getattr(value, "table", None)
    if isinstance(held, Table):
        return held
    return value if isinstance(value, Table) else open_table(value)


def _names(opened: Mapping[str, Table], columns: Sequence[str] | None) -> list[str]:
    if isinstance(columns, str):
        raise ParameterTypeError("columns is one text, not a list of names.", fix=f'write columns=["{columns}"].')
    first = opened["original"]
    if columns is None:
        names = [name for name in _described(first) if all(name in table.columns for table in opened.values())]
    else:
        names = list(dict.fromkeys(columns))
    if not names:
        raise ParameterError("The tables have no column in common.", fix="give tables with the same columns.")
    for name in names:
        for table in opened.values():
            if name not in table.columns:
                raise UnknownColumnError(str(name), table.columns)
    return names


def _described(table: Table) -> list[str]:
    """Return the columns but identifiers."""
    known = {} if table.schema is None else table.schema.columns
    return [name for name in table.columns if name not in known or known[name].role is not Role.IDENTIFIER]


def _all_columns(original: Table, control: Table, names: Sequence[str]) -> list[MixedRows]:
    """Return the rows of both with all columns that both have alike: a few may not tell who is who."""
    further = [
        name
        for name in _described(original)
        if name not in names and name in control.columns and control.types[name] == original.types[name]
    ]
    return read_mixed_rows([original, control], [*names, *further])


def _overlap(original: MixedRows, control: MixedRows) -> bool:
    """Return whether rows of the original are among those of the control, beyond what chance would do."""
    kinds = numbered_rows([original, control])
    size = max(int(part.max()) for part in kinds) + 1
    ours, others = (np.bincount(part, minlength=size) for part in kinds)
    if size >= _FEWEST_KINDS and np.array_equal(ours, others):
        return True
    pairs, twice = int(((ours == 1) & (others == 1)).sum()), int((ours + others == 2).sum())
    if pairs < max(_FEWEST_PAIRS, _LARGEST_SHARE * len(control)):
        return False
    total = len(original) + len(control)
    split = 2 * len(original) * len(control) / (total * (total - 1))
    return float(special.bdtrc(pairs - 1, twice, split)) < _CHANCE


def _ranges(bounds: Mapping[str, Any] | None) -> dict[str, tuple[float, float]]:
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterTypeError("bounds is not a mapping.", fix='write for example bounds={"age": (0, 110)}.')
    checked = {name: validation.check_bounds(pair) for name, pair in (bounds or {}).items()}
    return {name: (float(low), float(high)) for name, (low, high) in checked.items()}
