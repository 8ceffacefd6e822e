"""What the gate looks at: the release, what its custodian knows besides, and what kind of release it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cloister.anonymize import AnatomyRelease, Release
from cloister.core.guarantees import DifferentialPrivacy, Guarantee, NoGuarantee
from cloister.core.random import RandomSource
from cloister.core.validation import check_choice
from cloister.data.columns import Role
from cloister.data.sources import open_table
from cloister.data.table import Table
from cloister.errors import ParameterError

__all__ = ["KINDS", "Subject", "subject_of"]

KINDS = ("anonymized table", "two tables", "synthetic table", "model")
_UNPROMISED = "whoever made it did not say what holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A release under attack.

    Attributes:
        kind: one of `KINDS`.
        release: a `Release`, an `AnatomyRelease`, a table, two tables, or a fitted model.
        original: the rows that the release is about; None where the release knows them itself. Of a model, features and
            labels.
        control: rows of the same kind that had no part in the release.
        quasi: columns that attackers may know, where neither release nor schema says it.
        sensitive: columns that attackers want to know.
        guarantee: what the release promises.
        source: randomness.
    """

    kind: str
    release: Any
    original: Any
    control: Any
    quasi: tuple[str, ...] | None
    sensitive: tuple[str, ...]
    guarantee: Guarantee
    source: RandomSource = field(repr=False)

    @property
    def is_private(self) -> bool:
        """Return whether a promise of differential privacy holds."""
        return isinstance(self.guarantee, DifferentialPrivacy) and self.guarantee.holds


def subject_of(
    release: Any,
    *,
    kind: str | None,
    original: Any,
    control: Any,
    quasi_identifiers: Sequence[str] | None,
    sensitive: str | Sequence[str] | None,
    guarantee: Guarantee | None,
    source: RandomSource,
) -> Subject:
    """Return what the gate looks at.

    Raises:
        ParameterError: if the kind of the release cannot be told, or its rows are missing.
    """
    made = kind_of(release, kind)
    if made == KINDS[3]:
        return _model(release, original, control, guarantee, source)
    rows = None if original is None else _table(original)
    if rows is None and not isinstance(release, Release | AnatomyRelease):
        raise ParameterError(
            "The gate needs the rows that this release is about.", fix="give original=, the table it was made from."
        )
    return Subject(
        kind=made,
        release=release if isinstance(release, Release | AnatomyRelease | tuple | list) else _table(release),
        original=rows,
        control=None if control is None else _table(control),
        quasi=_quasi(rows, quasi_identifiers),
        sensitive=_sensitive(release, rows, sensitive),
        guarantee=_promise(release, guarantee),
        source=source,
    )


def kind_of(release: Any, kind: str | None) -> str:
    """Return what kind of release it is, as its type or the caller says."""
    if isinstance(release, Release):
        return KINDS[0]
    if isinstance(release, AnatomyRelease) or (isinstance(release, tuple | list) and len(release) == 2):
        return KINDS[1]
    if hasattr(release, "predict"):
        return KINDS[3]
    if kind is None:
        raise ParameterError(
            "A table does not say how it was made.", fix='give kind="anonymized table" or kind="synthetic table".'
        )
    return check_choice(kind, name="kind", allowed=(KINDS[0], KINDS[2]))


def _model(model: Any, original: Any, control: Any, guarantee: Guarantee | None, source: RandomSource) -> Subject:
    if original is None or control is None:
        raise ParameterError(
            "The gate needs rows that the model was trained on, and others.",
            fix="give original=(X, y) and control=(X, y).",
        )
    promise = guarantee or getattr(model, "guarantee_", None)
    return Subject(
        kind=KINDS[3],
        release=model,
        original=original,
        control=control,
        quasi=None,
        sensitive=(),
        guarantee=promise if isinstance(promise, Guarantee) else NoGuarantee(reason=_UNPROMISED),
        source=source,
    )


def _table(table: Any) -> Table:
    return table if isinstance(table, Table) else open_table(table)


def _quasi(original: Table | None, named: Sequence[str] | None) -> tuple[str, ...] | None:
    if named is not None:
        return tuple(named)
    return _with_role(original, Role.QUASI) or None


def _with_role(table: Table | None, role: Role) -> tuple[str, ...]:
    schema = getattr(table, "schema", None)
    return () if schema is None else tuple(schema.with_roles(role))


def _sensitive(release: Any, original: Table | None, sensitive: str | Sequence[str] | None) -> tuple[str, ...]:
    if sensitive is not None:
        return (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    if isinstance(release, AnatomyRelease):
        return (release.tables.attribute,)
    if isinstance(release, Release):
        return tuple(release.roles.sensitive)
    return _with_role(original, Role.SENSITIVE)


def _promise(release: Any, guarantee: Guarantee | None) -> Guarantee:
    if guarantee is not None:
        return guarantee
    found = getattr(release, "guarantee", None)
    return found if isinstance(found, Guarantee) else NoGuarantee(reason=_UNPROMISED)
