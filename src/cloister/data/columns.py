"""What a custodian states about one column: its role, its kind, and the domain that is public knowledge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cloister.core import exact
from cloister.core.construction import construct
from cloister.core.exact import Number
from cloister.core.validation import check_bounds, check_choice
from cloister.core.wordings import a_or_an
from cloister.data.hierarchy import Hierarchy
from cloister.data.values import StorageType, is_missing, is_single
from cloister.errors import CloisterError, SchemaError

Bounds: TypeAlias = "tuple[Fraction, Fraction] | tuple[date, date]"
Category: TypeAlias = "str | int | float | bool"

FACTS = ("role", "kind", "storage", "bounds", "categories", "subject")
"""What may be guessed about a column."""


MOST_CATEGORIES = 1_000_000
"""How many values a public domain has at most: all of them are counted, and shown, in one answer."""


FROM_DATA = {
    "bounds": "bounds: extremes of the data, rounded outward",
    "categories": "categories: the values of the data",
}
"""How the evidence says that a fact was read from the data."""


class Role(StrEnum):
    """What a column gives away about a person."""

    IDENTIFIER = "identifier"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"


class Kind(StrEnum):
    """What the values of a column are."""

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATETIME = "datetime"
    TEXT = "text"
    SET = "set"
    LOCATION = "location"


class Missing(StrEnum):
    """What a missing value is compared with: only itself, or (weaker) anything."""

    OWN_VALUE = "own_value"
    MATCHES_ANY = "matches_any"


BOUNDED = (Kind.NUMERIC, Kind.ORDINAL, Kind.DATETIME)
"""The kinds that have a smallest and a largest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a schema. The facts named in ``guessed`` were proposed from data and not confirmed by a person.

    Attributes:
        name: the column's name in the data.
        role: what it gives away about a person; quasi unless said, the safe choice.
        kind: what its values are.
        storage: the type in which a CSV file is read, public; None reads it from the cells.
        bounds: its smallest and largest value, public; exact numbers, or dates for a datetime.
        categories: its values, public; in order for an ordinal column.
        hierarchy: how its values are generalized.
        hierarchy_file: where the hierarchy was read from.
        weight: how much its precision matters when columns compete, above 0.
        missing: what a missing value is compared with.
        subject: whether it names the person that a row is about, so that persons and not rows are counted.
        guessed: the names of the facts that are guesses.
        evidence: what the guesses rest on, in words.
    """

    name: str
    role: Role = Role.QUASI
    kind: Kind = Kind.NOMINAL
    storage: StorageType | None = None
    bounds: Bounds | None = None
    categories: tuple[Category, ...] | None = None
    hierarchy: Hierarchy | None = field(default=None, repr=False)
    hierarchy_file: Path | None = field(default=None, repr=False, compare=False)
    weight: Fraction = Fraction(1)
    missing: Missing = Missing.OWN_VALUE
    subject: bool = False
    guessed: frozenset[str] = frozenset()
    evidence: str = field(default="", repr=False)

    def __init__(
        self,
        *,
        name: str,
        role: Role | str = Role.QUASI,
        kind: Kind | str = Kind.NOMINAL,
        storage: StorageType | str | None = None,
        bounds: Sequence[Number] | Sequence[date] | Sequence[str] | None = None,
        categories: Sequence[Category] | None = None,
        hierarchy: Hierarchy | None = None,
        hierarchy_file: str | Path | None = None,
        weight: Number = 1,
        missing: Missing | str = Missing.OWN_VALUE,
        subject: bool = False,
        guessed: Collection[str] = frozenset(),
        evidence: str = "",
    ) -> None:
        construct(
            self,
            name=name,
            role=role,
            kind=kind,
            storage=storage,
            bounds=bounds,
            categories=categories,
            hierarchy=hierarchy,
            hierarchy_file=hierarchy_file,
            weight=weight,
            missing=missing,
            subject=subject,
            guessed=guessed,
            evidence=evidence,
        )

    def __post_init__(self) -> None:
        with _naming(self.name):
            set_ = object.__setattr__
            set_(self, "role", Role(check_choice(self.role, name="role", allowed=tuple(Role))))
            set_(self, "kind", Kind(check_choice(self.kind, name="kind", allowed=tuple(Kind))))
            set_(self, "storage", None if self.storage is None else _clean_storage(self.storage))
            set_(self, "missing", Missing(check_choice(self.missing, name="missing", allowed=tuple(Missing))))
            set_(self, "bounds", None if self.bounds is None else clean_bounds(self.bounds, kind=self.kind))
            set_(self, "categories", None if self.categories is None else clean_categories(self.categories))
            set_(self, "weight", _clean_weight(self.weight))
            set_(self, "guessed", _clean_guessed(self.guessed))
            self._check_consistent()

    def _check_consistent(self) -> None:
        if self.bounds is not None and self.kind not in BOUNDED:
            raise SchemaError(
                f"{a_or_an(self.kind)} column has no bounds.",
                fix=f"use kind: one of {', '.join(BOUNDED)}; or drop the bounds.",
            )
        if self.storage is not None and not self.fits(self.storage):
            fitting = " or ".join(storage for storage in StorageType if self.fits(storage))
            raise SchemaError(
                f"{a_or_an(self.kind)} column is not stored as {self.storage}.",
                fix=f"write storage: {fitting}; or drop the storage, or correct the kind.",
            )
        if not isinstance(self.subject, bool):
            raise SchemaError("subject is not true or false.", fix="write subject: true for the person's id only.")
        if self.hierarchy is not None and not isinstance(self.hierarchy, Hierarchy):
            raise SchemaError("the hierarchy is not a Hierarchy.", fix='use for example Hierarchy.read_csv("age.csv").')

    def with_facts(self, *, evidence: str | None = None, **facts: Any) -> Column:
        """Return the column with facts stated by a person, so that they are guesses no longer."""
        left = self.guessed - set(facts)
        stated = tuple(f"{fact}: " for fact in facts)
        kept = "; ".join(why for why in self.evidence.split("; ") if not why.startswith(stated)) if left else ""
        return replace(self, guessed=left, evidence=kept if evidence is None else evidence, **facts)

    @property
    def stated_storage(self) -> StorageType | None:
        """Return the storage if a person stated or confirmed it, else None."""
        return None if "storage" in self.guessed else self.storage

    def fits(self, storage: StorageType) -> bool:
        """Return whether values of a storage type can be of this kind."""
        if self.kind is Kind.DATETIME:
            return storage in (StorageType.DATE, StorageType.TIMESTAMP)
        if self.kind is Kind.NUMERIC or (self.kind is Kind.ORDINAL and self.bounds is not None):
            return storage in (StorageType.INTEGER, StorageType.REAL)
        return True

    def confirm(self) -> Column:
        """Return the column with every guess taken for a fact."""
        return replace(self, guessed=frozenset(), evidence="")


class _naming:  # noqa: N801  # reads as a verb
    """Puts the column's name in front of whatever is wrong inside."""

    def __init__(self, name: object) -> None:
        if not isinstance(name, str) or not name:
            raise SchemaError("A column's name is not a text, or is empty.", fix='name the column, such as "age".')
        self._name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, CloisterError):
            raise SchemaError(f'Column "{self._name}": {error.problem}', fix=error.fix) from None


def clean_bounds(value: Any, *, kind: Kind) -> Bounds:
    """Return bounds as exact numbers, or as dates for a datetime column."""
    if kind is not Kind.DATETIME:
        return check_bounds(value)
    if is_single(value) or len(value) != 2:
        raise SchemaError("bounds must be a pair (first, last).", fix="write bounds: [2000-01-01, 2030-12-31].")
    first, last = (clean_moment(end) for end in value)
    if isinstance(first, datetime) != isinstance(last, datetime):
        raise SchemaError("one bound has a time and the other has none.", fix="write both in the same way.")
    try:
        reversed_ = first >= last
    except TypeError:
        raise SchemaError(
            "one bound has a time zone and the other has none.", fix="write both in the same way."
        ) from None
    if reversed_:
        raise SchemaError("bounds are reversed or empty.", fix="write the earlier date first.")
    return first, last


def clean_moment(value: object) -> date:
    """Return a date, or a date with a time where a time is given."""
    if isinstance(value, np.datetime64):
        value = value.item()
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        for read in (date.fromisoformat, datetime.fromisoformat):
            try:
                return read(value)
            except ValueError:
                continue
    raise SchemaError("a bound is not a date.", fix='write dates as "2020-12-31", times as "2020-12-31T23:59:00".')


def clean_categories(values: Iterable[Any]) -> tuple[Category, ...]:
    """Return categories of one type; where a text is among them, all are texts, as they were written."""
    if is_single(values) or isinstance(values, Mapping):
        raise SchemaError("categories are not a list.", fix="write categories: [first, second].")
    given = list(values)
    if len(given) > MOST_CATEGORIES:
        raise SchemaError(
            f"there are {len(given):,} categories, more than {MOST_CATEGORIES:,}.",
            fix=f"declare at most {MOST_CATEGORIES:,}: group them into coarser ones in the data; or declare none, and "
            "have groups chosen privately.",
        )
    found = [_clean_category(value) for value in given]
    if any(isinstance(value, str) for value in found):
        found = [_write_value(value) for value in found]
    kinds = {bool if isinstance(value, bool) else str if isinstance(value, str) else float for value in found}
    if len(kinds) > 1:
        raise SchemaError("categories mix truth values and numbers.", fix="put the categories in quotes.")
    result = tuple(float(value) if isinstance(value, Decimal) else value for value in found)
    if not result or len(set(result)) != len(result):
        raise SchemaError("categories are empty or repeat.", fix="list every category once.")
    return result


def _clean_category(value: Any) -> Any:
    if is_missing(value):
        raise SchemaError(
            "a category is missing (null, ~ or empty).",
            fix='leave it out, since missing values need no category, or quote it: "null".',
        )
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool | str | int):
        return value
    if isinstance(value, float | Decimal | Fraction) and np.isfinite(float(value)):
        return float(value) if isinstance(value, Fraction) else value
    raise SchemaError("a category is not a text, a number or a truth value.", fix="list plain values.")


def _write_value(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _clean_storage(value: Any) -> StorageType:
    return StorageType(check_choice(value, name="storage", allowed=tuple(StorageType)))


def _clean_weight(value: Any) -> Fraction:
    weight = exact.number(value, name="weight")
    if weight <= 0:
        raise SchemaError("weight must be above 0.", fix="write weight: 1, or more for a column that matters more.")
    return weight


def _clean_guessed(value: Collection[str] | Sequence[str]) -> frozenset[str]:
    if is_single(value):
        raise SchemaError("guessed is not a list.", fix="write for example guessed: [bounds, role].")
    return frozenset(check_choice(fact, name="guessed", allowed=FACTS) for fact in value)
