"""Rules on columns: which are shown, and what each may be used for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    WrapSerializer,
    WrapValidator,
)

from cloister.hub.domain.documents import Document, Entries, Listed, WrittenAs, choice, mistake, require
from cloister.hub.domain.terms import NEUTRAL, ColumnTerms, inherit

__all__ = ["ALL_USES", "EVERY_COLUMN", "FORBIDDEN", "NO_COLUMN", "ColumnRule", "ColumnRules", "Use"]


class Use(StrEnum):
    """What a column may be used for."""

    VISIBLE = "visible"
    FILTER = "filter"
    GROUP_BY = "group_by"
    MEASURE = "measure"


ALL_USES = frozenset(Use)
_FORBIDDEN = "forbidden"
_USES = TypeAdapter[list[Use]](Listed[Annotated[Use, choice(Use)]])


def _read_uses(value: Any) -> frozenset[Use]:  # whatever somebody wrote
    if value == _FORBIDDEN:
        return frozenset()
    uses = frozenset(_USES.validate_python(value))
    if not uses:
        raise mistake("the column has no use.", fix=f'write "{_FORBIDDEN}" to hide it.')
    return uses


def _write_uses(uses: frozenset[Use]) -> list[str] | str:
    return [str(use) for use in Use if use in uses] or _FORBIDDEN


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule(Document):
    """Uses of one column; no use at all means that the column is forbidden and, for its user, does not exist."""

    uses: Annotated[frozenset[Use], PlainValidator(_read_uses), PlainSerializer(_write_uses)] = frozenset()
    terms: ColumnTerms = NEUTRAL

    def __post_init__(self) -> None:
        if self.uses:
            object.__setattr__(self, "uses", self.uses | {Use.VISIBLE})

    @property
    def is_visible(self) -> bool:
        """Return whether the column exists for its user."""
        return Use.VISIBLE in self.uses

    def __and__(self, other: ColumnRule) -> ColumnRule:
        return ColumnRule(uses=self.uses & other.uses, terms=inherit([self.terms, other.terms]))

    @classmethod
    def prepare(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields, among which uses have to be: a rule that forgot them would hide the column."""
        require(values, "uses")
        return values


FORBIDDEN = ColumnRule()


def _read_column(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    if value == _FORBIDDEN or isinstance(value, list):
        return ColumnRule(uses=_read_uses(value))
    if not isinstance(value, Mapping):
        raise mistake(
            "this does not say what the column may be used for.",
            fix=f'write "{_FORBIDDEN}", or a list of {", ".join(Use)}.',
        )
    return read(value)


def _write_column(rule: ColumnRule, write: SerializerFunctionWrapHandler) -> Any:
    """Return the rule of a column that has no terms of its own as its uses."""
    return _write_uses(rule.uses) if rule.terms == NEUTRAL else write(rule)


_Column: TypeAlias = Annotated[ColumnRule, WrapValidator(_read_column), WrapSerializer(_write_column)]
_NamedColumns: TypeAlias = Annotated[
    tuple[tuple[str, ColumnRule], ...], WrittenAs(Entries[_Column], lambda rules: tuple(rules.items()), dict)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRules(Document):
    """A rule for each column, and one for all the others, which are forbidden unless stated."""

    aliases: ClassVar = {"named": "columns", "others": "other_columns"}

    named: _NamedColumns = ()
    others: _Column = FORBIDDEN

    def of(self, column: str) -> ColumnRule:
        """Return the rule of a column."""
        return dict(self.named).get(column, self.others)

    def visible(self, columns: Iterable[str], *, purpose: str | None = None) -> tuple[str, ...]:
        """Return those of some columns that exist for a user who acts for a purpose."""
        return tuple(name for name in columns if self._exists(self.of(name), purpose))

    def __and__(self, other: ColumnRules) -> ColumnRules:
        names = dict.fromkeys([*dict(self.named), *dict(other.named)])
        named = tuple((name, self.of(name) & other.of(name)) for name in names)
        return ColumnRules(named=named, others=self.others & other.others)

    @staticmethod
    def _exists(rule: ColumnRule, purpose: str | None) -> bool:
        return rule.is_visible and (purpose is None or rule.terms.purposes.allows(purpose))


EVERY_COLUMN = ColumnRules(others=ColumnRule(uses=ALL_USES))
"""Shows and allows everything: for owners, and for a role that keeps its policy's own rules."""

NO_COLUMN = ColumnRules()
"""Shows nothing."""
