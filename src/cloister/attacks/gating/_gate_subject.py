"""What the gate looks at: the release, what its custodian knows besides, and what kind of release it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cloister.anonymize import AnatomyRelease, Release
from cloister.core.guarantees import DifferentialPrivacy, Guarantee, NoGuarantee
from cloister.core.provenance import ANONYMIZED, CERTIFIED_KINDS, SYNTHETIC, TWO_TABLES
from cloister.core.random import RandomSource
from cloister.core.validation import check_choice
from cloister.data.columns import Role
from cloister.data.schema import Schema
from cloister.data.sources import ensure_open
from cloister.data.table import Table
from cloister.errors import ParameterError, ParameterTypeError

__all__ = ["KINDS", "MODEL", "GateSubject", "subject_of"]

MODEL = "model"
KINDS = (*CERTIFIED_KINDS, MODEL)
_TOO_ALIKE = 0.5
_UNPROMISED = "whoever made it did not say what holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSubject:
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
        is_vouched: whether the custodian, or somebody whom they know, says so; else the promise is only stated.
    """

    kind: str
    release: Any
    original: Any
    control: Any
    quasi: tuple[str, ...] | None
    sensitive: tuple[str, ...]
    guarantee: Guarantee
    source: RandomSource = field(repr=False)
    is_vouched: bool = True

    @property
    def schema(self) -> Schema | None:
        """Return what the custodian says about the columns of the original."""
        found = getattr(self.original, "schema", None)
        return found if isinstance(found, Schema) else None

    @property
    def is_private(self) -> bool:
        """Return whether a promise of differential privacy holds, by the word of somebody who is known."""
        return self.is_vouched and isinstance(self.guarantee, DifferentialPrivacy) and self.guarantee.holds


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
) -> GateSubject:
    """Return what the gate looks at.

    Raises:
        ParameterError: if the kind of the release cannot be told, or its rows are missing.
    """
    if guarantee is not None and not isinstance(guarantee, Guarantee):
        raise ParameterTypeError("The guarantee is not one.", fix="give model.guarantee_, or cl.PureDP(epsilon=1).")
    made = kind_of(release, kind)
    if made == MODEL:
        return _model(release, original, control, guarantee, source)
    rows = None if original is None else ensure_open(original)
    if rows is None and not isinstance(release, Release | AnatomyRelease):
        raise ParameterError(
            "The gate needs the rows that this release is about.", fix="give original=, the table it was made from."
        )
    known = _quasi(rows, quasi_identifiers)
    if made == ANONYMIZED and known is None and not isinstance(release, Release):
        raise ParameterError(
            "Nothing says which columns attackers may know.",
            fix="give quasi_identifiers=, or an original with a schema.",
        )
    return GateSubject(
        kind=made,
        release=_open_release(release),
        original=rows,
        control=None if control is None else ensure_open(control),
        quasi=known,
        sensitive=_sensitive(release, rows, sensitive),
        guarantee=_promise(release, guarantee),
        source=source,
    )


def kind_of(release: Any, kind: str | None) -> str:
    """Return what kind of release it is, as its type or the caller says."""
    if isinstance(release, Release):
        return ANONYMIZED
    if isinstance(release, AnatomyRelease) or (isinstance(release, tuple | list) and len(release) == 2):
        return TWO_TABLES
    if hasattr(release, "predict"):
        return MODEL
    if kind is None:
        raise ParameterError(
            "A table does not say how it was made.", fix=f'give kind="{ANONYMIZED}" or kind="{SYNTHETIC}".'
        )
    if kind == TWO_TABLES:
        raise ParameterError("A release in two tables needs both of them.", fix="give (quasi, sensitive): two tables.")
    return check_choice(kind, name="kind", allowed=(ANONYMIZED, SYNTHETIC))


def _model(model: Any, original: Any, control: Any, guarantee: Guarantee | None, source: RandomSource) -> GateSubject:
    if not all(isinstance(part, tuple | list) and len(part) == 2 for part in (original, control)):
        raise ParameterError(
            "The gate needs rows that the model was trained on, and others.",
            fix="give original=(X, y) and control=(X, y).",
        )
    if _share_in_common(original[0], control[0]) > _TOO_ALIKE:
        raise ParameterError(
            "Most of the rows that should be others are among those that the model was trained on.",
            fix="give rows in control= that had no part in the training.",
        )
    promise = guarantee or getattr(model, "guarantee_", None)
    return GateSubject(
        kind=MODEL,
        release=model,
        original=original,
        control=control,
        quasi=None,
        sensitive=(),
        guarantee=promise if isinstance(promise, Guarantee) else NoGuarantee(reason=_UNPROMISED),
        source=source,
    )


def _share_in_common(members: Any, others: Any) -> float:
    """Return the share of others whose features are those of a member, where most features are somebody's own."""
    first, second = (np.asarray(part).astype(str) for part in (members, others))
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1] or not len(second):
        return 0.0
    kinds = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)[1].ravel()
    known = np.unique(kinds[: len(first)])
    return float(np.isin(kinds[len(first) :], known).mean()) if len(known) >= len(first) / 2 else 0.0


def _open_release(release: Any) -> Any:
    if isinstance(release, tuple | list):
        return tuple(ensure_open(part) for part in release)
    return release if isinstance(release, Release | AnatomyRelease) else ensure_open(release)


def _quasi(original: Table | None, named: Sequence[str] | None) -> tuple[str, ...] | None:
    if named is not None:
        return (named,) if isinstance(named, str) else tuple(named)
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
