"""What a release promises, checked on its rows as anybody reads them: slowly, in whole numbers, sharing no code.

Rows are mappings from column to cell. A class is the rows that show the same in every quasi-identifier.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from cloister.core.guarantees import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaPresence,
    Guarantee,
    KAnonymity,
    KMap,
    LDiversity,
    PSensitivity,
    TCloseness,
)
from cloister.data.columns import Column
from cloister.data.hierarchy import Hierarchy
from cloister.data.interval_labels import interval_in

Row: TypeAlias = "Mapping[str, Any]"
Shares: TypeAlias = "dict[Any, Fraction]"


def classes_of_rows(rows: Iterable[Row], quasi: Sequence[str]) -> list[list[Row]]:
    """Return the rows that look alike, class by class."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in quasi)].append(row)
    return list(found.values())


class RowChecker:
    """Decides whether released rows satisfy models.

    Args:
        columns: what the schema says about each column.
        quasi: the quasi-identifiers.
        person: a column that is released as it is and tells persons apart, if there is one.
        population: the rows of the population.
        domains: the values that each quasi-identifier has in the original table.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        quasi: Sequence[str],
        *,
        person: str | None = None,
        population: Sequence[Row] = (),
        domains: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.columns, self.quasi, self.person = columns, quasi, person
        self.population, self.domains = population, domains or {}

    def holds(self, model: Guarantee, rows: Sequence[Row]) -> bool:
        """Return whether every class satisfies a model."""
        return all(self.class_holds(model, members, rows) for members in classes_of_rows(rows, self.quasi))

    def class_holds(self, model: Any, members: Sequence[Row], rows: Sequence[Row]) -> bool:
        """Return whether one class of a table satisfies a model."""
        match model:
            case KAnonymity():
                return self._units(model, members) >= model.k
            case KMap():
                return self._fitting(members[0]) >= model.k
            case DeltaPresence():
                fitting = self._fitting(members[0])
                return model.delta_min * fitting <= len(members) <= model.delta_max * fitting
        counts = Counter(row[model.attribute] for row in members)
        overall = Counter(row[model.attribute] for row in rows)
        match model:
            case LDiversity():
                return is_diverse(model, counts)
            case TCloseness():
                return is_close(model, counts, overall, self.columns[model.attribute])
            case AlphaKAnonymity():
                enough = self._units(model, members) >= model.k
                return enough and Fraction(max(counts.values()), len(members)) <= model.alpha
            case PSensitivity():
                return self._units(model, members) >= model.k and len(counts) >= model.p
            case BetaLikeness():
                return is_like(model, counts, overall)
        raise TypeError(type(model).__name__)

    def _units(self, model: Any, members: Sequence[Row]) -> int:
        return len(members) if model.unit == "row" else len({row[str(self.person)] for row in members})

    def _fitting(self, shown: Row) -> int:
        return sum(
            all(allows(self.columns[name], shown[name], row[name], self.domains[name]) for name in self.quasi)
            for row in self.population
        )


def is_diverse(model: LDiversity, counts: Counter[Any]) -> bool:
    """Return whether sensitive values are diverse enough; entropies are compared as products of whole numbers."""
    ordered = sorted(counts.values(), reverse=True)
    size, l = sum(ordered), model.l  # noqa: E741  # the literature's name
    match model.variant:
        case "distinct":
            return len(ordered) >= l
        case "frequency":
            return ordered[0] * l <= size
        case "entropy":  # n^n / prod(c^c) >= l^n
            product = 1
            for count in ordered:
                product *= count**count
            return size**size * l.denominator**size >= product * l.numerator**size
        case "recursive":
            return ordered[0] < Fraction(str(model.c)) * sum(ordered[int(l) - 1 :])
    raise ValueError(model.variant)


def is_close(model: TCloseness, counts: Counter[Any], overall: Counter[Any], column: Column) -> bool:
    """Return whether sensitive values of a class are distributed nearly as in the table."""
    inside, outside = _shares(counts, overall), _shares(overall, overall)
    if model.variant == "kl":
        return inside == outside or _divergence(inside, outside) <= _decimal(model.t)
    return distance(model.variant, inside, outside, column) <= model.t


def distance(kind: str, inside: Shares, outside: Shares, column: Column) -> Fraction:
    """Return the distance between two distributions over the same values."""
    extra = {value: inside[value] - outside[value] for value in outside}
    match kind:
        case "equal" | "variational":
            return sum(map(abs, extra.values()), Fraction(0)) / 2
        case "ordered":
            scale = sorted(extra, key=lambda value: _rank(value, column))
            reached = [sum((extra[value] for value in scale[:end]), Fraction(0)) for end in range(1, len(scale))]
            return sum(map(abs, reached), Fraction(0)) / max(len(scale) - 1, 1)
        case "hierarchical":
            return _tree_distance(extra, column.hierarchy)
    raise ValueError(kind)


def _tree_distance(extra: Shares, hierarchy: Hierarchy | None) -> Fraction:
    """Return the earth mover's distance in a tree: what crosses each edge, times its length of 1 / (2 height)."""
    assert hierarchy is not None
    ways = {row[0]: row for row in hierarchy.rows()}
    total = Fraction(0)
    for level in range(hierarchy.height):
        crossing: Counter[Any] = Counter()
        for value, amount in extra.items():
            crossing[None if value is None else ways[plain_text(value)][level]] += amount
        total += sum(map(abs, crossing.values()), Fraction(0))
    return total / (2 * hierarchy.height)


def _rank(value: Any, column: Column) -> tuple[Any, ...]:
    if value is None:
        return (1,)
    if column.categories is not None:
        return (0, [plain_text(item) for item in column.categories].index(plain_text(value)))
    return (0, value)


def is_like(model: BetaLikeness, counts: Counter[Any], overall: Counter[Any]) -> bool:
    """Return whether no sensitive value is much more frequent in a class than in the table."""
    inside, outside = _shares(counts, overall), _shares(overall, overall)
    gains = {value: inside[value] / outside[value] - 1 for value in outside}
    if any(gain > model.beta for gain in gains.values()):
        return False
    with localcontext(prec=60):
        return model.variant == "basic" or all(
            gain <= 0 or _decimal(gain) <= -_decimal(outside[value]).ln() for value, gain in gains.items()
        )


def _shares(counts: Counter[Any], overall: Counter[Any]) -> Shares:
    return {value: Fraction(counts[value], counts.total()) for value in overall}


def _divergence(inside: Shares, outside: Shares) -> Decimal:
    with localcontext(prec=60):
        terms = [_decimal(p) * _decimal(p / outside[value]).ln() for value, p in inside.items() if p]
        return sum(terms, Decimal(0))


def _decimal(number: Fraction) -> Decimal:
    with localcontext(prec=60):
        return Decimal(number.numerator) / Decimal(number.denominator)


# What a released cell stands for -------------------------------------------------------------------------------------


def plain_text(value: Any) -> str:
    """Return how a value is written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def allows(column: Column, shown: Any, value: Any, domain: Sequence[Any]) -> bool:
    """Return whether a released cell is true of a raw value: the value, a name above it, a set or a range of values."""
    if value is None:
        return shown is None or shown == "*" or _lists(shown, "missing")
    if shown is None:
        return False
    names = (plain_text(value), "*") if column.hierarchy is None else _way(column.hierarchy, value)
    return plain_text(shown) in names or _lists(shown, names[0]) or _spans(column, shown, names[0], domain)


def _way(hierarchy: Hierarchy, value: Any) -> tuple[str, ...]:
    """Return the names of a value at every level."""
    for row in hierarchy.rows():
        interval = interval_in(row[0])
        if row[0] == plain_text(value) or (isinstance(value, dt.datetime) and row[0] == value.date().isoformat()):
            return row
        if interval is not None and isinstance(value, int | float) and interval.contains(Fraction(value)):
            return row
    raise LookupError("a value outside the hierarchy was released")


def _lists(shown: Any, text: str) -> bool:
    return isinstance(shown, str) and shown[:1] + shown[-1:] == "{}" and f", {text}, " in f", {shown[1:-1]}, "


def _spans(column: Column, shown: Any, text: str, domain: Sequence[Any]) -> bool:
    """Return whether a closed interval between two values of the column holds a value."""
    if not isinstance(shown, str) or not shown.startswith("["):
        return False
    if column.hierarchy is not None:
        scale = list(column.hierarchy.leaves)
    else:
        known = column.categories or sorted({item for item in domain if item is not None})
        scale = [plain_text(item) for item in known]
    mine = scale.index(text)
    return any(shown == f"[{low}, {high}]" for low in scale[: mine + 1] for high in scale[mine:])


# Whether released rows are the original ones, generalized -----------------------------------------------------------


def is_truthful(
    released: Sequence[Row], original: Sequence[Row], columns: Mapping[str, Column], quasi: Sequence[str]
) -> bool:
    """Return whether the released rows can be matched one to one with original rows that they are true of."""
    kept = [name for name in (released[0] if released else {}) if name not in quasi]
    domains = {name: [row[name] for row in original] for name in quasi}

    def fits(shown: Row, row: Row) -> bool:
        return all(shown[name] == row[name] for name in kept) and all(
            allows(columns[name], shown[name], row[name], domains[name]) for name in quasi
        )

    possible = np.array([[fits(shown, row) for row in original] for shown in released], dtype=np.int8)
    matched = maximum_bipartite_matching(csr_array(possible.reshape(len(released), len(original))), perm_type="column")
    return bool((matched >= 0).all())


def is_part(released: Iterable[Row], original: Iterable[Row], names: Sequence[str]) -> bool:
    """Return whether some columns of the released rows are, as a multiset, among those of the original rows."""
    shown = Counter(tuple(row[name] for name in names) for row in released)
    return shown <= Counter(tuple(row[name] for name in names) for row in original)
